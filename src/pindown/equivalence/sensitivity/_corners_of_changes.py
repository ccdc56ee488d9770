r"""Bound every corner of a source: few sets of multipliers, each good for many corners.

Between two networks that differ in a few biases of one layer by d runs a family with biases
:math:`b + t d`. Almost everywhere in t the outputs change at the rate
:math:`W_L D_{L-1} W_{L-1} \cdots D_l d` with slopes 0 or 1, those of the ReLUs of that network at that
input. So the gap is at most the largest of these rates, over the corners
:math:`D_l d` and over all later slopes. Multipliers taken from the best slopes at one corner prove a
bound at all corners, sharp there and good nearby; what stays above the target gets its own.

The best slopes are climbed to. A source passes where a corner :math:`v \in \{0, 1\}^n` lets it and then
ReLUs with slopes 0 or 1,

.. math::
    z_1 = K v, \qquad z_{l+1} = W_{l+1} D_l z_l, \qquad w \cdot D_L z_L \;\to\; \max .

Given all other slopes, the best ones of a layer are 1 where :math:`z_l` and what the output makes of
it, :math:`b_l`, have the same sign. At such slopes the quadratic of the multipliers
:math:`\lambda_l = |b_l| / |z_l|` is stationary: if it is concave, its supremum is the value reached, and
no slopes do better. Near zero both are smoothed, which costs little and keeps it concave.

Our own; the quadratic is that of ``sensitivity.multipliers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.sensitivity._concave_quadratics import corner_form, proved_form
from pindown.equivalence.sensitivity._multipliers import SourceChain, first_multipliers
from pindown.equivalence.tuning import (
    CLIMB_ROUNDS,
    CLIMB_STARTS,
    MAX_CORNER_BITS,
    MULTIPLIER_STEPS,
    NARROW_SMOOTHINGS,
    WIDE_SMOOTHINGS,
)

Open: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OpenCorner:
    """A corner whose bound stayed above the target, with the multipliers that came closest."""

    corner: Array
    multipliers: Sequence[Array]


@dataclass(eq=False)
class CornerSearch:
    """Proved bounds at all corners, for one output.

    Attributes:
        layers: K, with a column per entry of the source, and the weights that follow.
        w: Coefficients of the output.
        target: A bound that is good enough.
        bounds: On the grid of ``cube``.
        open: Corners that were tried and stay above the target.
        first: Multipliers that serve all corners.
    """

    layers: Sequence[Array]
    w: Array
    target: float
    cube: Cube
    bounds: Array = field(init=False)
    tried: NDArray[np.bool_] = field(init=False)
    open: list[OpenCorner] = field(default_factory=list)
    first: Sequence[Array] | None = None

    def __post_init__(self) -> None:
        self.bounds = np.full(self.cube.shape, inf)
        self.bounds[self.cube.place(np.zeros(self.cube.n))] = 0.0  # nothing passes
        self.tried = np.zeros(self.cube.shape, bool)

    @property
    def value(self) -> float:
        """A proved bound on what the source does to this output."""
        return max(0.0, float(np.max(self.bounds)))

    def begin(self) -> None:
        """Bound all corners by multipliers from the best corner that a search finds."""
        found = climb_freely(self.layers, self.w)
        column, best = int(np.argmax(found.values)), inf
        form = None
        for smoothing in WIDE_SMOOTHINGS:
            lams = found.multipliers(column, smoothing)
            Q = corner_form(self.layers, self.w, lams)
            promised = inf if Q is None else float(np.max(self.cube.values(Q)))
            if promised < best:
                best, self.first, form = promised, lams, Q
            if best <= self.target:
                break
        if self.first is None:
            self.first = _safe_multipliers(self.layers, self.w)
            form = None if self.first is None else corner_form(self.layers, self.w, self.first)
        if self.first is not None and form is not None:
            self._use(self.first, form)

    def run(self, deadline: Deadline, *, most_open: int) -> None:
        """Take one corner above the target after the other, the worst first.

        Args:
            deadline: When to stop.
            most_open: How many corners may stay open before only the largest bound counts.
        """
        while not deadline.passed:
            rest = np.where(self.tried, -inf, self.bounds)
            worst = float(np.max(rest))
            if not worst > self.target:
                return
            stuck = float(np.max(self.bounds, where=self.tried, initial=-inf))
            if len(self.open) > most_open and worst <= stuck:
                return
            place = np.unravel_index(int(np.argmax(rest)), rest.shape)
            self._try((int(place[0]), int(place[1])))

    def _try(self, place: tuple[int, int]) -> None:
        corner = self.cube.corner(place)
        found = climb(self.layers, self.w, corner[:, None])
        self.tried[place] = True
        best = self.first
        for lams, Q in self._candidates(found):
            if self._use(lams, Q, place):
                best = lams
            if self.bounds[place] <= self.target:
                return
        if best is not None:
            self.open.append(OpenCorner(corner, best))

    def _candidates(self, found: Slopes) -> Iterator[tuple[Sequence[Array], Array]]:
        """Yield multipliers for one corner: its own, or some between the first set and these."""
        # What the search reached cannot be bounded away; then only the sharpest set is of use.
        hopeless = float(found.values[0]) > self.target
        sharp = found.multipliers(0, NARROW_SMOOTHINGS[-1])
        ways = [found.multipliers(0, smoothing) for smoothing in NARROW_SMOOTHINGS[:-1] if not hopeless]
        concave = False
        for lams in [*ways, sharp]:
            Q = corner_form(self.layers, self.w, lams)
            concave |= Q is not None
            if Q is not None:
                yield lams, Q
        if concave or self.first is None:
            return
        for step in MULTIPLIER_STEPS:
            with np.errstate(divide="ignore", invalid="ignore"):
                lams = [
                    first * np.exp(np.clip(np.log(lam / first), -step, step))
                    for first, lam in zip(self.first, sharp, strict=True)
                ]
            Q = corner_form(self.layers, self.w, lams)
            if Q is not None:
                yield lams, Q

    def _use(self, lams: Sequence[Array], Q: Array, place: tuple[int, int] | None = None) -> bool:
        """Lower the bounds by one set of multipliers, if that is of use; return whether it is (there).

        Args:
            lams: The multipliers.
            Q: The bound they promise.
            place: A corner that is to be improved; None: all of them.
        """
        promised = self.cube.values(Q)
        closing = (promised <= self.target) & (self.bounds > self.target)
        if place is not None and not closing.any() and promised[place] >= self.bounds[place]:
            return False
        proved = proved_form(self.layers, self.w, lams)
        if proved is None:
            return False
        Q, slack = proved
        values = np.nextafter(self.cube.values(Q) + slack, inf)
        improves = place is None or values[place] < self.bounds[place]
        np.minimum(self.bounds, values, out=self.bounds, where=np.isfinite(values))
        return bool(improves)


def _safe_multipliers(layers: Sequence[Array], w: Array) -> Sequence[Array] | None:
    """Return multipliers by a rule that makes the quadratic concave, for a source that passes whole."""
    source = np.sum(np.abs(layers[0]), axis=1)
    chain = SourceChain(source, np.zeros((len(source), 0)), np.zeros(0), 0.0, tuple(layers[1:]), w[None])
    x = first_multipliers(chain)
    return None if x is None else chain.split(x)[2:]


def cover(
    layers: Sequence[Array], w: Array, target: float, deadline: Deadline = NEVER, *, most_open: int = 0
) -> CornerSearch:
    """Bound what a source does to one output, corner by corner where that is needed.

    Args:
        layers: K, whose columns are what the entries of the source bring to the first layer, none of it
            lost to underflow, and the weights of the layers that follow.
        w: Coefficients of the output.
        target: A bound that is good enough.
        deadline: When to stop; a first bound is proved in any case.
        most_open: Collect up to about this many corners above the target.

    >>> K = np.array([[1.0, -1.0], [1.0, 1.0]])  # two entries, two ReLUs, read as relu - relu / 2
    >>> search = cover([K], np.array([1.0, -0.5]), 0.0)
    >>> round(search.value, 3)  # the first entry alone, first slope 1, second slope 0
    1.0
    """
    search = CornerSearch(layers, w, target, Cube(layers[0].shape[1]))
    if not w.any() or not layers[0].any():
        search.bounds[:] = 0.0
        return search
    search.begin()
    search.run(deadline, most_open=most_open)
    # Some were closed by the multipliers of others.
    search.open = [at for at in search.open if search.bounds[search.cube.place(at.corner)] > target]
    return search


class Cube:
    r"""The corners of :math:`\{0, 1\}^n`, as a grid: the first half of the bits by the second.

    >>> cube = Cube(2)
    >>> Q = np.diag([5.0, 1.0, 2.0])  # 5 + v_1 + 2 v_2 at corners, where squares do nothing
    >>> cube.values(Q)
    array([[5., 7.],
           [6., 8.]])
    >>> cube.corner((1, 0)), cube.place(np.array([1.0, 0.0]))
    (array([1., 0.]), (1, 0))
    """

    def __init__(self, n: int) -> None:
        if not 1 <= n <= MAX_CORNER_BITS:
            raise ValueError(
                f"the corners of a cube are listed for 1 to {MAX_CORNER_BITS} bits; got {n}."
            )
        self.n = n
        self.shape = (2 ** (n // 2), 2 ** (n - n // 2))

    @cached_property
    def _halves(self) -> tuple[Array, Array]:
        first, second = _bits(self.n // 2), _bits(self.n - self.n // 2)
        return np.hstack([np.ones((len(first), 1)), first]), second

    def values(self, Q: Array) -> Array:
        """Return ``u Q u`` with ``u = (1, v)`` at every corner v, on the grid."""
        first, second = self._halves
        k = first.shape[1]
        one = np.einsum("ij,ij->i", first @ Q[:k, :k], first)
        two = np.einsum("ij,ij->i", second @ Q[k:, k:], second)
        cross = (first @ (Q[:k, k:] + Q[k:, :k].T)) @ second.T
        return np.asarray(one[:, None] + two + cross)

    def corner(self, place: tuple[int, ...]) -> Array:
        """Return the corner at a place of the grid."""
        first, second = self._halves
        return np.concatenate([first[place[0], 1:], second[place[1]]])

    def place(self, corner: Array) -> tuple[int, int]:
        """Return where on the grid a corner is."""
        k = self.n // 2
        bits = corner.astype(int)
        return int(bits[:k] @ (1 << np.arange(k))), int(bits[k:] @ (1 << np.arange(self.n - k)))


def _bits(n: int) -> Array:
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)


@dataclass(frozen=True, eq=False)
class Slopes:
    """Good slopes for several corners.

    Attributes:
        entering: :math:`z_l`, per layer, a column per corner.
        returning: :math:`b_l`, likewise.
        values: What reaches the output.
    """

    entering: tuple[Array, ...]
    returning: tuple[Array, ...]
    values: Array

    def multipliers(self, column: int, smoothing: float) -> list[Array]:
        r"""Return :math:`\lambda` for one corner, numbers below ``smoothing`` times the rms rounded off.

        None of them is finite if nothing reaches a layer.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return [
                _rounded_off(b[:, column], smoothing) / _rounded_off(z[:, column], smoothing)
                for z, b in zip(self.entering, self.returning, strict=True)
            ]


