r"""Audit of a support vector machine: its dual variables, duality gap and KKT conditions.

.. math:: \min_{f, b}\ \tfrac12\lVert f\rVert^2 + C\sum_i \max(0, 1 - y_i(f(x_i) + b)), \qquad
          \max_{0\le\alpha\le C,\ \sum_i y_i\alpha_i = 0}\ \sum_i\alpha_i -
          \tfrac12\sum_{ij}\alpha_i\alpha_j y_iy_jK_{ij}.

Every feasible :math:`\alpha` bounds the optimum from below, every (f, b) from above: their difference
is proved, whichever solver they came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import gram, samples, square
from pindown.learn.kernels.mercer import is_semidefinite
from pindown.learn.margins.margin_losses import signs
from pindown.validation import positive

# A multiplier this close to an end of [0, C], relative to the largest one, is at that end.
_AT_END = 1e-8
# Imbalance of the dual variables, as a share of their sum, that solvers and rounding leave.
_UNBALANCED = 1e-6
# Slack of a hard margin that is rounding of a tight constraint; more than that breaks it.
_TIGHT = 1e-9


@dataclass(frozen=True)
class MarginReport:
    r"""A maximum-margin classifier :math:`f(x) + b` with its duals and the proof of its quality.

    Attributes:
        alpha: Dual variables, one for each sample.
        offset: b.
        decision: :math:`f(x_i) + b` on the samples.
        slack: :math:`\max(0, 1 - y_i(f(x_i) + b))`.
        norm: :math:`\lVert f\rVert`, which is :math:`\lVert w\rVert` for a linear kernel.
        w: Weight vector for a linear kernel, else None.
        C: Price of slack; infinite for the hard margin.
        primal: Value of the objective, an upper bound of the optimum; for the hard margin that of the
            multiple without slack, infinite if no multiple is without.
        dual: Value of the dual, a lower bound of the optimum; minus infinity, which says nothing, if
            the Gram matrix is not positive semi-definite.
        violation: Largest violation of the optimality conditions, in units of :math:`y f`.
        support: Indices of samples with :math:`\alpha_i > 0`.
        free: Those strictly between 0 and C, which lie on the margin.
        bound: Those at C, which lie on or inside the margin.
    """

    alpha: Array = field(repr=False)
    offset: float
    decision: Array = field(repr=False)
    slack: Array = field(repr=False)
    norm: float
    w: Array | None = field(repr=False)
    C: float
    primal: float
    dual: float
    violation: float
    support: npt.NDArray[np.int64] = field(repr=False)
    free: npt.NDArray[np.int64] = field(repr=False)
    bound: npt.NDArray[np.int64] = field(repr=False)

    @property
    def gap(self) -> float:
        """Primal minus dual value: the objective is at most this far from its optimum."""
        return self.primal - self.dual

    @property
    def margin(self) -> float:
        """Half the width of the strip between the two margins, 1/norm."""
        return 1.0 / self.norm if self.norm > 0 else np.inf

    def __str__(self) -> str:
        ends = "" if np.isinf(self.C) else f" ({len(self.free)} on the margin, {len(self.bound)} at C)"
        near = f"is within {max(self.gap, 0.0):.2g} of the optimum"
        if not np.isfinite(self.gap):
            near = "has no bound"
        return (
            f"margin {self.margin:.6g}, {len(self.support)} support vectors{ends}; "
            f"objective {self.primal:.6g} {near}, "
            f"optimality conditions hold to {self.violation:.2g}"
        )


def dual_report(
    K: ArrayLike,
    y: ArrayLike,
    alpha: ArrayLike,
    C: float,
    *,
    offset: float | None = None,
    w: Array | None = None,
) -> MarginReport:
    r"""Return the audit of dual variables for a Gram matrix.

    Args:
        K: Gram matrix (n, n).
        y: Labels -1 and 1.
        alpha: Dual variables (n,), inside [0, C].
        C: Price of slack, possibly infinite.
        offset: b, or None for the mean of :math:`y_i - \sum_j\alpha_jy_jK_{ij}` over the free support
            vectors, and for the middle of the interval that the other samples allow if there are none.
        w: Weight vector to carry along.

    Returns:
        A :class:`MarginReport`.

    Raises:
        ValueError: If shapes differ, or the dual variables leave [0, C] or do not balance.

    Example:
        Two points on a line; the separator is in the middle, and both touch the margin:

        >>> print(dual_report([[1.0, -1.0], [-1.0, 1.0]], [1, -1], [0.5, 0.5], np.inf))
        margin 1, 2 support vectors; objective 0.5 is within 0 of the optimum, optimality conditions
        hold to 0

    Lecture course, slides on the dual of the support vector machine.
    """
    K = square(K)
    y, alpha = signs(y, len(K)), np.asarray(alpha, dtype=np.float64)
    rounding = _AT_END * max(float(np.abs(alpha).max(initial=0.0)), 0.0 if np.isinf(C) else C)
    if alpha.shape != y.shape or not (alpha >= -rounding).all() or not (alpha <= C + rounding).all():
        raise ValueError(f"alpha must hold {len(y)} numbers in [0, {C}]")
    positive("C", C, infinite=True)
    if abs(float(y @ alpha)) > _UNBALANCED * max(float(np.abs(alpha).sum()), np.finfo(float).tiny):
        raise ValueError(
            f"the dual variables must balance, sum y alpha = 0; got {float(y @ alpha):.4g}: "
            "unbalanced ones bound nothing"
        )
    inner = alpha > rounding
    capped = inner & (alpha >= C - rounding)
    values = K @ (alpha * y)
    b = _offset(values, y, inner, capped) if offset is None else float(offset)
    decision = values + b
    slack = np.maximum(0.0, 1.0 - y * decision)
    norm_squared = max(0.0, float((alpha * y) @ values))
    return MarginReport(
        alpha=alpha, offset=b, decision=decision, slack=slack, norm=norm_squared**0.5, w=w, C=float(C),
        primal=_primal(norm_squared, y * decision, slack, C),
        # An indefinite matrix belongs to no function space: nothing bounds the objective from below.
        dual=float(alpha.sum()) - 0.5 * norm_squared if is_semidefinite(K) else -np.inf,
        violation=_violation(y * decision, inner, capped),
        support=np.flatnonzero(inner), free=np.flatnonzero(inner & ~capped),
        bound=np.flatnonzero(capped),
    )  # fmt: skip


def svm_report(machine: Any, X: ArrayLike, y: ArrayLike) -> MarginReport:
    """Return the audit of a fitted :class:`sklearn.svm.SVC` with two classes on its training samples.

    Args:
        machine: The fitted machine, with any kernel and equal weights.
        X: The samples it was fitted on (the Gram matrix if its kernel is precomputed).
        y: Their labels, of any kind; the second class in sorted order is the positive one.

    Returns:
        A :class:`MarginReport`.

    Raises:
        TypeError: If it is not a support vector classifier.
        ValueError: If it has more than two classes, class weights, or was fitted on other samples.

    Example:
        >>> from sklearn.svm import SVC
        >>> X, y = [[0.0], [1.0], [3.0], [4.0]], ["no", "no", "yes", "yes"]
        >>> report = svm_report(SVC(kernel="linear", C=10.0).fit(X, y), X, y)
        >>> report.support.tolist(), round(report.margin, 3)
        ([1, 2], 1.0)

    Lecture course, slides on support vectors.
    """
    from sklearn.svm import SVC
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(machine, SVC):
        raise TypeError(f"an SVC is needed, with its dual variables; got {type(machine).__name__}")
    check_is_fitted(machine)
    if len(machine.classes_) != 2 or machine.class_weight is not None:
        raise ValueError(
            "the report is for two classes of equal weight; fit one SVC for each pair of classes"
        )
    precomputed = machine.kernel == "precomputed"
    X = np.asarray(X, dtype=np.float64) if precomputed else samples(X)
    shape = machine.shape_fit_
    if X.shape != tuple(shape):
        raise ValueError(f"the machine was fitted on samples of shape {tuple(shape)}; got {X.shape}")
    labels = np.where(np.asarray(y) == machine.classes_[1], 1.0, -1.0)
    coefficients = np.zeros(len(X))
    coefficients[machine.support_] = np.asarray(machine.dual_coef_)[0]
    if precomputed:
        K = X
    else:
        scale = {"gamma": machine._gamma, "degree": machine.degree, "coef0": machine.coef0}
        K = gram(machine.kernel, X, **(scale if isinstance(machine.kernel, str) else {}))
    w = machine.coef_[0].copy() if machine.kernel == "linear" else None
    alpha = np.clip(coefficients * labels, 0.0, machine.C)
    if not np.allclose(coefficients * labels, alpha, rtol=0, atol=_AT_END * machine.C):
        raise ValueError(
            "the dual variables do not fit these labels: pass the training samples and their labels"
        )
    return dual_report(K, labels, alpha, machine.C, offset=float(machine.intercept_[0]), w=w)


def stationarity_residual(
    gradient: ArrayLike, constraints: ArrayLike, jacobian: ArrayLike, multipliers: ArrayLike
) -> float:
    r"""Return how far a point is from solving :math:`\nabla f + \sum_k\lambda_k\nabla g_k = 0,\ g = 0`.

    Args:
        gradient: Gradient of f at the point (d,).
        constraints: Values of the constraints (k,).
        jacobian: Their gradients (k, d).
        multipliers: One for each constraint; zero is allowed.

    Returns:
        The largest absolute entry of both equations.

    Example:
        The maximum of 1 - x² - y² on x + y = 1 is at (1/2, 1/2), with multiplier 1:

        >>> stationarity_residual([-1.0, -1.0], [0.0], [[1.0, 1.0]], [1.0])
        0.0

    Lecture course, slides on Lagrange multipliers.
    """
    multipliers, constraints = np.atleast_1d(multipliers), np.atleast_1d(constraints)
    balance = np.asarray(gradient, dtype=np.float64) + multipliers @ np.atleast_2d(jacobian)
    return float(max(np.abs(balance).max(), np.abs(constraints).max(initial=0.0)))


def _offset(
    values: Array, y: Array, inner: npt.NDArray[np.bool_], capped: npt.NDArray[np.bool_]
) -> float:
    residual = y - values
    free = inner & ~capped
    if free.any():
        return float(residual[free].mean())
    # y (f + b) >= 1 where alpha = 0, <= 1 where alpha = C: each sample allows a half-line of offsets.
    at_least = (~inner & (y > 0)) | (capped & (y < 0))
    ends = np.array([residual[at_least].max(initial=-np.inf), residual[~at_least].min(initial=np.inf)])
    if not np.isfinite(ends).any():
        return 0.0
    return float(ends.mean() if np.isfinite(ends).all() else ends[np.isfinite(ends)][0])


def _primal(norm_squared: float, margins: Array, slack: Array, C: float) -> float:
    if np.isfinite(C):
        return 0.5 * norm_squared + C * float(slack.sum())
    least = float(margins.min())
    if least <= 0:
        return np.inf
    return 0.5 * norm_squared / min(1.0, least if least < 1 - _TIGHT else 1.0) ** 2


def _violation(margins: Array, inner: npt.NDArray[np.bool_], capped: npt.NDArray[np.bool_]) -> float:
    short, long = np.maximum(0.0, 1.0 - margins), np.maximum(0.0, margins - 1.0)
    return float(max(short[~capped].max(initial=0.0), long[inner].max(initial=0.0)))
