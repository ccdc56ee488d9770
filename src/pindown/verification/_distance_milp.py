r"""The distance to another class as mixed-integer programs, in linf and l1.

.. math::
    \min_{x', R} R \quad \text{such that} \quad |x'_i - x_i| \le R, \quad f_j(x') \ge f_c(x'),

with one binary variable for each ReLU whose sign is open within the radius of the best point known, and
one program for each other class j. If time ends, the solver's dual bound still bounds the distance.

Tjeng, Xiao and Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming".
"""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.regions.point_location import varying_sides
from pindown.programs import SOLVER_TOLERANCE, Rows, integer_program
from pindown.relaxation.lp_balls import Balls, lengths
from pindown.relaxation.mixed_integer import Encoding, tight_encoding
from pindown.verification.distance_problem import DistanceState, Problem, beyond
from pindown.verification.tuning import MILP_BOUNDS_SHARE, MILP_MIN_SECONDS

_METHOD = "mixed-integer programs"
_ROOM = 1.0 + 2.0**-40  # for the rounding of lengths, far below the tolerance of the solver


class _Program(NamedTuple):
    """The rows and bounds that all programs share; variables are those of the encoding, then lengths."""

    rows: sp.csr_array
    low: Array
    high: Array
    lower: Array
    upper: Array
    cost: Array
    encoding: Encoding
    scale: float

    @property
    def doubt(self) -> float:
        """What every row of the length may be off by, and the objective, in units of the scale."""
        return SOLVER_TOLERANCE * (2.0 * float(self.cost.sum()) + 2.0)


def distance_by_programs(
    problem: Problem, state: DistanceState, *, deadline: Deadline = NEVER
) -> DistanceState:
    """Improve bounds on the distance to another class by mixed-integer programs.

    Args:
        problem: The question, in ``"linf"`` or ``"l1"``.
        state: What is known; its ``upper`` or else the box bounds the search. Without both, nothing is
            done.
        deadline: When to stop.

    Returns:
        Bounds up to the solver itself, whose tolerances are taken off; witnesses are evaluated anew.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0], [0.0, 0.0]], [0, 2])])
    >>> start = DistanceState(upper=4.0, witness=np.array([4.5]))
    >>> found = distance_by_programs(Problem(net, np.array([0.5]), 1, "linf", None), start)
    >>> round(found.lower, 4), round(found.upper, 6)
    (1.5, 1.5)

    Tjeng, Xiao and Tedrake 2019, section 4.
    """
    if problem.norm == "l2":
        raise ValueError("programs are linear: norm must be 'linf' or 'l1'; got 'l2'.")
    bounding = deadline.share(MILP_BOUNDS_SHARE)
    program = _program(problem, min(state.upper, _across(problem)), bounding)
    if program is None:
        return state
    rows = problem.differences
    # What the solver excludes it excludes up to its tolerances, also if it finds nothing nearer.
    proved = state.upper if not isfinite(state.upper) else state.upper * (1.0 - program.doubt)
    for i, row in enumerate(rows):
        if deadline.passed:
            proved = 0.0
            break
        bound, point = _solve(program, row, deadline.left / (len(rows) - i))
        proved = min(proved, bound)
        if point is not None:
            state = _polished(problem, state, point, row)
    return state.raised(proved, _METHOD)


def _across(problem: Problem) -> float:
    """Return a length that no change within the box exceeds."""
    if problem.box is None:
        return inf
    ends = np.maximum(problem.box.upper - problem.x, problem.x - problem.box.lower)
    return float(lengths(ends, problem.norm)) * _ROOM


def _program(problem: Problem, radius: float, deadline: Deadline) -> _Program | None:
    """Encode the network on the ball, and the length of the change; None if it leaves float64."""
    if not 0.0 < radius < inf:
        return None
    ball = Balls.around(problem.x[None], np.array([radius]), "linf", problem.box)
    box = Box(ball.lower[0], ball.upper[0])
    encoding = tight_encoding(problem.network, box, deadline=deadline)
    if encoding is None:
        return None
    d, n = box.dim, encoding.rows.shape[1]
    eye, columns = sp.eye_array(d, format="csr"), 1 if problem.norm == "linf" else d
    # center + radius_i t_i - x_i = change_i; |change_i| / radius <= the length variable.
    step = sp.diags_array(encoding.radius / radius) @ eye
    offset = (encoding.center - problem.x) / radius
    size = sp.csr_array(np.ones((d, 1))) if problem.norm == "linf" else eye
    blank = sp.csr_array((d, n - d))
    above = sp.hstack([step, blank, -size])
    below = sp.hstack([-step, blank, -size])
    own = sp.hstack([encoding.rows, sp.csr_array((encoding.rows.shape[0], columns))])
    unlimited = np.full(2 * d, -inf)
    return _Program(
        rows=sp.csr_array(sp.vstack([own, above, below])),
        low=np.concatenate([encoding.row_lower, unlimited]),
        high=np.concatenate([encoding.row_upper, -offset, offset]),
        lower=np.concatenate([encoding.lower, np.zeros(columns)]),
        upper=np.concatenate([encoding.upper, np.ones(columns)]),
        cost=np.concatenate([np.zeros(n), np.ones(columns)]),
        encoding=encoding,
        scale=radius,
    )


def _solve(program: _Program, row: Array, seconds: float) -> tuple[float, Array | None]:
    """Minimise the length of a change that makes ``row @ f`` at most 0: a proved bound, and a point."""
    encoding = program.encoding
    form = np.asarray(row @ encoding.output.weight.toarray()).reshape(-1)
    slack = float(np.abs(row) @ encoding.error)
    size = float(np.abs(form).max()) or 1.0
    limit = (slack - float(row @ encoding.output.bias)) / size
    padded = np.concatenate([form / size, np.zeros(len(program.cost) - len(form))])
    result = integer_program(
        program.cost,
        [
            Rows(program.rows, program.low, program.high),
            Rows(padded[None], -inf, limit + SOLVER_TOLERANCE),
        ],
        np.concatenate([encoding.integrality, np.zeros(len(program.cost) - len(form))]),
        lower=program.lower,
        upper=program.upper,
        time=max(seconds, MILP_MIN_SECONDS),
    )
    if result.status == "infeasible":
        return inf, None  # nothing nearer than what is known, or in the box
    bound = program.scale * max(0.0, result.bound - program.doubt)
    return bound, None if result.x is None else encoding.inputs(result.x)


@np.errstate(over="ignore", invalid="ignore")  # what comes out is evaluated anew
def _polished(problem: Problem, state: DistanceState, point: Array, row: Array) -> DistanceState:
    """Try a solver's point, and the nearest point of the same cell with the same margin."""
    net = problem.network
    pattern = net.pattern(point)
    _, sides = varying_sides(net, pattern)
    A, c = net.affine_of_pattern(pattern)
    form, offset = row @ A, float(row @ c)
    G, h = problem.box_rows()
    state = state.tried(problem, beyond(problem, point, form))
    rows, limits = np.vstack([sides[:, :-1], G, form]), np.concatenate([-sides[:, -1], h, [-offset]])
    try:
        return state.tried_on(problem, rows, limits)[0]
    except ArithmeticError:
        return state
