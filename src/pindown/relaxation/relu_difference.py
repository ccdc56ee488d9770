r"""The difference of a ReLU at two places: its bounds, and the planes between which it stays.

The planes above and below may be mixed anew for every form that is bounded: any mixture of planes above
a function is above it. That is what there is to optimise, as slopes below a ReLU are.

Paulsen, Wang and Wang 2020, "ReluDiff: differential verification of deep neural networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.model.operations.operation import (
    Adjustable,
    EntrywiseLines,
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    charged,
    in_float32,
)
from pindown.model.operations.relu import triangle_lines
from pindown.rounding import TINY, UNIT_ROUNDOFF, add_down, add_up

_ROUNDED = 1.0 + 8.0 * UNIT_ROUNDOFF


class Plane(NamedTuple):
    """``own * z + apart * delta + offset`` above a function of both, each ``(n, *shape)``."""

    own: Array
    apart: Array
    offset: Array

    def at(self, z: Array, delta: Array) -> Array:
        """Return its height at a point of each box."""
        return self.own * z + self.apart * delta + self.offset


@dataclass(frozen=True, eq=False)
class ReluDifference(Operation):
    r"""The difference of a ReLU at two places, :math:`\Delta = \rho(z) - \rho(z - \delta)`.

    On a box, :math:`l \le z \le u` and :math:`d \le \delta \le e` with :math:`d < 0 < e`, three planes
    lie above it: with :math:`m = \max(l, d)` and :math:`M = \min(u, e)`

    .. math::
        \Delta \le \frac{e\,(\delta - d)}{e - d}, \qquad
        \Delta \le \delta + \frac{-m}{u - m}\,(u - z), \qquad
        \Delta \le \frac{M}{M - l}\,(z - l).

    The first is the chord of :math:`\max(0, \delta)`; the second is :math:`\delta` where both are on,
    the third 0 where the first is off. Below, the same holds with both exchanged, for :math:`-\Delta` of
    :math:`z - \delta` and :math:`-\delta`. Of the three the one is taken that is lowest at the middle.
    """

    def shape(self, *shapes: Shape) -> Shape:
        """Return that of both."""
        if shapes[0] != shapes[1]:
            raise ValueError(f"values and differences need one shape; got {shapes[0]} and {shapes[1]}.")
        return shapes[0]

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Evaluate."""
        z, delta = inputs
        return np.asarray(np.maximum(z, 0) - np.maximum(z - delta, 0))

    def interval(self, *boxes: Interval) -> Interval:
        """Bound it by the differences, and by what each ReLU can be."""
        z, delta = boxes
        other = _other(z, delta)
        low = np.maximum(np.minimum(delta.lower, 0.0), -np.maximum(other.upper, 0.0))
        high = np.minimum(np.maximum(delta.upper, 0.0), np.maximum(z.upper, 0.0))
        on = (z.lower >= 0) & (other.lower >= 0)
        return Interval(np.where(on, delta.lower, low), np.where(on, delta.upper, high))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return planes above and below."""
        z, delta = boxes
        if not all(np.isfinite(end).all() for box in boxes for end in box):
            return super().relaxation(*boxes)
        above = _planes(z, delta)
        other, back = _other(z, delta), Interval(-delta.upper, -delta.lower)
        under = _planes(other, back)
        best = _lowest(above, z, delta), _lowest(under, other, back)
        first, second, third = (_turned(plane, delta) for plane in under)
        return Wedges.of(above, (first, second, third), best, (z, delta), self.bends(z, delta))

    def bends(self, z: Interval, delta: Interval) -> NDArray[np.bool_]:
        """Return where it is not linear on boxes of values and differences."""
        other = _other(z, delta)
        on, off = (z.lower >= 0) & (other.lower >= 0), (z.upper <= 0) & (other.upper <= 0)
        return np.asarray(~(on | off))

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the slopes in both."""
        z, delta = inputs
        here, there = np.where(z > 0, form, 0.0), np.where(z - delta > 0, form, 0.0)
        return here - there, there

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the difference of two ReLUs."""
        other = writer.node("Sub", [*inputs])
        return writer.node("Sub", [writer.node("Relu", [each]) for each in (inputs[0], other)])


def _other(z: Interval, delta: Interval) -> Interval:
    """Return where z - delta lies."""
    return Interval(add_down(z.lower, -delta.upper), add_up(z.upper, -delta.lower))


def _planes(z: Interval, delta: Interval) -> tuple[Plane, Plane, Plane]:
    """Return three planes above the difference of ReLUs, each rounded to the safe side."""
    low, u = z
    d, e = delta
    zero, one = np.zeros(low.shape), np.ones(low.shape)
    _, chord, shift = triangle_lines(d, e)
    u = np.maximum(u, 0.0)
    with np.errstate(all="ignore"):
        m = np.minimum(np.maximum(low, d), 0.0)
        fall = np.where(m < 0, -m / (u - m), 0.0) * _ROUNDED  # a steeper one is above, too
        top = np.maximum(np.minimum(u, e), 0.0)
        rise = np.where(low < 0, np.where(top > 0, top / (top - low), 0.0) * _ROUNDED, 1.0)
        start = np.where(low < 0, -rise * low * _ROUNDED + TINY, 0.0)
    return (
        Plane(zero, chord, shift),
        Plane(-fall, one, fall * u * _ROUNDED + np.where(fall > 0, TINY, 0.0)),
        Plane(rise, zero, start),
    )


def _turned(under: Plane, delta: Interval) -> Plane:
    """Return the plane below the difference that one above its negative is, read in z and delta.

    -Delta <= p (z - delta) - r delta + t, so Delta >= -p z + (p + r) delta - t.
    """
    slope = under.own + under.apart
    rounding = 4.0 * UNIT_ROUNDOFF * np.abs(slope) * delta.reach + TINY
    return Plane(-under.own, slope, add_down(-under.offset, -rounding))


def _lowest(planes: tuple[Plane, ...], z: Interval, delta: Interval) -> NDArray[np.intp]:
    """Return the number of the plane that is lowest in the middle of each entry's box."""
    middle = [box.lower / 2 + box.upper / 2 for box in (z, delta)]
    return np.argmin([plane.at(*middle) for plane in planes], axis=0)


