r"""Sums of ReLUs of affine functions, units grouped by the hyperplane where they fold.

A :class:`Sum` is :math:`x \mapsto \sum_j v_j \rho(r_j \cdot (x, 1)) + \sum_i o_i\, (s_i \cdot (x, 1))`;
a network with one hidden layer is one, and so is the difference of two. Here its units are put together
that are multiples of each other, exactly (for decisions) or nearly (for bounds).

With units written as near multiples of leaders, the sum is
:math:`\sum_g (\kappa_g |z_g| + \sigma_g z_g)` plus an affine function, up to the residuals of the units;
what does not cancel is bounded term by term. Where a leader is almost always on or off, :math:`|z|` is
replaced by :math:`\pm z`.

Phuong and Lampert 2020, "Functional vs. parametric equivalence of ReLU networks"; Phuong 2021, section
2.2 (units are determined up to multiples; here with tolerance).
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.related_units import ParallelUnits, unit_relations
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import TINY, UNIT_ROUNDOFF, gamma, norm_up

Ids = NDArray[np.intp]
Vector = Any  # an object array of Fraction


class Sum(NamedTuple):
    """A sum of ReLUs and of affine functions.

    Attributes:
        rows: Weights and offset of each ReLU, (p, d + 1).
        out: Its coefficients, (k, p).
        plain: Weights and offset of affine functions, (q, d + 1).
        plain_out: Their coefficients, (k, q).
    """

    rows: Array
    out: Array
    plain: Array
    plain_out: Array


class Fold(NamedTuple):
    """Units on one hyperplane, as ``kappa |z| + sigma z`` with z the function of the first; exact."""

    unit: int
    kappa: Vector
    sigma: Vector


class Near(NamedTuple):
    """Every unit as a multiple of another, nearly: ``|r_j - factor_j r_(leader_j)| <= residual_j``."""

    leader: Ids
    factor: Array
    residual: Array


def as_sum(net: ReluNetwork, sign: float = 1.0) -> Sum:
    """Return plus or minus a network with at most one hidden layer.

    Raises:
        ValueError: If there are more hidden layers.
    """
    if net.depth > 2:
        raise ValueError(
            f"this needs a network with one hidden layer; got {net.depth - 1}. Use narrow for deep ones."
        )
    d, k = net.in_features, net.out_features
    first, last = net.layers[0], net.layers[-1]
    own = np.column_stack([dense(first.weight), first.bias])
    if net.depth == 1:
        return Sum(np.zeros((0, d + 1)), np.zeros((k, 0)), own, sign * np.eye(k))
    return Sum(own, sign * dense(last.weight), np.eye(1, d + 1, d), sign * last.bias[:, None])


def joined(first: Sum, second: Sum) -> Sum:
    """Return the sum of both."""
    return Sum(
        np.concatenate([first.rows, second.rows]),
        np.concatenate([first.out, second.out], axis=1),
        np.concatenate([first.plain, second.plain]),
        np.concatenate([first.plain_out, second.plain_out], axis=1),
    )


def relations(total: Sum, relative: float = 1e-6, *, budget: float = inf) -> tuple[ParallelUnits, ...]:
    """Return groups of parallel units, exact ones and those that are parallel to a tolerance.

    Raises:
        OutOfTime: If the budget, in seconds, does not suffice.
    """
    if not len(total.rows):
        return ()
    net = ReluNetwork.from_layers(
        [(total.rows[:, :-1], total.rows[:, -1]), (total.out, np.zeros(len(total.out)))]
    )
    return unit_relations(net, relative=relative, budget=budget)[0].parallel


def exact_folds(total: Sum, groups: tuple[ParallelUnits, ...], deadline: Deadline = NEVER) -> list[Fold]:
    """Return one fold for every hyperplane, in rational arithmetic, from units with weights.

    Raises:
        OutOfTime: If the deadline passes first.
    """
    mates = [list(group.units) for group in groups if all(group.exact)]
    taken = {unit for group in mates for unit in group}
    alone = [[j] for j in range(len(total.rows)) if j not in taken and total.rows[j, :-1].any()]
    folds = []
    for units in sorted([*mates, *alone]):
        deadline.check()
        first = total.rows[units[0]]
        pivot = int(np.argmax(np.abs(first)))
        kappa, sigma = (np.full(len(total.out), Fraction(0), dtype=object) for _ in range(2))
        for unit in units:
            t = Fraction(float(total.rows[unit, pivot])) / Fraction(float(first[pivot]))
            v = fractions(total.out[:, unit])
            kappa, sigma = kappa + abs(t) * v / 2, sigma + t * v / 2
        folds.append(Fold(units[0], kappa, sigma))
    return folds


def constant_units(total: Sum) -> list[int]:
    """Return the units without weights."""
    return np.flatnonzero(~total.rows[:, :-1].any(axis=1)).tolist()


def sides(total: Sum, units: list[int], box: Box | None) -> NDArray[np.int64]:
    """Return for each unit 1 if it is >= 0 on the box, -1 if <= 0, 0 if it changes sign: exactly.

    >>> rows = np.array([[1.0, 0.0], [1.0, -0.5]])
    >>> total = Sum(rows, np.ones((1, 2)), np.zeros((0, 2)), np.zeros((1, 0)))
    >>> sides(total, [0, 1], Box([0], [1]))
    array([1, 0])
    """
    found = np.zeros(len(units), np.int64)
    if box is None or not units:
        return found
    rows = total.rows[units]
    z = row_ranges(rows, box)
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        doubt = 8.0 * gamma(box.dim + 16) * (np.abs(rows) @ reach) + TINY * (box.dim + 2)
    found[z.lower >= 0] = 1
    found[z.upper <= 0] = -1
    near = (found == 0) & ~((z.lower < -doubt) & (z.upper > doubt))
    for i in np.flatnonzero(near).tolist():
        low, high = _rational_range(rows[i], box)
        found[i] = 1 if low >= 0 else -1 if high <= 0 else 0
    return found


def _rational_range(row: Array, box: Box) -> tuple[Fraction, Fraction]:
    w, offset = fractions(row[:-1]), Fraction(float(row[-1]))
    ends = fractions(box.lower), fractions(box.upper)
    products = w * ends[0], w * ends[1]
    return offset + sum(np.minimum(*products)), offset + sum(np.maximum(*products))


def row_ranges(rows: Array, box: Box) -> Interval:
    """Enclose affine functions (n, d + 1) on a box."""
    return interval_bounds(ReluNetwork.from_layers([(rows[:, :-1], rows[:, -1])]), box)[0]


def near_multiples(total: Sum, groups: tuple[ParallelUnits, ...]) -> Near:
    """Write every unit as a multiple of a leader, with what is missing bounded entry by entry."""
    p = len(total.rows)
    leader = np.arange(p)
    for group in groups:
        if all(group.exact):
            leader[list(group.units)] = group.units[0]
    above = np.arange(p)
    for group in groups:
        if not all(group.exact):
            above[list(group.units)] = group.units[0]
    leader = above[leader]
    leader = leader[leader]  # a leader may itself have been put below another
    rows, lead = total.rows, total.rows[leader]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scale = np.maximum(np.max(np.abs(lead), axis=1, initial=0.0), TINY)[:, None]
        unit = lead / scale
        factor = np.einsum("ij,ij->i", rows / scale, unit) / np.einsum("ij,ij->i", unit, unit)
        factor = np.where(np.isfinite(factor), factor, 0.0)
        product = factor[:, None] * lead
        residual = np.abs(rows - product)
        power_of_two = np.abs(np.frexp(factor)[0]) == 0.5
        exact = power_of_two[:, None] & (residual == 0.0) & (np.abs(product) > TINY)
        exact |= (rows == 0.0) & (lead == 0.0)
        slack = 4.0 * UNIT_ROUNDOFF * (np.abs(rows) + np.abs(product)) + TINY
    return Near(leader, factor, np.where(exact, 0.0, residual + slack))


def fractions(values: Array) -> Vector:
    """Return float64 numbers as the rational numbers they are."""
    found = np.empty(len(values), dtype=object)
    found[:] = [Fraction(float(value)) for value in values]
    return found


def sum_bound(total: Sum, near: Near, box: Box | None) -> float:
    r"""Bound :math:`\max_k |f_k(x)|` on a box, or that over :math:`1 + \|x\|_2` without one.

    >>> from pindown.equivalence.comparison._folds import near_multiples, relations
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.001]])  # relu(2x) - relu(x) - relu(x + .001)
    >>> total = Sum(rows, np.array([[-1.0, 1.0, -1.0]]), np.zeros((0, 2)), np.zeros((1, 0)))
    >>> round(sum_bound(total, near_multiples(total, relations(total, 0.01)), Box([-1], [1])), 6)
    0.001
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kappa, sigma, doubt = _coefficients(total, near)
        leaders = np.unique(near.leader)
        rows = total.rows[leaders]
        kappa, sigma, doubt = kappa[:, leaders], sigma[:, leaders], doubt[:, leaders]
        residual = np.abs(total.out) @ near.residual
        if box is None:
            value = _relative(total, rows, kappa, sigma, doubt, residual)
        else:
            value = _absolute(total, rows, kappa, sigma, doubt, residual, box)
        steps = sum(total.rows.shape) + sum(total.plain.shape) + 32
        value = value * (1.0 + 4.0 * gamma(steps)) + TINY
    return float(value) if np.isfinite(value) else np.inf


