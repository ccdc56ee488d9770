r"""Bounds inside a model that a stranger can check: intervals of float32, with the slopes behind them.

A certificate states bounds on what enters ReLUs, tensor by tensor, and all after rests on these numbers.
To find them right takes no search: intervals from the tensors before, or one way back with the usual
slopes or with slopes that are written down. Numbers are moved outwards a little, so that somebody who
rounds otherwise comes to the same conclusion.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.graph import Model
from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu, Triangles
from pindown.relaxation.descent import Descent
from pindown.relaxation.model_bounds import usual_slopes
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from pindown.relaxation.tuning import MODEL_BLOCK_ENTRIES, MODEL_TIGHTENED_ENTRIES
from pindown.verification.proof_log import SLOPE_STEPS, InnerBounds
from pindown.verification.tuning import LOGGED_GAIN, LOGGED_WIDENING


class _Pinned(NamedTuple):
    """A tensor whose bounds are written: the ReLU that reads it, and its entries of open sign."""

    node: int
    tensor: int
    open: NDArray[np.intp]


def relu_tensors(model: Model) -> dict[int, int]:
    """Return the tensors that enter ReLUs, the input apart, each with the first ReLU that reads it."""
    found: dict[int, int] = {}
    for i, node in enumerate(model.nodes, 1):
        if isinstance(node.operation, Relu) and node.inputs[0] > 0:
            found.setdefault(node.inputs[0], i)
    return found


def pinned_root(
    model: Model, lower: Array, upper: Array, *, steps: int, deadline: Deadline
) -> tuple[RelaxedModel, list[InnerBounds]]:
    """Bound a model on a box so that the bounds can be written down and found again.

    Args:
        model: The model.
        lower: Lower corner of the box, (d,).
        upper: Upper corner.
        steps: Gradient steps on the slopes.
        deadline: When to stop; what is not tightened then is bounded by intervals.

    Returns:
        The model with the bounds as they are written, and what is written.
    """
    relaxed = RelaxedModel.by_intervals(model, Interval(lower[None], upper[None]))
    readers = relu_tensors(model)
    tensors: list[InnerBounds] = []
    before: list[_Pinned] = []
    for i, node in enumerate(model.nodes, 1):
        relaxed.forget(i)
        for j in node.inputs:
            if readers.get(j) == i:
                made = _pinned(relaxed, j, before, steps, deadline)
                tensors.append(made)
                open_ = np.flatnonzero((made.lower < 0) & (made.upper > 0))
                before.append(_Pinned(i, j, open_))
        own = node.operation.interval(*relaxed.into(i))
        relaxed.values[i] = own
    return relaxed, tensors


def restored_root(model: Model, lower: Array, upper: Array, tensors: list[InnerBounds]) -> RelaxedModel:
    """Return the model on a box, with bounds inside it that were found before."""
    relaxed = RelaxedModel.by_intervals(model, Interval(lower[None], upper[None]))
    known = dict(zip(relu_tensors(model), tensors, strict=True))
    for i, node in enumerate(model.nodes, 1):
        relaxed.values[i] = node.operation.interval(*relaxed.into(i))
        if i in known:
            shape = relaxed.values[i].lower.shape
            low, high = (end.astype(np.float64).reshape(shape) for end in known[i][:2])
            relaxed.values[i] = Interval(low, high)
    return relaxed


def _pinned(
    relaxed: RelaxedModel, j: int, before: list[_Pinned], steps: int, deadline: Deadline
) -> InnerBounds:
    """Bound one tensor, put the bounds as they are written in their place, and return them."""
    shape = relaxed.values[j].lower.shape
    low, high = (np.array(end).ravel() for end in relaxed.values[j])
    entries = np.flatnonzero((low < 0) & (high > 0))
    n_open = sum(len(each.open) for each in before)
    sides, codes = [], []
    if n_open and 0 < len(entries) <= MODEL_TIGHTENED_ENTRIES:
        largest = max(math.prod(value.lower.shape[1:]) for value in relaxed.values[: j + 1])
        block = max(1, MODEL_BLOCK_ENTRIES // (2 * largest * (4 if steps else 1)))
        for start in range(0, len(entries), block):
            if deadline.passed:
                break
            part = entries[start : start + block]
            ends, gained, slopes = _ends(relaxed, j, part, before, steps, deadline)
            m = len(part)
            high[part] = np.minimum(high[part], ends[:m])
            low[part] = np.maximum(low[part], -ends[m:])
            sides.append(np.concatenate([2 * part, 2 * part + 1])[gained])
            codes.append(slopes[gained])
    low32, high32 = _written(low, high)
    relaxed.values[j] = Interval(
        low32.astype(np.float64).reshape(shape), high32.astype(np.float64).reshape(shape)
    )
    return InnerBounds(
        low32,
        high32,
        np.concatenate([np.zeros(0, np.int32), *sides]).astype(np.int32),
        np.concatenate([np.zeros((0, n_open), np.uint8), *codes]),
    )


def _ends(
    relaxed: RelaxedModel,
    j: int,
    part: NDArray[np.intp],
    before: list[_Pinned],
    steps: int,
    deadline: Deadline,
) -> tuple[Array, NDArray[np.bool_], NDArray[np.uint8]]:
    """Bound entries and their negatives; say which gained by slopes of their own, and by which."""
    shape = relaxed.values[j].lower.shape[1:]
    m, n_open = len(part), sum(len(each.open) for each in before)
    flat = np.zeros((2 * m, math.prod(shape)))
    at = np.arange(m)
    flat[at, part], flat[m + at, part] = 1.0, -1.0
    forms = flat.reshape(1, 2 * m, *shape)
    usual = relaxed.upper_ends(j, forms)[0]
    nothing = np.zeros(2 * m, bool), np.zeros((2 * m, n_open), np.uint8)
    choice = Choice(usual_slopes(relaxed, j, 1, 2 * m), {})
    if not steps or not choice.slopes:
        return usual, *nothing
    ones = np.ones((1, 2 * m, 1))
    descent = Descent(relaxed, j, forms[:, :, None], None, 0.0 * ones, choice, ones, single=True)
    descent.run(steps, deadline=deadline)
    descent.coarsen(SLOPE_STEPS)
    better = descent.proved()[0]
    width = relaxed.values[j].upper.ravel()[part] - relaxed.values[j].lower.ravel()[part]
    gained = better < usual - LOGGED_GAIN * np.tile(width, 2)
    codes = relevant_codes(relaxed, j, forms, descent.best_choice, before)
    return np.where(gained, better, usual), gained, codes


def relevant_codes(
    relaxed: RelaxedModel, index: int, forms: Array, choice: Choice, before: list[_Pinned]
) -> NDArray[np.uint8]:
    """Return slopes as they are written, (q, units): zero where a coefficient is not negative."""
    met = relaxed.estimate(index, forms, choice).forms
    columns = []
    for each in before:
        codes = np.zeros((forms.shape[1], len(each.open)), np.uint8)
        if each.node in met and each.node in choice.slopes:
            form, made = met[each.node]
            if isinstance(made, Triangles):
                own = choice.slopes[each.node].reshape(len(codes), -1)[:, each.open]
                used = form.reshape(len(codes), -1)[:, each.open] < 0
                codes = np.where(used, np.rint(own * SLOPE_STEPS), 0).astype(np.uint8)
        columns.append(codes)
    return np.concatenate(columns, axis=1)


def _written(low: Array, high: Array) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return bounds as they are written: moved outwards a little, a known sign stays known."""
    with np.errstate(all="ignore"):
        more = LOGGED_WIDENING * (high - low + np.maximum(np.abs(low), np.abs(high)))
        down, up = low - more, high + more
        down, up = (
            np.where(low >= 0, np.maximum(down, 0), down),
            np.where(high <= 0, np.minimum(up, 0), up),
        )
        low32, high32 = down.astype(np.float32), up.astype(np.float32)
        low32 = np.where(low32 > down, np.nextafter(low32, np.float32(-np.inf)), low32)
        high32 = np.where(high32 < up, np.nextafter(high32, np.float32(np.inf)), high32)
    return low32, high32
