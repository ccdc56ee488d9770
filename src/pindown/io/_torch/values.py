"""Rules for what torch asks of a tensor besides numbers: copies, casts, sizes, constants like it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.graph import Graph, Rule, array
from pindown.model.builder import Tensor

SINGLE_NOTE = (
    "Casts to float32 are read as no change, and the model was compared with the module in float32."
)


class Unread:
    """A part of a result that is not read, such as the positions of maxima; only its use is refused."""


def listed(values: tuple[Any, ...]) -> list[int]:
    """Return sizes that were given one by one or as a sequence."""
    wanted = values[0] if len(values) == 1 and isinstance(values[0], Sequence) else values
    return [int(n) for n in wanted]


def same(graph: Graph, x: Tensor, *_: Any, **__: Any) -> Tensor:
    """Return the same tensor under another name."""
    return x


def copied(graph: Graph, x: Tensor, *_: Any, **__: Any) -> Tensor:
    """Return another object, because a change in place reaches all names of one and the same object."""
    return replace(x)


def cast(graph: Graph, x: Tensor, *kinds: Any, **options: Any) -> Tensor:
    """Return the tensor itself if it keeps its digits."""
    kind = next((k for k in (*kinds, options.get("dtype")) if isinstance(k, torch.dtype)), torch.float64)
    if kind not in (torch.float32, torch.float64):
        raise UnsupportedModelError(
            f"a computed tensor as {kind} is another function, which is not read."
        )
    if kind == torch.float32:
        graph.notes[SINGLE_NOTE] = None
    return replace(x)


def single(graph: Graph, x: Tensor) -> Tensor:
    """Return the tensor itself: what is lost is that of a float32 module anyway."""
    return cast(graph, x, torch.float32)


def size(graph: Graph, x: Tensor, dim: int | None = None) -> Any:
    """Return the lengths of the axes."""
    return torch.Size(x.shape) if dim is None else x.shape[dim]


def filled(value: float | None) -> Rule:
    """Return the rule of a constant with the shape of a tensor, such as ``zeros_like``."""

    def rule(graph: Graph, x: Tensor, *values: Any, **_: Any) -> torch.Tensor:
        number = values[0] if value is None else value
        return torch.full(x.shape, float(number), dtype=torch.float64)

    return rule


def new(value: float | None) -> Rule:
    """Return the rule of a new constant of a given shape, such as ``x.new_zeros``."""

    def rule(graph: Graph, x: Tensor, *sizes: Any, **_: Any) -> torch.Tensor:
        number = sizes[-1] if value is None else value
        return torch.full(
            listed(sizes[:1] if value is None else sizes), float(number), dtype=torch.float64
        )

    return rule


def new_tensor(graph: Graph, x: Tensor, data: Any, **_: Any) -> torch.Tensor:
    """Return data as a constant."""
    return torch.from_numpy(array(data).copy())


VALUES: dict[str, Rule] = {
    **dict.fromkeys(("detach", "requires_grad"), same),
    **dict.fromkeys(("clone", "contiguous", "cpu"), copied),
    **dict.fromkeys(("to", "type", "type_as", "double"), cast),
    "float": single,
    "size": size,
    **dict.fromkeys(("dim", "ndimension"), lambda graph, x: len(x.shape)),
    **dict.fromkeys(("numel", "nelement"), lambda graph, x: math.prod(x.shape)),
    "is_contiguous": lambda graph, x, **_: True,
    "is_floating_point": lambda graph, x: True,
    "zeros_like": filled(0.0),
    "ones_like": filled(1.0),
    "full_like": filled(None),
    "new_zeros": new(0.0),
    "new_ones": new(1.0),
    "new_full": new(None),
    "new_tensor": new_tensor,
}
