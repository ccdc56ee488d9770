r"""How far is the nearest input with another class? An interval that is proved, better with time.

.. math::
    \min \{ \|x' - x\| : \arg\max f(x') \ne \arg\max f(x),\; x' \in B \} .

Attacks give inputs of another class: upper bounds. Linear relaxation of the network on balls gives lower
bounds. Then the exact search: cell by cell outwards from x, and in linf and l1 mixed-integer programs.
Where a model is too large for these, or is none of ReLUs, balls are searched completely
(:mod:`~pindown.verification.ball_proofs`) with radii between what is proved and what was
attacked, in rounds that take longer each.

Two outputs that are equal and largest are a tie. The lower bound is on the distance to the nearest tie
or other class, the witness has another class as ``net(x).argmax()`` sees it; they meet except where
outputs touch without crossing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.errors import UnsupportedModelError
from pindown.evidence import Kind
from pindown.io.any_model import AnyModel, as_network
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.parallel import few_threads
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.lp_balls import DUALS, Norm, as_norm, lengths
from pindown.text import card
from pindown.validation import choice
from pindown.verification._distance_milp import distance_by_programs
from pindown.verification._distance_walk import walk_cells
from pindown.verification.ball_proofs import Ball, bounded_form, decide, engine_form
from pindown.verification.certificates import certified_radii
from pindown.verification.classes import BoxLike, classifier, margin_slopes, one_input
from pindown.verification.counterexamples import gradient_attack
from pindown.verification.distance_problem import (
    NUDGES,
    DistanceState,
    Problem,
    float32_margins,
    stepped_in,
)
from pindown.verification.linearised_boundaries import deepfool
from pindown.verification.tuning import (
    ATTACK_SHRINK,
    DISTANCE_ATTACK_SHARE,
    DISTANCE_BRIEF_UNITS,
    DISTANCE_FIRST_STEP,
    DISTANCE_MAX_RATIONAL_PARAMETERS,
    DISTANCE_RELAXATION_SHARE,
    DISTANCE_SAMPLES,
    DISTANCE_TRIES,
    DISTANCE_TURNS,
    DISTANCE_WALK_SHARE,
    MAX_ATTACK_MISSES,
    MAX_ATTACK_ROUNDS,
    MAX_RADIUS_DOUBLINGS,
    MILP_ALONE_UNITS,
    MILP_MAX_UNITS,
    RADIUS_HALVINGS,
    RELAXATION_REACH,
    WALK_MAX_INPUTS,
    WALK_MAX_UNITS,
)

METHODS = ("auto", "relaxation", "bisection", "cells", "programs")
_MEET = 1e-7  # bounds that differ by this share have met
_PROGRAM_MEET = 1e-4  # what the solver's tolerances leave of a relative difference
_SEGMENT_HALVINGS = 60  # of a segment: to the last place


@dataclass(frozen=True, eq=False, repr=False)
class MinimumDistance:
    """``lower <= distance to the nearest input of another class <= upper``.

    Attributes:
        lower: No nearer input has another class.
        upper: Distance of ``witness``, rounded up; infinite if none is known.
        witness: An input of another class, (d,), or None.
        label: The class of x.
        other: The class of the witness, or None.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        method: What gave the lower bound.
        complete: Whether the bounds meet, to 1e-7 of the distance; for programs, to 1e-4.
        kind: ``"exact"``.
        margin: The class's output minus the best other one at the witness, rounded up: negative.
        float32_margin: The same where weights, inputs and sums are rounded to float32: the witness is
            none there if this is not negative.
        float32_witness: The witness, or a point up to 1 % farther, that has another class in float32
            as well, (d,); None if none was found.
        assumptions: What the lower bound rests on.
    """

    lower: float
    upper: float
    witness: Array | None
    label: int
    other: int | None
    norm: Norm
    method: str
    complete: bool
    kind: Kind = "exact"
    margin: float = nan
    float32_margin: float = nan
    float32_witness: Array | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the lower bound rests on."""
        if "programs" in self.method:
            return (f"the solver of {self.method} keeps its tolerances, which are taken off",)
        return ("proved for the real-number network: what float64 rounds is bounded",)

    _repr_html_ = card

    def __repr__(self) -> str:
        if self.upper == inf and self.lower == inf:
            return f"MinimumDistance(no input has a class other than {self.label})"
        known = (
            f"{self.upper:.6g}" if self.complete else f"between {self.lower:.6g} and {self.upper:.6g}"
        )
        return f"MinimumDistance({known} in {self.norm} from class {self.label}; by {self.method})"


