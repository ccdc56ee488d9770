"""Search for inputs that violate a property: many unsafe sets at once, cheap ways first.

Samples and corners, points that the caller proposes, descent from the centre of every set by gradients
and by the slopes of linear bounds on shrinking boxes; then turns of both from many starts, more of them
for sets that are nearly reached, and walks over corners where there are few inputs. The sequence of
steps does not depend on the clock, which only ends it: a longer search goes through the shorter one.

What is found is checked before it counts (:mod:`~pindown.verification.witnesses`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from os import PathLike
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.model.gradients import outputs
from pindown.model.graph import Model
from pindown.parallel import few_threads
from pindown.verification._descents import can_walk, descend, follow, sample, walk
from pindown.verification._goals import HARD, WEIGHTINGS, Goals, Indices, corners, into, uniform
from pindown.verification._searching import Found, Searching
from pindown.verification.properties import UnsafeSet
from pindown.verification.tuning import (
    MIDDLE_SHARES,
    NARROW_SHARES,
    NEAR_SHARES,
    SEARCH_FEW_INPUTS,
    SEARCH_MAX_PICKED,
    SEARCH_PICKED_WORK,
    SEARCH_TURNS,
    WALK_FIRST_STEPS,
    WALK_MORE_STEPS,
    WIDE_SHARES,
)
from pindown.verification.witnesses import Float32, Witness, examined, in_float32, proved_violation


class Recipe(NamedTuple):
    """One turn of the search.

    Attributes:
        start: Where it starts: at the ``"best"`` point of a set, ``"near"`` it, at points that were
            ``"picked"`` from new samples, at ``"random"`` points, at ``"corners"`` or at the
            ``"centre"``.
        shares: Half widths of the boxes whose linear bounds are followed first; none: not at all.
        steps: Gradient steps after that.
        rate: The first of them, in half widths.
        adam: Whether they are Adam's.
    """

    start: str
    shares: tuple[float, ...]
    steps: int
    rate: float
    adam: bool


# What every set gets first.
OPENING = (
    Recipe("best", (), 8, 0.5, False),
    Recipe("centre", WIDE_SHARES, 10, 0.1, False),
)
# What comes again and again: with few inputs, where samples tell something, and with many.
RECIPES_FEW = (
    Recipe("near", (), 20, 0.25, False),
    Recipe("picked", (), 20, 0.05, True),
    Recipe("random", NARROW_SHARES, 15, 0.05, True),
    Recipe("picked", (), 20, 0.1, True),
    Recipe("near", (), 20, 0.1, True),
    Recipe("random", MIDDLE_SHARES, 15, 0.1, False),
    Recipe("near", NARROW_SHARES[1:], 15, 0.05, True),
    Recipe("corners", (), 30, 1.0, False),
)
RECIPES_MANY = (
    Recipe("near", (), 30, 0.25, False),
    Recipe("near", (), 30, 0.25, True),
    Recipe("random", NARROW_SHARES, 15, 0.05, True),
    Recipe("near", (), 30, 0.1, True),
    Recipe("random", MIDDLE_SHARES, 15, 0.1, False),
    Recipe("corners", (), 40, 1.0, True),
)

# What pushes a witness deeper.
DEEPER = (Recipe("best", (), 30, 0.02, False), Recipe("near", (), 30, 0.1, True))


def find_violation(
    model: Model,
    sets: Sequence[UnsafeSet],
    *,
    seed: int = 0,
    deadline: Deadline = NEVER,
    proposals: Array | Sequence[Array | None] | None = None,
    turns: int | None = None,
    path: str | PathLike[str] | None = None,
) -> Witness | None:
    """Look for an input in one of several unsafe sets.

    Args:
        model: The model.
        sets: The sets; of one with numbers between two float64, the inner set counts.
        seed: Seed of random points.
        deadline: When to stop.
        proposals: Points to try first: for all sets, (n, d), or for each set its own, (n_i, d) or None;
            they are moved into the sets' boxes.
        turns: How many turns to take after every set was tried; None: until the deadline, or 40 if there
            is none.
        path: The ONNX file that the model was read from, to run in float32.

    Returns:
        A witness whose violation is proved for the real-number model, pushed deeper if float32 does not
        see it otherwise and if that can be done. If none could be proved: the deepest that float64
        sees. None if nothing was found, which proves nothing.

    Example:
        ``|x|`` is at most 0.01 somewhere in [-3, 5]:

        >>> from pindown.model.from_network import model_of_network
        >>> from pindown.network import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> low = UnsafeSet(np.full(1, -3.0), np.full(1, 5.0), np.eye(1), np.array([0.01]))
        >>> found = find_violation(model_of_network(net), [low])
        >>> abs(found.x[0]) <= 0.01, found.proved, found.float32_violates
        (np.True_, True, True)
    """
    return Falsifier(model, sets, seed=seed, path=path).search(
        turns, deadline=deadline, proposals=proposals
    )


class Falsifier:
    """A search for violations that can be stopped, and gone on with.

    Args:
        model: The model.
        sets: The unsafe sets.
        seed: Seed of random points.
        path: The ONNX file that the model was read from, to run in float32.
        groups: To which group each set belongs, (m,), for :meth:`violations`; one group for all if left
            out.

    Example:
        ``x^2`` is above 0.9 near the ends of [-1, 1]; above 2 it is nowhere:

        >>> from pindown.model.builder import Builder
        >>> from pindown.model.operations.products import Multiply
        >>> graph = Builder((1, 1))
        >>> square = graph.model(graph.add(Multiply(), graph.input, graph.input), input_shape=(1,))
        >>> sides = -np.ones(1), np.ones(1)
        >>> sets = [UnsafeSet(*sides, -np.eye(1), np.array([-top])) for top in (2.0, 0.9)]
        >>> search = Falsifier(square, sets)
        >>> search.search(3).index
        1
        >>> search = Falsifier(square, sets)
        >>> search.drop([1])
        >>> search.search(3), search.search(3), search.turn
        (None, None, 6)
    """

    def __init__(
        self,
        model: Model,
        sets: Sequence[UnsafeSet],
        *,
        seed: int = 0,
        path: str | PathLike[str] | None = None,
        groups: Sequence[int] | None = None,
    ) -> None:
        self._model, self._path, self._seed = model, path, seed
        # An inner set may be empty.
        self._usable = [i for i, s in enumerate(sets) if (s.inside.lower <= s.inside.upper).all()]
        inner = [sets[i].inside for i in self._usable]
        self._judge = _Judge(model, inner)
        self._state: Searching | None = None
        self.turn = -1  # how many were taken since the opening; -1 before it
        if inner:
            own = np.zeros(len(inner), np.intp)
            if groups is not None:
                own = np.asarray(groups, dtype=np.intp)[self._usable]
            rng = np.random.default_rng(seed)
            self._state = Searching(model, Goals.of(inner), own, rng, NEVER, self._judge.accepted)

    def drop(self, sets: Iterable[int]) -> None:
        """Look no longer for violations of some sets: they were proved to have none."""
        gone = set(sets)
        if self._state is not None:
            self._state.open &= np.array([i not in gone for i in self._usable])

    def search(
        self,
        turns: int | None = None,
        *,
        deadline: Deadline = NEVER,
        proposals: Array | Sequence[Array | None] | None = None,
    ) -> Witness | None:
        """Go on; see :func:`find_violation`. The first call tries every set, later ones take turns."""
        state = self._state
        if state is None:
            return None
        state.deadline = deadline
        more = (SEARCH_TURNS if deadline.end == inf else inf) if turns is None else turns
        with few_threads(self._model), np.errstate(all="ignore"):
            if not state.found:
                given = None if proposals is None else _proposed(state, proposals, self._usable)
                self._go_on(state, more, given)
            found = state.found.get(0) or self._judge.deepest
            return None if found is None else self._witness(found, deadline)

    def violations(self, turns: int, *, deadline: Deadline = NEVER) -> dict[int, Array]:
        """Go on until every group has a violation, and return those known, by group: points (d,).

        Each is proved for the real-number model. The first call tries every set, later ones take turns.

        >>> from pindown.model.from_network import model_of_network
        >>> from pindown.network import ReluNetwork
        >>> model = model_of_network(ReluNetwork.from_layers([([[1.0]], [0])]))
        >>> sides = np.zeros(1), np.ones(1)  # x <= 1, x <= 2 and x <= -1 in [0, 1]
        >>> sets = [UnsafeSet(*sides, np.eye(1), np.array([top])) for top in (1.0, 2.0, -1.0)]
        >>> sorted(Falsifier(model, sets, groups=[5, 6, 7]).violations(1))
        [5, 6]
        """
        state = self._state
        if state is None:
            return {}
        state.deadline = deadline
        with few_threads(self._model), np.errstate(all="ignore"):
            self._go_on(state, turns, None)
        return {group: found.point for group, found in state.found.items()}

    @property
    def nearest(self) -> Array:
        """For every set that has points, the one of them that came nearest to violating it, (m, d)."""
        if self._state is None:
            return np.zeros((0, self._model.in_features))
        return self._state.point.copy()

    def _go_on(self, state: Searching, turns: float, given: tuple[Indices, Array] | None) -> None:
        """Search until something is found, time is over, or so many turns are done after the opening."""
        noted = None if given is None or state.over or not len(given[0]) else _tried(state, *given)
        if self.turn < 0 and not state.over:
            sample(state)
            if noted is not None:
                state.note(*noted)  # now in the units that the samples set
            for recipe in OPENING:
                take(state, recipe, state.promising())
            self.turn = 0
        recipes = RECIPES_FEW if state.most_free <= SEARCH_FEW_INPUTS else RECIPES_MANY
        end = self.turn + turns
        while self.turn < end and not state.over:
            _take_turn(state, self.turn, recipes[self.turn % len(recipes)])
            if self.turn % 2 == 0 and can_walk(state) and not state.over:
                walk(state, WALK_FIRST_STEPS + WALK_MORE_STEPS * self.turn)
            self.turn += 1

    def _witness(self, found: Found, deadline: Deadline) -> Witness:
        runtime = Float32(self._model, self._path)
        witness = self._judge.examined(found, self._usable[found.goal], runtime)
        if not witness.proved or witness.float32_violates:
            return witness
        unsafe = self._judge.sets[found.goal]
        return _deeper(self._model, unsafe, witness, runtime, self._seed, deadline)


@dataclass(eq=False)
class _Judge:
    """Decides what counts as a violation: what is proved, at a float32 number if possible."""

    model: Model
    sets: list[UnsafeSet]
    proof: str = ""
    deepest: Found | None = None

    def accepted(self, goal: int, point: Array) -> Array | None:
        """Return a point that is proved to violate, or None."""
        unsafe = self.sets[goal]
        short = in_float32(unsafe, point)
        self.proof = proved_violation(self.model, unsafe, short, rationals=np.array_equal(short, point))
        if self.proof:
            return short
        self.proof = proved_violation(self.model, unsafe, point)
        if self.proof:
            return point
        self.deepest = Found(goal, point.copy(), "a violation in float64 alone")
        return None

    def examined(self, found: Found, index: int, runtime: Float32) -> Witness:
        """Return the witness that a point is."""
        unsafe, proof = self.sets[found.goal], self.proof if found is not self.deepest else ""
        return examined(
            self.model, unsafe, found.point, index=index, by=found.by, proof=proof, runtime=runtime
        )


def _deeper(
    model: Model, unsafe: UnsafeSet, witness: Witness, runtime: Float32, seed: int, deadline: Deadline
) -> Witness:
    """Go on from a witness that is none in float32 until it is one there, too; else return it."""
    judge, one = _Judge(model, [unsafe]), np.zeros(1, np.intp)
    better: list[Witness] = []

    def accepted(goal: int, point: Array) -> Array | None:
        found = judge.accepted(goal, point)
        if found is None:
            return None
        made = judge.examined(Found(0, found, witness.by), witness.index, runtime)
        better.append(made)
        return found if made.float32_violates else None

    search = Searching(model, Goals.of([unsafe]), one, np.random.default_rng(seed), deadline, accepted)
    search.tried(one, witness.x[None])
    for recipe in DEEPER:
        if not search.over:
            _descend(search, recipe, np.repeat(one, search.batch), np.repeat(HARD, search.batch))
    return better[-1] if search.found else witness


def _proposed(
    search: Searching, proposals: Array | Sequence[Array | None], usable: Sequence[int]
) -> tuple[Indices, Array]:
    """Return which goal each proposed point is for, and the points, moved into the goals' regions."""
    if isinstance(proposals, np.ndarray):
        shared: list[Array | None] = [np.atleast_2d(proposals)] * len(usable)
    else:
        shared = [proposals[i] for i in usable]
    counts = [0 if part is None else len(part) for part in shared]
    which = np.repeat(np.arange(len(usable)), counts)
    parts = [np.asarray(part, dtype=np.float64) for part in shared if part is not None and len(part)]
    points = np.concatenate(parts) if parts else np.zeros((0, search.model.in_features))
    return which, into(search.goals.balls(which), points)


