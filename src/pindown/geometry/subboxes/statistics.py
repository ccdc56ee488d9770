r"""What can be said of all cells from one pass over them, without holding them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False)
class ComplexStatistics:
    r"""Numbers over all cells; exact up to the rounding of float64.

    Attributes:
        n_regions: Number of cells.
        volume: Sum of their volumes.
        volume_range: Smallest and largest volume.
        units_on: How many cells have 0, 1, ..., size units on, (size + 1,).
        slope_range: Smallest and largest operator norm of a cell's matrix A.
        mean_slope: Mean of that norm over the box: cells count by their volumes.
        output_lower: Smallest value of each output, (k,).
        output_upper: Largest value of each output, (k,).
        lower_at: A vertex where each smallest value is taken, (k, d).
        upper_at: A vertex where each largest value is taken, (k, d).
    """

    n_regions: int
    volume: float
    volume_range: tuple[float, float]
    units_on: NDArray[np.int64] = field(repr=False)
    slope_range: tuple[float, float]
    mean_slope: float
    output_lower: Array
    output_upper: Array
    lower_at: Array = field(repr=False)
    upper_at: Array = field(repr=False)

    def __str__(self) -> str:
        low, high = self.slope_range
        ranges = ", ".join(
            f"{a:.4g} to {b:.4g}" for a, b in zip(self.output_lower, self.output_upper, strict=True)
        )
        return (
            f"{self.n_regions:,} cells, volume {self.volume:.6g}; slopes {low:.4g} to {high:.4g}; "
            f"outputs {ranges}"
        )


def statistics_of(net: ReluNetwork, parts: Iterable[PolyhedralComplex]) -> ComplexStatistics:
    """Collect the numbers from parts of a complex, one at a time."""
    k, d = net.out_features, net.in_features
    total, weighted, n = [], [], 0
    volume_range, slope_range = np.array([inf, -inf]), np.array([inf, -inf])
    units_on = np.zeros(net.size + 1, np.int64)
    ends = [np.full(k, inf), np.full(k, inf)]  # of the outputs, and of minus the outputs
    places = [np.zeros((k, d)), np.zeros((k, d))]
    for part in parts:
        volumes, slopes = part.volumes, _norms(part.A)
        n += part.n_regions
        total.append(float(volumes.sum()))
        weighted.append(float(volumes @ slopes))
        for seen, new in ((volume_range, volumes), (slope_range, slopes)):
            seen[:] = min(seen[0], new.min(initial=inf)), max(seen[1], new.max(initial=-inf))
        units_on += np.bincount(_counts_on(part), minlength=net.size + 1)
        values = _vertex_values(part)
        for sign, end, place in zip((1.0, -1.0), ends, places, strict=True):
            _note_least(sign * values, part.cell_vertices, end, place)
    volume = fsum(total)
    return ComplexStatistics(
        n_regions=n,
        volume=volume,
        volume_range=(float(volume_range[0]), float(volume_range[1])),
        units_on=units_on,
        slope_range=(float(slope_range[0]), float(slope_range[1])),
        mean_slope=fsum(weighted) / volume if volume > 0 else float("nan"),
        output_lower=ends[0],
        output_upper=-ends[1],
        lower_at=places[0],
        upper_at=places[1],
    )


def _norms(A: Array) -> Array:
    if min(A.shape[1:]) == 1:
        return np.sqrt(np.einsum("nkd,nkd->n", A, A))
    return np.linalg.norm(A, 2, axis=(1, 2))


def _counts_on(part: PolyhedralComplex) -> NDArray[np.int64]:
    """Return how many units are on in each cell, without unpacking the patterns."""
    bits = np.bitwise_count(part.cells.patterns)
    return bits.sum(axis=1, dtype=np.int64)


def _vertex_values(part: PolyhedralComplex) -> Array:
    """Return the outputs at the vertices of every cell, by the cell's own map."""
    owner = np.repeat(np.arange(part.n_regions), np.diff(part.offsets))
    maps = part.cells.maps
    values = maps[owner, -1]
    for c in range(part.box.dim):
        values = values + part.cell_vertices[:, c, None] * maps[owner, c]
    return values


def _note_least(values: Array, points: Array, least: Array, places: Array) -> None:
    rows = values.argmin(axis=0)
    found = values[rows, np.arange(len(least))]
    better = found < least
    least[better], places[better] = found[better], points[rows[better]]
