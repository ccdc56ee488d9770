"""The layers found so far, as a map with known values, Jacobians and cells; and where to ask next.

A row that was pieced together from few kinks is known badly in the columns of inputs that are rarely on.
Short segments across its fold, all over the cube, place it to rounding. A row with unknown columns has a
known fold only in cells where these inputs are off; walking along the fold to the edge of such a cell,
and a little beyond, leads to the cells that tell the missing weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.tuning import (
    ACROSS_HALF,
    BEYOND_EDGE,
    BEYOND_HALF,
    BISECTIONS,
    MAX_HOPS,
    MIN_CELL_RADIUS,
    MIN_SEGMENT,
    ON_FOLD_HEIGHT,
    WALK_JITTER,
    WALK_TRIES,
    WALKS,
    ZERO_SET_DRAWS,
)
from pindown.programs import linear_program

Segments = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class KnownLayers:
    """Hidden layers 1..l of the network in cube coordinates; l = 0 is the identity.

    Attributes:
        d: Number of inputs.
        layers: Pairs (W, b), the first taking cube coordinates.
    """

    d: int
    layers: tuple[tuple[Array, Array], ...] = ()

    @property
    def width(self) -> int:
        """Number of values it gives."""
        return len(self.layers[-1][1]) if self.layers else self.d

    def __call__(self, Y: Array) -> Array:
        """Return the values after the last ReLU, (..., width)."""
        a = Y
        for W, b in self.layers:
            a = np.maximum(a @ W.T + b, 0.0)
        return a

    def jacobian(self, Y: Array) -> tuple[Array, Array]:
        """Return values (n, width) and Jacobians (n, width, d)."""
        a, J = Y, np.broadcast_to(np.eye(self.d), (len(Y), self.d, self.d))
        for W, b in self.layers:
            z = a @ W.T + b
            on = z > 0.0
            a, J = np.where(on, z, 0.0), on[..., None] * (W @ J)
        return a, J

    def folds(self, Y: Array) -> tuple[Array, Array]:
        """Return heights (n, units) and gradients (n, units, d) of all units, before their ReLUs."""
        a, J = Y, np.broadcast_to(np.eye(self.d), (len(Y), self.d, self.d))
        heights, slopes = [np.empty((len(Y), 0))], [np.empty((len(Y), 0, self.d))]
        for W, b in self.layers:
            z, D = a @ W.T + b, W @ J
            heights.append(z)
            slopes.append(D)
            on = z > 0.0
            a, J = np.where(on, z, 0.0), on[..., None] * D
        return np.concatenate(heights, axis=1), np.concatenate(slopes, axis=1)

    def distances(self, Y: Array) -> Array:
        """Return the distances of points (n, d) from the units' local hyperplanes, (n, units)."""
        height, slope = self.folds(Y)
        size = np.linalg.norm(slope, axis=2)
        return np.where(size > 0.0, np.abs(height) / np.maximum(size, 1e-300), np.inf)

    def bounds(self) -> tuple[Array, Array]:
        """Return bounds of the values over the cube by interval arithmetic, (width,) each."""
        low, high = -np.ones(self.d), np.ones(self.d)
        for W, b in self.layers:
            positive, negative = np.maximum(W, 0.0), np.minimum(W, 0.0)
            lower = positive @ low + negative @ high + b
            upper = positive @ high + negative @ low + b
            low, high = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        return low, high

    def chords(self, points: Array, directions: Array) -> tuple[Array, Array]:
        """Return the ends of the chords of each point's cell, cut by the cube, (n, d) each."""
        height, slope = self.folds(points)
        speed = np.einsum("nud,nd->nu", slope, directions)
        level = np.concatenate([height, 1.0 - points, 1.0 + points], axis=1)
        rate = np.concatenate([speed, -directions, directions], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = -level / rate
        t[~np.isfinite(t)] = np.inf
        ahead = np.where(t > 0.0, t, np.inf).min(axis=1)
        behind = np.where(t < 0.0, t, -np.inf).max(axis=1)
        ahead, behind = np.minimum(ahead, 4.0), np.maximum(behind, -4.0)
        return points + behind[:, None] * directions, points + ahead[:, None] * directions

    def inside_all_on(self, n: int, rng: np.random.Generator) -> Array:
        """Return n points of the cell where all units are on, by hit and run; none if it is empty."""
        A, c = np.eye(self.d), np.zeros(self.d)
        N, m = [np.eye(self.d), -np.eye(self.d)], [np.ones(self.d), np.ones(self.d)]
        for W, b in self.layers:
            A, c = W @ A, W @ c + b
            N.append(A)
            m.append(c)
        rows, level = np.concatenate(N), np.concatenate(m)
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        rows, level = rows / size[:, None], level / size
        x, radius = _deepest(rows, level)
        if radius < MIN_CELL_RADIUS:
            return np.empty((0, self.d))
        points: list[Array] = []
        for _ in range(2 * n):
            # Along differences of points seen, the walk keeps to the shape of a thin cell.
            direction = rng.standard_normal(self.d)
            if len(points) > 2 * self.d:
                i, j = rng.integers(len(points), size=2)
                direction = points[i] - points[j] + WALK_JITTER * radius * direction
            rate, room = rows @ direction, rows @ x + level
            with np.errstate(divide="ignore", invalid="ignore"):
                t = -room / rate
            ahead = np.min(t[rate < 0.0], initial=np.inf)
            behind = np.max(t[rate > 0.0], initial=-np.inf)
            x = x + (behind + (ahead - behind) * rng.uniform(0.02, 0.98)) * direction
            points.append(x)
        return np.array(points[n:])

    def with_layer(self, W: Array, b: Array) -> KnownLayers:
        """Return one layer more."""
        return KnownLayers(self.d, (*self.layers, (W, b)))

    def zeros(self, w: Array, b: float, n: int, rng: np.random.Generator) -> Array:
        """Return up to n points of the cube where ``w . values + b`` changes its sign, (m, d)."""
        low, high = rng.uniform(-1.0, 1.0, (2, ZERO_SET_DRAWS * n, self.d))
        found = self._crossings(w, b, low, high, n)
        if not 0 < len(found) < n:
            return found
        # A rare zero set: segments through the points found often cross it again.
        walk = found
        for _ in range(WALKS):
            start = walk[rng.integers(len(walk), size=WALK_TRIES * n)]
            step = rng.standard_normal(start.shape) * rng.random((len(start), 1))
            low, high = (np.clip(start + side * step, -1.0, 1.0) for side in (-1.0, 1.0))
            walk = np.concatenate([found, self._crossings(w, b, low, high, n)])
        return walk[:n]

    def _crossings(self, w: Array, b: float, low: Array, high: Array, n: int) -> Array:
        """Return where up to n of the segments cross the zero set of ``w . values + b``, (m, d)."""
        sign = np.sign(self(low) @ w + b)
        across = np.flatnonzero(sign * (self(high) @ w + b) < 0)[:n]
        low, high, sign = low[across], high[across], sign[across]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            same = (self(middle) @ w + b) * sign > 0
            low = np.where(same[:, None], middle, low)
            high = np.where(same[:, None], high, middle)
        return (low + high) / 2


def _deepest(rows: Array, level: Array) -> tuple[Array, float]:
    """Return the point with ``rows x + level >= r`` for the largest r, and r."""
    d = rows.shape[1]
    result = linear_program(
        np.append(np.zeros(d), -1.0),
        np.column_stack([-rows, np.ones(len(rows))]),
        level,
        lower=np.append(np.full(d, -1.0), -np.inf),
        upper=1.0,
    )
    if not result.solved or result.x is None:
        return np.zeros(d), -1.0
    return result.x[:-1], float(result.x[-1])


def across(lower: KnownLayers, row: Array, n: int, rng: np.random.Generator) -> Segments:
    """Return segments across the zero set of a row at up to n random places."""
    y = lower.zeros(row[:-1], float(row[-1]), n, rng)
    normal, _ = _normals(lower, row, y)
    # Tilted a little: a segment along the normal of one fold may run along another.
    tilted = normal + 0.2 * rng.standard_normal(y.shape) / np.sqrt(lower.d)
    return _within_cube(y, ACROSS_HALF * tilted, rng)


def beyond(
    lower: KnownLayers, row: Array, known: NDArray[np.bool_], n: int, rng: np.random.Generator
) -> Segments:
    """Return segments just beyond the cells in which a partly known row's fold is known."""
    y = lower.zeros(row[:-1], float(row[-1]), n, rng)
    y = y[~(lower(y) > 0.0)[:, ~known[:-1]].any(axis=1)]
    found = [np.empty((2, 0, lower.d))]
    for _ in range(MAX_HOPS):
        normal, fine = _normals(lower, row, y)
        y, normal = y[fine], normal[fine]
        if not len(y):
            break
        along = rng.standard_normal(y.shape)
        along -= np.einsum("nd,nd->n", along, normal)[:, None] * normal
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
        _, edge = lower.chords(y, along)
        after = edge + BEYOND_EDGE * rng.random((len(y), 1)) * along
        inside = np.abs(after).max(axis=1) < 1.0
        after, normal = after[inside], normal[inside]
        new = (lower(after) > 0.0)[:, ~known[:-1]].any(axis=1)
        found.append(np.stack(_within_cube(after[new], BEYOND_HALF * normal[new], rng)))
        y = _back_onto(lower, row, after[~new])
    starts, ends = np.concatenate(found, axis=1)
    return starts, ends


def _normals(lower: KnownLayers, row: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return unit normals of the row's zero set, and where there is one."""
    _, J = lower.jacobian(y)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.linalg.norm(slope, axis=1)
    return slope / np.maximum(size, 1e-300)[:, None], size > 0.0


def _back_onto(lower: KnownLayers, row: Array, y: Array) -> Array:
    """Move points onto the zero set by one Newton step, which is exact within a cell."""
    a, J = lower.jacobian(y)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.maximum(np.einsum("nd,nd->n", slope, slope), 1e-300)
    moved = y - ((a @ row[:-1] + row[-1]) / size)[:, None] * slope
    height = np.abs(lower(moved) @ row[:-1] + row[-1]) / np.sqrt(size)
    return moved[(np.abs(moved).max(axis=1) < 1.0) & (height < ON_FOLD_HEIGHT)]


def _within_cube(middle: Array, step: Array, rng: np.random.Generator) -> Segments:
    """Return ``middle -+ step``, not centred, and shortened to fit the cube."""
    off = rng.uniform(-0.3, 0.3, (len(middle), 1))
    starts, ends = middle - (1.0 + off) * step, middle + (1.0 - off) * step
    for end in (starts, ends):
        away = end - middle
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(away > 0, (1.0 - middle) / away, (-1.0 - middle) / away)
        share = np.min(np.where(away != 0.0, room, 1.0), axis=1, initial=1.0)
        end[:] = middle + np.maximum(share, 0.0)[:, None] * away
    long = np.linalg.norm(ends - starts, axis=1) > MIN_SEGMENT
    return starts[long], ends[long]
