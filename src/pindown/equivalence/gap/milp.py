r"""The largest gap as two mixed-integer programs per output, solved by HiGHS.

The difference network on the box is written with one binary variable for each unit whose sign is open,
and :math:`\pm(a_k - b_k)` is maximised. If time ends, the solver's dual bound still bounds the gap. All
bounds are widened by what the solver's tolerance can do, as
:class:`~pindown.geometry.conditions.big_m.Encoding` says.

Tjeng, Xiao and Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming".
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.equivalence.gap.difference import Difference, difference
from pindown.equivalence.gap.state import GapState
from pindown.equivalence.gap.witness import proved_gap
from pindown.geometry.box import Box
from pindown.geometry.conditions.big_m import SOLVER_TOLERANCE, Encoding, encode, unit_sizes
from pindown.geometry.intervals import interval_bounds
from pindown.geometry.linear_bounds import linear_bounds
from pindown.geometry.rounding import add_up
from pindown.network import ReluNetwork

# HiGHS looks at its clock now and then only, and building the model takes time.
_SOLVER_SHARE = 0.9
_BOUNDS_SHARE = 0.3  # of the time, what bounds that make programs smaller may take
_ROOM = 1.0 + 2.0**-40  # for the rounding of scaled bounds, far below the tolerance of the solver
_SLOPE_TOLERANCE = 1e-7  # HiGHS takes a slope of an objective of size one for zero below this
_SHORTEST = 0.01  # seconds; HiGHS takes 0 for no limit


class _Solved(NamedTuple):
    """Largest value of one signed output: what was attained, what is proved, and all variables."""

    attained: float
    bound: float
    point: Array | None


def open_units(a: ReluNetwork, b: ReluNetwork, box: Box, *, deadline: float = inf) -> int:
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
    began = time.monotonic()
    until = began + _BOUNDS_SHARE * budget
    joint = difference(a, b, box, deadline=until)
    encoding = None if joint is None else _tight_encoding(joint, box, until)
    if joint is None or encoding is None:
        return GapState()
    upper, best, where = 0.0, 0.0, None
    jobs = [(k, sign) for k in range(a.out_features) for sign in (1.0, -1.0)]
    for i, (k, sign) in enumerate(jobs):
        left = budget - (time.monotonic() - began)
        if left <= 0:
            upper = inf
            break
        found = _solve(encoding, k, sign, _SOLVER_SHARE * left / (len(jobs) - i))
        upper = max(upper, float(add_up(add_up(found.bound, encoding.error[k]), joint.error[k])))
        if found.point is not None and found.attained >= best:
            point = encoding.inputs(found.point)
            best, where = found.attained, np.clip(point, box.lower, box.upper)
    lower = 0.0 if where is None else proved_gap(a, b, where)
    return GapState().narrowed(time.monotonic() - began, "milp", lower=lower, upper=upper, witness=where)


def _solve(encoding: Encoding, output: int, sign: float, seconds: float) -> _Solved:
    """Maximise ``sign`` times an output over the encoding."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    row = encoding.output.weight[[output]].toarray().reshape(-1)
    offset = sign * float(encoding.output.bias[output])
    # The solver's tolerance for slopes is absolute, and counts once for every variable.
    scale = float(np.max(np.abs(row))) or 1.0
    doubt = scale * max(SOLVER_TOLERANCE, _SLOPE_TOLERANCE * len(row))
    result = milp(
        -sign * (row / scale),
        constraints=LinearConstraint(encoding.rows, encoding.row_lower, encoding.row_upper),
        bounds=Bounds(encoding.lower, encoding.upper),
        integrality=encoding.integrality,
        options={"time_limit": max(seconds, _SHORTEST), "mip_rel_gap": 0.0},
    )
    dual = getattr(result, "mip_dual_bound", None)
    if dual is None and result.status == 0:  # a linear program, solved
        dual = result.fun
    bound = inf if dual is None or not np.isfinite(dual) else offset - scale * float(dual) + doubt
    if result.x is None:
        return _Solved(-inf, bound, None)
    return _Solved(offset - scale * float(result.fun), bound, np.asarray(result.x))


def _tight_encoding(joint: Difference, box: Box, deadline: float) -> Encoding | None:
    """Encode the difference, variables narrowed by linear bounds."""
    plain = encode(joint.net, box)
    if plain is None:
        return None
    wide = interval_bounds(joint.net, box)
    tight = linear_bounds(joint.net, box, deadline=deadline)
    upper = plain.upper.copy()
    lower = plain.lower.copy()
    place = box.dim
    binary = box.dim + joint.net.size
    for z, own in zip(wide[:-1], tight[:-1], strict=True):
        size = unit_sizes(z)
        end = place + len(size)
        upper[place:end] = np.minimum(upper[place:end], np.maximum(own.upper, 0.0) / size * _ROOM)
        place = end
        was_open = (z.lower < 0) & (z.upper > 0)
        switches = slice(binary, binary + int(was_open.sum()))
        lower[switches] = np.where(own.lower[was_open] >= 0, 1.0, 0.0)
        upper[switches] = np.where(own.upper[was_open] <= 0, 0.0, 1.0)
        binary = switches.stop
    both = (lower == 1.0) & (upper == 0.0) & (plain.integrality == 1)
    lower[both] = 0.0  # a unit that is 0 everywhere
    return replace(plain, lower=lower, upper=upper)
