"""Planes with axes as inline SVG that the page's script can move and enlarge: maps and scatters.

What lies in the plane stands in an inner ``<svg class="view">`` whose viewBox the script changes; what
keeps its size (points, names) stands over it as groups ``<g class="at" data-u data-v>`` at shares of the
frame.
"""

from __future__ import annotations

import json
import math
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.findings.pictures import Dot, MapArea, PlaneMap
from pindown.report.tuning import MAX_LARGE_DOTS, MAX_LEGEND_ENTRIES, MAX_POINTS, SCATTER_ENDS

# Units of the drawing. A phone shows it at this width, so letters have the size of the page's there.
_WIDTH = 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 6.0, 36.0
_MAX_STEPS = 6.5  # between the ticks of an axis, as in the script
# From these shares of the frame on, the name of a point is written on its other side, as in the script.
_FAR_RIGHT, _FAR_UP = 0.72, 0.9
# Told apart with any kind of colour vision as far as ten can be (Okabe and Ito; Tol). They are laid over
# the page's own background, light or dark, so they need no second set.
CLASS_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#6F5FC6",
    "#8A8A8A",
    "#999933",
    "#B0406F",
)
_OPACITY = 0.42
# Around (0, 0), all of about the same area, so that classes differ in more than their colour.
_MARKERS = (
    "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "M-2.7-2.7h5.4v5.4h-5.4z",
    "M0-3.8L3.8 0L0 3.8L-3.8 0z",
    "M0-3.7L3.5 2.6H-3.5z",
    "M0 3.7L3.5-2.6H-3.5z",
    "M-1.3-3.6h2.6v2.3h2.3v2.6h-2.3v2.3h-2.6v-2.3h-2.3v-2.6h2.3z",
    "M0-3.7L3.5-1.1L2.2 3H-2.2L-3.5-1.1z",
    "M-3.4 0L-1.7-3h3.4L3.4 0L1.7 3h-3.4z",
)
_GRID = (400.0, 300.0)
_MARGIN = 0.04  # of an axis, around the points
_INSIDE = 0.01  # of an axis: where far points are drawn, so that no half of a dot is cut off


class Plane(NamedTuple):
    """A part of a plane and how it is drawn.

    Attributes:
        extent: Left, right, bottom and top.
        grid: Width and height of the inner viewBox.
        ratio: Height of the frame over its width.
        labels: What the axes measure.
    """

    extent: tuple[float, float, float, float]
    grid: tuple[float, float]
    ratio: float
    labels: tuple[str, str]

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of the frame in the drawing."""
        width = _WIDTH - _LEFT - _RIGHT
        return _LEFT, _TOP, width, round(width * self.ratio, 1)

    def shares(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point lies, as shares of the frame from the left and from the bottom."""
        left, right, low, high = self.extent
        return (x - left) / (right - left), (y - low) / (high - low)

    def at(self, x: float, y: float, content: str, tip: str = "") -> str:
        """Return markup that stays where the point is and keeps its size."""
        (u, v), (fx, fy, width, height) = self.shares(x, y), self.frame
        sides = f"at{' flip' if u > _FAR_RIGHT else ''}{' low' if v > _FAR_UP else ''}"
        said = f" data-tip={quoted(tip)}" if tip else ""
        return (
            f'<g class="{sides}" data-u="{u:.4f}" data-v="{v:.4f}"{said} '
            f'transform="translate({fx + u * width:.1f} {fy + (1 - v) * height:.1f})">{content}</g>'
        )


def quoted(text: str) -> str:
    """Return text as the value of an attribute."""
    return f'"{escape(text, quote=True)}"'


def plane_svg(
    plane: Plane, inside: str, over: str, *, caption: str, identity: str, points: str = ""
) -> str:
    """Return a plane as a ``<div>`` with its SVG.

    Args:
        plane: The part of the plane.
        inside: Markup in the coordinates of the inner viewBox, y downwards.
        over: Markup made by :meth:`Plane.at`.
        caption: What is to be seen, for those who do not see it.
        identity: Put before every id, so that several planes fit in one page.
        points: JSON ``[noun, [number, x, y], ...]`` of points the script names when the pointer is near.
    """
    x, y, width, height = plane.frame
    whole = _TOP + height + _BOTTOM
    frame = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    clip = f"{identity}-frame"
    data = "".join(
        f" data-{name}={quoted(value)}"
        for name, value in (
            ("extent", " ".join(f"{end!r}" for end in plane.extent)),
            ("x-label", plane.labels[0]),
            ("y-label", plane.labels[1]),
            ("points", points),
        )
        if value
    )
    return "\n".join(
        [
            f'<div class="plane"{data}>',
            f'<svg viewBox="0 0 {_WIDTH:g} {whole:g}" role="img" aria-label={quoted(caption)}>',
            f'<clipPath id="{clip}"><rect {frame}/></clipPath>',
            f'<svg class="view" {frame} viewBox="0 0 {plane.grid[0]:g} {plane.grid[1]:g}" '
            f'preserveAspectRatio="none">{inside}</svg>',
            f'<rect class="frame" {frame}/>',
            f'<g class="ticks">{_ticks(plane)}</g>',
            f'<g clip-path="url(#{clip})">{over}</g>',
            f'<text class="label" x="{x + width / 2:.1f}" y="{whole - 5:.1f}">'
            f"{escape(plane.labels[0])}</text>",
            f'<text class="label" transform="translate(9 {y + height / 2:.1f}) rotate(-90)">'
            f"{escape(plane.labels[1])}</text>",
            "</svg>",
            "</div>",
        ]
    )


