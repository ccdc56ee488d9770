r"""Units that reach zero only by rounding, moved off it, so that their sign is decided.

A ReLU whose input is at most 0 on the box, and 0 somewhere, is dead; after its weights were rescaled and
rounded it may reach :math:`10^{-16}`, which no search can prove or refute. Its bias is moved by what is
missing, :math:`b_i \mathrel{\pm}= \delta_i`, and the unit is dead, or never off, for good. That is
charged to the tolerance as a change of the bias.
"""

from __future__ import annotations

import numpy as np

from pindown.equivalence.shrinking.draft import Draft, Layer
from pindown.equivalence.shrinking.result import Step

_ROUNDING = 2.0**-42  # of the unit's range: what a few roundings leave; the gap decides
_ROOM = 4.0  # times what is missing, so that the new bounds, rounded again, see it too


def move_off_zero(draft: Draft, layer: int) -> bool:
    """Decide the signs of units of a hidden layer (from 0) whose bounds miss zero by rounding only."""
    z = draft.bounds(layer)
    with np.errstate(over="ignore", invalid="ignore"):
        size = _ROUNDING * np.maximum(np.abs(z.lower), np.abs(z.upper))
        up = (z.lower < 0.0) & (-z.lower <= size) & np.isfinite(size)
        down = (z.upper > 0.0) & (z.upper <= size) & np.isfinite(size)
    weight, bias = draft.net.layers[layer]
    moved = bias + _ROOM * (np.where(up, -z.lower, 0.0) - np.where(down, z.upper, 0.0))
    change = moved != bias  # not if what is missing is below the bias' last digit
    if not change.any():
        return False
    off = np.where(change, np.nextafter(np.abs(moved - bias), np.inf), 0.0)
    layers: list[Layer] = list(draft.net.layers)
    layers[layer] = weight, moved
    cost = draft.gap_bound(draft.net, {layer: (0.0, off)}, draft.tol - draft.gap)
    units = tuple(np.flatnonzero(change).tolist())
    step = Step("off zero", layer + 1, units, f"reach zero {draft.where} by rounding only, no longer")
    return draft.propose(layers, {}, step, list(draft.known), cost=cost)
