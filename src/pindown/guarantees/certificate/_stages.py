"""A part of a run of certify: counts its steps, ends with its time, and shows how far it is."""

from __future__ import annotations

from collections.abc import Iterator

from pindown.deadline import NEVER, Deadline
from pindown.progress import progress_bar

# Seconds that a stage is taken to last at least, where its time was over before it began.
_MIN_SECONDS = 0.2


class Stage:
    """A part of a run: counts steps, ends when its time is over, shows how far it is.

    Args:
        what: What is being done, for the bar.
        total: Steps it takes if nothing stops it.
        deadline: When to stop.
        verbose: 0 shows no bar.

    >>> len(list(Stage("counting", 3).steps()))
    3
    """

    def __init__(self, what: str, total: int, deadline: Deadline = NEVER, verbose: int = 0) -> None:
        self.what, self.total, self.verbose = what, total, verbose
        self._deadline = Deadline(deadline.end)  # counted from now
        self._done = 0

    @property
    def progress(self) -> float:
        """Share that is done, of the steps or of the time, whichever is larger."""
        lasts = max(self._deadline.end - self._deadline.start, _MIN_SECONDS)
        return min(max(self._done / max(self.total, 1), self._deadline.spent / lasts), 1.0)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self._deadline.passed

    def steps(self, stride: int = 1) -> Iterator[int]:
        """Yield 0, 1, ..., or every so many of them; the first is always taken."""
        with progress_bar(verbose=self.verbose) as report:
            for step in range(0, self.total, stride):
                if step and self.late:
                    return
                self._done = step
                report(self.what, self.progress, 1.0)
                yield step
