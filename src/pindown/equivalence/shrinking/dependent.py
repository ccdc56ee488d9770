r"""Always-on units whose rows depend linearly on those of others.

If all units of S are always on and :math:`W_j = \sum_{i \in S} X_{ji} W_i`, then

.. math::
    \rho(z_j) = z_j = \sum_i X_{ji}\, \rho(z_i) + \Big( b_j - \sum_i X_{ji} b_i \Big),

so the others take over unit j's work and the next bias the rest. The coefficients come from a
least-squares solution; they count only if they satisfy the equation in exact arithmetic.

Phuong 2021, section 2.2 (the rank conditions of general networks).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.equivalence.shrinking.columns import columns_of, rows_of, with_columns
from pindown.equivalence.shrinking.draft import Draft, Layer, pick
from pindown.equivalence.shrinking.products import Rounded, add, affine_image, matmul, sum_up
from pindown.equivalence.shrinking.result import Step
from pindown.rounding import SMALLEST

# Larger matrices of always-on rows are not factorised (a second on one core).
_MOST_ENTRIES = 2**21
_RANK_TOLERANCE = 1e-9  # only chooses candidates
_COEFFICIENT_STEP = 2.0**-20  # coefficients are looked for among its multiples


def merge_dependent(draft: Draft, layer: int) -> bool:
    """Remove always-on units of a hidden layer (from 0) whose rows depend on others'."""
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    on = np.flatnonzero(draft.bounds(layer).lower >= 0.0)
    if len(on) < 2 or len(on) * weight.shape[1] > _MOST_ENTRIES:
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
    rank = int((sizes > _RANK_TOLERANCE * sizes[0]).sum())
    if rank == len(rows):
        return nothing
    basis, others = np.sort(order[:rank]), np.sort(order[rank:])
    solution = lstsq(rows[basis].T, rows[others].T)[0].T
    X = np.round(solution / _COEFFICIENT_STEP) * _COEFFICIENT_STEP
    product = matmul(X, rows[basis])
    exact = ((product.value == rows[others]) & (product.error == 0.0)).all(axis=1)
    return basis, others[exact], X[exact]
