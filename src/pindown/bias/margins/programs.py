r"""Least :math:`\ell_1`, :math:`\ell_\infty` or Fourier :math:`\ell_1` norm under margin constraints.

All are linear programs for HiGHS. A modulus of a complex number is the largest of its projections on all
directions of the plane; the program starts with four, and gets the direction of the current solution for
each frequency until the bound it proves and the value it attains agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_AGREE = 1e-10  # relative gap that ends the refinement of moduli
_ROUNDS = 60


def smallest_l1(Z: Array, y: Array, *, bias: bool) -> tuple[Array, float, Array]:
    r"""Return w, b and multipliers of :math:`\min\lVert w\rVert_1` s.t. :math:`z_iw + y_ib \ge 1`."""
    n, d = Z.shape
    cost = np.r_[np.ones(2 * d), 0.0]
    rows = np.hstack([Z, -Z, y[:, None]])
    bounds = [(0, None)] * (2 * d) + [(None, None) if bias else (0, 0)]
    answer = _program(cost, -rows, -np.ones(n), bounds)
    return answer.x[:d] - answer.x[d : 2 * d], float(answer.x[-1]), -answer.ineqlin.marginals


def smallest_maximum(Z: Array, y: Array, *, bias: bool) -> tuple[Array, float, Array]:
    r"""Return w, b and multipliers of :math:`\min\lVert w\rVert_\infty` s.t. :math:`z_iw + y_ib \ge 1`.

    Written with :math:`w = u - t`, :math:`0 \le u \le 2t`: sums of rows replace two-sided bounds.
    """
    n, d = Z.shape
    cost = np.r_[np.zeros(d), 1.0, 0.0]
    margins = np.hstack([-Z, Z.sum(axis=1)[:, None], -y[:, None]])
    box = sp.hstack([sp.eye_array(d), np.full((d, 1), -2.0), sp.csr_array((d, 1))])
    bounds = [(0, None)] * (d + 1) + [(None, None) if bias else (0, 0)]
    rows = sp.csr_array(sp.vstack([sp.csr_array(margins), box]))
    answer = _program(cost, rows, np.r_[-np.ones(n), np.zeros(d)], bounds)
    w = answer.x[:d] - answer.x[d]
    return w, float(answer.x[-1]), -answer.ineqlin.marginals[:n]


def smallest_moduli(
    Z: Array, transform: NDArray[np.complex128], prices: Array, *, rounds: int = _ROUNDS
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
    bounds = [(None, None)] * d + [(0, None)] * m
    angles = np.arange(4) * (np.pi / 2)
    cuts = [_cut(transform, np.full(m, angle)) for angle in angles]
    margins = np.hstack([-Z, np.zeros((n, m))])
    best = (np.inf, np.zeros(d), np.zeros(n))
    for _ in range(rounds):
        rows = np.vstack([margins, *cuts])
        answer = _program(cost, rows, np.r_[-np.ones(n), np.zeros(len(rows) - n)], bounds)
        w = answer.x[:d]
        w = w / max(float((Z @ w).min()), np.finfo(float).tiny)
        image = transform @ w
        value = float(prices @ np.abs(image))
        if value < best[0]:
            best = (value, w, -answer.ineqlin.marginals[:n])
        if value - answer.fun <= _AGREE * value:
            break
        cuts.append(_cut(transform, np.angle(image)))
    return best[1], best[2]


def _cut(transform: NDArray[np.complex128], angles: Array) -> Array:
    """Return rows of :math:`Re(e^{-i angle} T w) - s <= 0`, one for each frequency."""
    turned = np.exp(-1j * angles)[:, None] * transform
    return np.hstack([turned.real, -np.eye(len(transform))])


def _program(cost: Array, rows: Any, target: Array, bounds: list[tuple[Any, Any]]) -> Any:
    from scipy.optimize import linprog

    for method, options in (("highs", _TIGHT), ("highs-ds", {}), ("highs-ipm", {})):
        answer = linprog(cost, A_ub=rows, b_ub=target, bounds=bounds, method=method, options=options)
        if answer.status == 0:
            return answer
    raise ArithmeticError(f"the linear program was not solved: {answer.message}")
