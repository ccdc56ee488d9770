"""Scores of a fitted detector: density and networks added up, quality, and comparisons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pindown.affine import Array
from pindown.learn.one_class.density import Calibration, NeighbourDensity, density_points
from pindown.learn.one_class.ensemble import Ensemble, network_inputs
from pindown.learn.one_class.inputs import InputScaling
from pindown.learn.one_class.plan import Plan
from pindown.learn.torch_isolation import own_torch

# log 19, the log-odds of the typical training point.
TEMPER = 2.944438979166440


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


@dataclass(frozen=True, eq=False)
class Scorer:
    """What a detector has learned, and what it says about rows (n, d) that were checked.

    Attributes:
        scaling: How rows become inputs.
        plan: What was trained.
        ensemble: The networks c and h.
        density: The density part, or None.
        mixture: How both are added up; None as printed, where networks alone make the score.
    """

    scaling: InputScaling
    plan: Plan
    ensemble: Ensemble
    density: NeighbourDensity | None
    mixture: Mixture | None

    def inputs(self, rows: Array) -> torch.Tensor:
        """Return what the networks take, in double precision."""
        return network_inputs(self.scaling, rows, self.plan.printed, torch.float64)

    def learned(self, rows: Array) -> Array:
        """Return the networks' mean log-odds of membership, before calibration, (n,)."""
        inputs = self.inputs(rows)
        if self.plan.ablation == "h":
            return self.ensemble.quality(inputs)
        return self.ensemble.membership(inputs).mean(axis=0)

    def log_odds(self, rows: Array) -> Array:
        """Return the log-odds of membership, (n,)."""
        with own_torch():
            learned = self.learned(rows)
            if self.mixture is None:
                return learned
            density = None
            if self.density is not None:
                density = self.density.log_odds(density_points(self.scaling, rows))
            return self.mixture(density, learned)

    def quality(self, rows: Array) -> Array:
        """Return the log-odds of h(x, x), lowered for rows that are certainly no members, (n,)."""
        with own_torch():
            potential = self.ensemble.quality(self.inputs(rows))
        return potential if self._has_h_alone else potential + self._deficit(rows)

    def compared(self, first: Array, second: Array) -> Array:
        """Return the log-odds that rows of the first are at least as good as those of the second."""
        if not self._has_h_alone:
            return 2 * self.quality(first) - self.quality(second)
        with own_torch():
            return self.ensemble.compared(self.inputs(first), self.inputs(second))

    @property
    def _has_h_alone(self) -> bool:
        """Whether the comparator stands for itself: as printed, or because membership is made of it."""
        return self.plan.printed or self.plan.ablation == "h"

    def _deficit(self, rows: Array) -> Array:
        """Return by how much the odds against membership exceed 19 to 1, as log-odds, never positive."""
        return np.minimum(0.0, self.log_odds(rows) + TEMPER)

    def require_comparator(self) -> None:
        """Refuse a detector that was fitted without the comparator h.

        Raises:
            ValueError: If it was.
        """
        if not self.plan.has("comparator") or self.plan.ablation == "c":
            raise ValueError(
                "this detector was fitted without the comparator h; leave it among the ingredients "
                "and use another ablation than 'c'."
            )
