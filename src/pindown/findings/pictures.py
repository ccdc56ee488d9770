"""The data of pictures. Reports draw them; findings only say what there is to see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


def drawable(values: Iterable[float]) -> bool:
    """Return whether numbers are of a size that axes can be laid out for without leaving float64."""
    return all(value == 0.0 or 1e-100 < abs(value) < 1e100 for value in values)


@dataclass(frozen=True)
class Mark:
    """A labelled position on the horizontal axis."""

    position: float
    label: str


@dataclass(frozen=True)
class Histogram:
    """Counts of values between consecutive edges, those below ``highlight_below`` set apart."""

    caption: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    x_label: str
    y_label: str
    marks: tuple[Mark, ...] = ()
    highlight_below: float | None = None


@dataclass(frozen=True)
class StackedBars:
    """One horizontal bar per label, split into named parts.

    Attributes:
        caption: What is to be seen.
        labels: One per bar, top to bottom.
        parts: Names of the parts.
        values: ``values[bar][part]``.
        x_label: What the lengths count.
    """

    caption: str
    labels: tuple[str, ...]
    parts: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    x_label: str


@dataclass(frozen=True)
class Scale:
    """Named positions on one axis, logarithmic if they are far apart, and an interval to shade.

    Attributes:
        caption: What is to be seen.
        points: The positions, all positive if the axis is logarithmic.
        span: The interval to shade.
        x_label: What the axis measures.
    """

    caption: str
    points: tuple[Mark, ...]
    span: tuple[float, float]
    x_label: str


Picture: TypeAlias = Histogram | StackedBars | Scale
