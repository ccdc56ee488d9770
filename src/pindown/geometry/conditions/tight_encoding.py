"""A mixed-integer encoding whose variables are narrowed by linear bounds: fewer open units."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pindown.geometry.box import Box
from pindown.geometry.conditions.big_m import Encoding, encode, unit_sizes
from pindown.geometry.intervals import interval_bounds
from pindown.geometry.linear_bounds import linear_bounds
from pindown.network import ReluNetwork

_ROOM = 1.0 + 2.0**-40  # for the rounding of scaled bounds, far below the tolerance of the solver


def tight_encoding(net: ReluNetwork, box: Box, *, deadline: float) -> Encoding | None:
    """Encode a network on a box; None if its numbers are too far apart for a solver.

    Args:
        net: The network.
        box: The inputs.
        deadline: Time (``time.monotonic``) by which the linear bounds must be done.

    Raises:
        TimeoutError: If they are not.
    """
    plain = encode(net, box)
    if plain is None:
        return None
    wide, tight = interval_bounds(net, box), linear_bounds(net, box, deadline=deadline)
    lower, upper = plain.lower.copy(), plain.upper.copy()
    place, binary = box.dim, box.dim + net.size
    for z, own in zip(wide[:-1], tight[:-1], strict=True):
        size = unit_sizes(z)
        end = place + len(size)
        upper[place:end] = np.minimum(upper[place:end], np.maximum(own.upper, 0.0) / size * _ROOM)
        place = end
        was_open = (z.lower < 0) & (z.upper > 0)
        switches = slice(binary, binary + int(was_open.sum()))
        lower[switches] = np.where(own.lower[was_open] >= 0, 1.0, 0.0)
        upper[switches] = np.where(own.upper[was_open] <= 0, 0.0, 1.0)
        binary = switches.stop
    both = (lower == 1.0) & (upper == 0.0) & (plain.integrality == 1)
    lower[both] = 0.0  # a unit that is 0 everywhere is neither on nor off: leave no contradiction
    return replace(plain, lower=lower, upper=upper)
