r"""The nearest input of another class that attacks find: radii shrink as long as they succeed.

DeepFool gives the first radius, or doubling does where it fails. Then, input by input,

.. math::
    \eta \leftarrow 0.9\, \|r\| \quad \text{where a change with } \|r\| \le \eta \text{ was found},

and every change is cut back along its own line to where the class changes. What is found is an upper end
of the distance; :func:`~pindown.verification.minimum_distance` bounds it from below.
"""

from __future__ import annotations

import math
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.gradients import outputs
from pindown.model.graph import Model
from pindown.relaxation.lp_balls import Norm, as_norm, lengths
from pindown.verification.classes import BoxLike, Classes, classifier
from pindown.verification.counterexamples import Asked, AttackResult, asked_of, gradient_attack, judged
from pindown.verification.linearised_boundaries import deepfool
from pindown.verification.tuning import (
    ATTACK_SHRINK,
    MAX_ATTACK_MISSES,
    MAX_ATTACK_ROUNDS,
    MAX_RADIUS_DOUBLINGS,
    SEGMENT_HALVINGS,
)


def nearest_attack(
    net: AnyModel,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    target: ArrayLike | None = None,
    method: str = "auto",
    box: BoxLike = None,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> AttackResult:
    """Look for the nearest input of another class, or of a target.

    Args:
        net: The model or network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        target: The class to reach, for all inputs or for each; any other than y if not given.
        method: ``"deepfool"``, ``"gradient"``, or ``"auto"`` for both.
        box: Where changed inputs must lie; X must lie in it.
        seed: Of random starts.
        deadline: When to stop.

    Returns:
        The nearest changed inputs found; the input itself, at an infinite distance, where none was.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> nearest_attack(net, [[3.0, 4.0]]).distance.round(3)  # 20 / (3 + 4)
    array([2.857])
    """
    model, kind = classifier(as_model(net, "nearest_attack")), as_norm(norm)
    asked = asked_of(model, X, y, target, box)
    state = _State(model, asked, kind)
    state.tried(np.arange(len(asked.rows)), asked.rows, "the input itself")
    if method != "gradient" and len(asked.rows):
        found = deepfool(model, asked.rows, asked.labels, norm=kind, target=asked.target, box=asked.box)
        state.tried(np.arange(len(found.X)), found.X, found.by[0] or "deepfool")
    if method != "deepfool":
        _doubled(state, seed, deadline)
        _shrunk(state, seed, deadline)
    return state.result()


class _State:
    """The nearest changed inputs so far."""

    def __init__(self, model: Model, asked: Asked, norm: Norm) -> None:
        self.model, self.asked, self.norm = model, asked, norm
        self.points, self.distance = asked.rows.copy(), np.full(len(asked.rows), inf)
        self.by = [""] * len(asked.rows)
        self.used = 0

    def tried(self, which: Classes, points: Array, by: str) -> NDArray[np.bool_]:
        """Keep changed inputs that are nearer, cut back along their lines; return which are."""
        asked = self.asked.pick(which)
        reached = asked.reached(outputs(self.model, points))
        some, few = which[reached], asked.pick(np.flatnonzero(reached))
        cut = _cut_back(self.model, few, points[reached])
        lengths_of = lengths(cut - few.rows, self.norm)
        nearer = lengths_of < self.distance[some]
        better = some[nearer]
        self.points[better], self.distance[better] = cut[nearer], lengths_of[nearer]
        for i in better:
            self.by[i] = by
        return np.isin(which, better)

    def attacked(
        self, which: Classes, radii: Array, *, restarts: int, seed: int, deadline: Deadline
    ) -> NDArray[np.bool_]:
        """Attack some inputs within radii, and return which came nearer than before."""
        few = self.asked.pick(which)
        attack = gradient_attack(
            self.model, few.rows, few.labels, radius=radii, norm=self.norm, target=few.target,
            restarts=restarts, box=few.box, seed=seed, deadline=deadline,
        )  # fmt: skip
        self.used += attack.n_gradients
        return self.tried(which, attack.X, "gradients and linear bounds within shrinking radii")

    def result(self) -> AttackResult:
        """Return what was found."""
        made = judged(self.model, self.asked, self.points, self.norm, self.used, tuple(self.by))
        distance = np.where(made.success, made.distance, inf)
        return AttackResult(
            made.X, made.success, distance, made.margin, self.norm, self.used, by=made.by
        )


def _cut_back(model: Model, asked: Asked, points: Array) -> Array:
    """Return the points on the way to the inputs that just reach the goal, by halving."""
    outer, inner = points.copy(), asked.rows.copy()
    for _ in range(SEGMENT_HALVINGS if len(points) else 0):
        middle = 0.5 * inner + 0.5 * outer
        reached = asked.reached(outputs(model, middle))
        outer[reached], inner[~reached] = middle[reached], middle[~reached]
    return outer


def _doubled(state: _State, seed: int, deadline: Deadline) -> None:
    """Double radii until an attack succeeds, for inputs of which nothing is known."""
    left = np.flatnonzero(np.isinf(state.distance))
    rows, box = state.asked.rows, state.asked.box
    radii = 1e-3 * (1.0 + np.abs(rows).max(axis=1, initial=0.0))
    most = inf if box is None else 2.0 * box.dim * float(box.radius.max())
    for turn in range(MAX_RADIUS_DOUBLINGS):
        left = left[radii[left] <= most]
        if not len(left) or deadline.passed:
            return
        hit = state.attacked(left, radii[left], restarts=1, seed=seed + turn, deadline=deadline)
        left = left[~hit]
        radii[left] *= 2.0


def _shrunk(state: _State, seed: int, deadline: Deadline) -> None:
    """Ask for ever nearer inputs until that fails."""
    misses = np.where((state.distance > 0) & np.isfinite(state.distance), 0, MAX_ATTACK_MISSES)
    for turn in range(MAX_ATTACK_ROUNDS):
        left = np.flatnonzero(misses < MAX_ATTACK_MISSES)
        if not len(left) or deadline.passed:
            return
        radii = np.where(misses == 0, ATTACK_SHRINK, math.sqrt(ATTACK_SHRINK)) * state.distance
        hit = state.attacked(left, radii[left], restarts=2, seed=seed + turn, deadline=deadline)
        misses[left] = np.where(hit, 0, misses[left] + 1)
