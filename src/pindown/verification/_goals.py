r"""Unsafe sets side by side, as goals of a search: how far a point is from lying in each of them.

Of a point x the *residuals* for a set are :math:`C x + R f(x) - t`, one for each row; the set is reached
where none is above zero. Rows are divided by units, so that outputs of different sizes can be compared,
and the *loss* is the largest residual. To go down, rows are weighted,

.. math::
    w = e_{\arg\max r} \quad (\text{hard}), \qquad
    w \propto e^{r / \tau} \quad (\text{soft}), \qquad
    w \propto 1_{r > 0} \quad (\text{open}),

and :math:`w \cdot r` is what a step lowers. Inputs lie in balls of some norm, cut to a box; a plain box
is the ball of the maximum norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.relaxation.lp_balls import Balls, project, steepest_step
from pindown.verification.properties import UnsafeSet
from pindown.verification.tuning import MIN_SOFT_TEMPERATURE, SOFT_TEMPERATURE

Indices = NDArray[np.intp]

HARD, SOFT, OPEN = 0, 1, 2  # how rows are weighted
WEIGHTINGS = 3


@dataclass(frozen=True, eq=False)
class Goals:
    """m unsafe sets.

    Attributes:
        regions: The distinct sets of inputs.
        region_of: Which of them each goal has, (m,).
        rows: Forms R of the outputs, (m, q, k); zero where a goal has fewer rows.
        limits: Limits t, (m, q); infinite where a goal has fewer rows.
        input_rows: Forms C of the inputs, (m, q, d), or None for zeros.
        strict: Which rows must be below their limit, (m, q).
        units: What residuals are divided by to compare them, (m, q).
    """

    regions: Balls
    region_of: Indices
    rows: Array
    limits: Array
    input_rows: Array | None
    strict: NDArray[np.bool_]
    units: Array

    @classmethod
    def of(cls, sets: Sequence[UnsafeSet]) -> Goals:
        """Return the goals that unsafe sets are; equal boxes become one region."""
        places: dict[bytes, int] = {}
        region_of = np.array(
            [places.setdefault(s.lower.tobytes() + s.upper.tobytes(), len(places)) for s in sets]
        )
        first = [sets[i] for i in np.unique(region_of, return_index=True)[1]]
        lower, upper = np.array([s.lower for s in first]), np.array([s.upper for s in first])
        boxes = Balls(lower / 2 + upper / 2, np.zeros(len(first)), "linf", lower, upper)
        m, q = len(sets), max(1, *(len(s.limits) for s in sets))
        rows, limits = np.zeros((m, q, sets[0].rows.shape[1])), np.full((m, q), np.inf)
        strict = np.zeros((m, q), bool)
        mixed = any(s.input_rows is not None for s in sets)
        input_rows = np.zeros((m, q, len(lower[0]))) if mixed else None
        for i, s in enumerate(sets):
            n = len(s.limits)
            rows[i, :n], limits[i, :n] = s.rows, s.limits
            if s.strict is not None:
                strict[i, :n] = s.strict
            if input_rows is not None and s.input_rows is not None:
                input_rows[i, :n] = s.input_rows
        return cls.between(boxes, region_of, rows, limits, strict, input_rows)

    @classmethod
    def between(
        cls,
        regions: Balls,
        region_of: Indices,
        rows: Array,
        limits: Array,
        strict: NDArray[np.bool_],
        input_rows: Array | None = None,
    ) -> Goals:
        """Return goals whose residuals are divided by the sizes of the rows."""
        sizes = np.abs(rows).max(axis=2, initial=0.0)
        if input_rows is not None:
            sizes = np.maximum(sizes, np.abs(input_rows).max(axis=2, initial=0.0))
        units = np.where(sizes > 0, sizes, 1.0)
        return cls(regions, region_of, rows, limits, input_rows, strict, units)

    def __len__(self) -> int:
        return len(self.limits)

    def measured(self, units: Array) -> Goals:
        """Return the goals with other units; where one is zero or not finite, the old one stays."""
        kept = np.isfinite(units) & (units > 0)
        return replace(self, units=np.where(kept, units, self.units))

    def balls(self, which: Indices) -> Balls:
        """Return where the inputs of some goals lie."""
        return self.regions.take(self.region_of[which])

    # ------------------------------------------------------------------ how far

    def residuals(self, which: Indices, points: Array, outputs: Array) -> Array:
        """Return the residuals (n, q) of points for one goal each; infinite where they are unknown."""
        with np.errstate(all="ignore"):
            values = np.matmul(self.rows[which], outputs[:, :, None])[:, :, 0] - self.limits[which]
            if self.input_rows is not None:
                values += np.matmul(self.input_rows[which], points[:, :, None])[:, :, 0]
        known = np.isfinite(outputs).all(axis=1, keepdims=True) & ~np.isnan(values)
        return np.where(known, values, np.inf)

    def reached(self, which: Indices, residuals: Array) -> NDArray[np.bool_]:
        """Return which points lie in their goal as float64 evaluates it, (n,)."""
        inside = np.where(self.strict[which], residuals < 0.0, residuals <= 0.0)
        return np.asarray(inside.all(axis=1))

    def losses(self, which: Indices, residuals: Array) -> Array:
        """Return the largest residual of each point in units, (n,)."""
        with np.errstate(all="ignore"):
            return np.asarray((residuals / self.units[which]).max(axis=1))

    # ------------------------------------------------------------------ which way

    def weights(self, which: Indices, residuals: Array, kinds: NDArray[np.intp]) -> Array:
        """Return weights of the rows (n, q): hard, soft or open, as ``kinds`` says of each point."""
        with np.errstate(all="ignore"):
            scaled = residuals / self.units[which]
            largest = scaled.max(axis=1, keepdims=True)
            heat = np.maximum(SOFT_TEMPERATURE * np.abs(largest), MIN_SOFT_TEMPERATURE)
            soft = np.exp((scaled - largest) / heat)
        choices = np.stack([scaled == largest, soft, scaled > 0.0])
        chosen = np.nan_to_num(choices[kinds, np.arange(len(kinds))])
        total = chosen.sum(axis=1, keepdims=True)
        return np.asarray(chosen / np.where(total > 0, total, 1.0) / self.units[which])

    def forms(self, which: Indices, weights: Array) -> Array:
        """Return the forms of the outputs (n, k) that weighted residuals are, up to constants."""
        return np.asarray(np.matmul(weights[:, None], self.rows[which])[:, 0])

    def input_forms(self, which: Indices, weights: Array) -> Array | float:
        """Return the forms of the inputs (n, d) in weighted residuals, or zero."""
        if self.input_rows is None:
            return 0.0
        return np.asarray(np.matmul(weights[:, None], self.input_rows[which])[:, 0])


# ---------------------------------------------------------------------- places in regions


def half_widths(balls: Balls) -> Array:
    """Return how far to go along each coordinate at most, (n, d): to the side of a box, or as far as all
    coordinates of a ball can go together.
    """  # noqa: D205
    half = balls.upper / 2 - balls.lower / 2
    d = half.shape[1]
    if balls.norm == "linf":
        return half
    share = d**-0.5 if balls.norm == "l2" else 1.0 / d
    return np.asarray(np.minimum(half, share * balls.radius[:, None]))


def into(balls: Balls, points: Array) -> Array:
    """Return points moved into their regions: onto the ball, then into the box around its centre."""
    if balls.norm != "linf":
        points = balls.center + project(points - balls.center, balls.radius, balls.norm)
    return np.clip(points, balls.lower, balls.upper)


def moved(balls: Balls, points: Array, way: Array, rates: Array) -> Array:
    """Return points stepped along ``-way`` by a share of the region, each, and moved into it.

    In a box every coordinate goes by its own share in [-1, 1] of the width. In l1 one coordinate at a
    time would need as many steps as coordinates: all go, then the point is projected.
    """
    if balls.norm == "linf":
        return into(balls, points - rates[:, None] * half_widths(balls) * way)
    step = steepest_step(way, "l2")
    return into(balls, points - (rates * balls.radius)[:, None] * step)


def uniform(balls: Balls, rng: np.random.Generator) -> Array:
    """Return a random point of each region."""
    if balls.norm == "linf":
        share = rng.random(balls.lower.shape)
        return into(balls, (1.0 - share) * balls.lower + share * balls.upper)
    length = balls.radius * rng.random(len(balls))
    return into(
        balls,
        balls.center + length[:, None] * steepest_step(rng.standard_normal(balls.lower.shape), "l2"),
    )


def corners(balls: Balls, rng: np.random.Generator) -> Array:
    """Return a random corner of each region's box, moved into the region."""
    return into(balls, np.where(rng.random(balls.lower.shape) < 0.5, balls.lower, balls.upper))
