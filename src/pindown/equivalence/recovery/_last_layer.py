r"""On which side of its fold a unit is on, and the last layers, fitted to values.

Below the output, gradients are :math:`G = \sum_{i\ \mathrm{on}} q_i\, w_i^\top J`. If the rows
:math:`w_i^\top J` are independent at a point, the coefficient of a unit that is off is exactly zero, and
a coefficient that is not zero shows a unit that is on. Where they are dependent everywhere, signs are
tried: with the right ones G lies in the span of the rows that are on.

In the last hidden layer the signs follow from one linear fit, because
:math:`\rho(s u) = (|u| + s u)/2` for :math:`s = \pm 1`. A unit that is on all over the box has no fold;
what it adds is linear in the layer below, and is found by fitting the values with

.. math:: f = \sum_i \tfrac12 v_i |u_i| + B a + c

in the units :math:`u_i` found. A unit whose fold is only seen where some inputs are off has unknown
weights from these inputs; they start at a few guesses and follow from the values by least squares.

At the end all parameters are improved at once. Near the truth the function is linear in them wherever
no unit switches, so a few Gauss-Newton steps :math:`\theta \leftarrow \theta - J^{+} (f_\theta(y) -
f(y))` on more points than parameters bring the error down to what the values' noise allows. The
least-norm solution leaves the free scales of the units alone.

Phuong 2021, proof of Theorem 2.1 (the step that fixes the signs).
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.flat_directions import n_parameters, parameter_jacobian
from pindown.equivalence.recovery._kinks import Observations
from pindown.equivalence.recovery._known_layers import KnownLayers
from pindown.equivalence.recovery._oracle import Oracle
from pindown.equivalence.recovery._unit_candidates import Parts
from pindown.equivalence.tuning import (
    DEPENDENT,
    DESCENT_STEPS,
    EXACT_FIT,
    FIRM,
    FREE_SCALE,
    INDEPENDENT,
    MAX_PARTIAL_UNITS,
    MAX_SIGNS,
    MAX_STARTS,
    MAX_UNDECIDED,
    MIN_VOTES,
    NO_BEND,
    POLISH_STEPS,
    SIGN_POINTS,
    SURELY_OFF,
    SURELY_ON,
    UNANIMOUS,
    UNEXPLAINED,
    VOTE_ERRORS,
    WEIGHT_GUESSES,
)
from pindown.network import ReluNetwork

_ROUNDING = 1e-12


def vote(lower: KnownLayers, rows: Array, seen: Observations) -> list[Array]:
    """Return sign vectors for the rows (m, width + 1), the likeliest first; none if nothing fits."""
    y = seen.side.reshape(-1, lower.d)
    G = seen.gradient.reshape(len(y), -1, lower.d)
    error = seen.gradient_error.reshape(-1)
    keep = np.abs(G).max(axis=(1, 2)) > VOTE_ERRORS * error
    y, G, error = y[keep], G[keep], error[keep]
    a, J = lower.jacobian(y)
    height = a @ rows[:, :-1].T + rows[:, -1]
    M = rows[:, :-1] @ J
    signs = _independent_votes(height, M, G, error)
    undecided = np.flatnonzero(signs == 0.0)
    if not len(undecided):
        return [signs]
    if len(undecided) > MAX_UNDECIDED:
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
    firm = s[:, -1] > INDEPENDENT
    u, s, vt, G, error, height = u[firm], s[firm], vt[firm], G[firm], error[firm], height[firm]
    parts = (G @ np.swapaxes(vt, 1, 2)) / s[:, None]
    coefficients = np.abs(parts @ np.swapaxes(u, 1, 2)).max(axis=1)  # (n, m), largest over outputs
    doubt = VOTE_ERRORS * np.sqrt(M.shape[2]) * error / s[:, -1]
    largest = coefficients.max(axis=1)
    firm = doubt < FIRM * largest
    on = firm[:, None] & (coefficients > np.maximum(doubt, SURELY_ON * largest)[:, None])
    off = firm[:, None] & (coefficients <= np.maximum(doubt, SURELY_OFF * largest)[:, None])
    side = np.sign(height)
    balance = np.where(on, side, 0.0).sum(axis=0) - np.where(off, side, 0.0).sum(axis=0)
    total = (on | off).sum(axis=0)
    clear = (total >= MIN_VOTES) & (np.abs(balance) >= (2 * UNANIMOUS - 1) * total)
    return np.where(clear, np.sign(balance), 0.0)


def _try_signs(
    signs: Array, undecided: NDArray[np.int64], height: Array, M: Array, G: Array, error: Array
) -> list[Array]:
    """Return the completions of a sign vector that explain the gradients best."""
    order = np.argsort(error, kind="stable")[:SIGN_POINTS]
    height, M, G, error = height[order], M[order], G[order], error[order]
    size = np.maximum(np.linalg.norm(M, axis=2), 1e-300)
    scores = []
    for choice in product((1.0, -1.0), repeat=len(undecided)):
        trial = signs.copy()
        trial[undecided] = choice
        on = (height * trial > 0.0)[..., None] * M / size[..., None]
        rest = G - G @ np.linalg.pinv(on, rcond=SURELY_OFF) @ on
        wrong = np.abs(rest).max(axis=(1, 2)) > VOTE_ERRORS * error + UNEXPLAINED * np.abs(G).max(
            axis=(1, 2)
        )
        scores.append((float(wrong.mean()), trial))
    scores.sort(key=lambda pair: pair[0])
    best = scores[0][0]
    return [trial for score, trial in scores if score <= best + 0.01 and score < 0.1]


def fit_last(
    oracle: Oracle, lower: KnownLayers, rows: Array, points: Array, values: Array
) -> tuple[Array | None, float] | None:
    """Fit ``f = sum_i v_i relu(s_i u_i) + c`` in the units u_i: signs and the share left over.

    Returns:
        The signs (None if they are open: dependent rows, too many to try all), and the largest residual
        of the sign-free fit; None if the rows cannot be the last hidden layer.
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
    return likely_signs(rows, bends, linear), residual


