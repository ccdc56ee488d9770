r"""All ways to narrow the gap of two networks, as tables: name, condition, share of the time, work.

Methods work in rounds of 1, 4, 16, ... seconds, of large networks longer ones. A method gets, for every
piece of its work, a share of what is left of the round then, so that none takes what the later ones
need. The deadline only ends the sequence: a run with more time goes through one with less and keeps what
it proved. In a round the methods follow one another as the tables say, cheapest first, until the
interval decides, and is narrow enough where networks differ:

1. on the weights: a short search for a witness; pairing the units of both; with few inputs a first try
   of branch and bound;
2. on smaller networks: the same after every lossless reduction, first by what holds for all inputs,
   then by what holds on the box;
3. on any pair: bounds on the difference, until one decides.

What a method proves is about the pair it works on; :class:`~pindown.equivalence.comparison._run.Run`
turns it into a statement about the networks that were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison._branching import Cover, gap_by_branching
from pindown.equivalence.comparison._cells import gap_by_cells
from pindown.equivalence.comparison._integer_programs import gap_by_milp, open_units
from pindown.equivalence.comparison._parallel_branching import Frontier, gap_in_rounds
from pindown.equivalence.comparison._reduced_pairs import paired, paired_by_kinks, reduced
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.comparison._witness_search import search
from pindown.equivalence.comparison.bracket import PROGRAMS, GapState
from pindown.equivalence.comparison.one_hidden_layer import decide_shallow
from pindown.equivalence.tuning import (
    BRANCHING_FIRST_SHARE,
    CELLS_SHARE,
    CLIMB_WORTH,
    FIRST_SEARCH_SECONDS,
    FIRST_SEARCH_SHARE,
    LINEAR_BOUNDS_SHARE,
    MAX_BRANCH_INPUTS,
    MAX_CELL_UNITS,
    MAX_OPEN_UNITS,
    NORMS_SHARE,
    OPEN_UNITS_SHARE,
    PAIRED_SHARE,
    PASS_SECONDS_PER_WEIGHT,
    PROGRAMS_SHARE,
    REDUCTION_SHARE,
    ROUND_GROWTH,
    ROUND_PASSES,
    ROUND_SECONDS,
    SEARCH_SECONDS,
    SEARCH_SHARE,
    SHALLOW_SHARE,
    UNLIMITED_SECONDS,
)
from pindown.evidence import Bracket
from pindown.io.accepting import on_networks
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.parallel import n_workers
from pindown.progress import Report, silent
from pindown.relaxation.difference_network import norm_gap
from pindown.relaxation.differential import gap_bounds, interval_gap

Turn: TypeAlias = Callable[[], Deadline]


class Method(NamedTuple):
    """One way to narrow the gap.

    Attributes:
        name: What it is called in the history of an answer.
        applies: Whether it can say something about a run's pair.
        share: Of the time left, what it may take for one piece of its work.
        work: Does it, given the run and a function that returns the end of its next piece of work.
        seconds: No piece of work takes longer.
        informs: Whether it is worth its time once the interval is narrow enough: it says where.
        closes: Whether it is worth its time once networks are known to differ.
        at_once: Whether it is done even if there is no time at all.
    """

    name: str
    applies: Callable[[Run], bool]
    share: float
    work: Callable[[Run, Turn], None]
    seconds: float = inf
    informs: bool = False
    closes: bool = True
    at_once: bool = False

    def turn(self, run: Run) -> Deadline:
        """Return the end of its next piece of work."""
        own = run.slot.share(self.share)
        end = own.within(self.seconds)
        return replace(end, end=min(end.end, run.deadline.end))


def decide(run: Run) -> None:
    """Narrow the interval of a run by all methods until it decides, or the time is over."""
    in_rounds(run, _whole_round)


def in_rounds(run: Run, work: Callable[[Run], None]) -> None:
    """Work in ever longer rounds until the interval decides, the time is over, or more cannot help."""
    while True:
        first = max(ROUND_SECONDS, ROUND_PASSES * _pass_seconds(run))
        length = first * ROUND_GROWTH**run.round
        run.slot, run.cut = Deadline.after(length), False
        work(run)
        run.round += 1
        endless = not isfinite(run.deadline.end) and length * ROUND_GROWTH > UNLIMITED_SECONDS
        if run.over or endless or not run.cut:
            return


def _whole_round(run: Run) -> None:
    assert run.given is not None
    if not run.reduced:
        run.work_on(run.given)
        run.steps, run.by_kinks = (), None
        follow(run, ON_WEIGHTS)
        follow(run, ON_SMALLER_NETWORKS)
        run.reduced = run.differ or not run.cut  # what differs is not found to be the same any more
    slot, pair = run.slot, run.pair
    if pair.slack == 0.0 or pair.slack < (run.tol or 0.0):
        if pair.slack > 0.0:  # the reduced networks may not decide: those given get their share
            run.slot = slot.share(0.5)
        follow(run, ON_ANY_PAIR)
    if pair.slack > 0.0 and not run.over:
        run.slot = slot
        run.work_on(run.given)
        follow(run, ON_ANY_PAIR)
        run.work_on(pair)


def follow(run: Run, methods: tuple[Method, ...]) -> None:
    """Let one method after the other work, as long as there is something to decide."""
    for method in methods:
        if run.tol is not None and run.state.upper <= run.tol:
            return
        if run.slot.passed or run.deadline.passed or run.ended:
            run.cut = True
            if not (method.at_once and run.round == 0):
                continue
        wanted = method.informs and not run.layers
        if not run.decided:
            wanted = wanted or method.closes or not run.differ
        if wanted and method.applies(run):
            last: list[Deadline] = []
            method.work(run, partial(_noted_turn, method, run, last))
            run.cut |= any(end.passed and not isfinite(method.seconds) for end in last)


def _noted_turn(method: Method, run: Run, noted: list[Deadline]) -> Deadline:
    noted.append(method.turn(run))
    return noted[-1]


@on_networks
def narrow(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None,
    *,
    start: GapState | None = None,
    tol: float | None = None,
    precision: float = 1e-6,
    deadline: Deadline = NEVER,
    seed: int = 0,
    progress: Report | None = None,
    n_jobs: int | None = None,
) -> GapState:
    """Bound the largest gap of two networks as they are, by all that works on any pair.

    Args:
        a: A network.
        b: One with as many inputs and outputs, of any depth and widths. If the widths are equal, like
            units should be at like places: bounds on the difference are then far better.
        box: The inputs, or None for all of them, in the relative sense.
        start: What is known already.
        tol: Stop once the gap is proved at most this, or larger; None to go on to ``precision``.
        precision: Stop once the ends differ by this share of the upper one.
        deadline: When to stop.
        seed: Chooses the points of the searches.
        progress: Told of every better interval.
        n_jobs: Workers for branch and bound, -1 for all cores; None: as an enclosing
            :func:`pindown.parallel.workers` says, else one.

    Returns:
        The proved bounds, a witness of the lower one, and how they came about.

    Raises:
        ValueError: If sizes do not fit, or ``n_jobs`` is no number of workers.

    Example:
        >>> nets = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, -1.0)]
        >>> state = narrow(*nets, Box([-2], [2]))
        >>> round(state.lower, 6), round(state.upper, 6)
        (1.0, 1.0)

    Methods: see the modules of this package.
    """
    require_fit(a, b, box)
    n_workers(n_jobs)  # complains now, not after minutes
    run = Run(a, b, box, deadline.within(inf), tol, precision, None, seed, n_jobs, progress or silent)
    run.state = start or GapState()
    in_rounds(run, partial(follow, methods=(IDENTICAL, *ON_ANY_PAIR)))
    return run.state


def require_fit(a: ReluNetwork | Model, b: ReluNetwork | Model, box: Box | None = None) -> None:
    """Refuse networks that cannot be compared.

    Raises:
        ValueError: If the sizes of inputs or outputs differ, or the box does not fit.
    """
    sizes = [(net.in_features, net.out_features) for net in (a, b)]
    if sizes[0] != sizes[1]:
        (d, k), (e, m) = sizes
        raise ValueError(
            "networks to compare need equal input and output sizes; "
            f"the first takes {d} and gives {k}, the second takes {e} and gives {m}."
        )
    if box is not None and box.dim != a.in_features:
        raise ValueError(f"the box has {box.dim} dimensions; the networks take {a.in_features} inputs.")


# Conditions


def _always(run: Run) -> bool:
    return True


def _identical(run: Run) -> bool:
    return run.first == run.second


def _same_widths(run: Run) -> bool:
    return not run.pair.matched and run.pair.a.widths == run.pair.b.widths


def _on_box(run: Run) -> bool:
    return run.box is not None


def _everywhere(run: Run) -> bool:
    return run.box is None


def _one_hidden_layer(run: Run) -> bool:
    return max(run.pair.a.depth, run.pair.b.depth) <= 2


def _few_cells(run: Run) -> bool:
    if run.box is None or np.any(run.box.lower == run.box.upper):
        return False
    return run.pair.a.size + run.pair.b.size <= MAX_CELL_UNITS.get(run.box.dim, -1)


def _time_for_passes(share: float, run: Run) -> bool:
    """Whether a pass of linear bounds through both networks takes at most this share of the round."""
    return run.box is not None and run.lasts(_pass_seconds(run), share)


def _few_inputs(run: Run) -> bool:
    return run.box is not None and run.box.dim <= MAX_BRANCH_INPUTS and _time_for_passes(0.5, run)


def _pass_seconds(run: Run) -> float:
    """Guess what linear bounds take that are never tightened."""
    return PASS_SECONDS_PER_WEIGHT * (run.pair.a.n_parameters + run.pair.b.n_parameters)


# Work


def _take_identity(run: Run, turn: Turn) -> None:
    run.take("identical weights", Bracket(0.0, 0.0))


def _search(run: Run, turn: Turn) -> None:
    a, b = run.pair.a, run.pair.b
    target = inf if run.tol_of_pair is None else run.tol_of_pair
    starts = None if run.state.witness is None else run.state.witness[None]
    found = search(
        a, b, run.box, target=target, budget=turn().left, seed=run.seed + run.round, starts=starts
    )
    run.take("search", Bracket(found.gap, inf, found.point))


def _climbs(run: Run) -> bool:
    return run.climb is not None and run.differ


def _climb(run: Run, turn: Turn) -> None:
    """Look for larger gaps of those given, turn by turn, as long as that helps."""
    assert run.climb is not None
    end = turn()
    while not (end.passed or run.decided):
        before = run.state.lower
        found = run.climb.go_on(run.state, run.deadline)
        if found.lower > before:
            better = run.state.narrowed(run.deadline.spent, "search", found)
            run.state = better
            run.say("search")
        if run.state.lower < CLIMB_WORTH * before:
            return


def _intervals(run: Run, turn: Turn) -> None:
    assert run.box is not None
    if run.round == 0 or run.pair is not run.given:
        run.take("interval bounds", Bracket(0.0, interval_gap(run.pair.a, run.pair.b, run.box)))


def _linear_bounds(run: Run, turn: Turn) -> None:
    assert run.box is not None
    # Past its deadline a pass is no longer tightened, but goes on to the end.
    deadline = Deadline(turn().end - LINEAR_BOUNDS_SHARE * _pass_seconds(run))
    ends = run.box.lower[None], run.box.upper[None]
    upper, _ = gap_bounds(run.pair.a, run.pair.b, *ends, deadline=deadline)
    run.take("linear bounds", Bracket(0.0, float(upper[0])))


def _shallow(run: Run, turn: Turn) -> None:
    deadline = turn()
    budget = min(SEARCH_SECONDS, 0.5 * deadline.left)
    found = decide_shallow(
        run.pair.a, run.pair.b, run.box, budget=budget, seed=run.seed, deadline=deadline
    )
    run.take("one hidden layer", Bracket(found.lower, found.upper, found.witness))


def _norms(run: Run, turn: Turn) -> None:
    run.take("norms", Bracket(0.0, norm_gap(run.pair.a, run.pair.b, budget=turn().left)))


def _cells(run: Run, turn: Turn) -> None:
    assert run.box is not None
    run.take("cells", gap_by_cells(run.pair.a, run.pair.b, run.box, budget=turn().left))


def _programs(run: Run, turn: Turn) -> None:
    assert run.box is not None
    a, b = run.pair.a, run.pair.b
    soon = run.slot.share(OPEN_UNITS_SHARE)
    if open_units(a, b, run.box, deadline=soon) <= MAX_OPEN_UNITS:
        run.take(PROGRAMS, gap_by_milp(a, b, run.box, budget=turn().left))


def _branch(run: Run, turn: Turn) -> None:
    """Go on with the branch and bound of the pair, where an earlier round left it."""
    end = turn()
    if n_workers(run.n_jobs) > 1:
        for found in _branched_by_many(run, end):
            run.take("branch and bound", found)
        return
    if run.pair not in run.branchings:
        run.branchings[run.pair] = _branched(run)
    for found in run.branchings[run.pair]:
        run.take("branch and bound", found)
        if run.decided or end.passed:
            return


def _branched(run: Run) -> Iterator[Bracket]:
    assert run.box is not None
    goal: dict[str, Any] = {"tol": run.tol_of_pair, "precision": None, "deadline": run.deadline}
    return gap_by_branching(run.pair.a, run.pair.b, run.box, start=_known(run), **goal)


def _branched_by_many(run: Run, deadline: Deadline) -> Iterator[Bracket]:
    assert run.box is not None
    if run.pair not in run.frontiers:  # the second time goes on where the first one ended
        run.frontiers[run.pair] = Frontier(Cover.empty(run.box.dim))
    goal: dict[str, Any] = {"tol": run.tol_of_pair, "precision": run.precision, "deadline": deadline}
    goal |= {"n_jobs": run.n_jobs, "frontier": run.frontiers[run.pair]}
    return gap_in_rounds(run.pair.a, run.pair.b, run.box, start=_known(run), **goal)


def _known(run: Run) -> GapState:
    """Return what is known of the pair, of which the bracket is not if it stands for other networks."""
    state = run.state
    return GapState() if run.pair.slack else GapState(state.lower, state.upper, state.witness)


# The tables

IDENTICAL = Method("identical weights", _identical, 1.0, _take_identity, at_once=True)

ON_WEIGHTS = (
    IDENTICAL,
    Method("search", _always, FIRST_SEARCH_SHARE, _search, FIRST_SEARCH_SECONDS, at_once=True),
    Method("interval bounds", _on_box, 1.0, _intervals),
    Method("units paired", _same_widths, PAIRED_SHARE, paired, informs=True),
    Method("linear bounds", _few_inputs, LINEAR_BOUNDS_SHARE, _linear_bounds),
    # Before anything is made smaller: folds that nearly coincide are far harder than those that do.
    Method("cells", _few_cells, CELLS_SHARE, _cells),
    Method("branch and bound", _few_inputs, BRANCHING_FIRST_SHARE, _branch),
)

ON_SMALLER_NETWORKS = (
    Method(
        "smaller for every input",
        _always,
        REDUCTION_SHARE,
        partial(reduced, on_box=False),
        closes=False,
    ),
    Method("units paired", _same_widths, PAIRED_SHARE, paired, closes=False),
    Method("units paired by kinks", _always, PAIRED_SHARE, paired_by_kinks, closes=False),
    Method("smaller on the box", _on_box, REDUCTION_SHARE, partial(reduced, on_box=True), closes=False),
    Method("units paired", _same_widths, PAIRED_SHARE, paired, closes=False),
    Method("units paired by kinks", _on_box, PAIRED_SHARE, paired_by_kinks, closes=False),
)

ON_ANY_PAIR = (
    Method("search", _always, SEARCH_SHARE, _search, SEARCH_SECONDS),
    Method("search for larger gaps", _climbs, SEARCH_SHARE, _climb, SEARCH_SECONDS),
    Method("interval bounds", _on_box, 1.0, _intervals),
    Method("linear bounds", partial(_time_for_passes, 0.5), LINEAR_BOUNDS_SHARE, _linear_bounds),
    Method("one hidden layer", _one_hidden_layer, SHALLOW_SHARE, _shallow),
    Method("norms", _everywhere, NORMS_SHARE, _norms),
    Method("cells", _few_cells, CELLS_SHARE, _cells),
    Method("branch and bound", _few_inputs, BRANCHING_FIRST_SHARE, _branch),
    Method(PROGRAMS, partial(_time_for_passes, 0.3), PROGRAMS_SHARE, _programs),
    Method("branch and bound", partial(_time_for_passes, 0.5), 1.0, _branch),
)
