r"""Weight vectors that order the vertices of the cube in the same way.

A permutation :math:`\sigma` of the vertices has the cone of all vectors a with
:math:`\langle a, x^{\sigma(1)} \rangle \le \langle a, x^{\sigma(2)} \rangle \le \dots`. Vectors lie in a
common cone exactly if no two of them order some pair of vertices in opposite ways. Cones share their
faces: the zero vector lies in all of them.

Mukherjee 2020, Definitions 11 and 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import dense
from pindown.circuits.boolean.cube import require_cube, vertices
from pindown.circuits.boolean.exact_numbers import Number
from pindown.circuits.boolean.linear_form import LinearForm
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork
from pindown.validation import at_least

MAX_ORDER_BITS = 16  # the values of all forms at 2^16 vertices
_MAX_CANDIDATES = 2**22  # whole vectors to go through in cone_members


@dataclass(frozen=True, repr=False)
class CommonOrder:
    """Whether vectors order the cube's vertices alike: the order, or two that disagree.

    Attributes:
        order: Numbers of the vertices (as in tables) from the smallest value to the largest, or None.
        gates: Two vectors that disagree, or None.
        pair: Two vertices that the first of them orders descending and the second ascending, or None.
    """

    order: tuple[int, ...] | None
    gates: tuple[int, int] | None = None
    pair: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    @property
    def holds(self) -> bool:
        """Whether the vectors lie in a common cone."""
        return self.order is not None

    def __repr__(self) -> str:
        if self.order is not None:
            return f"CommonOrder(of {len(self.order):,} vertices; exact)"
        assert self.gates is not None and self.pair is not None
        first, second = (tuple(map(int, vertex)) for vertex in self.pair)
        return (
            f"CommonOrder(none: vectors {self.gates} order {first} and {second} in opposite ways; exact)"
        )


def common_order(vectors: Iterable[Iterable[Number]]) -> CommonOrder:
    r"""Decide whether vectors lie in a common ordering cone, without rounding.

    The sum of the vectors must give the order: along it no vector may descend. (In a common order the
    steps of the sum are sums of steps that are not negative.) This takes :math:`O(2^m m w)`.

    Args:
        vectors: w vectors of length m, at most 16; floats are taken exactly.

    Returns:
        The order, or two vectors and two vertices on which they disagree.

    Example:
        >>> common_order([[1, 2], [2, 3]]).order  # -1-2 < 1-2 < -1+2 < 1+2
        (3, 1, 2, 0)
        >>> common_order([[1, 2], [-1, -2]]).holds
        False

    Mukherjee 2020, Definition 11.
    """
    forms = [LinearForm.of(vector) for vector in vectors]
    if not forms or len({form.n_inputs for form in forms}) != 1:
        raise ValueError(f"give vectors of equal length; got lengths {[f.n_inputs for f in forms]}.")
    require_cube(forms[0].n_inputs, MAX_ORDER_BITS)
    cube = vertices(forms[0].n_inputs)
    # A positive factor for each vector (it makes them whole) changes no order. Python's integers in
    # the sum: it may be larger than its parts.
    values = np.column_stack([form.values(cube) for form in forms])
    order = np.argsort(values.astype(object).sum(axis=1), kind="stable")
    steps = np.diff(values[order], axis=0)
    bad = np.argwhere(steps < 0)
    if not len(bad):
        return CommonOrder(tuple(order.tolist()))
    at, falling = bad[0].tolist()
    rising = int(np.argmax(steps[at] > 0))  # there is one: the steps add up to zero or more
    pair = tuple(tuple(cube[k].tolist()) for k in order[at : at + 2])
    return CommonOrder(None, (falling, rising), (pair[0], pair[1]))


@dataclass(frozen=True, repr=False)
class WeightRestriction:
    """Whether the bottom layer of a circuit on (x, y) is restricted as the sign-rank bound asks.

    Attributes:
        x_order: Whether the gates' weights of x lie in one cone.
        y_order: The same for y.
        whole: Whether all weights are whole numbers.
        largest: Largest absolute weight.
        bound: :math:`W`, what it may be.
    """

    x_order: CommonOrder
    y_order: CommonOrder
    whole: bool
    largest: float
    bound: int

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return self.x_order.holds and self.y_order.holds and self.whole and self.largest <= self.bound

    def __repr__(self) -> str:
        broken = [
            text
            for good, text in (
                (self.x_order.holds, "weights of x in different cones"),
                (self.y_order.holds, "weights of y in different cones"),
                (self.whole, "weights that are not whole"),
                (self.largest <= self.bound, f"a weight of size {self.largest:g} > {self.bound}"),
            )
            if not good
        ]
        return f"WeightRestriction({'; '.join(broken) or 'holds'}; exact)"


def weight_restriction(net: ReluNetwork | RationalNetwork, bound: int) -> WeightRestriction:
    """Check the weights of the first layer of a network on 2m inputs (x, y).

    Args:
        net: The network; the first half of its inputs is x.
        bound: :math:`W`, the largest weight allowed.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0, 2, 0, 1], [1, 3, 0, 0]], [0, 1]), ([[1.0, 1]], [0])])
        >>> weight_restriction(net, bound=3)
        WeightRestriction(holds; exact)

    Mukherjee 2020, Definition 12.
    """
    weight = net.layers[0][0]
    W = dense(weight) if isinstance(net, ReluNetwork) else weight
    if W.shape[1] % 2 or len(net.layers) < 2:
        raise ValueError(f"a hidden layer on 2m inputs is needed; the network has {W.shape[1]} inputs.")
    m = W.shape[1] // 2
    entries = W.ravel().tolist()
    return WeightRestriction(
        x_order=common_order(W[:, :m].tolist()),
        y_order=common_order(W[:, m:].tolist()),
        whole=all(value == int(value) for value in entries),
        largest=max(abs(float(value)) for value in entries),
        bound=bound,
    )


def cone_members(reference: ArrayLike, bound: int) -> NDArray[np.int64]:
    """Return all whole vectors with entries from -W to W in the cone of a reference vector.

    Args:
        reference: A vector of length m that gives no two vertices the same value.
        bound: :math:`W`.

    Returns:
        The vectors as rows; the zero vector is always among them.

    Example:
        >>> cone_members([0.1, 0.9], 1).tolist()
        [[0, 0], [0, 1], [1, 1]]
    """
    a = np.asarray(reference, dtype=np.float64)
    if a.ndim != 1 or not np.isfinite(a).all() or bound < 0:
        raise ValueError("a vector of finite numbers and a bound that is not negative are needed.")
    require_cube(len(a), MAX_ORDER_BITS)
    if (2 * bound + 1) ** len(a) > _MAX_CANDIDATES:
        raise ValueError(
            f"(2W + 1)^m = {(2 * bound + 1) ** len(a):,} vectors are too many to go through."
        )
    order = common_order([a.tolist()]).order
    assert order is not None  # one vector always has an order
    cube = vertices(len(a)).astype(np.int64)[list(order)]
    steps = np.unique(np.diff(cube, axis=0), axis=0)
    candidates: NDArray[np.int64] = np.array(list(product(range(-bound, bound + 1), repeat=len(a))))
    return candidates[(candidates @ steps.T >= 0).all(axis=1)]


def random_restricted_network(
    m: int, hidden_widths: Sequence[int], bound: int, rng: np.random.Generator
) -> ReluNetwork:
    """Draw a network on (x, y) whose bottom layer satisfies the weight restriction.

    The weights of x come from the cone of a random vector, those of y from another one, both near whole
    vectors; upper layers have whole weights, so that values on the cube are computed without rounding.

    >>> net = random_restricted_network(3, (4, 2), 2, np.random.default_rng(0))
    >>> net.widths, weight_restriction(net, 2).holds
    ((6, 4, 2, 1), True)
    """
    at_least(1, m=m, bound=bound)
    if not hidden_widths or min(hidden_widths) < 1:
        raise ValueError(f"hidden widths must be positive and at least one; got {tuple(hidden_widths)}.")
    sides = [cone_members(_near_whole_vector(m, bound, rng), bound) for _ in range(2)]
    sides = [side[side.any(axis=1)] for side in sides]  # gates that see nothing are dull
    w = hidden_widths[0]
    bottom = np.column_stack([side[rng.integers(len(side), size=w)] for side in sides])
    layers: list[tuple[Any, Any]] = [(bottom, rng.integers(-m * bound, m * bound + 1, size=w))]
    for fan_in, fan_out in zip(hidden_widths, [*hidden_widths[1:], 1], strict=True):
        layers.append((rng.integers(-3, 4, (fan_out, fan_in)), rng.integers(-3, 4, fan_out)))
    return ReluNetwork.from_layers(layers)


def _near_whole_vector(m: int, bound: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a vector without ties whose cone holds a whole vector that is not zero.

    Most cones hold no small whole vector but zero. A whole vector moved by less than half its smallest
    step between different values, 2, keeps its own order and only breaks ties.
    """
    whole = rng.integers(-bound, bound + 1, size=m)
    whole[rng.integers(m)] = rng.choice([-1, 1]) * max(1, bound)
    shift = rng.standard_normal(m)
    return whole + 0.5 * shift / np.abs(shift).sum()
