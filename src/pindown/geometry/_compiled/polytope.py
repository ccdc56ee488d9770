r"""Convex polytopes in three and more dimensions: cutting one in two by the values at its vertices.

A polytope is its vertices, for each the set of facets that meet there (a bit mask), and its edges.
Two vertices are joined by an edge iff no third one lies on all facets they share; that is true of
every polytope, also where more than d facets meet in a vertex.
"""

from __future__ import annotations

import numpy as np

from pindown.geometry._compiled import copy, inner
from pindown.geometry._compiled.arrays import CUT, FACETS_PER_WORD, PLACE, POINT, SIGN
from pindown.geometry._compiled.exact_residues import new_vertex, put_facet
from pindown.geometry._compiled.faces import adjacent, count_on, is_simple, is_torn, lowest_bit
from pindown.geometry._compiled.layer_maps import VANISHES, sign_at
from pindown.geometry._compiled.vertex_errors import edge_error, vertex_error

SPLIT, UNCERTAIN, NO_ROOM = range(3)


@inner
def split_polytope(
    net, work, certified, label, row, bound, coords, masks, edges, labels, n, n_edges, halves, faces
):
    """Cut by the hyperplane ``row`` (the zero set named ``label``) into ``halves``."""
    marks, counts = halves.marks, halves.counts
    certain = signs_at(net.dim, certified, row, bound, coords, n, marks[SIGN], halves.values)
    if certified is not None and not certain:
        certain = zeros_are_exact(net, work, certified, label, row, coords, n, marks[SIGN])
    if not certain:
        return UNCERTAIN
    for half in range(2):
        counts[half, 0] = counts[half, 1] = 0
        copy(faces.half_labels[half], labels)
    n_zero = 0
    for k in range(n):
        sign = marks[SIGN, k]
        for half in range(2):
            if sign != 1 - 2 * half:
                place = counts[half, 0]
                marks[PLACE + half, k] = place
                copy(halves.coords[half, place], coords[k])
                copy(faces.half_masks[half, place], masks[k])
                counts[half, 0] = place + 1
                if sign == 0:
                    marks[CUT + half, n_zero] = place
        n_zero += sign == 0
    if n_zero > 1 and is_torn(net.dim, marks[SIGN], masks, n, edges, n_edges):
        return UNCERTAIN
    n_cut, norm = n_zero, norm_of(row, net.dim)
    for e in range(n_edges):
        u, v = edges[e, 0], edges[e, 1]
        if marks[SIGN, u] * marks[SIGN, v] < 0:
            _cut_edge(
                net,
                work,
                certified,
                label,
                norm,
                bound,
                coords,
                masks,
                labels,
                u,
                v,
                n_cut,
                halves,
                faces,
            )
            n_cut += 1
    for half in range(2):
        slot = _mark_cut(net.dim, half, n_cut, halves, faces.half_masks[half])
        if slot < 0:
            return NO_ROOM
        faces.half_labels[half, slot] = label
    return SPLIT


@inner
def join_half(d, half, n, edges, n_edges, halves, faces):
    """Put the edges of one half together: what is left of the old ones, and those inside the cut.

    Apart from the split, because a finished cell needs no edges.
    """
    marks, n_zero = halves.marks, 0
    for k in range(n):
        n_zero += marks[SIGN, k] == 0
    n_cut, outer = n_zero, 1 - 2 * half
    for e in range(n_edges):
        u, v = edges[e, 0], edges[e, 1]
        if marks[SIGN, u] * marks[SIGN, v] < 0:
            inside = v if marks[SIGN, u] == outer else u
            _put_edge(halves, half, marks[PLACE + half, inside], marks[CUT + half, n_cut])
            n_cut += 1
        elif marks[SIGN, u] != outer and marks[SIGN, v] != outer:
            _put_edge(halves, half, marks[PLACE + half, u], marks[PLACE + half, v])
    _join_cut(d, half, n_zero, n_cut, halves, faces.half_masks[half])


@inner
def norm_of(row, d):
    """Sum the sizes of the slopes of an affine form."""
    norm = 0.0
    for c in range(d):
        norm += abs(row[c])
    return norm


@inner
def signs_at(d, certified, row, bound, coords, n, signs, values):
    """Evaluate an affine form at all vertices; return whether every sign is certain enough."""
    norm, certain = norm_of(row, d), True
    for k in range(n):
        value = row[d]
        for c in range(d):
            value += row[c] * coords[k, c]
        zero = bound + norm * coords[k, d]
        values[k] = value
        signs[k] = 1 if value > zero else (-1 if value < -zero else 0)
        if certified is not None and signs[k] == 0:
            certain = False
    return certain


@inner
def zeros_are_exact(net, work, ties, label, row, coords, n, signs):
    """Return whether a unit is exactly zero at all vertices where its sign is 0."""
    for k in range(n):
        if signs[k] == 0 and sign_at(net, work, ties, label, row, coords[k]) != VANISHES:
            return False
    return True


