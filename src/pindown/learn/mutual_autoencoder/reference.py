r"""The optimum that can be written down: a standard normal, a straight decoder.

For data N(0, 1) and target M, :math:`p(x \mid z) = N(\pm r z, 1 - r^2)` with
:math:`r = \sqrt{1 - e^{-2M}}` reproduces the data exactly and carries M nats; the posterior
:math:`N(\pm r x, 1 - r^2)` is Gaussian, so the evidence bound equals
:math:`-\frac12 \log(2 \pi e)` for every M: here information costs no likelihood.

Phuong 2021, section 4.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pindown.validation import is_number


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
    if not is_number(information, 0):
        raise ValueError(f"information must be a number of nats, zero or positive; got {information!r}.")
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
    if not is_number(gain) or not is_number(noise, 0) or noise == 0:
        raise ValueError(f"gain must be finite and noise positive; got {gain!r} and {noise!r}.")
    return 0.5 * math.log1p((gain / noise) ** 2)
