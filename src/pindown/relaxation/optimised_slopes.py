r"""Linear bounds with optimised slopes: margins over balls of inputs, proved.

Any slope in [0, 1] below a ReLU of open sign gives a proved bound. Where the usual ones do not suffice,
they are improved by gradient steps, for each margin on its own.

Xu et al. 2021, "Fast and complete: enabling complete verification with massively parallel incomplete
verifiers" (optimised slopes, alpha-CROWN).
"""

from __future__ import annotations

from math import inf

import numpy as np

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.network import ReluNetwork
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.linear_on_balls import (
    RelaxedBalls,
    dot,
    output_bounds,
    output_forms,
    relax_balls,
)
from pindown.relaxation.lp_balls import Balls
from pindown.relaxation.tuning import SLOPE_BLOCK_ENTRIES, SLOPE_STEP_SHARES


def margin_bounds(
    net: ReluNetwork,
    balls: Balls,
    rows: Array,
    *,
    improve: bool = True,
    goal: float = 0.0,
    deadline: Deadline = NEVER,
) -> Array:
    """Bound ``rows[i] @ f`` from above on ball i, (n, q).

    Args:
        net: The network.
        balls: The inputs, n balls.
        rows: Linear forms of the outputs, (n, q, k).
        improve: Whether to optimise the slopes of forms that stay at or above the goal.
        goal: What the bounds should get below.
        deadline: When to stop tightening; bounds are looser then.

    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [2, 1]), ([[1.0, -1.0]], [0])])  # 1 for x > -1
    >>> balls = Balls.around(np.array([[4.0]]), np.array([3.0]), "linf")
    >>> margin_bounds(net, balls, np.array([[[1.0]]])).round(9)
    array([[1.]])

    Zhang et al. 2018, Theorem 3.2; Xu et al. 2021, section 3.2.
    """
    return _refined_bounds(relax_balls(net, balls, deadline=deadline), rows, improve, goal, deadline)


def margin_forms(
    net: ReluNetwork, balls: Balls, rows: Array, *, deadline: Deadline = NEVER
) -> tuple[Array, LinearForms]:
    """Bound ``rows[i] @ f`` from above on ball i, (n, q), and return the forms behind the bounds."""
    known = relax_balls(net, balls, deadline=deadline)
    forms = output_forms(known, rows)
    return output_bounds(known, forms, rows), forms


def _refined_bounds(
    known: RelaxedBalls, rows: Array, improve: bool, goal: float, deadline: Deadline
) -> Array:
    """Bound margins with the usual slopes, and those that stay above the goal with better ones."""
    forms = output_forms(known, rows)
    upper = output_bounds(known, forms, rows)
    left = np.argwhere(np.isfinite(upper) & (upper >= goal) & (improve and bool(known.lines)))
    step = max(1, SLOPE_BLOCK_ENTRIES // (len(known.lines) * max(known.net.widths) + 1))
    for start in range(0, len(left), step):
        if deadline.passed:
            break
        ball, row = left[start : start + step].T
        few, own = known.take(ball), rows[ball, row][:, None]
        slopes = _optimised(few, own, goal, deadline)
        again = few.balls.largest(output_forms(few, own, slopes))[:, 0]
        upper[ball, row] = np.minimum(upper[ball, row], again)
    return upper


def _optimised(known: RelaxedBalls, rows: Array, goal: float, deadline: Deadline) -> tuple[Array, ...]:
    """Return slopes (n, q, m) for each hidden layer that bring the bounds down, not rounded safely."""
    n, q, _ = rows.shape
    slopes = [np.repeat(line.lower[:, None], q, axis=1) for line in known.lines]
    best, lowest = [s.copy() for s in slopes], np.full((n, q), inf)
    free = [(line.slope > 0) & (line.slope < 1) for line in known.lines]
    for rate in (*SLOPE_STEP_SHARES, 0.0):
        value, gradients = _slope_gradients(known, rows, slopes)
        better = value < lowest
        lowest = np.where(better, value, lowest)
        for kept, now in zip(best, slopes, strict=True):
            kept[better] = now[better]
        if rate == 0.0 or np.all(lowest < goal) or deadline.passed:
            break
        for s, gradient, mask in zip(slopes, gradients, free, strict=True):
            g = np.nan_to_num(gradient)  # any slopes give a bound, also where gradients leave float64
            scale = np.max(np.abs(g), axis=2, keepdims=True)
            # Between the gradient and its sign: units with small gradients still move.
            move = np.sign(g) * np.sqrt(np.abs(g) / np.where(scale > 0, scale, 1.0))
            np.clip(s - rate * move * mask[:, None], 0.0, 1.0, out=s)
    return tuple(best)


def _slope_gradients(known: RelaxedBalls, rows: Array, slopes: list[Array]) -> tuple[Array, list[Array]]:
    """Return the bounds (n, q) to rounding and their gradients with respect to the slopes."""
    layers, lines = known.net.layers, known.lines
    n, q, _ = rows.shape
    A, c = rows, np.zeros((n, q))
    met: list[Array] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(len(layers) - 1, -1, -1):
            if i < len(lines):
                met.append(A)
                c = c + dot(np.maximum(A, 0.0), lines[i].shift)
                A = A * np.where(A > 0, lines[i].slope[:, None], slopes[i])
            c = c + A @ layers[i].bias
            A = layers[i].pull_back(A.reshape(n * q, -1)).reshape(n, q, layers[i].in_features)
        point = known.balls.farthest(A)
        value = np.einsum("nqd,nqd->nq", A, point) + c
        # The same lines forth: what each unit is, in the relaxation, where the bound is attained.
        gradients, a = [], point
        for layer, line, slope, B in zip(layers[:-1], lines, slopes, met[::-1], strict=True):
            z = layer(a.reshape(n * q, -1)).reshape(n, q, layer.out_features)
            gradients.append(np.minimum(B, 0.0) * z)
            a = np.where(B > 0, line.slope[:, None] * z + line.shift[:, None], slope * z)
    return value, gradients
