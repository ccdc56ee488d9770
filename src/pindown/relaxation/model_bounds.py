r"""Proved bounds on the outputs of a model on boxes, operation by operation.

*Intervals* go forwards: every operation maps boxes to a box. *Linear bounds* go backwards: a linear
form of the outputs is bounded by one of the inputs (:mod:`~pindown.relaxation.relaxed_model`). The boxes
on which operations are relaxed are those of the intervals, tightened by linear bounds where that can
matter. *Optimised* bounds choose the slopes below ReLUs by gradient steps, for the tensors inside as
well as for the outputs.

Gowal et al. 2018 (intervals); Zhang et al. 2018, "Efficient neural network robustness certification
with general activation functions" (CROWN); Xu et al. 2020, "Automatic perturbation analysis for
scalable certified robustness and beyond" (on graphs).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Constant, Fill, Move
from pindown.model.operations.operation import Adjustable, Interval, dot_up
from pindown.model.operations.relu import Relu
from pindown.relaxation.descent import Descent
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from pindown.relaxation.relu_difference import ReluDifference
from pindown.relaxation.tuning import (
    INNER_SLOPE_STEPS,
    MODEL_BLOCK_ENTRIES,
    MODEL_CACHED_ENTRIES,
    MODEL_TIGHTENED_ENTRIES,
    OUTER_SLOPE_STEPS,
)
from pindown.validation import choice

_METHODS = ("interval", "linear", "optimised")
EXACT = (AffineOperation, Move, Add, Concat, Fill, Constant)  # their own relaxation, on any box


def bounds(
    model: AnyModel,
    lower: ArrayLike,
    upper: ArrayLike,
    rows: ArrayLike | None = None,
    method: str = "linear",
    *,
    deadline: Deadline = NEVER,
) -> tuple[Array, Array]:
    """Bound a model's outputs, or linear forms of them, on boxes of inputs.

    Args:
        model: A :class:`~pindown.model.Model`, or what can be read as one.
        lower: Lower corners of the boxes, (n, d), or of one box, (d,).
        upper: Upper corners, likewise.
        rows: Linear forms of the outputs, (q, k), to bound instead of the outputs themselves.
        method: ``"interval"``, which is fast, ``"linear"``, which keeps what operations have in
            common, or ``"optimised"``: linear with slopes below ReLUs chosen by gradient steps.
        deadline: When to stop tightening the boxes inside the model; bounds are looser then.

    Returns:
        Lower and upper bounds, each (n, k) or (n, q); (k,) or (q,) for one box. They hold for the
        real-number model on the whole box; infinite where float64 cannot tell.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [2, 1]), ([[1.0, -1.0]], [0])])  # 1 where x > -1
    >>> [float(end[0].round(9)) for end in bounds(net, [0.0], [9.0], method="interval")]
    [-8.0, 10.0]
    >>> [float(end[0].round(9)) for end in bounds(net, [0.0], [9.0])]
    [1.0, 1.0]
    """
    choice("method", method, _METHODS)
    graph = as_model(model, "bounds")
    ends = [np.asarray(end, dtype=np.float64) for end in (lower, upper)]
    single = ends[0].ndim == 1
    ends = [end[None] if single else end for end in ends]
    if any(end.shape != (len(ends[0]), graph.in_features) for end in ends):
        raise ValueError(
            f"lower and upper must have shape (n, {graph.in_features}); "
            f"got {ends[0].shape} and {ends[1].shape}."
        )
    if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
        raise ValueError("boxes must be finite with lower <= upper.")
    forms = None if rows is None else np.asarray(rows, dtype=np.float64)
    if forms is not None and (forms.ndim != 2 or forms.shape[1] != graph.out_features):
        raise ValueError(f"rows must have shape (q, {graph.out_features}); got {forms.shape}.")
    relaxed = RelaxedModel.by_intervals(graph, Interval(*ends))
    if method != "interval":
        tighten(relaxed, steps=INNER_SLOPE_STEPS if method == "optimised" else 0, deadline=deadline)
    low, high = output_bounds(relaxed, forms, method, deadline)
    return (low[0], high[0]) if single else (low, high)


def tighten(
    relaxed: RelaxedModel,
    *,
    steps: int = 0,
    most: int = MODEL_TIGHTENED_ENTRIES,
    only: Mapping[int, NDArray[np.bool_]] | None = None,
    deadline: Deadline = NEVER,
) -> None:
    """Bound what enters operations that are not affine by linear forms, in order.

    Args:
        relaxed: The model with the bounds known so far; better ones take their place.
        steps: Gradient steps on the slopes.
        most: Entries up to which a tensor is tightened: each costs a way back.
        only: Of some tensors which entries, counted flat, (n, size); all if not given.
        deadline: When to stop; bounds that are not tightened by then stay.
    """
    for i, node in enumerate(relaxed.model.nodes, 1):
        values = relaxed.values
        if not isinstance(node.operation, EXACT):
            for j in dict.fromkeys(node.inputs):
                # On a box intervals are exact before anything bends; on a ball they are not.
                bends = relaxed.balls is not None or _bends_below(relaxed.model, j)
                if j > 0 and not deadline.passed and bends:
                    helps = _worth_bounding(relaxed, i, j, most)
                    if only is not None and j in only:
                        helps &= only[j]
                    tighten_entries(relaxed, j, helps, steps=steps, deadline=deadline)
        relaxed.forget(i)
        values[i] = _within(values[i], node.operation.interval(*relaxed.into(i)))


def bends_at_relus_only(model: Model) -> bool:
    """Return whether everything but the ReLUs is affine."""
    return all(isinstance(node.operation, (*EXACT, Relu)) for node in model.nodes)


def _worth_bounding(relaxed: RelaxedModel, i: int, j: int, most: int) -> NDArray[np.bool_]:
    """Say which entries (n, size) of tensor j, counted flat, better bounds can help at node i.

    For a ReLU those of open sign, for the difference of two those where it is not the difference of what
    enters. None of a box that has more than ``most`` of them.
    """
    low, high = (end.reshape(len(end), -1) for end in relaxed.values[j])
    operation = relaxed.model.nodes[i - 1].operation
    if isinstance(operation, Relu):
        helps = (low < 0) & (high > 0)
    elif isinstance(operation, ReluDifference):
        own, apart = relaxed.model.nodes[i - 1].inputs
        bends = operation.bends(relaxed.values[own], relaxed.values[apart]).reshape(low.shape)
        helps = bends & (low < high) & (j == apart)  # the ReLU before saw to the other
    else:
        helps = low < high
    return helps & (np.count_nonzero(helps, axis=1) <= most)[:, None]


def _bends_below(model: Model, index: int) -> bool:
    """Return whether anything but affine operations lies below a tensor: else intervals are exact."""
    waiting, seen = [index], {index}
    while waiting:
        i = waiting.pop()
        if i == 0:
            continue
        node = model.nodes[i - 1]
        # The first affine map of a box is bounded exactly by intervals; of several, not.
        if not isinstance(node.operation, EXACT):
            return True
        new = [j for j in node.inputs if j not in seen]
        seen.update(new)
        waiting.extend(new)
    return False


def tighten_entries(
    relaxed: RelaxedModel,
    index: int,
    entries: NDArray[np.bool_],
    *,
    steps: int = 0,
    deadline: Deadline = NEVER,
) -> None:
    """Bound some entries of a tensor by linear forms of the input, of every box its own.

    Args:
        relaxed: The model with the bounds known so far; better ones take their place.
        index: The tensor.
        entries: Which entries, counted flat, (n, size).
        steps: Gradient steps on the slopes.
        deadline: When to stop.
    """
    low, high = (np.array(end).reshape(len(end), -1) for end in relaxed.values[index])
    shape = relaxed.values[index].lower.shape
    for k, (boxes, which) in enumerate(_blocks(relaxed, index, entries, steps)):
        if k and deadline.passed:
            break
        q = which.shape[1]
        part = relaxed if len(boxes) == len(low) else relaxed.of_boxes(boxes, index)
        forms = np.zeros((len(boxes), 2 * q, low.shape[1]))
        rows, slots = np.arange(len(boxes))[:, None], np.arange(q)
        forms[rows, slots, which], forms[rows, q + slots, which] = 1.0, -1.0
        ends = upper_ends(
            part, index, forms.reshape(*forms.shape[:2], *shape[1:]), steps=steps, deadline=deadline
        )
        at = boxes[:, None], which
        high[at] = np.minimum(high[at], ends[:, :q])
        low[at] = np.maximum(low[at], -ends[:, q:])
    relaxed.values[index] = Interval(low.reshape(shape), high.reshape(shape))


def _blocks(
    relaxed: RelaxedModel, index: int, entries: NDArray[np.bool_], steps: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield boxes with about as many entries each, and these entries, for forms that stay in the cache.

    Boxes with fewer get others beside them, which does no harm.
    """
    counts = np.count_nonzero(entries, axis=1)
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    largest = max(math.prod(value.lower.shape[1:]) for value in relaxed.values[: index + 1])
    form = 2 * largest * (4 if steps else 1)
    start = 0
    while start < len(order):
        q = int(counts[order[start]])
        boxes = np.sort(order[start : start + max(1, MODEL_CACHED_ENTRIES // (q * form))])
        start += len(boxes)
        which = np.argsort(~entries[boxes], axis=1, kind="stable")[:, :q]
        step = max(1, MODEL_BLOCK_ENTRIES // (len(boxes) * form))
        for first in range(0, q, step):
            yield boxes, which[:, first : first + step]


def upper_ends(
    relaxed: RelaxedModel, index: int, forms: Array, *, steps: int = 0, deadline: Deadline = NEVER
) -> Array:
    """Return proved upper bounds (n, q) on forms ``(n, q, *shape)`` of a tensor."""
    ends = relaxed.upper_ends(index, forms)
    if not steps:
        return ends
    n, q = forms.shape[:2]
    choice = Choice(usual_slopes(relaxed, index, n, q), {})
    if not choice.slopes:
        return ends
    ones = np.ones((n, q, 1))
    descent = Descent(relaxed, index, forms[:, :, None], None, 0.0 * ones, choice, ones, single=True)
    descent.run(steps, deadline=deadline)
    return np.minimum(ends, descent.proved())


def usual_slopes(relaxed: RelaxedModel, index: int, n: int, q: int) -> dict[int, Array]:
    """Return what bounds of a tensor begin with of all that may be chosen, ``(n, q, ...)`` by node."""
    slopes = {}
    for i in range(1, index + 1):
        if isinstance(relaxed.model.nodes[i - 1].operation, (Relu, ReluDifference)):
            made = relaxed.relaxation(i)
            own = made.slopes(n, q) if isinstance(made, Adjustable) else None
            if own is not None:
                slopes[i] = own
    return slopes


def output_bounds(
    relaxed: RelaxedModel, rows: Array | None, method: str, deadline: Deadline = NEVER
) -> tuple[Array, Array]:
    """Bound the outputs, or rows of them, by intervals and, if asked, by linear forms.

    Past the deadline only the first block of rows gets linear bounds.
    """
    last = relaxed.values[-1]
    n, shape = len(last.lower), last.lower.shape[1:]
    forms = np.eye(math.prod(shape)) if rows is None else rows
    low, high = (np.empty((n, len(forms))) for _ in range(2))
    index = len(relaxed.values) - 1
    largest = max(math.prod(value.lower.shape[1:]) for value in relaxed.values)
    step = max(1, MODEL_BLOCK_ENTRIES // (8 * n * largest))
    for start in range(0, len(forms), step):
        part = forms[start : start + step]
        both = np.concatenate([part, -part]).reshape(1, -1, *shape)
        form = np.broadcast_to(both, (n, *both.shape[1:]))
        ends = dot_up(form, last)
        if method != "interval" and not (start and deadline.passed):
            steps = OUTER_SLOPE_STEPS if method == "optimised" else 0
            found = upper_ends(relaxed, index, form, steps=steps, deadline=deadline)
            ends = np.minimum(ends, found)
        high[:, start : start + step] = ends[:, : len(part)]
        low[:, start : start + step] = -ends[:, len(part) :]
    if rows is None:
        low = np.maximum(low, last.lower.reshape(n, -1))
        high = np.minimum(high, last.upper.reshape(n, -1))
    return low + 0.0, high + 0.0


def _within(first: Interval, second: Interval) -> Interval:
    """Return where two proved bounds agree."""
    return Interval(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper))