def _coefficients(total: Sum, near: Near) -> tuple[Array, Array, Array]:
    """Return kappa, sigma and bounds on their rounding, each (k, p), at the leaders' places."""
    k, p = total.out.shape
    kappa, sigma, terms = np.zeros((k, p)), np.zeros((k, p)), np.zeros((k, p))
    half = near.factor * total.out / 2
    signed = np.abs(near.factor) * total.out / 2
    for target, values in ((sigma, half), (kappa, signed), (terms, np.abs(half))):
        np.add.at(target.T, near.leader, values.T)
    count = np.bincount(near.leader, minlength=p)
    rounding = np.array([gamma(int(n) + 8) for n in count])
    return kappa, sigma, rounding * terms + TINY


def _affine(total: Sum, rows: Array, slopes: Array) -> tuple[Array, Array]:
    """Return ``slopes @ rows`` and the affine functions added, (k, d + 1), and its rounding."""
    M = slopes @ rows + total.plain_out @ total.plain
    terms = np.abs(slopes) @ np.abs(rows) + np.abs(total.plain_out) @ np.abs(total.plain)
    return M, 2.0 * gamma(len(rows) + len(total.plain) + 8) * terms + TINY


def _absolute(
    total: Sum, rows: Array, kappa: Array, sigma: Array, doubt: Array, residual: Array, box: Box
) -> float:
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    if len(rows):
        z = row_ranges(rows, box)
        size = np.maximum(np.abs(z.lower), np.abs(z.upper))
        below, above = 2.0 * np.maximum(-z.lower, 0.0), 2.0 * np.maximum(z.upper, 0.0)
    else:
        size = below = above = np.zeros(0)
    errors = np.stack([size, below, above])  # of |z| taken for 0, for z and for -z
    way = np.argmin(errors, axis=0)
    slopes = sigma + kappa * np.array([0.0, 1.0, -1.0])[way]
    M, rounding = _affine(total, rows, slopes)
    # The sum sigma +- kappa is rounded too: doubt counts it, with the rest.
    doubtful = doubt @ (3.0 * size) + np.abs(slopes) @ size * gamma(4)
    kinks = np.abs(kappa) @ np.min(errors, axis=0, initial=np.inf)
    W, c = M[:, :-1], M[:, -1]
    high = np.maximum(W, 0.0) @ box.upper - np.maximum(-W, 0.0) @ box.lower + c
    low = np.maximum(W, 0.0) @ box.lower - np.maximum(-W, 0.0) @ box.upper + c
    straight = np.maximum(np.abs(high), np.abs(low)) + 2.0 * gamma(len(reach) + 8) * (np.abs(M) @ reach)
    straight = straight + TINY * reach.sum()
    return float(np.max(straight + kinks + doubtful + (rounding + residual) @ reach))


def _relative(
    total: Sum, rows: Array, kappa: Array, sigma: Array, doubt: Array, residual: Array
) -> float:
    M, rounding = _affine(total, rows, sigma)
    lengths = np.array([norm_up(row[:-1]) for row in rows])
    weights = np.abs(kappa) + 3.0 * doubt
    extra = rounding + residual
    slope = np.array([norm_up(row) for row in M[:, :-1]]) + np.array(
        [norm_up(row) for row in extra[:, :-1]]
    )
    offset = np.abs(M[:, -1]) + extra[:, -1]
    if len(rows):
        slope, offset = slope + weights @ lengths, offset + weights @ np.abs(rows[:, -1])
    return float(np.max(np.maximum(slope, offset)))