def ticks(low: float, high: float, most: float = _MAX_STEPS) -> list[float]:
    """Return round numbers between two, a few.

    >>> ticks(-1.2, 4.9)
    [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    """
    if not low < high < math.inf:
        return []
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10, 20) if m * power >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [i * step for i in range(first, last + 1)]


def tick_text(value: float) -> str:
    """Return a number beside an axis.

    >>> tick_text(-0.30000000000000004), tick_text(12000.0)
    ('−0.3', '12000')
    """
    return f"{value:.10g}".replace("-", "−")


def _ticks(plane: Plane) -> str:
    left, right, low, high = plane.extent
    fx, fy, width, height = plane.frame
    bottom = fy + height
    across = [
        f'<text class="x" x="{fx + plane.shares(value, low)[0] * width:.1f}" y="{bottom + 13:.1f}">'
        f"{tick_text(value)}</text>"
        for value in ticks(left, right)
    ]
    up = [
        f'<text class="y" x="{fx - 4:.1f}" '
        f'y="{bottom - plane.shares(left, value)[1] * height + 3.5:.1f}">{tick_text(value)}</text>'
        for value in ticks(low, high)
    ]
    return "".join(across + up)


def draw_map(picture: PlaneMap, prefix: str) -> str:
    """Return a map as a plane that the page's script can move and enlarge, and its legend."""
    left, right, low, high = picture.extent
    ratio = (high - low) / (right - left)
    plane = Plane(
        picture.extent,
        picture.grid,
        ratio if 0.4 <= ratio <= 1.6 else 0.85,  # one scale for both axes unless it makes a strip
        (picture.x_label, picture.y_label),
    )
    over = "".join([_dots(plane, picture), _names(plane, picture)])
    drawn = plane_svg(plane, _inside(picture), over, caption=picture.caption, identity=prefix)
    return f"{drawn}{_legend(picture)}"


def _inside(picture: PlaneMap) -> str:
    """Return areas and folds; paths are written with y upwards."""
    across, up = picture.grid
    areas = "".join(
        f'<path class="area" data-tip={quoted(_tip(picture, area))} d="{area.path}" {_fill(area)}/>'
        for area in picture.areas
    )
    lines = f'<path class="folds" d="{picture.lines}"/>' if picture.lines else ""
    image = (
        f'<image width="{across}" height="{up}" preserveAspectRatio="none" '
        f'href="data:image/png;base64,{picture.image}"/>'
        if picture.image
        else ""
    )
    return f'<g transform="translate(0 {up}) scale(1 -1)">{areas}{lines}</g>{image}'


def _tip(picture: PlaneMap, area: MapArea) -> str:
    return f"{picture.legend} {area.label}".strip()


def _fill(area: MapArea) -> str:
    if area.group is not None:
        return f'fill="{_class_colour(area.group)}" fill-opacity="{_OPACITY}"'
    hue = "--fill-1" if area.shade >= 0 else "--fill-2"
    return f'style="fill:var({hue})" fill-opacity="{0.08 + 0.72 * min(1.0, abs(area.shade)):.2f}"'


def _class_colour(group: int) -> str:
    return CLASS_COLOURS[group % len(CLASS_COLOURS)]


def _dots(plane: Plane, picture: PlaneMap) -> str:
    large = len(picture.dots) <= MAX_LARGE_DOTS
    size = 1.5 if large else 0.75
    shaded = any(area.group is None for area in picture.areas)
    return "".join(
        plane.at(
            dot.x,
            dot.y,
            f'<path d="{_MARKERS[(dot.group or 0) % len(_MARKERS)]}" transform="scale({size})" '
            f"{_dot_fill(dot, shaded)}/>{_label(dot)}",
            _dot_tip(dot),
        )
        for dot in picture.dots
    )


