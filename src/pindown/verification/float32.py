"""What a witness is worth in float32: most runtimes round every weight, input and sum to it.

A point just behind a boundary in real numbers may be before it there. So results say what their margin
is when it is evaluated so, in NumPy's order of sums; another runtime sums in another order, and differs
by about as much as float32 does from float64.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array, dense
from pindown.network import ReluNetwork
from pindown.relaxation.lp_norms import lengths, steepest_step
from pindown.verification.classes import margin_slopes
from pindown.verification.distance_state import Problem, distance_up

_STEPS = 10.0 ** np.arange(-9, -1.75, 0.25)  # shares of the distance to step further in


def float32_outputs(net: ReluNetwork, X: Array) -> Array:
    """Evaluate rows (n, d) with weights, inputs and sums rounded to float32.

    >>> net = ReluNetwork.from_layers([([[1.0]], [-1])])
    >>> net([1 + 1e-9])[0] > 0, float32_outputs(net, np.array([[1 + 1e-9]]))[0, 0] > 0
    (np.True_, np.False_)
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        a = X.astype(np.float32)
        for i, (W, b) in enumerate(net.layers):
            a = np.maximum(a, np.float32(0.0)) if i else a
            a = a @ dense(W).astype(np.float32).T + b.astype(np.float32)
    return np.asarray(a, dtype=np.float64)


@np.errstate(over="ignore", invalid="ignore")
def float32_margins(problem: Problem, points: Array) -> Array:
    """Return the class's output minus the best other one, evaluated in float32, (n,)."""
    return np.asarray((float32_outputs(problem.net, points) @ problem.differences.T).min(axis=1))


@np.errstate(over="ignore", invalid="ignore")
def stepped_in(problem: Problem, witness: Array) -> Array | None:
    """Return the nearest point found beyond a witness that has another class in float32 as well.

    Its margin is twice the largest difference of float32 and float64 that was seen nearby, so that other
    orders of sums agree as a rule. None if no step of up to 1 % of the distance leads to one.
    """
    slope = margin_slopes(problem.net, witness[None], np.array([problem.label])).gradient[0]
    way = float(lengths(witness - problem.x, problem.norm))
    steps = np.concatenate([[0.0], _STEPS])[:, None]
    points = np.concatenate(
        [
            witness - steps * way * steepest_step(slope, problem.norm),
            witness + steps * (witness - problem.x),
        ]
    )
    if problem.box is not None:
        points = np.clip(points, problem.box.lower, problem.box.upper)
    margins = float32_margins(problem, points)
    rounding = np.abs(margins - (problem.net(points) @ problem.differences.T).min(axis=1)).max()
    good = np.flatnonzero((margins < 0.0) & (margins <= -2.0 * rounding) & problem.changed(points))
    if not len(good):
        return None
    gaps = [distance_up(points[i], problem.x, problem.norm) for i in good]
    best = points[good[int(np.argmin(gaps))]].copy()
    best.flags.writeable = False
    return best
