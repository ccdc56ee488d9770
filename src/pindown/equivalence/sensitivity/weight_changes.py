r"""What changed weights add to the preactivations of their layer.

Between a network and one whose layer l has :math:`W_l + D_l` and :math:`b_l + d_l` instead, the
preactivations of layer l differ, besides what earlier layers hand on, by the source

.. math::
    s_l(x) = D_l a_{l-1}(x) + d_l,

with :math:`a_{l-1}` the activations of the changed network. The gap of the outputs is at most the sum of
what every source alone can do.

The gap does not depend on how hidden units are scaled, but bounds by norms do. So units are first scaled
by powers of two, which change no digit, near those that balance incoming and outgoing weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, is_finite
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.sensitivity._propagation import (
    Propagation,
    Range,
    Spread,
    affine_values,
    product_above,
    row_norms_above,
    sum_above,
)
from pindown.equivalence.weight_symmetry import Symmetry, apply, identity, moved_columns, scaled_rows
from pindown.network import ReluNetwork
from pindown.relaxation.operator_norms import balancing_scales
from pindown.rounding import TINY


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


@dataclass(frozen=True, eq=False)
class Change:
    """A change of weights and bias, known up to a slack.

    Attributes:
        weight: What is added to W, shape (out, in), dense or sparse.
        bias: What is added to b, shape (out,).
        weight_slack: How far, entry by entry, the true change of W may be from ``weight``: a matrix, or
            one number for all entries.
        bias_slack: The same for the bias.

    >>> Change(np.zeros((1, 2)), np.array([1e-3]))
    Change(0 of 2 weights, 1 of 1 biases, by up to 0.001)
    """

    weight: Matrix
    bias: Array
    weight_slack: Matrix = 0.0  # or a number
    bias_slack: Any = 0.0  # an array or a number

    def __post_init__(self) -> None:
        bias = np.asarray(self.bias, dtype=np.float64)
        weight = self.weight if sp.issparse(self.weight) else np.asarray(self.weight, dtype=np.float64)
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise ValueError(
                f"a change needs a weight of shape (out, in) and a bias of shape (out,); "
                f"got {weight.shape} and {bias.shape}."
            )
        if not (is_finite(_entries(weight)) and is_finite(bias)):
            raise ValueError("a change must be finite; it holds NaN or infinity.")
        for slack, shape, name in (
            (self.weight_slack, weight.shape, "weight_slack"),
            (self.bias_slack, bias.shape, "bias_slack"),
        ):
            if np.ndim(_entries(slack)) and slack.shape != shape:
                raise ValueError(f"{name} must be one number or have shape {shape}; got {slack.shape}.")
            if not np.all(_entries(slack) >= 0.0):
                raise ValueError(f"{name} must not be negative or NaN.")
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)

    @property
    def moves_weights(self) -> bool:
        """Whether ``weight`` is not zero (its slack may be)."""
        return bool(np.any(_entries(self.weight)))

    @property
    def is_zero(self) -> bool:
        """Whether nothing changes, for sure."""
        parts = (self.weight, self.bias, self.weight_slack, self.bias_slack)
        return not any(np.any(_entries(part)) for part in parts)

    def weight_slack_times(self, v: Array) -> Array:
        """Return at least the weight slack times a vector ``v >= 0``."""
        slack = self.weight_slack
        if np.ndim(_entries(slack)) == 0:
            total = product_above(np.ones((1, len(v))), v)[0] if float(slack) else 0.0
            row = product_above(np.array([[float(slack)]]), np.array([total]))[0] if total else 0.0
            return np.full(self.weight.shape[0], row)
        return product_above(slack, v)

    def __repr__(self) -> str:
        entries = _entries(self.weight)
        counts = [int(np.count_nonzero(part)) for part in (entries, self.bias)]
        largest = max(float(np.max(np.abs(part), initial=0.0)) for part in (entries, self.bias))
        size = self.weight.shape[0] * self.weight.shape[1]
        return (
            f"Change({counts[0]} of {size} weights, {counts[1]} of {self.bias.size} biases, "
            f"by up to {largest:.3g})"
        )


def _entries(part: Matrix) -> Array:
    return np.asarray(part.data if sp.issparse(part) else part)


def balanced(
    net: ReluNetwork, changes: Mapping[int, Change], *, deadline: Deadline = NEVER
) -> tuple[ReluNetwork, dict[int, Change]]:
    """Return the network and its changes with balanced units, the same numbers times powers of two.

    Both are returned as they are where scaling would leave the normal numbers of float64.
    """
    scales = [
        np.exp2(np.round(np.log2(np.where(s > 0.0, s, 1.0))))
        for s in balancing_scales([layer.weight for layer in net.layers], deadline=deadline)
    ]
    parts: list[Matrix] = [part for layer in net.layers for part in layer]
    for c in changes.values():
        parts += [c.weight, c.bias, c.weight_slack, c.bias_slack]
    extremes = [_extremes(part) for part in parts]
    spread = max((float(np.max(np.maximum(s, 1.0 / s))) for s in scales), default=1.0) ** 2
    low, high = min(e[0] for e in extremes), max(e[1] for e in extremes)
    if spread == 1.0 or low / spread < TINY or not high * spread < inf:
        return net, dict(changes)
    symmetry = Symmetry(identity(net).permutations, scales)
    moved = {}
    for i, c in changes.items():
        left = scales[i] if i < len(scales) else np.ones(len(c.bias))
        right = scales[i - 1] if i else np.ones(c.weight.shape[1])
        moved[i] = Change(
            _scaled(c.weight, left, right),
            left * c.bias,
            _scaled(_spread_out(c.weight_slack, c.weight.shape), left, right),
            left * c.bias_slack,
        )
    return apply(symmetry, net), moved


def _scaled(W: Matrix, left: Array, right: Array) -> Matrix:
    if np.ndim(W) == 0 and not sp.issparse(W):
        return W
    return scaled_rows(moved_columns(W, np.arange(len(right)), right), left)


def _spread_out(slack: Matrix | float, shape: tuple[int, int]) -> Matrix | float:
    """Return a single slack other than zero as a matrix: after scaling the entries differ."""
    if np.ndim(slack) == 0 and not sp.issparse(slack) and float(slack) != 0.0:
        return np.full(shape, float(slack))
    return slack


def _extremes(part: Matrix) -> tuple[float, float]:
    numbers = np.abs(np.asarray(part.data if sp.issparse(part) else part))
    return float(np.min(numbers, initial=1.0, where=numbers > 0.0)), float(np.max(numbers, initial=0.0))
