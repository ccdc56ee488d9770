r"""Units that repeat another one: :math:`(W_j, b_j) = t\,(W_i, b_i)` with :math:`t > 0`.

Then :math:`\rho(z_j) = t\,\rho(z_i)`, so unit j is unit i once more, and
:math:`W_{l+1} e_i \mathrel{+}= t\, W_{l+1} e_j` takes over its work. With :math:`t < 0` the two
form an opposite pair.

Phuong 2021, section 2.1 (units with the same fold); Phuong and Lampert 2020.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense
from pindown.equivalence.shrinking.columns import Mask, columns_of, row, rows_of, with_columns
from pindown.equivalence.shrinking.draft import Draft, Layer, pick
from pindown.equivalence.shrinking.products import Rounded, matmul, same_products, sum_up
from pindown.equivalence.shrinking.result import Step
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF

_MOST_TRIED = 16  # units of one group that are tried as the one to keep


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

    tried = (by(unit) for unit in units[:_MOST_TRIED])
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
