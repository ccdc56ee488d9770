"""A scatter of two scores as a few bytes of SVG that follow the page's colours."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.report.plane_svg import Plane, plane_svg

_GRID = (400.0, 300.0)
MOST_POINTS = 2_000  # per colour; more would only fill the plane
_MARGIN = 0.04  # of an axis, around the points
_INSIDE = 0.01  # of an axis: where far points are drawn, so that no half of a dot is cut off
_EDGES = (0.002, 0.998)  # of the axes: a few far points must not press all others into a corner


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
    horizontal, vertical = _range(x), _range(y)
    if bool(marked.any()) and horizontal[0] >= threshold:  # what is marked lies beyond the line
        horizontal = threshold - _MARGIN * (horizontal[1] - threshold), horizontal[1]
    across = _positions(x, horizontal, _GRID[0])
    down = _GRID[1] - _positions(y, vertical, _GRID[1])
    parts, known = [], []
    for group, colour in ((~marked, "--fill-1"), (marked, "--warn")):
        rows = np.flatnonzero(group)
        rows = rows[:: max(1, math.ceil(len(rows) / MOST_POINTS))]
        known += [[int(numbers[i]), _short(x[i]), _short(y[i])] for i in rows]
        if len(rows):
            dots = _dots(across[rows], down[rows])
            parts.append(f'<path class="points" style="stroke:var({colour})" d="{dots}"/>')
    if horizontal[0] < threshold < horizontal[1]:
        at = float(_positions(np.array([threshold]), horizontal, _GRID[0])[0])
        parts.append(f'<path class="threshold" d="M{at:.1f} 0V{_GRID[1]:g}"/>')
    plane = Plane((*horizontal, *vertical), _GRID, _GRID[1] / _GRID[0], labels)
    text = json.dumps([noun, *known], separators=(",", ":"))
    return plane_svg(plane, "".join(parts), "", caption=caption, identity="scatter", points=text)


def _short(value: float) -> float | None:
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


def _range(values: Array) -> tuple[float, float]:
    low, high = robust_ends(values, _EDGES)
    pad = _MARGIN * (high - low) or 0.5 * abs(high) or 0.5
    return low - pad, high + pad


def _positions(values: Array, span: tuple[float, float], length: float) -> Array:
    share = (np.clip(values, *span) - span[0]) / (span[1] - span[0])
    return np.asarray(np.clip(share, _INSIDE, 1 - _INSIDE) * length)


def _dots(across: Array, down: Array) -> str:
    """Return dots as lines of length zero with round ends: twelve bytes each."""
    return "".join(f"M{u:.1f} {v:.1f}h0" for u, v in zip(across.tolist(), down.tolist(), strict=True))
