"""What a fit is promised by its theorem, and which assumptions the data met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["exact", "probability", "estimate", "heuristic"]
Status: TypeAlias = Literal["checked", "assumed", "violated"]


@dataclass(frozen=True)
class Assumption:
    """A condition of a theorem, and what is known about it here.

    Attributes:
        text: The condition in words, with the numbers found.
        status: ``"checked"`` on the data, ``"assumed"``, or ``"violated"``.
    """

    text: str
    status: Status

    def __str__(self) -> str:
        return f"{self.text} ({self.status})"


@dataclass(frozen=True)
class GateGuarantee:
    """A number that a theorem promises for a fitted gate; prints itself with what it rests on.

    Attributes:
        about: What the number bounds.
        value: The bound; infinite if nothing is promised.
        delta: Probability with which it may fail; zero if it cannot.
        assumptions: What it rests on.
        source: The theorem.
        estimated: Whether constants in it were estimated from a sample.
    """

    about: str
    value: float
    delta: float
    assumptions: tuple[Assumption, ...]
    source: str
    estimated: bool = False

    @property
    def kind(self) -> Kind:
        """How the number is known; a violated assumption makes it a heuristic."""
        if any(a.status == "violated" for a in self.assumptions):
            return "heuristic"
        if self.estimated:
            return "estimate"
        return "probability" if self.delta > 0 else "exact"

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised."""
        return not self.value < float("inf")

    def __str__(self) -> str:
        chance = f" with probability {1 - self.delta:.6g}" if self.delta > 0 else ""
        bound = "no bound" if self.vacuous else f"at most {self.value:.6g}"
        rests = "; ".join(map(str, self.assumptions)) or "nothing"
        return f"{self.about}: {bound}{chance} ({self.kind}; {self.source})\nrests on: {rests}"
