r"""The same student by gradient descent on the distillation loss, from zero.

.. math:: w_{t+1} = w_t - \eta \nabla \ell(w_t), \qquad \eta = 4n / \lambda_{\max}(X^\top X)

Every step, also with momentum, stays in the span of the inputs, so where the logits can be met the
limit is the closed form. Where they cannot (more inputs than dimensions, a teacher that is not linear)
the limit is the student of least cross-entropy, and the closed form that of least squares.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.distillation.labels import centred
from pindown.learn.distillation.loss import slopes, smoothness
from pindown.learn.distillation.student import problem
from pindown.learn.gates.numbers import count, positive
from pindown.learn.gates.progress import watched


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
    rows, z = problem(X, logits)
    z, steps, tol = centred(z), count("max_iter", max_iter), positive("tol", tol, zero=True)
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
        for taken in watched(steps + 1, verbose, "distillation"):
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
