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

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.flat_directions import n_parameters, parameter_jacobian
from pindown.equivalence.recovery.known_layers import Lower
from pindown.equivalence.recovery.observations import Observations
from pindown.equivalence.recovery.oracle import Oracle
from pindown.equivalence.recovery.unit_candidates import Parts
from pindown.network import ReluNetwork

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
_MOST_STARTS = 96
_MOST_PARTS = 4
_GUESSES = (0.0, 1.0, -1.0)  # of the unknown weights, in units of the row's length
_DESCENT_STEPS = 40
_NO_BEND = 1e-8  # singular values of a linear part, relative to the spread, that count as zero
_POLISH_STEPS = 12
_FREE_SCALE = 1e-11  # directions with smaller singular values are the free scales


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


def linear_rest(
    oracle: Oracle, lower: Lower, rows: Array, points: Array, values: Array, spare: int | None = None
) -> tuple[Array, int] | None:
    """Add units that are always on, if the values are the found units' plus a linear part.

    Args:
        oracle: For its noise.
        lower: The layers below.
        rows: The units found, (m, width + 1).
        points: Points of the cube, (n, d).
        values: The function there, (n, k).
        spare: How many units may be added; None for any number.

    Returns:
        Rows with signs (m + r, width + 1), and the number r added; None if that does not explain the
        values.
    """
    a = lower(points)
    u = a @ rows[:, :-1].T + rows[:, -1]
    solution, residual = least_squares(np.column_stack([np.abs(u), a, np.ones(len(a))]), values)
    if residual > last_tolerance(oracle):
        return None
    m = len(rows)
    bends, linear = solution[:m], solution[m:-1]
    signs = likely_signs(rows, bends, linear)
    if signs is None:
        return None
    rest = linear - (rows[:, :-1].T * signs) @ bends  # (width, k)
    left, sizes, _ = np.linalg.svd(rest * np.max(np.abs(a), axis=0)[:, None], full_matrices=False)
    rank = int(np.sum(sizes > max(_NO_BEND, 1e4 * oracle.noise)))
    if spare is not None and rank > spare:
        return None
    reach = np.max(np.abs(a), axis=0)
    directions = left[:, :rank].T / np.where(reach > 0.0, reach, 1.0)
    # Values of the layer below over the cube are bounded by intervals: then the unit is on all over.
    low, high = lower.bounds()
    least = np.minimum(directions * low, directions * high).sum(axis=1)
    always = np.column_stack([directions, 1.0 - least])
    spread = signs[:, None] * rows
    return np.concatenate([spread, always]), rank


def with_partial(
    oracle: Oracle, lower: Lower, rows: Array, parts: Parts, missing: int, points: Array, values: Array
) -> Array | None:
    """Add partly known units and fit their unknown weights: rows with signs, or None."""
    a = lower(points)
    often = np.argsort(-parts.hits, kind="stable")[:_MOST_PARTS]
    starts = 0
    for chosen in combinations(often, missing):
        added, known = parts.row[list(chosen)], parts.known[list(chosen)]
        for guess, signs in product(_GUESSES, product((1.0, -1.0), repeat=len(rows) + missing)):
            starts += 1
            oracle.require_time()
            if starts > _MOST_STARTS:
                return None
            guessed = np.where(known, added, guess * np.array(signs[len(rows) :])[:, None])
            start = np.array(signs)[:, None] * np.concatenate([rows, guessed])
            z = np.maximum(a @ start[:, :-1].T + start[:, -1], 0.0)
            last, _ = least_squares(np.column_stack([z, np.ones(len(z))]), values)
            net = ReluNetwork.from_layers([(start[:, :-1], start[:, -1]), (last[:-1].T, last[-1])])
            fitted = polish(net, a, values, steps=_DESCENT_STEPS)
            if float(np.max(np.abs(fitted(a) - values))) <= last_tolerance(oracle):
                W, b = fitted.layers[0]
                return np.column_stack([W, b])
    return None


def polish(net: ReluNetwork, points: Array, values: Array, *, steps: int = _POLISH_STEPS) -> ReluNetwork:
    """Return the network nearest to ``net`` that fits ``values`` (n, k) at ``points`` (n, d)."""
    if n_parameters(net) > 4_000:
        return net
    best, error = net, _error(net, points, values)
    for _ in range(steps):
        J = parameter_jacobian(best, points)
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        rest = (best(points) - values).reshape(-1)
        step = np.linalg.lstsq(J / size, rest, rcond=_FREE_SCALE)[0] / size
        for share in (1.0, 0.25, 0.05):
            trial = moved(best, -share * step)
            trial_error = _error(trial, points, values)
            if trial_error < error:
                break
        else:
            return best
        gain = error / max(trial_error, 1e-300)
        best, error = trial, trial_error
        if gain < 1.0 + 0.5 / steps:
            return best
    return best


def moved(net: ReluNetwork, step: Array) -> ReluNetwork:
    """Return the network with its parameters, in the Jacobian's order, moved by a step."""
    layers, start = [], 0
    for W, b in net.layers:
        parts = []
        for part in (W, b):
            parts.append(part + step[start : start + part.size].reshape(part.shape))
            start += part.size
        layers.append((parts[0], parts[1]))
    return ReluNetwork.from_layers(layers)


def _error(net: ReluNetwork, points: Array, values: Array) -> float:
    return float(np.sqrt(np.mean((net(points) - values) ** 2)))
