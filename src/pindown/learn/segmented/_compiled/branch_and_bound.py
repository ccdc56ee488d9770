r"""Depth-first search over the gaps of the breakpoints, from right to left, compiled.

A node fixes the last gaps; its suffix is one parabola in the value of its first line. Its bound joins
that parabola to the stored envelope of all prefixes, so every node that is opened leads to a tuple whose
relaxed loss is below the best loss known. Complete tuples are solved exactly.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, Integers
from pindown.learn.segmented._compiled import compiled
from pindown.learn.segmented._compiled.breakpoints import best_in_gaps
from pindown.learn.segmented._compiled.parabolas import extend
from pindown.learn.segmented._compiled.relaxation import (
    add_points,
    line_loss,
    softened,
    strength,
    taken,
    tied,
)


@compiled
def join_bound(
    starts: Integers,
    parabolas: Array,
    untied: Array,
    ties: Array,
    b: int,
    paid: float,
    suffix: tuple[float, float, float],
    floor: float,
) -> float:
    """Least sum of a stored prefix that ends at gap b and a suffix that begins there."""
    k2, c2, f2 = suffix
    if paid <= 0.0:
        return floor + f2
    bound = untied[b] + f2
    for i in range(starts[b], starts[b + 1]):
        f = parabolas[2, i] + f2
        if f < bound:
            k = softened(softened(parabolas[0, i], strength(ties, b, parabolas[3, i], paid)), k2)
            bound = min(bound, f + k * (parabolas[1, i] - c2) ** 2)
    return bound


@compiled
def open_nodes(
    x: Array,
    y: Array,
    w: Array,
    gaps: Integers,
    ties: Array,
    sizes: Array,
    starts: Integers,
    parabolas: Array,
    untied: Array,
    floors: Array,
    cap: float,
    end: int,
    suffix_paid: float,
    suffix: tuple[float, float, float],
) -> Array:
    """Children below ``cap``, one per row: bound, gap, what its segment pays there, parabola.

    The segment to place runs up to gap ``end``, or to the last point if ``end`` is the number of gaps.
    """
    G = len(gaps)
    children = np.empty((G + 1, 6))
    count = 0
    stats = np.zeros(6)
    if end == G:
        add_points(stats, x, y, w, gaps[G - 1] + 1, len(x))
        tie = -1
    else:
        tie = end
        bound = floors[end] + suffix[2]  # a piece without data
        if bound < cap:
            children[0] = np.array([bound, end, 0.0, 0.0, 0.0, suffix[2]])
            count = 1
    for a in range(min(end, G) - 1 if end < G else G - 1, -1, -1):
        if a < G - 1:
            add_points(stats, x, y, w, gaps[a] + 1, gaps[a + 1] + 1)
        if floors[a] + suffix[2] >= cap:
            continue
        size, Sxx, Sxy, Syy = tied(stats, ties, sizes, a, tie)
        alone = line_loss(Sxx, Sxy, Syy) + suffix[2]
        if floors[a] + alone >= cap:
            continue
        k, c, f = 0.0, 0.0, alone
        if size >= 0:
            k, c, f, length = 0.0, suffix[1], suffix[2], 0.0
            if tie >= 0:
                k = softened(suffix[0], strength(ties, end, taken(ties, sizes, size, end), suffix_paid))
                length = ties[0, end] - ties[0, a]
            k, c, f = extend(stats[0], stats[1] - ties[0, a], stats[2], Sxx, Sxy, Syy, k, length, c, f)
        paid = taken(ties, sizes, size, a)
        bound = join_bound(starts, parabolas, untied, ties, a, paid, (k, c, f), floors[a])
        if bound < cap:
            row = children[count]
            row[0], row[1], row[2], row[3], row[4], row[5] = bound, a, paid, k, c, f
            count += 1
    return children[:count].copy()


@compiled
def push(stack: Array, height: int, children: Array, level: int, path: Array) -> int:
    """Put children on the stack, the one with the least bound on top."""
    order = np.argsort(-children[:, 0])
    for i in order:
        stack[height, 0] = level
        stack[height, 1:7] = children[i]
        stack[height, 7:] = path
        stack[height, 7 + level - 1] = children[i, 1]
        height += 1
    return height


@compiled
def explore(
    x: Array,
    y: Array,
    w: Array,
    blocks: Array,
    gaps: Integers,
    ties: Array,
    sizes: Array,
    levels: tuple[Integers, Integers, Array, Array, Array],
    stack: Array,
    height: int,
    best: float,
    slack: float,
    best_path: Integers,
    best_mask: int,
    steps: int,
) -> tuple[int, float, int, int, int]:
    """Take up to ``steps`` nodes off the stack: (height, best loss, its knots, leaves, nodes)."""
    bounds, starts, parabolas, untied, floors = levels
    leaves = nodes = 0
    while height and nodes < steps:
        height -= 1
        nodes += 1
        if stack[height, 1] >= best - slack:
            continue
        level = int(stack[height, 0])
        path = stack[height, 7:].copy()
        if level == 1:
            leaves += 1
            places = np.empty(len(path), dtype=np.int64)
            for i in range(len(path)):
                places[i] = gaps[int(path[i])]
            loss, mask = best_in_gaps(x, blocks, places, best)
            if mask >= 0:
                best, best_mask = loss, mask
                best_path[:] = places
            continue
        k = level - 2
        children = open_nodes(
            x,
            y,
            w,
            gaps,
            ties,
            sizes,
            starts[k],
            parabolas[:, bounds[k] : bounds[k + 1]],
            untied[k],
            floors[k],
            best - slack,
            int(stack[height, 2]),
            stack[height, 3],
            (stack[height, 4], stack[height, 5], stack[height, 6]),
        )
        height = push(stack, height, children, level - 1, path)
    return height, best, best_mask, leaves, nodes
