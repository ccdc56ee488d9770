"""Polygons and segments in the plane joined into polylines, on a fine integer grid.

A picture of thousands of cells needs their common sides once, not twice, and lines that go on instead of
starting anew at every corner. Corners are rounded to a grid first, so that ends which differ by rounding
are one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.facts.plane_areas import Areas

Point = tuple[int, int]
Line = list[Point]
_STRAIGHT = 0.75  # grid steps: how far a corner may lie from the line through its neighbours to go
Ids = NDArray[np.int64]


class Grid:
    """An integer grid on a box, of ``steps`` steps along its longer side.

    >>> grid = Grid(Box([0, 0], [2, 1]), steps=100)
    >>> grid.round(np.array([[2.0, 0.501]])), grid.size
    (array([[100,  25]]), (100, 50))
    """

    def __init__(self, box: Box, steps: int = 4000) -> None:
        sides = box.upper - box.lower
        self.lower, self.step = box.lower, float(np.max(sides)) / steps
        self.size: Point = (round(float(sides[0]) / self.step), round(float(sides[1]) / self.step))

    def round(self, points: Array) -> NDArray[np.int64]:
        """Return the nearest grid points, (n, 2)."""
        return np.rint((points - self.lower) / self.step).astype(np.int64)


def outlines(areas: Areas, grid: Grid) -> dict[int, list[Line]]:
    """Return for each label the closed lines around the union of its polygons.

    Filling them by the non-zero or the even-odd rule fills the union: outer lines run
    counter-clockwise, lines around holes clockwise.
    """
    corners = grid.round(areas.corners)
    after = np.arange(1, len(corners) + 1)
    after[areas.offsets[1:] - 1] = areas.offsets[:-1]
    owner = np.repeat(areas.labels, np.diff(areas.offsets))
    found = {}
    for label in np.unique(areas.labels).tolist():
        own = owner == label
        sides = _once(corners[own], corners[after[own]])
        found[label] = [line for line in map(_closed, _loops(sides)) if len(line) > 2]
    return found


def polylines(segments: Array, owners: NDArray[np.int64], grid: Grid) -> list[Line]:
    """Join segments (m, 2, 2) that share an end and an owner into lines."""
    ends = grid.round(segments.reshape(-1, 2)).reshape(-1, 4)
    moved = (ends[:, :2] != ends[:, 2:]).any(axis=1)
    by_owner: dict[int, list[tuple[Point, Point]]] = defaultdict(list)
    for owner, (a, b, c, d) in zip(owners[moved].tolist(), ends[moved].tolist(), strict=True):
        by_owner[owner].append(((a, b), (c, d)))
    return [_thinned(line) for pairs in by_owner.values() for line in _joined(pairs)]


def path_data(lines: Iterable[Line], *, closed: bool = False) -> str:
    """Return lines as SVG path data, in short relative steps.

    >>> path_data([[(0, 0), (5, 0), (5, 4)]], closed=True)
    'M0 0l5 0 0 4z'
    """
    parts = []
    for line in lines:
        (x, y), steps = line[0], []
        for a, b in line[1:]:
            steps.append(f"{a - x} {b - y}")
            x, y = a, b
        parts.append(f"M{line[0][0]} {line[0][1]}l{' '.join(steps)}{'z' if closed else ''}")
    return "".join(parts).replace(" -", "-")


def _once(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[tuple[Point, Point]]:
    """Return the directed sides that are left when opposite ones cancel."""
    code = [(row[:, 0] << 32) + row[:, 1] for row in (starts, ends)]
    low, high = np.minimum(*code), np.maximum(*code)
    turn = np.where(code[0] < code[1], 1, -1)
    pairs, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
    net = np.bincount(which.ravel(), weights=turn, minlength=len(pairs)).astype(np.int64)
    sides = []
    for (a, b), n in zip(pairs.tolist(), net.tolist(), strict=True):
        p, q = (a >> 32, a & 0xFFFFFFFF), (b >> 32, b & 0xFFFFFFFF)
        if p != q:
            sides += [(p, q) if n > 0 else (q, p)] * abs(n)
    return sides


def _loops(sides: Iterable[tuple[Point, Point]]) -> list[Line]:
    """Chain directed sides to closed lines; as many end in every point as begin there."""
    following: dict[Point, list[Point]] = defaultdict(list)
    for a, b in sides:
        following[a].append(b)
    lines = []
    for start in list(following):
        while following[start]:
            line, here = [start], following[start].pop()
            while here != start:
                line.append(here)
                here = following[here].pop()
            lines.append(line)
    return lines


def _joined(pairs: list[tuple[Point, Point]]) -> list[Line]:
    """Chain segments to lines, starting where lines end or branch, then around closed ones."""
    around: dict[Point, list[Point]] = defaultdict(list)
    for a, b in pairs:
        around[a].append(b)
        around[b].append(a)
    ends = [point for point, others in around.items() if len(others) != 2]
    lines = []
    for start in [*ends, *around]:
        while around[start]:
            line = [start]
            while around[line[-1]]:
                here = line[-1]
                there = around[here].pop()
                around[there].remove(here)
                line.append(there)
            lines.append(line)
    return lines


def _closed(line: Line) -> Line:
    """Leave out the corners of a closed line at which it does not turn."""
    start = line.index(min(line))  # an outermost point: there it turns
    return _thinned([*line[start:], *line[: start + 1]])[:-1]


def _thinned(line: Line) -> Line:
    """Leave out points that lie on the straight way between others (to less than a grid step)."""
    kept, start = [line[0]], 0
    for i in range(2, len(line)):
        if not _straight(line[start : i + 1]):
            start = i - 1
            kept.append(line[start])
    return [*kept, line[-1]] if len(line) > 1 else kept


def _straight(line: Line) -> bool:
    (a, b), (c, d) = line[0], line[-1]
    length = ((c - a) ** 2 + (d - b) ** 2) ** 0.5
    return length > 0 and all(
        abs((x - a) * (d - b) - (y - b) * (c - a)) <= _STRAIGHT * length for x, y in line[1:-1]
    )


def join_segments(segments: Ids) -> list[Ids]:
    """Join segments into chains as long as possible, each segment in one of them.

    A chain ends where a line ends, and where three or more segments meet. Rings come last. Chains run in
    the direction of their segments, if these agree on one.

    Args:
        segments: Pairs of point numbers, (m, 2).

    Returns:
        Point numbers along each chain; a closed one ends with its first.

    >>> [chain.tolist() for chain in join_segments(np.array([[5, 6], [1, 2], [2, 3], [3, 1], [4, 5]]))]
    [[4, 5, 6], [1, 2, 3, 1]]
    """
    at: dict[int, list[int]] = defaultdict(list)
    for i, ends in enumerate(segments.tolist()):
        for end in ends:
            at[end].append(i)
    used = np.zeros(len(segments), bool)
    chains = []
    # From ends and branchings first: what is left then are rings. Starts of segments before their ends.
    firsts = [int(a) for a, _ in segments] + [int(b) for _, b in segments]
    for ends_only in (True, False):
        for point in firsts:
            if ends_only and len(at[point]) == 2:
                continue
            for segment in sorted(at[point], key=lambda i: segments[i, 0] != point):
                if not used[segment]:
                    chains.append(_followed(segments, at, used, point, segment))
    return chains


def _followed(
    segments: Ids, at: dict[int, list[int]], used: NDArray[np.bool_], point: int, segment: int
) -> Ids:
    """Follow unused segments from a point as long as there is one way on."""
    chain = [point]
    while True:
        used[segment] = True
        a, b = (int(end) for end in segments[segment])
        point = b if point == a else a
        chain.append(point)
        onward = [i for i in at[point] if not used[i]]
        if len(at[point]) != 2 or not onward:
            return np.array(chain, dtype=np.int64)
        segment = onward[0]
