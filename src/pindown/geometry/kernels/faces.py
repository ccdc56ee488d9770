"""Faces of polytopes, from the sets of facets that meet in each vertex (bit masks)."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from pindown.geometry.kernels import inner
from pindown.geometry.kernels.memory import FACETS_PER_WORD


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
