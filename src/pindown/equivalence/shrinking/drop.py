r"""Units that do nothing, or always the same: unused, dead and constant ones.

.. math::
    W_{l+1} e_i = 0, \qquad \max_x z_i \le 0, \qquad
    \rho(z_i) = v \;\Longrightarrow\; b_{l+1} \mathrel{+}= v\, W_{l+1} e_i .

If no unit of a layer is left, what follows is constant, and the two affine maps become one with zero
weights.

Phuong 2021, section 2.2: the complements of the conditions under which every unit shows in the function.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.equivalence.shrinking.columns import (
    Mask,
    columns_of,
    rows_of,
    used_columns,
    used_rows,
    zeros,
)
from pindown.equivalence.shrinking.draft import Draft, Layer, pick
from pindown.equivalence.shrinking.products import affine_image
from pindown.equivalence.shrinking.result import Step


def drop_units(draft: Draft, layer: int) -> bool:
    """Drop the unused, dead and constant units of a hidden layer (from 0); return whether any went."""
    rules = (_drop_unused, _drop_dead, _drop_constant)
    taken = [rule(draft, layer) for rule in rules if layer < draft.net.depth - 1]
    return any(taken)


def _drop_unused(draft: Draft, layer: int) -> bool:
    gone = ~used_columns(draft.net.layers[layer + 1].weight)
    return drop_known(draft, layer, gone, np.zeros(len(gone)), "unused", "nothing reads what they give")


def _drop_dead(draft: Draft, layer: int) -> bool:
    gone = draft.bounds(layer).upper <= 0.0
    return drop_known(draft, layer, gone, np.zeros(len(gone)), "dead", f"never positive {draft.where}")


def _drop_constant(draft: Draft, layer: int) -> bool:
    weight, bias = draft.net.layers[layer]
    z = draft.bounds(layer)
    idle = ~used_rows(weight)
    fixed = idle | (np.isfinite(z.lower) & (z.lower == z.upper))
    values = np.maximum(np.where(idle, bias, np.where(fixed, z.lower, 0.0)), 0.0)
    reason = f"the same value {draft.where}, now part of the next layer's bias"
    return drop_known(draft, layer, fixed, values, "constant", reason)


def drop_known(
    draft: Draft,
    layer: int,
    gone: Mask,
    values: Array,
    rule: str,
    reason: str,
    *,
    off: Array | None = None,
) -> bool:
    """Remove units whose ReLU always gives the value listed.

    Args:
        draft: The network.
        layer: The hidden layer, from 0.
        gone: The units.
        values: What every unit's ReLU gives.
        rule: What to call the step.
        reason: Why.
        off: If the values are not exact, how far they can move what enters the next layer.
    """
    if not gone.any():
        return False
    layers: list[Layer] = list(draft.net.layers)
    (weight, bias), (following, offset) = draft.net.layers[layer : layer + 2]
    active = np.flatnonzero(gone & (values != 0.0))
    shifted, error = offset, np.zeros(len(offset))
    if len(active):
        shifted, error = affine_image(columns_of(following, active), values[active], offset)
    known, keep, place = list(draft.known), ~gone, layer
    if keep.any():
        layers[layer] = rows_of(weight, keep), bias[keep]
        layers[layer + 1] = columns_of(following, keep), shifted
        known[layer] = pick(known[layer], keep)
        place = layer + 1
    else:
        layers[layer : layer + 2] = [(zeros(len(offset), weight.shape[1]), shifted)]
        known.pop(layer)
    step = Step(rule, layer + 1, tuple(np.flatnonzero(gone).tolist()), reason)
    cost = (
        None
        if off is None
        else draft.gap_bound(draft.net, {layer + 1: (0.0, off)}, draft.tol - draft.gap)
    )
    return draft.propose(layers, {place: (0.0, error)}, step, known, cost=cost)
