"""What every bound of this package returns: a number, how sure it is, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pindown.evidence import Assumption, Kind, kind_of
from pindown.text import card, rounded_up
from pindown.validation import number

# The formulas here take fewer than a hundred float64 operations on positive numbers, each right to two
# units in the last place; this covers them all.
_SLACK = 2.0**-44
# Below it, six digits of the confidence say 1.
_SHOWN_DELTA = 1e-5


INDEPENDENT = Assumption("examples are independent and like those to come")


@dataclass(frozen=True)
class Bound:
    """An upper bound that holds with a stated probability; prints itself in two lines.

    Attributes:
        name: Which bound.
        formula_value: What the formula gives, also where it is above the trivial value.
        delta: Probability with which it may fail; zero if it cannot.
        about: What is bounded.
        terms: The parts of the formula by name.
        assumptions: What it rests on.
        source: The theorem.
        trivial: What is certain without any theorem: 1 for a risk.
        estimated: Whether the number rests on estimates without a proved error.

    >>> bound = Bound("McAllester", 0.2501, 0.05, assumptions=(INDEPENDENT,), source="McAllester 2003")
    >>> print(bound)
    McAllester: risk at most 0.251 with probability 0.95 (probability; McAllester 2003)
    rests on: examples are independent and like those to come (assumed)
    >>> Bound("spectral", 27.0, 0.05).vacuous
    True
    """

    name: str
    formula_value: float
    delta: float
    about: str = "risk"
    terms: Mapping[str, float] = field(default_factory=dict, hash=False)
    assumptions: tuple[Assumption, ...] = ()
    source: str = ""
    trivial: float = 1.0
    estimated: bool = False

    def __post_init__(self) -> None:
        if math.isnan(self.formula_value):
            raise ValueError(f"the formula of {self.name!r} gave NaN; its arguments leave float64.")
        number("delta", self.delta, 0.0, 1.0, below=True)
        object.__setattr__(self, "terms", dict(self.terms))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))

    @property
    def value(self) -> float:
        """The bound: the formula, or the trivial value where that is smaller."""
        return min(self.formula_value, self.trivial)

    @property
    def vacuous(self) -> bool:
        """Whether the formula says no more than what is certain anyway."""
        return self.formula_value >= self.trivial

    @property
    def confidence(self) -> float:
        """Probability with which the bound holds, one minus delta."""
        return 1.0 - self.delta

    @property
    def kind(self) -> Kind:
        """How the number is known; a violated assumption makes it a heuristic."""
        return kind_of(self.assumptions, delta=self.delta, estimated=self.estimated)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        return {
            "name": self.name,
            "about": self.about,
            "value": self.value,
            "formula_value": self.formula_value,
            "vacuous": self.vacuous,
            "confidence": self.confidence,
            "kind": self.kind,
            "terms": {name: float(value) for name, value in self.terms.items()},
            "assumptions": [{"text": a.text, "status": a.status} for a in self.assumptions],
            "source": self.source,
        }

    _repr_html_ = card

    def __str__(self) -> str:
        chance = f" with probability {shown_confidence(self.delta)}" if self.delta > 0 else ""
        said = f"at most {rounded_up(self.value)}{chance}"
        if self.vacuous:
            said = (
                f"vacuous, the formula gives {rounded_up(self.formula_value)} where "
                f"{self.trivial:g} is certain"
            )
        marks = "; ".join(filter(None, (self.kind, self.source)))
        rests = "; ".join(map(str, self.assumptions)) or "nothing"
        return f"{self.name}: {self.about} {said} ({marks})\nrests on: {rests}"


def shown_confidence(delta: float) -> str:
    """Return one minus delta in words that do not round to certainty.

    >>> shown_confidence(0.05), shown_confidence(1e-9)
    ('0.95', '1 - 1e-09')
    """
    return f"{1.0 - delta:.6g}" if delta >= _SHOWN_DELTA else f"1 - {delta:.3g}"


def outward(value: float) -> float:
    """Return a number a little above, by more than rounding in a short formula can have taken.

    >>> 0.1 < outward(0.1) < 0.1 + 1e-13
    True
    """
    if value == 0.0 or not math.isfinite(value):
        return value
    return math.nextafter(value + abs(value) * _SLACK, math.inf)


def exp_up(exponent: float) -> float:
    """Return ``exp(exponent)``, rounded up: above zero also where float64 has no such number.

    >>> exp_up(0.0) - 1.0 < 1e-12, exp_up(-1e6) > 0.0
    (True, True)
    """
    # An exponent that is right to a few units in the last place may be off by many times that.
    return outward(math.exp(exponent + abs(exponent) * _SLACK)) or math.ulp(0.0)


def half_square(a: float, b: float) -> float:
    """Return ``(a / b)**2 / 2``, infinite where that leaves float64.

    >>> half_square(4.0, 2.0), half_square(1e200, 1e-200), half_square(1.0, 0.0)
    (2.0, inf, inf)
    """
    if b == 0.0:
        return math.inf
    return 0.5 * (a / b) * (a / b)
