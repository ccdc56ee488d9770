r"""Least norms under the margin constraints :math:`\langle w, z_i\rangle \ge 1` for all i.

Euclidean, as in the support vector machine with a hard margin, by an active set: the point p of the
convex hull of the :math:`z_i` nearest to the origin gives :math:`w = p/\lVert p\rVert^2`. Its convex
weights come from non-negative least squares (Lawson and Hanson 1974, chapter 23); the equations of the
constraints they leave active are then solved once more by themselves, which removes what the first solve
lost in its extra row.

:math:`\ell_1`, :math:`\ell_\infty` and Fourier :math:`\ell_1` by linear programs. A modulus of a complex
number is the largest of its projections on all directions of the plane; the program starts with four,
and gets the direction of the current solution for each frequency until the bound it proves and the value
it attains agree.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.bias.tuning import (
    ADDED_CONSTRAINTS,
    FIRST_CONSTRAINTS,
    MAX_MODULI_REFINEMENTS,
    MODULI_GAP,
    OFFSET_RESIDUAL,
    OFFSET_SCALES,
    THIN_HULL,
)
from pindown.programs import EXACT, Attempt, linear_program

Rows = NDArray[np.int64]
# Relative to the longest point: a hull nearer to the origin than this contains it, for floats.
TOO_NEAR = 1e-11
_ACTIVE = 1e-9  # a constraint within this of 1 takes part in the last solve
_VIOLATED = 1e-12
_ATTEMPTS = (EXACT, Attempt("highs-ds"), Attempt("highs-ipm"))


def nearest_weights(Z: Array) -> Array:
    """Return convex weights (n,) of the point of the hull of the rows that is nearest to the origin.

    >>> nearest_weights(np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 3.0]])).round(9).tolist()
    [0.5, 0.5, 0.0]
    """
    n = len(Z)
    scale = float(np.linalg.norm(Z, axis=1).max())
    if scale == 0.0:
        return np.full(n, 1.0 / n)
    points = Z / scale
    if points.shape[1] > n:  # the hull lies in the span: an isometry of it into n coordinates
        points = np.asarray(np.linalg.qr(points.T, mode="r")).T
    working = np.argsort(np.linalg.norm(points, axis=1), kind="stable")[:FIRST_CONSTRAINTS]
    while True:
        weights = np.zeros(n)
        weights[working] = _hull(points[working])
        nearest = weights @ points
        reach = float(nearest @ nearest)
        if reach <= TOO_NEAR**2 or len(working) == n:
            return weights
        slack = points @ nearest - reach
        slack[working] = 0.0
        order = np.argsort(slack, kind="stable")[:ADDED_CONSTRAINTS]
        order = order[slack[order] < -_VIOLATED * reach]
        if not len(order):
            return weights
        kept = working[weights[working] > 0]
        working = np.union1d(kept, order)


def _hull(points: Array) -> Array:
    ones = np.ones(len(points))
    weights = _non_negative(points, ones)
    reach = float(np.linalg.norm(weights @ points))
    if TOO_NEAR < reach < THIN_HULL:
        # Rows of length one, heights in units of the distance: rounding would have eaten it otherwise.
        lengths = np.linalg.norm(points, axis=1)
        again = _non_negative(points / lengths[:, None], reach / lengths) / lengths
        again /= again.sum()
        if float(np.linalg.norm(again @ points)) <= reach:
            return again
    return weights


def _non_negative(points: Array, heights: Array) -> Array:
    from scipy.optimize import nnls

    columns = np.vstack([points.T, heights])
    target = np.zeros(len(columns))
    target[-1] = 1.0
    weights = nnls(columns, target, maxiter=30 * max(columns.shape))[0]
    return np.asarray(weights / weights.sum())


def least_norm(Z: Array, weights: Array) -> tuple[Array, Array]:
    """Return w and the convex weights after the last solve on the active constraints.

    Args:
        Z: Points (n, d), whose hull does not hold the origin.
        weights: Convex weights of its nearest point, approximately.

    Returns:
        w with smallest product exactly 1, and weights whose combination is parallel to it.
    """
    from scipy.optimize import nnls

    rough = weights @ Z
    rough = rough / float((Z @ rough).min())
    found = [(rough, weights)]
    used = np.flatnonzero(weights > 0)
    w = np.linalg.lstsq(Z[used], np.ones(len(used)), rcond=None)[0]
    least = float((Z @ w).min())
    if least > 0:
        w = w / least
        products = Z @ w
        active = np.flatnonzero(products <= products.min() + _ACTIVE)
        # In units of w, where least squares is well scaled.
        length = float(np.linalg.norm(w))
        rows = Z[active] * length
        part = nnls(rows.T, w / length, maxiter=30 * max(rows.shape))[0]
        if part.sum() > 0:
            polished = np.zeros(len(Z))
            polished[active] = part / part.sum()
            found.append((np.asarray(w, dtype=np.float64), polished))
    return min(found, key=lambda pair: _distance(Z, *pair))


def _distance(Z: Array, w: Array, weights: Array) -> float:
    """Return how far w is from the multiple of the combination that it should be, relative to w."""
    point = weights @ Z
    reach = float(point @ point)
    if reach == 0.0:
        return np.inf
    return float(np.linalg.norm(w - point / reach) / np.linalg.norm(w))


def with_offset(points: Array, y: Array) -> tuple[Array, float, Array]:
    r"""Return the shortest w with an offset, :math:`y_i(\langle w, x_i\rangle + b) \ge 1`.

    Returns:
        w, b and convex weights with :math:`\sum_i a_iy_i = 0`. If there is no such w, the weights give
        :math:`\sum_i a_iy_ix_i = 0` up to rounding, and w is zero.
    """
    Z = y[:, None] * points
    best: tuple[float, Array, float, Array] | None = None
    weights = np.zeros(len(y))
    for scale in OFFSET_SCALES:
        lifted = np.hstack([Z, scale * y[:, None]])
        weights = nearest_weights(lifted)
        if float(np.linalg.norm(weights @ lifted)) <= TOO_NEAR * float(
            np.linalg.norm(lifted, axis=1).max()
        ):
            return np.zeros(Z.shape[1]), 0.0, weights
        found = _active_with_offset(Z, y, np.flatnonzero(weights > 0))
        if found is not None and (best is None or found[0] < best[0]):
            best = found
        if best is not None and best[0] < OFFSET_RESIDUAL:
            break
    if best is None:
        return np.zeros(Z.shape[1]), 0.0, weights
    return best[1], best[2], best[3]


def _active_with_offset(Z: Array, y: Array, used: Rows) -> tuple[float, Array, float, Array] | None:
    """Solve the equations of the active constraints; return residual, w, b and weights if feasible."""
    from scipy.optimize import nnls

    if abs(y[used].sum()) == len(used):
        return None
    # A reflection sends the labels to the first axis: its other rows are equations for w alone.
    reflection = np.linalg.qr(y[used][:, None], mode="complete")[0].T
    rows, ones = reflection @ Z[used], reflection @ np.ones(len(used))
    w = np.linalg.lstsq(rows[1:], ones[1:], rcond=None)[0]
    values = Z @ w
    # The offset in the middle of the two classes, then both scaled to touch 1.
    low, high = float(values[y > 0].min()), float(values[y < 0].min())
    reach = 0.5 * (low + high)
    if reach <= 0 or not w.any():
        return None
    w, b = w / reach, 0.5 * (high - low) / reach
    products = Z @ w + y * b
    active = np.flatnonzero(products <= products.min() + _ACTIVE)
    length = float(np.linalg.norm(w))
    columns = np.vstack([Z[active].T * length, y[active]])
    part, residual = nnls(columns, np.r_[w / length, 0.0], maxiter=30 * max(columns.shape))
    if part.sum() == 0:
        return None
    weights = np.zeros(len(y))
    weights[active] = part / part.sum()
    return float(residual), np.asarray(w, dtype=np.float64), b, weights


def smallest_l1(Z: Array, y: Array, *, bias: bool) -> tuple[Array, float, Array]:
    r"""Return w, b and multipliers of :math:`\min\lVert w\rVert_1` s.t. :math:`z_iw + y_ib \ge 1`."""
    n, d = Z.shape
    cost = np.r_[np.ones(2 * d), 0.0]
    rows = np.hstack([Z, -Z, y[:, None]])
    free = np.inf if bias else 0.0
    lower, upper = np.r_[np.zeros(2 * d), -free], np.r_[np.full(2 * d, np.inf), free]
    answer = linear_program(cost, -rows, -np.ones(n), lower=lower, upper=upper, attempts=_ATTEMPTS)
    x = answer.optimum()
    return x[:d] - x[d : 2 * d], float(x[-1]), answer.multipliers


def smallest_maximum(Z: Array, y: Array, *, bias: bool) -> tuple[Array, float, Array]:
    r"""Return w, b and multipliers of :math:`\min\lVert w\rVert_\infty` s.t. :math:`z_iw + y_ib \ge 1`.

    Written with :math:`w = u - t`, :math:`0 \le u \le 2t`: sums of rows replace two-sided bounds.
    """
    n, d = Z.shape
    cost = np.r_[np.zeros(d), 1.0, 0.0]
    margins = np.hstack([-Z, Z.sum(axis=1)[:, None], -y[:, None]])
    box = sp.hstack([sp.eye_array(d), np.full((d, 1), -2.0), sp.csr_array((d, 1))])
    free = np.inf if bias else 0.0
    lower, upper = np.r_[np.zeros(d + 1), -free], np.r_[np.full(d + 1, np.inf), free]
    rows = sp.csr_array(sp.vstack([sp.csr_array(margins), box]))
    target = np.r_[-np.ones(n), np.zeros(d)]
    answer = linear_program(cost, rows, target, lower=lower, upper=upper, attempts=_ATTEMPTS)
    x = answer.optimum()
    return x[:d] - x[d], float(x[-1]), answer.multipliers[:n]


def smallest_moduli(
    Z: Array, transform: NDArray[np.complex128], prices: Array, *, rounds: int = MAX_MODULI_REFINEMENTS
) -> tuple[Array, Array]:
    r"""Return w and multipliers of :math:`\min_w \sum_k c_k |(Tw)_k|` s.t. :math:`z_iw \ge 1`.

    Args:
        Z: Signed points (n, d).
        transform: Complex matrix T (m, d).
        prices: :math:`c_k > 0` (m,).
        rounds: Most refinements.
    """
    n, d = Z.shape
    m = len(transform)
    cost = np.r_[np.zeros(d), prices]
    lower = np.r_[np.full(d, -np.inf), np.zeros(m)]
    angles = np.arange(4) * (np.pi / 2)
    cuts = [_cut(transform, np.full(m, angle)) for angle in angles]
    margins = np.hstack([-Z, np.zeros((n, m))])
    best = (np.inf, np.zeros(d), np.zeros(n))
    for _ in range(rounds):
        rows = np.vstack([margins, *cuts])
        target = np.r_[-np.ones(n), np.zeros(len(rows) - n)]
        answer = linear_program(cost, rows, target, lower=lower, attempts=_ATTEMPTS)
        w = answer.optimum()[:d]
        w = w / max(float((Z @ w).min()), np.finfo(float).tiny)
        image = transform @ w
        value = float(prices @ np.abs(image))
        if value < best[0]:
            best = (value, w, answer.multipliers[:n])
        if value - answer.value <= MODULI_GAP * value:
            break
        cuts.append(_cut(transform, np.angle(image)))
    return best[1], best[2]


def _cut(transform: NDArray[np.complex128], angles: Array) -> Array:
    """Return rows of :math:`Re(e^{-i angle} T w) - s <= 0`, one for each frequency."""
    turned = np.exp(-1j * angles)[:, None] * transform
    return np.hstack([turned.real, -np.eye(len(transform))])
