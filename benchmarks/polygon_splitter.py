"""A plain NumPy splitter of polygons: the straightforward way, to compare with.

One polygon at a time, one unit after the other; the affine map of a layer is computed anew for every
cell. Right for networks in general position with two inputs.
"""

from __future__ import annotations

import numpy as np


def count_cells(layers: list[tuple[np.ndarray, np.ndarray]], low: float, high: float) -> int:
    square = np.array([[low, low], [high, low], [high, high], [low, high]], dtype=float)
    return _count(layers[:-1], square, np.eye(2), np.zeros(2))


def _count(layers, polygon, A, c) -> int:
    if not layers:
        return 1
    (W, b), *rest = layers
    Z, z = W @ A, W @ c + b
    cells = [polygon]
    for i in range(len(W)):
        cells = [part for cell in cells for part in _split(cell, Z[i], z[i])]
    total = 0
    for cell in cells:
        on = Z @ cell.mean(axis=0) + z > 0
        total += _count(rest, cell, Z * on[:, None], z * on)
    return total


def _split(polygon: np.ndarray, w: np.ndarray, b: float) -> list[np.ndarray]:
    values = polygon @ w + b
    above = values > 0
    if above.all() or not above.any():
        return [polygon]
    following = np.roll(polygon, -1, axis=0)
    ahead = np.roll(values, -1)
    cut = above != np.roll(above, -1)
    t = values[cut] / (values[cut] - ahead[cut])
    crossings = polygon[cut] + t[:, None] * (following[cut] - polygon[cut])
    points = np.insert(polygon, np.flatnonzero(cut) + 1, crossings, axis=0)
    sides = np.insert(values, np.flatnonzero(cut) + 1, 0.0)
    return [points[sides >= 0], points[sides <= 0]]
