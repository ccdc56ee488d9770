r"""Bound every corner of a source: few sets of multipliers, each good for many corners.

Between two networks that differ in a few biases of one layer by d runs a family with biases
:math:`b + t d`. Almost everywhere in t the outputs change at the rate
:math:`W_L D_{L-1} W_{L-1} \cdots D_l d` with slopes 0 or 1, those of the ReLUs of that network at that
input. So the gap is at most the largest of these rates, over the corners
:math:`D_l d` and over all later slopes. Multipliers taken from the best slopes at one corner prove a
bound at all corners, sharp there and good nearby; what stays above the target gets its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.sensitivity.corners.climb import Slopes, climb, climb_freely
from pindown.equivalence.sensitivity.corners.cube import Cube
from pindown.equivalence.sensitivity.corners.form import corner_form, proved_form
from pindown.equivalence.sensitivity.multipliers import SourceChain, first_multipliers

# How far multipliers are smoothed: for the first set, which must serve all corners, and for one corner.
_WIDE = (0.3, 0.5, 0.2, 0.4, 0.7, 1.0)
_NARROW = (0.05, 0.01)
# Where a corner's own are not concave: how far, in logarithms, to go from the first set to them.
_STEPS = (1.0, 0.5, 0.2)


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
        for smoothing in _WIDE:
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

    def run(self, until: float, *, most_open: int) -> None:
        """Take one corner above the target after the other, the worst first.

        Args:
            until: When to stop (``time.monotonic``).
            most_open: How many corners may stay open before only the largest bound counts.
        """
        while time.monotonic() < until:
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
        sharp = found.multipliers(0, _NARROW[-1])
        ways = [found.multipliers(0, smoothing) for smoothing in _NARROW[:-1] if not hopeless]
        concave = False
        for lams in [*ways, sharp]:
            Q = corner_form(self.layers, self.w, lams)
            concave |= Q is not None
            if Q is not None:
                yield lams, Q
        if concave or self.first is None:
            return
        for step in _STEPS:
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
    layers: Sequence[Array], w: Array, target: float, until: float, *, most_open: int = 0
) -> CornerSearch:
    """Bound what a source does to one output, corner by corner where that is needed.

    Args:
        layers: K, whose columns are what the entries of the source bring to the first layer, none of it
            lost to underflow, and the weights of the layers that follow.
        w: Coefficients of the output.
        target: A bound that is good enough.
        until: When to stop (``time.monotonic``); a first bound is proved in any case.
        most_open: Collect up to about this many corners above the target.

    >>> K = np.array([[1.0, -1.0], [1.0, 1.0]])  # two entries, two ReLUs, read as relu - relu / 2
    >>> search = cover([K], np.array([1.0, -0.5]), 0.0, inf)
    >>> round(search.value, 3)  # the first entry alone, first slope 1, second slope 0
    1.0
    """
    search = CornerSearch(layers, w, target, Cube(layers[0].shape[1]))
    if not w.any() or not layers[0].any():
        search.bounds[:] = 0.0
        return search
    search.begin()
    search.run(until, most_open=most_open)
    # Some were closed by the multipliers of others.
    search.open = [at for at in search.open if search.bounds[search.cube.place(at.corner)] > target]
    return search
