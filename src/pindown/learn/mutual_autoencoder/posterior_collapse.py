r"""Why Gaussian encoders lose symbols: the price of an informative code.

For data with finitely many symbols of probability :math:`q(x)` and codes :math:`q(z \mid x)`,

.. math:: \mathrm{ELBO} = -H(q(x)) - \mathrm{KL}\big(q(x) q(z \mid x) \,\|\, p(z) p(x \mid z)\big)
          \le -H(q(x)) - \mathrm{KL}\big(q(z) \,\|\, p(z)\big),

with equality for the best decoder, :math:`p(x \mid z) = q(x \mid z)`. The aggregate :math:`q(z)` is a
finite mixture of normals; it equals the standard normal only if all its parts do. So every informative
code costs evidence, and the global optimum of a plain variational autoencoder ignores the code.

One optimum can be written down. For data N(0, 1) and target M, :math:`p(x \mid z) = N(\pm r z, 1 - r^2)`
with :math:`r = \sqrt{1 - e^{-2M}}` reproduces the data exactly and carries M nats; the posterior
:math:`N(\pm r x, 1 - r^2)` is Gaussian, so the evidence bound equals
:math:`-\frac12 \log(2 \pi e)` for every M: here information costs no likelihood.

Phuong 2021, Theorem 4.2 and section 4.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.learn.mutual_autoencoder.tuning import (
    MAX_MIXTURE_NODES,
    MIXTURE_BLOCK,
    MIXTURE_REACH,
    NODES_PER_DEVIATION,
)
from pindown.validation import integer, number, positive

# A component this close to the standard normal in mean and deviation is it, up to rounding.
_SAME = 1e-12


@dataclass(frozen=True)
class CollapseGap:
    r"""What a Gaussian code costs and carries.

    Attributes:
        gap: :math:`\mathrm{KL}(q(z) \| p(z))`, the evidence lost at least, in nats.
        information: :math:`I_q(z; x)` of the code, in nats.
        best_elbo: :math:`-H(q(x)) - \mathrm{gap}`: no decoder does better with this code.
        collapsed: Whether all codes equal the prior.
        standard_error: Standard error of the gap; 0 for quadrature.
        kind: ``"exact"`` (quadrature) or ``"estimate"`` (draws).
    """

    gap: float
    information: float
    best_elbo: float
    collapsed: bool
    standard_error: float
    kind: Kind

    def __str__(self) -> str:
        spread = f" ± {self.standard_error:.2g}" if self.kind == "estimate" else ""
        return (
            f"a code of {self.information:.4g} nats costs at least {self.gap:.4g}{spread} nats of "
            f"evidence; ELBO at most {self.best_elbo:.4g} ({self.kind})"
        )


def collapse_gap(
    means: ArrayLike,
    stds: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    draws: int = 20_000,
    random_state: int = 0,
) -> CollapseGap:
    """Return the evidence that a Gaussian encoder of finitely many symbols gives away.

    Args:
        means: Mean of the code of every symbol, (n,) or (n, k).
        stds: Standard deviations, of the same shape.
        weights: Probability of every symbol; None for all the same.
        draws: Number of draws, for codes of more than one dimension.
        random_state: Their seed.

    Raises:
        ValueError: If shapes differ, a deviation is not positive, or weights are no probabilities.

    Example:
        Ignoring the data is free, telling two symbols apart is not:

        >>> collapse_gap([0.0, 0.0], [1.0, 1.0]).gap
        0.0
        >>> collapse_gap([-1.0, 1.0], [0.5, 0.5]).gap > 0.05
        True

    Phuong 2021, Theorem 4.2.
    """
    mu, sd, p = _checked(means, stds, weights)
    entropy = -float(p @ np.log(p))
    if (np.abs(mu) <= _SAME).all() and (np.abs(sd - 1.0) <= _SAME).all():
        return CollapseGap(0.0, 0.0, -entropy, True, 0.0, "exact")
    if mu.shape[1] == 1:
        gap, information = _by_quadrature(mu[:, 0], sd[:, 0], p)
        return CollapseGap(gap, information, -entropy - gap, False, 0.0, "exact")
    integer("draws", draws, least=2)
    rng = np.random.default_rng(random_state)
    chosen = rng.choice(len(p), size=draws, p=p)
    z = mu[chosen] + sd[chosen] * rng.standard_normal((draws, mu.shape[1]))
    logs = np.stack([_log_normal(z, m, s) for m, s in zip(mu, sd, strict=True)], axis=1)
    aggregate = _log_mean(logs, p)
    cost = aggregate - _log_normal(z, np.zeros(mu.shape[1]), np.ones(mu.shape[1]))
    told = float((logs[np.arange(draws), chosen] - aggregate).mean())
    gap, error = float(cost.mean()), float(cost.std(ddof=1)) / math.sqrt(draws)
    return CollapseGap(gap, told, -entropy - gap, False, error, "estimate")


def _checked(means: ArrayLike, stds: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array, Array]:
    mu, sd = (np.asarray(a, dtype=np.float64) for a in (means, stds))
    if mu.ndim == 1 and sd.ndim == 1:
        mu, sd = mu[:, None], sd[:, None]
    if mu.ndim != 2 or mu.shape != sd.shape or mu.size == 0:
        raise ValueError(
            f"means and stds must both be (n,) or (n, k); got {np.shape(means)}, {np.shape(stds)}."
        )
    if not (np.isfinite(mu).all() and np.isfinite(sd).all() and (sd > 0).all()):
        raise ValueError("means must be finite and stds finite and positive; got others.")
    p = np.full(len(mu), 1.0 / len(mu)) if weights is None else np.asarray(weights, dtype=np.float64)
    if p.shape != (len(mu),) or not (p >= 0).all() or not math.isclose(p.sum(), 1.0, abs_tol=1e-8):
        raise ValueError(f"weights must be {len(mu)} probabilities that sum to 1; got {weights!r}.")
    kept = p > 0  # a symbol that never comes costs nothing
    return mu[kept], sd[kept], p[kept] / p[kept].sum()


def _log_normal(z: Array, mean: Array, std: Array) -> Array:
    scaled = (z - mean) / std
    out: Array = (-0.5 * scaled**2 - np.log(std) - 0.5 * math.log(2 * math.pi)).sum(axis=-1)
    return out


def _log_mean(logs: Array, weights: Array) -> Array:
    top = logs.max(axis=1)
    out: Array = top + np.log(np.exp(logs - top[:, None]) @ weights)
    return out


def _by_quadrature(mu: Array, sd: Array, p: Array) -> tuple[float, float]:
    low, high = float((mu - MIXTURE_REACH * sd).min()), float((mu + MIXTURE_REACH * sd).max())
    nodes = min(int((high - low) / sd.min() * NODES_PER_DEVIATION) + 2, MAX_MIXTURE_NODES)
    step = (high - low) / (nodes - 1)
    gap = 0.0
    for block in np.array_split(np.linspace(low, high, nodes), nodes // MIXTURE_BLOCK + 1):
        z = block[:, None]
        logs = np.stack(
            [_log_normal(z, m, s) for m, s in zip(mu[:, None], sd[:, None], strict=True)], axis=1
        )
        log_q = _log_mean(logs, p)
        gap += step * float(np.exp(log_q) @ (log_q + 0.5 * block**2 + 0.5 * math.log(2 * math.pi)))
    # The cost of each code beyond the prior is told plus gap: KL(q(z|x) || p) averages to their sum.
    rate = float(p @ (0.5 * (mu**2 + sd**2 - 1.0) - np.log(sd)))
    gap = max(gap, 0.0)
    return gap, max(rate - gap, 0.0)


@dataclass(frozen=True)
class LinearGaussianOptimum:
    """Slope and deviation of decoder and encoder, and their evidence bound."""

    slope: float
    std: float
    elbo: float


def linear_gaussian_optimum(information: float) -> LinearGaussianOptimum:
    """Return the best model of a standard normal at a given information.

    Args:
        information: M in nats, zero or positive.

    Example:
        >>> best = linear_gaussian_optimum(0.5 * math.log(2))
        >>> round(best.slope**2, 12), round(best.std**2, 12), round(best.elbo, 5)
        (0.5, 0.5, -1.41894)
    """
    positive("information", information, zero=True)
    return LinearGaussianOptimum(
        math.sqrt(-math.expm1(-2.0 * information)),
        math.exp(-information),
        -0.5 * math.log(2.0 * math.pi * math.e),
    )


def linear_gaussian_information(gain: float, noise: float) -> float:
    r"""Return :math:`\frac12 \log(1 + a^2 / s^2)` for x = a z + s e.

    >>> round(linear_gaussian_information(1.0, 1.0), 4)
    0.3466
    """
    return 0.5 * math.log1p((number("gain", gain) / positive("noise", noise)) ** 2)
