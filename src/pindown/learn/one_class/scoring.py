"""Scores of a fitted detector: membership, quality, comparisons, and walks towards better points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.one_class._density import Calibration, NeighbourDensity, density_points
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class.ensemble import Ensemble, network_inputs
from pindown.torch_modules import own_torch

# log 19, the log-odds of the typical training point.
TEMPER = 2.944438979166440


@dataclass(frozen=True, eq=False)
class Mixture:
    """How density and networks are added up to the log-odds of membership.

    Attributes:
        learned: Calibration of the networks' mean log-odds.
        total: Calibration of the sum.
        weight: Weight of the networks beside the density.
    """

    learned: Calibration
    total: Calibration
    weight: float

    @classmethod
    def of(cls, density: Array | None, held: Array, in_sample: Array, weight: float) -> Mixture:
        """Calibrate on held-out scores of training rows, or on all rows if none were held out."""
        known = np.isfinite(held)
        scores = held[known] if known.any() else in_sample
        learned = Calibration.of(scores)
        first = cls(learned, Calibration(0.0, 1.0), weight)
        beside = None if density is None else density[known] if known.any() else density
        return cls(learned, Calibration.of(first(beside, scores)), weight)

    def __call__(self, density: Array | None, learned: Array) -> Array:
        """Return the log-odds of membership."""
        part = tempered(self.learned(learned))
        return self.total(part if density is None else density + self.weight * part)


def tempered(log_odds: Array) -> Array:
    r"""Return :math:`t \,\mathrm{asinh}(z / t)`: far from the data, networks grow as logs do.

    Networks extrapolate linearly, distances enter as logs; without this the networks alone would
    decide about everything that is far away.

    Example:
        >>> np.round(tempered(np.array([0.0, -300.0])), 1).tolist()
        [0.0, -15.7]
    """
    return TEMPER * np.asarray(np.arcsinh(log_odds / TEMPER))


@dataclass(frozen=True, eq=False)
class Scorer:
    """What a detector has learned, and what it says about rows (n, d) that were checked.

    Attributes:
        scaling: How rows become inputs.
        plan: What was trained.
        ensemble: The networks c and h.
        density: The density part, or None.
        mixture: How both are added up; None as printed, where networks alone make the score.
    """

    scaling: InputScaling
    plan: Plan
    ensemble: Ensemble
    density: NeighbourDensity | None
    mixture: Mixture | None

    def inputs(self, rows: Array) -> torch.Tensor:
        """Return what the networks take, in double precision."""
        return network_inputs(self.scaling, rows, self.plan.printed, torch.float64)

    def learned(self, rows: Array) -> Array:
        """Return the networks' mean log-odds of membership, before calibration, (n,)."""
        inputs = self.inputs(rows)
        if self.plan.ablation == "h":
            return self.ensemble.quality(inputs)
        return self.ensemble.membership(inputs).mean(axis=0)

    def log_odds(self, rows: Array) -> Array:
        """Return the log-odds of membership, (n,)."""
        with own_torch():
            learned = self.learned(rows)
            if self.mixture is None:
                return learned
            density = None
            if self.density is not None:
                density = self.density.log_odds(density_points(self.scaling, rows))
            return self.mixture(density, learned)

    def gains(self, rows: Array, groups: Sequence[Sequence[int]]) -> Array:
        """Return by how much the log-odds rise if some columns take the values of near members.

        Args:
            rows: Rows of vectors, (n, d).
            groups: Numbers of the columns that are changed together.

        Returns:
            An array (n, groups): which columns keep a row from being a member.
        """
        typical = np.tile(self.scaling.centre, (len(rows), 1))
        if self.density is not None:
            points = self.density.neighbouring(density_points(self.scaling, rows))
            typical = np.median(points, axis=1) * self.scaling.scale + self.scaling.centre
        before = self.log_odds(rows)
        made = np.empty((len(rows), len(groups)))
        for j, group in enumerate(groups):
            changed = rows.copy()
            changed[:, list(group)] = typical[:, list(group)]
            made[:, j] = self.log_odds(changed) - before
        return made

    def quality(self, rows: Array) -> Array:
        """Return the log-odds of h(x, x), lowered for rows that are certainly no members, (n,)."""
        with own_torch():
            potential = self.ensemble.quality(self.inputs(rows))
        return potential if self._has_h_alone else potential + self._deficit(rows)

    def compared(self, first: Array, second: Array) -> Array:
        """Return the log-odds that rows of the first are at least as good as those of the second."""
        if not self._has_h_alone:
            return 2 * self.quality(first) - self.quality(second)
        with own_torch():
            return self.ensemble.compared(self.inputs(first), self.inputs(second))

    @property
    def _has_h_alone(self) -> bool:
        """Whether the comparator stands for itself: as printed, or because membership is made of it."""
        return self.plan.printed or self.plan.ablation == "h"

    def _deficit(self, rows: Array) -> Array:
        """Return by how much the odds against membership exceed 19 to 1, as log-odds, never positive."""
        return np.minimum(0.0, self.log_odds(rows) + TEMPER)

    def require_comparator(self) -> None:
        """Refuse a detector that was fitted without the comparator h.

        Raises:
            ValueError: If it was.
        """
        if not self.plan.has("comparator") or self.plan.ablation == "c":
            raise ValueError(
                "this detector was fitted without the comparator h; leave it among the ingredients "
                "and use another ablation than 'c'."
            )


