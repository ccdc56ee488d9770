"""The black box that is asked: counted, checked, in coordinates of size one, with its noise measured."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.tuning import (
    CURVED,
    LONG_SEGMENT,
    MAX_NOISE,
    MAX_QUERY_ROWS,
    MIN_STUCK,
    NOISE_QUANTILE,
    NOISE_SEGMENTS,
    SHORT_SEGMENT,
    TINY_SEGMENT,
)

Query = Callable[[Array], NDArray[np.floating]]

_MIN_NOISE = 2.0**-50  # what float64 leaves of a sum of a few dozen terms


class StopAskingError(Exception):
    """The budget of time or of queries is used up."""


class Oracle:
    """A function on the cube [-1, 1]^d with values of size one, made of a query on a box.

    Attributes:
        n_queries: Points asked for so far.
        noise: Typical error of a value, relative to the spread of the values.
        center: Offset of the values, (k,).
        spread: Unit of the values, (k,).
        d: Number of inputs.
    """

    def __init__(
        self, query: Query, box: Box, *, max_queries: float = inf, deadline: Deadline = NEVER
    ) -> None:
        self.query, self.box, self.d = query, box, box.dim
        self.half = box.upper / 2 - box.lower / 2
        self.max_queries, self.deadline = max_queries, deadline
        self.n_queries, self.noise = 0, _MIN_NOISE
        self.center, self.spread = np.zeros(1), np.ones(1)

    @property
    def k(self) -> int:
        """Number of outputs."""
        return len(self.spread)

    def to_box(self, Y: Array) -> Array:
        """Map points of the cube to the box."""
        points = self.box.center + self.half * Y
        return np.clip(points, self.box.lower, self.box.upper)

    def __call__(self, Y: Array) -> Array:
        """Return the values at points (..., d) of the cube: (..., k), in units of the spread."""
        flat = Y.reshape(-1, self.d)
        raw = self.raw(self.to_box(flat))
        return ((raw - self.center) / self.spread).reshape(*Y.shape[:-1], self.k)

    def raw(self, X: Array) -> Array:
        """Ask for the values at points (n, d) of the box: (n, k).

        Raises:
            StopAskingError: If time or queries are used up.
            ValueError: If the answer has another shape or is not finite.
        """
        parts = [self._ask(X[i : i + MAX_QUERY_ROWS]) for i in range(0, len(X), MAX_QUERY_ROWS)]
        return np.concatenate(parts) if parts else np.empty((0, self.k))

    def require_time(self) -> None:
        """Stop if the time is used up."""
        if self.deadline.passed:
            raise StopAskingError

    def _ask(self, X: Array) -> Array:
        self.require_time()
        if self.n_queries + len(X) > self.max_queries:
            raise StopAskingError
        answer = self.query(X)
        try:
            values = np.asarray(answer)
        except ValueError as error:
            raise ValueError(
                f"the query must turn points {X.shape} into an array of values, one row for each; it "
                f"returned a {type(answer).__name__} that is none."
            ) from error
        if values.dtype.kind not in "biuf":
            raise TypeError(f"the query must return real numbers; got dtype {values.dtype}.")
        if values.ndim == 1 and len(values) == len(X):
            values = values[:, None]
        first = self.n_queries == 0
        fits = values.ndim == 2 and len(values) == len(X) and values.shape[1] > 0
        if not fits or (not first and values.shape[1] != self.k):
            wanted = "k" if first else str(self.k)
            raise ValueError(
                f"the query must turn points {X.shape} into values ({len(X)}, {wanted}); "
                f"it returned shape {values.shape}."
            )
        if not np.isfinite(values).all():
            bad = int(np.argmax(~np.isfinite(values).all(axis=1)))
            raise ValueError(
                f"the query must return finite values; at {X[bad]} it returned {values[bad]}."
            )
        if first:
            self.center, self.spread = np.zeros(values.shape[1]), np.ones(values.shape[1])
        self.n_queries += len(X)
        return values.astype(np.float64)

    def calibrate(self, rng: np.random.Generator) -> tuple[tuple[str | int, ...], str] | None:
        """Measure the spread and the noise of the values; return why recovery is hopeless, or None.

        The reason comes as a status and in words.
        """
        values = self.raw(self.box.sample(256, rng))
        with np.errstate(over="ignore", invalid="ignore"):
            self.center = np.median(values, axis=0)
            size = np.max(np.abs(values - self.center), axis=0)
        if not np.isfinite(size).all():
            raise ValueError(
                f"the query's values, up to {np.abs(values).max():.1g}, are too large to subtract in "
                "float64; divide them by a constant."
            )
        self.spread = np.where(size > 0.0, size, 1.0)
        rounding = float(np.max(np.max(np.abs(values), axis=0) / self.spread)) * _MIN_NOISE
        tiny = self._second_differences(TINY_SEGMENT, rng)
        self.noise = max(rounding, float(np.quantile(tiny, NOISE_QUANTILE)))
        if self.noise > MAX_NOISE:
            return ("noisy",), (
                f"the answers are too noisy: values change by {self.noise:.1g} of their spread where "
                f"nothing should change; at most {MAX_NOISE:g} can be used"
            )
        steps = self._steps(rng.spawn(1)[0])
        if steps > MAX_NOISE:
            return ("noisy",), (
                f"the answers are rounded too coarsely: values come in steps of {steps:.1g} of their "
                f"spread; at most {MAX_NOISE:g} can be used"
            )
        self.noise = max(self.noise, steps)
        if float(np.median(self._second_differences(SHORT_SEGMENT, rng))) > CURVED * self.noise:
            return (
                "not piecewise linear",
            ), "the function is not piecewise linear: it is curved on most short segments"
        return None

    def _steps(self, rng: np.random.Generator) -> float:
        """Return the step, relative to the spread, in which values change; 0 if they change smoothly.

        Where values come in steps they stay exactly the same on short segments and not on longer ones.
        """
        middle = rng.uniform(-0.9, 0.9, (NOISE_SEGMENTS, self.d))
        unit = rng.standard_normal((NOISE_SEGMENTS, self.d))
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        here, near, far = self(
            np.stack([middle, middle + TINY_SEGMENT * unit, middle + LONG_SEGMENT * unit])
        )
        changed = far != here
        stuck = changed & (near == here)
        if stuck.sum() < MIN_STUCK or stuck.sum() <= changed.sum() / 2:
            return 0.0
        return float(np.min(np.abs(far - here)[changed]))

    def _second_differences(self, length: float, rng: np.random.Generator) -> Array:
        """Return |f(y - h) - 2 f(y) + f(y + h)|, the largest of the outputs, on random segments."""
        middle = rng.uniform(-0.9, 0.9, (NOISE_SEGMENTS, self.d))
        step = rng.standard_normal((NOISE_SEGMENTS, self.d))
        step *= length / np.linalg.norm(step, axis=1, keepdims=True)
        low, mid, high = self(np.stack([middle - step, middle, middle + step]))
        return np.max(np.abs(low - 2.0 * mid + high), axis=1)
