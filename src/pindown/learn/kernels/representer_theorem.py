r"""The representer theorem as a solver: problems over functions become problems over n numbers.

.. math:: \min_{f\in H}\ \frac1n\sum_i\ell(f(x_i), y_i) + \frac\lambda2\lVert f\rVert^2
          \;=\; \min_{\alpha}\ \frac1n\sum_i\ell((K\alpha)_i, y_i) + \frac\lambda2\alpha^\top K\alpha.

With several outputs and a coupling B between them, :math:`f = KAB` and the penalty is
:math:`\frac\lambda2\operatorname{tr}(BA^\top KA)`. The solver works in coordinates :math:`\theta` with
:math:`f = L\theta M^\top`, :math:`K = LL^\top`, :math:`B = MM^\top`, where the penalty is
:math:`\frac\lambda2\lVert\theta\rVert^2` and the conditioning that of the losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import square
from pindown.learn.kernels.mercer import finite_feature_map
from pindown.learn.margins.margin_losses import MarginLoss, signs
from pindown.validation import positive

# Relative decrease at which the quasi-Newton method stops: near rounding, since problems are small.
_DECREASE = 1e-15
_GRADIENT = 1e-10
_MAX_ITERATIONS = 10_000

Loss = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True)
class KernelFit:
    """Minimiser of a regularised problem in a kernel's function space.

    Attributes:
        coefficients: Expansion over the samples, (n,) or (n, m); one of many if the Gram matrix is
            singular.
        values: Function values on the samples, which are unique for a convex loss.
        norm_squared: Squared norm of the function.
        objective: Mean loss plus penalty.
        gradient: Largest entry of the gradient left, in whitened coordinates.
    """

    coefficients: Array = field(repr=False)
    values: Array = field(repr=False)
    norm_squared: float
    objective: float
    gradient: float

    def __str__(self) -> str:
        norm = self.norm_squared**0.5
        return f"objective {self.objective:.6g}, norm {norm:.4g}, gradient {self.gradient:.1g}"


def squared_loss(values: Array, y: Array) -> tuple[Array, Array]:
    """Return the halved squared differences and their slopes.

    >>> squared_loss(np.array([3.0]), np.array([1.0]))
    (array([2.]), array([2.]))
    """
    return 0.5 * (values - y) ** 2, values - y


def fit_kernel_problem(
    K: ArrayLike,
    y: ArrayLike,
    penalty: float,
    loss: Loss | MarginLoss = squared_loss,
    *,
    coupling: ArrayLike | None = None,
) -> KernelFit:
    """Minimise a mean loss plus half the penalty times the squared norm.

    Args:
        K: Gram matrix (n, n), positive semi-definite.
        y: Targets (n,) or (n, m); labels -1 and 1 for a :class:`~pindown.learn.margins.MarginLoss`.
        penalty: Positive factor of the squared norm.
        loss: A margin loss, or a function of values and targets that returns losses and slopes, entry
            by entry.
        coupling: Positive semi-definite matrix (m, m) between the outputs; the identity by default.

    Returns:
        A :class:`KernelFit`.

    Raises:
        ValueError: If shapes differ, the penalty is not positive or K has a negative eigenvalue.

    Example:
        With one sample, k(x, x) = 1 and target 3, half the squared error and penalty 1/2 give 3/(1 +
        1/2):

        >>> fit_kernel_problem([[1.0]], [3.0], 0.5).values.round(6).tolist()
        [2.0]

    Lecture course, slides on the representer theorem.
    """
    from scipy.optimize import minimize

    K = square(K)
    penalty = positive("penalty", penalty)
    y = signs(y, len(K)) if isinstance(loss, MarginLoss) else np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or len(y) != len(K) or not np.isfinite(y).all():
        raise ValueError(f"y must hold finite targets for {len(K)} samples; got shape {y.shape}")
    targets = y.reshape(len(y), -1)
    m = targets.shape[1]
    B = np.eye(m) if coupling is None else square(coupling, "coupling")
    if len(B) != m:
        raise ValueError(f"the coupling is for {len(B)} outputs, y has {m}")
    L, M = finite_feature_map(K), finite_feature_map(B)

    def objective(theta: Array) -> tuple[float, Array]:
        theta = theta.reshape(L.shape[1], M.shape[1])
        losses, slopes = _evaluate(loss, L @ theta @ M.T, targets)
        gradient = L.T @ slopes @ M / len(K) + penalty * theta
        return float(losses.sum() / len(K) + 0.5 * penalty * np.vdot(theta, theta)), gradient.ravel()

    start = np.zeros(L.shape[1] * M.shape[1])
    options = {
        "maxiter": _MAX_ITERATIONS,
        "maxfun": 2 * _MAX_ITERATIONS,
        "ftol": _DECREASE,
        "gtol": _GRADIENT,
    }
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    theta = found.x.reshape(L.shape[1], M.shape[1])
    coefficients = np.linalg.pinv(L).T @ theta @ np.linalg.pinv(M)
    values = L @ theta @ M.T
    return KernelFit(
        coefficients.reshape(y.shape), values.reshape(y.shape), float(np.vdot(theta, theta)),
        float(found.fun), float(np.abs(found.jac).max()),
    )  # fmt: skip


def _evaluate(loss: Loss | MarginLoss, values: Array, targets: Array) -> tuple[Array, Array]:
    if isinstance(loss, MarginLoss):
        margins = targets * values
        return loss.value(margins), targets * loss.slope(margins)
    return loss(values, targets)
