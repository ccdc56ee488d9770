r"""A proved bound on a sum of ReLUs that nearly cancel.

With units written as near multiples of leaders, the sum is
:math:`\sum_g (\kappa_g |z_g| + \sigma_g z_g)` plus an affine function, up to the residuals of the
units; what does not cancel is bounded term by term. Where a leader is almost always on or off,
:math:`|z|` is replaced by :math:`\pm z`.

Phuong 2021, section 2.2 (units are determined up to multiples; here with tolerance).
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.gap.fold_groups import Near, Sum, row_ranges
from pindown.rounding import TINY, gamma, norm_up


def sum_bound(total: Sum, near: Near, box: Box | None) -> float:
    r"""Bound :math:`\max_k |f_k(x)|` on a box, or that over :math:`1 + \|x\|_2` without one.

    >>> from pindown.equivalence.gap.fold_groups import near_multiples, relations
    >>> rows = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.001]])  # relu(2x) - relu(x) - relu(x + .001)
    >>> total = Sum(rows, np.array([[-1.0, 1.0, -1.0]]), np.zeros((0, 2)), np.zeros((1, 0)))
    >>> round(sum_bound(total, near_multiples(total, relations(total, 0.01)), Box([-1], [1])), 6)
    0.001
    """
    with np.errstate(over="ignore", invalid="ignore"):
        kappa, sigma, doubt = _coefficients(total, near)
        leaders = np.unique(near.leader)
        rows = total.rows[leaders]
        kappa, sigma, doubt = kappa[:, leaders], sigma[:, leaders], doubt[:, leaders]
        residual = np.abs(total.out) @ near.residual
        if box is None:
            value = _relative(total, rows, kappa, sigma, doubt, residual)
        else:
            value = _absolute(total, rows, kappa, sigma, doubt, residual, box)
        steps = sum(total.rows.shape) + sum(total.plain.shape) + 32
        value = value * (1.0 + 4.0 * gamma(steps)) + TINY
    return float(value) if np.isfinite(value) else np.inf


def _coefficients(total: Sum, near: Near) -> tuple[Array, Array, Array]:
    """Return kappa, sigma and bounds on their rounding, each (k, p), at the leaders' places."""
    k, p = total.out.shape
    kappa, sigma, terms = np.zeros((k, p)), np.zeros((k, p)), np.zeros((k, p))
    half = near.factor * total.out / 2
    signed = np.abs(near.factor) * total.out / 2
    for target, values in ((sigma, half), (kappa, signed), (terms, np.abs(half))):
        np.add.at(target.T, near.leader, values.T)
    count = np.bincount(near.leader, minlength=p)
    rounding = np.array([gamma(int(n) + 8) for n in count])
    return kappa, sigma, rounding * terms + TINY


def _affine(total: Sum, rows: Array, slopes: Array) -> tuple[Array, Array]:
    """Return ``slopes @ rows`` and the affine functions added, (k, d + 1), and its rounding."""
    M = slopes @ rows + total.plain_out @ total.plain
    terms = np.abs(slopes) @ np.abs(rows) + np.abs(total.plain_out) @ np.abs(total.plain)
    return M, 2.0 * gamma(len(rows) + len(total.plain) + 8) * terms + TINY


def _absolute(
    total: Sum, rows: Array, kappa: Array, sigma: Array, doubt: Array, residual: Array, box: Box
) -> float:
    reach = np.append(np.maximum(np.abs(box.lower), np.abs(box.upper)), 1.0)
    if len(rows):
        z = row_ranges(rows, box)
        size = np.maximum(np.abs(z.lower), np.abs(z.upper))
        below, above = 2.0 * np.maximum(-z.lower, 0.0), 2.0 * np.maximum(z.upper, 0.0)
    else:
        size = below = above = np.zeros(0)
    errors = np.stack([size, below, above])  # of |z| taken for 0, for z and for -z
    way = np.argmin(errors, axis=0)
    slopes = sigma + kappa * np.array([0.0, 1.0, -1.0])[way]
    M, rounding = _affine(total, rows, slopes)
    # The sum sigma +- kappa is rounded too: doubt counts it, with the rest.
    doubtful = doubt @ (3.0 * size) + np.abs(slopes) @ size * gamma(4)
    kinks = np.abs(kappa) @ np.min(errors, axis=0, initial=np.inf)
    W, c = M[:, :-1], M[:, -1]
    high = np.maximum(W, 0.0) @ box.upper - np.maximum(-W, 0.0) @ box.lower + c
    low = np.maximum(W, 0.0) @ box.lower - np.maximum(-W, 0.0) @ box.upper + c
    straight = np.maximum(np.abs(high), np.abs(low)) + 2.0 * gamma(len(reach) + 8) * (np.abs(M) @ reach)
    straight = straight + TINY * reach.sum()
    return float(np.max(straight + kinks + doubtful + (rounding + residual) @ reach))


def _relative(
    total: Sum, rows: Array, kappa: Array, sigma: Array, doubt: Array, residual: Array
) -> float:
    M, rounding = _affine(total, rows, sigma)
    lengths = np.array([norm_up(row[:-1]) for row in rows])
    weights = np.abs(kappa) + 3.0 * doubt
    extra = rounding + residual
    slope = np.array([norm_up(row) for row in M[:, :-1]]) + np.array(
        [norm_up(row) for row in extra[:, :-1]]
    )
    offset = np.abs(M[:, -1]) + extra[:, -1]
    if len(rows):
        slope, offset = slope + weights @ lengths, offset + weights @ np.abs(rows[:, -1])
    return float(np.max(np.maximum(slope, offset)))
