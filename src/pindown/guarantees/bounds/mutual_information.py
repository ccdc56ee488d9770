r"""A lower bound on mutual information from any guess of one variable given the other.

.. math:: I(z; x) \ge H(z) + E[\log r(z \mid x)], \qquad
          \text{gap} = E_x\, \mathrm{KL}\big(p(z \mid x) \,\|\, r(z \mid x)\big)

Phuong 2021, Theorem 4.1; Barber and Agakov 2003.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.validation import integer

Units = Literal["nats", "bits"]


@dataclass(frozen=True)
class InformationBound:
    """An estimate of a lower bound on mutual information.

    Attributes:
        value: Entropy plus the mean log density.
        standard_error: Standard error of the mean.
        n: Number of samples.
        units: ``"nats"`` or ``"bits"``.
    """

    value: float
    standard_error: float
    n: int
    units: Units = "nats"
    kind: Literal["estimate"] = "estimate"

    def __str__(self) -> str:
        return (
            f"mutual information at least {self.value:.4g} ± {self.standard_error:.2g} {self.units} "
            f"(estimate, n = {self.n:,})"
        )


def information_lower_bound(
    log_density: ArrayLike, entropy: float, *, units: Units = "nats"
) -> InformationBound:
    r"""Estimate :math:`H(z) + E[\log r(z \mid x)]` from samples of the joint distribution.

    Args:
        log_density: :math:`\log r(z_i \mid x_i)` in nats, for samples that r was not fitted on.
        entropy: :math:`H(z)` in nats; see :func:`standard_normal_entropy`.
        units: Unit of the answer.

    Example:
        A guess that ignores x, r = p(z), tells nothing about it:

        >>> z = np.random.default_rng(0).standard_normal(100_000)
        >>> log_r = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        >>> abs(information_lower_bound(log_r, standard_normal_entropy(1)).value) < 0.01
        True

    Phuong 2021, Theorem 4.1.
    """
    values = np.asarray(log_density, dtype=np.float64).ravel()
    if values.size < 2 or np.isnan(values).any() or not math.isfinite(entropy):
        raise ValueError(
            f"log_density needs at least two numbers, none NaN, and a finite entropy; got {values.size}."
        )
    if units not in ("nats", "bits"):
        raise ValueError(f"units must be 'nats' or 'bits'; got {units!r}.")
    scale = 1.0 if units == "nats" else 1.0 / math.log(2.0)
    error = float(values.std(ddof=1)) / math.sqrt(values.size) if np.isfinite(values).all() else math.inf
    return InformationBound((float(values.mean()) + entropy) * scale, error * scale, values.size, units)


def standard_normal_entropy(dimension: int) -> float:
    r"""Return :math:`\tfrac k2 \log(2 \pi e)`.

    >>> round(standard_normal_entropy(2), 4)
    2.8379
    """
    return 0.5 * integer("dimension", dimension) * math.log(2 * math.pi * math.e)
