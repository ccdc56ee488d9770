r"""All methods for the gap of two networks, one after the other, cheapest first.

On a box: a quick search for a witness; linear bounds on the difference; for one hidden layer the
complete decision; cells for few inputs; mixed-integer programs for few units of open sign; branch
and bound for the rest of the time. Without a box: the search, the complete decision for one hidden
layer, and for deeper networks products of norms, which are finite but loose.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from pindown.box import Box
from pindown.equivalence.comparison.bracket import PROGRAMS, GapState
from pindown.equivalence.comparison.branching import Cover, gap_by_branching
from pindown.equivalence.comparison.cells import MAX_INPUTS, gap_by_cells
from pindown.equivalence.comparison.integer_programs import gap_by_milp, open_units
from pindown.equivalence.comparison.parallel_branching import Frontier, gap_in_rounds
from pindown.equivalence.comparison.witness_search import search
from pindown.network import ReluNetwork
from pindown.parallel import n_workers
from pindown.relaxation.difference_norms import norm_gap
from pindown.relaxation.differential import gap_bounds
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import add_up

# Cells grow like (units)^inputs: more units are not worth a try.
_CELL_UNITS = {1: 100_000, 2: 5_000, 3: 200, 4: 60, 5: 40}
# Open units up to which a mixed-integer program is likely to be solved in about a minute.
_MILP_UNITS = 40
_BRANCH_INPUTS = 10  # more inputs are not worth the time of branching before other methods
_LONGEST = 600.0  # seconds of branching, and a tenth of that for programs, if no deadline is given
_SECONDS_PER_WEIGHT = 2e-7  # of one pass of linear bounds through both networks
_LOADING_SECONDS = 6.0  # what is left must be more for loading compiled code to be worth it
_SEARCH_SHARE = 0.15
_SEARCH_SECONDS = 1.0


@dataclass
class _Run:
    """What is known, and until when to go on."""

    a: ReluNetwork
    b: ReluNetwork
    tol: float | None
    precision: float
    deadline: float
    progress: Callable[[GapState], None] | None
    state: GapState
    n_jobs: int | None = 1
    frontier: Frontier | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    @property
    def over(self) -> bool:
        return self.left <= 0 or self.state.settled(self.tol, self.precision)

    def take(self, found: GapState, method: str) -> None:
        """Take over what a method proved."""
        better = self.state.narrowed(
            time.monotonic() - self.began,
            method,
            lower=found.lower,
            upper=found.upper,
            witness=found.witness,
        )
        if better is not self.state:
            self.state = better
            if self.progress is not None:
                self.progress(better)


def narrow(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None,
    *,
    start: GapState | None = None,
    tol: float | None = None,
    precision: float = 1e-6,
    deadline: float = inf,
    seed: int = 0,
    progress: Callable[[GapState], None] | None = None,
    n_jobs: int | None = None,
) -> GapState:
    """Bound the largest gap of two networks from both sides, ever better, until it is decided.

    Args:
        a: A network.
        b: One with as many inputs and outputs, of any depth and widths. If the widths are equal, like
            units should be at like places: bounds on the difference are then far better.
        box: The inputs, or None for all of them, in the relative sense.
        start: What is known already.
        tol: Stop once the gap is proved at most this, or larger; None to go on to ``precision``.
        precision: Stop once the ends differ by this share of the upper one.
        deadline: When to stop, as ``time.monotonic()`` counts.
        seed: Chooses the points of the searches.
        progress: Called with every better state.
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
    _require_fit(a, b, box)
    n_workers(n_jobs)  # complains now, not after minutes
    run = _Run(a, b, tol, precision, deadline, progress, start or GapState(), n_jobs)
    if a == b:
        run.take(GapState(upper=0.0), "identical weights")
    steps: list[Callable[[], None]] = [lambda: _search(run, box, seed)]
    if box is None:
        steps += [lambda: _shallow(run, None, seed), lambda: _norms(run)]
    else:
        steps += [
            lambda: _intervals(run, box),
            lambda: _relax(run, box),
            lambda: _shallow(run, box, seed),
            lambda: _cells(run, box),
            lambda: _branch(run, box, 0.3),
            lambda: _milp(run, box),
            lambda: _branch(run, box, 1.0),
        ]
    for step in steps:
        if run.over:
            break
        step()
    return run.state


