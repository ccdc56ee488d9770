r"""Opposite pairs that cancel, written as one unit that is always on.

On a box :math:`z = W_i a + b_i \ge -\beta`, so

.. math::
    c\,\rho(z) - c\,\rho(-z) = c\, z = c\,\rho(z + \beta) - c\,\beta ,

one ReLU instead of two. Without a box a linear function has no such form, and the pair stays.

Phuong 2021, section 2.2; the always-on unit is the one a bounded domain allows.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np

from pindown.affine import Array
from pindown.equivalence.shrinking.columns import columns_of, rows_of
from pindown.equivalence.shrinking.draft import Draft, Layer, pick
from pindown.equivalence.shrinking.linear_part import linear_part
from pindown.equivalence.shrinking.products import add, affine_image
from pindown.equivalence.shrinking.result import Step
from pindown.relaxation.intervals import Interval

# Shifts are rounded up to this many bits: sums with them then seldom round, and the little that is
# added keeps the unit on when its bounds are computed again.
_SHIFT_BITS = 8


def shift_above(lower: Array) -> Array:
    r"""Return short numbers :math:`\beta \ge 0` with ``lower + beta > 0``, or 0 where ``lower >= 0``.

    >>> shift_above(np.array([-1.0, 2.0, -256.5]))
    array([  1.015625,   0.      , 260.      ])
    """
    return np.array([_short_above(-low) if low < 0.0 else 0.0 for low in lower])


def _short_above(value: float) -> float:
    fraction, exponent = frexp(value)
    return ldexp(np.floor(ldexp(fraction, _SHIFT_BITS)) + 2.0, exponent - _SHIFT_BITS)


def carry_pairs(draft: Draft, layer: int) -> bool:
    """Replace every cancelling opposite pair of a hidden layer (from 0) by one always-on unit."""
    part = linear_part(draft, layer)
    lower = draft.bounds(layer).lower[part.pairs.first]
    chosen = part.cancels & np.isfinite(lower)
    if draft.box is None or not chosen.any():
        return False
    first, second = part.pairs.first[chosen], part.pairs.second[chosen]
    shift = shift_above(lower[chosen])
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    moved = add(bias[first], shift)
    new_bias, error = np.array(bias), np.zeros(len(bias))
    new_bias[first], error[first] = moved
    outward = affine_image(columns_of(following, first), -shift, offset)
    keep = np.ones(len(bias), dtype=bool)
    keep[second] = False
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = rows_of(weight, keep), new_bias[keep]
    layers[layer + 1] = columns_of(following, keep), outward.value
    known = list(draft.known)
    low, high = (np.array(end) for end in known[layer])
    low[first], high[first] = 0.0, np.inf
    known[layer] = pick(Interval(low, high), keep)
    units = tuple(sorted((*first.tolist(), *second.tolist())))
    reason = "opposite units whose work adds up to a linear map, which one always-on unit can carry"
    errors = {layer: (0.0, error[keep]), layer + 1: (0.0, outward.error)}
    return draft.propose(layers, errors, Step("linear pair", layer + 1, units, reason), known)
