r"""The nearest input of another class that attacks find: radii shrink as long as they succeed.

DeepFool, Carlini and Wagner's search and fast minimum norm give the first radius, or doubling does where
they fail. Then, input by input,

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
from pindown.errors import UnsupportedModelError
from pindown.io.any_model import AnyModel, as_model
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.relaxation.lp_balls import DUALS, Balls, Norm, as_norm, lengths, steepest_step
from pindown.verification._cell_forms import cell_forms
from pindown.verification._goals import uniform
from pindown.verification.annealed_descents import fast_minimum_norm
from pindown.verification.carlini_wagner import carlini_wagner
from pindown.verification.classes import BoxLike, Classes, classifier
from pindown.verification.counterexamples import Asked, AttackResult, asked_of, gradient_attack, judged
from pindown.verification.distance_problem import NUDGES
from pindown.verification.least_distance import nearest_point
from pindown.verification.linearised_boundaries import deepfool
from pindown.verification.tuning import (
    ATTACK_SHRINK,
    CORNER_ENTRIES,
    CORNER_HALVINGS,
    CORNER_INSIDE,
    CORNER_SHARE,
    CORNER_STEPS,
    MAX_ATTACK_MISSES,
    MAX_ATTACK_ROUNDS,
    MAX_RADIUS_DOUBLINGS,
    MIN_SLIDE_SHARE,
    SAMPLES_AROUND,
    SCATTER_RADIUS,
    SCATTER_STARTS,
    SCATTER_TURNS,
    SEARCH_FEW_INPUTS,
    SEGMENT_HALVINGS,
    SLIDE_BEYOND,
    SLIDE_HALVINGS,
    SLIDE_STEPS,
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
        method: ``"deepfool"``, ``"cw"`` for Carlini and Wagner's, ``"fmn"`` for fast minimum norm,
            ``"pgd"`` for projected gradient descent within shrinking radii, ``"auto"`` for all, with
            linear bounds beside gradients, or ``"boundary"`` for all but what shrinks radii.
        box: Where changed inputs must lie; X must lie in it.
        seed: Seed of random starts.
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
    if method in ("auto", "boundary", "deepfool") and len(asked.rows):
        found = deepfool(model, asked.rows, asked.labels, norm=kind, target=asked.target, box=asked.box)
        state.tried(np.arange(len(found.X)), found.X, "steps to linearised boundaries (DeepFool)")
    if method in ("auto", "boundary", "cw") and not deadline.passed:
        state.priced(deadline)
    if method in ("auto", "boundary", "fmn") and not deadline.passed:
        state.followed(deadline)
    if method in ("auto", "boundary"):
        _sampled(state, seed, deadline)
        _slid(state, deadline)
    if method in ("auto", "pgd"):
        state.bounds = method == "auto"
        _doubled(state, seed, deadline)
        _shrunk(state, seed, deadline)
    if method == "auto":
        _slid(state, deadline)
        _scattered(state, seed, deadline)
        _cornered(state, seed, deadline)
    return state.result()


class _State:
    """The nearest changed inputs so far."""

    def __init__(self, model: Model, asked: Asked, norm: Norm) -> None:
        self.model, self.asked, self.norm = model, asked, norm
        self.points, self.distance = asked.rows.copy(), np.full(len(asked.rows), inf)
        self.by = [""] * len(asked.rows)
        self.used, self.bounds = 0, True

    def tried(
        self, which: Classes, points: Array, by: str, halvings: int = SEGMENT_HALVINGS
    ) -> NDArray[np.bool_]:
        """Keep changed inputs that are nearer, cut back along their lines; return which are."""
        asked = self.asked.pick(which)
        reached = asked.reached(outputs(self.model, points))
        some, few = which[reached], asked.pick(np.flatnonzero(reached))
        cut = _cut_back(self.model, few, points[reached], halvings)
        lengths_of = lengths(cut - few.rows, self.norm)
        nearer = lengths_of < self.distance[some]
        better = some[nearer]
        self.points[better], self.distance[better] = cut[nearer], lengths_of[nearer]
        for i in better:
            self.by[i] = by
        return np.isin(which, better)

    def priced(self, deadline: Deadline) -> None:
        """Search for the smallest price of a change, for inputs that are not where they should be."""
        left = np.flatnonzero(self.distance > 0)
        if len(left):
            self.used += carlini_wagner(
                self.model,
                self.asked.pick(left),
                self.norm,
                lambda points: self.tried(left, points, "a search for the price (Carlini-Wagner)"),
                deadline=deadline,
            )

    def followed(self, deadline: Deadline) -> None:
        """Let radii follow what is found, likewise."""
        left = np.flatnonzero(self.distance > 0)
        if len(left):
            self.used += fast_minimum_norm(
                self.model,
                self.asked.pick(left),
                self.norm,
                lambda points: self.tried(left, points, "radii that follow (fast minimum norm)"),
                deadline=deadline,
            )

    def attacked(
        self, which: Classes, radii: Array, *, restarts: int, seed: int, deadline: Deadline
    ) -> NDArray[np.bool_]:
        """Attack some inputs within radii, and return which came nearer than before."""
        few = self.asked.pick(which)
        attack = gradient_attack(
            self.model, few.rows, few.labels, radius=radii, norm=self.norm, target=few.target,
            restarts=restarts, bounds=self.bounds, box=few.box, seed=seed, deadline=deadline,
        )  # fmt: skip
        self.used += attack.n_gradients
        way = "gradients and linear bounds" if self.bounds else "gradients (PGD)"
        return self.tried(which, attack.X, f"{way} within shrinking radii")

    def result(self) -> AttackResult:
        """Return what was found.

        What was cut back to the boundary in another company of rows may round to its other side: it is
        moved away a little.
        """
        rows, box, points = self.asked.rows, self.asked.box, self.points.copy()
        lost = known = np.isfinite(self.distance)
        for nudge in NUDGES:  # none at first
            points[lost] = self.points[lost] + nudge * (self.points[lost] - rows[lost])
            if box is not None:
                points[lost] = np.clip(points[lost], box.lower, box.upper)
            made = judged(self.model, self.asked, points, self.norm, self.used, tuple(self.by))
            lost = known & ~made.success
            if not lost.any():
                break
        distance = np.where(made.success, made.distance, inf)
        return AttackResult(
            made.X, made.success, distance, made.margin, self.norm, self.used, by=made.by
        )


def _cut_back(model: Model, asked: Asked, points: Array, halvings: int) -> Array:
    """Return the points on the way to the inputs that just reach the goal, by halving."""
    outer, inner = points.copy(), asked.rows.copy()
    for _ in range(halvings if len(points) else 0):
        middle = 0.5 * inner + 0.5 * outer
        reached = asked.reached(outputs(model, middle))
        outer[reached], inner[~reached] = middle[reached], middle[~reached]
    return outer


def _slid(state: _State, deadline: Deadline) -> None:
    r"""Slide along boundaries: from a point on one towards the nearest point of its tangent plane.

    With the score s and its slope g at the point p that is the nearest so far, the tangent plane is
    nearest to x at :math:`z = x - (s(p) + g \cdot (x - p)) / \|g\|_q \; v(g)`. What lies a share of the
    way from p to z is tried; where nothing comes nearer the share is halved. If the boundary is flat
    between p and z, the first step ends at its nearest point.
    """
    asked, norm = state.asked, state.norm
    share, left = (
        np.ones(len(asked.rows)),
        np.flatnonzero((state.distance > 0) & ~np.isinf(state.distance)),
    )
    for _ in range(SLIDE_STEPS):
        left = left[share[left] > MIN_SLIDE_SHARE]
        if not len(left) or deadline.passed:
            break
        few, points = asked.pick(left), state.points[left]
        made, slopes = gradients(state.model, points, few.forms)
        with np.errstate(all="ignore"):
            level = few.margins(made) + ((few.rows - points) * slopes).sum(axis=1)
            reach = np.nan_to_num(np.maximum(level, 0.0) / lengths(slopes, DUALS[norm]))
        plane = few.rows - reach[:, None] * steepest_step(slopes, norm)
        some = points + share[left][:, None] * (plane - points)
        some = few.rows + (1.0 + SLIDE_BEYOND * share[left][:, None]) * (some - few.rows)
        if few.box is not None:
            some = np.clip(some, few.box.lower, few.box.upper)
        state.used += 1
        nearer = state.tried(left, some, "sliding along the boundary", SLIDE_HALVINGS)
        share[left[~nearer]] *= 0.5
    if not deadline.passed:
        state.tried(np.arange(len(asked.rows)), state.points.copy(), "sliding along the boundary")


def _sampled(state: _State, seed: int, deadline: Deadline) -> None:
    """Try random points of ever larger balls where nothing is known and there are few inputs.

    A target may be reached only in a narrow corner, which no slope leads to.
    """
    if state.model.in_features > SEARCH_FEW_INPUTS:
        return
    asked, rng = state.asked, np.random.default_rng(seed)
    for i in np.flatnonzero(np.isinf(state.distance)):
        own = asked.pick(np.full(SAMPLES_AROUND, i))
        reach = (1.0 + np.abs(asked.rows[i]).max()) * 10.0 ** rng.uniform(-1, 1, SAMPLES_AROUND)
        points = uniform(Balls.around(own.rows, reach, state.norm, asked.box), rng)
        hit = np.flatnonzero(own.reached(outputs(state.model, points)))
        if deadline.passed or not len(hit):
            continue
        cut = _cut_back(state.model, own.pick(hit), points[hit], SLIDE_HALVINGS)
        first = np.argmin(lengths(cut - own.rows[hit], state.norm))
        state.tried(np.array([i]), cut[first][None], "random points")


def _cornered(state: _State, seed: int, deadline: Deadline) -> None:
    """Step to where all boundaries of a target meet, as they are near random points.

    A target is reached behind several boundaries at once, and the nearest point of it may be a corner
    where sliding along one of them gets stuck. If the model is affine between, one step is exact; where
    it bends, boundaries are linearised at random points near the best one. Of small piecewise linear
    models every second step takes a point as far from it as the input is, and ends inside its cell.
    """
    asked, target, k = state.asked, state.asked.target, state.model.out_features
    if target is None or state.model.in_features > SEARCH_FEW_INPUTS or k < 3:
        return
    rng, net = np.random.default_rng(seed), _small_network(state.model)
    for i in np.flatnonzero((state.distance > 0) & ~np.isinf(state.distance)).tolist():
        share, x = 0.0, asked.rows[i]
        rows = np.delete(np.eye(k), int(target[i]), axis=0)
        rows[:, int(target[i])] = -1.0
        for step in range(CORNER_STEPS):
            if deadline.passed:
                return
            cells = net if step % 2 else None
            reach = np.full(1, (share if cells is None else rng.random()) * state.distance[i])
            p = uniform(Balls.around(state.points[i][None], reach, state.norm, asked.box), rng)[0]
            best = _corner(state, cells, x, p, rows)
            state.used += k
            nearer = False
            if best is not None:
                part = 0.5 ** rng.integers(0, CORNER_HALVINGS)
                some = state.points[i] + np.array([[1.0], [part]]) * (best - state.points[i])
                if asked.box is not None:
                    some = np.clip(some, asked.box.lower, asked.box.upper)
                nearer = bool(state.tried(np.array([i, i]), some, "a corner of the target").any())
            share = 0.0 if nearer else CORNER_SHARE * rng.random()


def _small_network(model: Model) -> ReluNetwork | None:
    """Return the exact form of a model if it is small enough to look at its cells."""
    if model.tensor_entries > CORNER_ENTRIES:
        return None
    try:
        return model.relu_network()
    except UnsupportedModelError:
        return None


def _corner(state: _State, net: ReluNetwork | None, x: Array, p: Array, rows: Array) -> Array | None:
    """Return the nearest point to x with ``rows @ f <= 0``, f linearised at p, in p's cell if known."""
    if net is None:
        made, slopes = gradients(
            state.model, np.repeat(p[None], len(rows), axis=0), lambda _, at: rows[at]
        )
        G, h = slopes, (slopes @ p) - (rows * made).sum(axis=1)
        cell = np.zeros((0, len(x))), np.zeros(0)
    else:
        forms = cell_forms(net, x, net.pattern(p[None])[0], rows, state.norm)
        G, h = forms.margins.a, forms.margins.b + forms.margins.a @ x
        cell = forms.units.a, forms.units.b + forms.units.a @ x
    inside = CORNER_INSIDE * np.abs(h - G @ x).max()  # on a boundary nothing is reached
    try:
        G, h = np.concatenate([G, cell[0]]), np.concatenate([h - inside, cell[1]])
        best = nearest_point(G, h, x, state.norm)
    except ArithmeticError:
        return None
    return None if best is None else best.point


def _scattered(state: _State, seed: int, deadline: Deadline) -> None:
    """Start from many points as near as the best one: the nearest part of the goal may lie elsewhere.

    With many inputs that costs more than it finds.
    """
    if state.model.in_features > SEARCH_FEW_INPUTS:
        return
    for turn in range(SCATTER_TURNS):
        left = np.flatnonzero((state.distance > 0) & ~np.isinf(state.distance))
        if not len(left) or deadline.passed:
            return
        radii = SCATTER_RADIUS * state.distance[left]
        hit = state.attacked(
            left, radii, restarts=SCATTER_STARTS, seed=seed + 1000 + turn, deadline=deadline
        )
        if not hit.any():
            return
        _slid(state, deadline)


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