def likely_signs(rows: Array, bends: Array, linear: Array) -> Array | None:
    """Return the signs s with ``sum_i s_i bends_i w_i`` nearest to the linear part (width, k).

    None if the rows are dependent and too many to try all signs.
    """
    W, m = rows[:, :-1], len(rows)
    if m == 0:
        return np.empty(0)
    if np.linalg.matrix_rank(W, tol=DEPENDENT) == m:
        weights = np.linalg.lstsq(W.T, linear, rcond=None)[0]  # (m, k): s_i v_i / 2
        return np.where(np.einsum("mk,mk->m", weights, bends) >= 0.0, 1.0, -1.0)
    if m > MAX_SIGNS:
        return None
    choices = np.array(list(product((1.0, -1.0), repeat=m)))
    gaps = np.einsum("cm,mk,mw->cwk", choices, bends, W) - linear
    return np.asarray(choices[int(np.argmin(np.abs(gaps).max(axis=(1, 2))))])


def last_tolerance(oracle: Oracle) -> float:
    """Return the residual below which a fit of the values counts as exact, for now."""
    return max(EXACT_FIT, 1e3 * oracle.noise)


def least_squares(features: Array, values: Array) -> tuple[Array, float]:
    """Return the coefficients (features, k) and the largest residual."""
    scale = np.maximum(np.linalg.norm(features, axis=0), 1e-300)
    solution = np.linalg.lstsq(features / scale, values, rcond=_ROUNDING)[0]
    residual = float(np.max(np.abs(features / scale @ solution - values), initial=0.0))
    return solution / scale[:, None], residual


def linear_rest(
    oracle: Oracle,
    lower: KnownLayers,
    rows: Array,
    points: Array,
    values: Array,
    spare: int | None = None,
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
    if signs is None:  # open: with any signs, what is left is linear in the layer below
        signs = np.ones(m)
    rest = linear - (rows[:, :-1].T * signs) @ bends  # (width, k)
    left, sizes, _ = np.linalg.svd(rest * np.max(np.abs(a), axis=0)[:, None], full_matrices=False)
    rank = int(np.sum(sizes > max(NO_BEND, 1e4 * oracle.noise)))
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
    oracle: Oracle,
    lower: KnownLayers,
    rows: Array,
    parts: Parts,
    missing: int,
    points: Array,
    values: Array,
) -> Array | None:
    """Add partly known units and fit their unknown weights: rows with signs, or None."""
    a = lower(points)
    often = np.argsort(-parts.hits, kind="stable")[:MAX_PARTIAL_UNITS]
    starts = 0
    for chosen in combinations(often, missing):
        added, known = parts.row[list(chosen)], parts.known[list(chosen)]
        for guess, signs in product(WEIGHT_GUESSES, product((1.0, -1.0), repeat=len(rows) + missing)):
            starts += 1
            oracle.require_time()
            if starts > MAX_STARTS:
                return None
            guessed = np.where(known, added, guess * np.array(signs[len(rows) :])[:, None])
            start = np.array(signs)[:, None] * np.concatenate([rows, guessed])
            z = np.maximum(a @ start[:, :-1].T + start[:, -1], 0.0)
            last, _ = least_squares(np.column_stack([z, np.ones(len(z))]), values)
            net = ReluNetwork.from_layers([(start[:, :-1], start[:, -1]), (last[:-1].T, last[-1])])
            fitted = polish(net, a, values, steps=DESCENT_STEPS)
            if float(np.max(np.abs(fitted(a) - values))) <= last_tolerance(oracle):
                W, b = fitted.layers[0]
                return np.column_stack([W, b])
    return None


def polish(net: ReluNetwork, points: Array, values: Array, *, steps: int = POLISH_STEPS) -> ReluNetwork:
    """Return the network nearest to ``net`` that fits ``values`` (n, k) at ``points`` (n, d)."""
    if n_parameters(net) > 4_000:
        return net
    best, error = net, _error(net, points, values)
    for _ in range(steps):
        J = parameter_jacobian(best, points)
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        rest = (best(points) - values).reshape(-1)
        step = np.linalg.lstsq(J / size, rest, rcond=FREE_SCALE)[0] / size
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
