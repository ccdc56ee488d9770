r"""Maximum-margin separators through scikit-learn's solver, each with a proof of how good it is.

.. math:: \min_{w,b}\ \tfrac12\lVert w\rVert^2 \ \text{ s.t. }\ y_i(\langle w, x_i\rangle + b) \ge 1
          \qquad\text{and}\qquad
          \min_{w,b,\xi\ge0}\ \tfrac12\lVert w\rVert^2 + C\sum_i\xi_i \ \text{ s.t. }\
          y_i(\langle w, x_i\rangle + b) \ge 1 - \xi_i.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram import Kernel, gram, samples
from pindown.learn.margins.duality import MarginReport, dual_report
from pindown.learn.margins.hyperplane import signs
from pindown.learn.margins.polishing import polish
from pindown.programs import linear_program
from pindown.rounding import gamma

_TOLERANCE = (
    1e-9  # of the optimality conditions; libsvm's own 1e-3 shows in the fourth digit of the margin
)
_MAX_ITERATIONS = 200_000  # libsvm's steps are cheap; where it would cycle, other starts are tried
# Prices of slack tried for the hard margin, in units of the dual's scale: the first without slack ends
# it.
_PRICES = (1e4, 1e7, 1e10)
# Shares of a price, from the lowest up, whose solution is the start for the next.
_SHARES = tuple(float(share) for share in np.logspace(-8, 0, 17))
_RATIO = _SHARES[1] / _SHARES[0]
_CLOSE = 1e-6  # gap, as a share of the objective, at which no better start is sought
_NO_SLACK = 1e-6  # slack below is none
_SEPARATES = 1e-9  # least margin of the linear program, with coordinates and weights in [-1, 1]


class NotSeparableError(ValueError):
    """No hyperplane separates the classes."""


def hard_margin(X: ArrayLike, y: ArrayLike) -> MarginReport:
    r"""Return the separating hyperplane of largest margin.

    The result is scaled so that the nearest samples have :math:`y(wx + b) = 1` exactly: the margin
    :math:`1/\lVert w\rVert` is attained, and no hyperplane has more than
    :math:`1/\sqrt{2\,\mathrm{dual}}`.

    Args:
        X: Samples (n, d).
        y: Labels -1 and 1, both present.

    Returns:
        A :class:`MarginReport` with infinite C.

    Raises:
        NotSeparableError: If no hyperplane separates the classes (decided by a linear program), or only
            by a margin below 1e-9 of the samples' range.
        ValueError: If labels are not -1 and 1, or one is missing.

    Example:
        >>> report = hard_margin([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]], [-1, -1, 1, 1])
        >>> report.w.round(6).tolist(), round(report.offset, 6), round(report.margin, 6)
        ([1.0, 0.0], -1.0, 1.0)

    Lecture course, slides on the maximum margin.
    """
    X, y = _two_classes(X, y)
    centre = X.mean(axis=0)
    scale = float(np.abs(X - centre).max()) or 1.0
    points = (X - centre) / scale
    if not separable(points, y):
        raise NotSeparableError(
            f"no hyperplane separates the classes by more than {_SEPARATES:g} of their range; use "
            "soft_margin, or a kernel with more room"
        )
    K = points @ points.T
    for price in _PRICES:
        coefficients, offset = _solve(K, y, price)
        w = points.T @ coefficients
        least = float((y * (points @ w + offset)).min())
        if least > 1 - _NO_SLACK:  # a higher price changes nothing
            break
    polished = polish(K, y, coefficients, np.inf)
    if polished is not None:
        exact = points.T @ polished[0]
        reached = float((y * (points @ exact + polished[1])).min())
        # The larger margin, after scaling, is the better one.
        if reached > 0 and reached * np.linalg.norm(w) >= least * np.linalg.norm(exact):
            (coefficients, offset), w, least = polished, exact, reached
    if least <= 0:
        raise NotSeparableError("the margin is too small for floating point; move or scale the samples")
    # Rescaled to be feasible, so that the primal value is attained; the dual keeps its own best
    # multiple.
    w, offset = w / least, offset / least
    alpha = coefficients * y
    alpha = alpha * (alpha.sum() / max(float(coefficients @ K @ coefficients), np.finfo(float).tiny))
    report = dual_report(K, y, alpha, np.inf, offset=offset)
    return _unscaled(report, w, offset, points, y, centre, scale)


def soft_margin(
    X: ArrayLike, y: ArrayLike, C: float = 1.0, *, kernel: Kernel = "linear", **parameters: Any
) -> MarginReport:
    r"""Return the classifier that trades margin for slack, with any kernel.

    Args:
        X: Samples (n, d).
        y: Labels -1 and 1, both present.
        C: Price of slack, with :math:`\frac12\lVert w\rVert^2`; without the half it would be twice as
            large.
        kernel: Name, kernel object or function; see :func:`pindown.learn.kernels.gram`.
        parameters: Parameters of a named kernel, such as ``gamma``.

    Returns:
        A :class:`MarginReport`; ``w`` is there for the linear kernel.

    Raises:
        ValueError: If C is not positive, labels are not -1 and 1, or one is missing.

    Example:
        >>> report = soft_margin([[-2.0], [-1.0], [1.0], [2.0]], [-1, -1, 1, 1], C=0.05)
        >>> report.w.round(6).tolist(), report.slack.round(6).tolist()
        ([0.3], [0.4, 0.7, 0.7, 0.4])

    scikit-learn's ``LinearSVC`` solves another problem: it squares the hinge and penalises the offset.

    Lecture course, slides on the soft margin and on the kernel support vector machine.
    """
    X, y = _two_classes(X, y)
    if not 0 < C < np.inf:
        raise ValueError(f"C must be a positive number, got {C!r}; the limit of large C is hard_margin")
    linear = isinstance(kernel, str) and kernel == "linear"
    centre = X.mean(axis=0) if linear else np.zeros(X.shape[1])
    points = X - centre  # the offset makes up for it, and far-away samples do not cancel
    K = gram(kernel, points, **parameters)
    best = _audited(K, y, _solve(K, y, float(C)), C)
    if best.gap > _CLOSE * best.primal:
        signed = _continued(K, y, float(C))
        if signed is not None:
            best = min(best, _audited(K, y, (signed, 0.0), C), key=lambda report: report.gap)
    if not linear:
        return best
    w = points.T @ (best.alpha * y)
    return replace(best, w=w, offset=float(best.offset - w @ centre))


def _continued(K: Array, y: Array, C: float) -> Array | None:
    """Return multipliers at a price at which the solver crawls, by way of lower ones, or None."""
    signed: Array | None = None
    for share in _SHARES:
        start = _solve(K, y, C * share)[0] if signed is None else signed * _RATIO
        polished = polish(K, y, start, C * share)
        signed = None if polished is None else polished[0]
    return signed


def _audited(K: Array, y: Array, found: tuple[Array, float], C: float) -> MarginReport:
    """Return the better of a solver's answer and its polished form, by the duality gap."""
    signed, offset = found
    report = dual_report(K, y, np.clip(signed * y, 0.0, C), C, offset=offset)
    polished = polish(K, y, signed, C)
    if polished is None:
        return report
    signed, offset = polished
    return min(
        report,
        dual_report(K, y, np.clip(signed * y, 0.0, C), C, offset=offset),
        key=lambda report: (report.gap, report.violation),
    )


