"""Maps of cells in the plane, as data for a picture."""

from __future__ import annotations

import base64
import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.findings.pictures import Dot, MapArea, PlaneMap
from pindown.findings.tuning import (
    FOLD_IMAGE_PIXELS,
    LABEL_GRID,
    LABEL_ROOM,
    MAX_CELLS_AS_LINES,
    MAX_FOLD_IMAGE_BYTES,
    VALUE_BANDS,
)
from pindown.findings.wording import number_text
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts.plane_areas import Areas, class_areas, level_areas
from pindown.geometry.facts.polylines import Grid, outlines, path_data, polylines
from pindown.geometry.folds.fold_set import fold_set


class Coloured(NamedTuple):
    """Areas of a plane with their names.

    Attributes:
        areas: The polygons.
        names: A name for every label.
        groups: The class of every label, or None for values.
        shades: Shade of every label, for values.
        title: What the names are.
    """

    areas: Areas
    names: dict[int, str]
    groups: dict[int, int | None]
    shades: dict[int, float]
    title: str


def by_class(cells: PolyhedralComplex) -> Coloured:
    """Colour the plane by the largest output."""
    areas = class_areas(cells)
    present = np.unique(areas.labels).tolist()
    return Coloured(
        areas,
        {i: str(i) for i in present},
        {i: i for i in present},
        dict.fromkeys(present, 0.0),
        "class",
    )


def by_value(cells: PolyhedralComplex, output: int) -> Coloured:
    """Colour the plane by the value of an output, in a few bands; two hues if it changes its sign."""
    values = cells.net(cells.vertices)[:, output]
    low, high = float(values.min()), float(values.max())
    levels = round_levels(low, high)
    areas = level_areas(cells, levels, output=output)
    ends = [low, *levels, high]
    middles = [(a + b) / 2 for a, b in pairwise(ends)]
    if low < 0 < high:
        shades = [middle / max(-low, high) for middle in middles]
    else:
        shades = [(i + 0.5) / len(middles) for i in range(len(middles))]
    present = np.unique(areas.labels).tolist()
    names = {i: f"{number_text(ends[i])} to {number_text(ends[i + 1])}" for i in present}
    title = "output" if cells.net.out_features == 1 else f"output {output}"
    return Coloured(areas, names, dict.fromkeys(present), {i: shades[i] for i in present}, title)


def plane_map(
    cells: PolyhedralComplex,
    coloured: Coloured,
    dots: tuple[Dot, ...],
    caption: str,
    axes: tuple[str, str],
) -> PlaneMap:
    """Return the map of some cells."""
    many = cells.n_regions > MAX_CELLS_AS_LINES
    grid = Grid(cells.box, steps=1500 if many else 3000)
    drawn = outlines(coloured.areas, grid)
    places = _places(cells, coloured) if coloured.title == "class" else {}
    areas = [
        MapArea(
            coloured.names[label],
            path_data(lines, closed=True),
            coloured.groups[label],
            coloured.shades[label],
            places.get(label),
        )
        for label, lines in drawn.items()
    ]
    if coloured.title != "class":
        areas.reverse()  # the largest value on top of the legend
    (left, low), (right, high) = cells.box.lower.tolist(), cells.box.upper.tolist()
    return PlaneMap(
        caption,
        (left, right, low, high),
        grid.size,
        tuple(areas),
        "" if many else _fold_lines(cells, grid),
        _fold_image(cells) if many else "",
        dots,
        *axes,
        coloured.title,
    )


def round_levels(low: float, high: float) -> list[float]:
    """Return a few round numbers between two, 0 among them if it lies between.

    >>> round_levels(-1.2, 4.9)
    [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    """
    if not high > low:
        return []
    rough = (high - low) / VALUE_BANDS
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.floor(low / step) + 1, math.ceil(high / step) - 1
    return [round(i * step / power, 6) * power for i in range(first, last + 1)]


def _fold_lines(cells: PolyhedralComplex, grid: Grid) -> str:
    folds = fold_set(cells)
    return path_data(polylines(folds.segments, folds.units, grid))


def _fold_image(cells: PolyhedralComplex) -> str:
    from pindown.geometry.plots.folds import lines_image

    for pixels in FOLD_IMAGE_PIXELS:
        image = lines_image(cells.vertices[cells.edges], cells.box, pixels=pixels)
        if len(image) <= MAX_FOLD_IMAGE_BYTES:
            break
    return base64.b64encode(image).decode("ascii")


def _places(cells: PolyhedralComplex, coloured: Coloured) -> dict[int, tuple[float, float]]:
    """Return for each class the point that is farthest inside it, where there is room for a label."""
    from scipy.ndimage import distance_transform_edt

    steps = (np.arange(LABEL_GRID) + 0.5) / LABEL_GRID
    x, y = (
        low + steps * (high - low) for low, high in zip(cells.box.lower, cells.box.upper, strict=True)
    )
    points: Array = np.stack([axis.ravel() for axis in np.meshgrid(x, y)], axis=1)
    winners: NDArray[np.intp] = cells.net(points).argmax(axis=1).reshape(LABEL_GRID, LABEL_GRID)
    places = {}
    for label in coloured.names:
        room = distance_transform_edt(np.pad(winners == label, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(room.argmax(), room.shape)
        if room[row, column] >= LABEL_ROOM:
            places[label] = (float(x[column]), float(y[row]))
    return places
