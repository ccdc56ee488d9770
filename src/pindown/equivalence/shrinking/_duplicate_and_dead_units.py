r"""Units that can go: unused, dead and constant ones, copies, and what is nearly one of these.

.. math::
    W_{l+1} e_i = 0, \qquad \max_x z_i \le 0, \qquad
    \rho(z_i) = v \;\Longrightarrow\; b_{l+1} \mathrel{+}= v\, W_{l+1} e_i .

If no unit of a layer is left, what follows is constant, and the two affine maps become one with zero
weights. Unit j repeats unit i if :math:`(W_j, b_j) = t\,(W_i, b_i)` with :math:`t > 0`: then
:math:`\rho(z_j) = t\,\rho(z_i)`, and :math:`W_{l+1} e_i \mathrel{+}= t\, W_{l+1} e_j` takes over its
work. With :math:`t < 0` the two form an opposite pair.

With a tolerance a unit that is nearly a copy is replaced as if its row were off by the difference, and
one whose ReLU stays within r of a number on the box as if the next biases were off by :math:`|W_{l+1}
e_i|\, r`, while the proved gap allows it.

Phuong 2021, sections 2.1 and 2.2: the complements of the conditions under which every unit shows in the
function; Phuong and Lampert 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense
from pindown.deadline import OutOfTime
from pindown.equivalence.related_units import ParallelUnits
from pindown.equivalence.shrinking._proposals import Draft, Layer, pick
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    affine_image,
    columns_of,
    matmul,
    row,
    rows_of,
    same_products,
    sum_up,
    used_columns,
    used_rows,
    with_columns,
    zeros,
)
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import MAX_KEPT_TRIED, NEAR_COPIES
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF, add_up, gamma


def drop_units(draft: Draft, layer: int) -> bool:
    """Drop the unused, dead and constant units of a hidden layer (from 0); return whether any went."""
    rules = (_drop_unused, _drop_dead, _drop_constant)
    taken = [rule(draft, layer) for rule in rules if layer < draft.net.depth - 1]
    return any(taken)


def _drop_unused(draft: Draft, layer: int) -> bool:
    gone = ~used_columns(draft.net.layers[layer + 1].weight)
    return drop_known(draft, layer, gone, np.zeros(len(gone)), "unused", "nothing reads what they give")


def _drop_dead(draft: Draft, layer: int) -> bool:
    gone = draft.bounds(layer).upper <= 0.0
    return drop_known(draft, layer, gone, np.zeros(len(gone)), "dead", f"never positive {draft.where}")


def _drop_constant(draft: Draft, layer: int) -> bool:
    weight, bias = draft.net.layers[layer]
    z = draft.bounds(layer)
    idle = ~used_rows(weight)
    fixed = idle | (np.isfinite(z.lower) & (z.lower == z.upper))
    values = np.maximum(np.where(idle, bias, np.where(fixed, z.lower, 0.0)), 0.0)
    reason = f"the same value {draft.where}, now part of the next layer's bias"
    return drop_known(draft, layer, fixed, values, "constant", reason)


def drop_known(
    draft: Draft,
    layer: int,
    gone: Mask,
    values: Array,
    rule: str,
    reason: str,
    *,
    off: Array | None = None,
) -> bool:
    """Remove units whose ReLU always gives the value listed.

    Args:
        draft: The network.
        layer: The hidden layer, from 0.
        gone: The units.
        values: What every unit's ReLU gives.
        rule: What to call the step.
        reason: Why.
        off: If the values are not exact, how far they can move what enters the next layer.
    """
    if not gone.any():
        return False
    layers: list[Layer] = list(draft.net.layers)
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    active = np.flatnonzero(gone & (values != 0.0))
    shifted, error = offset, np.zeros(len(offset))
    if len(active):
        shifted, error = affine_image(columns_of(following, active), values[active], offset)
    known, keep, place = list(draft.known), ~gone, layer
    if keep.any():
        layers[layer] = rows_of(weight, keep), bias[keep]
        layers[layer + 1] = columns_of(following, keep), shifted
        known[layer] = pick(known[layer], keep)
        place = layer + 1
    else:
        layers[layer : layer + 2] = [(zeros(len(offset), weight.shape[1]), shifted)]
        known.pop(layer)
    step = Step(rule, layer + 1, tuple(np.flatnonzero(gone).tolist()), reason)
    cost = (
        None
        if off is None
        else draft.gap_bound(draft.net, {layer + 1: (0.0, off)}, draft.tol - draft.gap)
    )
    return draft.propose(layers, {place: (0.0, error)}, step, known, cost=cost)


class Copy(NamedTuple):
    """Unit ``unit`` is ``factor`` times unit ``of``, the factor known to ``error``."""

    unit: int
    of: int
    factor: float
    error: float


class Opposites(NamedTuple):
    """Pairs of units with opposite rows, ``second = -t first``, and one entry of each row to see t."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    first_entry: Array
    second_entry: Array

    def some(self, chosen: Mask) -> Opposites:
        """Return the pairs chosen."""
        return Opposites(
            self.first[chosen], self.second[chosen], self.first_entry[chosen], self.second_entry[chosen]
        )


