r"""The largest gap as two mixed-integer programs per output, solved by HiGHS.

The difference network on the box is written with one binary variable for each unit whose sign is open,
and :math:`\pm(a_k - b_k)` is maximised. If time ends, the solver's dual bound still bounds the gap. All
bounds are widened by what the solver's tolerance can do, as
:class:`~pindown.relaxation.mixed_integer.Encoding` says.

Tjeng, Xiao and Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming".
"""

from __future__ import annotations

from math import inf, nextafter
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.tuning import PROGRAM_BOUNDS_SHARE, PROGRAM_SOLVER_SHARE
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.programs import SOLVER_TOLERANCE, integer_program
from pindown.relaxation.difference_network import difference
from pindown.relaxation.differential import proved_gap
from pindown.relaxation.linear import linear_bounds
from pindown.relaxation.mixed_integer import Encoding, tight_encoding
from pindown.rounding import add_up

_SLOPE_TOLERANCE = 1e-7  # HiGHS takes a slope of an objective of size one for zero below this
_MIN_SECONDS = 0.01  # seconds; HiGHS takes 0 for no limit


class Solved(NamedTuple):
    """Largest value of one signed output: what was attained, what is proved, and all variables."""

    attained: float
    bound: float
    point: Array | None


def open_units(a: ReluNetwork, b: ReluNetwork, box: Box, *, deadline: Deadline = NEVER) -> int:
    """Count the units of both networks whose sign linear bounds leave open."""
    return sum(
        int(((z.lower < 0) & (z.upper > 0)).sum())
        for net in (a, b)
        for z in linear_bounds(net, box, deadline=deadline)[:-1]
    )


def gap_by_milp(a: ReluNetwork, b: ReluNetwork, box: Box, *, budget: float = 60.0) -> GapState:
    """Bound the largest gap on a box by mixed-integer programs.

    Args:
        a: A network, with few units of open sign on the box.
        b: One with as many inputs and outputs.
        box: The inputs.
        budget: Seconds for all programs together.

    Returns:
        Proved bounds, up to HiGHS itself, whose tolerance is added; the point is evaluated anew.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -1.0)]
        >>> state = gap_by_milp(*nets, Box([-2], [2]))
        >>> round(state.lower, 4), round(state.upper, 4)
        (1.0, 1.0)

    Tjeng, Xiao and Tedrake 2019, section 4.
    """
    deadline = Deadline.after(budget)
    soon = deadline.share(PROGRAM_BOUNDS_SHARE)
    joint = difference(a, b, box, deadline=soon)
    encoding = None if joint is None else tight_encoding(joint.net, box, deadline=soon)
    if joint is None or encoding is None:
        return GapState()
    upper, best, where = 0.0, 0.0, None
    jobs = [(k, sign) for k in range(a.out_features) for sign in (1.0, -1.0)]
    for i, (k, sign) in enumerate(jobs):
        if deadline.passed:
            upper = inf
            break
        found = largest_output(encoding, k, sign, PROGRAM_SOLVER_SHARE * deadline.left / (len(jobs) - i))
        upper = max(upper, float(add_up(add_up(found.bound, encoding.error[k]), joint.error[k])))
        if found.point is not None and found.attained >= best:
            point = encoding.inputs(found.point)
            best, where = found.attained, np.clip(point, box.lower, box.upper)
    lower = 0.0 if where is None else proved_gap(a, b, where)
    return GapState() & Bracket(lower, upper, where)


def largest_output(encoding: Encoding, output: int, sign: float, seconds: float) -> Solved:
    """Maximise ``sign`` times an output over the encoding; ``encoding.error`` is still to be added."""
    row = encoding.output.weight[[output]].toarray().reshape(-1)
    offset = sign * float(encoding.output.bias[output])
    # The solver's tolerance for slopes is absolute, and counts once for every variable.
    scale = float(np.max(np.abs(row))) or 1.0
    doubt = scale * max(SOLVER_TOLERANCE, _SLOPE_TOLERANCE * len(row))
    result = integer_program(
        -sign * (row / scale),
        encoding.constraints,
        encoding.integrality,
        lower=encoding.lower,
        upper=encoding.upper,
        time=max(seconds, _MIN_SECONDS),
    )
    bound = inf
    if result.bound > -inf:
        bound = float(add_up(add_up(offset, nextafter(-scale * result.bound, inf)), doubt))
    if result.x is None:
        return Solved(-inf, bound, None)
    return Solved(offset - scale * result.value, bound, result.x)
