"""The parts of ``verify`` one by one: what each of them proves alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pindown.deadline import NEVER
from pindown.model.from_network import model_of_network
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import Interval
from pindown.model.operations.relu import Relu
from pindown.network import ReluNetwork
from pindown.relaxation.forward_bounds import tighten_forwards
from pindown.relaxation.lp_balls import Balls
from pindown.relaxation.model_bounds import tighten, upper_ends
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification.box_splitting import BoxSplitting
from pindown.verification.deduction import Deduction, goal_of
from pindown.verification.properties import UnsafeSet
from pindown.verification.unit_splitting import UnitSplitting


def forward_bounds(net: ReluNetwork, lower: np.ndarray, upper: np.ndarray) -> list[Interval]:
    """Return bounds on what enters every layer of ReLUs, and on the outputs, carried forwards."""
    model = model_of_network(net)
    relaxed = RelaxedModel.by_intervals(model, Interval(lower[None], upper[None]))
    tighten_forwards(relaxed)
    used = [
        i for i, node in enumerate(model.nodes, 1) if not isinstance(node.operation, (Relu, Reshape))
    ]
    return [Interval(*(end.ravel() for end in relaxed.values[i])) for i in used]


def ball_bounds(net: ReluNetwork, balls: Balls, rows: np.ndarray) -> np.ndarray:
    """Return upper bounds (n, q) on forms (n, q, k) of the outputs on balls, with optimised slopes."""
    model = model_of_network(net)
    root = RelaxedModel.by_intervals(model, Interval(balls.lower, balls.upper), balls)
    tighten(root, steps=3)
    form = rows.reshape(*rows.shape[:2], *model.output_shape)
    return upper_ends(root, len(model.nodes), form, steps=5)


class Searched(NamedTuple):
    """What a search says about an unsafe set.

    Attributes:
        proved: Whether it is out of reach.
        bound: An upper bound, wherever it may still be reached, on the smallest of limit minus row.
    """

    proved: bool
    bound: float


def split_units(net: ReluNetwork, unsafe: UnsafeSet, rounds: int, *, steps: int = 0) -> Searched:
    """Split ReLUs, from bounds with so many gradient steps inside the network."""
    model = model_of_network(net)
    root = RelaxedModel.by_intervals(model, Interval(unsafe.lower[None], unsafe.upper[None]))
    tighten(root, steps=steps)
    search = UnitSplitting(root, goal_of(unsafe, model.output_shape))
    for _ in range(rounds):
        if not search.done:
            search.round(NEVER)
    return Searched(search.done and not search.stuck, search.bound)


def cut_boxes(net: ReluNetwork, unsafe: UnsafeSet, rounds: int) -> Searched:
    """Cut boxes."""
    search = BoxSplitting(model_of_network(net), [unsafe])
    for _ in range(rounds):
        if not search.done and not search.stuck:
            search.round(NEVER)
    return Searched(search.done, search.bound)


def deduce(net: ReluNetwork, unsafe: UnsafeSet, rounds: int) -> Searched:
    """Cut and conclude."""
    model = model_of_network(net)
    search = Deduction(model, unsafe.lower, unsafe.upper, goal_of(unsafe, model.output_shape))
    for _ in range(rounds):
        if not search.done:
            search.round()
    return Searched(search.proved, np.inf)