def _dot_fill(dot: Dot, shaded: bool) -> str:
    if dot.group is None:
        return 'style="fill:var(--ink)"'
    if shaded:
        return f'style="fill:var(--fill-{2 - dot.group % 2})"'
    return f'fill="{_class_colour(dot.group)}"'


def _label(dot: Dot) -> str:
    return f'<text class="name">{escape(dot.label)}</text>' if dot.label else ""


def _dot_tip(dot: Dot) -> str:
    known = [dot.label or "data point", "" if dot.group is None else f"class {dot.group}"]
    return ", ".join(filter(None, known))


def _names(plane: Plane, picture: PlaneMap) -> str:
    return "".join(
        plane.at(*area.place, f'<text class="area-name">{escape(area.label)}</text>')
        for area in picture.areas
        if area.place
    )


def _legend(picture: PlaneMap) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" {_fill(area)}/>'
        f"</svg>{escape(area.label)}</li>"
        for area in picture.areas[:MAX_LEGEND_ENTRIES]
    )
    more = len(picture.areas) - MAX_LEGEND_ENTRIES
    rest = f"<li>and {more} more</li>" if more > 0 else ""
    title = f'<li class="swatch-title">{escape(picture.legend)}</li>'
    return f'<ul class="swatches">{title}{items}{rest}</ul>'


class Points(NamedTuple):
    """How points are called: "line" and its number in a file, for instance."""

    noun: str
    numbers: NDArray[np.int64]


def scatter(
    x: Array,
    y: Array,
    marked: NDArray[np.bool_],
    threshold: float,
    labels: tuple[str, str],
    points: Points | None = None,
    *,
    caption: str = "",
) -> str:
    """Return a plane with a dot per point; points beyond the axes are drawn on their edge.

    Args:
        x: Horizontal positions.
        y: Vertical positions.
        marked: Points in the colour of a warning.
        threshold: A vertical line, if it is inside.
        labels: What the axes measure.
        points: How the points are called; otherwise by their place.
        caption: What is to be seen.
    """
    noun, numbers = points or Points("point", np.arange(len(x)))
    horizontal, vertical = _axis(x), _axis(y)
    if bool(marked.any()) and horizontal[0] >= threshold:  # what is marked lies beyond the line
        horizontal = threshold - _MARGIN * (horizontal[1] - threshold), horizontal[1]
    across = _positions(x, horizontal, _GRID[0])
    down = _GRID[1] - _positions(y, vertical, _GRID[1])
    parts, known = [], []
    for group, colour in ((~marked, "--fill-1"), (marked, "--warn")):
        rows = np.flatnonzero(group)
        rows = rows[:: max(1, math.ceil(len(rows) / MAX_POINTS))]
        known += [[int(numbers[i]), _four_digits(x[i]), _four_digits(y[i])] for i in rows]
        if len(rows):
            dots = _points(across[rows], down[rows])
            parts.append(f'<path class="points" style="stroke:var({colour})" d="{dots}"/>')
    if horizontal[0] < threshold < horizontal[1]:
        at = float(_positions(np.array([threshold]), horizontal, _GRID[0])[0])
        parts.append(f'<path class="threshold" d="M{at:.1f} 0V{_GRID[1]:g}"/>')
    plane = Plane((*horizontal, *vertical), _GRID, _GRID[1] / _GRID[0], labels)
    text = json.dumps([noun, *known], separators=(",", ":"))
    return plane_svg(plane, "".join(parts), "", caption=caption, identity="scatter", points=text)


def _four_digits(value: float) -> float | None:
    """Return a number to four digits; JSON has no word for what is not finite."""
    return float(f"{value:.4g}") if math.isfinite(value) else None


def robust_ends(values: Array, shares: tuple[float, float]) -> tuple[float, float]:
    """Return two quantiles that are values themselves: one far value of a few does not move them.

    >>> robust_ends(np.array([-1e6, 1.0, 2.0, 3.0]), (0.01, 0.99))
    (1.0, 2.0)
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 0.0
    low = float(np.quantile(finite, shares[0], method="higher"))
    high = float(np.quantile(finite, shares[1], method="lower"))
    return (low, high) if low < high else (float(finite.min()), float(finite.max()))


def _axis(values: Array) -> tuple[float, float]:
    low, high = robust_ends(values, SCATTER_ENDS)
    pad = _MARGIN * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _positions(values: Array, span: tuple[float, float], length: float) -> Array:
    share = (np.clip(values, *span) - span[0]) / (span[1] - span[0])
    return np.asarray(np.clip(share, _INSIDE, 1 - _INSIDE) * length)


def _points(across: Array, down: Array) -> str:
    """Return dots as lines of length zero with round ends: twelve bytes each."""
    return "".join(f"M{u:.1f} {v:.1f}h0" for u, v in zip(across.tolist(), down.tolist(), strict=True))