def merge_copies(draft: Draft, layer: int) -> bool:
    """Merge the units of a hidden layer (from 0) that are positive multiples of others."""
    affine = draft.net.layers[layer]
    found = [
        copy
        for group in draft.parallel(layer)
        for units in group
        if len(units) > 1
        for copy in _best_copies(affine, units)
    ]
    # Those that cost no rounding first: if the others have to stay, these need not.
    exact = [copy for copy in found if copy.error == 0.0]
    inexact = [copy for copy in found if copy.error > 0.0]
    if exact and merge(draft, layer, exact):
        return True
    return bool(inexact) and merge(draft, layer, inexact)


def merge(draft: Draft, layer: int, copies: list[Copy], *, cost: float | None = None) -> bool:
    """Propose the network in which the given copies are part of the units they copy.

    No unit may be a copy and be copied: what it takes over would be lost with it.
    """
    assert not {copy.unit for copy in copies} & {copy.of for copy in copies}
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    keep = np.ones(len(bias), dtype=bool)
    keep[[copy.unit for copy in copies]] = False
    combined = _combined(following, copies, keep)
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = rows_of(weight, keep), bias[keep]
    layers[layer + 1] = combined.value, offset
    known = list(draft.known)
    known[layer] = pick(known[layer], keep)
    units = tuple(sorted(copy.unit for copy in copies))
    kind = "copies" if all(copy.factor == 1.0 for copy in copies) else "positive multiples"
    near, rule = ("", "merged") if cost is None else ("nearly ", "near copy")
    step = Step(rule, layer + 1, units, f"{near}{kind} of other units of the layer")
    return draft.propose(layers, {layer + 1: (combined.error, 0.0)}, step, known, cost=cost)


def opposite_pairs(draft: Draft, layer: int) -> Opposites:
    """Return the pairs of a hidden layer with exactly opposite rows, each unit at most once."""
    weight, bias = draft.net.layers[layer]
    pairs = []
    for group in draft.parallel(layer):
        if all(group):
            i, j = group[0][0], group[1][0]
            first, second = row(weight, bias, i), row(weight, bias, j)
            pivot = int(np.argmax(np.abs(first)))
            pairs.append((i, j, first[pivot], second[pivot]))
    table = np.array(pairs, dtype=float).reshape(-1, 4)
    first_units, second_units = table[:, 0].astype(np.intp), table[:, 1].astype(np.intp)
    return Opposites(first_units, second_units, table[:, 2], table[:, 3])


def ratio(first: Array, second: Array) -> tuple[float, float]:
    """Return t with ``second = t first``, for rows that are multiples, and a bound on its error."""
    pivot = int(np.argmax(np.abs(first)))
    a, b = first[pivot : pivot + 1], second[pivot : pivot + 1]
    with np.errstate(over="ignore", under="ignore"):
        t = b / a
    exact = bool(np.isfinite(t[0]) and same_products(t, a, b, np.ones(1))[0])
    return float(t[0]), 0.0 if exact else float(2.0 * UNIT_ROUNDOFF * abs(t[0]) + SMALLEST)


def _best_copies(affine: Affine, units: list[int]) -> list[Copy]:
    """Express all units by one of them, if possible by one that needs no rounded factor."""
    rows = {unit: row(*affine, unit) for unit in units}

    def by(kept: int) -> list[Copy]:
        return [Copy(u, kept, *ratio(rows[kept], rows[u])) for u in units if u != kept]

    tried = (by(unit) for unit in units[:MAX_KEPT_TRIED])
    best = min(tried, key=lambda copies: sum(copy.error > 0.0 for copy in copies))
    return [copy for copy in best if 0.0 < copy.factor < np.inf]


def _combined(following: Matrix, copies: list[Copy], keep: Mask) -> Rounded:
    """Return the next layer's weights with the columns of copies added to those they copy."""
    place = np.cumsum(keep) - 1
    units = np.array([copy.unit for copy in copies])
    targets = np.unique([copy.of for copy in copies])
    sources = np.concatenate([targets, units])
    ends = np.searchsorted(targets, [copy.of for copy in copies])
    where = (np.arange(len(sources)), np.concatenate([np.arange(len(targets)), ends]))
    shape = (len(sources), len(targets))
    factors = np.concatenate([np.ones(len(targets)), [copy.factor for copy in copies]])
    unsure = np.concatenate([np.zeros(len(targets)), [copy.error for copy in copies]])
    old = columns_of(following, sources)
    new = matmul(old, sp.csr_array((factors, where), shape=shape))
    value = with_columns(columns_of(following, keep), place[targets], new.value)
    error = new.error
    if unsure.any():
        # Twice, for the sum is rounded too, and it may underflow.
        more = dense(abs(old) @ sp.csr_array((2.0 * unsure, where), shape=shape))
        error = sum_up(dense(error), more + len(sources) * SMALLEST)
    blank = columns_of(following, keep) * 0.0
    return Rounded(value, with_columns(blank, place[targets], error))


