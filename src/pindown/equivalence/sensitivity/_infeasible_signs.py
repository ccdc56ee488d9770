r"""Can any input of a box give all these units the signs they are said to have? A proved no.

The linear program asks for the largest :math:`t \le 0` with
:math:`s_i z_i \ge t` for all units of known sign s, where activations are :math:`z_i` of units that
are on, 0 of those that are off, and between the lines of ``linear_bounds`` for others. If its optimum is
negative there is no such input, and the dual solution proves it: for any multipliers
:math:`p \ge 0` and q

.. math::
    -t \;\ge\; \sum_j \min_{l_j \le y_j \le u_j} (c + A^\top p + E^\top q)_j \, y_j
      - p \cdot b - q \cdot f,

computed with all roundings against us.

Neumaier and Shcherbina 2004, "Safe bounds in linear and mixed-integer linear programming".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.sensitivity._concave_quadratics import LOST
from pindown.equivalence.tuning import MAX_PROGRAM_SECONDS, MAX_UNKNOWNS, MIN_PROGRAM_SECONDS
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.programs import Attempt, linear_program
from pindown.relaxation.linear import linear_bounds
from pindown.relaxation.triangle import triangle_relaxation
from pindown.rounding import add_up, gamma

_MAX_NUMBER = 1e12  # numbers of a program: the solver's tolerances are absolute


def no_such_input(
    net: ReluNetwork, box: Box, signs: Sequence[Array], *, deadline: Deadline = NEVER
) -> bool:
    """Return whether it is proved that no input of the box gives these signs.

    Args:
        net: The network.
        box: The inputs.
        signs: For every hidden layer, per unit: 1 if ``z >= 0`` is asked for, -1 if ``z <= 0``, 0 if
            neither.
        deadline: When to stop.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [-1.0, -1.0]), ([[1.0, 1.0]], [0.0])])
    >>> box = Box([-2.0], [2.0])  # the units are on for x >= 1, and for x <= -1
    >>> no_such_input(net, box, [np.array([1.0, 1.0])]), no_such_input(net, box, [np.array([1.0, -1.0])])
    (True, False)
    """
    bounds = linear_bounds(net, box, deadline=deadline)
    for sign, (lower, upper) in zip(signs, bounds, strict=False):
        if np.any((sign > 0.0) & (upper < 0.0)) or np.any((sign < 0.0) & (lower > 0.0)):
            return True
    asked = [i for i, sign in enumerate(signs) if np.any(sign)]
    if not asked:
        return False
    # Deeper layers make the program larger and add little: without the last one first.
    depths = sorted({max(1, asked[-1]), asked[-1] + 1})
    return any(_infeasible(net, box, bounds, signs[:depth], deadline) for depth in depths)


@dataclass
class _Rows:
    """Rows of a linear program ``A y <= b``, collected."""

    A: list[Array] = field(default_factory=list)
    b: list[Array] = field(default_factory=list)

    def add(self, A: Array, b: Array) -> None:
        self.A.append(A)
        self.b.append(b)

    def stacked(self) -> tuple[Array, Array]:
        return np.vstack(self.A), np.concatenate(self.b)


@dataclass(frozen=True, eq=False)
class _Program:
    """Minimise -t, the last variable, over ``A y <= b``, ``E y = f`` and bounds."""

    upper: tuple[Array, Array]
    equal: tuple[Array, Array]
    low: Array
    high: Array


def _infeasible(
    net: ReluNetwork, box: Box, bounds: Sequence[Interval], signs: Sequence[Array], deadline: Deadline
) -> bool:
    from scipy.sparse import csr_array

    left = deadline.left
    unknowns = net.in_features + sum(len(sign) for sign in signs)
    if left < MIN_PROGRAM_SECONDS or unknowns > MAX_UNKNOWNS:
        return False
    program = _program(net, box, bounds, signs)
    (A, b), (E, f) = program.upper, program.equal
    if not all(np.all(np.abs(part) < _MAX_NUMBER) for part in (A, b, E, f, program.low, program.high)):
        return False
    cost = np.zeros(len(program.low))
    cost[-1] = -1.0
    # Dense rows leave nothing to presolve. Without a limit the solver may never return, nor hear Ctrl-C.
    found = linear_program(
        cost,
        csr_array(A),
        b,
        equal=(csr_array(E), f),
        lower=program.low,
        upper=program.high,
        attempts=Attempt("highs-ipm", presolve=False),
        time=min(left, MAX_PROGRAM_SECONDS),
    )
    if not found.solved or not found.value > 0.0:
        return False
    p, q = np.maximum(found.multipliers, 0.0), found.equal_multipliers
    return _proved_cost(program, cost, p, q) > 0.0


def _program(net: ReluNetwork, box: Box, bounds: Sequence[Interval], signs: Sequence[Array]) -> _Program:
    """Write down the program: inputs, activations of all layers but the last one asked about, and t."""
    widths = [len(sign) for sign in signs[:-1]]
    n = net.in_features + sum(widths) + 1
    low, high = np.zeros(n), np.zeros(n)
    low[: net.in_features], high[: net.in_features] = box.lower, box.upper
    # Far enough for every row to hold: no unit is further from its sign than its bounds are.
    low[-1] = -1.0 - max(float(np.max(np.abs(end), initial=0.0)) for pair in bounds for end in pair)
    upper, equal = _Rows(), _Rows()
    equal.add(np.zeros((0, n)), np.zeros(0))
    start, after = 0, net.in_features
    for i, sign in enumerate(signs):
        W, b = dense(net.layers[i].weight), net.layers[i].bias
        z = np.zeros((len(W), n))
        z[:, start : start + W.shape[1]] = W
        known = np.flatnonzero(sign)
        rows = -sign[known, None] * z[known]
        rows[:, -1] = 1.0
        upper.add(rows, sign[known] * b[known])
        if i < len(signs) - 1:
            _add_layer(upper, equal, z, b, sign, bounds[i], after)
            here = slice(after, after + len(W))
            low[here] = np.where(sign > 0.0, bounds[i].lower, 0.0)
            high[here] = np.where(sign < 0.0, 0.0, np.maximum(bounds[i].upper, 0.0))
        start, after = after, after + len(W)
    return _Program(upper.stacked(), equal.stacked(), low, high)


def _add_layer(
    upper: _Rows, equal: _Rows, z: Array, b: Array, sign: Array, bounds: Interval, after: int
) -> None:
    """Tie the activations of a layer, from variable ``after`` on, to what enters it."""
    a = np.zeros_like(z)
    a[np.arange(len(b)), after + np.arange(len(b))] = 1.0
    on, free = np.flatnonzero(sign > 0.0), np.flatnonzero(sign == 0.0)
    equal.add(a[on] - z[on], b[on])
    upper.add(z[free] - a[free], -b[free])
    _, slope, shift = triangle_relaxation(Interval(bounds.lower[free], bounds.upper[free]))
    offset = add_up(shift, np.nextafter(slope * b[free], inf))
    upper.add(a[free] - slope[:, None] * z[free], offset)


def _proved_cost(program: _Program, cost: Array, p: Array, q: Array) -> float:
    """Return a proved lower bound on the optimum, from any multipliers ``p >= 0`` and q."""
    (A, b), (E, f) = program.upper, program.equal
    reduced = cost + A.T @ p + E.T @ q
    terms = len(p) + len(q) + 4
    # Entries of A may carry one rounding; so the sums of products are a little further off.
    error = 2.0 * gamma(terms) * (np.abs(cost) + np.abs(A).T @ p + np.abs(E).T @ np.abs(q))
    reach = np.maximum(np.abs(program.low), np.abs(program.high))
    least = np.minimum(reduced * program.low, reduced * program.high)
    constant = p @ b + q @ f
    sizes = p @ np.abs(b) + np.abs(q) @ np.abs(f) + np.sum(np.abs(least))
    slack = 2.0 * float(error @ reach) + 4.0 * gamma(terms + len(least)) * float(sizes)
    value = float(np.sum(least) - constant) - slack
    return value if LOST < value < inf else -inf
