"""Which cells share a facet, and where vertices join to edges."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from pindown.geometry.kernels import entry, inner
from pindown.geometry.kernels.faces import adjacent, is_simple


@entry
def match_neighbours(keys, starts, facets, flips, table, pairs, sides, unmatched):
    """Pair cells whose patterns differ in one unit that holds a facet; return both counts.

    The key of a cell is the exclusive or of the hashes of its units that are on, so the cell across
    the zero set of unit u has the key ``key ^ flips[u]``. ``sides`` gets the shared facet as either
    cell lists it. Facets without such a cell (several units change there at once) go to
    ``unmatched`` as (cell, facet).
    """
    n_pairs, n_open, size = 0, 0, len(flips)
    for cell in range(len(keys)):
        _insert(table, keys, cell)
    for cell in range(len(keys)):
        begin, end = starts[cell], starts[cell + 1]
        for f in range(begin, end):
            label = facets[f]
            if label >= size or (f > begin and facets[f - 1] == label):
                continue
            other = _find(table, keys, keys[cell] ^ flips[label])
            if other > cell:
                pairs[n_pairs, 0], pairs[n_pairs, 1] = cell, other
                sides[n_pairs, 0], sides[n_pairs, 1] = f, _labelled(facets, starts, other, label)
                n_pairs += 1
            elif other < 0:
                unmatched[n_open, 0], unmatched[n_open, 1] = cell, f
                n_open += 1
    return n_pairs, n_open


@inner
def _labelled(facets, starts, cell, label):
    """Return the facet of a cell that has a label, -1 if none does."""
    for f in range(starts[cell], starts[cell + 1]):
        if facets[f] == label:
            return f
    return -1


@inner
def _slot(key, n):
    return np.int64((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & (n - 1)


@inner
def _insert(table, keys, cell):
    slot = _slot(keys[cell], len(table))
    while table[slot] >= 0:
        slot = (slot + 1) & (len(table) - 1)
    table[slot] = cell


@inner
def _find(table, keys, key):
    slot = _slot(key, len(table))
    while table[slot] >= 0:
        if keys[table[slot]] == key:
            return table[slot]
        slot = (slot + 1) & (len(table) - 1)
    return -1


@entry
def cell_edges(dim, starts, masks, edges):
    """Write the edges of all cells as pairs of rows of the vertex list; return how many.

    With too little room it returns the number that is needed, negative.
    """
    count = 0
    for cell in range(len(starts) - 1):
        begin, n = starts[cell], starts[cell + 1] - starts[cell]
        own = masks[begin:]
        simple = is_simple(dim, own, n)
        for p in range(n):
            for q in range(p):
                if adjacent(dim, own, n, p, q, simple):
                    if count < len(edges):
                        edges[count, 0], edges[count, 1] = begin + q, begin + p
                    count += 1
    return count if count <= len(edges) else -count
