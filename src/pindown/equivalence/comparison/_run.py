"""A comparison while it runs: one deadline, one proved bracket, one report of how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._parallel_branching import Frontier
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.result import LayerDifference
from pindown.evidence import Bracket
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.relaxation.differential import proved_gap
from pindown.rounding import add_up
from pindown.text import interval_text


@dataclass(frozen=True, eq=False)
class Pair:
    """Two networks that methods work on; they stand for the given ones.

    Attributes:
        a: In place of the first.
        b: In place of the second.
        slack: What that may add to their gap.
        matched: Whether their units were paired already, as far as they can be.
    """

    a: ReluNetwork
    b: ReluNetwork
    slack: float = 0.0
    matched: bool = False


@dataclass
class Run:
    """Two networks, what is proved about their gap, and until when to go on.

    Attributes:
        first: The first network, or the graph of operations that it is.
        second: The second.
        box: The inputs, or None for all of them, in the relative sense.
        deadline: When to stop.
        tol: The gap to decide about; None to narrow the interval to ``precision``.
        precision: The ends need not be nearer to each other than this share of the upper one.
        seed: Chooses the points of searches.
        n_jobs: Workers for branch and bound.
        report: Told what is being done.
        state: What is proved about the gap of ``first`` and ``second``.
        given: The two networks, if they have exact normal forms.
        pair: The networks that methods work on.
        by_kinks: Writes these by their kinks alone, once they were made smaller.
        layers: What differs where.
        steps: What was simplified, in words.
        by_programs: Whether a simplification rests on mixed-integer programs.
        frontier: How far branch and bound by several workers has come with the pair.
    """

    first: ReluNetwork | Model
    second: ReluNetwork | Model
    box: Box | None
    deadline: Deadline
    tol: float | None = None
    precision: float = 1e-6
    seed: int = 0
    n_jobs: int | None = 1
    report: Report = silent
    state: GapState = field(default_factory=GapState)
    given: Pair | None = None
    pair: Pair = field(init=False)
    by_kinks: Callable[[], Pair] | None = None
    layers: tuple[LayerDifference, ...] = ()
    steps: tuple[str, ...] = ()
    by_programs: bool = False
    frontier: Frontier | None = None
    _tried: Array | None = None

    def __post_init__(self) -> None:
        if isinstance(self.first, ReluNetwork) and isinstance(self.second, ReluNetwork):
            self.compare(self.first, self.second)

    def compare(self, first: ReluNetwork, second: ReluNetwork) -> None:
        """Compare networks, maybe in place of the graphs whose normal forms they are."""
        self.first, self.second = first, second
        self.given = Pair(first, second)
        self.work_on(self.given)

    @property
    def decided(self) -> bool:
        """Whether the interval decides, or is as narrow as asked for."""
        return self.state.settled(self.tol, self.precision)

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide, or no time."""
        return self.deadline.passed or self.decided

    @property
    def tol_of_pair(self) -> float | None:
        """The gap of the pair up to which that of the given networks is at most the tolerance."""
        return None if self.tol is None else max(0.0, self.tol - self.pair.slack)

    def work_on(self, pair: Pair) -> None:
        """Let methods work on another pair."""
        self.pair, self.frontier = pair, None

    def take(self, method: str, found: Bracket) -> None:
        """Take over what a method proved about the pair; a witness is proved again for those given."""
        lower, upper, point = found.lower, found.upper, found.witness
        if self.given is not None:
            a, b = self.given.a, self.given.b
            if point is not None and not (self.pair.a is a and self.pair.b is b):
                known = point is self._tried
                lower = 0.0 if known else proved_gap(a, b, point, self.box is None)
                self._tried = point
            upper = float(add_up(found.upper, self.pair.slack))
        better = self.state.narrowed(self.deadline.spent, method, Bracket(lower, upper, point))
        if better is not self.state:
            self.state = better
            self.say(method)

    def say(self, what: str) -> None:
        """Report what is being done, and what is proved."""
        spent, left = self.deadline.spent, self.deadline.left
        interval = f"gap in {interval_text(self.state.lower, self.state.upper)}"
        total = spent + left if isfinite(left) else None
        self.report(f"{what}: {interval}", min(spent, total or spent), total)
