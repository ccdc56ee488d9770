"""Maps of the plane: areas and folds in grid units, data points over them, a legend beside."""

from __future__ import annotations

from html import escape

from pindown.findings.pictures import Dot, MapArea, PlaneMap
from pindown.report.plane_svg import Plane, plane_svg, quoted

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
_FEW_DOTS = 10  # so few are drawn larger
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
    large = len(picture.dots) <= _FEW_DOTS
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
        for area in picture.areas[:_MOST_IN_LEGEND]
    )
    more = len(picture.areas) - _MOST_IN_LEGEND
    rest = f"<li>and {more} more</li>" if more > 0 else ""
    title = f'<li class="swatch-title">{escape(picture.legend)}</li>'
    return f'<ul class="swatches">{title}{items}{rest}</ul>'
