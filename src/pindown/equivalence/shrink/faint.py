r"""Units that the next layer hardly reads, as merging units that cancel leaves them.

Setting the outgoing weights of unit i to zero moves the next layer as if they had been off by
:math:`|W_{l+1} e_i|`. Unlike a bound on the unit's value this needs no box.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import dense
from pindown.equivalence.shrink.columns import columns_of, with_columns
from pindown.equivalence.shrink.draft import Draft, Layer
from pindown.equivalence.shrink.result import Step

_FAINT = 1e-10  # of the layer's largest outgoing weight; the gap decides


def silence_faint(draft: Draft, layer: int) -> bool:
    """Cut the outgoing weights of units that hardly have any; others then remove the units."""
    following, offset = draft.net.layers[layer + 1]
    reading = np.asarray(dense(abs(following).max(axis=0))).reshape(-1)
    faint = np.flatnonzero((reading > 0.0) & (reading <= _FAINT * reading.max()))
    if not len(faint):
        return False
    blank = columns_of(following, faint) * 0.0
    silent = with_columns(following, faint, dense(blank))
    layers: list[Layer] = list(draft.net.layers)
    layers[layer + 1] = silent, offset
    error = with_columns(following * 0.0, faint, dense(abs(columns_of(following, faint))))
    cost = draft.gap_bound(draft.net, {layer + 1: (error, 0.0)}, draft.tol - draft.gap)
    reason = f"read with weights of at most {reading[faint].max():.2g}"
    step = Step("faint", layer + 1, tuple(faint.tolist()), reason)
    return draft.propose(layers, {}, step, list(draft.known), cost=cost)
