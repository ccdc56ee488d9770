"""What is proved about a gap so far, and how that came about."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from pindown.affine import Array
from pindown.bound_text import rounded_down, rounded_up

PROGRAMS = "mixed-integer programs"
TRUSTED = "Mixed-integer programs by HiGHS were used: its tolerances are added, its search is trusted."
_SAME_MOMENT = 0.1  # seconds within which steps of one method are kept as one


class Progress(NamedTuple):
    """One improvement: after how many seconds, what was proved then, and by which method."""

    seconds: float
    lower: float
    upper: float
    method: str


@dataclass(frozen=True, eq=False, repr=False)
class GapState:
    r"""Proved bounds on the largest gap of two networks.

    Attributes:
        lower: Lower bound, attained at ``witness``, rounded down.
        upper: Upper bound on the gap over the whole domain.
        witness: An input with a gap of at least ``lower``, or None while that is 0.
        history: How the bounds came to be.
    """

    lower: float = 0.0
    upper: float = inf
    witness: Array | None = None
    history: tuple[Progress, ...] = ()

    def narrowed(
        self,
        seconds: float,
        method: str,
        *,
        lower: float = 0.0,
        upper: float = inf,
        witness: Array | None = None,
    ) -> GapState:
        """Return the state with better ends taken over; itself if there are none.

        >>> GapState().narrowed(0.5, "interval", upper=2.0)
        GapState(0 <= gap <= 2, by interval)
        """
        better_low, better_high = lower > self.lower, upper < self.upper
        if not (better_low or better_high):
            return self
        state = self
        if better_low:
            state = replace(state, lower=lower, witness=witness)
        if better_high:
            state = replace(state, upper=upper)
        step = Progress(seconds, state.lower, state.upper, method)
        earlier = self.history
        if earlier and earlier[-1].method == method and seconds - earlier[-1].seconds < _SAME_MOMENT:
            earlier = earlier[:-1]  # a thousand small steps are one
        return replace(state, history=(*earlier, step))

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
        if tol is not None and (self.upper <= tol or self.lower > tol):
            return True
        return self.upper < inf and self.upper - self.lower <= precision * self.upper

    def __repr__(self) -> str:
        by = f", by {self.history[-1].method}" if self.history else ""
        return f"GapState({rounded_down(self.lower, 6)} <= gap <= {rounded_up(self.upper, 6)}{by})"
