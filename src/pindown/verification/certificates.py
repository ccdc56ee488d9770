r"""Is the class the same on a whole ball? Proved yes, or not known.

Margins are bounded by linear relaxation. Where that does not suffice, the slopes below the open ReLUs
are improved by gradient steps, for each margin on its own; any slopes in [0, 1] give a proved bound.

Xu et al. 2021, "Fast and complete: enabling complete verification with massively parallel incomplete
verifiers" (optimised slopes).
"""

from __future__ import annotations

import time
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.network import ReluNetwork
from pindown.relaxation.balls import Balls
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.lp_norms import as_norm
from pindown.relaxation.margins import (
    RelaxedBalls,
    balls_at_once,
    dot,
    interval_margins,
    output_bounds,
    output_forms,
    relax_balls,
)
from pindown.verification.classes import as_classes, classifier, margin_rows, predicted
from pindown.verification.inputs import BoxLike, as_inputs, as_radii

_RATES = (0.5, 0.35, 0.25, 0.15, 0.1, 0.06, 0.03)  # steps, in shares of the range [0, 1] of a slope
_FEWEST_TOGETHER = 32  # balls whose margins are carried back in one product, also for wide networks
_BLOCK_ENTRIES = 2**21  # numbers of one layer's forms in a round of gradient steps: 16 MB


def margin_bounds(
    net: ReluNetwork,
    balls: Balls,
    rows: Array,
    *,
    improve: bool = True,
    goal: float = 0.0,
    deadline: float = inf,
) -> Array:
    """Bound ``rows[i] @ f`` from above on ball i, (n, q).

    Args:
        net: The network.
        balls: The inputs, n balls.
        rows: Linear forms of the outputs, (n, q, k).
        improve: Whether to optimise the slopes of forms that stay at or above the goal.
        goal: What the bounds should get below.
        deadline: When to stop tightening, as ``time.monotonic()`` counts; bounds are looser then.

    >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [2, 1]), ([[1.0, -1.0]], [0])])  # 1 for x > -1
    >>> balls = Balls.around(np.array([[4.0]]), np.array([3.0]), "linf")
    >>> margin_bounds(net, balls, np.array([[[1.0]]])).round(9)
    array([[1.]])

    Zhang et al. 2018, Theorem 3.2; Xu et al. 2021, section 3.2.
    """
    return _refined_bounds(relax_balls(net, balls, deadline=deadline), rows, improve, goal, deadline)


def margin_forms(
    net: ReluNetwork, balls: Balls, rows: Array, *, deadline: float = inf
) -> tuple[Array, LinearForms]:
    """Bound ``rows[i] @ f`` from above on ball i, (n, q), and return the forms behind the bounds."""
    known = relax_balls(net, balls, deadline=deadline)
    forms = output_forms(known, rows)
    return output_bounds(known, forms, rows), forms


def _refined_bounds(
    known: RelaxedBalls, rows: Array, improve: bool, goal: float, deadline: float
) -> Array:
    """Bound margins with the usual slopes, and those that stay above the goal with better ones."""
    forms = output_forms(known, rows)
    upper = output_bounds(known, forms, rows)
    left = np.argwhere(np.isfinite(upper) & (upper >= goal) & (improve and bool(known.lines)))
    step = max(1, _BLOCK_ENTRIES // (len(known.lines) * max(known.net.widths) + 1))
    for start in range(0, len(left), step):
        if time.monotonic() > deadline:
            break
        ball, row = left[start : start + step].T
        few, own = known.take(ball), rows[ball, row][:, None]
        slopes = _optimised(few, own, goal, deadline)
        again = few.balls.largest(output_forms(few, own, slopes))[:, 0]
        upper[ball, row] = np.minimum(upper[ball, row], again)
    return upper


def certified(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    radius: ArrayLike,
    norm: str = "linf",
    box: BoxLike = None,
    method: str = "linear",
    deadline: float = inf,
) -> NDArray[np.bool_]:
    """Return for each input whether its class is proved to be y on the whole ball around it, (n,).

    Args:
        net: The network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        radius: Radius of the balls, for all inputs or for each, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        box: Where inputs lie, if not anywhere: balls are cut to it. X must lie in it.
        method: ``"interval"``, ``"linear"``, or ``"optimised"`` (linear with optimised slopes).
        deadline: When to stop, as ``time.monotonic()`` counts; what is not decided then is False.

    Returns:
        True is a proof, also for rounded arithmetic; False only means that none was found. A tie
        with another output is no proof.

    Raises:
        ValueError: If shapes, labels, radius, norm, method or box do not fit.

    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> certified(net, [[3.0, 4.0]], radius=2.857), certified(net, [[3.0, 4.0]], radius=2.858)
    (array([ True]), array([False]))

    Zhang et al. 2018, section 3; Xu et al. 2021.
    """
    if method not in ("interval", "linear", "optimised"):
        raise ValueError(f"method must be 'interval', 'linear' or 'optimised'; got {method!r}.")
    deep = classifier(net)
    inputs, limits = as_inputs(deep, X, box)
    labels = predicted(deep, inputs) if y is None else as_classes(y, len(inputs), deep.out_features)
    balls = Balls.around(inputs, as_radii(radius, len(inputs)), as_norm(norm), limits)
    found = np.zeros(len(inputs), bool)
    step = max(balls_at_once(deep), _FEWEST_TOGETHER)
    for start in range(0, len(inputs), step):
        if time.monotonic() > deadline:
            break
        part = slice(start, start + step)
        rows = margin_rows(labels[part], deep.out_features)
        if method == "interval":
            upper = interval_margins(deep, balls.take(part), rows)
        else:
            improve = method == "optimised"
            upper = margin_bounds(deep, balls.take(part), rows, improve=improve, deadline=deadline)
        found[part] = (upper < 0.0).all(axis=1)
    return found


def _optimised(known: RelaxedBalls, rows: Array, goal: float, deadline: float) -> tuple[Array, ...]:
    """Return slopes (n, q, m) for each hidden layer that bring the bounds down, not rounded safely."""
    n, q, _ = rows.shape
    slopes = [np.repeat(line.lower[:, None], q, axis=1) for line in known.lines]
    best, lowest = [s.copy() for s in slopes], np.full((n, q), inf)
    free = [(line.slope > 0) & (line.slope < 1) for line in known.lines]
    for rate in (*_RATES, 0.0):
        value, gradients = _slope_gradients(known, rows, slopes)
        better = value < lowest
        lowest = np.where(better, value, lowest)
        for kept, now in zip(best, slopes, strict=True):
            kept[better] = now[better]
        if rate == 0.0 or np.all(lowest < goal) or time.monotonic() > deadline:
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