def separable(X: ArrayLike, y: ArrayLike) -> bool:
    r"""Decide by a linear program whether some hyperplane separates two classes.

    True is proved: the hyperplane that the program found separates the samples by more than the rounding
    of their products. False says that it found none that does so by more than 1e-9 of their range.

    .. math:: \max_{|w_j| \le 1,\, b,\, t \le 1} t \quad\text{s.t.}\quad y_i(\langle w, x_i\rangle + b)
              \ge t.

    >>> separable([[0.0], [1.0], [2.0]], [-1, 1, 1]), separable([[0.0], [1.0], [2.0]], [-1, 1, -1])
    (True, False)
    """
    points, signed = _two_classes(X, y)
    points = points - points.mean(axis=0)
    points = points / (np.abs(points).max() or 1.0)
    n, d = points.shape
    rows = np.hstack([-signed[:, None] * points, -signed[:, None], np.ones((n, 1))])
    lower, upper = np.r_[np.full(d, -1.0), -np.inf, -np.inf], np.r_[np.ones(d), np.inf, 1.0]
    answer = linear_program(np.r_[np.zeros(d + 1), -1.0], rows, np.zeros(n), lower=lower, upper=upper)
    if not answer.solved or answer.x is None or not -answer.value > _SEPARATES:
        return False
    w, offset = answer.x[:d], answer.x[d]
    rounding = gamma(d + 4) * (np.abs(points) @ np.abs(w) + abs(offset))  # centring and scaling, too
    return bool((signed * (points @ w + offset) > rounding).all())


def _solve(K: Array, y: Array, C: float) -> tuple[Array, float]:
    """Return the signed dual variables and the offset from libsvm."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVC

    machine = SVC(kernel="precomputed", C=C, tol=_TOLERANCE, max_iter=_MAX_ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report's gap says it with a number
        machine.fit(K, y)
    coefficients = np.zeros(len(K))
    coefficients[machine.support_] = machine.dual_coef_[0]
    return coefficients, float(machine.intercept_[0])


def _unscaled(
    report: MarginReport, w: Array, offset: float, points: Array, y: Array, centre: Array, scale: float
) -> MarginReport:
    """Return the report in the coordinates of the samples."""
    decision = points @ w + offset
    margins = y * decision
    touching = np.abs(margins[report.support] - 1.0).max(initial=0.0)
    w = w / scale
    return replace(
        report, w=w, offset=float(offset - w @ centre), decision=decision,
        slack=np.maximum(0.0, 1.0 - margins),
        alpha=report.alpha / scale**2, norm=float(np.linalg.norm(w)), primal=float(0.5 * w @ w),
        dual=report.dual / scale**2, violation=float(max(touching, (1.0 - margins).max())),
    )  # fmt: skip


def _two_classes(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    X = samples(X)
    labels = signs(y, len(X))
    if abs(labels.sum()) == len(labels):
        raise ValueError(
            f"both labels -1 and 1 are needed, all {len(labels)} samples have {labels[0]:.0f}"
        )
    return X, labels
