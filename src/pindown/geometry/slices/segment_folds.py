r"""A network restricted to segments: what :func:`along_segment` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.regions.inner_point import pattern_along
from pindown.geometry.slices.sweep import Integers
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False, repr=False)
class SegmentFolds:
    r"""A network on one segment.

    Attributes:
        net: The network.
        a: Where the segment starts, (d,).
        b: Where it ends, (d,).
        t: When a unit switches, ascending, in (0, 1); equal for units that switch together, (E,).
        units: Which unit, in the order of ``net.pattern``, (E,).
        visible: Whether the slope of the output changes there, (E,).
        knots: The distinct times with 0 and 1, (K,).
        values: The outputs there, (K, k); linear in between.
        slopes: :math:`df/dt` between consecutive knots, (K - 1, k).

    Example:
        >>> from pindown.geometry.slices.segment import along_segment
        >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [-1, -3]), ([[1.0, -1.0]], [0])])
        >>> folds = along_segment(net, [0.0], [4.0])
        >>> folds.t, folds.units, folds.slopes.ravel()
        (array([0.25, 0.75]), array([0, 1]), array([0., 4., 0.]))
        >>> folds
        SegmentFolds(3 cells, 3 pieces; 2 switches, 2 visible)

    Phuong 2021, Definitions A.8 and A.10, restricted to a line.
    """

    net: ReluNetwork
    a: Array
    b: Array
    t: Array
    units: Integers
    visible: NDArray[np.bool_]
    knots: Array
    values: Array
    slopes: Array

    @property
    def kind(self) -> Literal["exact"]:
        """How the folds are known: all of them, by signs as float64 gives them."""
        return "exact"

    @property
    def n_cells(self) -> int:
        """Number of intervals between knots."""
        return len(self.knots) - 1

    @property
    def n_pieces(self) -> int:
        """Number of intervals after neighbours with equal slopes are merged."""
        return 1 + len(np.unique(self.t[self.visible]))

    @property
    def points(self) -> Array:
        """Where the units switch, in input space, (E, d)."""
        return self.at(self.t)

    @cached_property
    def patterns(self) -> NDArray[np.bool_]:
        """Which units are on in each cell, (K - 1, size); a unit that is zero throughout is on."""
        first = pattern_along(self.net, self.a, self.b - self.a)
        flips = np.zeros((self.n_cells, self.net.size), dtype=bool)
        flips[np.searchsorted(self.knots, self.t), self.units] = True
        return first ^ np.logical_xor.accumulate(flips, axis=0)

    def at(self, t: ArrayLike) -> Array:
        """Return the input :math:`a + t (b - a)`: () -> (d,), (n,) -> (n, d)."""
        times = np.asarray(t, dtype=np.float64)[..., None]
        return self.a + times * (self.b - self.a)

    def __call__(self, t: ArrayLike) -> Array:
        """Return the output at times in [0, 1] by interpolation: () -> (k,), (n,) -> (n, k)."""
        times = np.asarray(t, dtype=np.float64)
        return np.stack([np.interp(times, self.knots, column) for column in self.values.T], axis=-1)

    def __repr__(self) -> str:
        return (
            f"SegmentFolds({_count(self.n_cells, 'cell')}, {_count(self.n_pieces, 'piece')}; "
            f"{_count(len(self.t), 'switch')}, {int(self.visible.sum())} visible)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ManySegmentFolds:
    """A network on n segments, in flat arrays; ``folds[i]`` is one of them.

    Attributes:
        net: The network.
        a: Where the segments start, (n, d).
        b: Where they end, (n, d).
        t: As in :class:`SegmentFolds`, one segment after the other, (E,).
        units: Likewise, (E,).
        visible: Likewise, (E,).
        offsets: Segment i has entries ``offsets[i] : offsets[i + 1]`` of these, (n + 1,).
        knots: Likewise, (K,).
        values: Likewise, (K, k).
        slopes: Slopes between knots j and j + 1; NaN after a segment's last knot, (K, k).
        knot_offsets: Segment i has knots ``knot_offsets[i] : knot_offsets[i + 1]``, (n + 1,).
    """

    net: ReluNetwork
    a: Array
    b: Array
    t: Array
    units: Integers
    visible: NDArray[np.bool_]
    offsets: Integers
    knots: Array
    values: Array
    slopes: Array
    knot_offsets: Integers

    @property
    def n_cells(self) -> Integers:
        """Number of cells of each segment, (n,)."""
        return np.diff(self.knot_offsets) - 1

    @cached_property
    def n_pieces(self) -> Integers:
        """Number of pieces of each segment, (n,)."""
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        first = np.ones(len(self.t), dtype=bool)
        first[1:] = (self.t[1:] != self.t[:-1]) | (owner[1:] != owner[:-1])
        return 1 + np.bincount(owner[first & self.visible], minlength=len(self))

    def __len__(self) -> int:
        return len(self.a)

    def __iter__(self) -> Iterator[SegmentFolds]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> SegmentFolds:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} segments; got index {i}.")
        i %= len(self)
        events = slice(self.offsets[i], self.offsets[i + 1])
        knots = slice(self.knot_offsets[i], self.knot_offsets[i + 1])
        return SegmentFolds(
            self.net,
            self.a[i],
            self.b[i],
            self.t[events],
            self.units[events],
            self.visible[events],
            self.knots[knots],
            self.values[knots],
            self.slopes[knots][:-1],
        )

    def __repr__(self) -> str:
        cells, pieces = int(self.n_cells.sum()), int(self.n_pieces.sum())
        counts = f"{_count(len(self), 'segment')}, {_count(cells, 'cell')}, {_count(pieces, 'piece')}"
        return f"ManySegmentFolds({counts}; {_count(len(self.t), 'switch')})"


@dataclass(frozen=True, eq=False, repr=False)
class LineComplex:
    """All cells of a network with one input on an interval.

    Attributes:
        folds: The network along the interval.
        breakpoints: Where one cell ends and the next begins, ascending, (m,).
        patterns: Which units are on in each cell, (m + 1, size).
    """

    folds: SegmentFolds
    breakpoints: Array
    patterns: NDArray[np.bool_]

    def __repr__(self) -> str:
        low, high = self.folds.a[0], self.folds.b[0]
        return f"LineComplex({_count(len(self.patterns), 'cell')} on [{low:g}, {high:g}])"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what if n == 1 else what + ('es' if what.endswith('h') else 's')}"
