"""What a fitted detector answers: membership, quality, comparisons, and its networks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pindown.affine import Array
from pindown.learn.one_class.checks import flat, n_axes
from pindown.learn.one_class.density import NeighbourDensity
from pindown.learn.one_class.ensemble import Ensemble, network_inputs
from pindown.learn.one_class.features import orientation_features
from pindown.learn.one_class.frame import Frame, image_layout, layout_text
from pindown.learn.one_class.mixture import TEMPER, Mixture
from pindown.learn.one_class.presets import Plan
from pindown.learn.torch_isolation import own_torch
from pindown.network import ReluNetwork

_FEATURE_CHUNK = 1024  # images whose features are computed at once
_OTHER_SCALE = 10.0  # ranges of the pixels: farther away is no noise but another unit, 255 for 1


class Scores(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """The answers of a detector whose parts are there; :class:`LocalMaximaDetector` makes the parts."""

    frame_: Frame
    plan_: Plan
    density_: NeighbourDensity | None
    ensemble_: Ensemble
    mixture_: Mixture | None
    offset_: float

    def _rows(self, X: Any, named: bool = True) -> Array:
        """Return checked rows, (n, d).

        Args:
            X: What the user gave.
            named: Whether a missing name of a feature is worth a warning.
        """
        check_is_fitted(self)
        axes = n_axes(X)
        if axes in (3, 4) and self.frame_.is_image:
            shape, first = image_layout(X, None)
            # With one channel, first and last are the same.
            if shape != self.frame_.image_shape or (
                shape[2] > 1 and first != self.frame_.channels_first
            ):
                wanted = layout_text(self.frame_.image_shape, self.frame_.channels_first)
                raise ValueError(
                    f"the detector was fitted on images of {wanted}, got {layout_text(shape, first)}."
                )
        with np.errstate(all="ignore"):  # sums of the largest numbers overflow while they are checked
            if not named and n_axes(X) in (2, 3, 4):
                return check_array(flat(X), dtype=np.float64)
            rows = validate_data(self, flat(X), dtype=np.float64, reset=False)
        self._check_range(rows)
        return rows

    def _check_range(self, rows: Array) -> None:
        """Warn of images on another scale than those of the training: answers about them mean little."""
        if not self.frame_.is_image:
            return
        least, most = float(self.frame_.scaled(rows).min()), float(self.frame_.scaled(rows).max())
        if least < -_OTHER_SCALE or most > 1 + _OTHER_SCALE:
            low, size = float(self.frame_.centre[0]), float(self.frame_.scale[0])
            warnings.warn(
                f"pixels from {rows.min():.4g} to {rows.max():.4g}, those of the training images are "
                f"from {low:.4g} to {low + size:.4g}; bring them to the same scale.",
                stacklevel=4,
            )

    def _inputs(self, rows: Array) -> torch.Tensor:
        return network_inputs(self.frame_, rows, self.plan_.printed, torch.float64)

    def _features(self, rows: Array) -> Array:
        """Return the points whose distances are the density part."""
        if not self.frame_.is_image:
            return self.frame_.scaled(rows)
        chunks = np.array_split(rows, max(len(rows) // _FEATURE_CHUNK, 1))
        made = [self._points(self.frame_.inputs(chunk, torch.float64)) for chunk in chunks]
        return np.concatenate(made)

    def _points(self, inputs: torch.Tensor) -> Array:
        """Return the same points, of inputs of the networks."""
        if self.frame_.is_image:
            return orientation_features(inputs).numpy()
        return self.frame_.straight(inputs)

    def _learned(self, rows: Array) -> Array:
        inputs = self._inputs(rows)
        if self.plan_.ablation == "h":
            return self.ensemble_.quality(inputs)
        return self.ensemble_.membership(inputs).mean(axis=0)

    def _scores(self, rows: Array) -> Array:
        with own_torch():
            learned = self._learned(rows)
            if self.mixture_ is None:
                return learned
            density = None if self.density_ is None else self.density_.log_odds(self._features(rows))
            return self.mixture_(density, learned)

    def score_samples(self, X: Any) -> Array:
        """Return the log-odds of membership, (n,): higher for members."""
        return self._scores(self._rows(X))

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples(X) - offset_``: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return 1 for members and -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def quality(self, X: Any) -> Array:
        r"""Return the log-odds of h(x, x), (n,): higher for better examples of their kind.

        .. math:: q(x) + \min(0,\; c(x) + \log 19)

        with the networks' potential q and the log-odds c of membership: what is certainly no member is
        no good example either, whatever networks say so far from all that they have seen (``"paper"``
        has h alone).
        """
        rows = self._rows(X)
        self._need_comparator()
        return self._qualities(rows)

    def _qualities(self, rows: Array) -> Array:
        with own_torch():
            potential = self.ensemble_.quality(self._inputs(rows))
        return potential if self._has_h_alone else potential + self._deficit(rows)

    @property
    def _has_h_alone(self) -> bool:
        """Whether the comparator stands for itself: as printed, or because membership is made of it."""
        return self.plan_.printed or self.plan_.ablation == "h"

    def _deficit(self, rows: Array) -> Array:
        """Return by how much the odds against membership exceed 19 to 1, as log-odds, never positive."""
        return np.minimum(0.0, self._scores(rows) + TEMPER)

    def compare(self, X1: Any, X2: Any) -> Array:
        """Return the log-odds that rows of X1 are at least as good as those of X2, (n,).

        h(a, b) and h(b, a) are two questions, not one: of two equally good rows both answers are yes.
        Which of two is the better one, ``compare(a, b) - compare(b, a)`` says; that changes its sign
        with the order, and is three times the difference of their qualities (not with ``"paper"``).
        """
        first, second = self._rows(X1), self._rows(X2)
        self._need_comparator()
        if len(first) != len(second):
            raise ValueError(f"X1 and X2 must have as many rows, got {len(first)} and {len(second)}.")
        return self._compared(first, second)

    def _compared(self, first: Array, second: Array) -> Array:
        if not self._has_h_alone:
            return 2 * self._qualities(first) - self._qualities(second)
        with own_torch():
            return self.ensemble_.compared(self._inputs(first), self._inputs(second))

    def _need_fitted_comparator(self) -> None:
        check_is_fitted(self)
        self._need_comparator()

    def _need_comparator(self) -> None:
        if not self.plan_.has("comparator") or self.plan_.ablation == "c":
            raise ValueError(
                "this detector was fitted without the comparator h; leave it among the ingredients "
                "and use another ablation than 'c'."
            )

    # ------------------------------------------------------------------ what was learned

    @property
    def networks_(self) -> dict[str, list[Any]]:
        """The networks c and h (or its potential), as they are evaluated."""
        check_is_fitted(self)
        return {"c": self.ensemble_.members, "h": self.ensemble_.comparators}

    @property
    def learned_network_(self) -> ReluNetwork:
        """The networks' mean log-odds of c, before calibration, as one ReLU network of a row of X."""
        from pindown.learn.one_class.conversion import learned_network

        check_is_fitted(self)
        return learned_network(self)

    @property
    def membership_network_(self) -> ReluNetwork:
        """C as one ReLU network of a row of X, where it is one: without the density part."""
        from pindown.learn.one_class.conversion import membership_network

        check_is_fitted(self)
        return membership_network(self)
