r"""What one kink tells: where it is, its normal, and the gradients on both sides.

At a point y of a fold the gradients before and after, both (k, d), differ by a matrix of rank one,

.. math:: G_+ - G_- = \kappa\, n^\top,

n being the normal of the fold and :math:`\kappa` the jump of each output. The gradients come from
central differences inside the two pieces, on steps as long as the pieces allow: values of a linear
piece are exact to rounding, so the longer the step, the more digits.

Phuong 2021, proof of Theorem 2.1 (step one).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.kinks import LineKinks, kinks_on_lines
from pindown.equivalence.recovery.oracle import Oracle
from pindown.equivalence.tuning import (
    GRADIENT_NOISES,
    MAX_COORDINATES,
    MAX_NORMAL_ERROR,
    RANK_ONE,
    STEP_TRIES,
)


@dataclass(frozen=True, eq=False)
class Observations:
    """Points on folds, in cube coordinates.

    Attributes:
        y: The points, (m, d).
        normal: Unit normals, of either sign, (m, d).
        error: How far a normal may be off, (m,).
        place: How far the point may be off the fold, (m,).
        side: A point within the piece on each side, (m, 2, d).
        gradient: The gradient there, (m, 2, k, d).
        gradient_error: How far its entries may be off, (m, 2).
    """

    y: Array
    normal: Array
    error: Array
    place: Array
    side: Array
    gradient: Array
    gradient_error: Array

    def __len__(self) -> int:
        return len(self.y)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Observations:
        """Return some of them."""
        return Observations(*(part[which] for part in vars(self).values()))

    def __add__(self, other: Observations) -> Observations:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Observations(*(np.concatenate(pair) for pair in pairs))

    @classmethod
    def none(cls, d: int, k: int) -> Observations:
        """Return an empty collection for d inputs and k outputs."""
        shapes = [(0, d), (0, d), (0,), (0,), (0, 2, d), (0, 2, k, d), (0, 2)]
        return cls(*(np.empty(shape) for shape in shapes))


def observe(oracle: Oracle, starts: Array, ends: Array) -> Observations:
    """Find the kinks on segments (n, d) and measure the folds there."""
    kinks = kinks_on_lines(oracle, starts, ends)
    if not len(kinks):
        return Observations.none(oracle.d, oracle.k)
    steps = (ends - starts)[kinks.line]
    y = starts[kinks.line] + kinks.t[:, None] * steps
    return _measure(oracle, kinks, y, steps)


def _measure(oracle: Oracle, kinks: LineKinks, y: Array, steps: Array) -> Observations:
    n, d = y.shape
    length = np.linalg.norm(steps, axis=1)
    room = kinks.room * length[:, None]  # (n, 2)
    unit = steps / length[:, None]
    offset = np.stack([-0.5 * room[:, 0], 0.5 * room[:, 1]], axis=1)
    side = y[:, None] + offset[..., None] * unit[:, None]
    flat = side.reshape(2 * n, d)
    gradient, error = gradients(oracle, flat, 0.5 * room.reshape(-1))
    gradient, error = gradient.reshape(n, 2, -1, d), error.reshape(n, 2)
    jump = gradient[:, 1] - gradient[:, 0]
    good = np.isfinite(error).all(axis=1)
    jump[~good] = 0.0
    _, sizes, right = np.linalg.svd(jump, full_matrices=False)
    doubt = np.sqrt(d) * np.where(good, error.max(axis=1), np.inf) / np.maximum(sizes[:, 0], 1e-300)
    good &= doubt < MAX_NORMAL_ERROR
    if sizes.shape[1] > 1:
        good &= sizes[:, 1] <= np.maximum(RANK_ONE, 4.0 * doubt) * sizes[:, 0]
    # The crossing of two lines whose slopes differ by the jump along the segment.
    slope = np.max(np.abs(kinks.jump), axis=1) / length
    place = 4.0 * oracle.noise / np.maximum(slope, 1e-300) + 2.0**-50
    found = Observations(y, right[:, 0], doubt, place, side, gradient, error)
    return found.take(good)


def gradients(oracle: Oracle, points: Array, reach: Array) -> tuple[Array, Array]:
    """Measure gradients by central differences within the linear piece around each point.

    Args:
        oracle: The function.
        points: Points of the cube, (n, d).
        reach: The longest step to try at each, (n,).

    Returns:
        Gradients (n, k, d), and how far their entries may be off, (n,); infinity where no step stayed
        within one piece.
    """
    n, d = points.shape
    inside = 1.0 - np.abs(points).max(axis=1)
    step = np.minimum(reach, np.maximum(inside, 0.0))
    gradient, error = np.zeros((n, oracle.k, d)), np.full(n, np.inf)
    todo = np.flatnonzero(step > 0.0)
    middle = oracle(points[todo])
    for _ in range(STEP_TRIES):
        if not len(todo):
            break
        fine = np.zeros(len(todo), dtype=bool)
        block = max(1, MAX_COORDINATES // d**2)
        for i in range(0, len(todo), block):
            part, h = todo[i : i + block], step[todo[i : i + block]]
            moves = h[:, None, None] * np.eye(d)
            ahead, behind = oracle(points[part, None] + moves), oracle(points[part, None] - moves)
            bent = np.abs(ahead + behind - 2.0 * middle[i : i + block, None]).max(axis=(1, 2))
            fine[i : i + block] = bent <= GRADIENT_NOISES * oracle.noise
            gradient[part] = np.swapaxes(ahead - behind, 1, 2) / (2.0 * h[:, None, None])
        good = todo[fine]
        error[good] = 2.0 * oracle.noise / step[good]
        step[todo] /= 4.0
        todo, middle = todo[~fine], middle[~fine]
    return gradient, error
