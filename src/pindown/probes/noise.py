r"""Random noise beside adversarial changes: how much longer it has to be to do the same.

Noise of scale :math:`\sigma`, r standard normal, changes the class of two with probability
:math:`\Phi(-m / \sigma)` where m is the distance to the boundary, whatever the dimension. But such noise
has length about :math:`\sigma \sqrt d`, so to succeed with a given probability it has to be about
:math:`\sqrt d` times as long as the shortest attack. What does shrink with the dimension is the chance
that an *average* of the noise exceeds a fixed number.

On networks both lengths are found: the shortest change by an attack, the scale of the noise by halving
on a sample of directions.

Lecture course, section on random noise; :math:`P(w \cdot r > 0)` is one half in every dimension, see
docs/errata.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, inf, isfinite, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.confidence import clopper_pearson
from pindown.evidence import Kind
from pindown.model.gradients import outputs
from pindown.model.graph import Model
from pindown.probes.attacks import attack, is_affine
from pindown.probes.differentiable import as_differentiable
from pindown.probes.tuning import NOISE_BLOCK_NUMBERS, NOISE_HALVINGS, NOISE_MAX_DOUBLINGS, OVERSHOOT
from pindown.validation import integer, number, positive
from pindown.verification.classes import classifier, one_input

_DELTA = 0.05  # with which the interval of the share of flips may miss it


@dataclass(frozen=True)
class NoiseComparison:
    """How long noise has to be to do what the shortest attack does.

    Attributes:
        margin: Length of the shortest l2 change that changes the class: the distance itself for affine
            models, else the shortest that an attack found, an upper end.
        sigma: Scale of normal noise that changes it with the given probability; infinite if none does.
        noise_norm: Root mean square length of that noise, ``sigma * sqrt(d)``.
        ratio: ``noise_norm / margin``.
        probability: The probability asked for.
        exact: Whether the scale follows from the formula: affine models with two classes.
        flips: Between which shares of draws noise of this scale changes the class; of networks with
            confidence 95 %, from draws that had no part in choosing the scale.
        kind: ``"exact"``, or ``"estimate"`` where noise was drawn.
    """

    margin: float
    sigma: float
    noise_norm: float
    ratio: float
    probability: float
    exact: bool
    flips: tuple[float, float] = (0.0, 1.0)
    kind: Kind = "exact"

    def __str__(self) -> str:
        if self.margin == inf:
            none = "all inputs have the same" if self.exact else "no other was found"
            return f"neither noise nor an attack changes the class: {none}"
        if self.sigma == inf:
            return f"an attack of length {self.margin:.4g} changes the class; no noise does that often"
        sign = "" if self.exact or self.kind == "estimate" else "at most "
        done = "does for sure" if self.kind == "exact" else "does"
        return (
            f"noise of length {sign}{self.noise_norm:.4g} changes the class with probability "
            f"{self.probability:g}, an attack of length {self.margin:.4g} {done}: "
            f"{self.ratio:.3g} times shorter ({self.kind})"
        )


def noise_flip_probability(margin: ArrayLike, sigma: float) -> Array:
    r"""Return :math:`\Phi(-m / \sigma)`, the chance that normal noise crosses a plane at distance m.

    >>> noise_flip_probability([0.0, 1.0], sigma=1.0).round(4)
    array([0.5   , 0.1587])

    Lecture course, section on random noise, in terms of the margin.
    """
    from scipy.special import ndtr

    distances = np.asarray(margin, dtype=np.float64)
    if not np.all(distances >= 0):
        raise ValueError("margins are distances >= 0; got a negative one or NaN.")
    sigma = positive("sigma", sigma)
    return np.asarray(ndtr(-distances / sigma))


def mean_noise_probability(d: int, eps: float) -> float:
    r"""Return :math:`P(\tfrac1d \sum_j r_j > \epsilon) = \tfrac12 \mathrm{erfc}(\epsilon \sqrt{d/2})`.

    >>> round(mean_noise_probability(100, 0.1), 4)
    0.1587

    Lecture course, section on random noise.
    """
    d = integer("d", d)
    return 0.5 * erfc(eps * sqrt(d / 2.0))


def noise_tail_bound(w: ArrayLike, eps: float) -> float:
    r"""Bound :math:`P(\tfrac1d\, w \cdot r \ge \epsilon)` from above, for :math:`\epsilon > 0`.

    .. math::
        \frac{\|w\|}{\epsilon d \sqrt{2 \pi}} \exp\Bigl(-\frac{d^2 \epsilon^2}{2 \|w\|^2}\Bigr),

    the tail of a normal variable of *variance* :math:`\|w\|^2 / d^2`. For small arguments it exceeds
    one half, which always bounds the probability, and one half is returned.

    >>> noise_tail_bound(np.ones(400), 0.1) < noise_tail_bound(np.ones(100), 0.1)
    True

    Lecture course, section on random noise.
    """
    weights = np.asarray(w, dtype=np.float64)
    if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all():
        raise ValueError(f"w must be a vector of finite numbers; got shape {weights.shape}.")
    eps = positive("eps", eps)
    size = float(np.linalg.norm(weights))
    if size == 0.0:
        return 0.0
    t = eps * weights.size / size
    return min(0.5, exp(-0.5 * t * t) / (t * sqrt(2.0 * pi)))


def noise_versus_adversarial(
    model: Any, x: ArrayLike, *, probability: float = 0.01, draws: int = 2000, seed: int = 0
) -> NoiseComparison:
    r"""Compare noise that changes the class now and then with the shortest attack in l2.

    For an affine model with two classes, at the distance m from the boundary,

    .. math::
        \sigma = \frac{m}{|\Phi^{-1}(p)|}, \qquad \|\text{noise}\| \approx \sigma \sqrt d .

    With more than two classes noise can also end in a third one, so a smaller scale may do. For other
    models the smallest scale at which a share p of the draws changes the class is found by doubling and
    halving, on the same directions throughout.

    Args:
        model: What :func:`attack` takes.
        x: One input.
        probability: With which the noise should change the class, in (0, 1/2).
        draws: Directions of noise, for models that are not affine; as many again judge the scale.
        seed: Seed of these, and of the attack.

    >>> from pindown import ReluNetwork
    >>> plane = ReluNetwork.from_layers([(np.ones((1, 100)), [0.0])])
    >>> found = noise_versus_adversarial(plane, np.ones(100), probability=0.1587)
    >>> round(found.margin, 6), round(found.ratio, 2)
    (10.0, 10.0)

    Lecture course, section on random noise.
    """
    from scipy.special import ndtri

    probability = number("probability", probability, 0.0, 0.5, above=True, below=True)
    draws = integer("draws", draws, least=2)
    X = np.asarray(x, dtype=np.float64)
    read = classifier(as_differentiable(model, X if X.ndim > 1 else X[None], "noise_versus_adversarial"))
    row, _ = one_input(read, X, None)
    found = attack(read, row[None], norm="l2", seed=seed)
    margin, d = float(found.distance[0]), len(row)
    if is_affine(read):
        margin /= 1.0 + OVERSHOOT
        two, one_over = read.out_features == 2, -1.0 / float(ndtri(probability))
        sigma = margin * one_over
        flips = (probability, probability) if two else (probability, 1.0)
        ratio = sqrt(d) * one_over
        return NoiseComparison(margin, sigma, sigma * sqrt(d), ratio, probability, two, flips)
    sigma, flips = _flipping_scale(read, row, margin, probability, draws, seed)
    length = sigma * sqrt(d)
    ratio = length / margin if isfinite(margin) and margin > 0 else inf
    return NoiseComparison(margin, sigma, length, ratio, probability, False, flips, "estimate")


def _flipping_scale(
    model: Model, row: Array, margin: float, share: float, draws: int, seed: int
) -> tuple[float, tuple[float, float]]:
    """Return the smallest scale met at which noise changes the class often enough, and how often."""
    own, rng = int(np.argmax(outputs(model, row[None])[0])), np.random.default_rng(seed)
    first, second = (_Noise(model, row, own, draws, rng) for _ in range(2))
    low, high = 0.0, margin / sqrt(len(row)) if isfinite(margin) and margin > 0 else 1e-3
    for _ in range(NOISE_MAX_DOUBLINGS):
        if first.flips(high).mean() >= share:
            break
        low, high = high, 2.0 * high
    else:
        return inf, (0.0, clopper_pearson(int(second.flips(low).sum()), draws, _DELTA))
    for _ in range(NOISE_HALVINGS):
        middle = 0.5 * (low + high)
        enough = first.flips(middle).mean() >= share
        low, high = (low, middle) if enough else (middle, high)
    hits = int(second.flips(high).sum())
    below = 1.0 - clopper_pearson(draws - hits, draws, _DELTA / 2.0)
    return high, (below, clopper_pearson(hits, draws, _DELTA / 2.0))


class _Noise:
    """Directions of noise, drawn again from their seed each time, so that they need no memory."""

    def __init__(self, model: Model, row: Array, own: int, draws: int, rng: np.random.Generator) -> None:
        self.model, self.row, self.own, self.draws = model, row, own, draws
        self.seed = int(rng.integers(2**63))

    def flips(self, sigma: float) -> NDArray[np.bool_]:
        """Return which draws of this scale have another class; where float64 ends, none has."""
        rng, block = np.random.default_rng(self.seed), max(1, NOISE_BLOCK_NUMBERS // len(self.row))
        parts = []
        for start in range(0, self.draws, block):
            noise = rng.standard_normal((min(block, self.draws - start), len(self.row)))
            made = outputs(self.model, self.row + sigma * noise)
            parts.append((np.argmax(made, axis=1) != self.own) & np.isfinite(made).all(axis=1))
        return np.concatenate(parts)
