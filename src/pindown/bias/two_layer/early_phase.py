r"""The early phase of training from small weights: where neurons turn before the loss moves.

A *sector* of weight space is the set of w with the same signs of :math:`\langle w, x_i\rangle`. While
the network is near zero, a neuron's direction ascends or descends

.. math:: G(w) = -\sum_i\ell_i'(0)\,\rho(\langle w, x_i\rangle) \ \text{ on the unit sphere}, \qquad
          -\ell_i'(0) = y_i/2 \text{ for the logistic loss},

up if its output weight is positive, down if negative. Strict local maxima and minima are the positive
and negative *extremal directions*. On orthogonally separable data there is one of each: the normalised
sum of the positive samples, and that of the negative samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.bias.margins.hard_margin import labelled
from pindown.bias.tuning import (
    MAX_ASCENT_STEPS,
    MAXIMUM_PROBES,
    MERGED_COSINE,
    PROBE_LENGTH,
    SADDLE_PUSH,
    STILL_TURN,
)
from pindown.bias.two_layer.orthogonal import orthogonal_separability
from pindown.evidence import Kind
from pindown.validation import integer

_ON_BOUNDARY = 1e-12  # cosine below which a sample counts as orthogonal to a neuron


@dataclass(frozen=True)
class Extremes:
    """Extremal directions of the early phase.

    Attributes:
        positive: Unit vectors (k, d) where neurons with positive output weight gather.
        negative: The same for negative output weight.
        shares: Share of random starts that ended at each (positive first), NaN for the closed form.
        dead: Share of starts that ended at no extremal direction, mostly where no sample is active.
        kind: ``"exact"`` for the closed form, ``"estimate"`` for a search.
    """

    positive: Array
    negative: Array
    shares: tuple[float, ...] = field(repr=False)
    dead: tuple[float, float]
    kind: Kind

    def __str__(self) -> str:
        count = f"{len(self.positive)} positive and {len(self.negative)} negative"
        return f"{count} extremal directions ({self.kind})"


def sector(w: ArrayLike, X: ArrayLike) -> NDArray[np.int64]:
    """Return the signs of a neuron's products with the samples: -1, 0 or 1.

    >>> sector([1.0, 0.0], [[2.0, 1.0], [0.0, 3.0], [-1.0, 0.0]]).tolist()
    [1, 0, -1]
    """
    weight, points = np.asarray(w, dtype=np.float64), np.atleast_2d(np.asarray(X, dtype=np.float64))
    values = points @ weight
    scale = np.linalg.norm(points, axis=1) * np.linalg.norm(weight)
    return np.where(np.abs(values) <= _ON_BOUNDARY * scale, 0, np.sign(values)).astype(np.int64)


def early_potential(w: ArrayLike, X: ArrayLike, y: ArrayLike) -> float:
    """Return G of the direction of w, for the logistic loss.

    >>> early_potential([3.0, 0.0], [[2.0, 1.0], [-4.0, 0.0]], [1, -1])
    1.0
    """
    points, labels = labelled(X, y)
    weight = np.asarray(w, dtype=np.float64)
    unit = weight / float(np.linalg.norm(weight))
    return float(0.5 * labels @ np.maximum(points @ unit, 0.0))


def extremal_directions(X: ArrayLike, y: ArrayLike) -> Extremes:
    """Return the two extremal directions of orthogonally separable samples in closed form.

    Args:
        X: Samples (n, d), orthogonally separable.
        y: Labels of at most two classes.

    Returns:
        An :class:`Extremes` with at most one direction of each sign (none for a class without samples).

    Raises:
        ValueError: If the samples are not orthogonally separable: search instead.

    Example:
        >>> found = extremal_directions([[2.0, 1.0], [1.0, 3.0], [-2.0, 0.0]], [1, 1, -1])
        >>> found.positive.round(6).tolist(), found.negative.tolist()
        ([[0.6, 0.8]], [[-1.0, 0.0]])

    Phuong 2021, Lemma 3.2; the closed form follows from Lemma B.1.
    """
    points, labels = labelled(X, y)
    within = [points[labels == sign] for sign in (1, -1)]
    if not orthogonal_separability(points, labels):
        raise ValueError(
            "the samples are not orthogonally separable, the closed form does not apply; "
            "use search_extremal_directions"
        )
    units = [part.sum(axis=0, keepdims=True) if len(part) else part for part in within]
    ends = [np.asarray(part / np.linalg.norm(part, axis=1, keepdims=True)) for part in units]
    unknown = float("nan")
    return Extremes(
        ends[0], ends[1], (unknown,) * (len(ends[0]) + len(ends[1])), (unknown, unknown), "exact"
    )


def search_extremal_directions(
    X: ArrayLike, y: ArrayLike, *, starts: int = 1000, seed: int = 0
) -> Extremes:
    """Find the extremal directions of any samples from random starts.

    Every start follows the early flow of a neuron on the sphere. The number of ends is a property of
    the data alone, whatever the width.

    Args:
        X: Samples (n, d).
        y: Labels of at most two classes.
        starts: Random unit vectors, for each sign.
        seed: Seed of those.

    Returns:
        An :class:`Extremes`; directions that few starts reach may be missing.

    Example:
        >>> X, y = [[2.0, 1.0], [1.0, 3.0], [-2.0, 0.0]], [1, 1, -1]
        >>> found = search_extremal_directions(X, y, starts=50)
        >>> found.positive.round(6).tolist(), (found.negative.round(6) + 0.0).tolist()
        ([[0.6, 0.8]], [[-1.0, 0.0]])
    """
    points, labels = labelled(X, y)
    starts = integer("starts", starts)
    rng = np.random.default_rng(seed)
    ends, shares, dead = [], [], []
    for sign in (1.0, -1.0):
        first = rng.standard_normal((starts, points.shape[1]))
        found, counts, frozen = _ascend(points, sign * labels, first, rng)
        ends.append(found)
        shares += [count / starts for count in counts]
        dead.append(frozen / starts)
    return Extremes(ends[0], ends[1], tuple(shares), (dead[0], dead[1]), "estimate")


def _ascend(
    points: Array, labels: Array, W: Array, rng: np.random.Generator
) -> tuple[Array, list[int], int]:
    """Return the clusters of ends of the ascent of G, how many starts each has, and how many died."""
    W = _follow(points, labels, W)
    W = _follow(points, labels, W + SADDLE_PUSH * rng.standard_normal(W.shape) / W.shape[1] ** 0.5)
    alive = (_ON_BOUNDARY * np.linalg.norm(points, axis=1) < W @ points.T).any(axis=1)
    # Local maxima of the potential with a positive value; elsewhere the flow has not ended.
    alive &= np.maximum(W @ points.T, 0.0) @ labels > 0
    clusters: list[Array] = []
    counts: list[int] = []
    for w in W[alive]:
        near = [i for i, centre in enumerate(clusters) if float(centre @ w) > MERGED_COSINE]
        if near:
            counts[near[0]] += 1
        else:
            clusters.append(w)
            counts.append(1)
    # Flow can also come to rest where the potential still rises on the other side of a fold.
    strict = [i for i, centre in enumerate(clusters) if _is_maximum(points, labels, centre, rng)]
    lost = sum(counts) - sum(counts[i] for i in strict)
    clusters, counts = [clusters[i] for i in strict], [counts[i] for i in strict]
    order = np.argsort(counts)[::-1]
    ends = np.array(clusters).reshape(-1, points.shape[1])[order.astype(int)]
    return ends, [counts[i] for i in order], int((~alive).sum()) + lost


def _is_maximum(points: Array, labels: Array, unit: Array, rng: np.random.Generator) -> bool:
    near = unit + PROBE_LENGTH * rng.standard_normal((MAXIMUM_PROBES, len(unit)))
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    here = float(labels @ np.maximum(points @ unit, 0.0))
    return bool((np.maximum(near @ points.T, 0.0) @ labels <= here).all())


def _follow(points: Array, labels: Array, W: Array) -> Array:
    """Ascend G from each row until no row turns."""
    scale = float(np.abs(labels) @ np.linalg.norm(points, axis=1)) or 1.0
    W = W / np.linalg.norm(W, axis=1, keepdims=True)
    pull = 0.5 * labels[:, None] * points / scale
    step = 1.0
    for k in range(MAX_ASCENT_STEPS):
        new = W + step * ((W @ points.T > 0) @ pull)
        new /= np.linalg.norm(new, axis=1, keepdims=True)
        turn = float(np.abs(new - W).max())
        W = new
        if turn < STILL_TURN:
            break
        if k and k % 200 == 0:  # ends on a fold of G are approached by zigzag: shrink it
            step *= 0.7
    return W