def minimum_distance(
    net: AnyModel,
    x: ArrayLike,
    norm: str = "linf",
    *,
    budget: float = 60.0,
    box: BoxLike = None,
    method: str = "auto",
    seed: int = 0,
) -> MinimumDistance:
    r"""Enclose the distance from x to the nearest input of another class.

    Args:
        net: The network or model. The class is the first largest output; with one output it is the sign,
            class 1 where :math:`f > 0`.
        x: One input (d,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        budget: Seconds, roughly; when they are over, what is proved is returned.
        box: Where inputs lie, such as ``(0, 1)`` for images; x must lie in it.
        method: ``"auto"``, or one way only for the lower bound: ``"relaxation"``, ``"bisection"``
            (relaxation, then complete searches of balls), ``"cells"``, ``"programs"`` (not in l2). The
            last two need a model that can be written with ReLUs.
        seed: Seed of the attacks.

    Returns:
        The interval. If two outputs are equal and largest at x itself, decided in rational numbers where
        float64 cannot tell, the distance is 0 and x the witness.
        If no input has another class, both ends are infinite.

    Raises:
        ValueError: If x, norm, method, budget or box do not fit.
        TypeError: If net is no model.
        UnsupportedModelError: If cells or programs are asked for and it is not piecewise linear.

    Example:
        The class is whether ``|x| > 2``:

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [-2])])
        >>> minimum_distance(net, [0.5])
        MinimumDistance(1.5 in linf from class 0; by cell walking)

    Jordan, Lewis and Dimakis 2019 (cells); Tjeng, Xiao and Tedrake 2019 (programs); Zhang et al. 2018
    (relaxation).
    """
    deadline = _checked(budget, norm, method)
    deep, kind = classifier(_asked_form(net, method)), as_norm(norm)
    point, limits = one_input(deep, x, box)
    label, tied = _class_at(deep, point)
    if tied is not None:
        point.flags.writeable = False
        return MinimumDistance(0.0, 0.0, point, label, tied, kind, "a tie at x", True)
    problem = Problem(deep, point, label, kind, limits)
    with few_threads(deep):
        state = _enclosed(problem, method, deadline, seed)
    meets = _meets(state, _PROGRAM_MEET if "programs" in state.method else _MEET)
    found = MinimumDistance(
        state.lower, state.upper, state.witness, label, None, kind, state.method or "nothing", meets
    )
    if state.witness is None:
        return found
    here = state.witness[None]
    return replace(
        found,
        other=int(np.argmax(deep(state.witness))),
        margin=float(problem.margins(here)[0]),
        float32_margin=float(float32_margins(problem, here)[0]),
        float32_witness=stepped_in(problem, state.witness),
    )


def _asked_form(net: AnyModel, method: str) -> ReluNetwork | Model:
    """Return the exact normal form where it is needed or small, else what bounds are computed on."""
    if method in ("cells", "programs"):
        return as_network(net, "minimum_distance")
    found = bounded_form(net, "minimum_distance")
    if method == "auto" and isinstance(found, Model) and found.in_features <= WALK_MAX_INPUTS:
        with suppress(UnsupportedModelError):
            return found.relu_network()
    return found