@dataclass(frozen=True, eq=False)
class Path:
    """A walk from a point towards better ones nearby.

    Attributes:
        points: The points of the walk, the start first, each of the shape of the start.
        gain: Log-odds that each point is at least as good as the start.
        quality: Log-odds of h(x, x) at each point.
        membership: Log-odds of c at each point.
        reason: Why the walk ended.
        kind: ``"heuristic"``: nothing is proved about the end.
    """

    points: Array
    gain: Array
    quality: Array
    membership: Array
    reason: str
    kind: Kind = "heuristic"

    @property
    def end(self) -> Array:
        """The last point."""
        return self.points[-1]

    def __str__(self) -> str:
        return (
            f"{len(self.points) - 1} steps uphill: quality {self.quality[0]:+.2f} to "
            f"{self.quality[-1]:+.2f}, membership {self.membership[0]:+.2f} to "
            f"{self.membership[-1]:+.2f}; {self.reason} ({self.kind})"
        )


@own_torch()
def walk(
    scorer: Scorer,
    row: Array,
    shape: tuple[int, ...],
    *,
    steps: int,
    step_size: float,
    floor: float,
    fixed: NDArray[np.int64],
) -> Path:
    """Follow the gradient of h(., current point), keeping membership at or above ``floor``.

    A step that would lower quality or leave the set is halved, up to five times. Pixels stay within the
    range of the training images, or of the start's own where that is wider.

    Args:
        scorer: What was learned.
        row: The start, (1, d).
        shape: What points of the path look like.
        steps: Most steps.
        step_size: Length of a step, in units of the networks' inputs.
        floor: Least log-odds of membership on the way.
        fixed: Columns of a row that keep their values.
    """
    low, high = _limits(scorer, row)
    inputs = scorer.inputs(row)
    free = _free(scorer, fixed, inputs)
    trail, reason = [row], "all steps were made"
    for _ in range(steps):
        slope = _slope(scorer, inputs)
        slope = slope * free
        length = float(slope.norm())
        if length == 0.0:
            reason = "the comparator is flat here"
            break
        direction = slope / length * step_size
        for _ in range(6):
            new_row = np.clip(scorer.scaling.rows(inputs + direction), low, high)
            new_row[:, fixed] = row[:, fixed]  # there and back again rounds
            better = scorer.quality(new_row)[0] > scorer.quality(trail[-1])[0]
            if better and scorer.log_odds(new_row)[0] >= floor:
                break
            direction = direction / 2
        else:
            reason = "every step up would leave the set or lower the quality"
            break
        trail.append(new_row)
        inputs = scorer.inputs(new_row)
    rows = np.concatenate(trail)
    start = np.repeat(rows[:1], len(rows), axis=0)
    return Path(
        rows.reshape(len(rows), *shape),
        scorer.compared(rows, start),
        scorer.quality(rows),
        scorer.log_odds(rows),
        reason,
    )


def _slope(scorer: Scorer, inputs: torch.Tensor) -> torch.Tensor:
    """Return the gradient of h(., x) at x."""
    point = inputs.clone().requires_grad_(True)
    climbed = scorer.ensemble.compared_log_odds(point, inputs).sum()
    return torch.autograd.grad(climbed, point)[0]


def _free(scorer: Scorer, fixed: NDArray[np.int64], inputs: torch.Tensor) -> torch.Tensor:
    """Return 1 where inputs may move and 0 where they belong to fixed columns."""
    if not scorer.scaling.is_image:
        free = torch.ones_like(inputs)
        free[:, torch.as_tensor(fixed)] = 0.0
        return free
    marks = np.zeros((1, inputs[0].numel()))
    marks[:, fixed] = 1.0
    height, width, channels = scorer.scaling.image_shape
    if scorer.scaling.channels_first:
        image = torch.as_tensor(marks).reshape(-1, channels, height, width)
    else:
        image = torch.as_tensor(marks).reshape(-1, height, width, channels).permute(0, 3, 1, 2)
    return 1.0 - image.to(inputs.dtype)


def _limits(scorer: Scorer, row: Array) -> tuple[Any, Any]:
    if not scorer.scaling.is_image:
        return -np.inf, np.inf
    darkest, size = scorer.scaling.centre, scorer.scaling.scale
    return np.minimum(row, darkest), np.maximum(row, darkest + size)
