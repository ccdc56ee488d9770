"""One clock: when work has to be over, how it shares its time, and how it runs out.

Public functions take ``budget``, a number of seconds; inside, work is handed a :class:`Deadline`. Time
is that of ``time.monotonic``, which never goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from pindown.validation import number


class OutOfTime(TimeoutError):  # noqa: N818 - an answer, not an error
    """Raised inside a computation that can say nothing in the time left; its caller catches it."""


@dataclass(frozen=True)
class Deadline:
    """The moment at which a budget of seconds is used up.

    Attributes:
        end: The moment, as ``time.monotonic()`` counts; infinite for work that may take forever.
        start: The moment from which time was counted.

    >>> Deadline.after(60.0).passed, Deadline.after(0.0).passed, NEVER.left
    (False, True, inf)
    """

    end: float = inf
    start: float = field(default_factory=time.monotonic)

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """Return the deadline so many seconds from now; None stands for no limit."""
        now = time.monotonic()
        return cls(inf if seconds is None else now + seconds, now)

    @classmethod
    def of(cls, budget: float | None) -> Deadline:
        """Return the deadline of a budget that a user gave: seconds, or None for no limit.

        >>> Deadline.of(None).left, Deadline.of(0).passed
        (inf, True)
        """
        return cls.after(None if budget is None else checked_budget(budget, zero=True))

    def __reduce__(self) -> tuple[Callable[..., Deadline], tuple[float, float]]:
        """Send the time of day: the clock of another machine began at another moment."""
        shift = time.time() - time.monotonic()
        return _received, (round(self.end + shift, 3), round(self.start + shift, 3))

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.end - time.monotonic())

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    @property
    def passed(self) -> bool:
        """Whether the time is used up."""
        return time.monotonic() >= self.end

    def share(self, fraction: float) -> Deadline:
        """Return the deadline at which this fraction of the time left is gone.

        >>> 29 < Deadline.after(60.0).share(0.5).left <= 30
        True
        """
        return Deadline.after(fraction * self.left)

    def within(self, seconds: float) -> Deadline:
        """Return the deadline so many seconds from now, or this one if it comes first.

        >>> 9 < Deadline.after(60.0).within(10.0).left <= 10, Deadline.after(1.0).within(10.0).left <= 1
        (True, True)
        """
        now = time.monotonic()
        return Deadline(min(self.end, now + seconds), now)

    def check(self) -> None:
        """Go on, or give up.

        Raises:
            OutOfTime: If the time is used up.
        """
        if self.passed:
            raise OutOfTime


def _received(end: float, start: float) -> Deadline:
    shift = time.time() - time.monotonic()
    return Deadline(end - shift, start - shift)


NEVER = Deadline(inf, 0.0)


class Stopwatch:
    """How long something has taken.

    Args:
        cpu: Whether to count the work of this process instead of the time.
        clock: What to read instead of both; returns seconds.

    >>> watch = Stopwatch()
    >>> 0 <= watch.seconds < 1
    True
    """

    def __init__(self, *, cpu: bool = False, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or (time.process_time if cpu else time.monotonic)
        self._start = self._clock()

    @property
    def seconds(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._start


def checked_budget(budget: object, *, zero: bool = False) -> float:
    """Return a number of seconds above zero, possibly infinite.

    Args:
        budget: What a user gave.
        zero: Whether no time at all is accepted too.

    >>> checked_budget(2)
    2.0
    """
    return number("budget", budget, 0.0, inf, above=not zero, infinite=True)
