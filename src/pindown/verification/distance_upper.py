"""Near inputs of another class, found by attacks: upper bounds on the distance."""

from __future__ import annotations

import time

import numpy as np

from pindown.affine import Array
from pindown.relaxation.lp_norms import DUALS, lengths
from pindown.verification.classes import margin_slopes
from pindown.verification.distance_state import NUDGES, DistanceState, Problem
from pindown.verification.linearised_steps import deepfool
from pindown.verification.projected_gradient import gradient_attack

_HALVINGS = 60  # of a segment: to the last place
_SHRINK = 0.9  # how much nearer each further attack is asked to come
_ROUNDS = 30
_MISSES = 2  # attacks in a row that may fail
_FARTHEST = 40  # doublings of the radius while no other class is found
_SAMPLES = 256


def attacked(problem: Problem, state: DistanceState, *, deadline: float, seed: int = 0) -> DistanceState:
    """Look for near inputs of another class, with ever smaller radii until attacks fail."""
    found = deepfool(problem.net, problem.x[None], norm=problem.norm, box=problem.box)
    state = _pulled_in(problem, state, found.X)
    radius, misses = state.upper, 0
    if not np.isfinite(radius):
        first = _first_radius(problem, deadline, seed)
        if first is None:
            return _sampled(problem, state, seed)
        radius = first
    for turn in range(_ROUNDS):
        if misses >= _MISSES or time.monotonic() > deadline:
            break
        attack = gradient_attack(
            problem.net, problem.x[None], radius=radius, norm=problem.norm, box=problem.box,
            restarts=2, seed=seed + turn, deadline=deadline,
        )  # fmt: skip
        before = state.upper
        state = _pulled_in(problem, state, attack.X)
        misses = 0 if state.upper < before else misses + 1
        radius = _SHRINK * state.upper if np.isfinite(state.upper) else 2.0 * radius
    return state


def _first_radius(problem: Problem, deadline: float, seed: int) -> float | None:
    """Return a radius at which an attack succeeds, by doubling; None if there seems to be none."""
    slopes = margin_slopes(problem.net, problem.x[None], np.array([problem.label]))
    steep = float(lengths(slopes.gradient, DUALS[problem.norm])[0])
    radius = (
        float(slopes.margin[0]) / steep if steep > 0 else 1e-3 * (1.0 + float(np.abs(problem.x).max()))
    )
    for _ in range(_FARTHEST):
        if time.monotonic() > deadline or not np.isfinite(radius):
            return None
        attack = gradient_attack(
            problem.net, problem.x[None], radius=radius, norm=problem.norm, box=problem.box,
            restarts=3, seed=seed, deadline=deadline,
        )  # fmt: skip
        if attack.success[0]:
            return radius
        radius *= 2.0
        if problem.box is not None and radius > 2.0 * problem.box.dim * float(problem.box.radius.max()):
            return None
    return None


def _sampled(problem: Problem, state: DistanceState, seed: int) -> DistanceState:
    """Try random points: where gradients vanish, nothing else points anywhere."""
    rng = np.random.default_rng(seed)
    if problem.box is not None:
        return _pulled_in(problem, state, problem.box.sample(_SAMPLES, rng))
    scale = 10.0 ** rng.uniform(-2, 4, (_SAMPLES, 1))
    return _pulled_in(
        problem, state, problem.x + scale * rng.standard_normal((_SAMPLES, len(problem.x)))
    )


def _pulled_in(problem: Problem, state: DistanceState, points: Array) -> DistanceState:
    """Move points of another class towards x, as long as they stay so, and keep the nearest."""
    other = np.argmax(problem.net(points), axis=1) != problem.label
    outer = points[other]
    inner = np.broadcast_to(problem.x, outer.shape).copy()
    for _ in range(_HALVINGS if len(outer) else 0):
        middle = 0.5 * inner + 0.5 * outer
        changed = np.argmax(problem.net(middle), axis=1) != problem.label
        outer[changed], inner[~changed] = middle[changed], middle[~changed]
    farther = [problem.x + (1.0 + nudge) * (outer - problem.x) for nudge in NUDGES]
    return state.tried(problem, np.concatenate(farther))
