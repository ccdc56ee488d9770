r"""Features bent to look normal: increasing piecewise-linear maps, one per feature, and their inverses.

A few quantiles of each feature are sent to those of the standard normal distribution, straight lines in
between and beyond; then mean and variance are brought to 0 and 1. Networks see a long tail stretched
over many units where most rows lie, instead of all rows in one spot. Being piecewise linear, the map is
a ReLU network too:

.. math:: v(x) = v_0 + s_0 (x - k_0) + \sum_{i \ge 1} (s_i - s_{i-1}) \, \rho(x - k_i) .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pindown.affine import Array

_LEVELS = np.array([0.005, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 0.995])
_LEAST_VALUES = 10  # a feature with fewer different values is a code, not a quantity
_LEAST_DISTANCE = 1e-6  # of two knots, in standard deviations: a map must not be too steep


@dataclass(frozen=True, eq=False)
class Bending:
    """Increasing piecewise-linear maps.

    Attributes:
        knots: Ascending places, (d, k).
        values: Their ascending images, (d, k).
    """

    knots: Array
    values: Array

    @classmethod
    def of(cls, rows: Array) -> Bending:
        """Learn the maps from standardised rows, (n, d); a feature with few values stays as it is."""
        shape = (rows.shape[1], len(_LEVELS))
        knots, values = np.empty(shape), np.empty(shape)
        for j, column in enumerate(rows.T):
            knots[j], values[j] = _straight() if _is_code(column) else _bent(column)
        return cls(knots, values)

    def __call__(self, rows: Array) -> Array:
        """Return bent rows, (n, d)."""
        return _through(rows, self.knots, self.values)

    def back(self, rows: Array) -> Array:
        """Return the rows that are bent to ``rows``.

        Example:
            >>> bending = Bending.of(np.exp(np.linspace(-2, 2, 50))[:, None])
            >>> bool(np.allclose(bending.back(bending(np.array([[0.1], [30.0]]))), [[0.1], [30.0]]))
            True
        """
        return _through(rows, self.values, self.knots)

    @property
    def slopes(self) -> Array:
        """Slopes between neighbouring knots, (d, k - 1); the outer ones go on beyond the ends."""
        return np.diff(self.values, axis=1) / np.diff(self.knots, axis=1)


def _is_code(column: Array) -> bool:
    return len(np.unique(column)) < _LEAST_VALUES


def _straight() -> tuple[Array, Array]:
    places = ndtri(_LEVELS)
    return places, places


def _bent(column: Array) -> tuple[Array, Array]:
    quantiles = np.quantile(column, _LEVELS)
    knots, values = [quantiles[0]], [[ndtri(_LEVELS[0])]]
    for place, level in zip(quantiles[1:], ndtri(_LEVELS[1:]), strict=True):
        if place - knots[-1] > _LEAST_DISTANCE:
            knots.append(place)
            values.append([])
        values[-1].append(level)
    if len(knots) < 2:
        return _straight()
    # Several levels at one place: their mean. Fewer places than levels: go on with the last slope.
    places, images = np.array(knots), np.array([np.mean(levels) for levels in values])
    missing = 1 + np.arange(len(_LEVELS) - len(places))
    step = (images[-1] - images[-2]) / (places[-1] - places[-2])
    places = np.concatenate([places, places[-1] + missing])
    images = np.concatenate([images, images[-1] + step * missing])
    seen = _through(column[:, None], places[None], images[None])
    return places, (images - seen.mean()) / seen.std()


def _through(rows: Array, places: Array, images: Array) -> Array:
    made = np.empty_like(rows, dtype=float)
    for j, (k, v) in enumerate(zip(places, images, strict=True)):
        x = rows[:, j]
        inside = np.interp(x, k, v)
        below = v[0] + (x - k[0]) * ((v[1] - v[0]) / (k[1] - k[0]))
        above = v[-1] + (x - k[-1]) * ((v[-1] - v[-2]) / (k[-1] - k[-2]))
        made[:, j] = np.where(x < k[0], below, np.where(x > k[-1], above, inside))
    return made
