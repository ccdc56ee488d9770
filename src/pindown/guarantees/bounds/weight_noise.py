r"""The plainest PAC-Bayes bound for a network: Gaussian noise on its weights, its errors counted.

The posterior is :math:`N(w, \sigma^2 I)`, the prior :math:`N(w_0, \sigma^2 I)` with :math:`w_0` zero or
the weights that training started from, and the scale one of a fixed list. The mean error of the noisy
networks on the sample is estimated from draws, which is paid for too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import (
    INDEPENDENT,
    Assumption,
    Bound,
    count,
    half_square,
    outward,
    probability,
)
from pindown.guarantees.bounds.coins import small_kl_inverse
from pindown.guarantees.bounds.grids import scale_below
from pindown.guarantees.bounds.labels import margins_of
from pindown.guarantees.bounds.pac_bayes import risk_from_level
from pindown.guarantees.bounds.representatives import WeightList, homogeneous
from pindown.guarantees.bounds.sample import read_network
from pindown.network import ReluNetwork
from pindown.rounding import norm_up

# Noise in units of the typical weight, from a hundredth to about itself.
_RELATIVE_SCALES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
_ROWS_PER_DRAW = 2000  # more would cost time and hardly make the mean over draws more certain
_SHARE_FOR_DRAWS = 0.2  # of delta; the rest is for the sample


def weight_noise_bound(
    net: ReluNetwork | WeightList,
    X: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    start: ReluNetwork | WeightList | None = None,
    n_draws: int = 30,
    random_state: int | np.random.Generator | None = 0,
) -> Bound:
    r"""Bound the risk of the network with Gaussian noise on its weights.

    .. math::
        L \le \mathrm{kl}^{-1}\Big(\hat L^+, \frac1m \Big[\frac{\|w - w_0\|^2}{2 \sigma^2}
            + \log\frac{2 \sqrt m}{\delta\, w_\sigma}\Big]\Big), \qquad
        \hat L^+ = \mathrm{kl}^{-1}\Big(\text{mean over draws}, \frac{\log(1/\delta')}{\text{draws}}\Big)

    Args:
        net: The classifier; biases count as weights of a constant input.
        X: The training sample, (m, d).
        y: Its classes.
        delta: Probability with which the bound may fail, draws included.
        start: Where training started, fixed before the sample was seen; None is zero.
        n_draws: Noisy networks for each scale that is tried.
        random_state: Seed or generator.

    Example:
        A threshold on the line, far from all points:

        >>> net = ReluNetwork.from_layers([([[1.0]], [0.0])])
        >>> X = np.where(np.arange(5000) % 2, 1.0, -1.0)[:, None]
        >>> bound = weight_noise_bound(net, X, X[:, 0] > 0, n_draws=100)
        >>> bound.vacuous, bound.value < 0.1
        (False, True)

    Langford and Caruana 2001, "(Not) bounding the true error"; Dziugaite and Roy 2017.
    """
    delta, draws = probability("delta", delta), count("n_draws", n_draws)
    weights, rows = read_network(net, X)
    origin = np.zeros_like(weights.vector) if start is None else _start_vector(start, weights)
    distance = norm_up(weights.vector - origin)
    rng, m = np.random.default_rng(random_state), len(rows)
    typical = weights.frobenius / math.sqrt(weights.vector.size) or 1.0
    scales = sorted({scale_below(typical * r) for r in _RELATIVE_SCALES})
    for_draws = _SHARE_FOR_DRAWS * delta
    best: dict[str, float] = {}
    for scale, cost in scales:
        observed = _mean_error(weights, rows, y, scale, draws, rng)
        seen = min(1.0, outward(observed))
        risk = float(small_kl_inverse(seen, outward(math.log(len(scales) / for_draws) / draws)))
        kl = outward(half_square(distance, scale))
        log_terms = outward(math.log(2.0 * math.sqrt(m) / (delta - for_draws)) + cost)
        level = outward((kl + log_terms) / m)
        value = risk_from_level(risk, level)
        if not best or value < best["value"]:
            best = {"value": value, "empirical risk": risk, "error of the draws": observed, "kl": kl}
            best |= {"scale": scale, "log terms": log_terms, "level": level}
    value = best.pop("value")
    rests = [
        INDEPENDENT,
        Assumption(f"{draws} draws at each of {len(scales)} scales, paid for", "checked"),
    ]
    if start is not None:
        rests.append(Assumption("the start was fixed before the sample was seen"))
    name = "weight noise" if start is None else "weight noise around the start"
    about = "expected risk under weight noise"
    return Bound(name, value, delta, about, best, tuple(rests), "Langford and Caruana 2001")


def _mean_error(
    weights: WeightList, rows: Array, y: ArrayLike, scale: float, draws: int, rng: np.random.Generator
) -> float:
    """Return the mean over draws, each on rows of its own: still a mean of independent terms."""
    shares, labels = [], np.asarray(y)
    for _ in range(draws):
        some = (
            rng.integers(len(rows), size=_ROWS_PER_DRAW) if len(rows) > _ROWS_PER_DRAW else slice(None)
        )
        noisy = weights.shifted(weights.vector + scale * rng.standard_normal(weights.vector.size))
        shares.append(float(np.mean(margins_of(noisy(rows[some]), labels[some]) <= 0)))
    return float(np.mean(shares))


def _start_vector(start: ReluNetwork | WeightList, weights: WeightList) -> Array:
    other = start if isinstance(start, WeightList) else homogeneous(start)
    if other.shapes != weights.shapes:
        raise ValueError(f"start must have layers of shapes {weights.shapes}; got {other.shapes}.")
    return other.vector