def _require_fit(a: ReluNetwork, b: ReluNetwork, box: Box | None) -> None:
    sizes = [(net.in_features, net.out_features) for net in (a, b)]
    if sizes[0] != sizes[1]:
        (d, k), (e, m) = sizes
        raise ValueError(
            f"networks to compare need equal input and output sizes; got {d} -> {k} and {e} -> {m}."
        )
    if box is not None and box.dim != a.in_features:
        raise ValueError(f"the box has {box.dim} dimensions; the networks take {a.in_features} inputs.")


def _search(run: _Run, box: Box | None, seed: int) -> None:
    budget = min(_SEARCH_SECONDS, _SEARCH_SHARE * run.left)
    target = inf if run.tol is None else run.tol
    found = search(run.a, run.b, box, target=target, budget=budget, seed=seed)
    run.take(GapState(lower=found.gap, witness=found.point), "search")


def _shallow(run: _Run, box: Box | None, seed: int) -> None:
    if max(run.a.depth, run.b.depth) > 2:
        return
    from pindown.equivalence.comparison.one_hidden_layer import decide_shallow

    budget, until = min(_SEARCH_SECONDS, 0.2 * run.left), time.monotonic() + 0.4 * run.left
    found = decide_shallow(run.a, run.b, box, budget=budget, seed=seed, deadline=until)
    run.take(GapState(found.lower, found.upper, found.witness), "one hidden layer")


def _norms(run: _Run) -> None:
    run.take(GapState(upper=norm_gap(run.a, run.b, budget=0.4 * run.left)), "norms")


def _intervals(run: _Run, box: Box) -> None:
    za, zb = (interval_bounds(net, box)[-1] for net in (run.a, run.b))
    upper = np.maximum(add_up(za.upper, -zb.lower), add_up(zb.upper, -za.lower))
    if not np.isnan(upper).any():
        run.take(GapState(upper=float(upper.max())), "interval bounds")


def _relax(run: _Run, box: Box) -> None:
    if _forward_seconds(run) > 0.5 * run.left:
        return
    until = time.monotonic() + 0.7 * (run.left - _forward_seconds(run))
    upper, _ = gap_bounds(run.a, run.b, box.lower[None], box.upper[None], deadline=until)
    run.take(GapState(upper=float(upper[0])), "linear bounds")


def _forward_seconds(run: _Run) -> float:
    """Guess what linear bounds take that are never tightened."""
    return _SECONDS_PER_WEIGHT * (run.a.n_parameters + run.b.n_parameters)


def _cells(run: _Run, box: Box) -> None:
    d = box.dim
    size = run.a.size + run.b.size
    if "numba" not in sys.modules and run.left < _LOADING_SECONDS:
        return
    if d > MAX_INPUTS or size > _CELL_UNITS[d] or np.any(box.lower == box.upper):
        return
    budget = 0.1 * _LONGEST if run.left == inf else 0.5 * run.left
    run.take(gap_by_cells(run.a, run.b, box, budget=budget), "cells")


def _milp(run: _Run, box: Box) -> None:
    if _forward_seconds(run) > 0.3 * run.left:
        return
    if open_units(run.a, run.b, box, deadline=time.monotonic() + 0.3 * run.left) > _MILP_UNITS:
        return
    budget = 0.1 * _LONGEST if run.left == inf else 0.6 * run.left
    run.take(gap_by_milp(run.a, run.b, box, budget=budget), PROGRAMS)


def _branch(run: _Run, box: Box, share: float) -> None:
    if share < 1.0 and box.dim > _BRANCH_INPUTS:
        return
    if 2.0 * _forward_seconds(run) > run.left:
        return
    left = run.left if run.left < inf else _LONGEST
    until = time.monotonic() + share * left
    for found in _branched(run, box, until):
        run.take(found, "branch and bound")


def _branched(run: _Run, box: Box, until: float) -> Iterator[GapState]:
    goal: dict[str, Any] = {"tol": run.tol, "precision": run.precision, "deadline": until}
    if n_workers(run.n_jobs) == 1:
        return gap_by_branching(run.a, run.b, box, start=run.state, **goal)
    if run.frontier is None:  # the second time goes on where the first one ended
        run.frontier = Frontier(Cover.empty(box.dim))
    goal |= {"n_jobs": run.n_jobs, "frontier": run.frontier}
    return gap_in_rounds(run.a, run.b, box, start=run.state, **goal)
