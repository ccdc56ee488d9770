r"""The distillation loss of a linear student, its gradient, its descent, and how fast gradient flow is.

With teacher logits :math:`z_i` and soft labels :math:`y_i = \sigma(z_i)`,

.. math:: \ell(w) = \frac1n \sum_i \big[\mathrm{softplus}(u_i) - \mathrm{softplus}(z_i)
          - y_i (u_i - z_i)\big] \ge 0, \quad u_i = w \cdot x_i, \qquad
          \nabla \ell(w) = \frac1n \sum_i (\sigma(u_i) - \sigma(z_i))\, x_i \in \mathrm{span}(X)

so that the least loss is 0, at all w with :math:`w \cdot x_i = z_i`, if there are any. Several columns
of logits have the softmax in place of :math:`\sigma`.

Gradient descent from zero,

.. math:: w_{t+1} = w_t - \eta \nabla \ell(w_t), \qquad \eta = 4n / \lambda_{\max}(X^\top X)

stays in the span of the inputs, also with momentum, so where the logits can be met the limit is the
closed form. Where they cannot (more inputs than dimensions, a teacher that is not linear) the limit is
the student of least cross-entropy, and the closed form that of least squares.

Phuong 2021, appendix D.1.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, logsumexp, softmax

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.distillation.student import centred, inputs_and_logits, minimum_norm
from pindown.progress import watched
from pindown.validation import integer, positive

_NEARBY = 0.5  # distance of logits from which a difference of softmaxes loses no digits to speak of


def distillation_loss(w: ArrayLike, X: ArrayLike, logits: ArrayLike) -> float:
    """Return the mean divergence of the student's answers from the teacher's.

    Args:
        w: Student's weights, (d,) or (d, k).
        X: Inputs, (n, d).
        logits: The teacher's logits at the inputs, (n,) or (n, k).

    >>> distillation_loss([2.0], [[1.0]], [2.0]), round(distillation_loss([0.0], [[1.0]], [50.0]), 6)
    (0.0, 0.693147)
    """
    rows, z = inputs_and_logits(X, logits)
    u = rows @ np.asarray(w, dtype=np.float64)
    return float(np.mean(_divergences(u, z)))


def _divergences(u: Array, z: Array) -> Array:
    if u.ndim == 2 and u.shape[1] > 1:
        own = log_softmax(z, axis=1)
        parts = np.sum(np.exp(own) * (z - u), axis=1) + logsumexp(u, axis=1) - logsumexp(z, axis=1)
    else:
        parts = np.logaddexp(0.0, u) - np.logaddexp(0.0, z) - expit(z) * (u - z)
    return np.maximum(parts, 0.0)  # rounding may leave -1e-17


def distillation_gradient(w: ArrayLike, X: ArrayLike, logits: ArrayLike) -> Array:
    """Return the gradient of :func:`distillation_loss`, of the shape of w.

    >>> distillation_gradient([0.0], [[2.0]], [50.0])
    array([-1.])
    """
    rows, z = inputs_and_logits(X, logits)
    return slopes(rows @ np.asarray(w, dtype=np.float64), z, rows)


def slopes(u: Array, z: Array, rows: Array) -> Array:
    """Return the gradient from the student's logits u; no checks."""
    if u.ndim == 2 and u.shape[1] > 1:
        return np.asarray(rows.T @ _softmax_gap(u, z) / len(rows))
    # The difference of two sigmoids that are both near one, without taking it.
    gap = np.where(u >= z, expit(u) * expit(-z), expit(z) * expit(-u)) * -np.expm1(-np.abs(u - z))
    return np.asarray(rows.T @ (np.sign(u - z) * gap) / len(rows))


def _softmax_gap(u: Array, z: Array) -> Array:
    """Return softmax(u) - softmax(z); near z without taking the difference."""
    chances, moved = softmax(z, axis=1), u - z
    far = np.abs(moved).max(axis=1, keepdims=True) > _NEARBY
    small = np.where(far, 0.0, moved)
    mean = np.log1p(np.sum(chances * np.expm1(small), axis=1, keepdims=True))
    return np.where(far, softmax(u, axis=1) - chances, chances * np.expm1(small - mean))


