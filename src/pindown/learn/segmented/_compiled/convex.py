r"""Search over gaps for other losses than the squared one, compiled.

It is the counterpart of joints and of branch and bound. Weights come in rows: two rows, those of
residuals above and below zero, stand for quantile loss (equal ones for absolute loss); three rows, the
weights, the weights again and the threshold, for Huber's.

Programs have few coefficients. Those of quantile loss are solved by simplex steps with an exact line
search. A vertex interpolates as many rows as there are coefficients. At an optimum the multipliers of
these rows are within their weights; a row that violates this is let go, and the weighted median along
the edge says which row takes its place. The caller perturbs targets and weights by amounts far below the
resolution, so that vertices are not degenerate and the optimum is one point. Those of Huber's loss are
solved by Newton's steps, and by reweighted least squares where these fail; what is returned is the dual
value, so that it is a lower bound also where they end early.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.segmented._compiled import compiled
from pindown.learn.segmented._compiled.breakpoints import is_jump

# Lines whose distance at an end of the gap is below this (y is scaled to order one) meet there.
_MEETS = 1e-12
# A multiplier may exceed its weight by this fraction of the total weight: rounding.
_ROUNDING = 1e-12
# Pivots smaller than this fraction of the largest entry count as zero.
_SINGULAR = 1e-11
_MAX_PIVOTS = 2_000
_MAX_NEWTON = 200


@compiled
def prefix_floors(losses: Array, pieces: int) -> Array:
    """Least loss of groups 0..b with k untied lines, row k - 1."""
    G = len(losses)
    floors = np.empty((pieces, G))
    floors[0] = losses[0]
    for k in range(1, pieces):
        for b in range(G):
            best = floors[k - 1, b]
            for a in range(b):
                best = min(best, floors[k - 1, a] + losses[a + 1, b])
            floors[k, b] = best
    return floors


@compiled
def block_fit(
    x: Array,
    y: Array,
    w: Array,
    first: Integers,
    at: Array,
    gaps: Integers,
    s: int,
    e: int,
    lines: Array,
) -> float:
    """Least loss of pieces s..e joined at knots; writes their (value at 0, slope)."""
    K = len(gaps) + 1
    start = 0 if s == 0 else first[gaps[s - 1] + 1]
    stop = len(x) if e == K - 1 else first[gaps[e] + 1]
    p = e - s + 2
    X = np.ones((stop - start, p))
    for i in range(start, stop):
        X[i - start, 1] = x[i] - at[gaps[s]]
        for j in range(2, p):
            X[i - start, j] = max(x[i] - at[gaps[s + j - 2]], 0.0)
    basis = independent_rows(X)
    if len(basis) < p:
        return np.inf  # too few points: the same function has a description with fewer knots
    loss, beta = least_loss(X, y[start:stop], w[:, start:stop], basis)
    slope = beta[1]
    value = beta[0] - slope * at[gaps[s]]
    lines[s, 0], lines[s, 1] = value, slope
    for j in range(2, p):
        slope += beta[j]
        value -= beta[j] * at[gaps[s + j - 2]]
        lines[s + j - 1, 0], lines[s + j - 1, 1] = value, slope
    return loss


@compiled
def fit_with_knots(
    x: Array,
    y: Array,
    w: Array,
    first: Integers,
    at: Array,
    losses: Array,
    table: Array,
    gaps: Integers,
    mask: int,
    cap: float,
    lines: Array,
) -> float:
    """Least loss when the joints in ``mask`` are knots and the others are dropped."""
    K = len(gaps) + 1
    loss = 0.0
    s = np.int64(0)  # a plain 0 would compile block_fit twice
    while s < K and loss < cap:
        e = s
        while e < K - 1 and (mask >> e) & 1:
            e += 1
        if e == s:
            a = 0 if s == 0 else gaps[s - 1] + 1
            b = len(at) - 1 if s == K - 1 else gaps[s]
            if a <= b:
                loss += losses[a, b]
                lines[s] = table[a, b]
        else:
            loss += block_fit(x, y, w, first, at, gaps, s, e, lines)
        s = e + 1
    return loss


@compiled
def crosses(at: Array, gaps: Integers, lines: Array, joint: int) -> bool:
    """Whether the lines on both sides of a joint meet within its closed gap."""
    if np.isnan(lines[joint, 1]) or np.isnan(lines[joint + 1, 1]):
        return False
    value = lines[joint, 0] - lines[joint + 1, 0]
    slope = lines[joint, 1] - lines[joint + 1, 1]
    g = gaps[joint]
    low, high = value + slope * at[g], value + slope * at[g + 1]
    return low * high <= 0.0 or min(abs(low), abs(high)) <= _MEETS


@compiled
def best_in_gaps(
    x: Array,
    y: Array,
    w: Array,
    first: Integers,
    at: Array,
    losses: Array,
    table: Array,
    gaps: Integers,
    cap: float,
    lines: Array,
) -> tuple[float, int]:
    """Least loss below ``cap`` with a breakpoint in each listed gap, and its knots (-1: none)."""
    K = len(gaps) + 1
    trial = np.zeros((K, 2))
    best, best_mask = cap, -1
    masks = np.zeros(K * K + 2, dtype=np.int64)
    froms = np.zeros(K * K + 2, dtype=np.int64)
    height = 1
    while height:
        height -= 1
        mask, begin = masks[height], froms[height]
        loss = fit_with_knots(x, y, w, first, at, losses, table, gaps, mask, best, trial)
        if loss >= best and loss < np.inf:
            continue
        fits = loss < np.inf
        for joint in range(K - 1):
            if not (mask >> joint) & 1 and not is_jump(gaps, joint):
                fits = fits and crosses(at, gaps, trial, joint)
        if fits:
            best, best_mask = loss, mask
            lines[:] = trial
            continue
        for joint in range(begin, K - 1):
            if not is_jump(gaps, joint):
                masks[height] = mask | (1 << joint)
                froms[height] = joint + 1
                height += 1
    return best, best_mask


@compiled
def explore(
    x: Array,
    y: Array,
    w: Array,
    first: Integers,
    at: Array,
    losses: Array,
    table: Array,
    floors: Array,
    stack: Array,
    height: int,
    best: float,
    slack: float,
    best_path: Integers,
    best_mask: int,
    lines: Array,
    steps: int,
) -> tuple[int, float, int, int, int]:
    """Take up to ``steps`` nodes (bound, level, suffix loss, path) off the stack."""
    leaves = nodes = 0
    while height and nodes < steps:
        height -= 1
        nodes += 1
        if stack[height, 0] >= best - slack:
            continue
        level, suffix = int(stack[height, 1]), stack[height, 2]
        path = stack[height, 3:].copy()
        if level == 0:
            leaves += 1
            nodes += 20  # a leaf takes about as long as this many nodes
            places = path.astype(np.int64)
            loss, mask = best_in_gaps(x, y, w, first, at, losses, table, places, best, lines)
            if mask >= 0:
                best, best_mask = loss, mask
                best_path[:] = places
            continue
        end = len(at) - 1 if level == len(path) else int(path[level])
        bounds = np.empty(end + 1)
        for g in range(end + 1):
            piece = losses[g + 1, end] if g < end else 0.0
            bounds[g] = floors[level - 1, g] + piece + suffix
        for g in np.argsort(-bounds):
            if bounds[g] < best - slack and g < len(at) - 1:
                stack[height, 0], stack[height, 1] = bounds[g], level - 1
                stack[height, 2] = suffix + (losses[g + 1, end] if g < end else 0.0)
                stack[height, 3:] = path
                stack[height, 3 + level - 1] = g
                height += 1
    return height, best, best_mask, leaves, nodes


@compiled
def independent_rows(X: Array) -> Integers:
    """Integers of rows that span (elimination with row choice); fewer than columns if X lacks rank."""
    n, p = X.shape
    left = X.copy()
    basis = np.empty(p, dtype=np.int64)
    scale = np.max(np.abs(X))
    count = 0
    for column in range(p):
        best, row = _SINGULAR * scale, -1
        for i in range(n):
            if abs(left[i, column]) > best:
                best, row = abs(left[i, column]), i
        if row < 0:
            break
        basis[count] = row
        count += 1
        pivot = left[row].copy()
        for i in range(n):
            factor = left[i, column] / pivot[column]
            for j in range(p):
                left[i, j] -= factor * pivot[j]
    return basis[:count]


@compiled
def least_loss(X: Array, y: Array, w: Array, basis: Integers) -> tuple[float, Array]:
    """Least loss and its coefficients; how many rows the weights have says which loss."""
    if w.shape[0] == 3:
        return least_huber(X, y, w)
    return least_quantile(X, y, w, basis)


@compiled
def least_huber(X: Array, y: Array, w: Array) -> tuple[float, Array]:
    r"""Least Huber loss and its coefficients: the dual value, which is never above the least loss.

    With :math:`u_i = 2 w_i\, \mathrm{clip}(r_i, \pm\delta)` projected so that :math:`X^\top u = 0`, and
    shrunk to :math:`|u_i| \le 2 w_i \delta`, the loss is at least
    :math:`\sum_i u_i y_i - u_i^2 / (4 w_i)`.
    """
    weight, threshold = w[0].copy(), w[2, 0]
    total = np.sum(weight)
    square = X.T @ (X * weight.reshape(-1, 1))
    beta = np.linalg.solve(square, X.T @ (weight * y))
    r = y - X @ beta
    loss = _huber(r, weight, threshold)
    for _ in range(_MAX_NEWTON):
        inner = np.abs(r) <= threshold
        pull = X.T @ (weight * np.minimum(np.maximum(r, -threshold), threshold))
        moved = False
        for attempt in range(2):  # Newton's step, then that of reweighted least squares
            if attempt == 0:
                share = weight * inner
            else:
                share = weight * np.minimum(1.0, threshold / np.maximum(np.abs(r), threshold))
            H = X.T @ (X * share.reshape(-1, 1))
            if attempt == 0 and abs(np.linalg.det(H)) <= _SINGULAR * abs(np.linalg.det(square)):
                continue
            step = np.linalg.solve(H, pull)
            trial = beta + step
            after = y - X @ trial
            value = _huber(after, weight, threshold)
            if value < loss:
                beta, r, loss, moved = trial, after, value, True
                break
        if not moved:
            break
    u = weight * 2.0 * np.minimum(np.maximum(r, -threshold), threshold)
    u = u - weight * (X @ np.linalg.solve(square, X.T @ u))
    largest = np.max(np.abs(u) / (2.0 * threshold * weight))
    if largest > 1.0:
        u = u / largest
    dual = np.sum(u * y - u * u / (4.0 * weight))
    return min(loss, max(dual, 0.0)) if total > 0.0 else 0.0, beta


@compiled
def _huber(r: Array, weight: Array, threshold: float) -> float:
    size = np.abs(r)
    return float(
        np.sum(weight * np.where(size <= threshold, size * size, 2.0 * threshold * size - threshold**2))
    )


@compiled
def least_quantile(X: Array, y: Array, w: Array, basis: Integers) -> tuple[float, Array]:
    """Least quantile loss and its coefficients, from a vertex; ``basis`` ends at the best."""
    n, p = X.shape
    total = np.sum(w)
    beta = np.zeros(p)
    rhs = np.empty(p)
    B = np.empty((p, p))
    r = np.empty(n)
    along = np.empty(n)
    ratios = np.empty(n)
    for _ in range(_MAX_PIVOTS):
        for j in range(p):
            B[j] = X[basis[j]]
            rhs[j] = y[basis[j]]
        inverse = np.linalg.inv(B)
        for j in range(p):
            beta[j] = 0.0
            for i in range(p):
                beta[j] += inverse[j, i] * rhs[i]
        pull = np.zeros(p)
        loss = 0.0
        for i in range(n):
            value = y[i]
            for j in range(p):
                value -= X[i, j] * beta[j]
            r[i] = value
            loss += w[0, i] * value if value > 0.0 else -w[1, i] * value
        for j in range(p):
            r[basis[j]] = 0.0
        for i in range(n):
            if r[i] != 0.0:
                force = w[0, i] if r[i] > 0.0 else -w[1, i]
                for j in range(p):
                    pull[j] += force * X[i, j]
        leaving, worst, sign = -1, _ROUNDING * total, 1.0
        for j in range(p):
            multiplier = 0.0
            for i in range(p):
                multiplier -= pull[i] * inverse[i, j]
            excess = max(multiplier - w[0, basis[j]], -multiplier - w[1, basis[j]])
            if excess > worst:
                leaving, worst, sign = j, excess, -np.sign(multiplier)
        if leaving < 0:
            break
        count = np.int64(0)  # a plain 0 would compile the line search twice
        for i in range(n):
            along[i] = 0.0
            for j in range(p):
                along[i] += X[i, j] * inverse[j, leaving] * sign
            if r[i] * along[i] > 0.0:
                ratios[count] = r[i] / along[i]
                count += 1
        entering = _line_search(r, along, w, ratios, count, worst)
        if entering < 0:
            break
        basis[leaving] = entering
    return loss, beta


@compiled
def _line_search(r: Array, along: Array, w: Array, ratios: Array, count: int, descent: float) -> int:
    """Row at which the loss along an edge stops falling, given how fast it falls at first."""
    rows = np.empty(count, dtype=np.int64)
    k = 0
    for i in range(len(r)):
        if r[i] * along[i] > 0.0:
            rows[k] = i
            k += 1
    left = descent
    for k in np.argsort(ratios[:count]):
        left -= (w[0, rows[k]] + w[1, rows[k]]) * abs(along[rows[k]])
        if left <= 0.0:
            return rows[k]
    return -1


@compiled
def line_table(
    x: Array, y: Array, w: Array, first: Integers, losses: Array, lines: Array, a: int
) -> None:
    """Fill row a: best line on groups a, a+1, ..., b for every b (loss, value at 0, slope; NaN: any)."""
    G = len(first) - 1
    start = first[a]
    X = np.ones((first[G] - start, 2))
    X[:, 1] = x[start:]
    basis = np.empty(2, dtype=np.int64)
    ready = False
    for b in range(a, G):
        stop = first[b + 1] - start
        if a == b:
            one = np.zeros(1, dtype=np.int64)
            loss, beta = least_loss(
                X[:stop, :1].copy(), y[start : start + stop], w[:, start : start + stop], one
            )
            losses[a, b], lines[a, b, 0], lines[a, b, 1] = loss, beta[0], np.nan
            continue
        if not ready:
            basis[0], basis[1] = 0, stop - 1
            ready = True
        loss, beta = least_loss(X[:stop], y[start : start + stop], w[:, start : start + stop], basis)
        losses[a, b], lines[a, b, 0], lines[a, b, 1] = loss, beta[0], beta[1]