def merge_near_copies(draft: Draft, layer: int) -> bool:
    """Merge as many nearly proportional units of a hidden layer (from 0) as the tolerance allows."""
    affine = draft.net.layers[layer]
    try:
        groups = draft.nearly_parallel(layer, NEAR_COPIES)
    except OutOfTime:
        return False
    found: list[tuple[float, Copy, Array]] = []
    for group in groups:
        for first, others in _same_sign(group):
            leading = row(*affine, first)
            for unit in others:
                mine = row(*affine, unit)
                factor = near_ratio(leading, mine)
                off = _difference(mine, factor, leading)
                found.append((float(off.max()), Copy(unit, first, factor, 0.0), off))
    found.sort(key=lambda item: item[0])

    def attempt(count: int) -> bool:
        # What a unit that goes would take over is lost: its own copies wait for the next round.
        going = {copy.unit for _, copy, _ in found[:count]}
        chosen = [item for item in found[:count] if item[1].of not in going]
        units = [copy.unit for _, copy, _ in chosen]
        off = np.array([item[2] for item in chosen])
        of_bias = np.zeros(affine.out_features)
        of_bias[units] = off[:, -1]
        place = sp.csr_array(
            (np.ones(len(units)), (units, np.arange(len(units)))), (len(of_bias), len(units))
        )
        of_weight = place @ sp.csr_array(off[:, :-1])
        cost = draft.gap_bound(draft.net, {layer: (of_weight, of_bias)}, draft.tol - draft.gap)
        return merge(draft, layer, [copy for _, copy, _ in chosen], cost=cost)

    return _largest_prefix(attempt, len(found))


def drop_negligible(draft: Draft, layer: int) -> bool:
    """Replace as many units of a hidden layer (from 0) by constants as the tolerance allows."""
    z, following = draft.bounds(layer), draft.net.layers[layer + 1].weight
    low, high = np.maximum(z.lower, 0.0), np.maximum(z.upper, 0.0)
    if not np.isfinite(high).any():
        return False
    middle = np.where(np.isfinite(high), low / 2 + high / 2, 0.0)
    spread = np.maximum(add_up(high, -middle), add_up(middle, -low))
    weight = np.asarray(dense(abs(following).max(axis=0))).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        order = np.argsort(np.where(np.isfinite(spread), spread * weight, np.inf), kind="stable")
    order = order[np.isfinite(spread[order])]

    def attempt(count: int) -> bool:
        units = order[:count]
        with np.errstate(over="ignore"):
            total = np.asarray(abs(columns_of(following, units)) @ spread[units])
            off = total * (1.0 + 2.0 * gamma(count + 2)) + count * SMALLEST
        gone = np.zeros(len(middle), dtype=bool)
        gone[units] = True
        reason = f"within {spread[units].max():.2g} of a constant {draft.where}"
        return drop_known(draft, layer, gone, middle, "negligible", reason, off=off)

    return _largest_prefix(attempt, len(order))


def _same_sign(group: ParallelUnits) -> Iterator[tuple[int, list[int]]]:
    """Yield for both signs the first unit and the others of the same sign."""
    members = list(zip(group.units, group.factors, strict=True))
    for sign in (1.0, -1.0):
        mine = [unit for unit, factor in members if sign * factor > 0.0]
        if len(mine) > 1:
            yield mine[0], mine[1:]


def near_ratio(first: Array, second: Array) -> float:
    """Return t with ``second`` nearly ``t first``, by the largest entry of the first.

    >>> near_ratio(np.array([1.0, 4.0]), np.array([0.5, 2.0]))
    0.5
    """
    pivot = int(np.argmax(np.abs(first)))
    with np.errstate(over="ignore", under="ignore"):
        return float(second[pivot] / first[pivot])


def _difference(second: Array, factor: float, first: Array) -> Array:
    """Return an upper bound on ``|second - factor first|``, entry by entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = gamma(3) * (np.abs(second) + abs(factor) * np.abs(first))
        off = np.abs(second - factor * first) + rounding + SMALLEST
    return np.where(np.isnan(off), np.inf, off)


def _largest_prefix(attempt: Callable[[int], bool], count: int) -> bool:
    """Try all candidates, then half of them, and so on; the first try that is taken ends it."""
    while count > 0:
        if attempt(count):
            return True
        count //= 2
    return False
