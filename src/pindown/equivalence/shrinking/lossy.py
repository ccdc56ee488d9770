r"""Reductions that change the function a little, taken while the proved gap allows it.

A unit j with :math:`(W_j, b_j) \approx t\,(W_i, b_i)` is replaced by :math:`t\,\rho(z_i)`: as if its
row were off by the difference. A unit whose ReLU stays within r of a number v on the box is replaced
by v: as if the next biases were off by :math:`|W_{l+1} e_i|\, r`.

Phuong 2021, section 2.2; the gap is charged as in the perturbation bounds of :mod:`.error_bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, dense
from pindown.equivalence.shrinking.columns import columns_of, row
from pindown.equivalence.shrinking.copies import Copy, merge
from pindown.equivalence.shrinking.draft import Draft
from pindown.equivalence.shrinking.drop import drop_known
from pindown.equivalence.unit_relations import ParallelUnits
from pindown.rounding import SMALLEST, add_up, gamma

_NEAR = 1e-2  # rows that differ more, at length one, are not looked at; the gap decides


def merge_near_copies(draft: Draft, layer: int) -> bool:
    """Merge as many nearly proportional units of a hidden layer (from 0) as the tolerance allows."""
    affine = draft.net.layers[layer]
    try:
        groups = draft.nearly_parallel(layer, _NEAR)
    except TimeoutError:
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
