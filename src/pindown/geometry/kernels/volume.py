r"""Volumes of polytopes from vertices and facets.

A polytope is the union of the pyramids over the facets that do not contain its first vertex; each
facet is taken apart in the same way, down to simplices, of volume :math:`|\det| / d!`.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from pindown.geometry.kernels import kernel
from pindown.geometry.kernels.faces import is_simple
from pindown.geometry.kernels.memory import FACETS_PER_WORD

_AGREES = 2.0**-36  # sums of the same simplices, each rounded, differ by less


@kernel
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


@kernel
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


@kernel
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


@kernel
def _on(masks, vertex, facet):
    word, bit = facet // FACETS_PER_WORD, np.uint64(facet % FACETS_PER_WORD)
    return (masks[vertex, word] >> bit) & np.uint64(1) != 0


@kernel
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