def climb(layers: Sequence[Array], w: Array, corners: Array) -> Slopes:
    """Improve the slopes of one layer after the other, for given corners, from a few starts.

    Args:
        layers: K and the weights that follow.
        w: Coefficients of the output.
        corners: Zeros and ones, a column per corner.

    >>> climb([np.array([[3.0, -1.0]]), np.array([[1.0], [-2.0]])], np.ones(2), np.ones((2, 1))).values
    array([2.])
    """
    rng = np.random.default_rng(0)
    m = corners.shape[1]
    best: Slopes | None = None
    for start in range(CLIMB_STARTS):
        slopes = [(rng.random((len(W), m)) < 0.5) | (start < 2) for W in layers]
        if start == 1:
            z = layers[0] @ corners
            slopes[0] = z > 0.0
            for i, W in enumerate(layers[1:], 1):
                z = W @ np.maximum(z, 0.0)
                slopes[i] = z > 0.0
        found = _improved(layers, w, corners, slopes, moving=False)
        best = found if best is None else _better(best, found)
    assert best is not None
    return best


def climb_freely(layers: Sequence[Array], w: Array, *, starts: int = 16) -> Slopes:
    """Improve slopes and corner together from random starts."""
    rng = np.random.default_rng(0)
    corners = (rng.random((layers[0].shape[1], starts)) < 0.5).astype(float)
    slopes = [rng.random((len(W), starts)) < 0.5 for W in layers]
    return _improved(layers, w, corners, slopes, moving=True)


