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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Constant, Fill, Move
from pindown.model.operations.operation import Interval, dot_up
from pindown.model.operations.relu import Relu, Triangles
from pindown.relaxation.descent import Descent
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from pindown.relaxation.tuning import (
    INNER_SLOPE_STEPS,
    MODEL_BLOCK_ENTRIES,
    MODEL_TIGHTENED_ENTRIES,
    OUTER_SLOPE_STEPS,
)

_METHODS = ("interval", "linear", "optimised")
_EXACT = (AffineOperation, Move, Add, Concat, Fill, Constant)  # their own relaxation, on any box


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
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}; got {method!r}.")
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
    deadline: Deadline = NEVER,
) -> None:
    """Bound what enters operations that are not affine by linear forms, in order.

    Args:
        relaxed: The model with the bounds known so far; better ones take their place.
        steps: Gradient steps on the slopes.
        most: Entries up to which a tensor is tightened: each costs a way back.
        deadline: When to stop; bounds that are not tightened by then stay.
    """
    for i, node in enumerate(relaxed.model.nodes, 1):
        values = relaxed.values
        if not isinstance(node.operation, _EXACT):
            for j in set(node.inputs):
                if j > 0 and not deadline.passed and _bends_below(relaxed.model, j):
                    entries = _worth_bounding(node.operation, values[j])
                    if 0 < len(entries) <= most:
                        tighten_entries(relaxed, j, entries, steps=steps, deadline=deadline)
        relaxed.forget(i)
        values[i] = _within(values[i], node.operation.interval(*relaxed.into(i)))


def _worth_bounding(operation: object, box: Interval) -> NDArray[np.intp]:
    """Return which entries, counted flat, better bounds can help: for a ReLU those of open sign."""
    low, high = box
    helps = (low < 0) & (high > 0) if isinstance(operation, Relu) else low < high
    return np.flatnonzero(helps.reshape(len(low), -1).any(axis=0))


def _bends_below(model: Model, index: int) -> bool:
    """Return whether anything but affine operations lies below a tensor: else intervals are exact."""
    waiting, seen = [index], {index}
    while waiting:
        i = waiting.pop()
        if i == 0:
            continue
        node = model.nodes[i - 1]
        # The first affine map of a box is bounded exactly by intervals; of several, not.
        if not isinstance(node.operation, _EXACT):
            return True
        new = [j for j in node.inputs if j not in seen]
        seen.update(new)
        waiting.extend(new)
    return False


def tighten_entries(
    relaxed: RelaxedModel,
    index: int,
    entries: NDArray[np.intp],
    *,
    steps: int = 0,
    deadline: Deadline = NEVER,
) -> None:
    """Bound some entries of a tensor, counted flat, by linear forms of the input."""
    low, high = (np.array(end).reshape(len(end), -1) for end in relaxed.values[index])
    shape, size = relaxed.values[index].lower.shape, low.shape[1]
    step = _forms_at_once(relaxed, index, steps)
    for start in range(0, len(entries), step):
        if start and deadline.passed:
            break
        part = entries[start : start + step]
        flat = np.zeros((2 * len(part), size))
        at = np.arange(len(part))
        flat[at, part], flat[len(part) + at, part] = 1.0, -1.0
        forms = np.broadcast_to(flat.reshape(1, -1, *shape[1:]), (len(low), len(flat), *shape[1:]))
        ends = upper_ends(relaxed, index, forms, steps=steps, deadline=deadline)
        high[:, part] = np.minimum(high[:, part], ends[:, : len(part)])
        low[:, part] = np.maximum(low[:, part], -ends[:, len(part) :])
    relaxed.values[index] = Interval(low.reshape(shape), high.reshape(shape))


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
    """Return the slopes below the ReLUs under a tensor that bounds begin with, ``(n, q, *shape)``."""
    slopes = {}
    for i, node in enumerate(relaxed.model.nodes[:index], 1):
        if isinstance(node.operation, Relu):
            made = relaxed.relaxation(i)
            if isinstance(made, Triangles) and ((made.box.lower < 0) & (made.box.upper > 0)).any():
                shape = made.lower.shape[1:]
                slopes[i] = np.broadcast_to(made.lower[:, None], (n, q, *shape)).copy()
    return slopes


def _forms_at_once(relaxed: RelaxedModel, index: int, steps: int) -> int:
    """Return how many entries of a tensor to bound together, so that their forms stay in memory."""
    largest = max(math.prod(value.lower.shape[1:]) for value in relaxed.values[: index + 1])
    held = 2 * len(relaxed.values[0].lower) * largest * (4 if steps else 1)
    return max(1, MODEL_BLOCK_ENTRIES // held)


def output_bounds(
    relaxed: RelaxedModel, rows: Array | None, method: str, deadline: Deadline = NEVER
) -> tuple[Array, Array]:
    """Bound the outputs, or rows of them, by intervals and, if asked, by linear forms."""
    last = relaxed.values[-1]
    n, shape = len(last.lower), last.lower.shape[1:]
    forms = np.eye(math.prod(shape)) if rows is None else rows
    low, high = (np.empty((n, len(forms))) for _ in range(2))
    index = len(relaxed.values) - 1
    step = _forms_at_once(relaxed, index, 1)
    for start in range(0, len(forms), step):
        part = forms[start : start + step]
        both = np.concatenate([part, -part]).reshape(1, -1, *shape)
        form = np.broadcast_to(both, (n, *both.shape[1:]))
        ends = dot_up(form, last)
        if method != "interval":
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
