r"""A search for the input at which two networks differ most.

With a box the gap at x is :math:`\max_k |a_k(x) - b_k(x)|`; without one it is that divided by
:math:`1 + \|x\|_2`, since rounded weights make the absolute gap grow with x. Every value is a lower
bound on the largest gap, so the search may be as careless as it likes: only its best point is
evaluated with rounding bounded.

Phuong 2021, section 2.1 (two networks are one function only if no input tells them apart).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.tuning import (
    CORNER_SHARES,
    MAX_ROW_ENTRIES,
    SEARCH_ASCENT_SHARE,
    SEARCH_CORNERS,
    SEARCH_FOLD_POINTS,
    SEARCH_PART,
    SEARCH_ROUNDS,
    SEARCH_SAMPLES,
    SEARCH_STARTS,
    SEARCH_WORK,
)
from pindown.network import ReluNetwork
from pindown.relaxation.differential import proved_gap

_RADII = 10.0 ** np.arange(-3, 7)  # without a box, how far out samples are drawn
_FAR = 1e8  # so far that offsets no longer count, and products of weights stay in float64


@dataclass(frozen=True, eq=False, repr=False)
class Witness:
    """An input at which two networks differ.

    Attributes:
        point: The input, (d,).
        gap: How much they differ there, rounded down; relative to ``1 + ||x||`` if there was no box.
    """

    point: Array
    gap: float

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.point[:4]) + (", ..." if len(self.point) > 4 else "")
        return f"Witness(the outputs differ by at least {self.gap:.6g} at ({shown}))"


def search(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None,
    *,
    target: float = inf,
    budget: float = 1.0,
    seed: int = 0,
    starts: Array | None = None,
) -> Witness:
    """Search for an input at which two networks differ as much as possible.

    Samples, corners of the box (without one: many radii, and far out), points on folds of either
    network, then ascent along the affine maps around the best of them.

    Args:
        a: A network.
        b: One with as many inputs and outputs.
        box: The inputs, or None for all of them, in the relative sense.
        target: Stop as soon as the gap exceeds this.
        budget: Seconds; at least one round of samples is always done.
        seed: Chooses the samples: as long as the budget suffices the result depends on nothing else.
        starts: Points to begin with as well, (n, d).

    Returns:
        The best point; its gap may be 0.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -3.0)]
        >>> search(*nets, Box([-9], [9])).gap.__round__(6)
        3.0
    """
    deadline = Deadline.after(SEARCH_ASCENT_SHARE * budget)
    rng = np.random.default_rng(seed)
    pool = _Pool(a, b, box, deadline)
    for points in first_points(a, box, rng, starts):
        pool.add(points)
        if pool.proved(target) or deadline.passed:
            return pool.witness()
    pool.add(np.concatenate([fold_points(net, pool.best(SEARCH_STARTS), box, rng) for net in (a, b)]))
    X = pool.best(SEARCH_STARTS)
    for turn in range(SEARCH_ROUNDS):
        if pool.proved(target) or deadline.passed:
            break
        before = pool.value
        parts = np.split(X, range(SEARCH_PART, len(X), SEARCH_PART))
        X = np.concatenate([_ascended(pool, part, 0.5 ** (turn % 10)) for part in parts])
        if turn >= 10 and pool.value <= before * (1.0 + 1e-9):
            break
    return pool.witness()


class _Pool:
    """The points tried so far, and the best of them."""

    def __init__(self, a: ReluNetwork, b: ReluNetwork, box: Box | None, deadline: Deadline) -> None:
        self.a, self.b, self.box, self.deadline = a, b, box, deadline
        self._rows = max(8, SEARCH_WORK // (a.n_parameters + b.n_parameters))
        self.points = np.zeros((0, a.in_features))
        self.values = np.zeros(0)
        self._known: dict[bytes, float] = {}

    @property
    def value(self) -> float:
        """The largest gap seen, in float64."""
        return float(np.max(self.values, initial=0.0))

    def gaps(self, X: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """Return for each row the gap, the output where it is, and its sign."""
        with np.errstate(over="ignore", invalid="ignore"):
            delta = values_at(self.a, X) - values_at(self.b, X)
        k = np.argmax(np.abs(delta), axis=1)
        top = delta[np.arange(len(X)), k]
        with np.errstate(over="ignore", invalid="ignore"):
            scale = 1.0 if self.box is not None else 1.0 + np.linalg.norm(X, axis=1)
            gap = np.abs(top) / scale
        return np.where(np.isfinite(gap), gap, 0.0), k, np.where(top < 0, -1.0, 1.0)

    def add(self, X: Array) -> Array:
        """Try points, as many as time allows (but some); return their gaps, 0 for the others."""
        gaps = np.zeros(len(X))
        for start in range(0, len(X), self._rows):
            if start and self.deadline.passed:
                break
            part = slice(start, start + self._rows)
            gaps[part] = self.gaps(X[part])[0]
        points = np.concatenate([self.points, X])
        values = np.concatenate([self.values, gaps])
        keep = np.argsort(-values, kind="stable")[:SEARCH_STARTS]
        self.points, self.values = points[keep], values[keep]
        return gaps

    def best(self, n: int) -> Array:
        return self.points[:n]

    def proved(self, target: float) -> bool:
        return bool(self.value > target) and self.witness().gap > target

    def witness(self) -> Witness:
        point = self.points[0].copy()
        key = point.tobytes()
        if key not in self._known:
            self._known[key] = proved_gap(self.a, self.b, point, self.box is None)
        point.flags.writeable = False
        return Witness(point, self._known[key])


@np.errstate(over="ignore", invalid="ignore")  # a point that leaves float64 is not chosen
def _ascended(pool: _Pool, X: Array, step: float) -> Array:
    """Move each point uphill: towards the best corner of its affine map, or along its slope."""
    a, b, box = pool.a, pool.b, pool.box
    if pool.deadline.passed:
        return X
    gaps, k, sign = pool.gaps(X)
    rows = np.zeros((len(X), a.out_features))
    rows[np.arange(len(X)), k] = sign
    g = gradients(a, X, rows) - gradients(b, X, rows)
    length = np.linalg.norm(g, axis=1, keepdims=True)
    uphill = np.divide(g, length, out=np.zeros_like(g), where=length > 0)
    if box is not None:
        corner = np.where(g > 0, box.upper, np.where(g < 0, box.lower, X))
        width = box.upper / 2 - box.lower / 2
        moves = [share * (corner - X) for share in CORNER_SHARES]
        moves += [step * np.max(width) * uphill, step * width * np.sign(g)]
        trials = [np.clip(X + move, box.lower, box.upper) for move in moves]
    else:
        radius = 1.0 + np.linalg.norm(X, axis=1, keepdims=True)
        trials = [X + share * step * radius * uphill for share in (3.0, 1.0, 0.3, 0.1)]
        trials += [X * factor for factor in (10.0, 2.0, 0.5, 0.1)]
    values = np.stack([gaps, *(pool.add(trial) for trial in trials)])
    pick = np.argmax(values, axis=0)
    return np.stack([X, *trials])[pick, np.arange(len(X))]


def first_points(
    net: ReluNetwork, box: Box | None, rng: np.random.Generator, starts: Array | None = None
) -> Iterator[Array]:
    """Yield batches of points to begin a search with, those given first."""
    d = net.in_features
    given = np.zeros((0, d)) if starts is None else np.asarray(starts, dtype=np.float64).reshape(-1, d)
    if box is not None:
        yield np.concatenate([given, box.center[None], box.sample(64, rng)])
        yield np.clip(
            np.concatenate([_corners(box, rng), box.sample(SEARCH_SAMPLES, rng)]), box.lower, box.upper
        )
        return
    # Out to where the folds are, and beyond: the largest relative gap is often at infinity.
    directions = rng.standard_normal((SEARCH_SAMPLES // len(_RADII), d)) / np.sqrt(d)
    yield np.concatenate([given, np.zeros((1, d)), directions[:64]])
    yield np.concatenate([radius * directions for radius in _RADII])
    axes = np.concatenate([np.eye(d), -np.eye(d)])[: 2 * SEARCH_CORNERS]
    yield np.concatenate([_FAR * directions, _FAR * axes, axes])


def _corners(box: Box, rng: np.random.Generator) -> Array:
    """Return all corners of the box if they are few, else random ones."""
    d = box.dim
    if 2 ** min(d, 60) <= SEARCH_CORNERS:
        bits = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    else:
        bits = rng.integers(0, 2, (SEARCH_CORNERS, d))
    return np.where(bits == 1, box.upper, box.lower)


def fold_points(net: ReluNetwork, X: Array, box: Box | None, rng: np.random.Generator) -> Array:
    """Return points on and just across folds of random units, reached along their local slopes."""
    if not net.size or not len(X):
        return np.zeros((0, net.in_features))
    layers = rng.integers(0, net.depth - 1, SEARCH_FOLD_POINTS)
    found = []
    for i in range(net.depth - 1):
        x = X[rng.integers(0, len(X), int((layers == i).sum()))]
        units = rng.integers(0, net.hidden_widths[i], len(x))
        rows = np.zeros((len(x), net.hidden_widths[i]))
        rows[np.arange(len(x)), units] = 1.0
        g = gradients(net, x, rows, i)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            z = values_at(net[: i + 1], x)[np.arange(len(x)), units]
            step = -(z / np.einsum("ij,ij->i", g, g))[:, None] * g
            found += [x + share * step for share in (0.999, 1.0, 1.01, 2.0)]
    points = np.concatenate(found)
    points = points[np.isfinite(points).all(axis=1)]
    return points if box is None else np.clip(points, box.lower, box.upper)


def gaps_at(a: ReluNetwork, b: ReluNetwork, X: Array) -> Array:
    """Return ``max_k |a_k - b_k|`` at each row, in float64; 0 where a network overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.max(np.abs(values_at(a, X) - values_at(b, X)), axis=1)
    return np.where(np.isfinite(gaps), gaps, 0.0)


def values_at(net: ReluNetwork, X: Array) -> Array:
    """Evaluate, infinite values allowed."""
    rows = max(1, MAX_ROW_ENTRIES // max(net.widths))
    parts = []
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), rows):
            z = net.layers[0](X[start : start + rows])
            for layer in net.layers[1:]:
                z = layer(np.maximum(z, 0.0))
            parts.append(z)
    return np.concatenate(parts) if parts else np.zeros((0, net.out_features))


def gradients(net: ReluNetwork, X: Array, rows: Array, layer: int | None = None) -> Array:
    """Return the slopes of ``rows[i] @ z`` at X[i], z the output or what enters a ReLU layer; (n, d)."""
    depth = net.depth if layer is None else layer + 1
    masks = []
    with np.errstate(over="ignore", invalid="ignore"):
        z = X
        for i, affine in enumerate(net.layers[: depth - 1]):
            z = affine(np.maximum(z, 0.0) if i else z)
            masks.append(z >= 0)
        g = rows
        for affine, mask in zip(reversed(net.layers[:depth]), [*reversed(masks), None], strict=True):
            g = affine.pull_back(g)
            if mask is not None:
                g = g * mask
    return np.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0)
