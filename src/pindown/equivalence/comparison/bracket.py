"""What is proved about a gap so far, and how that came about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple, Self

from pindown.equivalence.tuning import SAME_MOMENT_SECONDS
from pindown.evidence import Bracket
from pindown.text import rounded_down, rounded_up

PROGRAMS = "mixed-integer programs"
TRUSTED = "Mixed-integer programs by HiGHS were used: its tolerances are added, its search is trusted."


class Progress(NamedTuple):
    """One improvement: after how many seconds, what was proved then, and by which method."""

    seconds: float
    lower: float
    upper: float
    method: str


@dataclass(frozen=True, eq=False, repr=False)
class GapState(Bracket):
    r"""Proved bounds on the largest gap of two networks, and how they came to be.

    Attributes:
        lower: Lower bound, attained at ``witness``, rounded down.
        upper: Upper bound on the gap over the whole domain.
        witness: An input with a gap of at least ``lower``, or None while that is 0.
        history: The improvements, the first one first.
    """

    lower: float = 0.0
    history: tuple[Progress, ...] = ()

    def __and__(self, other: Bracket) -> Self:
        """Return the better of two on each side, with the witness of the lower end; itself if it is.

        >>> GapState(0.0, 2.0) & Bracket(1.0, 3.0)
        GapState(1 <= gap <= 2)
        """
        higher, lower = other.lower > self.lower, other.upper < self.upper
        if not (higher or lower):
            return self
        low = other if higher else self
        upper = other.upper if lower else self.upper
        return replace(self, lower=low.lower, witness=low.witness, upper=upper)

    def narrowed(self, seconds: float, method: str, found: Bracket) -> Self:
        """Return the state with better ends taken over and recorded; itself if there are none.

        >>> GapState().narrowed(0.5, "interval", Bracket(upper=2.0))
        GapState(0 <= gap <= 2, by interval)
        """
        better = self & found
        if better is self:
            return self
        earlier = self.history
        if (
            earlier
            and earlier[-1].method == method
            and seconds - earlier[-1].seconds < SAME_MOMENT_SECONDS
        ):
            earlier = earlier[:-1]  # a thousand small steps are one
        step = Progress(seconds, better.lower, better.upper, method)
        return replace(better, history=(*earlier, step))

    @property
    def by_programs(self) -> bool:
        """Whether mixed-integer programs lowered the upper bound."""
        uppers = [inf, *(step.upper for step in self.history)]
        return any(
            step.method == PROGRAMS and step.upper < before
            for before, step in zip(uppers, self.history, strict=False)
        )

    def settled(self, tol: float | None, precision: float) -> bool:
        """Return whether the bounds decide about ``tol``, or (without it) meet to ``precision``."""
        if tol is not None and self.decides(tol):
            return True
        return self.upper < inf and self.gap <= precision * self.upper

    def __repr__(self) -> str:
        by = f", by {self.history[-1].method}" if self.history else ""
        return f"GapState({rounded_down(self.lower, 6)} <= gap <= {rounded_up(self.upper, 6)}{by})"
