"""Points at which a search for large gaps begins: samples, corners, far out, and on folds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.gap.values import gradients, values_at
from pindown.network import ReluNetwork

_SAMPLES = 2048
_CORNERS = 512
_FOLD_POINTS = 256
_RADII = 10.0 ** np.arange(-3, 7)  # without a box, how far out samples are drawn
_FAR = 1e8  # so far that offsets no longer count, and products of weights stay in float64


def first_points(
    net: ReluNetwork, box: Box | None, rng: np.random.Generator, starts: Array | None = None
) -> Iterator[Array]:
    """Yield batches of points to begin a search with, those given first."""
    d = net.in_features
    given = np.zeros((0, d)) if starts is None else np.asarray(starts, dtype=np.float64).reshape(-1, d)
    if box is not None:
        yield np.concatenate([given, box.center[None], box.sample(64, rng)])
        yield np.clip(
            np.concatenate([_corners(box, rng), box.sample(_SAMPLES, rng)]), box.lower, box.upper
        )
        return
    # Out to where the folds are, and beyond: the largest relative gap is often at infinity.
    directions = rng.standard_normal((_SAMPLES // len(_RADII), d)) / np.sqrt(d)
    yield np.concatenate([given, np.zeros((1, d)), directions[:64]])
    yield np.concatenate([radius * directions for radius in _RADII])
    axes = np.concatenate([np.eye(d), -np.eye(d)])[: 2 * _CORNERS]
    yield np.concatenate([_FAR * directions, _FAR * axes, axes])


def _corners(box: Box, rng: np.random.Generator) -> Array:
    """Return all corners of the box if they are few, else random ones."""
    d = box.dim
    if 2 ** min(d, 60) <= _CORNERS:
        bits = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    else:
        bits = rng.integers(0, 2, (_CORNERS, d))
    return np.where(bits == 1, box.upper, box.lower)


def fold_points(net: ReluNetwork, X: Array, box: Box | None, rng: np.random.Generator) -> Array:
    """Return points on and just across folds of random units, reached along their local slopes."""
    if not net.size or not len(X):
        return np.zeros((0, net.in_features))
    layers = rng.integers(0, net.depth - 1, _FOLD_POINTS)
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
