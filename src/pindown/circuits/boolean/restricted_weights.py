r"""What circuits with restricted bottom weights cannot do, at any depth.

If the bottom gates order all x alike, and have whole weights up to W, then the matrix of a circuit on
(x, y) has at most :math:`1 + w_1 m W` different rows, so its sign-rank is no larger. A function of large
sign-rank needs a wide bottom layer.

To order alike is to lie in one ordering cone: a permutation :math:`\sigma` of the vertices has the cone
of all a with :math:`\langle a, x^{\sigma(1)} \rangle \le \langle a, x^{\sigma(2)} \rangle \le \dots`.
Vectors lie in a common cone exactly if no two of them order some pair of vertices in opposite ways.
Cones share their faces: the zero vector lies in all of them.

Mukherjee 2020, Theorem 2.5.5 and appendix 2.E, sharpened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import dense
from pindown.circuits.boolean.andreev import OrderOfGrowth
from pindown.circuits.boolean.cube import LinearForm, Number, require_cube, vertices
from pindown.circuits.boolean.max_bit import log2_sign_rank_lower, or_width
from pindown.circuits.tuning import MAX_CANDIDATES, MAX_ORDER_BITS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork
from pindown.validation import at_least, choice, integers, refuse

_MAX_EXPONENT = 1000  # of two, in float64, with some room


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


@on_network
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
    if (2 * bound + 1) ** len(a) > MAX_CANDIDATES:
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


def blocks_of_sum(n_matrices: int, blocks: int) -> int:
    r"""Return how many contiguous blocks a sum of w matrices with D blocks each may have, w (D - 1) + 1.

    Each matrix contributes D - 1 cuts. Rows and columns are counted apart.

    >>> blocks_of_sum(3, 4)
    10

    Mukherjee 2020, Claim 5.
    """
    at_least(1, n_matrices=n_matrices, blocks=blocks)
    return n_matrices * (blocks - 1) + 1


@on_network
def distinct_rows_bound(net: ReluNetwork | RationalNetwork) -> int:
    r"""Return the bound :math:`1 + \sum_p \|a_p\|_1` on different rows of the output matrix.

    Along the common order of the bottom gates each :math:`\langle a_p, x \rangle` climbs from
    :math:`-\|a_p\|_1` to :math:`\|a_p\|_1` in steps of 2 or more. The bound is at most
    :math:`1 + w_1 m W`, and depth and upper widths do not matter.

    Args:
        net: The network; the first half of its inputs is x.

    Returns:
        The bound, proved.

    Raises:
        ValueError: If the weights of x are not whole, or lie in no common ordering cone.

    Example:
        One gate on x_1 + x_2, which is -2, 0 or 2:

        >>> distinct_rows_bound(ReluNetwork.from_layers([([[1.0, 1, 1, 0]], [0]), ([[1.0]], [0])]))
        3

    Mukherjee 2020, appendix 2.E, sharpened.
    """
    weight = net.layers[0][0]
    W = dense(weight) if isinstance(net, ReluNetwork) else weight
    x_part = W[:, : W.shape[1] // 2].tolist()
    if any(value != int(value) for row in x_part for value in row):
        raise ValueError("the bound is for whole weights in the first layer.")
    order = common_order(x_part)
    if not order.holds:
        raise ValueError(f"the bound needs bottom gates that order all x alike: {order}.")
    return 1 + sum(abs(int(value)) for row in x_part for value in row)


def sign_rank_bound(
    hidden_widths: int | Sequence[int],
    m: int,
    bound: int,
    *,
    variant: Literal["sharp", "as_printed"] = "sharp",
) -> int | OrderOfGrowth:
    r"""Return :math:`1 + w_1 m W`, an upper bound on the sign-rank at any depth.

    Args:
        hidden_widths: Gates of the layers from the bottom up, :math:`w_1, w_2, \dots`; or
            :math:`w_1` alone.
        m: Length of x, and of y.
        bound: :math:`W`, the largest bottom weight.
        variant: ``"as_printed"`` is :math:`O((\prod_k w_k)^2 (m W)^2)`, an
            :class:`OrderOfGrowth`, which grows
            with the depth.

    >>> sign_rank_bound(4, 3, 2), sign_rank_bound([4, 9], 3, 2)
    (25, 25)
    >>> sign_rank_bound([4, 2], 3, 2, variant="as_printed").value
    2304.0

    Mukherjee 2020, Theorem 2.5.5, sharpened.
    """
    given = [hidden_widths] if isinstance(hidden_widths, int | np.integer) else list(hidden_widths)
    widths = integers("hidden_widths", given)
    if not widths:
        refuse("hidden_widths", "at least one integer of at least 1", hidden_widths)
    at_least(1, m=m, bound=bound)
    if choice("variant", variant, ("sharp", "as_printed")) == "sharp":
        return 1 + widths[0] * m * bound
    return OrderOfGrowth(float((math.prod(widths) * m * bound) ** 2), "(w_1 ... w_(d-1))^2 (m W)^2")


def min_bottom_width(n: int, bound: int, *, t: int | None = None) -> float:
    r"""Return how wide the bottom layer must be to compute the Chattopadhyay-Mande function.

    .. math:: w_1 \ge \frac{2^{n^{1/3}/81 - 3} - 1}{m W}, \qquad m = n t

    for circuits of any depth whose bottom weights are restricted; 0 where this says nothing.

    >>> min_bottom_width(1000, 1)
    0.0

    Mukherjee 2020, Theorem 2.5.5, sharpened.
    """
    m = n * (or_width(n) if t is None else t)
    sign_rank_bound(1, m, bound)
    exponent = log2_sign_rank_lower(n)
    _require_float(exponent)
    return max(0.0, (2.0**exponent - 1) / (m * bound))


def size_bound(
    m: int, depth: int, bound: int, *, variant: Literal["sharp", "as_printed"] = "sharp"
) -> OrderOfGrowth:
    r"""Return the size :math:`\Omega((d-1) [2^{m^{1/4}} / (m W)]^{1/(d-1)})` needed at depth d.

    Args:
        m: Length of x, and of y.
        depth: Number d of layers.
        bound: :math:`W`, the largest bottom weight.
        variant: ``"as_printed"`` has :math:`m^{1/8}` in place of :math:`m^{1/4}`, which is less.

    >>> [size_bound(2**16, 2, 1, variant=variant).value for variant in ("sharp", "as_printed")]
    [1.0, 0.000244140625]

    Mukherjee 2020, Theorem 2.5.5; the fourth root is that of its proof.
    """
    root = 4 if choice("variant", variant, ("sharp", "as_printed")) == "sharp" else 8
    at_least(2, depth=depth)
    sign_rank_bound(1, m, bound)
    exponent = (m ** (1 / root) - math.log2(m * bound)) / (depth - 1)
    _require_float(exponent)
    return OrderOfGrowth((depth - 1) * 2.0**exponent, f"(d-1) (2^(m^(1/{root})) / (m W))^(1/(d-1))")


def _require_float(exponent: float) -> None:
    if exponent > _MAX_EXPONENT:
        raise ValueError(f"the bound overflows float64: its log2 is about {exponent:.4g}.")
