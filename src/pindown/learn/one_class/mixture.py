"""Density and networks added up to one score, calibrated on rows that were held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.learn.one_class.density import Calibration

TEMPER = 2.944438979166440  # log 19, the log-odds of the typical training point


@dataclass(frozen=True, eq=False)
class Mixture:
    """How density and networks are added up to the log-odds of membership.

    Attributes:
        learned: Calibration of the networks' mean log-odds.
        total: Calibration of the sum.
        weight: Weight of the networks beside the density.
    """

    learned: Calibration
    total: Calibration
    weight: float

    @classmethod
    def of(cls, density: Array | None, held: Array, in_sample: Array, weight: float) -> Mixture:
        """Calibrate on held-out scores of training rows, or on all rows if none were held out."""
        known = np.isfinite(held)
        scores = held[known] if known.any() else in_sample
        learned = Calibration.of(scores)
        first = cls(learned, Calibration(0.0, 1.0), weight)
        beside = None if density is None else density[known] if known.any() else density
        return cls(learned, Calibration.of(first(beside, scores)), weight)

    def __call__(self, density: Array | None, learned: Array) -> Array:
        """Return the log-odds of membership."""
        part = tempered(self.learned(learned))
        return self.total(part if density is None else density + self.weight * part)


def tempered(log_odds: Array) -> Array:
    r"""Return :math:`t \,\mathrm{asinh}(z / t)`: far from the data, networks grow as logs do.

    Networks extrapolate linearly, distances enter as logs; without this the networks alone would
    decide about everything that is far away.

    Example:
        >>> np.round(tempered(np.array([0.0, -300.0])), 1).tolist()
        [0.0, -15.7]
    """
    return TEMPER * np.asarray(np.arcsinh(log_odds / TEMPER))
