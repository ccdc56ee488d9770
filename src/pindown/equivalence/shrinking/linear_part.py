r"""Which part of a layer is linear, as the next layer sees it.

Row k of the next layer computes :math:`\sum_i C_{ki}\,\rho(z_i) + c_k`. A term is linear in the
layer's input if unit i is always on, or if it cancels against an opposite unit j, :math:`z_j = -t
z_i`:

.. math::
    C_{ki}\,\rho(z) + C_{kj}\,\rho(-t z) = C_{ki}\, z
    \quad\Longleftrightarrow\quad C_{ki} + t\, C_{kj} = 0 .

Whether the sum is zero is decided in exact arithmetic. The remaining terms are kinks.

Phuong 2021, section 2.2; the identity :math:`\rho(z) - \rho(-z) = z`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix
from pindown.equivalence.shrinking.columns import Mask, columns_of, used_rows
from pindown.equivalence.shrinking.copies import Opposites, opposite_pairs
from pindown.equivalence.shrinking.draft import Draft
from pindown.equivalence.shrinking.products import same_products


@dataclass(frozen=True, eq=False)
class LinearPart:
    """How the next layer reads a hidden layer.

    Attributes:
        on: Units that are always on.
        pairs: Opposite pairs of other units.
        cancels: For each pair, whether it is linear for every row that reads it.
        kinked: Rows of the next layer that see a kink.
        coefficients: Sparse matrix L; for rows without kink, ``L z + c`` is what the row computes.
    """

    on: Mask
    pairs: Opposites
    cancels: Mask
    kinked: Mask
    coefficients: Matrix


def linear_part(draft: Draft, layer: int) -> LinearPart:
    """Split what the layer after a hidden layer (from 0) reads into linear terms and kinks."""
    following = draft.net.layers[layer + 1].weight
    on = draft.bounds(layer).lower >= 0.0
    pairs = opposite_pairs(draft, layer)
    both_open = ~(on[pairs.first] | on[pairs.second])
    pairs = pairs.some(both_open)
    single = ~on
    single[pairs.first] = single[pairs.second] = False
    kinked = used_rows(columns_of(following, single))
    cancels = np.ones(len(pairs.first), dtype=bool)
    if len(pairs.first):
        rows, which, linear = _read_pairs(following, pairs)
        kinked[rows[~linear]] = True
        cancels[which[~linear]] = False
    carried = on.astype(float)
    carried[pairs.first] = 1.0
    coefficients = sp.csr_array(following) @ sp.diags_array(carried)
    coefficients.eliminate_zeros()
    return LinearPart(on, pairs, cancels, kinked, coefficients)


def _read_pairs(following: Matrix, pairs: Opposites) -> tuple[Array, Array, Mask]:
    """Return row, pair, and whether the two terms cancel, for every row that reads a pair."""
    first, second = (sp.coo_array(columns_of(following, units)) for units in (pairs.first, pairs.second))
    n = len(pairs.first)
    keys = [part.row.astype(np.int64) * n + part.col for part in (first, second)]
    places = np.unique(np.concatenate(keys))
    entries = np.zeros((2, len(places)))
    for side, (key, part) in enumerate(zip(keys, (first, second), strict=True)):
        entries[side, np.searchsorted(places, key)] = part.data
    rows, which = places // n, places % n
    # C_i + t C_j = 0 with t = -(entry of j) / (entry of i).
    linear = same_products(entries[0], pairs.first_entry[which], entries[1], pairs.second_entry[which])
    return rows, which, linear
