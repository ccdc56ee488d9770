r"""Newton's method on the frequencies and constraints that a linear program left active.

Linear programs that replace moduli by polygons fix the value of :math:`\sum_kc_k|(Tw)_k|^p` to ten
digits, and w itself to five. Which frequencies are zero and which constraints are tight is then known,
and what is left is a smooth problem with equations: :math:`\nabla f(w) = Z_A^T\alpha,\ Z_Aw = 1`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

_ALIVE = (1e-4, 1e-6, 1e-8)  # relative sizes below which a frequency counts as zero, tried in turn
_TIGHT = (1e-4, 1e-6, 1e-8)  # the same for slack of a constraint
_STEPS = 30
_FEASIBLE = 1e-9
_WORSE = (
    1e-6  # a saddle nearby may lie this much higher: it is stationary, which the end of a search is not
)
_NEAR = 1e-3  # a polished solution farther away than this solves another problem


def polished(Z: Array, w: Array, transform: NDArray[np.complex128], prices: Array, p: float) -> Array:
    """Return w after Newton's method, or w itself where that finds no better solution nearby."""
    w = w / float((Z @ w).min())
    sizes = np.abs(transform @ w)
    before = float(prices @ sizes**p)
    for small in _ALIVE:
        alive = sizes > small * sizes.max()
        for slack in _TIGHT:
            tight = Z @ w <= 1.0 + slack
            found = _newton(Z[tight], w, transform, prices, p, alive)
            if found is None or float((Z @ found).min()) < 1.0 - _FEASIBLE:
                continue
            found = found / float((Z @ found).min())
            near = float(np.linalg.norm(found - w)) <= _NEAR * float(np.linalg.norm(w))
            if near and float(prices @ np.abs(transform @ found) ** p) <= before * (1.0 + _WORSE):
                return found
    return w


def _newton(
    tight: Array,
    w: Array,
    transform: NDArray[np.complex128],
    prices: Array,
    p: float,
    alive: NDArray[np.bool_],
) -> Array | None:
    """Solve the equations on the span of the living frequencies; None if multipliers turn negative."""
    # The span of living frequencies is what the others do not see.
    dead = np.vstack([transform[~alive].real, transform[~alive].imag])
    kept = np.eye(len(w))
    if len(dead):
        _, values, rows = np.linalg.svd(dead)
        kept = rows[int((values > 1e-9).sum()) :]
    images, c = transform[alive] @ kept.T, prices[alive]
    A, u = tight @ kept.T, kept @ w
    scale = float(c @ np.abs(images @ u) ** p)
    multipliers = np.zeros(len(A))
    for _ in range(_STEPS):
        gradient, hessian = _derivatives(images, c / scale, p, u)
        top = np.hstack([hessian, -A.T])
        bottom = np.hstack([A, np.zeros((len(A), len(A)))])
        answer = np.linalg.lstsq(np.vstack([top, bottom]), np.r_[-gradient, 1.0 - A @ u], rcond=1e-13)[0]
        step, multipliers = answer[: len(u)], answer[len(u) :]
        u = u + step
        if not np.isfinite(u).all():
            return None
        if float(np.linalg.norm(step)) <= 1e-15 * float(np.linalg.norm(u)):
            break
    wrong = float(multipliers.min(initial=0.0)) < -_FEASIBLE * float(
        np.abs(multipliers).max(initial=1.0)
    )
    return None if wrong else u @ kept


def _derivatives(images: NDArray[np.complex128], c: Array, p: float, u: Array) -> tuple[Array, Array]:
    """Return gradient and Hessian of the sum of priced moduli to the power p."""
    values = images @ u
    sizes = np.abs(values)
    radial = (np.conj(values)[:, None] * images).real / sizes[:, None]
    flat = c * p * sizes ** (p - 2.0)
    gradient = (c * p * sizes ** (p - 1.0)) @ radial
    hessian = (flat[:, None] * images.real).T @ images.real + (
        flat[:, None] * images.imag
    ).T @ images.imag
    return gradient, hessian + (p - 2.0) * (flat[:, None] * radial).T @ radial
