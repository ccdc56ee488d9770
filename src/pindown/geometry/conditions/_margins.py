r"""Ways to enclose :math:`\tau = \min_{x \in B} \max_i g_i(x)` for a network g on a box B.

Points give upper bounds. Lower bounds come from interval arithmetic, from one linear program for each
cell of the network (few inputs), or from a mixed-integer program (any number of inputs). On a cell
every :math:`g_i` is affine, but the minimum of their maximum is in general *not* at a vertex of the
cell: it is the linear program

.. math:: \min_{x, t} t \quad \text{such that} \quad g_i(x) \le t, \; x \in \text{cell}.

Upper ends are proved, by their witness; lower ends by intervals, or else as far as solvers keep their
tolerances, of which a hundredfold is taken off.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.evidence import Bracket
from pindown.geometry.tuning import (
    DESCENT_FIRST_STEP,
    DESCENT_SHRINK,
    DESCENT_STARTS,
    DESCENT_STEPS,
    VERTEX_NUMBERS_PER_BLOCK,
)
from pindown.network import ReluNetwork
from pindown.programs import EXACT, LP_TOLERANCE, Rows, integer_program, linear_program
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.mixed_integer import encode

if TYPE_CHECKING:
    from pindown.geometry.complex.polyhedral import PolyhedralComplex

# Times the tolerance of the solver, relative to the numbers in the program: what a value may be off.
_LP_SAFETY = 100.0


def at_point(g: ReluNetwork, box: Box, x: Array) -> Bracket:
    """Return the upper bound that one point proves, its rounding included."""
    point = np.clip(x, box.lower, box.upper)
    return Bracket(-inf, float(np.max(interval_bounds(g, Box(point, point))[-1].upper)), point)


def by_intervals(g: ReluNetwork, box: Box) -> Bracket:
    """Return the lower bound of interval arithmetic, with the centre of the box as a first point."""
    lower = float(np.max(interval_bounds(g, box)[-1].lower))
    centre = at_point(g, box, box.center)
    return Bracket(min(lower, centre.upper), centre.upper, centre.witness)


def by_descent(g: ReluNetwork, box: Box, points: Array, deadline: Deadline = NEVER) -> Bracket:
    """Return the best of some points (n, d) and of subgradient steps from the most promising ones."""
    points = points[np.argsort(g(points).max(axis=1))[:DESCENT_STARTS]]
    best_points, best_values = points, g(points).max(axis=1)
    step = DESCENT_FIRST_STEP
    for _ in range(DESCENT_STEPS):
        if deadline.passed:
            break
        slope = _slope_of_largest(g, points) * box.radius
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        move = np.divide(slope, length, out=np.zeros_like(slope), where=length > 0)
        points = np.clip(points - step * box.radius * move, box.lower, box.upper)
        values = g(points).max(axis=1)
        better = values < best_values
        best_points = np.where(better[:, None], points, best_points)
        best_values = np.where(better, values, best_values)
        step *= DESCENT_SHRINK
    return at_point(g, box, best_points[int(np.argmin(best_values))])


def _slope_of_largest(g: ReluNetwork, points: Array) -> Array:
    """Return the gradient (n, d) of the largest output at each point, back through the layers."""
    *hidden, last = g.trace(points)
    rows = np.eye(g.out_features)[last.argmax(axis=1)]
    rows = g.layers[-1].pull_back(rows)
    for layer, z in zip(reversed(g.layers[:-1]), reversed(hidden), strict=True):
        rows = layer.pull_back(rows * (z >= 0))
    return rows


def on_cell(
    A: Array, c: Array, halfspaces: Array, box: Box, seconds: float = inf
) -> tuple[float, Array | None]:
    """Minimise the largest of ``A x + c`` over ``{[x, 1] @ halfspaces.T <= 0}`` in the box.

    Args:
        A: Slopes (k, d).
        c: Offsets (k,).
        halfspaces: Rows (m, d + 1) of the cell's sides.
        box: Bounds for x.
        seconds: When the solver gives up.

    Returns:
        A lower bound on the minimum (to the solver's tolerance) and where it is attained; minus
        infinity and None if the solver gives up.
    """
    d = box.dim
    rows = np.concatenate(
        [np.column_stack([A, -np.ones(len(A))]), np.insert(halfspaces[:, :d], d, 0.0, axis=1)]
    )
    right = np.concatenate([-c, -halfspaces[:, d]])
    result = linear_program(
        [0.0] * d + [1.0],
        rows,
        right,
        lower=np.append(box.lower, -inf),
        upper=np.append(box.upper, inf),
        attempts=EXACT,
        time=seconds,
    )
    if not result.solved or result.x is None:
        return -inf, None
    return result.value - _slack(A, c, box), result.x[:d]


def by_cells(g: ReluNetwork, box: Box, deadline: Deadline) -> Bracket:
    """Search all cells of g on the box; the lower bound is minus infinity if the time does not suffice.

    A cell is looked at only if it may hold the minimum: by convexity no value in it is below
    ``max_i min_vertices g_i``.
    """
    best = at_point(g, box, box.center)
    if g.depth == 1:  # one cell, in any dimension
        low, x = on_cell(*g.local_affine(box.center), np.zeros((0, box.dim + 1)), box, deadline.left)
        return best if x is None else Bracket(low, inf, x) & at_point(g, box, x) & best
    from pindown.geometry.complex.polyhedral import polyhedral_complex

    cells = polyhedral_complex(g, box, budget=deadline.left)
    if not cells.complete:
        return best
    lows, vertex = _cell_bounds(cells)
    lows -= _slack(cells.A, cells.c, box)
    best = best & at_point(g, box, vertex)
    proved = inf
    for i in np.argsort(lows):
        if lows[i] >= min(best.upper, proved) or deadline.passed:
            proved = min(proved, float(lows[i]))
            break
        low, x = on_cell(cells.A[i], cells.c[i], cells.regions[int(i)].halfspaces, box)
        proved = min(proved, max(low, float(lows[i])))
        if x is not None:
            best = best & at_point(g, box, x)
    return Bracket(min(proved, best.upper), best.upper, best.witness)


def by_program(g: ReluNetwork, box: Box, deadline: Deadline) -> Bracket:
    """Solve the mixed-integer program for the minimum, or stop with the bound proved so far."""
    best = at_point(g, box, box.center)
    program = None if deadline.passed else encode(g, box)
    if program is None or deadline.passed:
        return best
    n, k = program.rows.shape[1], g.out_features
    goal = np.append(np.zeros(n), 1.0)
    top = sp.hstack([program.rows, sp.csr_array((program.rows.shape[0], 1))])
    last = sp.hstack([program.output.weight, sp.csr_array(-np.ones((k, 1)))])
    result = integer_program(
        goal,
        [Rows(top, program.row_lower, program.row_upper), Rows(last, -inf, -program.output.bias)],
        np.append(program.integrality, 0),
        lower=np.append(program.lower, -inf),
        upper=np.append(program.upper, inf),
        time=deadline.left,
    )
    low = result.bound - float(program.error.max())
    if result.x is not None:
        best = best & _polished(g, box, program.inputs(result.x), deadline)
    return Bracket(min(low, best.upper), best.upper, best.witness)


def _slack(A: Array, c: Array, box: Box) -> float:
    """Return how far a linear program, or a vertex, may be off for maps of this size."""
    farthest = np.maximum(np.abs(box.lower), np.abs(box.upper))
    return _LP_SAFETY * LP_TOLERANCE * (1.0 + float(np.max(np.abs(A) @ farthest + np.abs(c))))


def _polished(g: ReluNetwork, box: Box, x: Array, deadline: Deadline) -> Bracket:
    """Return the bound from a point, and from the minimum of its own cell."""
    from pindown.geometry.regions.point_location import unit_halfspaces

    point = np.clip(x, box.lower, box.upper)
    first, pattern = at_point(g, box, point), g.pattern(point)
    if deadline.passed:
        return first
    sides = unit_halfspaces(g, pattern, np.arange(g.size))
    _, better = on_cell(*g.affine_of_pattern(pattern), sides, box, deadline.left)
    return first if better is None else first & at_point(g, box, better)


def _cell_bounds(cells: PolyhedralComplex) -> tuple[Array, Array]:
    """Return for every cell a lower bound on the largest output, and the best vertex of all."""
    counts = np.diff(cells.offsets)
    step = max(
        1, VERTEX_NUMBERS_PER_BLOCK // (int(counts.max()) * cells.A.shape[1] * (cells.A.shape[2] + 1))
    )
    lows, best, where = [], inf, cells.cell_vertices[0]
    for start in range(0, len(counts), step):
        part = slice(start, min(start + step, len(counts)))
        first = cells.offsets[start]
        points = cells.cell_vertices[first : cells.offsets[part.stop]]
        owner = np.repeat(np.arange(len(counts[part])), counts[part])
        values = np.einsum("vkd,vd->vk", cells.A[part][owner], points) + cells.c[part][owner]
        lows.append(np.minimum.reduceat(values, cells.offsets[part] - first, axis=0).max(axis=1))
        largest = values.max(axis=1)
        if largest.min() < best:
            best, where = float(largest.min()), points[int(largest.argmin())]
    return np.concatenate(lows), where
