r"""The network :math:`N(x) = \sum_i a_i \max_j \mathrm{relu}(w_i \cdot x[j])`, and how it trains.

Units train first and alone, as the theorem says, or both layers together, as practice does. What was
learnt is read off as one direction for each class, and the network is written exactly with ReLUs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from pindown.affine import Array, compact
from pindown.learn.max_pooling.layerwise import LayerwiseSchedule
from pindown.learn.max_pooling.tuning import (
    JOINT_BATCH,
    MAX_CHUNK_NUMBERS,
    MAX_CLUSTERED_UNITS,
    SAME_DIRECTION_COSINE,
)
from pindown.network import ReluNetwork
from pindown.progress import watched


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
    for t in watched(range(schedule.n_steps + 1), "units", verbose=verbose):
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
    rows = max(1, MAX_CHUNK_NUMBERS // (X.shape[1] * len(W)))
    return (slice(start, start + rows) for start in range(0, len(X), rows))


def max_pool_network(W: Array, a: Array, n_patches: int, *, bias: float = 0.0) -> ReluNetwork:
    r"""Return :math:`x \mapsto \sum_i a_i \max_j \mathrm{relu}(w_i \cdot x[j]) + b` as a ReLU network.

    Maxima are trees of :math:`\max(u, v) = u + \mathrm{relu}(v - u)` with
    :math:`\lceil \log_2(n + 1) \rceil` hidden layers; one of the numbers compared is 0.

    Args:
        W: Units (k, patch_dim).
        a: Output weights (k,).
        n_patches: Patches n; the input is their concatenation, and also taken as (n, patch_dim).
        bias: b.

    Returns:
        The network, with ``input_shape`` (n_patches, patch_dim).

    Example:
        >>> net = max_pool_network(np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]), 3)
        >>> net([[5.0, -1.0, 2.0], [-4.0, -1.0, -2.0]]).ravel().tolist()  # 2 max(x, 0) + max(-x, 0)
        [11.0, 4.0]
    """
    from pindown.circuits.extrema import rectified_maxima

    k, d = W.shape
    # Scores of one unit lie side by side: row i * n + j is unit i on patch j.
    spread = sp.kron(sp.csr_array(W[:, None, :].reshape(k, d)), sp.eye_array(n_patches), format="csr")
    order = np.arange(n_patches * d).reshape(n_patches, d).T.ravel()
    columns = np.empty_like(order)
    columns[order] = np.arange(n_patches * d)
    scores = sp.csr_array(spread)[:, columns]
    (first, no_bias), *middle, (last, _) = rectified_maxima(n_patches, k).layers
    layers = [
        (compact(sp.csr_array(first) @ scores), no_bias),
        *middle,
        (a[None, :] @ last, [bias]),
    ]
    return ReluNetwork.from_layers(layers, input_shape=(n_patches, d))


def class_directions(W: Array, a: Array) -> tuple[Array, Array]:
    """Return the direction with most weight around it, for the negative and the positive class.

    Args:
        W: Units (k, d).
        a: Output weights (k,); a unit belongs to the class of its sign.

    Returns:
        Directions of norm one (2, d), zero if a class has no unit, and their shares of its weight.

    Example:
        >>> directions, shares = class_directions(np.eye(2), np.array([1.0, -3.0]))
        >>> directions.tolist(), shares.tolist()
        ([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])
    """
    norms = np.linalg.norm(W, axis=1)
    directions = W / np.where(norms > 0.0, norms, 1.0)[:, None]
    mass = np.abs(a) * norms
    patterns, shares = np.zeros((2, W.shape[1])), np.zeros(2)
    for row, sign in enumerate((-1.0, 1.0)):
        mine = np.flatnonzero((np.sign(a) == sign) & (mass > 0.0))
        if not len(mine):
            continue
        mine = mine[np.argsort(-mass[mine], kind="stable")[:MAX_CLUSTERED_UNITS]]
        near = directions[mine] @ directions[mine].T >= SAME_DIRECTION_COSINE
        around = near @ mass[mine]
        group = mine[near[around.argmax()]]
        mean = mass[group] @ directions[group]
        patterns[row] = mean / np.linalg.norm(mean)
        shares[row] = mass[group].sum() / mass[np.sign(a) == sign].sum()
    return patterns, shares


def joint_training(
    X: Array,
    y: Array,
    n_units: int,
    *,
    n_epochs: int,
    learning_rate: float,
    seed: int,
    verbose: int = 0,
    device: Any = "cpu",
) -> tuple[Array, Array, int]:
    """Return units, output weights and finished epochs of training on the logistic loss.

    An interruption keeps the weights there are, with a warning.

    Args:
        X: Points (m, n, d), patches of norm at most one.
        y: Labels 1 and -1.
        n_units: Hidden units.
        n_epochs: Passes through the data in batches of 256.
        learning_rate: Adam's.
        seed: Seed of start and batches.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.
        device: Where to train; start and batches are drawn on the processor.

    Raises:
        ValueError: If the weights left the finite numbers.
    """
    from pindown.extras import torch

    generator = torch.Generator().manual_seed(seed)
    points, labels = (torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in (X, y))
    d = X.shape[2]
    W = torch.randn(n_units, d, generator=generator, dtype=torch.float64) / d**0.5
    a = torch.randn(n_units, generator=generator, dtype=torch.float64) / n_units**0.5
    W, a = W.to(device).requires_grad_(), a.to(device).requires_grad_()
    optimizer = torch.optim.Adam([W, a], lr=learning_rate)
    done = 0
    try:
        for epoch in watched(range(n_epochs), "joint training", verbose=verbose):
            for batch in torch.randperm(len(X), generator=generator).split(JOINT_BATCH):
                optimizer.zero_grad()
                scores = torch.relu((points[batch] @ W.T).amax(dim=1)) @ a
                torch.nn.functional.softplus(-labels[batch] * scores).mean().backward()
                optimizer.step()
            done = epoch + 1
    except KeyboardInterrupt:
        warnings.warn("interrupted: the weights so far are kept", stacklevel=4)
    if not bool(torch.isfinite(W).all() and torch.isfinite(a).all()):
        raise ValueError(
            f"joint training diverged with learning_rate {learning_rate:g}; use a smaller one."
        )
    return W.detach().cpu().numpy().copy(), a.detach().cpu().numpy().copy(), done