@inner
def _put_edge(halves, half, u, v):
    e = halves.counts[half, 1]
    if e < halves.edges.shape[1]:  # the caller sees from the count that it did not fit
        halves.edges[half, e, 0], halves.edges[half, e, 1] = u, v
    halves.counts[half, 1] = e + 1


@inner
def _cut_edge(
    net, work, certified, label, norm, bound, coords, masks, labels, u, v, n_cut, halves, faces
):
    """Put the new vertex on edge uv into both halves."""
    d, marks, values = net.dim, halves.marks, halves.values
    t = values[u] / (values[u] - values[v])
    point = work.vectors[POINT]
    for c in range(d):
        point[c] = coords[u, c] + t * (coords[v, c] - coords[u, c])
    point[d] = 0.0
    if certified is not None:
        point[d] = edge_error(d, work, coords[u], coords[v], values[u], values[v], norm, bound)
        if point[d] == np.inf:
            shared_labels(masks[u], masks[v], labels, work.labels)
            work.labels[d - 1] = label
            point[d] = vertex_error(net, work, point)
        number = new_vertex(certified)
        put_facet(certified, number, label, True)
        put_shared_facets(certified, number, masks[u], masks[v], labels)
    for half in range(2):
        place = halves.counts[half, 0]
        copy(halves.coords[half, place], point)
        if certified is not None:
            halves.coords[half, place, d + 1] = number
        for w in range(masks.shape[1]):
            faces.half_masks[half, place, w] = masks[u, w] & masks[v, w]
        halves.counts[half, 0] = place + 1
        marks[CUT + half, n_cut] = place


@inner
def shared_labels(mask, other, labels, shared):
    """Write the labels of the facets that two vertices have in common."""
    n = 0
    for w in range(len(mask)):
        common, slot = mask[w] & other[w], w * FACETS_PER_WORD
        while common and n < len(shared):
            if common & np.uint64(1):
                shared[n] = labels[slot]
                n += 1
            common >>= np.uint64(1)
            slot += 1


@inner
def put_shared_facets(ties, number, mask, other, labels):
    """Add the facets that two vertices have in common to a numbered vertex."""
    for w in range(len(mask)):
        common = mask[w] & other[w]
        while common:
            slot = w * FACETS_PER_WORD + lowest_bit(common)
            put_facet(ties, number, labels[slot], False)
            common &= common - np.uint64(1)


@inner
def _mark_cut(d, half, n_cut, halves, masks):
    """Make the cut a facet of one half; return its bit, -1 if none is free."""
    slot = _free_slot(d, halves.counts[half, 0], masks)
    if slot >= 0:
        word, bit = slot // FACETS_PER_WORD, np.uint64(1) << np.uint64(slot % FACETS_PER_WORD)
        for k in range(n_cut):
            masks[halves.marks[CUT + half, k], word] |= bit
    return slot


@inner
def _join_cut(d, half, n_zero, n_cut, halves, masks):
    """Put the edges inside the cut into one half."""
    cut, n = halves.marks[CUT + half], halves.counts[half, 0]
    n_old = min(halves.counts[half, 1], halves.edges.shape[1])
    simple = n_zero == 0 and is_simple(d, masks, n)
    for p in range(n_cut):
        for q in range(p):
            if adjacent(d, masks, n, cut[p], cut[q], simple) and not (
                p < n_zero and _has_edge(halves.edges[half], n_old, cut[p], cut[q])
            ):
                _put_edge(halves, half, cut[p], cut[q])


@inner
def _has_edge(edges, n, p, q):
    for e in range(n):
        u, v = edges[e, 0], edges[e, 1]
        if (u == p and v == q) or (u == q and v == p):
            return True
    return False


@inner
def _free_slot(d, n, masks):
    """Return a facet bit that no vertex uses, giving up facets that are none any more; -1 if full."""
    for attempt in range(2):
        for w in range(masks.shape[1]):
            used, bit = np.uint64(0), 0
            for k in range(n):
                used |= masks[k, w]
            while bit < FACETS_PER_WORD and used & np.uint64(1):
                used >>= np.uint64(1)
                bit += 1
            if bit < FACETS_PER_WORD:
                return w * FACETS_PER_WORD + bit
        if attempt == 0:
            _drop_touching(d, n, masks)
    return -1


@inner
def _drop_touching(d, n, masks):
    """Clear bits of hyperplanes that meet the polytope in fewer than d vertices."""
    for slot in range(masks.shape[1] * FACETS_PER_WORD):
        if count_on(masks, n, slot) < d:
            flag = np.uint64(1) << np.uint64(slot % FACETS_PER_WORD)
            for k in range(n):
                masks[k, slot // FACETS_PER_WORD] &= ~flag
