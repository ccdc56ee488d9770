r"""Exact restriction of a network to segments: where it breaks, and what it is in between.

On :math:`x(t) = a + t (b - a)`, :math:`0 \le t \le 1`, the network is piecewise linear in t. Its cells
are the intervals on which no unit switches; its pieces are those on which the output has one slope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.geometry.nearness import SAME
from pindown.geometry.regions.point_location import pattern_along
from pindown.geometry.slices._segment_sweep import Integers, Sweep, Swept
from pindown.geometry.tuning import FIRST_SEGMENT_GROUP, SEGMENT_GROUP_KNOTS
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import refuse

# Slopes are differences of values, which carry some 2^-50 of the size of their terms; on intervals
# shorter than this, differences are too coarse to tell slopes apart to SAME, and derivatives are taken.
_SHORT = 2.0**-18
_VALUE_ERROR = 2.0**-48


@on_network
def along_segment(net: ReluNetwork, a: ArrayLike, b: ArrayLike) -> Any:
    """Restrict a network to the segment from a to b, or to many segments at once.

    Every unit that switches in between is found, with its time; several may share one. A unit that
    touches zero and turns back does not switch, nor does one that reaches zero at an end.

    Args:
        net: The network.
        a: Start points, (d,) or (n, d).
        b: End points, of the same shape.

    Returns:
        :class:`SegmentFolds` for points (d,), :class:`ManySegmentFolds` for points (n, d).

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> along_segment(net, [[-1.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [2.0, 1.0]])
    ManySegmentFolds(2 segments, 3 cells, 3 pieces; 1 switch)

    Phuong 2021, Definition A.10, whose unit fold-sets also hold points where a unit touches zero from
    above; Mukherjee 2020, proof of Lemma 2.A.6 (break points layer by layer).
    """
    starts, single = net.as_rows(a)
    ends, also_single = net.as_rows(b)
    if starts.shape != ends.shape or single != also_single:
        raise ValueError(f"a and b need the same shape; got {np.shape(a)} and {np.shape(b)}.")
    many = along_segments(net, starts, ends)
    return many[0] if single else many


def along_segments(net: ReluNetwork, a: Array, b: Array) -> ManySegmentFolds:
    """Return what :func:`along_segment` does for rows of points (n, d).

    Beyond the result, memory is bounded: segments go through in groups.
    """
    parts, start, size = [_group(net, a[:0], b[:0])], 0, FIRST_SEGMENT_GROUP
    while start < len(a):
        group = slice(start, start + size)
        parts.append(_group(net, a[group], b[group]))
        start = min(len(a), start + size)
        size = max(1, SEGMENT_GROUP_KNOTS * len(parts[-1].knot_counts) // len(parts[-1].knots))
    t, units, visible, counts, knots, values, slopes, knot_counts = map(
        np.concatenate, zip(*parts, strict=True)
    )
    offsets, knot_offsets = (np.concatenate([[0], np.cumsum(c)]) for c in (counts, knot_counts))
    arrays = (t, units, visible, offsets, knots, values, slopes, knot_offsets)
    for array in arrays:
        array.flags.writeable = False
    return ManySegmentFolds(net, a, b, *arrays)


class _Group(NamedTuple):
    t: Array
    units: Integers
    visible: NDArray[np.bool_]
    counts: Integers
    knots: Array
    values: Array
    slopes: Array
    knot_counts: Integers


def _group(net: ReluNetwork, a: Array, b: Array) -> _Group:
    swept = Sweep(net).run(a, b)
    knot_counts = np.bincount(swept.knot_segments, minlength=len(a))
    ends = np.cumsum(knot_counts)
    slopes, errors = _slopes(net, a, b, swept)
    bends = _bends(slopes, errors, ends - knot_counts, knot_counts)
    # Every inner knot is there because some unit switches: the distinct times are the inner knots.
    owner, t = swept.events[:, 0], swept.event_times
    new = np.ones(len(t), dtype=bool)
    new[1:] = (owner[1:] != owner[:-1]) | (t[1:] != t[:-1])
    inner = np.ones(len(swept.knots), dtype=bool)
    inner[ends - knot_counts] = inner[ends - 1] = False
    visible = bends[inner][np.cumsum(new) - 1]
    counts = np.bincount(owner, minlength=len(a))
    return _Group(t, swept.events[:, 1], visible, counts, swept.knots, swept.values, slopes, knot_counts)


@on_network
def count_pieces_on_line(
    net: ReluNetwork, x0: ArrayLike, direction: ArrayLike, t_range: tuple[float, float] = (0.0, 1.0)
) -> int:
    r"""Count the affine pieces of the network on :math:`x_0 + t\,d` for t in a range.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> count_pieces_on_line(net, [0.0], [1.0], (-5, 5))
    2

    Mukherjee 2020, Definition 3 and Lemma 2.A.6.
    """
    (start, _), (step, _) = net.as_rows(x0), net.as_rows(direction)
    low, high = (float(t) for t in t_range)
    if not (np.isfinite([low, high]).all() and low < high):
        refuse("t_range", "two finite numbers, the smaller first", t_range)
    if len(start) != 1 or len(step) != 1:
        raise ValueError("count_pieces_on_line takes one line; along_segment takes many segments.")
    return int(along_segments(net, start + low * step, start + high * step).n_pieces[0])


def line_complex(net: ReluNetwork, lower: float, upper: float) -> LineComplex:
    """Return all cells of a network with one input between two numbers.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> line_complex(net, -3, 1).breakpoints
    array([0.])
    """
    if net.in_features != 1:
        raise ValueError(f"line_complex takes networks with one input; this one has {net.in_features}.")
    if not lower <= upper:
        raise ValueError(f"an interval needs lower <= upper; got {lower} and {upper}.")
    folds: SegmentFolds = along_segment(net, np.array([float(lower)]), np.array([float(upper)]))
    return LineComplex(folds, folds.at(folds.knots[1:-1])[:, 0], folds.patterns)


def _slopes(net: ReluNetwork, a: Array, b: Array, swept: Swept) -> tuple[Array, Array]:
    """Return the slope after each knot (NaN after a last one) and what rounding adds to it."""
    last = np.append(swept.knot_segments[1:] != swept.knot_segments[:-1], True)[: len(swept.knots)]
    spans = np.append(np.diff(swept.knots), np.nan)[: len(swept.knots)]
    spans[last] = np.nan
    rise = np.zeros_like(swept.values)
    rise[:-1] = np.diff(swept.values, axis=0)
    slopes = rise / spans[:, None]
    errors = _VALUE_ERROR * swept.scales / spans[:, None]
    short = np.flatnonzero(spans < _SHORT)
    for part in net.chunks(len(short)):
        at = short[part]
        segment = swept.knot_segments[at]
        step = b[segment] - a[segment]
        middle = a[segment] + (swept.knots[at] + spans[at] / 2)[:, None] * step
        slopes[at], sizes = _derivatives(net, middle, step)
        errors[at] = _VALUE_ERROR * sizes
    return slopes, errors


def _derivatives(net: ReluNetwork, X: Array, U: Array) -> tuple[Array, Array]:
    """Return directional derivatives (n, k), and the sums of the sizes of their terms (n, k)."""
    a, change = X, U
    for layer in net.layers[:-1]:
        z = layer(a)
        change = (layer(change) - layer.bias) * (z >= 0.0)
        a = np.maximum(z, 0.0)
    last = net.layers[-1]
    return last(change) - last.bias, (abs(last.weight) @ np.abs(change).T).T


def _bends(slopes: Array, errors: Array, starts: Integers, counts: Integers) -> NDArray[np.bool_]:
    """Return at which knots the slope of some output changes, (K,); ends do not count."""
    bends = np.zeros(len(slopes), dtype=bool)
    if len(bends):
        steepest = np.fmax.reduceat(np.abs(slopes), starts, axis=0)
        allowed = SAME * np.repeat(steepest, counts, axis=0)
        change = np.abs(np.diff(slopes, axis=0))
        bends[1:] = (change > allowed[1:] + errors[1:] + errors[:-1]).any(axis=1)
    return bends


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
    def kind(self) -> Kind:
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
