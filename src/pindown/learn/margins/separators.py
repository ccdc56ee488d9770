r"""Maximum-margin separators through scikit-learn's solver, each with a proof of how good it is.

.. math:: \min_{w,b}\ \tfrac12\lVert w\rVert^2 \ \text{ s.t. }\ y_i(\langle w, x_i\rangle + b) \ge 1
          \qquad\text{and}\qquad
          \min_{w,b,\xi\ge0}\ \tfrac12\lVert w\rVert^2 + C\sum_i\xi_i \ \text{ s.t. }\
          y_i(\langle w, x_i\rangle + b) \ge 1 - \xi_i.

The last digits come from a guess of the support and one linear system. With the samples at 0 and at C
known, the others satisfy :math:`y_i(f(x_i) + b) = 1` and :math:`\sum_j y_j\alpha_j = 0`, which are
linear. Samples that break a condition change sides, and the system is solved anew: the primal-dual
active set method. What it returns is judged by its duality gap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram_matrix import Kernel, gram, samples
from pindown.learn.margins.margin_losses import signs
from pindown.learn.margins.support_vector_duality import MarginReport, dual_report
from pindown.learn.margins.tuning import (
    ALL_AT_ONCE_ROUNDS,
    CLOSE_GAP,
    HARD_MARGIN_PRICES,
    LIBSVM_TOLERANCE,
    MAX_FREE_SAMPLES,
    MAX_LIBSVM_STEPS,
    MAX_SUPPORT_CHANGES,
    PRICE_SHARES,
)
from pindown.programs import linear_program
from pindown.rounding import gamma
from pindown.validation import positive

_NO_SLACK = 1e-6  # slack below is none
_SEPARATES = 1e-9  # least margin of the linear program, with coordinates and weights in [-1, 1]
_AT_END = 1e-8  # of C (or the largest multiplier): closer than that a solver's multiplier is at the end
_BROKEN = 1e-10  # of the margin: conditions broken by less are rounding
_RATIO = PRICE_SHARES[1] / PRICE_SHARES[0]


class NotSeparableError(ValueError):
    """No hyperplane separates the classes."""


def hard_margin(X: ArrayLike, y: ArrayLike) -> MarginReport:
    r"""Return the separating hyperplane of largest margin: the hard-margin support vector machine.

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
    for price in HARD_MARGIN_PRICES:
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
    r"""Return the classifier that trades margin for slack, with any kernel: the soft-margin SVM.

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
    C = positive("C", C)  # its limit is hard_margin
    linear = isinstance(kernel, str) and kernel == "linear"
    centre = X.mean(axis=0) if linear else np.zeros(X.shape[1])
    points = X - centre  # the offset makes up for it, and far-away samples do not cancel
    K = gram(kernel, points, **parameters)
    best = _audited(K, y, _solve(K, y, float(C)), C)
    if best.gap > CLOSE_GAP * best.primal:
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
    for share in PRICE_SHARES:
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

    machine = SVC(kernel="precomputed", C=C, tol=LIBSVM_TOLERANCE, max_iter=MAX_LIBSVM_STEPS)
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


def polish(K: Array, y: Array, coefficients: Array, C: float) -> tuple[Array, float] | None:
    """Return signed multipliers and offset with exact optimality conditions, or None if none were found.

    Args:
        K: Gram matrix (n, n).
        y: Labels -1 and 1.
        coefficients: Signed multipliers of a solver, whose support is the first guess.
        C: Price of slack, possibly infinite.

    Returns:
        Multipliers times labels and the offset, or None.

    Example:
        >>> K, y = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([1.0, -1.0])
        >>> multipliers, offset = polish(K, y, np.array([0.4, -0.4]), np.inf)
        >>> multipliers.round(9), abs(round(offset, 9))
        (array([ 0.5, -0.5]), 0.0)

    Lecture course, slides on support vectors; the method is standard.
    """
    alpha = y * coefficients
    rounding = _AT_END * (C if np.isfinite(C) else max(float(alpha.max()), np.finfo(float).tiny))
    bound = alpha >= C - rounding
    free = (alpha > rounding) & ~bound
    for change in range(MAX_SUPPORT_CHANGES):
        if not free.any() or free.sum() > MAX_FREE_SAMPLES:
            return None
        signed, offset = _with_sides(K, y, free, bound, C)
        alpha, margins = y * signed, y * (K @ signed + offset)
        low, high = free & (alpha < 0), free & (alpha > C)
        short, wide = ~free & ~bound & (margins < 1 - _BROKEN), bound & (margins > 1 + _BROKEN)
        if not (low | high | short | wide).any():
            return signed, offset
        if change >= ALL_AT_ONCE_ROUNDS:  # moving all of them may go round in circles
            low, high, short, wide = _worst_only(alpha, margins, low, high, short, wide)
        bound = (bound | high) & ~wide
        free = (free & ~low & ~high) | short | wide
    return None


def _worst_only(
    alpha: Array, margins: Array, *broken: npt.NDArray[np.bool_]
) -> list[npt.NDArray[np.bool_]]:
    """Return the same sets with the one sample that breaks its condition most, multipliers first."""
    low, high, short, wide = broken
    off = np.abs(alpha) if (low | high).any() else np.abs(margins - 1)
    candidates = (low | high) if (low | high).any() else (short | wide)
    chosen = np.zeros(len(alpha), dtype=bool)
    chosen[np.where(candidates, off, -1.0).argmax()] = True
    return [part & chosen for part in broken]


def _with_sides(
    K: Array, y: Array, free: npt.NDArray[np.bool_], bound: npt.NDArray[np.bool_], C: float
) -> tuple[Array, float]:
    """Return the multipliers that put the free samples on the margin, with the others where they are."""
    signed = np.where(bound, C * y, 0.0) if bound.any() else np.zeros(len(y))
    n = int(free.sum())
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = K[np.ix_(free, free)]
    system[n, n] = 0.0
    right = np.append(y[free] - K[free] @ signed, -signed.sum())
    solution, *_ = np.linalg.lstsq(system, right, rcond=None)
    signed[free] = solution[:n]
    return signed, float(solution[n])
