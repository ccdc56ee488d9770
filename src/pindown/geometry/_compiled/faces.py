r"""Faces of polytopes, from the sets of facets that meet in each vertex (bit masks).

Which vertices an edge joins, which cells share a facet, and volumes: a polytope is the union of the
pyramids over the facets that do not contain its first vertex; each facet is taken apart in the same way,
down to simplices, of volume :math:`|\det| / d!`.
"""

from __future__ import annotations

import numpy as np

from pindown.geometry._compiled import allocating, entry, inner
from pindown.geometry._compiled.arrays import FACETS_PER_WORD

_AGREES = 2.0**-36  # sums of the same simplices, each rounded, differ by less


@inner
def adjacent(d, masks, n, p, q, simple):
    """Return whether an edge joins vertices p and q of a polytope of dimension d.

    If ``simple``, exactly d facets meet in each vertex, and counting the shared ones is enough.
    """
    shared = 0
    for w in range(masks.shape[1]):
        shared += popcount(masks[p, w] & masks[q, w])
    if shared < d - 1 or simple:
        return shared >= d - 1
    for r in range(n):
        if r not in (p, q):
            outside = np.uint64(0)
            for w in range(masks.shape[1]):
                outside |= masks[p, w] & masks[q, w] & ~masks[r, w]
            if outside == 0:
                return False
    return True


@inner
def is_simple(d, masks, n):
    """Return whether exactly d facets meet in each vertex."""
    for k in range(n):
        facets = 0
        for w in range(masks.shape[1]):
            facets += popcount(masks[k, w])
        if facets != d:
            return False
    return True


@inner
def popcount(x):
    """Count the bits of a 64-bit word (compilers know this form and emit one instruction)."""
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inner
def lowest_bit(x):
    """Return the place of the lowest bit of a 64-bit word that is not zero."""
    return popcount((x & (~x + np.uint64(1))) - np.uint64(1))


@inner
def count_on(masks, n, slot):
    """Count the vertices on a hyperplane."""
    word, flag = slot // FACETS_PER_WORD, np.uint64(1) << np.uint64(slot % FACETS_PER_WORD)
    count = 0
    for k in range(n):
        count += (masks[k, word] & flag) != 0
    return count


@inner
def is_torn(d, signs, masks, n, edges, n_edges):
    """Return whether signs at the vertices of a polytope of dimension d fit no hyperplane.

    A hyperplane that holds an edge has every two-dimensional face at that edge on one side. Signs say
    otherwise where a short edge lies within the tolerance of a hyperplane that cuts the face: nothing
    can then be built on them.
    """
    for e in range(n_edges):
        u, v = edges[e, 0], edges[e, 1]
        if signs[u] == 0 and signs[v] == 0:
            for p in range(n):
                if signs[p] > 0 and _face_is_cut(d, signs, masks, n, u, v, p):
                    return True
    return False


@inner
def _face_is_cut(d, signs, masks, n, u, v, p):
    """Return whether the two-dimensional face of u, v and p, if there is one, has a negative vertex."""
    shared = 0
    for w in range(masks.shape[1]):
        shared += popcount(masks[u, w] & masks[v, w] & masks[p, w])
    if shared < d - 2:
        return False
    for q in range(n):
        if signs[q] < 0:
            outside = np.uint64(0)
            for w in range(masks.shape[1]):
                outside |= masks[u, w] & masks[v, w] & masks[p, w] & ~masks[q, w]
            if outside == 0:
                return True
    return False


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


