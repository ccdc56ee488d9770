r"""Priors around a start that are fixed before training: clusters of starts at given angles.

For each :math:`\lambda = 1, \dots, 314` a cluster of weight vectors of the same length as the start b,
at an angle of :math:`0.01 \lambda` to it. After training turned b by an angle :math:`\alpha`, the
cluster with the nearest angle becomes the prior; choosing among 314 costs log 314. Clusters are made
when they are asked for, each from a seed of its own: all are fixed before and none has to be stored.

Mukherjee 2020, Definition 26 and section 6.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import count, positive
from pindown.guarantees.bounds.representatives import WeightList

N_ANGLES = 314
ANGLE_STEP = 0.01


def angle(a: ArrayLike, b: ArrayLike) -> float:
    """Return the angle between two vectors in radians, accurate also where it is small.

    >>> round(angle([1.0, 0.0], [1.0, 1.0]) * 4 / math.pi, 9)
    1.0
    """
    u, v = (np.asarray(x, dtype=np.float64).ravel() for x in (a, b))
    lengths = float(np.linalg.norm(u)), float(np.linalg.norm(v))
    if min(lengths) == 0.0:
        raise ValueError("the angle to a zero vector is not defined.")
    u, v = u / lengths[0], v / lengths[1]
    return 2.0 * math.atan2(float(np.linalg.norm(u - v)), float(np.linalg.norm(u + v)))


def cone_sample(axis: Array, theta: float, rng: np.random.Generator) -> Array:
    """Return a random vector of the axis' length at an angle theta to it.

    >>> axis = np.array([3.0, 4.0, 0.0])
    >>> turned = cone_sample(axis, 0.3, np.random.default_rng(0))
    >>> round(float(np.linalg.norm(turned)), 9), round(angle(turned, axis), 9)
    (5.0, 0.3)
    """
    length = float(np.linalg.norm(axis))
    if length == 0.0 or axis.size < 2:
        raise ValueError("a cone needs an axis that is not zero, in at least two dimensions.")
    unit = axis / length
    v = rng.standard_normal(axis.size)
    for _ in range(2):  # twice: once leaves rounding of the first product
        v = v - (v @ unit) * unit
    v /= float(np.linalg.norm(v))
    return np.asarray(math.cos(theta) * axis + math.sin(theta) * length * v)


@dataclass(frozen=True, eq=False)
class ClusterPriors:
    """Clusters of starts around one start, indexed by the angle.

    Attributes:
        start: The network b that training starts from.
        size: Networks in each cluster.
        seed: Fixes all clusters.
        within: ``"edge"``: all at the angle; ``"cone"``: at angles drawn uniformly from 0 to it.

    >>> start = WeightList("given", (np.eye(3), np.eye(3)))
    >>> priors = ClusterPriors(start, size=4, seed=1)
    >>> priors.index(0.5), [round(angle(b.vector, start.vector), 6) for b in priors.cluster(50)]
    (50, [0.5, 0.5, 0.5, 0.5])
    """

    start: WeightList
    size: int = 25
    seed: int = 0
    within: Literal["edge", "cone"] = "edge"

    def __post_init__(self) -> None:
        count("size", self.size)
        if self.within not in ("edge", "cone"):
            raise ValueError(f"within must be 'edge' or 'cone'; got {self.within!r}.")

    def cluster(self, index: int) -> tuple[WeightList, ...]:
        """Return the networks of one cluster; the same every time."""
        if not 1 <= count("index", index) <= N_ANGLES:
            raise ValueError(f"index must be from 1 to {N_ANGLES}; got {index}.")
        rng = np.random.default_rng([self.seed, index])
        networks = []
        for _ in range(self.size):
            share = 1.0 if self.within == "edge" else float(rng.uniform())
            vector = cone_sample(self.start.vector, ANGLE_STEP * index * share, rng)
            networks.append(self.start.shifted(vector, "start"))
        return tuple(networks)

    def index(self, theta: float) -> int:
        """Return the cluster whose angle is nearest."""
        nearest = round(positive("theta", theta, zero=True) / ANGLE_STEP)
        return min(max(nearest, 1), N_ANGLES)

    def chosen(self, trained: WeightList) -> int:
        """Return the cluster nearest to the angle by which training turned the start."""
        return self.index(angle(trained.vector, self.start.vector))