# ---------------------------------------------------------------------- planes to choose from

Planes = tuple[Plane, Plane, Plane]


@dataclass(frozen=True, eq=False)
class Wedges(EntrywiseLines, Adjustable):
    r"""Entry by entry three planes above and three below: one of each, or mixtures of one's choice.

    With s and t in [0, 1], for the planes above and those below,

    .. math::
        (1 - s)\, P_1 + s\, \bigl((1 - t)\, P_2 + t\, P_3\bigr) .

    Attributes:
        over: The planes above.
        under: Those below.
        open: Where there is more than one way, ``(n, *shape)``.
        start: The numbers s and t above, and those below, that stand for the planes taken usually,
            ``(n, 4, *shape)``.
    """

    over: Planes
    under: Planes
    open: NDArray[np.bool_]
    start: Array

    @classmethod
    def of(
        cls,
        over: Planes,
        under: Planes,
        best: tuple[NDArray[np.intp], NDArray[np.intp]],
        boxes: tuple[Interval, Interval],
        bends: NDArray[np.bool_],
    ) -> Wedges:
        """Take the best planes usually, given by their numbers."""
        above, below = (
            Plane(*(np.choose(which, column) for column in zip(*planes, strict=True)))
            for which, planes in zip(best, (over, under), strict=True)
        )
        start = [part for which in best for part in (which > 0, which == 2)]
        return cls(
            below[:2],
            below.offset,
            above[:2],
            above.offset,
            boxes,
            over,
            under,
            bends,
            np.stack(start, axis=1).astype(np.float64),
        )

    def slopes(self, n: int, q: int) -> Array | None:
        """Return the mixtures that are the planes taken usually."""
        if not self.open.any():
            return None
        return np.broadcast_to(self.start[:, None], (n, q, *self.start.shape[1:])).copy()

    def with_slopes(self, slopes: Array) -> Relaxation:
        """Mix the planes anew, where there is more than one way."""
        free = self.open[:, None, None]
        return _Mixed(self, np.where(free, np.clip(slopes, 0.0, 1.0), self.start[:, None]))

    def slope_gradient(self, form: Array, *points: Array) -> Array:
        """Return it for the planes taken usually."""
        n, q = form.shape[:2]
        start = np.broadcast_to(self.start[:, None], (n, q, *self.start.shape[1:]))
        return _Mixed(self, start).slope_gradient(form, *points)

    def single(self) -> Wedges:
        """Round the planes to float32."""
        lines = EntrywiseLines.single(self)
        over, under = (
            tuple(Plane(*map(in_float32, plane)) for plane in planes)
            for planes in (self.over, self.under)
        )
        kept = (lines.lower, lines.below, lines.upper_slopes, lines.above, self.boxes)
        return Wedges(*kept, over, under, self.open, in_float32(self.start))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class _Mixed(Adjustable):
    """Mixtures of planes, of each form its own.

    Attributes:
        wedges: The planes.
        mix: The numbers s and t above, and those below, ``(n, q, 4, *shape)``.
    """

    wedges: Wedges
    mix: Array

    def slopes(self, n: int, q: int) -> Array | None:
        """Return the mixtures."""
        return self.mix

    def with_slopes(self, slopes: Array) -> Relaxation:
        """Mix the planes otherwise."""
        return self.wedges.with_slopes(slopes)

    def _sides(self, form: Array) -> tuple[NDArray[np.bool_], tuple[Array, Array]]:
        up = form > 0
        s, t = (np.where(up, self.mix[:, :, k], self.mix[:, :, 2 + k]) for k in (0, 1))
        return up, (s, t)

    def _planes(self, up: NDArray[np.bool_]) -> list[Plane]:
        pairs = zip(self.wedges.over, self.wedges.under, strict=True)
        return [
            Plane(*(np.where(up, a[:, None], b[:, None]) for a, b in zip(*pair, strict=True)))
            for pair in pairs
        ]

    def _mixture(self, form: Array, *, sizes: bool = False) -> tuple[Plane, Plane]:
        """Return the plane of each entry, and if asked what its rounding is relative to."""
        up, (s, t) = self._sides(form)
        weights = (1.0 - s, s * (1.0 - t), s * t)
        planes = self._planes(up)
        columns = list(zip(*planes, strict=True))
        made = Plane(*(_weighted(weights, column) for column in columns))
        if not sizes:
            return made, made
        return made, Plane(
            *(_weighted(weights, [np.abs(part) for part in column]) for column in columns)
        )

    def upper(self, form: Array) -> Pulled:
        """Take the mixture above where the coefficient is positive, that below where it is negative."""
        n, q = form.shape[:2]
        with np.errstate(over="ignore", invalid="ignore"):
            plane, sizes = self._mixture(form, sizes=True)
            offset = (form * plane.offset).reshape(n, q, -1).sum(axis=2)
            terms = sizes.offset
            lost = np.zeros(len(self.wedges.start))
            for size, box in zip(sizes[:2], self.wedges.boxes, strict=True):
                reach = box.reach
                terms = terms + size * reach[:, None]
                # By underflow.
                lost += 2.0**60 * TINY * (1.0 + reach.reshape(len(reach), -1).sum(axis=1))
            # Each coefficient is a sum of three products, off by less than eight roundings of its size.
            slack = (np.abs(form) * terms).reshape(n, q, -1).sum(axis=2) + lost[:, None]
        return Pulled((form * plane.own, form * plane.apart), charged(offset, slack, form[0, 0].size))

    def estimate(self, form: Array) -> Pulled:
        """Take the same mixtures, without what rounding can do."""
        plane, _ = self._mixture(form)
        offset = (form * plane.offset).reshape(*form.shape[:2], -1).sum(axis=2)
        return Pulled((form * plane.own, form * plane.apart), offset)

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Evaluate the mixtures."""
        plane, _ = self._mixture(form)
        return plane.at(*points)

    def slope_gradient(self, form: Array, *points: Array) -> Array:
        """Return the differences of the planes, at points, as far as the form takes them."""
        up, (s, t) = self._sides(form)
        first, second, third = (plane.at(*points) for plane in self._planes(up))
        used = form * self.wedges.open[:, None]
        moved = used * (second + t * (third - second) - first), used * s * (third - second)
        sides = [np.where(side, part, 0.0) for side in (up, ~up) for part in moved]
        return np.stack(sides, axis=2)


def _weighted(weights: tuple[Array, ...], parts: Sequence[Array]) -> Array:
    """Return a weighted sum."""
    total = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        total += weight * part
    return total