def improves_on_zero(w: Array, rows: Array, z: Array) -> bool:
    """Whether weights have a smaller loss than zero, also where both losses round to one number."""
    if distillation_loss(w, rows, z) < distillation_loss(np.zeros_like(w), rows, z):
        return True
    slope = float(slopes(np.zeros(len(z)), z, rows) @ w)
    return slope + 0.5 * smoothness(rows) * float(w @ w) < 0.0


def smoothness(X: Array, columns: int = 1) -> float:
    r"""Return a Lipschitz constant of the gradient: :math:`\lambda_{\max}(X^\top X) / 4n`.

    For several columns of logits it is twice that.

    >>> round(smoothness(np.array([[2.0], [2.0]])), 9)
    1.0
    """
    return float(np.linalg.norm(X, 2)) ** 2 / ((4 if columns == 1 else 2) * len(X))


@dataclass(frozen=True)
class FlowRate:
    r"""An exponential envelope of gradient flow on the distillation loss from zero.

    .. math:: \ell(t) \le \ell(0)\, e^{-2 \mu t}, \qquad
              \lVert w(t) - \hat w \rVert^2 \le \tfrac{2}{\mu} \ell(t), \qquad
              \mu = \omega\, \lambda_{\min}^+(X^\top X) / n

    Attributes:
        mu: The constant of restricted strong convexity.
        curvature: :math:`\omega`, the least curvature of the sigmoid on the way.
        reach: K, a bound on the logits on the way.
        start_loss: The loss at zero.
    """

    mu: float
    curvature: float
    reach: float
    start_loss: float
    kind: Kind = "exact"

    def loss(self, time: ArrayLike) -> Array:
        """Return the envelope of the loss at these times."""
        return np.asarray(self.start_loss * np.exp(-2.0 * self.mu * np.asarray(time, dtype=np.float64)))

    def distance(self, time: ArrayLike) -> Array:
        """Return the envelope of the distance to the limit at these times."""
        return np.asarray(np.sqrt(2.0 / self.mu * self.loss(time)))

    def __str__(self) -> str:
        return (
            f"the loss falls from {self.start_loss:.4g} at least like exp(-{2 * self.mu:.3g} t) "
            "(exact; Phuong 2021, Theorem 5.1 with the rate corrected)"
        )


def flow_rate(X: ArrayLike, logits: ArrayLike) -> FlowRate:
    """Return how fast gradient flow from zero distils one column of logits that can be met.

    Args:
        X: Inputs, (n, d), not all zero.
        logits: The teacher's logits, (n,); a linear function of the inputs.

    Raises:
        ValueError: If no linear student has these logits, or X is zero.

    Example:
        One input 1 and a teacher of weight 0.1: nearly a parabola of curvature 1/4.

        >>> rate = flow_rate([[1.0]], [0.1])
        >>> round(rate.mu, 3), round(rate.start_loss, 5)
        (0.248, 0.00125)

    Phuong 2021, Theorem D.3, Corollary D.1 and Theorem 5.1; the 1/n of the Hessian was lost there, and
    the exponent can be doubled.
    """
    rows, z = inputs_and_logits(X, logits)
    if z.ndim != 1:
        raise ValueError(f"flow_rate takes one column of logits, (n,); got shape {z.shape}.")
    student = minimum_norm(rows, z)
    if not student.rank or not student.interpolates:
        raise ValueError("no linear student meets these logits exactly, so there is no such rate.")
    loss = float(np.mean(_divergences(np.zeros_like(z), z)))
    # Two ways to confine a logit: by the loss, as in the source, and because the distance to the limit
    # of a convex flow never grows, so that it stays below the length of the limit.
    moved = np.linalg.norm(rows, axis=1) * float(np.linalg.norm(student.weights))
    reach = max(
        min(_farthest(value, len(z) * loss), abs(value) + far)
        for value, far in zip(z, moved, strict=True)
    )
    reach = float(reach)
    curvature = float(expit(reach) * expit(-reach))
    singular = np.linalg.svd(rows, compute_uv=False)[student.rank - 1]
    return FlowRate(curvature * float(singular) ** 2 / len(rows), curvature, reach, loss)


