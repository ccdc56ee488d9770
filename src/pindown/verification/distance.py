r"""How far is the nearest input with another class? An interval that is proved, better with time.

.. math::
    \min \{ \|x' - x\| : \arg\max f(x') \ne \arg\max f(x),\; x' \in B \} .

Attacks give inputs of another class: upper bounds. Linear relaxation of the network on balls gives lower
bounds. Then the exact search: cell by cell outwards from x, and in linf and l1 mixed-integer programs.

Two outputs that are equal and largest are a tie. The lower bound is on the distance to the nearest tie
or other class, the witness has another class as ``net(x).argmax()`` sees it; they meet except where
outputs touch without crossing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf, isfinite, nan

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.network import ReluNetwork
from pindown.notebook import card
from pindown.parallel import few_threads
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.lp_norms import Norm, as_norm
from pindown.verification.classes import classifier
from pindown.verification.distance_milp import programs
from pindown.verification.distance_state import DistanceState, Problem
from pindown.verification.distance_upper import attacked
from pindown.verification.distance_walk import walk_cells
from pindown.verification.float32 import float32_margins, stepped_in
from pindown.verification.inputs import BoxLike, as_seconds, one_input
from pindown.verification.radii import certified_radii

METHODS = ("auto", "relaxation", "cells", "programs")
_MEET = 1e-7  # bounds that differ by this share have met
_PROGRAM_MEET = 1e-4  # what the solver's tolerances leave of a relative difference
_ATTACK_SHARE, _RELAX_SHARE = 0.15, 0.3  # of the time left
_FEW_INPUTS, _FEW_UNITS = 64, 1024  # what walking cells is tried on
_WALK_SHARE = 0.5  # of the time left, where programs can take over
_MOST_BINARIES = 2000  # units of which programs are tried
_HALVINGS = 14  # of the radius: to a share of 6e-5
_MOST_RATIONALS = 1_000_000  # parameters of networks that are evaluated in rational numbers
_FAR = 1e3  # times the size of x: how far to look for a certificate if no other class is known


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
    kind: str = "exact"
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
    net: ReluNetwork,
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
        net: The network. The class is the first largest output; with one output it is the sign,
            class 1 where :math:`f > 0`.
        x: One input (d,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        budget: Seconds, roughly; when they are over, what is proved is returned.
        box: Where inputs lie, such as ``(0, 1)`` for images; x must lie in it.
        method: ``"auto"``, or one way only for the lower bound: ``"relaxation"``, ``"cells"``,
            ``"programs"`` (not in l2).
        seed: Of the attacks.

    Returns:
        The interval. If two outputs are equal and largest at x itself, decided in rational numbers where
        float64 cannot tell, the distance is 0 and x the witness.
        If no input has another class, both ends are infinite.

    Raises:
        ValueError: If x, norm, method, budget or box do not fit.
        TypeError: If net is no network.

    Example:
        The class is whether ``|x| > 2``:

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [-2])])
        >>> minimum_distance(net, [0.5])
        MinimumDistance(1.5 in linf from class 0; by cell walking)

    Jordan, Lewis and Dimakis 2019 (cells); Tjeng, Xiao and Tedrake 2019 (programs); Zhang et al. 2018
    (relaxation).
    """
    end = time.monotonic() + _checked(budget, norm, method)
    deep, kind = classifier(net), as_norm(norm)
    point, limits = one_input(deep, x, box)
    label, tied = _class_at(deep, point)
    if tied is not None:
        point.flags.writeable = False
        return MinimumDistance(0.0, 0.0, point, label, tied, kind, "a tie at x", True)
    problem = Problem(deep, point, label, kind, limits)
    with few_threads(deep):
        state = _enclosed(problem, method, end, seed)
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


def _class_at(net: ReluNetwork, x: Array) -> tuple[int, int | None]:
    """Return the class at x, and one that ties with it; in rational numbers if float64 cannot tell."""
    outputs = net(x)
    label = int(np.argmax(outputs))
    here = interval_bounds(net, Box(x, x))[-1]
    sure = np.delete(here.upper, label).max() < here.lower[label]
    if sure or net.n_parameters > _MOST_RATIONALS:
        return label, None
    values = net.as_fractions()(x.tolist())
    label = max(range(len(values)), key=values.__getitem__)
    ties = [j for j, value in enumerate(values) if value == values[label] and j != label]
    return label, ties[0] if ties else None


def _checked(budget: float, norm: str, method: str) -> float:
    seconds = as_seconds(budget)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "programs" and as_norm(norm) == "l2":
        raise ValueError("programs are linear: with norm='l2' choose method='cells' or 'auto'.")
    return seconds


def _enclosed(problem: Problem, method: str, end: float, seed: int) -> DistanceState:
    """Attack, relax, then search exactly, as far as the time goes."""
    state = attacked(problem, DistanceState(), deadline=_share(end, _ATTACK_SHARE), seed=seed)
    if method in ("auto", "relaxation"):
        state = _relaxed(problem, state, _share(end, _RELAX_SHARE))
    bounded = isfinite(state.upper) or problem.box is not None
    programs_fit = problem.norm != "l2" and bounded and problem.net.size <= _MOST_BINARIES
    small = problem.net.in_features <= _FEW_INPUTS and problem.net.size <= _FEW_UNITS
    if method == "cells" or (method == "auto" and small and not _meets(state, _MEET)):
        until = _share(end, _WALK_SHARE) if method == "auto" and programs_fit else end
        if _has_interior(problem):
            state = walk_cells(problem, state, deadline=until)
    wanted = method == "programs" or (method == "auto" and programs_fit and not _meets(state, _MEET))
    if wanted and time.monotonic() < end:
        state = programs(problem, state, deadline=end)
    return state


def _relaxed(problem: Problem, state: DistanceState, deadline: float) -> DistanceState:
    """Raise the lower bound by certificates on balls."""
    top = state.upper
    if not isfinite(top):
        top = _FAR * (1.0 + float(np.abs(problem.x).max()))
        if problem.box is not None:
            top = 2.0 * problem.box.dim * float(problem.box.radius.max()) + 1.0
    radius = certified_radii(
        problem.net, problem.x[None], norm=problem.norm, box=problem.box, largest=top,
        steps=_HALVINGS, deadline=deadline,
    )  # fmt: skip
    proved = float(radius[0])
    if proved == top and problem.box is not None and not isfinite(state.upper):
        proved = inf  # the ball holds the whole box
    return state.raised(proved, "linear relaxation")


def _has_interior(problem: Problem) -> bool:
    return problem.box is None or bool(np.all(problem.box.upper > problem.box.lower))


def _meets(state: DistanceState, share: float) -> bool:
    if state.lower == inf:
        return True
    return isfinite(state.upper) and state.upper - state.lower <= share * state.upper


def _share(end: float, fraction: float) -> float:
    now = time.monotonic()
    return now + fraction * max(0.0, end - now)
