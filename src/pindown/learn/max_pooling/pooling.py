r"""The network :math:`N(x) = \sum_i a_i \max_j \mathrm{relu}(w_i \cdot x[j])` and how units train."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from pindown.affine import Array
from pindown.learn.gates.progress import watched
from pindown.learn.max_pooling.schedule import LayerwiseSchedule

# Scores of one chunk of points take at most this many numbers.
_CHUNK_NUMBERS = 4_000_000


def pooled(X: Array, W: Array) -> Array:
    r"""Return :math:`z_i(x) = \max_j \mathrm{relu}(w_i \cdot x[j])`: (m, n, d), (k, d) -> (m, k).

    >>> pooled(np.array([[[1.0], [-3.0]]]), np.array([[2.0], [-1.0]]))
    array([[2., 3.]])
    """
    z = np.empty((len(X), len(W)))
    for part in _parts(X, W):
        np.maximum((X[part] @ W.T).max(axis=1), 0.0, out=z[part])
    return z


def longest_patch(X: Array) -> float:
    """Return the largest norm of a patch, or 1 if all are zero, without overflow or underflow.

    >>> longest_patch(np.array([[[3e-200, 4e-200], [0.0, 0.0]]]))
    5e-200
    """
    peak = float(np.abs(X).max())
    if peak == 0.0:
        return 1.0
    length = peak * float(np.linalg.norm(X / peak, axis=2).max())
    if not np.isfinite(length):
        raise ValueError("patches are too large for float64 arithmetic; scale X down.")
    return length


def initial_weights(schedule: LayerwiseSchedule, patch_dim: int, rng: Any) -> tuple[Array, Array]:
    """Return units uniform on the sphere of the schedule's radius and output weights 1 or -1."""
    W = rng.standard_normal((schedule.n_units, patch_dim))
    W *= schedule.radius / np.linalg.norm(W, axis=1, keepdims=True)
    return W, np.where(rng.random(schedule.n_units) < 0.5, 1.0, -1.0)


def first_phase(
    X: Array,
    y: Array,
    W: Array,
    a: Array,
    schedule: LayerwiseSchedule,
    watch: Callable[[int, Array, Array], None] | None = None,
    verbose: int = 0,
) -> Array:
    r"""Run :math:`T_1` steps of gradient descent on the units; output weights stay.

    .. math:: w_i \leftarrow w_i + \frac{\eta_1}{m} \sum_x \frac{y\, a_i}{1 + e^{y N(x)}}\,
              1[z_i(x) > 0]\, x[j_i(x)],

    with :math:`j_i(x)` the patch that unit i likes best.

    Args:
        X: Points, (m, n, d).
        y: Labels 1 and -1.
        W: Units at the start, (k, d); not changed.
        a: Output weights (k,).
        schedule: Steps and step size.
        watch: Called with the step, the units and the outputs :math:`N(x)` before every step and at the
            end.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Returns:
        The units after the last step.

    Brutzkus and Globerson 2021, supplement (3).
    """
    W = W.copy()
    outputs = np.empty(len(X))
    for t in watched(schedule.n_steps + 1, verbose, "units"):
        total = np.zeros_like(W)
        for part in _parts(X, W):
            best, z = _best_patches(X[part], W)
            outputs[part] = z @ a
            pull = (y[part] * expit(-y[part] * outputs[part]) / len(X))[:, None] * (z > 0.0)  # (m, k)
            total += _gathered(X[part], best, pull)
        if watch is not None:
            watch(t, W, outputs)
        if t < schedule.n_steps:
            W += schedule.step * a[:, None] * total
    return W


def _best_patches(X: Array, W: Array) -> tuple[NDArray[np.int32], Array]:
    """Return the index of each unit's best patch, the first of equals, and its rectified score."""
    best, z = np.zeros((len(X), len(W)), np.int32), X[:, 0] @ W.T
    for j in range(1, X.shape[1]):
        scores = X[:, j] @ W.T
        np.copyto(best, j, where=scores > z)
        np.maximum(z, scores, out=z)
    return best, np.maximum(z, 0.0, out=z)


def _gathered(X: Array, best: NDArray[np.int32], pull: Array) -> Array:
    """Return the sum over points of pull times the best patch, for every unit: (k, d)."""
    (m, k), (n, d) = pull.shape, X.shape[1:]
    # Row i of this matrix has one entry per point, in the column of its patch: m k numbers, not m n k.
    columns = (n * np.arange(m, dtype=np.int64)[:, None] + best).T.ravel()
    chosen = csr_array((pull.T.ravel(), columns, m * np.arange(k + 1)), shape=(k, m * n))
    return np.asarray(chosen @ X.reshape(m * n, d))


def _parts(X: Array, W: Array) -> Iterator[slice]:
    """Return slices of points whose scores fit in a chunk."""
    rows = max(1, _CHUNK_NUMBERS // (X.shape[1] * len(W)))
    return (slice(start, start + rows) for start in range(0, len(X), rows))
