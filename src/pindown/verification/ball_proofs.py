r"""Is the class of an input the same on a whole ball around it? For every model, ball by ball.

The class stays c on a ball if no rival output reaches output c there,

.. math::
    \max_{\|x' - x\| \le \epsilon} \; f_j(x') - f_c(x') < 0 \quad \text{for all } j \ne c .

*Quick* bounds carry all margins of many balls back at once. What they leave open is decided ball by ball
by the engine of :func:`~pindown.verification.verify`: in linf by the whole portfolio, in l1 and l2 by
linear bounds on the ball with optimised slopes and splits of ReLUs. How far that goes is said in turns,
each twice as long as the one before, so that the clock changes no step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.from_network import model_of_network
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import Interval, charged, dot_up
from pindown.model.operations.relu import Relu
from pindown.model.sparse_layers import with_sparse_layers
from pindown.network import ReluNetwork
from pindown.progress import silent
from pindown.relaxation.linear_on_balls import balls_at_once, interval_margins, margin_bounds
from pindown.relaxation.lp_balls import Balls, Norm, length_up
from pindown.relaxation.model_bounds import tighten
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.rounding import add_up
from pindown.verification.classes import margin_rows
from pindown.verification.portfolio import Run, _Units
from pindown.verification.properties import Property, UnsafeSet
from pindown.verification.tuning import (
    MAX_BALLS_TOGETHER,
    MIN_BALLS_TOGETHER,
    MODEL_BALLS_NUMBERS,
    SPLIT_FIRST_PARTS,
)


class Ball(NamedTuple):
    """A question: is the class the same on the whole ball?

    Attributes:
        x: Its centre, (d,).
        label: The class.
        radius: Radius of the ball.
        norm: In which lengths are measured.
        box: Where inputs lie besides, or None.
    """

    x: Array
    label: int
    radius: float
    norm: Norm
    box: Box | None


class Decided(NamedTuple):
    """What is known of a ball.

    Attributes:
        proved: Whether the class is proved to be the same everywhere.
        witness: An input of the ball that surely has another class, (d,), or None.
        bound: A proved lower bound on the margin, as far as it came; larger ones promise more.
    """

    proved: bool
    witness: Array | None
    bound: float


def bounded_form(net: AnyModel, caller: str) -> ReluNetwork | Model:
    """Return what quick bounds are computed on: matrices where a model is a chain of them, else itself.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> type(bounded_form(model_of_network(net), "an example")).__name__
    'ReluNetwork'
    """
    if isinstance(net, ReluNetwork):
        return net
    model = as_model(net, caller).scores()
    chain = all(
        isinstance(node.operation, (Dense, Relu, Reshape)) and node.inputs == (i,)
        for i, node in enumerate(model.nodes)
    )
    return model.relu_network() if chain else model


def engine_form(net: ReluNetwork | Model) -> Model:
    """Return the model that the engine of ``verify`` works on."""
    return with_sparse_layers(model_of_network(net) if isinstance(net, ReluNetwork) else net)


# ---------------------------------------------------------------------- many balls at once


def together(net: ReluNetwork | Model) -> int:
    """Return how many balls to bound at once."""
    if isinstance(net, ReluNetwork):
        return max(balls_at_once(net), MIN_BALLS_TOGETHER)
    largest = max(net.in_features, *(math.prod(node.shape) for node in net.nodes))
    return int(np.clip(MODEL_BALLS_NUMBERS // largest, 1, MAX_BALLS_TOGETHER))


def quick_margins(
    net: ReluNetwork | Model, balls: Balls, rows: Array, method: str, deadline: Deadline = NEVER
) -> Array:
    """Bound ``rows[i] @ f`` from above on ball i, (n, q), rows (n, q, k).

    Args:
        net: A network, or any model.
        balls: The inputs.
        rows: Forms of the outputs.
        method: ``"interval"`` or ``"linear"``.
        deadline: When to stop tightening; bounds are looser then.
    """
    if isinstance(net, ReluNetwork):
        if method == "interval":
            return interval_margins(net, balls, rows)
        return margin_bounds(net, balls, rows, deadline=deadline)
    box, cut = Interval(balls.lower, balls.upper), None if balls.norm == "linf" else balls
    relaxed = RelaxedModel.by_intervals(net, box, cut)
    form, index = rows.reshape(*rows.shape[:2], *net.output_shape), len(net.nodes)
    if method != "interval":
        tighten(relaxed, deadline=deadline)
    upper = dot_up(form, relaxed.values[index])
    if index:  # the last step is mostly affine: what outputs have in common is kept
        pulled = relaxed.relaxation(index).upper(form)
        upper = np.minimum(upper, _summed_ends(relaxed, pulled.forms, pulled.offset))
    return upper if method == "interval" else np.minimum(upper, relaxed.upper_ends(index, form))


def _summed_ends(relaxed: RelaxedModel, forms: tuple[Array, ...], offset: Array) -> Array:
    """Bound forms of what enters the last node, where each input lies in its own box."""
    for j, part in zip(relaxed.model.nodes[-1].inputs, forms, strict=True):
        end = dot_up(part, relaxed.values[j])
        offset = charged(offset + end, np.abs(offset) + np.abs(end), 1)
    return offset


def margins_at(net: ReluNetwork | Model, points: Array, label: int) -> Array:
    """Bound output ``label`` minus the best other one from above at points (n, d), rounding included."""
    balls = Balls.around(points, np.zeros(len(points)), "linf")
    rows = -margin_rows(np.array([label]), net.out_features)
    every = np.broadcast_to(rows, (len(points), *rows.shape[1:]))
    step = together(net)
    parts = [slice(start, start + step) for start in range(0, len(points), step)]
    ends = [quick_margins(net, balls.take(part), every[part], "interval") for part in parts]
    return np.concatenate(ends).min(axis=1) if ends else np.zeros(0)


def distance_up(point: Array, x: Array, norm: Norm) -> float:
    """Return the distance of two points, rounded up."""
    return length_up(np.maximum(add_up(point, -x), add_up(x, -point)), norm)


# ---------------------------------------------------------------------- one ball


def decide(
    model: Model, ball: Ball, turns: int, *, seed: int = 0, deadline: Deadline = NEVER
) -> Decided:
    """Prove that the class is the same on a ball, or find an input of another one, or neither.

    Args:
        model: A model with at least two outputs.
        ball: The question.
        turns: How many turns to take; 1 are linear bounds with optimised slopes and few splits.
        seed: Seed of the search for inputs of another class.
        deadline: When to stop.

    Example:
        The class is whether ``|x| > 2``:

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [-2])])
        >>> from pindown.verification.classes import classifier
        >>> model = engine_form(classifier(net))
        >>> [decide(model, Ball(np.array([0.5]), 0, r, "l2", None), 1).proved for r in (1.4, 1.6)]
        [True, False]
    """
    if ball.norm == "linf":
        return _by_portfolio(model, ball, turns, seed, deadline)
    return _by_units(model, ball, turns, deadline)


def _by_portfolio(model: Model, ball: Ball, turns: int, seed: int, deadline: Deadline) -> Decided:
    prop = Property.robust(ball.x, ball.label, ball.radius, n_outputs=model.out_features, box=ball.box)
    found = Run(model, prop, deadline, seed, 1, silent, None, turns=turns).decided()
    if found.interrupted:
        raise KeyboardInterrupt
    point = found.witness  # it may tie, which is no other class
    sure = point is not None and margins_at(model, point[None], ball.label)[0] < 0.0
    return Decided(found.verdict == "holds", point if sure else None, found.bound)


def _by_units(model: Model, ball: Ball, turns: int, deadline: Deadline) -> Decided:
    """Split ReLUs on a ball of any norm, for as many parts as the portfolio would."""
    balls = Balls.around(ball.x[None], np.array([ball.radius]), ball.norm, ball.box)
    rows = -margin_rows(np.array([ball.label]), model.out_features)[0]
    sets = {
        j: UnsafeSet(balls.lower[0], balls.upper[0], row[None], np.zeros(1))
        for j, row in enumerate(rows)
    }
    units = _Units.of(model, sets, balls)
    assert units is not None  # there is one box
    most = SPLIT_FIRST_PARTS * (2**turns - 1)
    while sets and units.n_parts < most and not units.exhausted and not deadline.passed:
        units.round(sets, deadline, 1)
        for s in units.proved & sets.keys():
            del sets[s]
        if units.corners is not None:
            point = _other_class(model, ball, units.corners[0])
            if point is not None:
                return Decided(False, point, -np.inf)
    return Decided(not sets, None, -units.bound)


def _other_class(model: Model, ball: Ball, points: Array) -> Array | None:
    """Return one of some points that surely lies in the ball and surely has another class, or None."""
    with np.errstate(all="ignore"):
        other = np.argmax(model.evaluate(points).reshape(len(points), -1), axis=1) != ball.label
    return next((p.copy() for p in points[other] if surely_other(model, ball, p)), None)


def surely_other(net: ReluNetwork | Model, ball: Ball, point: Array) -> bool:
    """Return whether a point surely lies in the ball and surely has another class."""
    near = distance_up(point, ball.x, ball.norm) <= ball.radius
    return near and bool(margins_at(net, point[None], ball.label)[0] < 0.0)
