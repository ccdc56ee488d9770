"""A time budget that is handed around instead of a global clock, and how questions share it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

_FIRST_WORK = 0.2  # seconds of work before the speed of the machine is judged
_MOST_SLOWNESS = 20.0


@dataclass(frozen=True)
class Deadline:
    """The moment a budget of seconds, counted from now, is used up.

    Attributes:
        budget: Seconds in all.
        start: When they began to run, as ``time.monotonic()`` counts.
        own: The moment at which one question should stop, so that later ones have their time.
        last: The moment by which work that cannot be cut short must be over.
        work: Seconds of work this process had done at the start.
        shared: What the budget is a part of, in words; empty if it is the whole.

    >>> Deadline(60.0).passed, Deadline(0.0).passed
    (False, True)
    """

    budget: float
    start: float = field(default_factory=time.monotonic)
    own: float = float("inf")
    last: float = float("inf")
    work: float = field(default_factory=time.process_time)
    shared: str = ""

    @property
    def slowness(self) -> float:
        """How many seconds passed per second of work so far: above 1 on a machine that is busy."""
        worked = time.process_time() - self.work
        if worked < _FIRST_WORK:
            return 1.0
        return min(_MOST_SLOWNESS, max(1.0, (time.monotonic() - self.start) / worked))

    @property
    def end(self) -> float:
        """When the whole budget is used up, as ``time.monotonic()`` counts."""
        return self.start + self.budget

    @property
    def left(self) -> float:
        """Seconds left, for one question if the budget was shared; never negative."""
        return max(0.0, min(self.end, self.own) - time.monotonic())

    @property
    def most(self) -> float:
        """Seconds that work may take which cannot be cut short: later questions keep their least."""
        return max(0.0, min(self.end, self.last) - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the whole budget is used up."""
        return time.monotonic() >= self.end

    def share(self, fraction: float) -> float:
        """Return the moment (``time.monotonic``) at which this fraction of the time left is gone."""
        return time.monotonic() + fraction * self.left

    def share_of_all(self, fraction: float) -> float:
        """Return the moment at which this fraction of the time left for all questions is gone."""
        now = time.monotonic()
        return now + fraction * max(0.0, self.end - now)

    def for_first(self, costs: Sequence[Cost]) -> Deadline:
        r"""Return the deadline of the first of several questions, which all share the time left.

        With T seconds left, least times :math:`m_i` and weights :math:`w_i`, the first gets

        .. math:: m_1 + \frac{w_1}{\sum_i w_i} \Bigl(T - \sum_i m_i\Bigr),
            \qquad \text{or} \quad T \frac{m_1}{\sum_i m_i} \quad \text{if the least do not fit,}

        and its indivisible work may take what the least times of the others leave. Asked again before
        each question, this hands on what earlier ones did not use, and spreads what they overran.

        >>> clock = Deadline(60.0)
        >>> first = clock.for_first([Cost(1.0, 3.0), Cost(9.0, 1.0)])
        >>> round(first.left), round(first.most), round(clock.left)
        (38, 51, 60)
        """
        now, left = time.monotonic(), self.left
        if not costs:
            return self
        least, weight = sum(c.least for c in costs), sum(c.weight for c in costs)
        first = costs[0]
        if left < least:
            granted = left * first.least / least
        else:
            granted = first.least + (left - least) * (first.weight / weight if weight else 0.0)
        most = max(granted, left - (least - first.least))
        return replace(self, own=now + granted, last=now + most)


def checked_budget(budget: object) -> float:
    """Return a number of seconds.

    Raises:
        ValueError: If it is none, or not positive.
    """
    try:
        seconds = float(budget)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        seconds = float("nan")
    if not seconds > 0:
        raise ValueError(f"budget must be a positive number of seconds; got {budget!r}.")
    return seconds


@dataclass(frozen=True)
class Cost:
    """What a question needs: seconds to say anything at all, and its part of what is left over."""

    least: float = 0.1
    weight: float = 1.0


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a question that does not apply; the message follows "not applicable, because"."""


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a question that cannot say anything in the time left."""
