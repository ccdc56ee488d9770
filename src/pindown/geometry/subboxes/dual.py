"""The neighbours of cells that do not fit in memory together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.geometry.complex.cells import Cells
from pindown.geometry.complex.dual import _matched_by_place
from pindown.geometry.complex.sources import joined
from pindown.geometry.subboxes.selection import select

if TYPE_CHECKING:
    from pindown.geometry.subboxes.reading import StreamedComplex

Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]

_BYTES_PER_CELL = 48  # of a sorted table of keys while it is made


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
    shares = max(1, -(-_BYTES_PER_CELL * cells.n_regions // max(memory, 1)))
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
    pairs, sides = _matched_by_place(some, cells.box, np.stack([owner, facets], axis=1))
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