@allocating
def cell_volumes(dim, starts, facet_counts, coords, masks):
    """Return the volume of every cell, and which of them depend on the vertex one begins with.

    They do where hyperplanes that nearly agree left facets and vertices that fit no polytope. In a
    vertex of such a cell more than ``dim`` facets meet, so the others need no second look.
    """
    n_cells = len(starts) - 1
    volumes, doubtful = np.zeros(n_cells), np.zeros(n_cells, np.bool_)
    factorial = 1.0
    for k in range(2, dim + 1):
        factorial *= k
    most = 0
    for cell in range(n_cells):
        most = max(most, starts[cell + 1] - starts[cell])
    members = np.zeros((dim + 1, most), np.int64)  # vertices of the nested faces
    sizes, cursors = np.zeros(dim + 1, np.int64), np.zeros(dim + 1, np.int64)
    matrix = np.zeros((dim, dim))
    for cell in range(n_cells):
        begin, n = starts[cell], starts[cell + 1] - starts[cell]
        for k in range(n):
            members[0, k] = begin + k
        sizes[0] = n
        total = _sum_simplices(dim, facet_counts[cell], coords, masks, members, sizes, cursors, matrix)
        volumes[cell] = total / factorial
        if not is_simple(dim, masks[begin : begin + n], n):
            for k in range(n):
                members[0, k] = begin + n - 1 - k
            again = _sum_simplices(
                dim, facet_counts[cell], coords, masks, members, sizes, cursors, matrix
            )
            doubtful[cell] = not abs(again - total) <= _AGREES * total
    return volumes, doubtful


@allocating
def _sum_simplices(dim, n_facets, coords, masks, members, sizes, cursors, matrix):
    """Sum the determinants of all simplices of one cell, its vertices being ``members[0]``."""
    depth, total = 0, 0.0
    cursors[0] = 0
    while depth >= 0:
        if depth == dim - 1:  # the face is an edge; its ends close a simplex
            total += _determinant(dim, coords, members, sizes, matrix)
            depth -= 1
            continue
        facet = cursors[depth]
        if facet == n_facets:
            depth -= 1
            continue
        cursors[depth] += 1
        if _facet_of(dim - depth, facet, n_facets, masks, members, sizes, depth):
            depth += 1
            cursors[depth] = 0
    return total


@allocating
def _facet_of(face_dim, facet, n_facets, masks, members, sizes, depth):
    """Write the face's facet in a hyperplane to the next depth, unless the apex or no facet is there."""
    n, count = sizes[depth], 0
    if _on(masks, members[depth, 0], facet):
        return False
    for k in range(n):
        if _on(masks, members[depth, k], facet):
            members[depth + 1, count] = members[depth, k]
            count += 1
    if count < face_dim:
        return False
    sizes[depth + 1] = count
    for other in range(n_facets):
        if other == facet:
            continue
        all_on, on_face = True, 0
        for k in range(count):
            if not _on(masks, members[depth + 1, k], other):
                all_on = False
                break
        if all_on:
            for k in range(n):
                on_face += _on(masks, members[depth, k], other)
            if on_face < n and (on_face > count or (on_face == count and other < facet)):
                return False
    return True


@allocating
def _on(masks, vertex, facet):
    word, bit = facet // FACETS_PER_WORD, np.uint64(facet % FACETS_PER_WORD)
    return (masks[vertex, word] >> bit) & np.uint64(1) != 0


@allocating
def _determinant(dim, coords, members, sizes, matrix):
    """Return the absolute determinant of the simplex of all apexes and the last edge."""
    last = members[dim - 1, 1]
    for r in range(dim):
        for c in range(dim):
            matrix[r, c] = coords[members[r, 0], c] - coords[last, c]
    product = 1.0
    for k in range(dim):
        pivot = k
        for r in range(k + 1, dim):
            if abs(matrix[r, k]) > abs(matrix[pivot, k]):
                pivot = r
        if matrix[pivot, k] == 0.0:
            return 0.0
        if pivot != k:
            for c in range(dim):
                matrix[k, c], matrix[pivot, c] = matrix[pivot, c], matrix[k, c]
        product *= matrix[k, k]
        for r in range(k + 1, dim):
            factor = matrix[r, k] / matrix[k, k]
            for c in range(k, dim):
                matrix[r, c] -= factor * matrix[k, c]
    return abs(product)