def _tried(search: Searching, which: Indices, points: Array) -> tuple[Indices, Array, Array]:
    """Evaluate proposed points, and return them with their residuals."""
    search.by = "a proposal"
    noted = which, points, search.goals.residuals(which, points, outputs(search.model, points))
    search.finish(*noted)
    return noted


def take(search: Searching, recipe: Recipe, goals: Indices) -> None:
    """Start once for each of some goals, as many together as a batch holds."""
    for start in range(0, len(goals), search.batch):
        which = goals[start : start + search.batch]
        which = which[search.open[which]]
        if search.over:
            return
        if len(which):
            _descend(search, recipe, which, np.full(len(which), HARD))


def _take_turn(search: Searching, turn: int, recipe: Recipe) -> None:
    """Give half of a batch to the most promising sets, and half to all of them in turn."""
    goals = search.promising()
    top = goals[: max(1, len(goals) >> (turn % 4))]
    half = search.batch // 2
    shifted = np.roll(goals, -turn * max(1, half))
    which = np.concatenate([np.resize(top, search.batch - half), np.resize(shifted, half)])
    single = search.goals.limits.shape[1] == 1
    kinds = np.full(len(which), HARD) if single else search.rng.integers(0, WEIGHTINGS, len(which))
    _descend(search, recipe, which, kinds)


