r"""The density part of membership: distances to the nearest training points, as calibrated log-odds.

With :math:`d_k(x)` the mean distance of x to its k nearest training points, in units of the typical one,
and with quantiles of the leave-one-out distances of the training points themselves,

.. math::
    d(x) = d_2(x)^{w_2} \, d_5(x)^{w_5}, \quad
    \ell(x) = \log 19 \cdot \frac{\log d_{95} - \log d(x)}{\log d_{95} - \log d_{50}} .

It is zero at the edge (5 % of the training points lie further out) and log 19, a probability of 95 %, at
the typical training point. A training row is not counted as its own neighbour. With weights of zero, as
an untrained detector has them, :math:`\ell` is zero everywhere.

With :math:`f_j(x)` minus the log of the j-th distance of x, the weights are those of a logistic
regression that tells rows from made-up ones and must not turn any distance round,

.. math::
    \min_{w \ge 0,\, b} \; E_x[-\log\sigma(w \cdot f(x) + b)]
    + E_{\tilde x}[-\log\sigma(-w \cdot f(\tilde x) - b)] + \lambda \lVert w \rVert^2 ,

a convex problem with one solution. It is solved step by step from w = 0, where all rows look the same.

Images are compared by orientation histograms, in which distances follow strokes and edges instead of
pixels. At each pixel the gradient :math:`g` votes for its two nearest of eight directions with weight
:math:`\lVert g \rVert`. Votes are pooled by a Gaussian window on a grid of four pixels; the square roots
of the pooled votes, divided by their norm, are the features. The nearest neighbours of an image in them
are images with the same strokes at about the same place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor
from torch.nn.functional import pad

from pindown.affine import Array
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class.tuning import (
    CELL,
    DIRECTIONS,
    EDGE,
    FEATURE_CHUNK,
    GRADIENT_AMOUNT,
    GRADIENT_FLOOR,
    MAX_FEATURES_OF_TREE,
    MIN_DISTANCE_SHARE,
    MIN_LOG_SPREAD,
    N_NEIGHBOURS,
    WEIGHT_SHRINKAGE,
)

TYPICAL = math.log((1 - EDGE) / EDGE)  # log-odds of the typical training point
_SAME = 1e-9  # distance, in standard units, below which a point is the training row itself
_ROUNDING = 1e-7  # of the size of a point: distances below it are those of copies
_WINDOW = CELL / 2  # standard deviation of the pooling window


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
        neighbours: How many neighbours each distance is the mean of.
    """

    points: NDArray[np.float32]
    units: Array
    weights: Array
    calibration: Calibration
    neighbours: tuple[int, ...] = N_NEIGHBOURS

    @classmethod
    def of(
        cls,
        points: Array,
        outside: Array | None = None,
        steps: int = 1,
        weights: Array | None = None,
        neighbours: tuple[int, ...] = N_NEIGHBOURS,
    ) -> NeighbourDensity:
        """Learn distances, their weights and their calibration from training points.

        Args:
            points: Training points, (n, d).
            outside: Made-up points to learn the weights from, (m, d); None for equal weights.
            steps: Most steps of learning them.
            weights: The weights, if they are known already.
            neighbours: Numbers of neighbours.

        Example:
            >>> density = NeighbourDensity.of(np.random.default_rng(0).normal(size=(200, 2)))
            >>> near, far = density.log_odds(np.array([[0.0, 0.0], [9.0, 9.0]]))
            >>> bool(near > 0 > far)
            True
        """
        k, no_scale = len(neighbours), Calibration(0.0, 1.0)
        raw = cls(points.astype(np.float32), np.ones(k), np.zeros(k), no_scale, neighbours)
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
        calibration = Calibration.of(inside @ weights, MIN_LOG_SPREAD)
        return replace(scaled, weights=weights, calibration=calibration)

    @cached_property
    def _index(self) -> Any:
        from sklearn.neighbors import NearestNeighbors

        method = "kd_tree" if self.points.shape[1] <= MAX_FEATURES_OF_TREE else "brute"
        return NearestNeighbors(algorithm=method).fit(self.points.astype(np.float64))

    def distances(self, points: Array) -> Array:
        """Return mean distances to the nearest training points other than the point, (n, numbers)."""
        wanted = min(max(self.neighbours) + 1, len(self.points))
        # Stored points are rounded to single precision: so must be what is compared with them.
        rounded = points.astype(np.float32).astype(np.float64)
        found = self._index.kneighbors(rounded, wanted)[0]
        size = 1.0 + np.abs(rounded).max(axis=1, keepdims=True)
        # Matrix products round distances near zero.
        found = np.where(found <= _ROUNDING * np.sqrt(rounded.shape[1]) * size, 0.0, found)
        others = np.where(found[:, :1] <= np.sqrt(_SAME) * size, found[:, 1:], found[:, :-1])
        return np.stack([others[:, :k].mean(axis=1) for k in self.neighbours], axis=1)

    def neighbouring(self, points: Array) -> Array:
        """Return the nearest training points of points, none of them itself, (n, k, d)."""
        wanted = min(max(N_NEIGHBOURS) + 1, len(self.points))
        distances, places = self._index.kneighbors(points, wanted)
        size = 1.0 + np.abs(points).max(axis=1, keepdims=True)
        itself = distances[:, :1] <= np.sqrt(_SAME) * size
        return self.points[np.where(itself, places[:, 1:], places[:, :-1])].astype(np.float64)

    def _closeness(self, distances: Array) -> Array:
        return -np.log(np.maximum(distances / self.units, MIN_DISTANCE_SHARE))

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


