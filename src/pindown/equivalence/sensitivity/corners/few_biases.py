r"""Bound what a change of a few biases does to every output, by corners and then by signs.

Corners that stay above the target need slopes that the multipliers name. Whether the network has them
anywhere is a question about signs of its units; if no input gives all of these, the corners are out.
Relative to :math:`1 + \|x\|` only inputs with :math:`1 + \|x\| < B / \mathrm{target}` matter, where B is
the bound that holds anyway.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from pindown.affine import Affine, Array, dense
from pindown.box import Box
from pindown.equivalence.sensitivity.corners.cover import CornerSearch, cover
from pindown.equivalence.sensitivity.corners.cube import MOST_BITS
from pindown.equivalence.sensitivity.corners.forced import common_slopes
from pindown.equivalence.sensitivity.corners.signs import no_such_input
from pindown.equivalence.sensitivity.multipliers import SourceChain
from pindown.network import ReluNetwork
from pindown.relaxation.operator_norms import FLOPS_PER_SECOND
from pindown.rounding import TINY

_MOST_OPEN = 64  # corners that are worth asking about their signs
_SIGNS_SHARE = 0.5  # of the time, left for signs
_MOST_BOUNDS = 2**25  # one per corner and objective: 256 MB
_CORNER_SECONDS = 6e-8  # for the bounds of one corner


@dataclass(frozen=True, eq=False)
class FewBiases:
    """What a change of a few biases does: one search over its corners per output and sign.

    Attributes:
        layers: K and the weights that follow.
        target: What was aimed at.
        searches: In the order of ``SourceChain.objectives``; the last ones may be missing.
        objectives: How many there should be.
    """

    layers: Sequence[Array]
    target: float
    searches: Sequence[CornerSearch]
    objectives: int

    @property
    def bounds(self) -> Array:
        """Proved bounds for every objective; infinite where there was no time to look."""
        missing = self.objectives - len(self.searches)
        return np.array([search.value for search in self.searches] + [inf] * missing)

    def signs(self, deadline: float = inf) -> list[list[Array]] | None:
        """Return, per objective above the target, the signs that all its open corners ask for.

        The first array is about the source's entries, the others about all units of later layers. None
        if corners are left that were not looked at.

        Raises:
            TimeoutError: If that takes until the deadline.
        """
        found: list[list[Array]] = []
        if not np.isfinite(self.bounds).all():
            return None
        for search in self.searches:
            if search.value <= self.target:
                continue
            if np.count_nonzero(search.bounds > self.target) != len(search.open):
                return None
            corners = np.array([at.corner for at in search.open])
            hardest = sorted(search.open, key=lambda at: -search.bounds[search.cube.place(at.corner)])
            later = common_slopes(self.layers, search.w, self.target, hardest, deadline=deadline)
            if later is not None:
                agreed = np.all(corners == corners[0], axis=0)
                found.append([np.where(agreed, 2.0 * corners[0] - 1.0, 0.0), *later])
        return found


def is_for_corners(chain: SourceChain, seconds: float) -> bool:
    """Return whether the source is fixed, has few entries, and there is time for its corners."""
    n, objectives = len(chain.fixed), chain.objectives.shape[1]
    if chain.matrix.shape[1] or not 1 <= n <= MOST_BITS or not chain.weights:
        return False
    if objectives * 2**n > _MOST_BOUNDS or _underflows(chain.weights[0], chain.fixed):
        return False
    sizes = [float(len(W)) for W in chain.weights]
    each = (6.0 * sum(size**3 for size in sizes) + sum(sizes) ** 3) / FLOPS_PER_SECOND
    return objectives * (each + _CORNER_SECONDS * 2**n) < seconds


def _underflows(W: Array, fixed: Array) -> bool:
    """Return whether what entries of the source bring to some unit is lost, or nearly so, in float64."""
    there = (W != 0.0) & (fixed != 0.0)
    return bool(np.any(there & (np.abs(W * fixed) < TINY)))


def bound_few_biases(chain: SourceChain, target: float, until: float, *, collect: bool) -> FewBiases:
    """Bound all objectives of a chain whose source is fixed.

    Args:
        chain: The source and all that follows.
        target: A bound that is good enough.
        until: When to stop (``time.monotonic``).
        collect: Whether corners above the target are to be collected, for their signs.

    >>> chain = SourceChain(  # a source of 3 passes a ReLU or not, then one with slope 0 or 1
    ...     np.array([3.0]), np.ones((1, 0)), np.zeros(0), 0.0, (np.ones((1, 1)),), np.ones((1, 1)))
    >>> bound_few_biases(chain, 0.0, inf, collect=False).bounds.round(2)
    array([3., 0.])
    """
    layers = [chain.weights[0] * chain.fixed, *chain.weights[1:]]
    most_open = _MOST_OPEN if collect else 0
    searches = []
    for w in chain.objectives.T:
        left = until - time.monotonic()
        if left <= 0.0:
            break
        end = until - _SIGNS_SHARE * left if collect and left < inf else until
        searches.append(cover(layers, w, target, end, most_open=most_open))
    return FewBiases(layers, target, searches, chain.objectives.shape[1])


def excluded_by_signs(
    net: ReluNetwork,
    layer: int,
    bias: Array,
    found: FewBiases,
    box: Box | None,
    *,
    deadline: float,
) -> bool:
    """Return whether no input reaches the target, because none has the signs for it: proved.

    Args:
        net: The unchanged network.
        layer: Whose biases change.
        bias: By how much.
        found: The bounds, up to scaling by powers of two.
        box: The inputs; None for all, relative to ``1 + ||x||``.
        deadline: When to stop (``time.monotonic``).
    """
    if not 0.0 < found.target < inf:
        return False
    try:
        asked = found.signs(deadline)
    except TimeoutError:
        return False
    if asked is None:
        return False
    if box is None:
        radius = max(0.0, float(np.max(found.bounds)) / found.target - 1.0)
        if not isfinite(radius):
            return False
        ends = np.full(net.in_features, radius * (1.0 + 1e-9) + 1e-12)
        box = Box(-ends, ends)
    family = _family(net, layer, bias)
    wider = Box(np.append(box.lower, 0.0), np.append(box.upper, 1.0))
    entries = np.flatnonzero(bias)
    for first, *later in asked:
        signs = [np.zeros(len(W.bias)) for W in family.layers[: layer + 1]]
        signs[layer][entries] = first
        if not no_such_input(family, wider, [*signs, *later], deadline=deadline):
            return False
    return True


def _family(net: ReluNetwork, layer: int, bias: Array) -> ReluNetwork:
    """Return the network of (x, t) with ``bias + t * change``: t is handed up to the layer by a unit."""
    layers = []
    for i, (W, b) in enumerate(net.layers):
        if i > layer:
            layers.append(Affine(W, b))
        elif i == layer:
            layers.append(Affine(np.column_stack([dense(W), bias]), b))
        else:
            weight = np.zeros((len(b) + 1, W.shape[1] + 1))
            weight[:-1, :-1], weight[-1, -1] = dense(W), 1.0
            layers.append(Affine(weight, np.append(b, 0.0)))
    return ReluNetwork(tuple(layers))
