"""A comparison while it runs: one deadline, one proved bracket, one report of how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._climbing import Climb
from pindown.equivalence.comparison._parallel_branching import Frontier
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.result import LayerDifference
from pindown.equivalence.tuning import CLOSE, CLOSING_PRECISION, CLOSING_SECONDS
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
        closing: What ``precision`` becomes once the gap is proved to be larger than the tolerance, which
            is no longer asked about then; None to stop.
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
        branchings: How far branch and bound has come, with each pair.
        frontiers: The same by several workers.
        slot: The length of the round of methods that goes on, which does not depend on the deadline.
        round: Its number.
        cut: Whether a method of it had too little time: a longer round can say more.
        reduced: Whether there is nothing left to find on the weights, and no smaller pair.
        ended: Whether what comes next takes longer than there is time.
        climb: Looks for larger gaps on the box once the networks are known to differ.
    """

    first: ReluNetwork | Model
    second: ReluNetwork | Model
    box: Box | None
    deadline: Deadline
    tol: float | None = None
    precision: float = 1e-6
    closing: float | None = None
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
    branchings: dict[Pair, Iterator[Bracket]] = field(default_factory=dict)
    frontiers: dict[Pair, Frontier] = field(default_factory=dict)
    slot: Deadline = field(init=False)
    round: int = 0
    cut: bool = False
    reduced: bool = False
    ended: bool = False
    climb: Climb | None = None
    _tried: Array | None = None

    def __post_init__(self) -> None:
        self.slot = self.deadline
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
        early = self.differ and self.closing == CLOSING_PRECISION
        if early and self.deadline.spent < CLOSING_SECONDS:
            return self.state.settled(None, CLOSE)
        return self.state.settled(self.tol, self.precision)

    @property
    def differ(self) -> bool:
        """Whether the gap is proved to be larger than the tolerance, the interval to be closed."""
        return self.tol is None and self.closing is not None

    @property
    def over(self) -> bool:
        """Whether there is nothing left to decide, or no time."""
        return self.ended or self.deadline.passed or self.decided

    @property
    def tol_of_pair(self) -> float | None:
        """The gap of the pair up to which that of the given networks is at most the tolerance."""
        return None if self.tol is None else max(0.0, self.tol - self.pair.slack)

    def work_on(self, pair: Pair) -> None:
        """Let methods work on another pair."""
        self.pair = pair

    def lasts(self, seconds: float, share: float = 1.0) -> bool:
        """Return whether work of about so many seconds fits a share of the round; else it is cut.

        Work that fits the round and not the deadline ends the run: what comes later would otherwise be
        done by a run with less time and not by one with more.
        """
        if seconds > share * self.slot.left:
            self.cut = True
            return False
        self.ended = seconds > self.deadline.left
        return not self.ended

    def close(self, precision: float) -> None:
        """Once networks are proved different, go on until the ends are as near to each other."""
        self.closing = precision
        if self.tol is not None and self.state.lower > self.tol:
            self.tol, self.precision = None, precision

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
        if self.closing is not None:
            self.close(self.closing)

    def say(self, what: str) -> None:
        """Report what is being done, and what is proved."""
        spent, left = self.deadline.spent, self.deadline.left
        interval = f"gap in {interval_text(self.state.lower, self.state.upper)}"
        total = spent + left if isfinite(left) else None
        self.report(f"{what}: {interval}", min(spent, total or spent), total)
