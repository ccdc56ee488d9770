r"""Walking through all cells, depth first: memory grows with the depth of the walk, not with the count.

A cell on the stack belongs to a hidden layer, its level. If units of that layer still cut it, one of
them splits it in two. If none does, the next layer's map is brought up to date, its units are
screened, and the same polygon or polytope goes on one level deeper. Below the last hidden layer a
cell is finished. A walk can stop at any step and be taken up again: all its state is in arrays.

``faces`` is None in the plane; ``store`` is None when cells are counted, ``slices`` when they are not
or in the plane. Each combination is compiled on its own, without the code it does not need.
"""

from __future__ import annotations

from pindown.geometry._compiled import copy, copy_rows, entry, inner
from pindown.geometry._compiled.arrangement import NO_SPACE, count_polytope
from pindown.geometry._compiled.arrays import (
    CANDIDATE,
    CELLS,
    CENTER,
    CHOSEN,
    EDGE,
    FINISHED,
    FRAMES,
    GROW,
    LEVEL,
    N_CANDIDATES,
    N_EDGES,
    N_VERTICES,
    NUMBERED,
    PAUSED,
    RADIUS,
    ROW,
    STATE,
    TOO_MANY_FACETS,
    VERTEX,
)
from pindown.geometry._compiled.exact_residues import USED
from pindown.geometry._compiled.finished_cells import defer, emit
from pindown.geometry._compiled.layer_maps import (
    CROSSES,
    TINY,
    UNKNOWN,
    advance,
    decide,
    row_of,
    screen,
    settle,
    side,
)
from pindown.geometry._compiled.polygon import count_polygon, split_polygon
from pindown.geometry._compiled.polytope import NO_ROOM, SPLIT, UNCERTAIN, join_half, split_polytope


@entry
def walk(
    net, work, stack, halves, faces, slices, store, hashes, deferred, counters, growth, certified, steps
):
    """Work on the stack for at most ``steps`` cells; return why it stopped."""
    for _ in range(steps):
        top = counters[FRAMES] - 1
        if top < 0:
            return FINISHED
        if certified is not None:
            # Vertices of cells that were above on the stack are gone; their numbers are free.
            certified.state[USED] = stack.frames[top, NUMBERED]
        if stack.frames[top, N_CANDIDATES] > 0:
            status = _split(net, work, stack, halves, faces, hashes, deferred, counters, certified)
        elif stack.frames[top, LEVEL] < net.hidden - 1:
            status = _descend(
                net, work, stack, hashes, deferred, counters, growth, store is None, certified
            )
            if store is None and status == COUNT:
                status = _count(net, work, stack, faces, slices, deferred, counters, growth, certified)
        elif store is not None:
            status = emit(net, work, stack, faces, store, counters, growth, certified)
        if status != FINISHED:
            return status
    return PAUSED


COUNT = -1  # the cell is at the last level, and its candidates are in work.chosen


@inner
def _split(net, work, stack, halves, faces, hashes, deferred, counters, certified):
    """Replace the top cell by its two halves along one of the units that cut it."""
    top = counters[FRAMES] - 1
    frame = stack.frames[top]
    level, n, n_edges, vertex, edge = (
        frame[LEVEL],
        frame[N_VERTICES],
        frame[N_EDGES],
        frame[VERTEX],
        frame[EDGE],
    )
    if n + n_edges + 2 > halves.coords.shape[1]:
        return GROW
    if certified is not None and certified.state[USED] + n_edges + 2 > len(certified.facets):
        return GROW
    unit = stack.candidates[frame[CANDIDATE] + frame[N_CANDIDATES] - 1]
    label = net.starts[level] + unit
    row, bound = work.vectors[ROW], work.bounds[label]
    row_of(net, work.maps, level, unit, row)
    coords, edges = stack.coords[vertex:], stack.edges[edge:]
    status = SPLIT
    if faces is None:
        if not split_polygon(net, work, certified, label, row, bound, coords, edges, n, halves):
            status = UNCERTAIN
    else:
        masks, labels = faces.masks[vertex:], faces.labels[top]
        status = split_polytope(
            net,
            work,
            certified,
            label,
            row,
            bound,
            coords,
            masks,
            edges,
            labels,
            n,
            n_edges,
            halves,
            faces,
        )
    if status == NO_ROOM:
        return TOO_MANY_FACETS
    if status == SPLIT and not _fits(net, stack, halves, top):
        return GROW
    if status == UNCERTAIN or not _sort_out(net, work, stack, halves, hashes, top, certified):
        return defer(net, work, stack, deferred, counters, level, True, certified)
    if faces is not None:
        for half in range(2):
            if level < net.hidden - 1 or halves.counts[half, 2] > 0:
                join_half(net.dim, half, n, edges, n_edges, halves, faces)
        if not _fits(net, stack, halves, top):
            return GROW
    _replace(net, stack, halves, faces, top)
    if certified is not None:
        stack.frames[top, NUMBERED] = stack.frames[top + 1, NUMBERED] = certified.state[USED]
    counters[FRAMES] = top + 2
    return FINISHED


