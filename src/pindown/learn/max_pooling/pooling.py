r"""The network :math:`N(x) = \sum_i a_i \max_j \mathrm{relu}(w_i \cdot x[j])` and how units train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from pindown.affine import Array
from pindown.learn.max_pooling.schedule import LayerwiseSchedule

# Scores of one chunk of points take at most this many numbers.
_CHUNK_NUMBERS = 4_000_000


def pooled(X: Array, W: Array) -> Array:
    r"""Return :math:`z_i(x) = \max_j \mathrm{relu}(w_i \cdot x[j])`: (m, n, d), (k, d) -> (m, k).

    >>> pooled(np.array([[[1.0], [-3.0]]]), np.array([[2.0], [-1.0]]))
    array([[2., 3.]])
    """
    z = np.empty((len(X), len(W)))
    rows = max(1, _CHUNK_NUMBERS // (X.shape[1] * len(W)))
    for start in range(0, len(X), rows):
        part = slice(start, start + rows)
        np.maximum((X[part] @ W.T).max(axis=1), 0.0, out=z[part])
    return z


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

    Returns:
        The units after the last step.

    Brutzkus and Globerson 2021, supplement (3).
    """
    W = W.copy()
    for t in range(schedule.n_steps + 1):
        best, z = _best_patches(X, W)
        outputs = z @ a
        if watch is not None:
            watch(t, W, outputs)
        if t < schedule.n_steps:
            pull = (y * expit(-y * outputs) / len(X))[:, None] * (z > 0.0)  # (m, k)
            W += schedule.step * a[:, None] * _gathered(X, best, pull)
    return W


def _best_patches(X: Array, W: Array) -> tuple[Any, Array]:
    """Return the index of each unit's best patch and its rectified score."""
    scores = X @ W.T
    best = scores.argmax(axis=1)
    z = np.take_along_axis(scores, best[:, None, :], axis=1)[:, 0, :]
    return best, np.maximum(z, 0.0)


def _gathered(X: Array, best: Any, pull: Array) -> Array:
    """Return the sum over points of pull times the best patch, for every unit: (k, d)."""
    total = np.zeros((pull.shape[1], X.shape[2]))
    for j in range(X.shape[1]):
        total += np.where(best == j, pull, 0.0).T @ X[:, j, :]
    return total
