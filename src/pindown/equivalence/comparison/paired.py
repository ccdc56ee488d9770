"""What differs between two networks whose units have been paired, and putting them side by side."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.equivalence.comparison.matching import Matching
from pindown.equivalence.comparison.result import LayerDifference
from pindown.equivalence.symmetry import Symmetry, apply, inverse
from pindown.network import ReluNetwork

# A scale that differs from 1 by no more than float32 rounding is none.
_SAME_SCALE = 2.0**-20


def layer_differences(matching: Matching, net: ReluNetwork) -> tuple[LayerDifference, ...]:
    """Count, layer by layer, units that moved, were rescaled or changed.

    Args:
        matching: A pairing of all units.
        net: The network they were paired with.
    """
    symmetry = matching.symmetry
    if symmetry is None:
        raise ValueError("the units are not paired: the networks have different widths.")
    rows = []
    for i, layer in enumerate(net.layers):
        moved = rescaled = 0
        if i < net.depth - 1:
            places, scales = symmetry.permutations[i], symmetry.scales[i]
            moved = int(np.count_nonzero(places != np.arange(len(places))))
            rescaled = int(np.count_nonzero(np.abs(scales - 1.0) > _SAME_SCALE))
        changed = _changed_rows(matching, i)
        rows.append(
            LayerDifference(i + 1, layer.out_features, moved, rescaled, changed, matching.residuals[i])
        )
    return tuple(rows)


def _changed_rows(matching: Matching, index: int) -> int:
    """Count units whose weights differ beyond what moving them by a symmetry rounds."""
    if index not in matching.changes:
        return 0
    change = matching.changes[index]
    beyond = abs(change.weight) - change.weight_slack if _has_slack(change.weight_slack) else None
    weight = abs(change.weight) if beyond is None else beyond
    rows = np.asarray((weight > 0).sum(axis=1)).reshape(-1) > 0
    return int(np.count_nonzero(rows | (np.abs(change.bias) > change.bias_slack)))


def _has_slack(slack: Array | float) -> bool:
    return bool(sp.issparse(slack) or np.any(np.asarray(slack) > 0))


def align_exactly(net: ReluNetwork, matching: Matching) -> ReluNetwork | None:
    """Return the network with its units in the order of the other, rescaled by powers of two.

    These change no digit, so the function stays exactly as it is; None if float64 cannot hold
    the result.
    """
    if matching.symmetry is None:
        return None
    scales = [2.0 ** np.round(np.log2(m)) for m in matching.symmetry.scales]
    symmetry = Symmetry(matching.symmetry.permutations, scales)
    try:
        moved = apply(symmetry, net)
        return moved if apply(inverse(symmetry), moved) == net else None
    except ValueError:
        return None
