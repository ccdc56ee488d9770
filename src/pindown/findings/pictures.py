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
    """Counts of values between consecutive edges, those below ``highlight_below`` set apart.

    On a logarithmic axis all edges are positive.
    """

    caption: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    x_label: str
    y_label: str
    marks: tuple[Mark, ...] = ()
    highlight_below: float | None = None
    logarithmic: bool = False


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


@dataclass(frozen=True)
class Curves:
    """Functions of one variable, straight between the positions given.

    Attributes:
        caption: What is to be seen.
        x: Positions, ascending.
        names: One per curve.
        values: ``values[curve][position]``.
        x_label: What the horizontal axis measures.
        y_label: What the vertical axis measures.
        counts: Whether the values are counts: the axis then begins at zero and has whole numbers.
    """

    caption: str
    x: tuple[float, ...]
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    x_label: str
    y_label: str
    counts: bool = False


@dataclass(frozen=True)
class MapArea:
    """A part of a map with one colour.

    Attributes:
        label: What it is, for the legend.
        path: Its outlines on the map's grid as SVG path data, y upwards; inside by the even-odd rule.
        group: Number of the class whose colour it has, or None for a shade.
        shade: -1 to 1: the darker the further from 0, two hues for the two signs.
        place: Where to write the label inside, in the coordinates of the map, if there is room.
    """

    label: str
    path: str
    group: int | None = None
    shade: float = 0.0
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class Dot:
    """A data point on a map; those without a class have group None."""

    x: float
    y: float
    label: str = ""
    group: int | None = None


@dataclass(frozen=True)
class PlaneMap:
    """Coloured areas of a plane with lines and points on them.

    Attributes:
        caption: What is to be seen.
        extent: Left, right, bottom and top.
        grid: Number of grid steps along both axes; paths are written in these.
        areas: What fills the plane.
        lines: Lines on it as SVG path data.
        image: The lines as pixels instead, if there are too many: a PNG in base64, mid-grey with alpha.
        dots: Data points.
        x_label: What the horizontal axis measures.
        y_label: What the vertical axis measures.
        legend: Title of the legend of the areas.
    """

    caption: str
    extent: tuple[float, float, float, float]
    grid: tuple[int, int]
    areas: tuple[MapArea, ...]
    lines: str
    image: str
    dots: tuple[Dot, ...]
    x_label: str
    y_label: str
    legend: str


@dataclass(frozen=True)
class Narrowing:
    """An interval that was proved ever narrower, both ends on a logarithmic scale.

    Attributes:
        caption: What is to be seen.
        seconds: When an end moved, ascending.
        lower: The lower end from then on; 0 is drawn at the foot.
        upper: The upper end from then on; infinite ones are drawn at the top.
        mark: A number to read the interval against.
        mark_label: What it is.
        y_label: What the interval is about.
    """

    caption: str
    seconds: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    mark: float
    mark_label: str
    y_label: str


Picture: TypeAlias = Histogram | StackedBars | Scale | Curves | PlaneMap | Narrowing
