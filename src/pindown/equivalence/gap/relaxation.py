"""How far two networks differ on boxes: linear bounds on each alone, and on both tied where they can be.

Paulsen, Wang and Wang 2020, "ReluDiff: differential verification of deep neural networks".
"""

from __future__ import annotations

from math import inf

import numpy as np

from pindown.affine import Array
from pindown.equivalence.gap.tied import row_dots, tied
from pindown.network import ReluNetwork
from pindown.relaxation.linear import LinearForms, largest, relax
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up


def sum_of_forms(first: LinearForms, second: LinearForms, reach: Array) -> LinearForms:
    """Add upper forms; ``reach`` (n, d) bounds the inputs, for the rounding of the coefficients."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = first.weight + second.weight
        slack = (
            4.0 * UNIT_ROUNDOFF * row_dots(np.abs(weight), reach)
            + TINY * (1.0 + reach.sum(axis=1))[:, None]
        )
        offset = add_up(add_up(first.offset, second.offset), slack)
    return LinearForms(weight, np.where(np.isfinite(offset), offset, np.inf))


def gap_bounds(
    a: ReluNetwork, b: ReluNetwork, lower: Array, upper: Array, *, deadline: float = inf
) -> tuple[Array, LinearForms]:
    """Bound the largest difference of two networks on each of n boxes.

    Args:
        a: A network.
        b: One with as many inputs and outputs; tied to a if it has the same widths.
        lower: Lower corners, (n, d).
        upper: Upper corners, (n, d).
        deadline: When to stop tightening, as ``time.monotonic()`` counts; bounds are looser then.

    Returns:
        Upper bounds on ``max |a_k - b_k|``, (n,), and the better linear forms of ``+-(a_k - b_k)``.
    """
    k = a.out_features
    rows = np.concatenate([np.eye(k), -np.eye(k)])
    first, second = (relax(net, lower, upper, deadline=deadline) for net in (a, b))
    forms = sum_of_forms(first.upper_forms(rows), second.upper_forms(-rows), first.reach[0])
    bounds = largest(forms, lower, upper)
    za, zb = first.bounds[-1], second.bounds[-1]
    apart = np.concatenate([add_up(za.upper, -zb.lower), add_up(zb.upper, -za.lower)], axis=1)
    bounds = np.minimum(bounds, apart)
    if a.widths == b.widths:
        pair = tied(first, second, deadline=deadline)
        other = pair.upper_forms(rows)
        delta = np.concatenate([pair.deltas[-1].upper, -pair.deltas[-1].lower], axis=1)
        better = delta < bounds
        forms = LinearForms(
            np.where(better[:, :, None], other.weight, forms.weight),
            np.where(better, other.offset, forms.offset),
        )
        bounds = np.minimum(bounds, delta)
    return np.maximum(bounds.max(axis=1), 0.0), forms


def gap_lower_bounds(a: ReluNetwork, b: ReluNetwork, point: Array) -> float:
    """Return a lower bound on ``max |a_k - b_k|`` at one point, from linear bounds; at least 0."""
    first, second = (relax(net, point[None], point[None]) for net in (a, b))
    za, zb = first.bounds[-1], second.bounds[-1]
    lower, upper = add_down(za.lower, -zb.upper), add_up(za.upper, -zb.lower)
    if a.widths == b.widths:
        delta = tied(first, second).deltas[-1]
        lower, upper = np.maximum(lower, delta.lower), np.minimum(upper, delta.upper)
    return max(0.0, float(np.max(lower)), float(np.max(-upper)))
