"""What an audit says: a verdict, its number with the kind of proof, and what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pindown.evidence import Assumption, Kind
from pindown.findings.pictures import Picture
from pindown.findings.wording import at_least, at_most, number_text, with_unit
from pindown.text import card

Status: TypeAlias = Literal["answered", "not applicable", "not run", "error"]
Entry: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class Quantity:
    """The number of a finding and how far it can be believed.

    Attributes:
        value: The number itself.
        kind: How it is known; see :data:`pindown.evidence.KINDS`.
        unit: What it counts, for instance ``"parameters"``; ``"%"`` shows ``value`` as a percentage.
        standard_error: Standard error of an estimate, in the units of ``value``.
        n: Sample size of an estimate.
        delta: Probability with which a bound may fail.
        label: What the number is, where the unit does not say it.
        bound: Whether it bounds something from above or below.

    >>> print(Quantity(0.25, "estimate", "%", standard_error=0.01, n=1875))
    25.0% ± 1.0% (estimate, n = 1,875)
    """

    value: float
    kind: Kind
    unit: str = ""
    standard_error: float | None = None
    n: int | None = None
    delta: float | None = None
    label: str = ""
    bound: Literal["", "upper", "lower"] = ""

    @property
    def text(self) -> str:
        """The value with its unit; a bound is rounded outwards."""
        if self.bound:
            rounded = at_most(self.value) if self.bound == "upper" else at_least(self.value)
            return with_unit(rounded, self.unit)
        return number_text(self.value, self.unit)

    def __str__(self) -> str:
        error = (
            "" if self.standard_error is None else f" ± {number_text(self.standard_error, self.unit)}"
        )
        details: list[str] = [self.kind]
        details += [] if self.n is None else [f"n = {self.n:,}"]
        details += [] if self.delta is None else [f"delta = {self.delta:g}"]
        return f"{self.text}{error} ({', '.join(details)})"


@dataclass(frozen=True)
class Table:
    """Rows beside a finding; numbers stay numbers until a report prints them."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]


@dataclass(frozen=True)
class Finding:
    """One answer of an audit.

    Attributes:
        code: Stable name such as ``"ARC-01"``; the registry fills it in, and the title.
        title: What was asked, in a few words.
        verdict: The answer in one line; for other statuses "not applicable, because ...".
        number: The number behind the verdict.
        hypotheses: What the answer rests on.
        reading: What it means, in plain words.
        scale: What to read the number against.
        figure: Data of a picture.
        table: Details.
        status: Whether there is an answer.
        sentence: The answer as a full sentence, for the description in a report.
        facts: Further numbers by name, which concerns and gates look at.
        noise: What another seed or more time may change of the number, as a standard error, under the
            empty name; of facts, where that is another, by theirs. Without: the number's own error.
        remedy: What would mend what it found, in words, if the answer says that.
        next: The command that goes on from here, if there is one.
    """

    code: str = ""
    title: str = ""
    verdict: str = ""
    number: Quantity | None = None
    hypotheses: tuple[Assumption, ...] = ()
    reading: str = ""
    scale: str = ""
    figure: Picture | None = None
    table: Table | None = None
    status: Status = "answered"
    sentence: str = ""
    facts: Mapping[str, float] = field(default_factory=dict, hash=False)
    noise: Mapping[str, float] = field(default_factory=dict, hash=False)
    remedy: str = ""
    next: str = ""

    @property
    def answered(self) -> bool:
        """Whether the question got an answer."""
        return self.status == "answered"

    _repr_html_ = card

    def __str__(self) -> str:
        mark = f" ({self.number.kind})" if self.number else ""
        lines = [f"{f'[{self.code}]':<10}{self.title:<30}{self.verdict}{mark}"]
        for text in (self.reading, "; ".join(f"{h.status}: {h.text}" for h in self.hypotheses)):
            lines += textwrap.wrap(text, 100, initial_indent=" " * 10, subsequent_indent=" " * 10)
        return "\n".join(lines)
