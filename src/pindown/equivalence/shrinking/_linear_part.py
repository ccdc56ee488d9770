r"""Which part of a layer is linear, as the next layer sees it, and fewer units that carry it.

Row k of the next layer computes :math:`\sum_i C_{ki}\,\rho(z_i) + c_k`. A term is linear in the
layer's input if unit i is always on, or if it cancels against an opposite unit j, :math:`z_j = -t
z_i`:

.. math::
    C_{ki}\,\rho(z) + C_{kj}\,\rho(-t z) = C_{ki}\, z
    \quad\Longleftrightarrow\quad C_{ki} + t\, C_{kj} = 0 .

Whether the sum is zero is decided in exact arithmetic. The remaining terms are kinks. On a box
:math:`z \ge -\beta`, so that one always-on unit does the work of a pair that cancels,

.. math:: c\,\rho(z) - c\,\rho(-z) = c\, z = c\,\rho(z + \beta) - c\,\beta .

Of always-on units S one with :math:`W_j = \sum_{i \in S} X_{ji} W_i` can go: the others take over its
work, :math:`z_j = \sum_i X_{ji} z_i + (b_j - \sum_i X_{ji} b_i)`. The coefficients come from a
least-squares solution; they count only if they satisfy the equation in exact arithmetic.

Phuong 2021, section 2.2; the identity :math:`\rho(z) - \rho(-z) = z`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import frexp, ldexp

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, Matrix, dense
from pindown.equivalence.shrinking._duplicate_and_dead_units import Opposites, opposite_pairs
from pindown.equivalence.shrinking._proposals import Draft, Layer, pick
from pindown.equivalence.shrinking._rounded_matrices import (
    Mask,
    Rounded,
    add,
    affine_image,
    columns_of,
    matmul,
    rows_of,
    same_products,
    sum_up,
    used_rows,
    with_columns,
)
from pindown.equivalence.shrinking.result import Step
from pindown.equivalence.tuning import COEFFICIENT_STEP, MAX_FACTORED_ENTRIES, RANK_TOLERANCE, SHIFT_BITS
from pindown.model.operations.operation import Interval
from pindown.rounding import SMALLEST


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


def shift_above(lower: Array) -> Array:
    r"""Return short numbers :math:`\beta \ge 0` with ``lower + beta > 0``, or 0 where ``lower >= 0``.

    >>> shift_above(np.array([-1.0, 2.0, -256.5]))
    array([  1.015625,   0.      , 260.      ])
    """
    return np.array([_short_above(-low) if low < 0.0 else 0.0 for low in lower])


def _short_above(value: float) -> float:
    fraction, exponent = frexp(value)
    return ldexp(np.floor(ldexp(fraction, SHIFT_BITS)) + 2.0, exponent - SHIFT_BITS)


def carry_pairs(draft: Draft, layer: int) -> bool:
    """Replace every cancelling opposite pair of a hidden layer (from 0) by one always-on unit."""
    part = linear_part(draft, layer)
    lower = draft.bounds(layer).lower[part.pairs.first]
    chosen = part.cancels & np.isfinite(lower)
    if draft.box is None or not chosen.any():
        return False
    first, second = part.pairs.first[chosen], part.pairs.second[chosen]
    shift = shift_above(lower[chosen])
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    moved = add(bias[first], shift)
    new_bias, error = np.array(bias), np.zeros(len(bias))
    new_bias[first], error[first] = moved
    outward = affine_image(columns_of(following, first), -shift, offset)
    keep = np.ones(len(bias), dtype=bool)
    keep[second] = False
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = rows_of(weight, keep), new_bias[keep]
    layers[layer + 1] = columns_of(following, keep), outward.value
    known = list(draft.known)
    low, high = (np.array(end) for end in known[layer])
    low[first], high[first] = 0.0, np.inf
    known[layer] = pick(Interval(low, high), keep)
    units = tuple(sorted((*first.tolist(), *second.tolist())))
    reason = "opposite units whose work adds up to a linear map, which one always-on unit can carry"
    errors = {layer: (0.0, error[keep]), layer + 1: (0.0, outward.error)}
    return draft.propose(layers, errors, Step("linear pair", layer + 1, units, reason), known)


def merge_dependent(draft: Draft, layer: int) -> bool:
    """Remove always-on units of a hidden layer (from 0) whose rows depend on others'."""
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    on = np.flatnonzero(draft.bounds(layer).lower >= 0.0)
    if len(on) < 2 or len(on) * weight.shape[1] > MAX_FACTORED_ENTRIES:
        return False
    basis, others, X = _dependencies(np.asarray(dense(rows_of(weight, on))))
    if not len(others):
        return False
    basis, others = on[basis], on[others]
    columns = dense(columns_of(following, others))
    taken = matmul(columns, X)
    new = add(dense(columns_of(following, basis)), taken.value)
    rest = affine_image(-X, bias[basis], bias[others])
    shifted = affine_image(columns, rest.value, offset)
    wrong = np.zeros(len(offset))
    if rest.error.any():  # twice, for the product is rounded too, and it may underflow
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = 2.0 * np.abs(columns) @ rest.error + len(others) * SMALLEST
    keep = np.ones(len(bias), dtype=bool)
    keep[others] = False
    place = (np.cumsum(keep) - 1)[basis]
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = rows_of(weight, keep), bias[keep]
    staying = columns_of(following, keep)
    combined = Rounded(
        with_columns(staying, place, new.value),
        with_columns(staying * 0.0, place, sum_up(dense(taken.error), new.error)),
    )
    layers[layer + 1] = combined.value, shifted.value
    known = list(draft.known)
    known[layer] = pick(known[layer], keep)
    reason = f"never off {draft.where}, with rows that are combinations of other such units' rows"
    step = Step("narrowed", layer + 1, tuple(np.sort(others).tolist()), reason)
    errors = {layer + 1: (combined.error, sum_up(shifted.error, wrong))}
    return draft.propose(layers, errors, step, known)


def _dependencies(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Return a basis, rows that depend on it exactly, and their coefficients."""
    from scipy.linalg import lstsq, qr

    nothing = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros((0, 0))
    scale = np.abs(rows).max(axis=1)
    if not scale.all() or not 1e-100 < scale.min() <= scale.max() < 1e100:
        return nothing
    _, R, order = qr((rows / scale[:, None]).T, mode="economic", pivoting=True)
    sizes = np.abs(np.diag(R))
    rank = int((sizes > RANK_TOLERANCE * sizes[0]).sum())
    if rank == len(rows):
        return nothing
    basis, others = np.sort(order[:rank]), np.sort(order[rank:])
    solution = lstsq(rows[basis].T, rows[others].T)[0].T
    X = np.round(solution / COEFFICIENT_STEP) * COEFFICIENT_STEP
    product = matmul(X, rows[basis])
    exact = ((product.value == rows[others]) & (product.error == 0.0)).all(axis=1)
    return basis, others[exact], X[exact]
