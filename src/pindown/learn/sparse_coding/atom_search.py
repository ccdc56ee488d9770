r"""Where to begin: likely atoms of signals that are sums of a few atoms with positive entries.

Without a threshold the tied autoencoder has loss zero at every :math:`W = (U; -U)` with orthogonal U,
since :math:`\mathrm{relu}(t) - \mathrm{relu}(-t) = t`: from random signals descent goes there, and
finds no atom. So it begins near them: a signal is explained by the few atoms that are most alike, and
each atom becomes the direction of

.. math:: \sum_{y \text{ with atom } i} \big(y - P_y y + \langle w_i, y\rangle\, w_i\big),

with :math:`P_y` the projection on the signal's atoms. Atoms that are hardly used, and those nearly equal
to another, begin anew at what is explained worst.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from pindown.affine import Array, Integers
from pindown.learn.sparse_coding.tuning import (
    ATOM_ROUNDS,
    BLOCK_NUMBERS,
    MAX_ALIKE,
    MIN_USED,
    RESTARTING_SHARE,
)

_RIDGE = 1e-3  # of Gram matrices of atoms that are alike


def likely_atoms(signals: Array, n_atoms: int, per_signal: int, rng: np.random.RandomState) -> Array:
    """Return directions of length one that may be the atoms of signals.

    Args:
        signals: One per row.
        n_atoms: How many to find.
        per_signal: Atoms that explain a signal; fewer than there are still finds them.
        rng: Draws the signals to begin at.

    >>> signals = np.repeat(np.eye(3), 5, axis=0) * 2.0
    >>> found = likely_atoms(signals, 3, 1, np.random.RandomState(0))
    >>> sorted(found.argmax(axis=1).tolist()), found.max().round(6).item()
    ([0, 1, 2], 1.0)

    The residual means of Schnass 2018, "Convergence radius and sample complexity of ITKM algorithms".
    """
    per_signal = min(per_signal, n_atoms)
    W = _directions(signals[rng.randint(len(signals), size=n_atoms)], rng)
    for round_ in range(ATOM_ROUNDS):
        sums, used, missed = np.zeros_like(W), np.zeros(n_atoms), np.zeros(len(signals))
        for rows in _blocks(len(signals), per_signal * W.shape[1] + n_atoms):
            part, chosen, weights, left = _explained(signals[rows], W, per_signal)
            sums, used = sums + part, used + np.bincount(chosen, weights, n_atoms)
            missed[rows] = left
        W = _directions(sums, rng)
        if round_ < RESTARTING_SHARE * ATOM_ROUNDS:
            W = _restarted(W, used, signals, missed, rng)
    return W


def _blocks(n: int, numbers_each: int) -> Iterator[slice]:
    size = max(1, BLOCK_NUMBERS // numbers_each)
    return (slice(first, min(first + size, n)) for first in range(0, n, size))


def _explained(Y: Array, W: Array, per_signal: int) -> tuple[Array, Integers, Array, Array]:
    """Return sums of what each atom is made from, which atoms explain, whether, and what is left."""
    values = Y @ W.T
    chosen = np.argpartition(-values, per_signal - 1, axis=1)[:, :per_signal]
    along = np.maximum(np.take_along_axis(values, chosen, axis=1), 0.0)
    D = W[chosen]
    gram = D @ D.transpose(0, 2, 1) + _RIDGE * np.eye(per_signal)
    codes = np.linalg.solve(gram, along[:, :, None])
    left = Y - (codes * D).sum(axis=1)
    seen = (along > 0).astype(np.float64)
    made = (left[:, None] + along[:, :, None] * D).reshape(-1, W.shape[1])
    owners = csr_array(
        (seen.ravel(), (chosen.ravel(), np.arange(chosen.size))), shape=(len(W), chosen.size)
    )
    return owners @ made, chosen.ravel(), seen.ravel(), np.einsum("ij,ij->i", left, left)


def _restarted(
    W: Array, used: Array, signals: Array, missed: Array, rng: np.random.RandomState
) -> Array:
    """Put signals that are explained worst in place of atoms that are idle or doubled."""
    alike = np.triu(W @ W.T > MAX_ALIKE, 1)
    first, second = np.nonzero(alike)
    idle = np.flatnonzero(used < MIN_USED * used.mean())
    again = np.union1d(idle, np.where(used[first] < used[second], first, second))
    if not len(again) or not missed.any():
        return W
    W = W.copy()
    worst = np.argsort(-missed)[: 4 * len(again)]
    W[again] = _directions(signals[rng.choice(worst, len(again))], rng)
    return W


def _directions(rows: Array, rng: np.random.RandomState) -> Array:
    """Scale rows to length one; where there is nothing to scale, draw a direction."""
    lengths = np.linalg.norm(rows, axis=1)
    empty = lengths <= 1e-12 * (lengths.max(initial=0.0) or 1.0)
    rows = np.where(empty[:, None], rng.standard_normal(rows.shape), rows)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
