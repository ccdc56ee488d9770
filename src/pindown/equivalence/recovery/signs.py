r"""On which side of its fold a unit is on.

Below the output, gradients are :math:`G = \sum_{i\ \mathrm{on}} q_i\, w_i^\top J`. If the rows
:math:`w_i^\top J` are independent at a point, the coefficient of a unit that is off is exactly zero, and
a coefficient that is not zero shows a unit that is on. Where they are dependent everywhere, signs are
tried: with the right ones G lies in the span of the rows that are on.

In the last hidden layer the signs follow from one linear fit, because
:math:`\rho(s u) = (|u| + s u)/2` for :math:`s = \pm 1`.

Phuong 2021, proof of Theorem 2.1 (the step that fixes the signs).
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.lower import Lower
from pindown.equivalence.recovery.observations import Observations
from pindown.equivalence.recovery.oracle import Oracle

_ERRORS = 100.0
_UNANIMOUS = 0.95
_VOTES = 3
_FIRM = 1e-3  # doubt, as a share of the largest coefficient, up to which a point votes
_SURELY_ON, _SURELY_OFF = 1e-5, 1e-7  # shares; in between, errors of the rows may be to blame
_MOST_UNDECIDED = 8  # 256 sign vectors are tried
_POINTS = 200
_INDEPENDENT = 1e-6  # smallest singular value of gradients, of length one each, that can be told apart
_UNEXPLAINED = 1e-6  # share of a gradient outside the span of the units that are on
_EXACT_FIT = 1e-6  # share of the spread; rows found so far carry errors, which the final fit removes
_ROUNDING = 1e-12
_DEPENDENT = 1e-9  # singular value of rows of length one that are dependent
_MOST_SIGNS = 14  # units of a wide last layer whose signs are enumerated


def vote(lower: Lower, rows: Array, seen: Observations) -> list[Array]:
    """Return sign vectors for the rows (m, width + 1), the likeliest first; none if nothing fits."""
    y = seen.side.reshape(-1, lower.d)
    G = seen.gradient.reshape(len(y), -1, lower.d)
    error = seen.gradient_error.reshape(-1)
    keep = np.abs(G).max(axis=(1, 2)) > _ERRORS * error
    y, G, error = y[keep], G[keep], error[keep]
    a, J = lower.jacobian(y)
    height = a @ rows[:, :-1].T + rows[:, -1]
    M = rows[:, :-1] @ J
    signs = _independent_votes(height, M, G, error)
    undecided = np.flatnonzero(signs == 0.0)
    if not len(undecided):
        return [signs]
    if len(undecided) > _MOST_UNDECIDED:
        return []
    return _try_signs(signs, undecided, height, M, G, error)


def _independent_votes(height: Array, M: Array, G: Array, error: Array) -> Array:
    """Return +1 or -1 for every unit on which the points agree, else 0."""
    m = M.shape[1]
    size = np.linalg.norm(M, axis=2)
    scaled = M / np.maximum(size, 1e-300)[..., None]
    if m > M.shape[2] or not len(M):
        return np.zeros(m)
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    firm = s[:, -1] > _INDEPENDENT
    u, s, vt, G, error, height = u[firm], s[firm], vt[firm], G[firm], error[firm], height[firm]
    parts = (G @ np.swapaxes(vt, 1, 2)) / s[:, None]
    coefficients = np.abs(parts @ np.swapaxes(u, 1, 2)).max(axis=1)  # (n, m), largest over outputs
    doubt = _ERRORS * np.sqrt(M.shape[2]) * error / s[:, -1]
    largest = coefficients.max(axis=1)
    firm = doubt < _FIRM * largest
    on = firm[:, None] & (coefficients > np.maximum(doubt, _SURELY_ON * largest)[:, None])
    off = firm[:, None] & (coefficients <= np.maximum(doubt, _SURELY_OFF * largest)[:, None])
    side = np.sign(height)
    balance = np.where(on, side, 0.0).sum(axis=0) - np.where(off, side, 0.0).sum(axis=0)
    total = (on | off).sum(axis=0)
    clear = (total >= _VOTES) & (np.abs(balance) >= (2 * _UNANIMOUS - 1) * total)
    return np.where(clear, np.sign(balance), 0.0)


def _try_signs(
    signs: Array, undecided: NDArray[np.int64], height: Array, M: Array, G: Array, error: Array
) -> list[Array]:
    """Return the completions of a sign vector that explain the gradients best."""
    order = np.argsort(error, kind="stable")[:_POINTS]
    height, M, G, error = height[order], M[order], G[order], error[order]
    size = np.maximum(np.linalg.norm(M, axis=2), 1e-300)
    scores = []
    for choice in product((1.0, -1.0), repeat=len(undecided)):
        trial = signs.copy()
        trial[undecided] = choice
        on = (height * trial > 0.0)[..., None] * M / size[..., None]
        rest = G - G @ np.linalg.pinv(on, rcond=_SURELY_OFF) @ on
        wrong = np.abs(rest).max(axis=(1, 2)) > _ERRORS * error + _UNEXPLAINED * np.abs(G).max(
            axis=(1, 2)
        )
        scores.append((float(wrong.mean()), trial))
    scores.sort(key=lambda pair: pair[0])
    best = scores[0][0]
    return [trial for score, trial in scores if score <= best + 0.01 and score < 0.1]


def fit_last(
    oracle: Oracle, lower: Lower, rows: Array, points: Array, values: Array
) -> tuple[Array, float] | None:
    """Fit ``f = sum_i v_i relu(s_i u_i) + c`` in the units u_i: signs and the share left over.

    Returns:
        The signs, and the largest residual of the sign-free fit; None if the rows cannot be the last
        hidden layer.
    """
    a = lower(points)
    u = a @ rows[:, :-1].T + rows[:, -1]
    features = np.column_stack([np.abs(u), a, np.ones(len(a))])
    solution, residual = least_squares(features, values)
    tolerance = last_tolerance(oracle)
    if residual > tolerance:
        return None
    m = len(rows)
    bends, linear = solution[:m], solution[m : m + lower.width]  # (m, k), (width, k)
    signs = likely_signs(rows, bends, linear)
    return None if signs is None else (signs, residual)


def likely_signs(rows: Array, bends: Array, linear: Array) -> Array | None:
    """Return the signs s with ``sum_i s_i bends_i w_i`` nearest to the linear part (width, k).

    None if the rows are dependent and too many to try all signs.
    """
    W, m = rows[:, :-1], len(rows)
    if m == 0:
        return np.empty(0)
    if np.linalg.matrix_rank(W, tol=_DEPENDENT) == m:
        weights = np.linalg.lstsq(W.T, linear, rcond=None)[0]  # (m, k): s_i v_i / 2
        return np.where(np.einsum("mk,mk->m", weights, bends) >= 0.0, 1.0, -1.0)
    if m > _MOST_SIGNS:
        return None
    choices = np.array(list(product((1.0, -1.0), repeat=m)))
    gaps = np.einsum("cm,mk,mw->cwk", choices, bends, W) - linear
    return np.asarray(choices[int(np.argmin(np.abs(gaps).max(axis=(1, 2))))])


def last_tolerance(oracle: Oracle) -> float:
    """Return the residual below which a fit of the values counts as exact, for now."""
    return max(_EXACT_FIT, 1e3 * oracle.noise)


def least_squares(features: Array, values: Array) -> tuple[Array, float]:
    """Return the coefficients (features, k) and the largest residual."""
    scale = np.maximum(np.linalg.norm(features, axis=0), 1e-300)
    solution = np.linalg.lstsq(features / scale, values, rcond=_ROUNDING)[0]
    residual = float(np.max(np.abs(features / scale @ solution - values), initial=0.0))
    return solution / scale[:, None], residual
