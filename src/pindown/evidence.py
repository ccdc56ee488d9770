"""How far a number can be believed: its kind, what it rests on, and the two ends of a proof.

Every result says of itself which of four kinds it is, and carries the assumptions of its theorem with
what is known about each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, Self, TypeAlias

from pindown.affine import Array
from pindown.text import rounded_down, rounded_up

Kind: TypeAlias = Literal["exact", "probability", "estimate", "heuristic"]
Status: TypeAlias = Literal["checked", "assumed", "violated"]

# What each mark on a number means, in the words of every report.
KINDS: dict[Kind, str] = {
    "exact": "proved in exact or directed arithmetic, or by a complete search",
    "probability": "holds with probability at least 1 - delta under the stated assumptions",
    "estimate": "estimated from samples, with its standard error",
    "heuristic": "what a theorem predicts outside its assumptions",
}


@dataclass(frozen=True)
class Assumption:
    """A condition of a theorem, and what is known about it here.

    Attributes:
        text: The condition in words, with the numbers found.
        status: ``"checked"`` on the data, ``"assumed"``, or ``"violated"``.

    >>> print(Assumption("examples are independent"))
    examples are independent (assumed)
    """

    text: str
    status: Status = "assumed"

    @classmethod
    def judged(cls, text: str, holds: bool | None) -> Assumption:
        """Return an assumption that was checked and holds or not, or (None) could not be checked.

        >>> print(Assumption.judged("norms are at most 1", False))
        norms are at most 1 (violated)
        """
        return cls(text, "assumed" if holds is None else "checked" if holds else "violated")

    def __str__(self) -> str:
        return f"{self.text} ({self.status})"


def kind_of(
    assumptions: Iterable[Assumption] = (), *, delta: float = 0.0, estimated: bool = False
) -> Kind:
    """Return how a number is known; a violated assumption makes it a heuristic.

    Args:
        assumptions: What it rests on.
        delta: Probability with which it may fail.
        estimated: Whether it rests on estimates without a proved error.

    >>> kind_of(), kind_of(delta=0.05), kind_of([Assumption("convex", "violated")])
    ('exact', 'probability', 'heuristic')
    """
    if any(a.status == "violated" for a in assumptions):
        return "heuristic"
    if estimated:
        return "estimate"
    return "probability" if delta > 0 else "exact"


@dataclass(frozen=True, eq=False, repr=False)
class Bracket:
    """A number between two proved ends, and the input that shows one of them.

    Attributes:
        lower: Proved lower end.
        upper: Proved upper end.
        witness: An input that proves one of the ends, as the problem says; None if none was found.

    >>> Bracket(0.12345, 0.5)
    Bracket([0.123, 0.5])
    """

    lower: float = -inf
    upper: float = inf
    witness: Array | None = None

    def __and__(self, other: Self) -> Self:
        """Return the better of two on each side; the witness of the better upper end stays.

        >>> Bracket(0.0, 2.0) & Bracket(-1.0, 1.5)
        Bracket([0, 1.5])
        """
        best = self if self.upper <= other.upper else other
        return replace(best, lower=max(self.lower, other.lower))

    @property
    def gap(self) -> float:
        """How far the ends are apart."""
        return self.upper - self.lower

    def decides(self, limit: float) -> bool:
        """Return whether the ends tell on which side of a limit the number is (it may be on it).

        >>> Bracket(1.0, 2.0).decides(2.0), Bracket(1.0, 2.0).decides(1.5)
        (True, False)
        """
        return self.upper <= limit or self.lower > limit

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{rounded_down(self.lower)}, {rounded_up(self.upper)}])"
