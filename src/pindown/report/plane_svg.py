"""A plane with axes as inline SVG that the page's script can move and enlarge; still without it.

What lies in the plane stands in an inner ``<svg class="view">`` whose viewBox the script changes; what
keeps its size (points, names) stands over it as groups ``<g class="at" data-u data-v>`` at shares of the
frame.
"""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

# Units of the drawing. A phone shows it at this width, so letters have the size of the page's there.
_WIDTH = 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 6.0, 36.0
_MOST_STEPS = 6.5  # between the ticks of an axis, as in the script
# From these shares of the frame on, the name of a point is written on its other side, as in the script.
_FAR_RIGHT, _FAR_UP = 0.72, 0.9


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


def ticks(low: float, high: float, most: float = _MOST_STEPS) -> list[float]:
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
