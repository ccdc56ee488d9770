r"""Are two networks symmetric copies of each other? Pair their units layer by layer.

If the layers before agree, unit i of one network and unit j of the other are the same exactly when their
rows :math:`(W_i, b_i)` are positive multiples of each other. Each layer is paired by the directions of
its rows: nearest neighbours among random projections first, an optimal assignment for what they leave
open, and the outgoing weights where rows are parallel within one network. If a layer is far off then,
units are paired by what they compute, from the outputs back, and the better pairing is kept. What then
still differs, number by number, is returned as changes, whose effect
:func:`pindown.equivalence.gap_of_changes` bounds.

Phuong 2021, section 2.4 (the induction behind Theorem 2.1, turned into an algorithm).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense, is_finite
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.equivalence.comparison._function_pairing import pair_by_functions
from pindown.equivalence.comparison._row_pairing import pair_units, times_powers, unit_rows
from pindown.equivalence.comparison.result import LayerDifference
from pindown.equivalence.gauge_fixing import row_lengths
from pindown.equivalence.sensitivity.weight_changes import Change
from pindown.equivalence.tuning import MATCH_SECONDS_PER_WEIGHT, MAX_DENSE_ENTRIES, NEAR_ONE
from pindown.equivalence.weight_symmetry import (
    Permutation,
    Symmetry,
    apply,
    inverse,
    moved_columns,
    moved_layer,
    scaled_rows,
)
from pindown.io.accepting import on_networks
from pindown.network import ReluNetwork
from pindown.rounding import SMALLEST, TINY, UNIT_ROUNDOFF
from pindown.validation import positive

_MAX_FLOAT = float(np.finfo(np.float64).max)
# A scale that differs from 1 by no more than float32 rounding is none.
_SAME_SCALE = 2.0**-20
_FAR_APART = 0.1  # rows that differ by more than that are hardly partners


@dataclass(frozen=True, eq=False, repr=False)
class Matching:
    """How the units of b correspond to those of a, and what differs after that.

    Attributes:
        matched: Whether all layers agree to the tolerance, with positive scales. This alone proves
            nothing; a bound on the gap of ``changes`` does.
        symmetry: Maps b to a; None if the widths differ.
        residuals: Per layer, the largest relative difference of two paired rows.
        failed_layer: The first layer (from 1) that does not agree, or None.
        changes: By index of the layer (from 0), what the symmetric copy of b has more than a:
            layers that are equal number for number are left out.
        reason: In words, why the match failed; empty if it did not.
    """

    matched: bool
    symmetry: Symmetry | None
    residuals: tuple[float, ...]
    failed_layer: int | None
    changes: Mapping[int, Change]
    reason: str = ""

    def __repr__(self) -> str:
        if not self.matched:
            return f"Matching(not symmetric copies: {self.reason})"
        worst = max(self.residuals)
        return f"Matching(symmetric copies, rows agree to {worst:.2g}, {self.symmetry})"


@on_networks
@np.errstate(over="ignore", invalid="ignore")  # what float64 cannot hold ends as an infinite change
def match(a: ReluNetwork, b: ReluNetwork, *, rtol: float = 1e-6, deadline: Deadline = NEVER) -> Matching:
    """Find the symmetry that maps b to a, as well as one does: permutation matching of units.

    Args:
        a: One network.
        b: Another.
        rtol: How much paired rows may differ, relative to their length, to count as equal.
        deadline: When to give up.

    Returns:
        The pairing; not matched, without an error, if the widths differ.

    Raises:
        ValueError: If ``rtol`` is negative or not a number.
        OutOfTime: If the deadline passes first.

    >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 3]), ([[1.0, 2.0]], [0])])
    >>> b = ReluNetwork.from_layers([([[-4.0], [1.0]], [12, 0]), ([[0.5, 1.0]], [0])])
    >>> found = match(a, b)
    >>> found.matched, found.residuals, found.symmetry.permutations[0], found.symmetry.scales[0]
    (True, (0.0, 0.0), array([1, 0]), array([1.  , 0.25]))
    """
    rtol = positive("rtol", rtol, zero=True, infinite=True)
    if a.widths != b.widths:
        reason = f"widths {a.widths} and {b.widths} differ"
        return Matching(False, None, (), None, {}, reason)
    mine, theirs = zip(*map(_alike, a.layers, b.layers), strict=True)
    symmetry, problems = _pair_all(mine, theirs, deadline)
    changes, residuals = _compared(mine, theirs, symmetry, deadline)
    if max(residuals) > _FAR_APART:
        try:
            orders = pair_by_functions(mine, theirs, deadline)
        except OutOfTime:
            orders = None
        if orders is not None:
            others, flipped = _pair_all(mine, theirs, deadline, orders)
            found, own = _compared(mine, theirs, others, deadline)
            if _distance(own) < _distance(residuals):
                symmetry, problems, changes, residuals = others, flipped, found, own
    for i, residual in enumerate(residuals):
        if residual > rtol:
            problems.setdefault(i + 1, f"layer {i + 1} differs by {residual:.2g} of a row")
    failed = min(problems, default=None)
    reason = "" if failed is None else problems[failed]
    return Matching(failed is None, symmetry, tuple(residuals), failed, changes, reason)


def _compared(
    mine: tuple[Affine, ...], theirs: tuple[Affine, ...], symmetry: Symmetry, deadline: Deadline
) -> tuple[dict[int, Change], list[float]]:
    """Return what the moved copy of theirs has more than mine, and how much that is of each layer."""
    changes, residuals = {}, []
    for i, (layer, other) in enumerate(zip(mine, theirs, strict=True)):
        _require_time(deadline, layer)
        change = _change(i, layer, other, symmetry)
        residuals.append(_residual(layer, change, output=i == len(mine) - 1))
        if not change.is_zero:
            changes[i] = change
    return changes, residuals


def _distance(residuals: list[float]) -> float:
    """Return how far two networks are apart in all: a layer counts one at most."""
    return sum(min(each, 1.0) for each in residuals)


def _require_time(deadline: Deadline, layer: Affine) -> None:
    """Give up if the layer would not be finished before the deadline."""
    if MATCH_SECONDS_PER_WEIGHT * layer.n_parameters > deadline.left:
        raise OutOfTime("no time left for pairing the units of two networks.")


def _pair_all(
    mine: tuple[Affine, ...],
    theirs: tuple[Affine, ...],
    deadline: Deadline,
    orders: list[Permutation] | None = None,
) -> tuple[Symmetry, dict[int, str]]:
    """Pair the units of all hidden layers, by rows if not given; say where a sign is opposite."""
    permutations: list[Permutation] = []
    scales: list[Array] = []
    problems = {}
    powers = np.zeros(mine[0].in_features, dtype=np.intc)  # put mine into the unit gauge, nearly
    for i, (layer, other) in enumerate(zip(mine[:-1], theirs[:-1], strict=True)):
        _require_time(deadline, layer)
        W = moved_columns(other.weight, permutations[-1], scales[-1]) if i else other.weight
        following = (mine[i + 1], theirs[i + 1])
        last = i == len(mine) - 2
        moved = Affine(W, other.bias)
        if orders is None:
            p = pair_units(layer, moved, powers, following, last=last, deadline=deadline)
        else:
            p = orders[i]
        m, flipped = _scales(layer, Affine(W[p], other.bias[p]))
        if flipped.any():
            problems[i + 1] = f"unit {int(np.argmax(flipped))} of layer {i + 1} has the opposite sign"
        permutations.append(p)
        scales.append(m)
        powers = np.frexp(row_lengths(times_powers(layer.weight, powers), layer.bias))[1]
    return Symmetry(permutations, scales), problems


def _alike(first: Affine, second: Affine) -> tuple[Affine, Affine]:
    """Return both layers dense or both sparse."""
    if sp.issparse(first.weight) == sp.issparse(second.weight):
        return first, second
    make = dense if first.weight.shape[0] * first.weight.shape[1] <= MAX_DENSE_ENTRIES else sp.csr_array
    return Affine(make(first.weight), first.bias), Affine(make(second.weight), second.bias)


def _scales(mine: Affine, theirs: Affine) -> tuple[Array, NDArray[np.bool_]]:
    r"""Return per row the factor that makes theirs like mine, and where its sign would be negative.

    Of the least-squares factor, the ratio of the largest entries, and one, that with the smallest
    sum of absolute differences: where most numbers are equal up to a factor, it is that factor.
    """
    length, other = (row_lengths(layer.weight, layer.bias) for layer in (mine, theirs))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        cosine = _row_dots(mine, theirs, length, other)
        ratio = length / other
        usable = np.isfinite(ratio) & (ratio > 0.0)
        ratio = np.where(usable, ratio, 1.0)
        pivot = _pivot_ratio(mine, theirs)
        good = np.isfinite(pivot) & (pivot > 0.0)
        fitted = np.where(cosine > 0.0, cosine, 1.0) * ratio
        candidates = [fitted, np.where(good, pivot, fitted)]
        candidates.append(np.where(np.abs(fitted - 1.0) <= NEAR_ONE, 1.0, fitted))
        costs = [_absolute_difference(mine, theirs, m) for m in candidates]
    best = np.argmin(np.nan_to_num(np.stack(costs), nan=np.inf), axis=0)
    m = np.clip(np.choose(best, candidates), TINY, _MAX_FLOAT)
    return m, usable & (cosine <= 0.0)


def _row_dots(mine: Affine, theirs: Affine, lengths: Array, others: Array) -> Array:
    """Return the cosine of the angle between every two paired rows."""
    A, B = unit_rows(mine, lengths), unit_rows(theirs, others)
    if sp.issparse(A[0]):
        products = np.asarray((A[0] * B[0]).sum(axis=1)).reshape(-1)
    else:
        products = np.einsum("ij,ij->i", A[0], B[0])
    return np.asarray(products + A[1] * B[1])


def _pivot_ratio(mine: Affine, theirs: Affine) -> Array:
    """Return per row the ratio of the entries where mine is largest."""
    A, B = mine.weight, theirs.weight
    if sp.issparse(A):
        places = np.asarray(abs(A).argmax(axis=1)).reshape(-1)
        rows = np.arange(len(places))
        return np.asarray(A[rows, places]).reshape(-1) / np.asarray(B[rows, places]).reshape(-1)
    columns = np.argmax(np.abs(A), axis=1)[:, None]
    top, other = (np.take_along_axis(W, columns, axis=1)[:, 0] for W in (A, B))
    return np.asarray(top / other)


def _absolute_difference(mine: Affine, theirs: Affine, m: Array) -> Array:
    D = scaled_rows(theirs.weight, m) - mine.weight
    return np.asarray(abs(D).sum(axis=1)).reshape(-1) + np.abs(m * theirs.bias - mine.bias)


def _change(index: int, mine: Affine, theirs: Affine, symmetry: Symmetry) -> Change:
    """Return what the moved layer has more than mine, with all rounding in the slack."""
    B, c = moved_layer(symmetry, index, theirs)
    if not (is_finite(B.data if sp.issparse(B) else B) and is_finite(c)):
        return Change(0.0 * mine.weight, np.zeros(mine.out_features), np.inf, np.inf)
    D, d = B - mine.weight, c - mine.bias
    near = symmetry.scales[max(0, index - 1) : index + 1]
    rows = symmetry.scales[index] if index < len(symmetry.scales) else np.ones(len(c))
    if all(np.all(np.frexp(m)[0] == 0.5) for m in near) and not _underflows(theirs, near):
        return Change(D, d, _slack(B, D, 0.0, 0.0 * rows), 2.0 * UNIT_ROUNDOFF * np.abs(d))
    lost = SMALLEST * (2.0 + rows)  # in a division, then times the scale, then in the product
    slack = _slack(B, D, 4.0 * UNIT_ROUNDOFF, lost)
    return Change(D, d, slack, 4.0 * UNIT_ROUNDOFF * (np.abs(c) + np.abs(d)) + lost)


def _underflows(layer: Affine, scales: tuple[Array, ...]) -> bool:
    """Return whether a weight times powers of two may lose digits."""
    numbers = [layer.weight.data if sp.issparse(layer.weight) else layer.weight, layer.bias]
    smallest = min(float(np.min(np.abs(x), initial=1.0, where=x != 0.0)) for x in numbers)
    for m in scales:
        smallest *= min(1.0, float(np.min(m)), 1.0 / float(np.max(m)))
    return smallest < TINY


def _slack(B: Matrix, D: Matrix, relative: float, lost: Array) -> Matrix:
    """Bound the rounding of ``B`` and of ``D = B - A``; a zero that is not stored has none."""
    if not sp.issparse(B):
        slack = np.abs(B)
        slack *= relative
        slack += 2.0 * UNIT_ROUNDOFF * np.abs(D)
        slack += lost[:, None]
        return slack
    rounding = abs(B)
    rounding.data = relative * rounding.data + np.repeat(lost, np.diff(B.indptr))
    return rounding + 2.0 * UNIT_ROUNDOFF * abs(D)


def _residual(mine: Affine, change: Change, *, output: bool) -> float:
    """Return the largest length of a changed row, relative to the row (a zero output: the longest)."""
    if np.isscalar(change.bias_slack) and not np.isfinite(change.bias_slack):
        return inf
    lengths, moved = (row_lengths(W, b) for W, b in (mine, (change.weight, change.bias)))
    if output:
        # One that is always zero has no length of its own, and what is left there may be rounding. Of
        # a hidden unit nobody knows how much what is left is multiplied by.
        lengths = np.where(lengths > 0.0, lengths, lengths.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.where(moved > 0.0, moved / lengths, 0.0)))


def layer_differences(matching: Matching, net: ReluNetwork) -> tuple[LayerDifference, ...]:
    """Count, layer by layer, units that moved, were rescaled or changed.

    Args:
        matching: A pairing of all units.
        net: The network they were paired with.
    """
    symmetry = matching.symmetry
    if symmetry is None:
        raise ValueError("the units are not paired: the networks have different widths.")
    rows = []
    for i, layer in enumerate(net.layers):
        moved = rescaled = 0
        if i < net.depth - 1:
            places, scales = symmetry.permutations[i], symmetry.scales[i]
            moved = int(np.count_nonzero(places != np.arange(len(places))))
            rescaled = int(np.count_nonzero(np.abs(scales - 1.0) > _SAME_SCALE))
        changed = _changed_rows(matching, i)
        rows.append(
            LayerDifference(i + 1, layer.out_features, moved, rescaled, changed, matching.residuals[i])
        )
    return tuple(rows)


def _changed_rows(matching: Matching, index: int) -> int:
    """Count units whose weights differ beyond what moving them by a symmetry rounds."""
    if index not in matching.changes:
        return 0
    change = matching.changes[index]
    beyond = abs(change.weight) - change.weight_slack if _has_slack(change.weight_slack) else None
    weight = abs(change.weight) if beyond is None else beyond
    rows = np.asarray((weight > 0).sum(axis=1)).reshape(-1) > 0
    return int(np.count_nonzero(rows | (np.abs(change.bias) > change.bias_slack)))


def _has_slack(slack: Array | float) -> bool:
    return bool(sp.issparse(slack) or np.any(np.asarray(slack) > 0))


def align_exactly(net: ReluNetwork, matching: Matching) -> ReluNetwork | None:
    """Return the network with its units in the order of the other, rescaled by powers of two.

    These change no digit, so the function stays exactly as it is; None if float64 cannot hold
    the result.
    """
    if matching.symmetry is None:
        return None
    scales = [2.0 ** np.round(np.log2(m)) for m in matching.symmetry.scales]
    symmetry = Symmetry(matching.symmetry.permutations, scales)
    try:
        moved = apply(symmetry, net)
        return moved if apply(inverse(symmetry), moved) == net else None
    except ValueError:
        return None
