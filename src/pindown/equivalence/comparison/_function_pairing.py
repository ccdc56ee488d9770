r"""Pair the units of two networks by what they compute and what they feed, from the outputs back.

Where many units of a layer are parallel, as in networks that compute minima of the same affine functions
again and again, their rows cannot tell them apart, and a wrong choice is wrong in all layers behind.
Backwards, the order of the next layer is known: of units that compute the same, those are partners
whose outgoing weights are the same. What a unit computes is seen at random inputs, relative to the sum
of the absolute values it is added up from, which neither order nor scale of the layers before changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Affine, Array, dense
from pindown.deadline import NEVER, Deadline, OutOfTime
from pindown.equivalence.tuning import ASSIGNMENT_SECONDS, MAX_FUNCTION_PAIRS
from pindown.equivalence.weight_symmetry import Permutation

_SEED = 0
_N_INPUTS = 128
_DECADES = 2.0  # sizes of the inputs: from a hundredth to a hundred


@np.errstate(all="ignore")  # what float64 cannot hold is taken for nothing
def pair_by_functions(
    mine: Sequence[Affine], theirs: Sequence[Affine], deadline: Deadline = NEVER
) -> list[Permutation] | None:
    """Return for every hidden layer the partners of mine among theirs; None if layers are too wide.

    >>> first = [Affine.of([[1.0], [1.0]], [0, 0]), Affine.of([[1.0, 2.0]], [0])]
    >>> second = [Affine.of([[1.0], [1.0]], [0, 0]), Affine.of([[2.0, 1.0]], [0])]
    >>> pair_by_functions(first, second)
    [array([1, 0])]
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    widths = [layer.out_features for layer in mine[:-1]]
    if max(widths, default=0) > MAX_FUNCTION_PAIRS:
        return None
    if ASSIGNMENT_SECONDS * sum(n**3 for n in widths) > deadline.left:
        raise OutOfTime("no time left for pairing the units of two networks.")
    keys, others = _functions(mine), _functions(theirs)
    order: NDArray[np.intp] = np.arange(mine[-1].out_features)
    found: list[Permutation] = []
    for i in range(len(widths) - 1, -1, -1):
        out, other = _fed(mine, keys, i), _fed(theirs, others, i)[:, order]
        size = max(float(np.max(np.abs(out), initial=0.0)), float(np.max(np.abs(other), initial=0.0)))
        cost = cdist(keys[i][0], others[i][0])
        if 0.0 < size < np.inf:
            cost += cdist(out / size, other / size)
        order = np.asarray(linear_sum_assignment(np.nan_to_num(cost))[1], dtype=np.intp)
        found.append(order)
    return found[::-1]


def _functions(layers: Sequence[Affine]) -> list[tuple[Array, Array]]:
    """Return for every layer what enters its ReLUs at random inputs, (units, inputs), and its size."""
    rng = np.random.default_rng(_SEED)
    scales = np.logspace(-_DECADES, _DECADES, _N_INPUTS)
    y = rng.standard_normal((layers[0].in_features, _N_INPUTS)) * scales
    found = []
    for layer in layers:
        z = np.asarray(layer.weight @ y) + layer.bias[:, None]
        terms = np.asarray(abs(layer.weight) @ np.abs(y)) + np.abs(layer.bias)[:, None]
        size = np.linalg.norm(terms, axis=1)
        size = np.where((size > 0.0) & np.isfinite(size), size, 1.0)
        found.append((np.nan_to_num(z / size[:, None], posinf=0.0, neginf=0.0), size))
        y = np.maximum(z, 0.0)
    return found


def _fed(layers: Sequence[Affine], keys: list[tuple[Array, Array]], i: int) -> Array:
    """Return the outgoing weights of the units of layer i, one row each, relative to both ends."""
    after = keys[i + 1][1] if i + 2 < len(layers) else np.ones(layers[-1].out_features)
    return np.asarray(dense(layers[i + 1].weight) / after[:, None] * keys[i][1]).T
