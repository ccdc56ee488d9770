r"""The density part of membership: distances to the nearest training points, as calibrated log-odds.

With :math:`d_k(x)` the mean distance of x to its k nearest training points, in units of the typical one,
with learned weights (:mod:`~pindown.learn.one_class.neighbour_weights`), and with quantiles of the
leave-one-out distances of the training points themselves,

.. math::
    d(x) = d_2(x)^{w_2} \, d_5(x)^{w_5}, \quad
    \ell(x) = \log 19 \cdot \frac{\log d_{95} - \log d(x)}{\log d_{95} - \log d_{50}} .

It is zero at the edge (5 % of the training points lie further out) and log 19, a probability of 95 %, at
the typical training point. A training row is not counted as its own neighbour. With weights of zero, as
an untrained detector has them, :math:`\ell` is zero everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.learn.one_class.neighbour_weights import learned_weights

EDGE = 0.05  # share of the training points beyond the edge
TYPICAL = math.log((1 - EDGE) / EDGE)  # log-odds of the typical training point
N_NEIGHBOURS = (2, 5)
# Distances below this share of the typical one are taken to be equal to it: logs of zero have no value.
_SMALLEST_SHARE = 1e-6
# Log-distances of edge and typical point closer than this would turn rounding into evidence.
_LEAST_SPREAD = 0.05
_SAME = 1e-9  # distance, in standard units, below which a point is the training row itself
_ROUNDING = 1e-7  # of the size of a point: distances below it are those of copies
_MOST_BY_TREE = 12  # features up to which a tree beats a matrix product


@dataclass(frozen=True, eq=False)
class Calibration:
    """The affine map that takes scores to log-odds, 0 at the edge and log 19 at the typical point.

    >>> fixed = Calibration.of(np.linspace(0.0, 1.0, 101))
    >>> np.round(fixed(np.array([0.05, 0.5])), 3).tolist()
    [0.0, 2.944]
    """

    edge: float
    slope: float

    @classmethod
    def of(cls, scores: Array, least_spread: float = 1e-9) -> Calibration:
        """Learn it from held-out scores of training points, higher for members."""
        edge, middle = np.quantile(scores, [EDGE, 0.5])
        return cls(float(edge), TYPICAL / max(float(middle - edge), least_spread))

    def __call__(self, scores: Array) -> Array:
        """Return log-odds."""
        return (scores - self.edge) * self.slope


@dataclass(frozen=True, eq=False)
class NeighbourDensity:
    """Nearest-neighbour distances as log-odds; see the module.

    Attributes:
        points: Training points, (n, d).
        units: Typical leave-one-out distances, one for each number of neighbours.
        weights: How much each of these distances counts.
        calibration: From minus log-distances to log-odds.
    """

    points: NDArray[np.float32]
    units: Array
    weights: Array
    calibration: Calibration

    @classmethod
    def of(
        cls,
        points: Array,
        outside: Array | None = None,
        steps: int = 1,
        weights: Array | None = None,
    ) -> NeighbourDensity:
        """Learn distances, their weights and their calibration from training points.

        Args:
            points: Training points, (n, d).
            outside: Made-up points to learn the weights from, (m, d); None for equal weights.
            steps: Most steps of learning them.
            weights: The weights, if they are known already.

        Example:
            >>> density = NeighbourDensity.of(np.random.default_rng(0).normal(size=(200, 2)))
            >>> near, far = density.log_odds(np.array([[0.0, 0.0], [9.0, 9.0]]))
            >>> bool(near > 0 > far)
            True
        """
        k = len(N_NEIGHBOURS)
        raw = cls(points.astype(np.float32), np.ones(k), np.zeros(k), Calibration(0.0, 1.0))
        distances = raw.distances(points)
        typical, mean = np.median(distances, axis=0), distances.mean(axis=0)
        scaled = replace(raw, units=np.where(typical > 0, typical, np.where(mean > 0, mean, 1.0)))
        inside = scaled._closeness(distances)
        if weights is None:
            weights = np.zeros(k)
            told = _without_copies(distances)
            weights[told] = 1 / told.sum()
            if outside is not None:
                made_up = scaled._closeness(raw.distances(outside))
                weights[told] = learned_weights(inside[:, told], made_up[:, told], steps)
        calibration = Calibration.of(inside @ weights, _LEAST_SPREAD)
        return replace(scaled, weights=weights, calibration=calibration)

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import NearestNeighbors

        method = "kd_tree" if self.points.shape[1] <= _MOST_BY_TREE else "brute"
        return NearestNeighbors(algorithm=method).fit(self.points.astype(np.float64))

    def distances(self, points: Array) -> Array:
        """Return mean distances to the 2 and to the 5 nearest training points other than the point."""
        wanted = min(max(N_NEIGHBOURS) + 1, len(self.points))
        # Stored points are rounded to single precision: so must be what is compared with them.
        rounded = points.astype(np.float32).astype(np.float64)
        found = self._index.kneighbors(rounded, wanted)[0]
        size = 1.0 + np.abs(rounded).max(axis=1, keepdims=True)
        # Matrix products round distances near zero.
        found = np.where(found <= _ROUNDING * np.sqrt(rounded.shape[1]) * size, 0.0, found)
        others = np.where(found[:, :1] <= np.sqrt(_SAME) * size, found[:, 1:], found[:, :-1])
        return np.stack([others[:, :k].mean(axis=1) for k in N_NEIGHBOURS], axis=1)

    def _closeness(self, distances: Array) -> Array:
        return -np.log(np.maximum(distances / self.units, _SMALLEST_SHARE))

    def log_odds(self, points: Array) -> Array:
        """Return the log-odds of membership of points, (n,)."""
        return self.calibration(self._closeness(self.distances(points)) @ self.weights)


def _without_copies(distances: Array) -> NDArray[np.bool_]:
    """Whether a number of neighbours is more than the copies that rows have, in nearly all cases.

    Rows that come twice or three times have other rows at distance zero, new rows do not: such distances
    say who was in the training data. The largest number of neighbours is used in any case.
    """
    told = np.mean(distances == 0, axis=0) <= EDGE
    told[-1] = True
    return told