def _class_at(net: ReluNetwork | Model, x: Array) -> tuple[int, int | None]:
    """Return the class at x, and one that ties with it; in rational numbers if float64 cannot tell.

    Of a model that is no network a tie is not looked for: then nothing is proved.
    """
    outputs = net(x)
    label = int(np.argmax(outputs))
    if isinstance(net, Model):
        return label, None
    here = interval_bounds(net, Box(x, x))[-1]
    sure = np.delete(here.upper, label).max() < here.lower[label]
    if sure or net.n_parameters > DISTANCE_MAX_RATIONAL_PARAMETERS:
        return label, None
    values = net.as_fractions()(x.tolist())
    label = max(range(len(values)), key=values.__getitem__)
    ties = [j for j, value in enumerate(values) if value == values[label] and j != label]
    return label, ties[0] if ties else None


def _checked(budget: float, norm: str, method: str) -> Deadline:
    deadline = Deadline.of(budget)
    choice("method", method, METHODS)
    if method == "programs" and as_norm(norm) == "l2":
        raise ValueError("programs are linear: with norm='l2' choose method='cells' or 'auto'.")
    return deadline


def _enclosed(problem: Problem, method: str, deadline: Deadline, seed: int) -> DistanceState:
    """Attack, relax, then search exactly, as far as the time goes."""
    size = problem.net.size if isinstance(problem.net, ReluNetwork) else inf
    small = problem.net.in_features <= WALK_MAX_INPUTS and size <= WALK_MAX_UNITS
    walked = method == "cells" or (method == "auto" and small)
    state = attacked(
        problem, DistanceState(), deadline=deadline.share(DISTANCE_ATTACK_SHARE), seed=seed,
        briefly=method != "relaxation" and size <= DISTANCE_BRIEF_UNITS,
    )  # fmt: skip
    if method in ("auto", "relaxation", "bisection"):
        state = _relaxed(problem, state, deadline.share(DISTANCE_RELAXATION_SHARE))
    bounded = isfinite(state.upper) or problem.box is not None
    most = MILP_MAX_UNITS if small else MILP_ALONE_UNITS
    programs_fit = problem.norm != "l2" and bounded and size <= most
    if method == "bisection" or (method == "auto" and not small and not programs_fit):
        return _bisected(problem, state, deadline, seed)
    if method == "cells" or (walked and not _meets(state, _MEET)):
        shared = method == "auto" and programs_fit
        if _has_interior(problem):
            walking = deadline.share(DISTANCE_WALK_SHARE) if shared else deadline
            state = walk_cells(problem, state, deadline=walking)
    wanted = method == "programs" or (method == "auto" and programs_fit and not _meets(state, _MEET))
    if wanted and not deadline.passed:
        state = distance_by_programs(problem, state, deadline=deadline)
    return state


def _relaxed(problem: Problem, state: DistanceState, deadline: Deadline) -> DistanceState:
    """Raise the lower bound by certificates on balls."""
    top = state.upper
    if not isfinite(top):
        top = RELAXATION_REACH * (1.0 + float(np.abs(problem.x).max()))
        if problem.box is not None:
            top = 2.0 * problem.box.dim * float(problem.box.radius.max()) + 1.0
    radius = certified_radii(
        problem.net, problem.x[None], norm=problem.norm, box=problem.box, largest=top,
        steps=RADIUS_HALVINGS, deadline=deadline,
    )  # fmt: skip
    proved = float(radius[0])
    if proved == top and problem.box is not None and not isfinite(state.upper):
        proved = inf  # the ball holds the whole box
    return state.raised(proved, "linear relaxation")


def _bisected(problem: Problem, state: DistanceState, deadline: Deadline, seed: int) -> DistanceState:
    """Search balls between what is proved and what is attacked, for longer and longer each."""
    model = engine_form(problem.net)
    for turns in range(1, DISTANCE_TURNS + 1):
        share = DISTANCE_FIRST_STEP
        for _ in range(DISTANCE_TRIES):
            if not isfinite(state.upper) or _meets(state, _MEET) or deadline.passed:
                break
            radius = (1.0 - share) * state.lower + share * state.upper
            ball = Ball(problem.x, problem.label, radius, problem.norm, problem.box)
            found = decide(model, ball, turns, seed=seed, deadline=deadline)
            if found.proved:
                state = state.raised(radius, "complete searches of balls")
            elif found.witness is not None:
                state = _pulled_in(problem, state, found.witness[None])
            share = min(2.0 * share, 0.5) if found.proved else 0.5 * share
    return state


