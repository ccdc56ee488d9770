r"""Two graphs of operations beside each other: what changed in the files, and which layer is to blame.

Operations are aligned by their kind and the shape of what they make, in order. An affine operation that
is gone right behind another one whose numbers changed was *fused* into it.

*Blame*: where both graphs are of one structure, or are but for tensors that one of them rounds to
integers (:mod:`~pindown.relaxation.paired_graphs`), let :math:`a_i` be the first model with layer i of
the second, and :math:`b_i` the second with layer i of the first. On rows of data,

.. math::
    \text{alone}_i = \max_x \|a(x) - a_i(x)\|_\infty, \qquad
    \text{without}_i = \max_x \|a(x) - b_i(x)\|_\infty :

what changing only this layer does, and what is left if it is changed back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.tuning import BLAME_ROWS
from pindown.model.gradients import outputs
from pindown.model.graph import Model, Node
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.integers import Dequantize, Quantize
from pindown.model.operations.operation import Operation
from pindown.relaxation.paired_graphs import Rounded, paired_graphs, plain


@dataclass(frozen=True)
class LayerBlame:
    """What the change of one layer does on the data.

    Attributes:
        layer: The name of the operation, and where it stands.
        alone: The largest gap on the rows if only this layer is changed.
        without: The largest gap on the rows if only this layer is changed back.
        change: The largest change of a number in it.
        stored: How the second model stores its weight, or rounds the tensor, if as integers: their type
            and their scale.
    """

    layer: str
    alone: float
    without: float
    change: float
    stored: str = ""


def graph_changes(a: Model, b: Model) -> tuple[str, ...]:
    """Return in words what was added, removed, fused and retyped from one graph to the other.

    >>> from pindown import ReluNetwork
    >>> from pindown.model.from_network import model_of_network
    >>> a, b = (ReluNetwork.from_layers([([[w]], [0]), ([[1.0]], [0])]) for w in (1.0, 1.5))
    >>> graph_changes(model_of_network(a), model_of_network(b))
    ('changed numbers in 1 of 2 Dense, by at most 0.5',)
    """
    said = [] if a.dtype == b.dtype else [f"retyped from {a.dtype} to {b.dtype}"]
    gone: Counter[str] = Counter()
    new: Counter[str] = Counter()
    fused: Counter[str] = Counter()
    pairs: list[tuple[Operation, Operation]] = []
    for first, second in _aligned(a, b):
        behind = pairs[-1] if pairs else None
        if len(first) == len(second) and first:
            pairs += [(p.operation, q.operation) for p, q in zip(first, second, strict=True)]
            continue
        for node in first:
            affine = isinstance(node.operation, AffineOperation) and not second
            into = affine and behind is not None and isinstance(behind[0], AffineOperation)
            (fused if into and behind is not None and _change(*behind) > 0 else gone)[
                node.operation.name
            ] += 1
        new.update(node.operation.name for node in second)
    for verb, counts in (("fused into the operation before", fused), ("removed", gone), ("added", new)):
        said += [f"{verb}: {_counted(counts)}"] if counts else []
    said += _changed(pairs)
    return tuple(said)


def blame_of(
    a: Model, b: Model, X: Array, gap: Array, *, deadline: Deadline = NEVER
) -> tuple[LayerBlame, ...]:
    """Return the layers that changed, those first whose change alone does most on the rows.

    Args:
        a: A model.
        b: One of the same structure, or one that rounds tensors besides; else nothing is returned.
        X: Rows, (n, d).
        gap: The gap of the two at each, (n,): the rows of the largest count.
        deadline: When to stop; layers that were not reached are left out.
    """
    if len(a.nodes) != len(b.nodes) or not all(map(_alike, a.nodes, b.nodes)):
        pair = paired_graphs(a, b)
        if pair is None:
            return ()
        a, b = pair
    rows = X[np.sort(np.argsort(-gap, kind="stable")[:BLAME_ROWS])]
    truth, found = outputs(a, rows), []
    for i, (p, q) in enumerate(zip(a.nodes, b.nodes, strict=True)):
        change = _change(p.operation, q.operation)
        if change == 0.0 or deadline.passed:
            continue
        both = [outputs(_with(a, i, q.operation), rows), outputs(_with(b, i, p.operation), rows)]
        with np.errstate(all="ignore"):
            alone, without = (float(np.abs(truth - made).max()) for made in both)
        name = p.name or f"operation {i + 1} ({p.operation.name})"
        found.append(LayerBlame(name, alone, without, change, _stored(q.operation)))
    return tuple(sorted(found, key=lambda layer: -np.nan_to_num(layer.alone, nan=np.inf)))


def _with(model: Model, i: int, operation: Operation) -> Model:
    nodes = list(model.nodes)
    nodes[i] = nodes[i]._replace(operation=operation)
    return replace(model, nodes=tuple(nodes))


def _alike(p: Node, q: Node) -> bool:
    kinds = (type(plain(node.operation)) for node in (p, q))
    return next(kinds) is next(kinds) and p.inputs == q.inputs and p.shape == q.shape


def _stored(operation: Operation) -> str:
    """Say how a weight is stored, or a tensor rounded, if as integers."""
    grid: Quantize | Dequantize
    if isinstance(operation, Rounded):
        grid, what = operation.to, "tensor"
    elif isinstance(operation, IntegerWeights):
        grid, what = operation.weight, "weight"
    else:
        return ""
    scale = np.ravel(grid.scale)
    several = f"{len(scale):,} scales from {scale.min():.3g} to {scale.max():.3g}"
    return f"{grid.kind} {what}, " + (f"scale {scale[0]:.3g}" if len(scale) == 1 else several)


def _aligned(a: Model, b: Model) -> Iterator[tuple[tuple[Node, ...], tuple[Node, ...]]]:
    """Yield stretches of nodes: as many of both where they are alike, else what only one has."""
    kinds = [[(node.operation.name, node.shape) for node in model.nodes] for model in (a, b)]
    for tag, i, j, k, m in SequenceMatcher(a=kinds[0], b=kinds[1], autojunk=False).get_opcodes():
        if tag == "replace":
            yield a.nodes[i:j], ()
            yield (), b.nodes[k:m]
        elif tag == "equal":
            for step in range(j - i):
                yield (a.nodes[i + step],), (b.nodes[k + step],)
        else:
            yield a.nodes[i:j], b.nodes[k:m]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.items())


def _changed(pairs: list[tuple[Operation, Operation]]) -> list[str]:
    """Say in how many operations of each kind numbers differ, and by how much."""
    all_of: Counter[str] = Counter(p.name for p, _ in pairs)
    moved: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    most: dict[str, float] = {}
    for p, q in pairs:
        change = _change(p, q)
        stored[p.name] += type(p) is not type(q)
        if 0.0 < change < np.inf:
            moved[p.name] += 1
            most[p.name] = max(most.get(p.name, 0.0), change)
    return [
        f"retyped: the numbers of {n} of {all_of[name]} {name} are stored in another form"
        for name, n in stored.items()
        if n
    ] + [
        f"changed numbers in {n} of {all_of[name]} {name}, by at most {most[name]:.3g}"
        for name, n in moved.items()
    ]


def _change(p: Operation, q: Operation) -> float:
    """Return the largest change of a number from one operation to another; infinite if more differs."""
    p, q = plain(p), plain(q)
    if p is q:
        return 0.0
    rounded = [operation for operation in (p, q) if isinstance(operation, Rounded)]
    if len(rounded) == 1:
        return 0.5 * float(np.max(rounded[0].to.scale))
    if type(p) is not type(q):
        return np.inf
    sizes = [0.0]
    for entry in fields(p):  # type: ignore[arg-type]
        sizes.append(_distance(getattr(p, entry.name), getattr(q, entry.name)))
    return max(sizes)


def _distance(x: Any, y: Any) -> float:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        if x is None or y is None:
            return float(np.abs(y if x is None else x).max(initial=0.0))
        if np.shape(x) != np.shape(y):
            return np.inf
        with np.errstate(all="ignore"):
            return float(np.abs(np.asarray(x, float) - np.asarray(y, float)).max(initial=0.0))
    if isinstance(x, float) and isinstance(y, float):
        return abs(x - y)
    return 0.0
