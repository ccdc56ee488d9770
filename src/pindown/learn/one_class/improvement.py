"""Walking uphill in the comparator while membership stays high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pindown.affine import Array
from pindown.learn.one_class.scoring import Scorer
from pindown.learn.torch_isolation import own_torch


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
    kind: str = "heuristic"

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
    """
    low, high = _limits(scorer, row)
    inputs = scorer.inputs(row)
    trail, reason = [row], "all steps were made"
    for _ in range(steps):
        slope = _slope(scorer, inputs)
        length = float(slope.norm())
        if length == 0.0:
            reason = "the comparator is flat here"
            break
        direction = slope / length * step_size
        for _ in range(6):
            new_row = np.clip(scorer.scaling.rows(inputs + direction), low, high)
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


def _limits(scorer: Scorer, row: Array) -> tuple[Any, Any]:
    if not scorer.scaling.is_image:
        return -np.inf, np.inf
    darkest, size = scorer.scaling.centre, scorer.scaling.scale
    return np.minimum(row, darkest), np.maximum(row, darkest + size)