def _has_interior(problem: Problem) -> bool:
    return problem.box is None or bool(np.all(problem.box.upper > problem.box.lower))


def _meets(state: DistanceState, share: float) -> bool:
    if state.lower == inf:
        return True
    return isfinite(state.upper) and state.upper - state.lower <= share * state.upper


def attacked(
    problem: Problem, state: DistanceState, *, deadline: Deadline, seed: int = 0, briefly: bool = False
) -> DistanceState:
    """Look for near inputs of another class, with ever smaller radii until attacks fail.

    Briefly, if an exact search will find the nearest anyway: then any bound on its distance will do.
    """
    found = deepfool(problem.net, problem.x[None], norm=problem.norm, box=problem.box)
    state = _pulled_in(problem, state, found.X)
    if briefly and not isfinite(state.upper):
        state = _sampled(problem, state, seed)
    if briefly and isfinite(state.upper):
        return state
    radius, misses = state.upper, 0
    if not np.isfinite(radius):
        first = _first_radius(problem, deadline, seed)
        if first is None:  # without time for one attack there is none for thousands of points
            return state if deadline.passed else _sampled(problem, state, seed)
        radius = first
    for turn in range(MAX_ATTACK_ROUNDS):
        if misses >= MAX_ATTACK_MISSES or deadline.passed:
            break
        attack = gradient_attack(
            problem.net, problem.x[None], radius=radius, norm=problem.norm, box=problem.box,
            restarts=2, seed=seed + turn, deadline=deadline,
        )  # fmt: skip
        before = state.upper
        state = _pulled_in(problem, state, attack.X)
        misses = 0 if state.upper < before else misses + 1
        radius = ATTACK_SHRINK * state.upper if np.isfinite(state.upper) else 2.0 * radius
    return state


def _first_radius(problem: Problem, deadline: Deadline, seed: int) -> float | None:
    """Return a radius at which an attack succeeds, by doubling; None if there seems to be none."""
    slopes = margin_slopes(problem.net, problem.x[None], np.array([problem.label]))
    steep = float(lengths(slopes.gradient, DUALS[problem.norm])[0])
    radius = (
        float(slopes.margin[0]) / steep if steep > 0 else 1e-3 * (1.0 + float(np.abs(problem.x).max()))
    )
    for _ in range(MAX_RADIUS_DOUBLINGS):
        if deadline.passed or not np.isfinite(radius):
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
        return _pulled_in(problem, state, problem.box.sample(DISTANCE_SAMPLES, rng))
    scale = 10.0 ** rng.uniform(-2, 4, (DISTANCE_SAMPLES, 1))
    return _pulled_in(
        problem, state, problem.x + scale * rng.standard_normal((DISTANCE_SAMPLES, len(problem.x)))
    )


def _pulled_in(problem: Problem, state: DistanceState, points: Array) -> DistanceState:
    """Move points of another class towards x, as long as they stay so, and keep the nearest."""
    other = np.argmax(problem.net(points), axis=1) != problem.label
    outer = points[other]
    inner = np.broadcast_to(problem.x, outer.shape).copy()
    for _ in range(_SEGMENT_HALVINGS if len(outer) else 0):
        middle = 0.5 * inner + 0.5 * outer
        changed = np.argmax(problem.net(middle), axis=1) != problem.label
        outer[changed], inner[~changed] = middle[changed], middle[~changed]
    farther = [problem.x + (1.0 + nudge) * (outer - problem.x) for nudge in NUDGES]
    return state.tried(problem, np.concatenate(farther))
