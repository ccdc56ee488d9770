"""What passes over cells that do not fit in memory together can tell: statistics, and neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.complex._cell_search import joined
from pindown.geometry.complex._cells import Cells
from pindown.geometry.complex._skeleton import matched_by_place
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.subboxes._batches import select
from pindown.geometry.tuning import KEY_TABLE_BYTES_PER_CELL
from pindown.network import ReluNetwork

if TYPE_CHECKING:
    from pindown.geometry.subboxes.streamed_complex import StreamedComplex


Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]


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


# How many bits of every byte are on.
_BITS_ON = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


def _counts_on(part: PolyhedralComplex) -> NDArray[np.int64]:
    """Return how many units are on in each cell, without unpacking the patterns."""
    parts = np.ascontiguousarray(part.cells.patterns).view(np.uint8)
    return _BITS_ON[parts].sum(axis=1, dtype=np.int64)


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


class _Lonely(NamedTuple):
    """Cells with facets across which no cell was found by its key, their numbers, and those facets."""

    cells: Cells
    numbers: Integers
    facets: NDArray[np.bool_]


def streamed_neighbours(cells: StreamedComplex, memory: int) -> Iterator[tuple[Integers, Integers]]:
    """Yield pairs of neighbours and the units between them.

    Across a facet one unit changes its state, as a rule, so the key of the cell there is known. Keys
    are shared out; for one share after the other a table of its cells is made, and all files are
    asked which cells of the share they look for. Facets across which there is no such cell are matched
    by place in the end, as they are in memory.
    """
    shares = max(1, -(-KEY_TABLE_BYTES_PER_CELL * cells.n_regions // max(memory, 1)))
    lonely = []
    for share in range(shares):
        keys, numbers = _table(cells, share, shares)
        for k, part in enumerate(cells.shards()):
            places, owner, across = _looking(part.cells, share, shares)
            at = np.minimum(np.searchsorted(keys, across), max(len(keys) - 1, 0))
            met = keys[at] == across if len(keys) else np.zeros(len(across), bool)
            other = numbers[at[met]]
            own = owner[met] + cells.starts[k]
            first = own < other  # the other cell lists the facet as well
            if first.any():
                units = part.cells.facets[places[met][first]].astype(np.int64)
                yield np.stack([own[first], other[first]], axis=1), units
            if not met.all():
                lonely.append(_lonely(part.cells, places[~met], owner[~met], int(cells.starts[k])))
    if lonely:
        yield _by_place(cells, lonely)


def _table(cells: StreamedComplex, share: int, shares: int) -> tuple[Keys, Integers]:
    """Return the keys of one share, sorted, and the numbers of their cells."""
    keys, numbers = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for k, part in enumerate(cells.shards()):
        mine = np.flatnonzero(part.cells.keys % np.uint64(shares) == share)
        keys.append(part.cells.keys[mine])
        numbers.append(mine + cells.starts[k])
    together, places = np.concatenate(keys), np.concatenate(numbers)
    order = np.argsort(together)
    return together[order], places[order]


def _looking(cells: Cells, share: int, shares: int) -> tuple[Integers, Integers, Keys]:
    """Return facets on folds, their cells, and the keys of the cells across, as far as in the share."""
    owner = np.repeat(np.arange(cells.n), np.diff(cells.facet_starts))
    again = np.zeros(len(owner), bool)  # a side that is listed twice in a row is one
    again[1:] = (cells.facets[1:] == cells.facets[:-1]) & (owner[1:] == owner[:-1])
    places = np.flatnonzero((cells.facets < len(cells.flips)) & ~again)
    across = cells.keys[owner[places]] ^ cells.flips[cells.facets[places]]
    mine = across % np.uint64(shares) == share
    return places[mine], owner[places[mine]], across[mine]


def _lonely(cells: Cells, places: Integers, owner: Integers, start: int) -> _Lonely:
    wanted, facets = np.zeros(cells.n, bool), np.zeros(len(cells.facets), bool)
    wanted[owner], facets[places] = True, True
    kept = np.repeat(wanted, np.diff(cells.facet_starts))
    return _Lonely(select(cells, wanted), np.flatnonzero(wanted) + start, facets[kept])


def _by_place(cells: StreamedComplex, lonely: list[_Lonely]) -> tuple[Integers, Integers]:
    """Match facets of different files by their centres."""
    some = joined([part.cells for part in lonely])
    numbers = np.concatenate([part.numbers for part in lonely])
    facets = np.flatnonzero(np.concatenate([part.facets for part in lonely]))
    owner = np.searchsorted(some.facet_starts, facets, side="right") - 1
    pairs, sides = matched_by_place(some, cells.box, np.stack([owner, facets], axis=1))
    units = some.facets[sides].min(axis=1, initial=2**31 - 1).astype(np.int64)
    fresh = np.array([not _known(some, int(i), int(j)) for i, j in pairs], dtype=bool)
    found = np.sort(numbers[pairs[fresh]], axis=1)
    found, first = np.unique(found, axis=0, return_index=True)
    return found.reshape(-1, 2), units[fresh][first]


def _known(cells: Cells, i: int, j: int) -> bool:
    """Return whether two cells are neighbours by their keys already: convex cells share one facet."""
    labels = cells.labels(i)
    across = cells.keys[i] ^ cells.flips[labels[labels < len(cells.flips)]]
    return bool((across == cells.keys[j]).any())
