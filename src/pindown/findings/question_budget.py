"""The budget of a question: how questions share an audit's time, and what one of them may spend.

An audit has one :class:`~pindown.deadline.Deadline`. Every question says what it needs, its
:class:`Cost`; when it is asked it gets a :class:`Turn`, its own part of the time that is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pindown.deadline import NEVER, Deadline, OutOfTime, Stopwatch
from pindown.findings.tuning import FIRST_WORK, MAX_SLOWNESS


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a question that does not apply; the message follows "not applicable, because"."""


class TooLong(OutOfTime):
    """Raised before work that cannot be cut short and does not fit.

    Attributes:
        seconds: About what it takes.
        left: What there was.
    """

    def __init__(self, seconds: float, left: float) -> None:
        super().__init__(f"takes about {seconds:.3g} s")
        self.seconds, self.left = seconds, left


@dataclass(frozen=True)
class Cost:
    """What a question needs: seconds to say anything at all, and its part of what is left over."""

    least: float = 0.1
    weight: float = 1.0


@dataclass(frozen=True)
class Turn:
    """The time of one question.

    Attributes:
        audit: When the time of all questions is used up.
        own: When this question should stop, so that later ones have their time.
        last: By when work that cannot be cut short must be over.
        budget: In words, the time that all questions share.
        work: What this process has worked since the audit began.

    >>> Turn.lasting(60.0).passed, Turn.lasting(0.0).passed
    (False, True)
    """

    audit: Deadline
    own: Deadline = NEVER
    last: Deadline = NEVER
    budget: str = ""
    work: Stopwatch = field(default_factory=partial(Stopwatch, cpu=True), compare=False)

    @classmethod
    def lasting(cls, seconds: float) -> Turn:
        """Return the time of a question that is alone, counted from now."""
        return cls(Deadline.after(seconds), budget=f"{seconds:g} s")

    @property
    def slowness(self) -> float:
        """How many seconds passed per second of work so far: above 1 on a machine that is busy."""
        worked = self.work.seconds
        if worked < FIRST_WORK:
            return 1.0
        return min(MAX_SLOWNESS, max(1.0, self.audit.spent / worked))

    @property
    def left(self) -> float:
        """Seconds left for this question; never negative."""
        return min(self.audit.left, self.own.left)

    @property
    def in_words(self) -> str:
        """How long the question may take, to be said after its title.

        >>> Turn.lasting(20.0).in_words, Turn.lasting(0.3).in_words
        (', up to about 20 s', ', under a second')
        """
        return f", up to about {math.ceil(self.left)} s" if self.left > 1.0 else ", under a second"

    @property
    def most(self) -> float:
        """Seconds that work may take which cannot be cut short: later questions keep their least."""
        return min(self.audit.left, self.last.left)

    @property
    def passed(self) -> bool:
        """Whether the time of all questions is used up."""
        return self.audit.passed

    def share(self, fraction: float) -> Deadline:
        """Return the deadline at which this fraction of the time left for this question is gone."""
        return Deadline.after(fraction * self.left)

    def share_of_all(self, fraction: float) -> Deadline:
        """Return the deadline at which this fraction of the time left for all questions is gone."""
        return self.audit.share(fraction)

    def for_first(self, costs: Sequence[Cost]) -> Turn:
        r"""Return the turn of the first of several questions, which all share the time left.

        With T seconds left, least times :math:`m_i` and weights :math:`w_i`, the first gets

        .. math:: m_1 + \frac{w_1}{\sum_i w_i} \Bigl(T - \sum_i m_i\Bigr),
            \qquad \text{or} \quad T \frac{m_1}{\sum_i m_i} \quad \text{if the least do not fit,}

        and its indivisible work may take what the least times of the others leave. Asked again before
        each question, this hands on what earlier ones did not use, and spreads what they overran.

        >>> audit = Turn.lasting(60.0)
        >>> first = audit.for_first([Cost(1.0, 3.0), Cost(9.0, 1.0)])
        >>> round(first.left), round(first.most), round(audit.left)
        (38, 51, 60)
        """
        if not costs:
            return self
        left = self.left
        least, weight = sum(c.least for c in costs), sum(c.weight for c in costs)
        first = costs[0]
        if left < least:
            granted = left * first.least / least
        else:
            granted = first.least + ((left - least) * first.weight / weight if first.weight else 0.0)
        most = max(granted, left - (least - first.least))
        return replace(self, own=Deadline.after(granted), last=Deadline.after(most))