def _farthest(z: float, level: float) -> float:
    """Return the largest size of u with a divergence from z of at most ``level``."""

    def excess(u: float) -> float:
        return float(_divergences(np.array([u]), np.array([z]))[0]) - level

    ends = [abs(z)]
    for sign in (-1.0, 1.0):
        far = 1.0
        while excess(z + sign * far) <= 0 and far < 2.0**40:
            far *= 2.0
        if level > 0:
            ends.append(abs(float(brentq(excess, z, z + sign * far))))
    return math.nextafter(max(ends), math.inf)


@dataclass(frozen=True, eq=False)
class Descent:
    """Where gradient descent ended.

    Attributes:
        weights: (d,) or (d, k).
        n_iter: Steps taken.
        gradient: Norm of the gradient at the end, as a share of that at the start.
        converged: Whether that is below the tolerance.
    """

    weights: Array
    n_iter: int
    gradient: float
    converged: bool

    def __str__(self) -> str:
        state = "converged" if self.converged else "not converged"
        return f"{state} after {self.n_iter:,} steps, gradient {self.gradient:.2g} of the first"


def distillation_descent(
    X: ArrayLike,
    logits: ArrayLike,
    *,
    accelerated: bool = True,
    whitened: bool = False,
    tol: float = 1e-13,
    max_iter: int = 100_000,
    verbose: int = 0,
) -> Descent:
    """Descend on the distillation loss from zero.

    Args:
        X: Inputs, (n, d).
        logits: The teacher's logits, (n,); several columns (n, k) are centred.
        accelerated: Momentum with restarts; False is plain gradient descent, with the same limit.
        whitened: Descend in coordinates of the span in which the inputs are white: far fewer steps for
            inputs of uneven length, the same limit.
        tol: Stop when the gradient is below this share of the first one.
        max_iter: Most steps.
        verbose: 0 for silence; else a progress bar after two seconds, on a terminal.

    Example:
        >>> distillation_descent([[2.0, 0.0]], [2.0]).weights.round(9)
        array([1., 0.])

    Phuong 2021, Theorem 5.1.
    """
    rows, z = inputs_and_logits(X, logits)
    z, steps, tol = centred(z), integer("max_iter", max_iter), positive("tol", tol, zero=True)
    if whitened:
        white, back = _whitened(rows)
        done = distillation_descent(
            white, z, accelerated=accelerated, tol=tol, max_iter=steps, verbose=verbose
        )
        return replace(done, weights=back @ done.weights)
    bend = smoothness(rows, 1 if z.ndim == 1 else z.shape[1])
    w = np.zeros((rows.shape[1], *z.shape[1:]))
    if bend == 0.0:  # all inputs are zero: nothing to learn from
        return Descent(w, 0, 0.0, True)
    ahead, pace, first, size, taken = w, 1.0, 0.0, np.inf, 0
    try:
        for taken in watched(range(steps + 1), "distillation", verbose=verbose):
            slope = slopes(rows @ ahead, z, rows)
            size = float(np.linalg.norm(slope))
            first = first or size
            if size <= tol * first or taken == steps:
                break
            new = ahead - slope / bend
            # Momentum against the slope is dropped: without this, it swings around the minimum.
            if not accelerated or float(np.vdot(slope, new - w)) > 0:
                pace = 1.0
            following = (1 + (1 + 4 * pace**2) ** 0.5) / 2
            ahead = new + ((pace - 1) / following if accelerated else 0.0) * (new - w)
            w, pace = new, following if accelerated else 1.0
    except KeyboardInterrupt:
        warnings.warn("interrupted: the weights so far are kept", stacklevel=2)
    return Descent(ahead, taken, size / first if first else 0.0, size <= tol * first)


def _whitened(rows: Array) -> tuple[Array, Array]:
    """Return inputs with the second moment one in their span, and the map of their weights back."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > sizes[0] * max(rows.shape) * np.finfo(np.float64).eps
    if not kept.any():
        return np.zeros((len(rows), 1)), np.zeros((rows.shape[1], 1))
    root = len(rows) ** 0.5
    return left[:, kept] * root, right[kept].T * (root / sizes[kept])