@inner
def words_of(n):
    """Return how many 64-bit words the states of n units fill."""
    return (n + 7) // 8


@inner
def _fits(net, stack, halves, top):
    """Return whether both halves fit in ``halves`` (edges) and on the stack."""
    frame, counts = stack.frames[top], halves.counts
    return (
        max(counts[0, 1], counts[1, 1]) <= halves.edges.shape[1]
        and top + 2 < len(stack.frames)
        and frame[VERTEX] + counts[0, 0] + counts[1, 0] <= len(stack.coords)
        and frame[EDGE] + counts[0, 1] + counts[1, 1] <= len(stack.edges)
        and frame[CANDIDATE] + 3 * frame[N_CANDIDATES] <= len(stack.candidates)
        and frame[STATE] + 24 * words_of(net.widths[frame[LEVEL]]) <= len(stack.states)
    )


@inner
def _sort_out(net, work, stack, halves, hashes, top, certified):
    """Find, for each half, which candidates still cut it; write lists and states behind the parent's."""
    frame, row = stack.frames[top], work.vectors[ROW]
    level, listed, n_candidates = frame[LEVEL], frame[CANDIDATE], frame[N_CANDIDATES]
    first, width, state = net.starts[level], 8 * words_of(net.widths[level]), frame[STATE]
    for half in range(2):
        states = stack.states[state + (1 + half) * width :]
        copy(
            stack.words[(state + (1 + half) * width) // 8 :],
            stack.words[state // 8 : (state + width) // 8],
        )
        key, kept = stack.keys[top], 0
        for k in range(n_candidates):
            unit = stack.candidates[listed + k]
            verdict = half  # of the unit that split the cell, the last of the list
            if k + 1 < n_candidates:
                row_of(net, work.maps, level, unit, row)
                coords, n = halves.coords[half], halves.counts[half, 0]
                verdict = side(net.dim, row, work.bounds[first + unit], certified, coords, n)
                if certified is not None and verdict == UNKNOWN:
                    verdict = settle(net, work, certified, first + unit, row, coords, n)
            if verdict == CROSSES:
                stack.candidates[listed + (1 + half) * n_candidates + kept] = unit
                kept += 1
            elif verdict == UNKNOWN:
                return False
            else:
                key = decide(net, first, unit, verdict, states, hashes, key)
        halves.counts[half, 2] = kept
        halves.keys[half] = key
    return True


@inner
def _replace(net, stack, halves, faces, top):
    """Write the two halves over the top of the stack, the positive one above."""
    frame = stack.frames[top]
    level, vertex, edge, listed, state = (
        frame[LEVEL],
        frame[VERTEX],
        frame[EDGE],
        frame[CANDIDATE],
        frame[STATE],
    )
    width, n_candidates = 8 * words_of(net.widths[level]), frame[N_CANDIDATES]
    for half in range(2):
        frame = stack.frames[top + half]
        n, n_edges = halves.counts[half, 0], halves.counts[half, 1]
        frame[LEVEL], frame[VERTEX], frame[N_VERTICES] = level, vertex, n
        frame[EDGE], frame[N_EDGES] = edge, n_edges
        frame[CANDIDATE] = listed + (1 + half) * n_candidates
        frame[N_CANDIDATES] = halves.counts[half, 2]
        frame[STATE] = state + (1 + half) * width
        stack.keys[top + half] = halves.keys[half]
        copy_rows(stack.coords, vertex, halves.coords[half], 0, n)
        copy_rows(stack.edges, edge, halves.edges[half], 0, n_edges)
        if faces is not None:
            copy(faces.labels[top + half], faces.half_labels[half])
            copy_rows(faces.masks, vertex, faces.half_masks[half], 0, n)
        vertex += n
        edge += n_edges


@inner
def _descend(net, work, stack, hashes, deferred, counters, growth, counting, certified):
    """Take the top cell, finished at its level, to the next one."""
    top = counters[FRAMES] - 1
    frame, row = stack.frames[top], work.vectors[ROW]
    level, listed, state = frame[LEVEL], frame[CANDIDATE], frame[STATE]
    n, first, width = frame[N_VERTICES], net.starts[level + 1], net.widths[level + 1]
    if listed + width > len(stack.candidates) or state + width + 8 > len(stack.states):
        return GROW
    if level >= 0:
        advance(net, work, certified, level, stack.states[state:], stack.words[state // 8 :])
    coords = stack.coords[frame[VERTEX] :]
    _enclose(net.dim, work.vectors, coords, n)
    screen(net, work, level + 1)
    kept, value, margin, states = 0, work.values[0], work.values[1], work.states
    for i in range(width):
        states[i] = value[i] >= 0.0
    key = stack.keys[top]
    for i in range(width):
        if not margin[i] > 0.0 and net.leader[first + i] == i:
            row_of(net, work.maps, level + 1, i, row)
            verdict = side(net.dim, row, work.bounds[first + i], certified, coords, n)
            if certified is not None and verdict == UNKNOWN:
                verdict = settle(net, work, certified, first + i, row, coords, n)
            if verdict == CROSSES:
                work.chosen[kept] = i
                kept += 1
            elif verdict == UNKNOWN:
                return _deferred_below(net, work, stack, deferred, counters, growth, certified)
            else:
                decide(net, first, i, verdict, states, hashes, key)
    if counting and level + 1 == net.hidden - 1:
        counters[CHOSEN] = kept
        return COUNT
    frame[LEVEL], frame[N_CANDIDATES] = level + 1, kept
    stack.keys[top] = _hash_of(net, work, hashes, first, width, kept, key)
    copy(stack.candidates[listed:], work.chosen[:kept])
    copy(stack.words[state // 8 :], work.words[: words_of(width)])
    if level >= 0:
        growth[level] += 1
    return FINISHED


@inner
def _deferred_below(net, work, stack, deferred, counters, growth, certified):
    """Defer the top cell, its own level decided, nothing of the next."""
    level = stack.frames[counters[FRAMES] - 1, LEVEL]
    status = defer(net, work, stack, deferred, counters, level + 1, False, certified)
    if status == FINISHED and level >= 0:
        growth[level] += 1
    return status


@inner
def _hash_of(net, work, hashes, first, width, kept, key):
    """Add the units of a layer that are on to a key, leaving out candidates and those they lead."""
    for k in range(kept):
        member = work.chosen[k]
        while member >= 0:
            work.states[member] = 0
            member = net.follower[first + member]
    for i in range(width):
        if work.states[i]:
            key ^= hashes[first + i]
    return key


@inner
def _enclose(d, vectors, coords, n):
    """Write the smallest box around the vertices, errors included, to ``CENTER`` and ``RADIUS``."""
    slack = 0.0
    for k in range(n):
        slack = max(slack, coords[k, d])
    for c in range(d):
        low = high = coords[0, c]
        for k in range(1, n):
            low, high = min(low, coords[k, c]), max(high, coords[k, c])
        vectors[CENTER, c] = 0.5 * (low + high)
        # A little wider: centre and radius are rounded.
        vectors[RADIUS, c] = 0.5 * (high - low) + slack + 2.0**-51 * (abs(low) + abs(high)) + TINY


@inner
def _count(net, work, stack, faces, slices, deferred, counters, growth, certified):
    """Count the cells that the chosen units of the last layer cut the top cell into."""
    top = counters[FRAMES] - 1
    frame = stack.frames[top]
    n, n_edges, vertex, edge = frame[N_VERTICES], frame[N_EDGES], frame[VERTEX], frame[EDGE]
    level, kept = net.hidden - 1, counters[CHOSEN]
    cells = 1
    if certified is not None and certified.state[USED] + 4 > len(certified.facets):
        return GROW
    if kept > 0:
        if slices is None:
            cells = count_polygon(
                net, work, certified, level, stack.coords[vertex:], stack.edges[edge:], n, kept
            )
        else:
            room = slices.coords.shape[1], slices.edges.shape[1], slices.lines.shape[1]
            if n > room[0] or n_edges > room[1] or kept > room[2]:
                return GROW
            counts = slices.counts
            counts[0, 0], counts[0, 1], counts[0, 2] = n, n_edges, kept
            copy_rows(slices.coords[0], 0, stack.coords, vertex, n)
            copy_rows(slices.masks[0], 0, faces.masks, vertex, n)
            copy_rows(slices.edges[0], 0, stack.edges, edge, n_edges)
            copy(slices.lines[0], work.chosen[:kept])
            cells = count_polytope(net, work, certified, level, faces.labels[top], slices)
            if cells == NO_SPACE:
                return GROW
    if cells < 0:
        return _deferred_below(net, work, stack, deferred, counters, growth, certified)
    counters[CELLS] += cells
    growth[level] += cells
    counters[FRAMES] = top
    if level > 0:
        growth[level - 1] += 1
    return FINISHED
