r"""The tied autoencoder :math:`\hat y = W^\top \mathrm{relu}(W y - \epsilon)`: loss, gradient, descent.

How near descent came to a dictionary is measured row by row and after the best matching.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.sparse_coding.tuning import (
    ARMIJO_SHARE,
    FIRST_MOVE_SHARE,
    MAX_HALVINGS,
    STEP_GROWTH,
    STEP_SHRINK,
)
from pindown.progress import watched


def reconstruction_loss(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> float:
    r"""Return the mean of :math:`\frac12 \lVert W^\top \mathrm{relu}(W y - \epsilon) - y \rVert^2`.

    With an orthogonal dictionary, codes that are not negative and no threshold, the dictionary itself
    has loss zero.

    >>> reconstruction_loss(np.eye(2), [[1.0, 3.0]]), reconstruction_loss(np.eye(2), [[1.0, 3.0]], 1.0)
    (0.0, 1.0)

    Mukherjee 2020, (4.1).
    """
    return loss_and_gradient(W, Y, threshold)[0]


def loss_and_gradient(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> tuple[float, Array]:
    r"""Return the mean loss and its gradient in W.

    For one signal, with :math:`F = \hat y - y`,

    .. math:: \frac{\partial L}{\partial W_i} = 1[W_i y > \epsilon_i]\,
              \big( (W_i y - \epsilon_i)\, F + \langle W_i, F \rangle\, y \big):

    the first part comes from the decoder, the second from the encoder.

    Args:
        W: Weights (h, n).
        Y: Signals, one per row.
        threshold: :math:`\epsilon`, one number or one per unit.

    Returns:
        The loss and the gradient (h, n).

    >>> loss, gradient = loss_and_gradient([[1.0, 0.0], [0.0, 1.0]], [[3.0, 0.0]])
    >>> loss, gradient.tolist()
    (0.0, [[0.0, 0.0], [0.0, 0.0]])

    Mukherjee 2020, section 4.5.1.
    """
    V, signals, eps = checked(W, Y, threshold)
    R = np.maximum(signals @ V.T - eps, 0.0)
    F = R @ V - signals
    encoder = np.where(R > 0.0, F @ V.T, 0.0)
    gradient = (R.T @ F + encoder.T @ signals) / len(signals)
    return float(0.5 * np.mean(np.sum(F * F, axis=1))), gradient


def dead_fraction(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike = 0.0) -> float:
    """Return the share of units that are off on every signal.

    >>> dead_fraction(np.eye(2), [[1.0, 0.0]])
    0.5
    """
    V, signals, eps = checked(W, Y, threshold)
    on = (signals @ V.T > eps).any(axis=0)
    return float(1.0 - on.mean())


def checked(W: ArrayLike, Y: ArrayLike, threshold: ArrayLike) -> tuple[Array, Array, Array]:
    """Return weights (h, n), signals (N, n) and the threshold as arrays that fit each other.

    Raises:
        ValueError: If they do not fit, or there is no signal.
    """
    V, signals = np.asarray(W, dtype=np.float64), np.atleast_2d(np.asarray(Y, dtype=np.float64))
    eps = np.asarray(threshold, dtype=np.float64)
    if V.ndim != 2 or signals.ndim != 2 or V.shape[1:] != signals.shape[1:] or 0 in signals.shape:
        raise ValueError(f"W (h, n) and signals (N, n) must match; got {V.shape} and {signals.shape}.")
    if eps.shape not in ((), (1,), (len(V),)):
        raise ValueError(f"threshold must be one number, or {len(V)}; got shape {eps.shape}.")
    return V, signals, eps


@dataclass(frozen=True, eq=False)
class Descent:
    """A finished run.

    Attributes:
        weights: W, (h, n).
        losses: Loss at the start and after every step; it never rises.
        gradient_ratio: Norm of the last gradient divided by that of the first.
        n_iter: Steps.
        converged: Whether the gradient fell below the tolerance.
        interrupted: Whether it was stopped from outside; the weights so far are kept.
    """

    weights: Array
    losses: Array
    gradient_ratio: float
    n_iter: int
    converged: bool
    interrupted: bool = False

    def __str__(self) -> str:
        return (
            f"loss {self.losses[0]:.4g} to {self.losses[-1]:.4g} in {self.n_iter} steps, "
            f"gradient down to {self.gradient_ratio:.2g} of its start"
        )


def descend(
    W: ArrayLike,
    Y: Array,
    threshold: ArrayLike = 0.0,
    *,
    max_iter: int = 500,
    tol: float = 2e-5,
    step: float | None = None,
    watch: Callable[[int, float], None] | None = None,
    verbose: int = 0,
) -> Descent:
    r"""Run full-batch gradient descent until the gradient is ``tol`` of its first norm.

    Args:
        W: Weights at the start (h, n).
        Y: Signals, one per row.
        threshold: :math:`\epsilon`, one number or one per unit.
        max_iter: Most steps.
        tol: Share of the first gradient norm at which to stop; the source has 2e-5.
        step: First step size; None for 1, or less if the weights would move by more than a tenth.
            Steps are halved until the loss falls, and grow again.
        watch: Called with every step's number and loss.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Returns:
        The run.

    Example:
        >>> run = descend(0.8 * np.eye(2), np.array([[1.0, 0.0], [0.0, 1.0]]), tol=1e-9)
        >>> run.weights.round(6).tolist()
        [[1.0, 0.0], [0.0, 1.0]]

    Mukherjee 2020, section 4.6; step size and stopping within a step are ours, the source has none.
    """
    V = np.array(W, dtype=np.float64)
    loss, gradient = loss_and_gradient(V, Y, threshold)
    first = float(np.linalg.norm(gradient))
    losses, ratio, size = [loss], 1.0 if first else 0.0, 1.0 if step is None else float(step)
    if step is None and first > 0:
        size = min(size, FIRST_MOVE_SHARE * float(np.linalg.norm(V)) / first or size)
    interrupted = False
    try:
        for _ in watched(range(max_iter), "descent", verbose=verbose):
            if not ratio > tol:
                break
            found = _lower(V, Y, threshold, loss, gradient, size)
            if found is None:
                break  # no step lowers the loss in floating point
            V, loss, gradient, size = found
            size *= STEP_GROWTH
            losses.append(loss)
            ratio = float(np.linalg.norm(gradient)) / first
            if watch is not None:
                watch(len(losses) - 1, loss)
    except KeyboardInterrupt:
        warnings.warn("interrupted: the weights so far are kept", stacklevel=3)
        interrupted = True
    return Descent(V, np.array(losses), ratio, len(losses) - 1, ratio <= tol, interrupted)


def _lower(
    V: Array, Y: Array, threshold: ArrayLike, loss: float, gradient: Array, size: float
) -> tuple[Array, float, Array, float] | None:
    """Return weights with a lower loss, it and its gradient, and the step that led there."""
    steepness = float(np.sum(gradient**2))
    for _ in range(MAX_HALVINGS):
        moved = V - size * gradient
        with np.errstate(over="ignore", invalid="ignore"):  # a step that overflows is halved
            new_loss, new_gradient = loss_and_gradient(moved, Y, threshold)
        if new_loss <= loss - ARMIJO_SHARE * size * steepness:
            return moved, new_loss, new_gradient, size
        size *= STEP_SHRINK
    return None


@dataclass(frozen=True)
class DictionaryError:
    """How far weights are from a dictionary.

    Attributes:
        columnwise: Mean distance of row i to atom i.
        matched: Mean distance after the best matching of rows to atoms, with signs.
        direction: Mean distance of the matched rows after they are scaled to norm one.
        zero: What the zero matrix scores: 1, the norm of an atom.
    """

    columnwise: float
    matched: float
    direction: float
    zero: float = 1.0

    @property
    def worse_than_zero(self) -> bool:
        """Whether the zero matrix would be nearer, row by row."""
        return self.columnwise >= self.zero

    def __str__(self) -> str:
        return (
            f"mean distance {self.columnwise:.4g} row by row, {self.matched:.4g} matched, "
            f"{self.direction:.4g} in direction (the zero matrix has {self.zero:g} row by row)"
        )


def dictionary_error(W: ArrayLike, dictionary: ArrayLike) -> DictionaryError:
    r"""Compare weights with atoms, row by row and after the best permutation and signs.

    Args:
        W: Weights (h, n).
        dictionary: Atoms as columns (n, h).

    Example:
        >>> print(dictionary_error([[0.0, 1.0], [-1.0, 0.0]], np.eye(2)))
        mean distance 1.414 row by row, 0 matched, 0 in direction (the zero matrix has 1 row by row)
    """
    from scipy.optimize import linear_sum_assignment

    V, A = np.asarray(W, dtype=np.float64), np.asarray(dictionary, dtype=np.float64).T
    if V.shape != A.shape:
        raise ValueError(f"W (h, n) must have a row per atom, {A.shape}; got {V.shape}.")
    own = np.linalg.norm(V - A, axis=1)
    products = np.abs(V @ A.T)
    squares = (V**2).sum(axis=1)[:, None] + (A**2).sum(axis=1)[None, :] - 2 * products
    distances = np.sqrt(np.maximum(squares, 0.0))
    rows, columns = linear_sum_assignment(distances)
    norms = np.linalg.norm(V, axis=1)[rows]
    cosines = products[rows, columns] / np.where(norms > 0.0, norms, 1.0)
    direction = np.sqrt(np.maximum(2.0 - 2.0 * cosines, 0.0))
    matched = distances[rows, columns]
    return DictionaryError(float(own.mean()), float(matched.mean()), float(direction.mean()))
