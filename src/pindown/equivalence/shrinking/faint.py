r"""Weights that are nothing but rounding, as merging units that cancel leaves them.

A weight is faint beside the others of its row, each times the size :math:`\|(W_i, b_i)\|` of the unit it
reads, so that the scales of units do not matter. Setting it to zero moves the layer as if it had been
off by its size. Unlike a bound on a unit's value this needs no box.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix, dense
from pindown.equivalence.shrinking.draft import Draft, Layer
from pindown.equivalence.shrinking.result import Step

_FAINT = 2.0**-42  # of the largest part of the row: what a few roundings leave; the gap decides


def clear_faint(draft: Draft, layer: int) -> bool:
    """Clear weights and biases of the layer after a hidden one (from 0) that are only rounding."""
    affine, (following, offset) = draft.net.layers[layer : layer + 2]
    sizes = _sizes(*affine)
    if not sp.issparse(following) and not _any_faint(following, offset, sizes):
        return False
    entries = sp.coo_array(following)
    with np.errstate(over="ignore", under="ignore"):
        parts = np.abs(entries.data) * sizes[entries.col]
    largest = np.abs(offset)
    np.maximum.at(largest, entries.row, parts)
    small = (parts <= _FAINT * largest[entries.row]) & (entries.data != 0.0)
    quiet = (np.abs(offset) <= _FAINT * largest) & (offset != 0.0)
    if not (small.any() or quiet.any()) or not np.isfinite(largest).all():
        return False
    where, rest = (entries.row[small], entries.col[small]), (entries.row[~small], entries.col[~small])
    error = sp.csr_array((np.abs(entries.data[small]), where), following.shape)
    cleared = sp.csr_array((entries.data[~small], rest), following.shape)
    layers: list[Layer] = list(draft.net.layers)
    weight = cleared if sp.issparse(following) else cleared.toarray()
    layers[layer + 1] = weight, np.where(quiet, 0.0, offset)
    errors = {layer + 1: (error, np.where(quiet, np.abs(offset), 0.0))}
    cost = draft.gap_bound(draft.net, errors, draft.tol - draft.gap)
    units = tuple(np.unique(entries.col[small]).tolist())
    count = int(small.sum() + quiet.sum())
    reason = f"{count} weights that read them are rounding beside the others, now zero"
    return draft.propose(layers, {}, Step("faint", layer + 1, units, reason), draft.known, cost=cost)


def _any_faint(weight: Array, offset: Array, sizes: Array) -> bool:
    """Return whether there is anything to clear: a look at large dense layers that mostly says no."""
    with np.errstate(over="ignore", under="ignore"):
        parts = np.abs(weight)
        parts *= sizes
        largest = np.maximum(np.abs(offset), parts.max(axis=1, initial=0.0))
        faint = parts <= (_FAINT * largest)[:, None]
    if faint.any() and (faint & (weight != 0.0)).any():
        return True
    return bool(((np.abs(offset) <= _FAINT * largest) & (offset != 0.0)).any())


def _sizes(weight: Matrix, bias: Array) -> Array:
    """Return the largest number of each unit's row and bias."""
    rows = np.asarray(dense(abs(weight).max(axis=1))).reshape(-1)
    return np.maximum(rows, np.abs(bias))
