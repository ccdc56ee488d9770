"""Rules for torch operations that move, repeat, drop and join entries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.graph import Graph, Rule, axis_of
from pindown.io._torch.values import cast, listed
from pindown.model.builder import Tensor
from pindown.model.operations.moves import Concat, Expand, Fill, Gather, Pad, Slice, Tile

_PAD_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


# ---------------------------------------------------------------------- shapes


def reshape(graph: Graph, x: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """Give the entries another shape; one length may be -1."""
    if len(sizes) == 1 and isinstance(sizes[0], torch.dtype):
        return cast(graph, x, sizes[0])
    wanted = listed(sizes or (shape,))
    if -1 in wanted:
        known = -math.prod(wanted)
        wanted[wanted.index(-1)] = math.prod(x.shape) // max(1, known)
    return graph.reshape(x, wanted)


def flatten(graph: Graph, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join neighbouring axes."""
    start, stop = axis_of(x.shape, start_dim), axis_of(x.shape, end_dim) + 1
    return graph.reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def unflatten(graph: Graph, x: Tensor, dim: int, sizes: Any) -> Tensor:
    """Split an axis into several."""
    axis = axis_of(x.shape, dim)
    sizes = [int(n) for n in sizes]
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[axis] // max(1, -math.prod(sizes))
    return graph.reshape(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def squeeze(graph: Graph, x: Tensor, dim: Any = None) -> Tensor:
    """Drop axes of length one."""
    axes = range(len(x.shape)) if dim is None else [axis_of(x.shape, int(d)) for d in np.atleast_1d(dim)]
    return graph.reshape(x, [n for axis, n in enumerate(x.shape) if n != 1 or axis not in axes])


def unsqueeze(graph: Graph, x: Tensor, dim: int) -> Tensor:
    """Insert an axis of length one."""
    axis = axis_of((*x.shape, 1), dim)
    return graph.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def transpose(graph: Graph, x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes."""
    order = list(range(len(x.shape)))
    a, b = axis_of(x.shape, dim0), axis_of(x.shape, dim1)
    order[a], order[b] = order[b], order[a]
    return graph.transpose(x, order)


def permute(graph: Graph, x: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Put the axes in another order."""
    return graph.transpose(x, listed(order or (dims,)))


def movedim(graph: Graph, x: Tensor, source: Any, destination: Any) -> Tensor:
    """Move axes to other places, the rest in order."""
    told_apart = np.broadcast_to(np.int8(0), range(len(x.shape)))  # axis i has length i
    return graph.transpose(x, np.moveaxis(told_apart, source, destination).shape)


def reversed_axes(graph: Graph, x: Tensor) -> Tensor:
    """Put the axes in reverse order, as ``x.T`` and ``x.t()`` do."""
    return graph.transpose(x, range(len(x.shape))[::-1])


def expand(graph: Graph, x: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Repeat along axes of length one and new axes; -1 keeps a length."""
    wanted = listed(sizes or (size,))
    own = (*(1,) * (len(wanted) - len(x.shape)), *x.shape)
    shape = tuple(n if w == -1 else w for n, w in zip(own, wanted, strict=True))
    if np.broadcast_shapes(x.shape, shape) != shape:
        raise UnsupportedModelError(f"a tensor of shape {x.shape} cannot be expanded to {shape}.")
    return x if shape == x.shape else graph.add(Expand(shape), x)


def repeat(graph: Graph, x: Tensor, *repeats: Any) -> Tensor:
    """Repeat the whole tensor along each axis."""
    counts = listed(repeats)
    x = graph.reshape(x, (*(1,) * (len(counts) - len(x.shape)), *x.shape))
    return x if set(counts) == {1} else graph.add(Tile(tuple(counts)), x)


def tile(graph: Graph, x: Tensor, *dims: Any) -> Tensor:
    """Repeat the whole tensor along the last axes."""
    counts = listed(dims)
    return repeat(graph, x, *(1,) * (len(x.shape) - len(counts)), *counts)


def repeat_interleave(graph: Graph, x: Tensor, repeats: int, dim: int | None = None) -> Tensor:
    """Repeat every entry along an axis."""
    if dim is None:
        x, dim = flatten(graph, x), 0
    axis = axis_of(x.shape, dim)
    return graph.add(Gather(np.repeat(np.arange(x.shape[axis]), int(repeats)), axis), x)


# ---------------------------------------------------------------------- parts


def getitem(graph: Graph, x: Any, index: Any) -> Any:
    """Take entries as Python's brackets do: slices, integers, new axes, constant positions."""
    if not isinstance(x, Tensor):
        return x[index]
    index = index if isinstance(index, tuple) else (index,)
    if any(isinstance(part, Tensor) for part in index):
        raise UnsupportedModelError("positions that are computed from the input are not read.")
    if all(isinstance(part, int | slice) or part is None or part is ... for part in index):
        return _basic(graph, x, index)
    places = [i for i, part in enumerate(index) if isinstance(part, torch.Tensor | list)]
    if len(places) == 1 and not any(
        part is None or part is ... or isinstance(part, int) for part in index
    ):
        return _listed_positions(graph, x, index, places[0])
    own = tuple(np.asarray(p) if isinstance(p, torch.Tensor | list) else p for p in index)
    table = np.arange(math.prod(x.shape)).reshape(x.shape)[own]
    taken = graph.add(Gather(table.ravel(), 0), graph.reshape(x, (math.prod(x.shape),)))
    return graph.reshape(taken, table.shape)


def _basic(graph: Graph, x: Tensor, index: tuple[Any, ...]) -> Tensor:
    """Take slices, drop the axes of integers, and insert new ones."""
    used = sum(part is not None and part is not ... for part in index)
    filled: list[Any] = []
    for part in index:
        filled += [slice(None)] * (len(x.shape) - used) if part is ... else [part]
    if ... not in index:
        filled += [slice(None)] * (len(x.shape) - used)
    spans, shape, axis = [], [], 0
    for part in filled:
        if part is None:
            shape.append(1)
            continue
        length = x.shape[axis]
        if isinstance(part, slice):
            start, stop, step = part.indices(length)
            shape.append(len(range(start, stop, step)))
            whole = (start, stop, step) == (0, length, 1)
            spans.append(slice(None) if whole else slice(start, stop, step))
        else:
            place = range(length)[part]
            spans.append(slice(None) if length == 1 else slice(place, place + 1, 1))
        axis += 1
    if any(span != slice(None) for span in spans):
        x = graph.add(Slice(tuple(spans)), x)
    return graph.reshape(x, shape)


def _listed_positions(graph: Graph, x: Tensor, index: tuple[Any, ...], place: int) -> Tensor:
    """Take listed positions along one axis, and slices along others."""
    positions = np.asarray(index[place])
    if positions.dtype == bool:
        (positions,) = np.nonzero(positions)
    rest = tuple(slice(None) if i == place else part for i, part in enumerate(index))
    return graph.add(Gather(np.arange(x.shape[place])[positions], place), _basic(graph, x, rest))


def index_select(graph: Graph, x: Tensor, dim: int, index: Any) -> Tensor:
    """Take constant positions along an axis."""
    axis = axis_of(x.shape, dim)
    return getitem(graph, x, (*(slice(None),) * axis, index))


def narrow(graph: Graph, x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Take neighbouring entries along an axis."""
    axis = axis_of(x.shape, dim)
    return _basic(graph, x, (*(slice(None),) * axis, slice(start, start + length)))


def select(graph: Graph, x: Tensor, dim: int, index: int) -> Tensor:
    """Take one entry along an axis, which goes away."""
    return _basic(graph, x, (*(slice(None),) * axis_of(x.shape, dim), index))


def split(
    graph: Graph, x: Tensor, split_size_or_sections: Any = None, dim: int = 0, split_size: Any = None
) -> Any:
    """Cut an axis into parts of a length, or of several."""
    axis = axis_of(x.shape, dim)
    wanted = split_size if split_size_or_sections is None else split_size_or_sections
    n = x.shape[axis]
    sizes = (
        [min(wanted, n - i) for i in range(0, n, wanted)] if isinstance(wanted, int) else list(wanted)
    )
    ends = np.cumsum(sizes)
    return tuple(narrow(graph, x, axis, int(e - s), s) for s, e in zip(sizes, ends, strict=True))


def chunk(graph: Graph, x: Tensor, chunks: int, dim: int = 0) -> Any:
    """Cut an axis into that many parts, the last one perhaps shorter."""
    return split(graph, x, -(-x.shape[axis_of(x.shape, dim)] // chunks), dim)


def unbind(graph: Graph, x: Tensor, dim: int = 0) -> Any:
    """Return the entries along an axis, which goes away."""
    return tuple(select(graph, x, dim, i) for i in range(x.shape[axis_of(x.shape, dim)]))


def flip(graph: Graph, x: Tensor, *which: Any, dims: Any = None) -> Tensor:
    """Reverse axes."""
    axes = {axis_of(x.shape, axis) for axis in listed(which or (dims,))}
    spans = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(len(x.shape)))
    return graph.add(Slice(spans), x)


def roll(graph: Graph, x: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Move the entries along axes; those that fall off come back in front."""
    if dims is None:
        return graph.reshape(roll(graph, flatten(graph, x), shifts, 0), x.shape)
    for shift, dim in zip(np.atleast_1d(shifts), np.atleast_1d(dims), strict=True):
        axis = axis_of(x.shape, int(dim))
        if shift % x.shape[axis]:
            x = graph.add(Gather(np.roll(np.arange(x.shape[axis]), int(shift)), axis), x)
    return x


def diagonal_part(keep_lower: bool) -> Rule:
    """Return the rule of ``tril`` or ``triu``."""

    def rule(graph: Graph, x: Tensor, diagonal: int = 0) -> Tensor:
        from pindown.io._torch.elementwise import mul

        mask = (np.tril if keep_lower else np.triu)(np.ones(x.shape[-2:]), diagonal)
        return mul(graph, x, torch.from_numpy(mask))

    return rule


# ---------------------------------------------------------------------- joining and padding


def cat(graph: Graph, tensors: Sequence[Any], dim: int = 0, axis: int | None = None) -> Tensor:
    """Join tensors along an axis."""
    parts = [graph.tensor(part) for part in tensors]
    place = axis_of(parts[0].shape, dim if axis is None else axis)
    return parts[0] if len(parts) == 1 else graph.add(Concat(place), *parts)


def stack(graph: Graph, tensors: Sequence[Any], dim: int = 0) -> Tensor:
    """Join tensors along a new axis."""
    return cat(graph, [unsqueeze(graph, graph.tensor(part), dim) for part in tensors], dim)


def pad(graph: Graph, x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Add entries around the last axes; ``pad`` begins with the last axis, as torch has it."""
    pairs = [(int(a), int(b)) for a, b in zip(pad[::2], pad[1::2], strict=True)][::-1]
    missing = len(x.shape) - len(pairs)
    before, after = (tuple([0] * missing + [pair[i] for pair in pairs]) for i in (0, 1))
    if not any(before) and not any(after):
        return x
    if mode == "constant":
        return graph.add(Fill(before, after, float(value or 0.0)), x)
    if mode not in _PAD_MODES:
        raise UnsupportedModelError(f"padding {mode!r} is not read.")
    return graph.add(Pad(before, after, _PAD_MODES[mode]), x)


def pixel_shuffle(graph: Graph, x: Tensor, upscale_factor: int) -> Tensor:
    """Move channels into space."""
    r, (*lead, c, h, w) = int(upscale_factor), x.shape
    n = len(lead)
    parts = graph.reshape(x, (*lead, c // (r * r), r, r, h, w))
    mixed = graph.transpose(parts, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return graph.reshape(mixed, (*lead, c // (r * r), h * r, w * r))


def pixel_unshuffle(graph: Graph, x: Tensor, downscale_factor: int) -> Tensor:
    """Move space into channels."""
    r, (*lead, c, h, w) = int(downscale_factor), x.shape
    n = len(lead)
    parts = graph.reshape(x, (*lead, c, h // r, r, w // r, r))
    mixed = graph.transpose(parts, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return graph.reshape(mixed, (*lead, c * r * r, h // r, w // r))


def channel_shuffle(graph: Graph, x: Tensor, groups: int) -> Tensor:
    """Interleave the channels of groups."""
    n, c, *spatial = x.shape
    parts = graph.reshape(x, (n, groups, c // groups, *spatial))
    return graph.reshape(transpose(graph, parts, 1, 2), x.shape)


# ---------------------------------------------------------------------- attributes


def attribute(graph: Graph, x: Any, name: str) -> Any:
    """Return an attribute of a tensor, or a part of a result."""
    if not isinstance(x, Tensor):
        return x[0] if name == "values" else x[1]
    known = {
        "shape": torch.Size(x.shape),
        "ndim": len(x.shape),
        "dtype": torch.float64,
        "device": torch.device("cpu"),
        "requires_grad": False,
        "is_cuda": False,
        "is_nested": False,
        "is_sparse": False,
    }
    if name in known:
        return known[name]
    if name in ("T", "H"):
        return reversed_axes(graph, x)
    if name in ("mT", "mH"):
        return transpose(graph, x, -1, -2)
    if name in ("data", "real"):
        return x
    raise UnsupportedModelError(f"the attribute {name!r} of a computed tensor is not read.")


# Attributes of a traced tensor that are values, not methods.
ATTRIBUTES = (
    *("shape", "ndim", "dtype", "device", "requires_grad", "is_cuda", "is_nested", "is_sparse"),
    *("T", "H", "mT", "mH", "data", "real", "values", "indices"),
)


MOVES: dict[str, Rule] = {
    **dict.fromkeys(("view", "reshape"), reshape),
    "reshape_as": lambda graph, x, other: graph.reshape(x, other.shape),
    "view_as": lambda graph, x, other: graph.reshape(x, other.shape),
    **dict.fromkeys(("flatten", "ravel"), flatten),
    "unflatten": unflatten,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), transpose),
    "permute": permute,
    **dict.fromkeys(("movedim", "moveaxis"), movedim),
    **dict.fromkeys(("t", "adjoint"), reversed_axes),
    **dict.fromkeys(("expand", "broadcast_to"), expand),
    "expand_as": lambda graph, x, other: expand(graph, x, other.shape),
    "repeat": repeat,
    "tile": tile,
    "repeat_interleave": repeat_interleave,
    "getitem": getitem,
    "index_select": index_select,
    "narrow": narrow,
    "select": select,
    "split": split,
    "split_with_sizes": split,
    "chunk": chunk,
    "unbind": unbind,
    "flip": flip,
    "roll": roll,
    "tril": diagonal_part(True),
    "triu": diagonal_part(False),
    **dict.fromkeys(("cat", "concat", "concatenate"), cat),
    "stack": stack,
    "pad": pad,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "getattr": attribute,
}

# Operations whose result shares (or may share) memory with their input, so that a later change in place
# shows in both.
VIEWS = {
    *("contiguous", "cpu", "detach", "double", "float", "to", "type", "type_as", "dropout", "dropout1d"),
    *(
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "view",
        "reshape",
        "reshape_as",
    ),
    *("view_as", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze", "transpose", "swapaxes"),
    *(
        "swapdims",
        "permute",
        "movedim",
        "moveaxis",
        "t",
        "adjoint",
        "expand",
        "broadcast_to",
        "expand_as",
    ),
    *("getitem", "getattr", "narrow", "select", "split", "split_with_sizes", "chunk", "unbind"),
}
