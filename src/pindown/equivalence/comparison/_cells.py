r"""The exact gap of two networks with few inputs, from the cells of their difference.

The difference is affine on each cell of its complex, so the largest gap on a box is attained at a
vertex. With all signs proved and a dual bound for each cell, both ends of the gap are proved and differ
by rounding only.

Mukherjee 2020, Theorem 2.A.1 (piecewise linear functions and networks); for two networks that share an
input, the joint complex of Phuong 2021, appendix A.
"""

from __future__ import annotations

from math import inf

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._witness_search import gaps_at
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.tuning import CELL_CANDIDATES, CELL_WALK_SHARE, MAX_CELLS
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.relaxation.difference_network import difference
from pindown.relaxation.differential import proved_gap
from pindown.rounding import add_up


def gap_by_cells(
    a: ReluNetwork, b: ReluNetwork, box: Box, *, budget: float = inf, max_cells: int = MAX_CELLS
) -> GapState:
    """Find the largest gap on a box exactly, cell by cell.

    Args:
        a: A network with up to about five inputs.
        b: One with as many inputs and outputs.
        box: The inputs. A box that is flat in some coordinate has no cells and proves nothing.
        budget: Seconds for finding the cells and bounding each.
        max_cells: How many cells to find at most.

    Returns:
        Proved bounds; the upper one infinite if there was not enough time or memory.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -1.0)]
        >>> gap_by_cells(*nets, Box([-2], [2]))
        GapState(0.999999 <= gap <= 1.00001)

    Mukherjee 2020, Theorem 2.A.1.
    """
    from pindown.geometry.complex.polyhedral import polyhedral_complex
    from pindown.geometry.facts.dual_bounds import upper_bounds

    deadline = Deadline.after(max(budget, 0.0))
    flat = bool(np.any(box.lower == box.upper))
    joint = None if flat else difference(a, b, box, deadline=deadline.share(CELL_WALK_SHARE))
    if joint is None:
        return GapState()
    walk = None if budget == inf else CELL_WALK_SHARE * max(budget, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # maps that overflow have infinite bounds
        cx = polyhedral_complex(joint.net, box, budget=walk, max_cells=max_cells, certified=True)
    point, lower = _best_vertex(a, b, box, cx.vertices)
    upper = inf
    if cx.complete:
        bounds: list[float] = []
        for k in range(a.out_features):
            for sign in (1.0, -1.0):
                if deadline.passed:
                    bounds.append(inf)
                    break
                top = float(upper_bounds(cx, k, sign).max(initial=-inf))
                bounds.append(float(add_up(top, joint.error[k])))
        upper = max(0.0, *bounds)
    return GapState() & Bracket(lower, upper, point)


def _best_vertex(a: ReluNetwork, b: ReluNetwork, box: Box, vertices: Array) -> tuple[Array, float]:
    """Return the vertex with the largest gap, and the gap rounded down."""
    points = np.vstack([np.clip(vertices, box.lower, box.upper), box.center])
    gaps = gaps_at(a, b, points)
    best = points[np.argsort(-gaps, kind="stable")[:CELL_CANDIDATES]]
    proved = [proved_gap(a, b, point) for point in best]
    top = int(np.argmax(proved))
    point = best[top].copy()
    point.flags.writeable = False
    return point, proved[top]
