"""A time budget that is handed around instead of a global clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Deadline:
    """The moment a budget of seconds, counted from now, is used up.

    >>> Deadline(60.0).passed, Deadline(0.0).passed
    (False, True)
    """

    budget: float
    start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.start + self.budget - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the budget is used up."""
        return self.left == 0.0

    def share(self, fraction: float) -> float:
        """Return the moment (``time.monotonic``) at which this fraction of the time left is gone."""
        return time.monotonic() + fraction * self.left


class NotApplicable(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a question that does not apply; the message follows "not applicable, because"."""


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """Raised by a question that cannot say anything in the time left."""
