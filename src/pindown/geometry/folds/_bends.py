r"""The bends of a function of one or two variables: on which lines, how far along them, how strong.

In homogeneous coordinates (x, s) a line :math:`n \cdot x + b = 0` is the plane with the normal
:math:`N = (n, b)`. Crossing it from the negative to the positive side, the gradient of
:math:`s f(x / s)` jumps by :math:`\kappa N^\top`, with one number :math:`\kappa` for each output of f.

**Charts.** All of the line or plane fits in a few boxes, in coordinates that reach infinity: for a
network f the function :math:`F(x, s) = s f(x / s)` is again a network for :math:`s \ge 0`, biases being
weights of s. It is homogeneous, so f on all of :math:`R^d` is F on any surface that every ray meets: the
box :math:`s = 1, |x_i| \le \rho R`, and beside it, for every coordinate and sign,
:math:`x_i = \pm 1, |x_j| \le \rho, 0 \le s \le 1/R`, where s = 0 is infinity. Lines stay lines. With
:math:`\rho > 1` the pieces overlap, so that a fold along the edge of one is inside another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.geometry.folds.fold_set import FoldSet, fold_set
from pindown.geometry.nearness import SAME
from pindown.geometry.regions.point_location import unit_forms
from pindown.geometry.tuning import CHART_OVERLAP
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False)
class Bends:
    """All visible folds of a function on a box or on all of R^d, d = 1 or 2.

    Attributes:
        planes: Normals ``(n, b)`` (m, d + 1) with n of unit length.
        jumps: The numbers kappa (m, k).
        rays: End points (m, d, d + 1) in homogeneous coordinates.
        radius: A typical length, to weigh s against x.
        scale: The largest entry of the function's affine maps.
        start: Homogeneous coordinates (d + 1,) of a point inside a cell.
        start_map: The affine map ``[A, c]`` (k, d + 1) of that cell.
    """

    planes: Array
    jumps: Array
    rays: Array
    radius: float
    scale: float
    start: Array
    start_map: Array

    @cached_property
    def lines(self) -> list[NDArray[np.int64]]:
        """Numbers of the folds on each line, the longest fold first."""
        weighed = self.planes * np.append(np.ones(self.planes.shape[1] - 1), 1.0 / self.radius)
        unit = weighed / np.linalg.norm(weighed, axis=1, keepdims=True)
        spread = np.linalg.norm(self.rays[:, 0] - self.rays[:, -1], axis=1)
        groups: list[list[int]] = []
        first = np.empty((0, self.planes.shape[1]))
        for i in np.argsort(-spread, kind="stable"):
            # The normal is known up to sign.
            gaps = np.minimum(np.abs(first - unit[i]).max(axis=1), np.abs(first + unit[i]).max(axis=1))
            if len(first) and gaps.min() <= SAME:
                groups[int(gaps.argmin())].append(int(i))
            else:
                groups.append([int(i)])
                first = np.concatenate([first, unit[i : i + 1]])
        return [np.array(group) for group in groups]


def bends_of(net: ReluNetwork, box: Box | None, deadline: Deadline) -> Bends | None:
    """Collect the visible folds on a box, or on all of R^d; None if the time does not suffice.

    Args:
        net: A network with one or two inputs.
        box: The domain, None for all inputs.
        deadline: When to stop.
    """
    F, radius = homogenise(net), fold_radius(net)
    if box is None:
        charts = list(charts_of_space(net.in_features, radius))
    else:
        charts, radius = [box_chart(box)], float(np.abs([box.lower, box.upper]).max()) or 1.0
    parts = []
    for chart in charts:
        folds = fold_set(chart.restrict(F), chart.box, budget=deadline.left, certified=True)
        if not folds.complete:
            return None
        parts.append(_in_chart(F, chart, folds, radius))
    return Bends(
        planes=np.concatenate([part.planes for part in parts]),
        jumps=np.concatenate([part.jumps for part in parts]),
        rays=np.concatenate([part.rays for part in parts]),
        radius=radius,
        scale=max(part.scale for part in parts),
        start=parts[0].start,
        start_map=parts[0].start_map,
    )


def _in_chart(F: ReluNetwork, chart: Chart, folds: FoldSet, radius: float) -> Bends:
    """Return the visible folds of one chart in homogeneous coordinates."""
    cells, seen = folds.complex, folds.only(folds.visible)
    maps, _ = F.affine_of_pattern(cells.patterns)
    d = chart.box.dim
    planes = np.empty((len(seen), d + 1))
    jumps = np.empty((len(seen), F.out_features))
    for i, ((one, other), unit) in enumerate(zip(seen.cells, seen.units, strict=True)):
        pattern = cells.patterns[one]
        normal = unit_forms(F, pattern, np.array([unit]))[0][0]
        planes[i] = normal / np.linalg.norm(normal[:d])
        jump = (maps[one] - maps[other]) * (1.0 if pattern[unit] else -1.0)
        jumps[i] = jump @ planes[i] / (planes[i] @ planes[i])
    largest = int(np.argmax(cells.volumes))
    middle = cells.cell_vertices[cells.offsets[largest] : cells.offsets[largest + 1]].mean(axis=0)
    return Bends(
        planes,
        jumps,
        chart.rays(seen.points).reshape(len(seen), d, d + 1),
        radius,
        float(np.abs(maps).max()),
        chart.rays(middle[None])[0],
        maps[largest],
    )


@dataclass(frozen=True, eq=False)
class Circle:
    """A line of the plane, with infinity at both ends, as half a circle of rays.

    Attributes:
        first: The line's direction, which is its point at infinity, (3,).
        second: A ray to a point of the line, orthogonal to that when s is weighed by the radius.
        radius: That weight.
    """

    first: Array
    second: Array
    radius: float

    @classmethod
    def of(cls, plane: Array, radius: float) -> Circle:
        """Return the circle of the line ``n . x + b = 0``, given ``(n, b)`` with unit n."""
        normal = np.append(plane[:2], plane[2] / radius)
        first = np.array([-plane[1], plane[0], 0.0])
        second = np.cross(normal, first)
        return cls(first, second / np.linalg.norm(second) * np.sign(second[2]), radius)

    def angles(self, rays: Array) -> Array:
        """Return where rays (..., 3) on the line lie, from 0 to pi."""
        weighed = rays * np.array([1.0, 1.0, self.radius])
        # Rounding must not turn a ray to one infinity into a ray to the other.
        return np.arctan2(np.maximum(weighed @ self.second, 0.0), weighed @ self.first)

    def point(self, angle: float) -> Array:
        """Return the point (2,) of the plane at an angle strictly between 0 and pi."""
        ray = cos(angle) * self.first + sin(angle) * self.second
        return ray[:2] / ray[2] * self.radius

    def chord(self, box: Box) -> tuple[float, float]:
        """Return the angles at which the line enters and leaves a box that it meets."""
        base, along = self.point(np.pi / 2), self.first[:2]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(box.lower - base) / along, (box.upper - base) / along])
        ends = np.where(np.abs(along) > 0, ends, np.array([[-np.inf], [np.inf]]))
        low, high = ends.min(axis=0).max(), ends.max(axis=0).min()
        rays = np.append(base + np.array([[low], [high]]) * along, np.ones((2, 1)), axis=1)
        angles = np.sort(self.angles(rays))
        return float(angles[0]), float(angles[1])


@dataclass(frozen=True, eq=False)
class Chart:
    """A box of coordinates u and the map ``(x, s) = matrix @ u + offset``."""

    box: Box
    matrix: Array
    offset: Array

    def restrict(self, homogeneous: ReluNetwork) -> ReluNetwork:
        """Return the homogeneous network in the coordinates u; its units keep their order."""
        return homogeneous @ ReluNetwork.from_layers([(self.matrix, self.offset)])

    def rays(self, points: Array) -> Array:
        """Return (x, s) for coordinates u (n, d): (n, d + 1)."""
        return points @ self.matrix.T + self.offset


def homogenise(net: ReluNetwork) -> ReluNetwork:
    """Return ``(x, s) -> s net(x / s)`` for ``s >= 0``; every hidden layer gets one more unit, s itself.

    >>> net = ReluNetwork.from_layers([([[1.0]], [-2]), ([[1.0]], [3])])
    >>> homogenise(net)([[5.0, 1.0], [10.0, 2.0]]).ravel()  # relu(5 - 2) + 3 = 6, and twice that
    array([ 6., 12.])
    """
    layers = []
    for i, (weight, bias) in enumerate(net.layers, 1):
        rows = np.column_stack([dense(weight), bias])
        if i < net.depth:
            rows = np.concatenate([rows, np.eye(1, rows.shape[1], rows.shape[1] - 1)])
        layers.append((rows, np.zeros(len(rows))))
    return ReluNetwork.from_layers(layers)


def box_chart(box: Box) -> Chart:
    """Return the chart of a box: x itself, with s = 1."""
    d = box.dim
    return Chart(box, np.eye(d + 1, d), np.eye(1, d + 1, d)[0])


def charts_of_space(d: int, radius: float) -> Iterator[Chart]:
    """Yield charts that together cover all of R^d; finite folds should lie within the radius."""
    yield box_chart(Box.cube(d, -CHART_OVERLAP * radius, CHART_OVERLAP * radius))
    others = np.full(d - 1, CHART_OVERLAP)
    box = Box(np.append(-others, 0.0), np.append(others, 1.0 / radius))
    for i in range(d):
        for sign in (1.0, -1.0):
            rest = [j for j in range(d + 1) if j != i]
            matrix, offset = np.zeros((d + 1, d)), np.zeros(d + 1)
            matrix[rest, np.arange(d)] = 1.0
            offset[i] = sign
            yield Chart(box, matrix, offset)


def fold_radius(net: ReluNetwork) -> float:
    """Return a length of the order of the first folds' distances from the origin, 1 if all are 0."""
    weight, bias = net.layers[0]
    lengths = np.linalg.norm(dense(weight), axis=1)
    distances = np.abs(bias)[lengths > 0] / lengths[lengths > 0]
    return 2.0 * float(distances.max(initial=0.0)) or 1.0