def _descend(search: Searching, recipe: Recipe, which: Indices, kinds: Indices) -> None:
    points = _starts(search, recipe.start, which)
    if recipe.shares:
        search.by = "linear bounds on shrinking boxes"
        which, points, kinds = follow(search, which, points, kinds, recipe.shares)
    if search.over or not len(which):
        return
    search.by = "gradient descent"
    adam, rates = np.full(len(which), recipe.adam), np.full(len(which), recipe.rate)
    descend(search, which, points, kinds, adam, rates, recipe.steps)


def _starts(search: Searching, start: str, which: Indices) -> Array:
    """Return where a turn starts, (n, d)."""
    balls, rng = search.goals.balls(which), search.rng
    if start == "centre":
        return balls.center.copy()
    if start == "random":
        return uniform(balls, rng)
    if start == "corners":
        return corners(balls, rng)
    if start == "picked":
        return _picked(search, which)
    best = search.point[which]
    if start == "best":
        return best
    share = rng.choice(NEAR_SHARES, len(which))[:, None]
    return into(balls, best + share * (uniform(balls, rng) - balls.center))


def _picked(search: Searching, which: Indices) -> Array:
    """Return for each goal the best of some random points, which are new every time."""
    n = int(np.clip(SEARCH_PICKED_WORK // (search.work * len(which)), 1, SEARCH_MAX_PICKED))
    every = np.repeat(which, n)
    points = uniform(search.goals.balls(every), search.rng)
    losses = search.goals.losses(every, search.tried(every, points)).reshape(len(which), n)
    return np.asarray(
        points.reshape(len(which), n, -1)[np.arange(len(which)), np.argmin(losses, axis=1)]
    )
