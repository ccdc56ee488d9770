"""A comparison while it runs: the networks, what is proved about them, and until when to go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.bound_text import interval_text
from pindown.box import Box
from pindown.equivalence.comparison.result import LayerDifference, verdict_of
from pindown.equivalence.comparison.witness_search import proved_gap
from pindown.equivalence.comparison.bracket import GapState
from pindown.network import ReluNetwork

Report: TypeAlias = Callable[[str, int, int], None]


@dataclass
class Comparison:
    """Two networks, what is proved about them so far, and until when to go on."""

    first: ReluNetwork
    second: ReluNetwork
    box: Box | None
    tol: float
    deadline: float
    seed: int
    report: Report | None
    n_jobs: int | None = None
    began: float = field(default_factory=time.monotonic)
    state: GapState = field(default_factory=GapState)
    layers: tuple[LayerDifference, ...] = ()
    steps: tuple[str, ...] = ()
    by_programs: bool = False

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def goes_on(self) -> bool:
        """Whether nothing is decided, and there is time to go on."""
        undecided = verdict_of(self.state.lower, self.state.upper, self.tol) == "undecided"
        return undecided and self.left > 0

    def take(
        self,
        method: str,
        *,
        upper: float = inf,
        point: ArrayLike | None = None,
        lower: float | None = None,
    ) -> None:
        """Take over an upper bound, or a point; its gap is proved for the given networks, if unknown."""
        witness = None if point is None else np.asarray(point, dtype=np.float64)
        if witness is None:
            lower = 0.0
        elif lower is None:
            lower = proved_gap(self.first, self.second, witness, relative=self.box is None)
        seconds = time.monotonic() - self.began
        self.state = self.state.narrowed(seconds, method, lower=lower, upper=upper, witness=witness)
        self.say(method)

    def say(self, what: str) -> None:
        """Report what is being done, and what is proved."""
        if self.report is not None:
            total = self.deadline - self.began
            steps = 1000 if isfinite(total) else 1
            done = int(steps * min(1.0, (time.monotonic() - self.began) / total)) if total > 0 else 0
            interval = f"gap in {interval_text(self.state.lower, self.state.upper)}"
            self.report(f"{what}: {interval}", done, steps)
