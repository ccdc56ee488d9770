r"""What changed weights add to the preactivations of their layer.

Between a network and one whose layer l has :math:`W_l + D_l` and :math:`b_l + d_l` instead, the
preactivations of layer l differ, besides what earlier layers hand on, by the source

.. math::
    s_l(x) = D_l a_{l-1}(x) + d_l,

with :math:`a_{l-1}` the activations of the changed network. The gap of the outputs is at most the sum of
what every source alone can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pindown.affine import Affine, Array, Matrix
from pindown.equivalence.sensitivity.activations import Range, affine_values
from pindown.equivalence.sensitivity.change import Change
from pindown.equivalence.sensitivity.propagation import Propagation, Spread
from pindown.equivalence.sensitivity.upwards import product_above, row_norms_above, sum_above


@dataclass(frozen=True, eq=False)
class Source:
    """The vectors ``fixed + matrix v + w`` with v and w bounded, at one layer's preactivations.

    Attributes:
        layer: Index of the layer, from 0.
        fixed: A float64 vector.
        matrix: What multiplies v; None if v is nothing.
        reach: Bounds on v.
        loose: Bounds on w: rounding, and changes known up to a slack only.
        either: Number of a group of which only the largest counts, not the sum.
    """

    layer: int
    fixed: Array
    matrix: Matrix | None
    reach: Spread
    loose: Spread
    either: int

    @cached_property
    def main(self) -> Spread:
        """Bound ``fixed + matrix v``."""
        bound = Spread.of(np.abs(self.fixed))
        if self.matrix is None:
            return bound
        moved = np.minimum(
            product_above(self.matrix, self.reach.entries),
            _times_length(row_norms_above(self.matrix), self.reach.length),
        )
        return bound.plus(Spread.of(moved))

    @property
    def whole(self) -> Spread:
        """Bound the whole source."""
        return self.main.plus(self.loose)


def find_sources(
    chain: Propagation, changes: Mapping[int, Change], ranges: list[Range], *, relative: bool
) -> list[Source]:
    """Bound the sources of all changed layers, first layer first.

    Args:
        chain: The weights of the unchanged network.
        changes: What is added, by index of the layer.
        ranges: Where the activations of the unchanged network are.
        relative: Whether all is divided by ``1 + ||x||``, so that biases have a factor in [0, 1].
    """
    sources: list[Source] = []
    # How far the activations of the two networks are apart where the layer reads them.
    apart = Spread(np.zeros(chain.weights[0].shape[1]), 0.0)
    for i in range(len(chain.weights)):
        found = []
        if i in changes:
            found = _at_layer(i, changes[i], ranges[i], apart, relative=relative)
        apart = chain.through(i, apart)
        for source in found:
            apart = apart.plus(source.whole)
        sources += found
    return sources


def _at_layer(i: int, change: Change, here: Range, apart: Spread, *, relative: bool) -> list[Source]:
    zero = np.zeros(len(change.bias))
    loose = Spread.of(
        sum_above(
            change.weight_slack_times(sum_above(here.largest, apart.entries)),
            np.broadcast_to(change.bias_slack, zero.shape),
        )
    )
    nothing = Spread(np.zeros(0), 0.0)
    if not change.moves_weights:
        return [Source(i, change.bias, None, nothing, loose, 2 * i + 1)]
    reach = here.reach.plus(apart)
    if not relative:
        fixed, moved = affine_values(Affine(change.weight, change.bias), here.center)
        return [Source(i, fixed, change.weight, reach, loose.plus(Spread.of(moved)), 2 * i)]
    fixed, moved = affine_values(Affine(change.weight, zero), here.center)
    weights = Source(i, fixed, change.weight, reach, loose.plus(Spread.of(moved)), 2 * i)
    if not change.bias.any():
        return [weights]
    if i > 0:
        return [weights, Source(i, change.bias, None, nothing, Spread(zero, 0.0), 2 * i + 1)]
    # Input and bias share one budget: the larger of the two counts, and the slack with either.
    return [weights, Source(0, change.bias, None, nothing, weights.loose, 0)]


def _times_length(rows: Array, length: float) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(rows > 0.0, np.nextafter(rows * length, np.inf), 0.0)
