r"""Conclusions from assumptions: smaller boxes for all tensors of a model, before anything is searched.

That forms of the output are non-negative, that a ReLU's input has a sign, that an input lies in one half
of its range: each says something about tensors before and after. Bounds go backwards and forwards
through the operations until nothing much changes. Backwards they go twice over: operation by operation,
from what comes out to what goes in, and along the linear bounds of the forms, where what several units
have in common is kept. On networks that stand for formulas this is the unit propagation of solvers for
satisfiability; a tensor without a value left is a contradiction.

Every bound is rounded outwards: no input that satisfies the assumptions is lost.

Benhamou et al. 1999, "Revising hull and box consistency"; Davis, Logemann and Loveland 1962, "A machine
program for theorem-proving".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.operations.operation import Interval, charged, dot_up
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.relaxation.tuning import PROPAGATION_ROUNDS, PROPAGATION_SHRUNK
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up


class Goal(NamedTuple):
    """What must be shown: that one of r forms is negative everywhere.

    The forms are ``rows . y + at_input . x + constant`` of an output y and its input x.

    Attributes:
        rows: Forms of the output, ``(r, *shape)``.
        at_input: Forms of the input, (r, d), or None.
        constant: Numbers (r,).
    """

    rows: Array
    at_input: Array | None
    constant: Array


@np.errstate(all="ignore")
def propagated(
    relaxed: RelaxedModel, goal: Goal, *, rounds: int = PROPAGATION_ROUNDS
) -> tuple[RelaxedModel, NDArray[np.bool_]]:
    """Draw conclusions on n boxes.

    Args:
        relaxed: The model, with bounds on all tensors that hold under what is assumed.
        goal: Forms that are assumed to be non-negative.
        rounds: Ways back and forth at most.

    Returns:
        The model with smaller bounds, and whether they contradict each other, (n,); of a contradiction
        the bounds mean nothing.

    ``relu(x) + relu(-x) <= 1`` says that x is between -1 and 1:

    >>> from pindown import ReluNetwork
    >>> from pindown.model.from_network import model_of_network
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> box = Interval(np.array([[-3.0]]), np.array([[9.0]]))
    >>> goal = Goal(np.array([[-1.0]]), None, np.array([1.0]))
    >>> found, _ = propagated(RelaxedModel.by_intervals(model_of_network(net), box), goal)
    >>> [round(end.item(), 9) for end in found.values[0]]
    [-1.0, 1.0]
    """
    n = len(relaxed.values[0].lower)
    ends = [Interval(end.lower.copy(), end.upper.copy()) for end in relaxed.values]
    empty = np.zeros(n, bool)
    active = np.arange(n)
    values = list(relaxed.values)
    for _ in range(rounds):
        before = values
        values = _forwards(relaxed, _operations(relaxed, _forms(relaxed, values, goal)))
        nothing = _contradictory(values)
        for kept, now in zip(ends, values, strict=True):
            kept.lower[active], kept.upper[active] = now
        empty[active[nothing]] = True
        going = ~nothing & _shrunk(relaxed, before, values)
        active = active[going]
        if not len(active):
            break
        values = [Interval(v.lower[going], v.upper[going]) for v in values]
    return RelaxedModel(relaxed.model, ends), empty


def _contradictory(values: list[Interval]) -> NDArray[np.bool_]:
    found = np.zeros(len(values[0].lower), bool)
    for low, high in values:
        found |= (low > high).reshape(len(low), -1).any(axis=1)
    return found


def _shrunk(relaxed: RelaxedModel, before: list[Interval], now: list[Interval]) -> NDArray[np.bool_]:
    """Return where an input, or what enters an operation, became much narrower."""
    found = np.zeros(len(now[0].lower), bool)
    for old, new in zip(before, now, strict=True):
        width = old.upper - old.lower
        thinner = (new.upper - new.lower < PROPAGATION_SHRUNK * width) & (width > _rounding(old))
        found |= thinner.reshape(len(found), -1).any(axis=1)
    return found


def _rounding(box: Interval) -> Array:
    """Return a width below which a box is a point, but for rounding."""
    return np.asarray(2.0**20 * UNIT_ROUNDOFF * (1.0 + box.reach))


# ---------------------------------------------------------------------- one way back, one way forth


def _forms(relaxed: RelaxedModel, values: list[Interval], goal: Goal) -> list[Interval]:
    """Cut tensors where the forms' linear bounds are negative."""
    values = list(values)
    for j, slope, most in forms_met(RelaxedModel(relaxed.model, values), goal):
        shape = values[j].lower.shape
        low, high = (end.reshape(len(end), -1) for end in values[j])
        low, high, empty = contracted(low, high, slope, most)
        low[empty], high[empty] = np.inf, -np.inf
        values[j] = Interval(low.reshape(shape), high.reshape(shape))
    return values