def _improved(
    layers: Sequence[Array], w: Array, corners: Array, slopes: list[Open], *, moving: bool
) -> Slopes:
    last = np.full(corners.shape[1], -np.inf)
    for _ in range(CLIMB_ROUNDS):
        for i in range(len(layers) - 1, -1, -1):
            z, b = _entering(layers, corners, slopes), _returning(layers, w, slopes)
            slopes[i] = z[i] * b[i] > 0.0
        if moving:
            b = _returning(layers, w, slopes)
            corners = (layers[0].T @ (slopes[0] * b[0]) > 0.0).astype(float)
        z, b = _entering(layers, corners, slopes), _returning(layers, w, slopes)
        values = np.sum(z[0] * b[0] * slopes[0], axis=0)
        if np.all(values <= last * (1.0 + 1e-12)):
            break
        last = values
    return Slopes(tuple(z), tuple(b), values)


def _entering(layers: Sequence[Array], corners: Array, slopes: list[Open]) -> list[Array]:
    z = [layers[0] @ corners]
    for W, slope in zip(layers[1:], slopes, strict=False):
        z.append(W @ (slope * z[-1]))
    return z


def _returning(layers: Sequence[Array], w: Array, slopes: list[Open]) -> list[Array]:
    b = [np.repeat(w[:, None], slopes[0].shape[1], axis=1)]
    for W, slope in zip(reversed(layers[1:]), reversed(slopes), strict=False):
        b.append(W.T @ (slope * b[-1]))
    return b[::-1]


def _better(a: Slopes, b: Slopes) -> Slopes:
    """Take, corner by corner, whichever reaches more."""
    up = b.values > a.values

    def pick(x: Array, y: Array) -> Array:
        return np.where(up, y, x)

    return Slopes(
        tuple(map(pick, a.entering, b.entering)),
        tuple(map(pick, a.returning, b.returning)),
        pick(a.values, b.values),
    )


def _rounded_off(x: Array, smoothing: float) -> Array:
    return np.hypot(x, smoothing * np.sqrt(np.mean(x**2)))
