"""Two checkpoints of one model side by side: what changed, and how far apart the functions are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pindown.findings.finding import Finding, Quantity
from pindown.findings.tuning import NOISE_IN_STANDARD_ERRORS
from pindown.findings.wording import at_least, at_most, count, number_text
from pindown.text import card

if TYPE_CHECKING:
    from pindown.equivalence import Diff


ChangeStatus: TypeAlias = Literal["same", "changed", "new", "lost", "neither"]


@dataclass(frozen=True)
class Change:
    """One finding before and after.

    Attributes:
        code: Code of the finding.
        title: Title of the finding.
        before: The verdict about the first network.
        after: The verdict about the second.
        before_number: The number behind it, if there is one.
        after_number: Likewise.
        status: ``"same"`` or ``"changed"``; ``"new"`` and ``"lost"`` if only one has an answer,
            ``"neither"`` if none has.
    """

    code: str
    title: str
    before: str
    after: str
    before_number: Quantity | None
    after_number: Quantity | None
    status: ChangeStatus

    @property
    def difference(self) -> float | None:
        """After minus before, if both are finite numbers of one unit and neither only a bound."""
        a, b = self.before_number, self.after_number
        if a is None or b is None or (a.unit, a.label) != (b.unit, b.label) or a.bound or b.bound:
            return None
        return b.value - a.value if math.isfinite(a.value) and math.isfinite(b.value) else None

    @property
    def text(self) -> str:
        """The difference in words, empty if there is none."""
        step, a, b = self.difference, self.before_number, self.after_number
        if not step or a is None or b is None:
            return ""
        points = f"{100 * abs(step):.3g} percentage points"
        size = points if b.unit == "%" else number_text(abs(step), b.unit)
        noise = math.hypot(a.standard_error or 0.0, b.standard_error or 0.0)
        within = ", within the noise" if abs(step) <= NOISE_IN_STANDARD_ERRORS * noise else ""
        return f"{'+' if step > 0 else '−'}{size}{within}"

    def __str__(self) -> str:
        if self.status == "same":
            return f"[{self.code}] {self.title}: as before, {self.after}"
        step = f" ({self.text})" if self.text else ""
        return f"[{self.code}] {self.title}: {self.before}  →  {self.after}{step}"


@dataclass(frozen=True)
class Distance:
    """How far apart the two functions are: a proved interval for the largest gap of any output.

    Attributes:
        lower: The gap at an input that was found.
        upper: Proved upper bound, possibly infinite.
        verdict: ``"same"`` up to the tolerance, ``"different"`` or ``"undecided"``.
        tolerance: What counts as the same.
        place: The inputs considered, in words.
    """

    lower: float
    upper: float
    verdict: Literal["same", "different", "undecided"]
    tolerance: float
    place: str

    @classmethod
    def of(cls, diff: Diff, place: str) -> Distance:
        """Read the interval of a comparison on a box."""
        return cls(diff.gap_lower, diff.gap_upper, diff.verdict, diff.tol, place)

    @property
    def text(self) -> str:
        """The interval as a sentence."""
        if self.verdict == "same":
            if self.upper == 0.0:
                return f"On {self.place} the two are exactly the same function."
            return f"On {self.place} no output of the two differs by more than {at_most(self.upper)}."
        if self.verdict == "undecided":
            upper = at_most(self.upper) if math.isfinite(self.upper) else "any number"
            return (
                f"Whether the two differ by more than {self.tolerance:g} on {self.place} was not "
                f"decided: the largest gap is between {at_least(self.lower)} and {upper}."
            )
        above = f" and nowhere by more than {at_most(self.upper)}" if math.isfinite(self.upper) else ""
        return (
            f"Somewhere on {self.place} their outputs differ by {at_least(self.lower)} or more{above}."
        )

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}"


@dataclass(frozen=True)
class Comparison:
    """What changed between two checkpoints.

    Attributes:
        before: Name of the first.
        after: Name of the second.
        changes: One per finding, in the order of the catalogue.
        distance: How far apart the functions are, if there was time to ask.
        notes: What makes the two hard to compare.
        failed: What failed by an error of pindown: codes of questions about the first, ``"distance"``.
    """

    before: str
    after: str
    changes: tuple[Change, ...]
    distance: Distance | None = None
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[Change, ...]:
        """The findings that differ."""
        return tuple(c for c in self.changes if c.status not in ("same", "neither"))

    @property
    def sentence(self) -> str:
        """The comparison in a sentence or two, for the paragraph that opens a report."""
        both = [change.status for change in self.changes if change.status in ("same", "changed")]
        differ, single = both.count("changed"), len(self.changed) - both.count("changed")
        told = f"{differ} of {count(len(both), 'finding')} changed" if differ else "no finding changed"
        told += f"; for one of the two only, {count(single, 'question')} got an answer" if single else ""
        apart = "" if self.distance is None else f" {self.distance.text}"
        return f"Since {self.before}, {told}.{apart}"

    _repr_html_ = card

    def __str__(self) -> str:
        lines = [f"{self.before}  →  {self.after}"]
        lines += [] if self.distance is None else [self.distance.text]
        return "\n".join([*lines, *self.notes, *map(str, self.changed)])


def changes(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[Change, ...]:
    """Pair findings by their codes; those that only one side has are left out."""
    first = {finding.code: finding for finding in before}
    return tuple(_change(first[f.code], f) for f in after if f.code in first)


def _change(a: Finding, b: Finding) -> Change:
    status: ChangeStatus
    if a.answered and b.answered:
        status = "same" if (a.verdict, a.number) == (b.verdict, b.number) else "changed"
    elif b.answered:
        status = "new"
    else:
        status = "lost" if a.answered else "neither"
    return Change(b.code, b.title, a.verdict, b.verdict, a.number, b.number, status)
