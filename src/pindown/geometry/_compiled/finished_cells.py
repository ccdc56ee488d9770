"""Where finished cells go, and those that float64 cannot decide."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry._compiled import copy, inner
from pindown.geometry._compiled.arrays import (
    CANDIDATE,
    CELLS,
    DEFERRED,
    EDGE,
    FACETS,
    FACETS_PER_WORD,
    FINISHED,
    FRAMES,
    FULL,
    LEVEL,
    N_CANDIDATES,
    N_VERTICES,
    STATE,
    VERTEX,
    VERTICES,
    WANTS_PRIMES,
    FlatNetwork,
)
from pindown.geometry._compiled.exact_residues import WANTED
from pindown.geometry._compiled.faces import count_on, is_simple, lowest_bit
from pindown.geometry._compiled.layer_maps import advance


class CellStore(NamedTuple):
    """Finished cells, one after the other; row i of ``starts`` is where cell i begins."""

    starts: NDArray[np.int64]  # of its vertices and facets
    coords: Array
    masks: NDArray[np.uint64]  # bit k: the cell's k-th facet passes through the vertex (d >= 3)
    facets: NDArray[np.int32]  # labels; in the plane that of the side which follows each vertex
    patterns: NDArray[np.uint64]  # one bit per unit, every layer from a new word on
    keys: NDArray[np.uint64]
    outputs: Array  # (dim + 1, outputs) of each cell's affine map


@inner
def defer(net, work, stack, deferred, counters, level, decided, certified):
    """Hand the top cell over to exact arithmetic; ``decided``: the level's states are on the stack."""
    if certified is not None and certified.state[WANTED] > 0:
        return WANTS_PRIMES
    n = counters[DEFERRED]
    if n == len(deferred):
        return FULL
    frame, out, below = stack.frames[counters[FRAMES] - 1], deferred[n], net.starts[level]
    for u in range(len(out)):
        out[u] = 0
    for lower in range(level):
        for i in range(net.widths[lower]):
            out[net.starts[lower] + i] = 1 if work.current[lower, i] else -1
    if decided:
        for i in range(net.widths[level]):
            out[below + i] = 1 if stack.states[frame[STATE] + i] else -1
        for k in range(frame[N_CANDIDATES]):
            member = stack.candidates[frame[CANDIDATE] + k]
            while member >= 0:
                out[below + member] = 0
                member = net.follower[below + member]
    counters[DEFERRED] = n + 1
    counters[FRAMES] -= 1
    return FINISHED


@inner
def emit(net, work, stack, faces, store, counters, growth, certified):
    """Write the top cell, which no unit cuts any more, to the store."""
    top = counters[FRAMES] - 1
    frame = stack.frames[top]
    n, cell, vertex, facet = frame[N_VERTICES], counters[CELLS], counters[VERTICES], counters[FACETS]
    room = n
    if faces is not None:
        room = faces.labels.shape[1]
    if cell >= len(store.keys) or vertex + n > len(store.coords) or facet + room > len(store.facets):
        return FULL
    level, state = frame[LEVEL], frame[STATE]
    advance(net, work, certified, level, stack.states[state:], stack.words[state // 8 :])
    _pack(net, work.current, store.patterns[cell])
    store.keys[cell] = stack.keys[top]
    at = (net.dim + 1) * net.starts[net.hidden]
    copy(store.outputs[cell], work.maps[at : at + store.outputs.shape[1]])
    for k in range(n):
        for c in range(net.dim):
            store.coords[vertex + k, c] = stack.coords[frame[VERTEX] + k, c]
    if faces is None:
        for k in range(n):
            store.facets[facet + k] = stack.edges[frame[EDGE] + k, 0]
        facet += n
    else:
        masks = faces.masks[frame[VERTEX] : frame[VERTEX] + n]
        facet += _emit_facets(net.dim, masks, faces.labels[top], store, vertex, facet, faces.numbers)
    counters[VERTICES] += n
    counters[FACETS] = facet
    counters[CELLS] = cell + 1
    store.starts[cell + 1, 0] = counters[VERTICES]
    store.starts[cell + 1, 1] = facet
    counters[FRAMES] = top
    growth[level] += 1
    return FINISHED


@inner
def _pack(net, states, out):
    """Write 0/1 bytes as bits, every layer from a new word on."""
    word = 0
    for level in range(net.hidden):
        n = net.widths[level]
        for i in range(0, n, 64):
            bits = np.uint64(0)
            for k in range(min(64, n - i)):
                bits |= np.uint64(states[level, i + k]) << np.uint64(k)
            out[word] = bits
            word += 1


@inner
def _emit_facets(d, masks, labels, store, vertex, facet, numbers):
    """Number the true facets of a cell from 0, write their labels and masks; return how many.

    Only bits that are set are looked at: a vertex lies on few of the facets there is room for.
    """
    n, count = len(masks), 0
    simple = is_simple(d, masks, n)
    numbers[: len(labels)] = 0
    for k in range(n):
        for w in range(masks.shape[1]):
            bits = masks[k, w]
            while bits:
                numbers[w * FACETS_PER_WORD + lowest_bit(bits)] += 1
                bits &= bits - np.uint64(1)
    for slot in range(len(labels)):
        on_it = numbers[slot]
        numbers[slot] = -1
        if on_it >= d and (simple or _is_facet(masks, slot, on_it)):
            store.facets[facet + count] = labels[slot]
            numbers[slot] = count
            count += 1
    for k in range(n):
        for w in range(masks.shape[1]):
            store.masks[vertex + k, w] = 0
        for w in range(masks.shape[1]):
            bits = masks[k, w]
            while bits:
                number = numbers[w * FACETS_PER_WORD + lowest_bit(bits)]
                if number >= 0:
                    mark = np.uint64(1) << np.uint64(number % FACETS_PER_WORD)
                    store.masks[vertex + k, number // FACETS_PER_WORD] |= mark
                bits &= bits - np.uint64(1)
    return count


@inner
def _is_facet(masks, slot, on_it):
    """Return whether a hyperplane holds a facet: no other one holds all its vertices and more.

    Of hyperplanes that hold the same vertices only the one in the lowest slot counts.
    """
    n = len(masks)
    word, flag = slot // FACETS_PER_WORD, np.uint64(1) << np.uint64(slot % FACETS_PER_WORD)
    for w in range(masks.shape[1]):
        shared, other = ~np.uint64(0), w * FACETS_PER_WORD
        for k in range(n):
            if masks[k, word] & flag:
                shared &= masks[k, w]
        while shared:
            if shared & np.uint64(1) and other != slot:
                others = count_on(masks, n, other)
                if others > on_it or (others == on_it and other < slot):
                    return False
            shared >>= np.uint64(1)
            other += 1
    return True


def new_cell_store(net: FlatNetwork, words: int, cells: int) -> CellStore:
    """Reserve room for a first batch of cells."""
    pattern_words = int(sum((n + 63) // 64 for n in net.widths[: net.hidden]))
    return CellStore(
        starts=np.zeros((cells + 1, 2), np.int64),
        coords=np.zeros((8 * cells, net.dim)),
        masks=np.zeros((8 * cells if net.dim > 2 else 1, words), np.uint64),
        facets=np.zeros(8 * cells + FACETS_PER_WORD * words, np.int32),
        patterns=np.zeros((cells, pattern_words), np.uint64),
        keys=np.zeros(cells, np.uint64),
        outputs=np.zeros((cells, int(net.widths[-1]) * (net.dim + 1))),
    )
