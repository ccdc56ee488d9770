r"""The range of every output of any model on a box, between proved ends.

For an output y and either direction, :math:`a \le \max_B y \le u` with a attained at a known input and u
proved. The interval is narrowed by questions to :class:`~pindown.verification.portfolio.Run`: is
:math:`y \le t` on the whole box, for a t in between? If it holds, u becomes t; if it is violated, a
becomes the value at the witness; if it is not decided, a later question is easier, nearer to u, and gets
more work.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.geometry.facts.extrema import Extremum, OutputRange
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.sparse_layers import with_sparse_layers
from pindown.parallel import n_workers
from pindown.parallel.limits import one_thread
from pindown.progress import Report, silent
from pindown.relaxation.model_bounds import bounds
from pindown.validation import number
from pindown.verification.classes import BoxLike
from pindown.verification.portfolio import Run
from pindown.verification.properties import Property
from pindown.verification.tuning import RANGE_QUESTIONS, RANGE_SAMPLES, RANGE_TURNS


def output_range(
    model: AnyModel,
    box: BoxLike,
    *,
    precision: float = 1e-3,
    budget: float | None = 60.0,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Report = silent,
) -> OutputRange:
    r"""Find the smallest and largest value of every output of any model on a box.

    For networks with few inputs :func:`pindown.geometry.output_range` finds both to rounding by
    their cells.

    Args:
        model: A model, or what can be read as one.
        box: The inputs.
        precision: How wide the interval of an extremum may stay, in shares of the width of the
            output's range.
        budget: Seconds; None for no limit. The questions that are asked do not depend on it.
        seed: Seed of the search.
        n_jobs: Threads; all cores if not given.
        progress: What is told how far the work is.

    Returns:
        For each output its extrema, with points and bounds that are proved for the real-number model:
        ``status`` is ``"proved"`` where they are as close as ``precision`` asks, else ``"partial"``.

    Raises:
        ValueError: If the box does not fit the model, or precision is not positive.

    Example:
        ``|x|`` on [-1, 2]:

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> found = output_range(net, (-1, 2), precision=0.01)
        >>> found.exact, found.upper.round(1), abs(found.lower.round(1))
        (True, array([2.]), array([0.]))
    """
    deadline = Deadline.of(budget)
    share = number("precision", precision, 0.0, above=True)
    graph = with_sparse_layers(as_model(model, "output_range"))
    inside = as_box(box, graph.in_features)
    threads = max(n_workers(None), n_workers(-1)) if n_jobs is None else n_workers(n_jobs)
    with one_thread():
        search = _Search(graph, inside, share, deadline, seed, threads, progress)
        search.run()
    k = graph.out_features
    return OutputRange(
        tuple(search.extremum(k + i) for i in range(k)), tuple(search.extremum(i) for i in range(k))
    )


@dataclass(eq=False)
class _Search:
    """Maxima of y and of -y, one after the other: places 0 to k - 1, and k to 2 k - 1."""

    model: Model
    box: Box
    precision: float
    deadline: Deadline
    seed: int
    threads: int
    progress: Report
    attained: Array = field(init=False)
    points: Array = field(init=False)
    limits: Array = field(init=False)

    def __post_init__(self) -> None:
        low, high = self._bounds(self.box.lower, self.box.upper, "interval")
        self.limits = np.concatenate([high, -low])
        self.points = np.repeat(self.box.center[None], len(self.limits), axis=0)
        self.attained = np.full(len(self.limits), -np.inf)
        self._try(self.box.center)
        if not self.deadline.passed:
            low, high = self._bounds(self.box.lower, self.box.upper, "linear")
            self.limits = np.minimum(self.limits, np.concatenate([high, -low]))
        self._misses = np.zeros(len(self.limits), np.intp)

    def _bounds(self, low: Array, high: Array, method: str) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            return bounds(self.model, low, high, method=method, deadline=self.deadline)

    def _try(self, point: Array) -> None:
        """Keep a point where it attains more, by proved bounds of the outputs there."""
        low, high = self._bounds(point, point, "interval")
        values = np.concatenate([low, -high])
        better = values > self.attained
        self.attained, self.points[better] = np.where(better, values, self.attained), point

    @property
    def _width(self) -> Array:
        """The width of the range of each output, as far as it is known: that which is attained."""
        k = len(self.limits) // 2
        width = self.attained[:k] + self.attained[k:]
        return np.tile(np.maximum(width, 0.0), 2)

    @property
    def open(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which extrema are not known closely enough."""
        gap = self.limits - self.attained
        sizes = np.maximum(np.abs(self.limits), np.abs(self.attained))
        return ~(gap <= np.maximum(self.precision * self._width, 1e-9 * sizes))

    def run(self) -> None:
        """Sample, then ask questions about all that is open, again and again with more work each."""
        if not self.deadline.passed:
            samples = self.box.sample(RANGE_SAMPLES, np.random.default_rng(self.seed))
            values = self.model(samples)
            both = np.concatenate([values, -values], axis=1)
            for i in np.unique(np.argmax(np.nan_to_num(both, nan=-np.inf), axis=0)):
                self._try(samples[i])
        for turn in range(RANGE_TURNS):
            for place in np.flatnonzero(self.open):
                for _ in range(RANGE_QUESTIONS):
                    if self.deadline.passed or not self.open[place]:
                        break
                    self._ask(int(place), turn)
            left = int(np.count_nonzero(self.open))
            self.progress("narrowing output ranges", len(self.limits) - left, len(self.limits))
            if not left or self.deadline.passed:
                break

    def _ask(self, place: int, turn: int) -> None:
        """Ask whether an output stays below a number between what is attained and what is proved."""
        a, u = float(self.attained[place]), float(self.limits[place])
        share = 0.5 ** (1 + int(self._misses[place]))
        limit = u - share * (u - a)
        if not a < limit < u:  # infinite ends, or neighbours in float64
            self._misses[place] += 1
            return
        k = len(self.limits) // 2
        row = np.zeros((1, k))
        row[0, place % k] = 1.0 if place < k else -1.0
        prop = Property.box(self.box.lower, self.box.upper, row, [limit])
        run = Run(self.model, prop, self.deadline, self.seed, self.threads, silent, None, turns=turn + 1)
        found = run.decided()
        if run.interrupted:
            raise KeyboardInterrupt
        if found.verdict == "holds":
            self.limits[place], self._misses[place] = limit, max(0, self._misses[place] - 1)
        elif found.example is not None:
            self._try(found.example.x)
        if found.verdict == "undecided":
            self._misses[place] += 1

    def extremum(self, place: int) -> Extremum:
        """Return what is known of the maximum of an output, or of its minimum."""
        k = len(self.limits) // 2
        a, u = float(self.attained[place]), float(self.limits[place])
        low, high = (a, u) if place < k else (-u, -a)
        value = float(np.clip(self.model(self.points[place])[place % k], low, high))
        kind = "maximum" if place < k else "minimum"
        status = "partial" if self.open[place] else "proved"
        return Extremum(kind, place % k, value, self.points[place].copy(), low, high, status)
