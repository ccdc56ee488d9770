"""Maps of the plane as inline SVG: areas and lines in grid units, axes and words by matplotlib."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from pindown.findings.pictures import MapArea, PlaneMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
_MOST_IN_LEGEND = 12
_COLUMNS = 3
_MARKERS = "osD^vPXhp8"


def map_height(picture: PlaneMap, width: float) -> float:
    """Return the height in inches of a figure that a map fills, with its legend."""
    left, right, low, high = picture.extent
    shape = (high - low) / (right - left) if _on_one_scale(picture) else 0.8
    n = min(len(picture.areas), _MOST_IN_LEGEND)
    if _shaded(picture):  # the legend is below
        return (width - 0.65) * shape + 0.6 + 0.22 * (1 + math.ceil(n / _COLUMNS))
    words = max((len(area.label) for area in picture.areas), default=0)
    room = width - 0.65 - (0.3 + 0.075 * max(words, len(picture.legend)))
    return max(room * shape, 0.2 * (1 + n)) + 0.6


def _shaded(picture: PlaneMap) -> bool:
    return bool(picture.areas) and picture.areas[0].group is None


def _on_one_scale(picture: PlaneMap) -> bool:
    left, right, low, high = picture.extent
    return 0.4 <= (high - low) / (right - left) <= 1.6


def paint_map(ax: Axes, picture: PlaneMap, colours: dict[str, Any]) -> None:
    """Draw all but the areas and lines, which :func:`insert_map` puts in.

    Args:
        ax: Where to draw.
        picture: What to draw.
        colours: Stand-ins for the page's colours: ink, paper, and the two hues of shades.
    """
    from matplotlib.patches import Patch

    left, right, low, high = picture.extent
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    if _on_one_scale(picture):
        ax.set_aspect("equal")
    ax.patch.set_gid("map")
    ax.set_xlabel(picture.x_label)
    ax.set_ylabel(picture.y_label)
    ax.locator_params(nbins=5)
    for area in picture.areas:
        if area.place:
            ax.annotate(area.label, area.place, ha="center", va="center", fontweight="bold")
    _paint_dots(ax, picture, colours)
    handles = [
        Patch(facecolor=colour, alpha=opacity, label=area.label)
        for area in picture.areas[:_MOST_IN_LEGEND]
        for colour, opacity in [_fill(area, colours)]
    ]
    options = {"handles": handles, "title": picture.legend, "alignment": "left", "handleheight": 1}
    if _shaded(picture):
        ax.figure.legend(loc="outside lower center", ncols=_COLUMNS, handlelength=1, **options)
    elif handles:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.02), handlelength=1, **options)


def insert_map(svg: str, ax: Axes, picture: PlaneMap, colours: dict[str, Any]) -> str:
    """Return the SVG with areas and lines in place of the empty background of the axes."""
    box = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    x, width, height = (points * v for v in (box.x0, box.width, box.height))
    y = points * (ax.figure.bbox.height - box.y1)
    across, up = width / picture.grid[0], height / picture.grid[1]
    areas = "".join(
        f'<path d="{area.path}" fill="{colour}" fill-opacity="{opacity:.2f}" fill-rule="evenodd"/>'
        for area in picture.areas
        for colour, opacity in [_fill(area, colours)]
    )
    thin = max(0.12, min(0.5, 60.0 / (1 + picture.lines.count("M")))) / max(across, up)
    lines = (
        f'<path d="{picture.lines}" fill="none" stroke="{colours["ink"]}" stroke-opacity="0.5" '
        f'stroke-width="{thin:.2f}"/>'
        if picture.lines
        else ""
    )
    image = (
        f'<image x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{picture.image}"/>'
        if picture.image
        else ""
    )
    place = f"translate({x:.2f} {y + height:.2f}) scale({across:.6f} {-up:.6f})"
    drawn = f'<g transform="{place}">{areas}{lines}</g>{image}'
    return re.sub(r'<g id="map">.*?</g>', lambda _: drawn, svg, count=1, flags=re.DOTALL)


def _fill(area: MapArea, colours: dict[str, Any]) -> tuple[str, float]:
    if area.group is not None:
        return CLASS_COLOURS[area.group % len(CLASS_COLOURS)], _OPACITY
    hue = colours["more"] if area.shade >= 0 else colours["less"]
    return hue, 0.08 + 0.72 * min(1.0, abs(area.shade))


def _paint_dots(ax: Axes, picture: PlaneMap, colours: dict[str, Any]) -> None:
    size = 7 if len(picture.dots) <= 10 else 3.6
    hues = (colours["less"], colours["more"]) if _shaded(picture) else CLASS_COLOURS
    for group in sorted({dot.group for dot in picture.dots}, key=str):
        own = [dot for dot in picture.dots if dot.group == group]
        ax.plot(
            [dot.x for dot in own],
            [dot.y for dot in own],
            linestyle="",
            marker="o" if group is None else _MARKERS[group % len(_MARKERS)],
            color=colours["ink"] if group is None else hues[group % len(hues)],
            markersize=size,
            markeredgecolor=colours["paper"],
            markeredgewidth=size / 8,
        )
    for dot in picture.dots:
        if dot.label:
            ax.annotate(dot.label, (dot.x, dot.y), (6, 5), textcoords="offset points")