def forms_met(relaxed: RelaxedModel, goal: Goal) -> list[tuple[int, Array, Array]]:
    """Return the forms of tensors on the way back, (n, r, size), with the largest values, (n, r)."""
    n, index = len(relaxed.values[0].lower), len(relaxed.values) - 1
    form = np.broadcast_to(goal.rows, (n, *goal.rows.shape))
    at_input = goal.at_input
    if at_input is not None:
        at_input = np.broadcast_to(at_input, (n, *at_input.shape))
    met = []
    for forms, offset in relaxed.way_back(index, form, None, at_input):
        most = add_up(offset, goal.constant)
        for j, own in forms.items():
            end = dot_up(own, relaxed.values[j])
            most = charged(most + end, np.abs(most) + np.abs(end), 1)
        j = max(forms)
        met.append((j, forms[j].reshape(n, len(goal.rows), -1), most))
    return met


def contracted(
    lower: Array, upper: Array, slope: Array, ends: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    r"""Cut off what linear bounds show to be safe.

    A row can be at most its limit only where its linear bound :math:`a \cdot x + b` is not negative.
    With M its maximum on the box, :math:`x_j \ge u_j - M / a_j` where :math:`a_j > 0`, and
    :math:`x_j \le l_j + M / |a_j|` where :math:`a_j < 0`.

    Args:
        lower: Lower corners, (n, d).
        upper: Upper corners, (n, d).
        slope: The forms a, (n, q, d).
        ends: Proved upper bounds on M, (n, q).

    Returns:
        The smaller boxes, and whether nothing is left.

    >>> contracted(np.zeros((1, 1)), np.ones((1, 1)), np.array([[[2.0]]]), np.array([[0.5]]))[0].round(9)
    array([[0.75]])

    Benhamou et al. 1999, "Revising hull and box consistency" (hull consistency).
    """
    with np.errstate(all="ignore"):
        reach = (np.maximum(ends, 0.0)[:, :, None] / np.abs(slope)) * (1.0 + 4.0 * UNIT_ROUNDOFF) + TINY
        reach = np.where(np.isnan(reach), np.inf, reach)
        low = np.where(slope > 0, add_down(upper[:, None], -reach), -np.inf).max(axis=1)
        high = np.where(slope < 0, add_up(lower[:, None], reach), np.inf).min(axis=1)
    low, high = np.maximum(low, lower), np.minimum(high, upper)
    empty = (low > high).any(axis=1) | (ends < 0.0).any(axis=1)
    return low, high, empty


def _operations(relaxed: RelaxedModel, values: list[Interval]) -> list[Interval]:
    """Carry what comes out of operations back to what goes in."""
    values = list(values)
    for i in range(len(values) - 1, 0, -1):
        node = relaxed.model.nodes[i - 1]
        found = node.operation.narrowed(values[i], *(values[j] for j in node.inputs))
        for j, box in zip(node.inputs, found, strict=True):
            values[j] = _common(values[j], box)
    return values


def _forwards(relaxed: RelaxedModel, values: list[Interval]) -> list[Interval]:
    """Carry what goes into operations to what comes out."""
    values = list(values)
    for i, node in enumerate(relaxed.model.nodes, 1):
        values[i] = _common(values[i], node.operation.interval(*(values[j] for j in node.inputs)))
    return values


def _common(first: Interval, second: Interval) -> Interval:
    return Interval(np.fmax(first.lower, second.lower), np.fmin(first.upper, second.upper))