def learned_weights(inside: Array, outside: Array, steps: int) -> Array:
    """Return the weights, divided by their sum.

    Where made-up rows are no farther away than rows are from each other (on a lattice, say), nothing can
    be learned, and all distances count the same.

    Args:
        inside: Minus log-distances of training rows, (n, k).
        outside: Those of made-up rows, (m, k).
        steps: Most steps, at least 1.

    Example:
        The first distance tells rows from made-up ones, the second does not:

        >>> near, far = np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([[-2.0, 0.0], [-1.0, 1.0]])
        >>> learned_weights(near, far, 50).tolist()
        [1.0, 0.0]
    """
    k = inside.shape[1]

    def price(place: Array) -> tuple[float, Array]:
        w, b = place[:k], place[k]
        at_rows, at_others = inside @ w + b, outside @ w + b
        value = np.logaddexp(0, -at_rows).mean() + np.logaddexp(0, at_others).mean()
        pull_rows, pull_others = -expit(-at_rows) / len(inside), expit(at_others) / len(outside)
        slope = pull_rows @ inside + pull_others @ outside + 2 * WEIGHT_SHRINKAGE * w
        return float(value + WEIGHT_SHRINKAGE * w @ w), np.append(
            slope, pull_rows.sum() + pull_others.sum()
        )

    limits = [(0.0, None)] * k + [(None, None)]
    found = minimize(
        price,
        np.zeros(k + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"maxiter": steps},
    )
    weights = found.x[:k]
    return weights / weights.sum() if weights.any() else np.full(k, 1 / k)


def orientation_features(images: Tensor) -> Tensor:
    """Return the features of images, (n, cells * 8 + 1): a row of norm one, then its size.

    Args:
        images: (n, channels, height, width), on the range 0 to 1.

    Example:
        A vertical edge has gradients in the horizontal direction only:

        >>> image = torch.zeros(1, 1, 8, 8)
        >>> image[..., 4:] = 1
        >>> votes = orientation_features(image)[:, :-1].reshape(-1, 8).sum(0)
        >>> (votes > 0).tolist()
        [True, False, False, False, False, False, False, False]

    Dalal and Triggs 2005 is the source of the features; they are no part of Wolf et al. 2019.
    """
    horizontal = pad(images[..., 2:] - images[..., :-2], (1, 1, 0, 0))
    vertical = pad(images[..., 2:, :] - images[..., :-2, :], (0, 0, 1, 1))
    length = (torch.hypot(horizontal, vertical) - GRADIENT_FLOOR).clamp_min(0.0)
    angle = torch.atan2(vertical, horizontal) * (DIRECTIONS / (2 * math.pi))
    below = torch.floor(angle)
    upper_share = angle - below
    votes = []
    for direction in range(DIRECTIONS):
        first = (below - direction).remainder(DIRECTIONS) == 0
        second = (below + 1 - direction).remainder(DIRECTIONS) == 0
        votes.append((length * (first * (1 - upper_share) + second * upper_share)).sum(1))
    pooled = _pooled(torch.stack(votes, 1))
    features = pooled.clamp_min(0).sqrt().permute(0, 2, 3, 1).flatten(1)
    size = features.norm(dim=1, keepdim=True)
    return torch.cat([features / size.clamp_min(1e-12), GRADIENT_AMOUNT * torch.log1p(size)], 1)


def _pooled(votes: Tensor) -> Tensor:
    """Pool by a separable Gaussian window, one value for every four pixels."""
    height, width = votes.shape[2:]
    return _window(height, votes) @ votes @ _window(width, votes).T


def _window(length: int, like: Tensor) -> Tensor:
    """Return the weights of all pixels of a side for each cell, (cells, pixels)."""
    centres = torch.arange(min(CELL // 2, length - 1), length, CELL, dtype=like.dtype)
    offsets = torch.arange(length, dtype=like.dtype) - centres[:, None]
    weights = torch.exp(-0.5 * (offsets / _WINDOW) ** 2) / (_WINDOW * math.sqrt(2 * math.pi))
    return torch.where(offsets.abs() <= 2 * CELL, weights, torch.zeros_like(weights))


def density_points(scaling: InputScaling, rows: Array) -> Array:
    """Return the points whose distances are the density part: scaled rows, or features of images."""
    if not scaling.is_image:
        return scaling.scaled(rows)
    chunks = np.array_split(rows, max(len(rows) // FEATURE_CHUNK, 1))
    made = [points_of_inputs(scaling, scaling.inputs(chunk, torch.float64)) for chunk in chunks]
    return np.concatenate(made)


def points_of_inputs(scaling: InputScaling, inputs: Tensor) -> Array:
    """Return the same points, of inputs of the networks."""
    return orientation_features(inputs).numpy() if scaling.is_image else scaling.straight(inputs)
