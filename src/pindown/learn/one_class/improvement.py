"""Walking uphill in the comparator while membership stays high."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from pindown.affine import Array
from pindown.learn.torch_isolation import own_torch

if TYPE_CHECKING:
    from pindown.learn.one_class.detector import LocalMaximaDetector


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
    detector: LocalMaximaDetector, x: Any, steps: int, step_size: float, floor: float | None
) -> Path:
    """Follow the gradient of h(., current point), keeping membership at or above ``floor``.

    A step that would lower quality or leave the set is halved, up to five times. Pixels stay within the
    range of the training images, or of the start's own where that is wider.
    """
    shape = np.shape(x)
    row = _start(detector, x)
    frame = detector.frame_
    if floor is None:
        floor = min(detector.offset_, float(detector._scores(row)[0]))
    low, high = _limits(detector, row)
    inputs = detector._inputs(row)
    trail, reason = [row], "all steps were made"
    for _ in range(steps):
        slope = _slope(detector, inputs)
        length = float(slope.norm())
        if length == 0.0:
            reason = "the comparator is flat here"
            break
        direction = slope / length * step_size
        for _ in range(6):
            new_row = np.clip(frame.rows(inputs + direction), low, high)
            better = detector._qualities(new_row)[0] > detector._qualities(trail[-1])[0]
            if better and detector._scores(new_row)[0] >= floor:
                break
            direction = direction / 2
        else:
            reason = "every step up would leave the set or lower the quality"
            break
        trail.append(new_row)
        inputs = detector._inputs(new_row)
    rows = np.concatenate(trail)
    start = np.repeat(rows[:1], len(rows), axis=0)
    return Path(
        rows.reshape(len(rows), *shape),
        detector._compared(rows, start),
        detector._qualities(rows),
        detector._scores(rows),
        reason,
    )


def _start(detector: LocalMaximaDetector, x: Any) -> Array:
    """Return the start as a row; it need not carry the names of its features."""
    point = np.asarray(x)
    if point.size != detector.n_features_in_:
        raise ValueError(
            f"improve starts at one point of {detector.n_features_in_} features; got {point.shape}."
        )
    return detector._rows(point[None], named=False)


def _slope(detector: LocalMaximaDetector, inputs: torch.Tensor) -> torch.Tensor:
    """Return the gradient of h(., x) at x."""
    point = inputs.clone().requires_grad_(True)
    climbed = detector.ensemble_.compared_log_odds(point, inputs).sum()
    return torch.autograd.grad(climbed, point)[0]


def _limits(detector: LocalMaximaDetector, row: Array) -> tuple[Any, Any]:
    if not detector.frame_.is_image:
        return -np.inf, np.inf
    darkest, size = detector.frame_.centre, detector.frame_.scale
    return np.minimum(row, darkest), np.maximum(row, darkest + size)
