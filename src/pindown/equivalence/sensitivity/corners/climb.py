r"""Slopes that hand on as much as possible, and the multipliers that prove it.

A source passes where a corner :math:`v \in \{0, 1\}^n` lets it and then ReLUs with slopes 0 or 1,

.. math::
    z_1 = K v, \qquad z_{l+1} = W_{l+1} D_l z_l, \qquad w \cdot D_L z_L \;\to\; \max .

Given all other slopes, the best ones of a layer are 1 where :math:`z_l` and what the output makes of
it, :math:`b_l`, have the same sign. At such slopes the quadratic of the multipliers
:math:`\lambda_l = |b_l| / |z_l|` is stationary: if it is concave, its supremum is the value reached, and
no slopes do better. Near zero both are smoothed, which costs little and keeps it concave.

Our own; the quadratic is that of ``sensitivity.multipliers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

Open: TypeAlias = NDArray[np.bool_]

_ROUNDS = 60
_STARTS = 3  # all open, as the source itself would have it, at random


@dataclass(frozen=True, eq=False)
class Slopes:
    """Good slopes for several corners.

    Attributes:
        entering: :math:`z_l`, per layer, a column per corner.
        returning: :math:`b_l`, likewise.
        values: What reaches the output.
    """

    entering: tuple[Array, ...]
    returning: tuple[Array, ...]
    values: Array

    def multipliers(self, column: int, smoothing: float) -> list[Array]:
        r"""Return :math:`\lambda` for one corner, numbers below ``smoothing`` times the rms rounded off.

        None of them is finite if nothing reaches a layer.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return [
                _rounded_off(b[:, column], smoothing) / _rounded_off(z[:, column], smoothing)
                for z, b in zip(self.entering, self.returning, strict=True)
            ]


def climb(layers: Sequence[Array], w: Array, corners: Array) -> Slopes:
    """Improve the slopes of one layer after the other, for given corners, from a few starts.

    Args:
        layers: K and the weights that follow.
        w: Coefficients of the output.
        corners: Zeros and ones, a column per corner.

    >>> climb([np.array([[3.0, -1.0]]), np.array([[1.0], [-2.0]])], np.ones(2), np.ones((2, 1))).values
    array([2.])
    """
    rng = np.random.default_rng(0)
    m = corners.shape[1]
    best: Slopes | None = None
    for start in range(_STARTS):
        slopes = [(rng.random((len(W), m)) < 0.5) | (start < 2) for W in layers]
        if start == 1:
            z = layers[0] @ corners
            slopes[0] = z > 0.0
            for i, W in enumerate(layers[1:], 1):
                z = W @ np.maximum(z, 0.0)
                slopes[i] = z > 0.0
        found = _improved(layers, w, corners, slopes, moving=False)
        best = found if best is None else _better(best, found)
    assert best is not None
    return best


def climb_freely(layers: Sequence[Array], w: Array, *, starts: int = 16) -> Slopes:
    """Improve slopes and corner together from random starts."""
    rng = np.random.default_rng(0)
    corners = (rng.random((layers[0].shape[1], starts)) < 0.5).astype(float)
    slopes = [rng.random((len(W), starts)) < 0.5 for W in layers]
    return _improved(layers, w, corners, slopes, moving=True)


def _improved(
    layers: Sequence[Array], w: Array, corners: Array, slopes: list[Open], *, moving: bool
) -> Slopes:
    last = np.full(corners.shape[1], -np.inf)
    for _ in range(_ROUNDS):
        for i in range(len(layers) - 1, -1, -1):
            z, b = _entering(layers, corners, slopes), _returning(layers, w, slopes)
            slopes[i] = z[i] * b[i] > 0.0
        if moving:
            b = _returning(layers, w, slopes)
            corners = (layers[0].T @ (slopes[0] * b[0]) > 0.0).astype(float)
        z, b = _entering(layers, corners, slopes), _returning(layers, w, slopes)
        values = np.sum(z[0] * b[0] * slopes[0], axis=0)
        if np.all(values <= last * (1.0 + 1e-12)):
            break
        last = values
    return Slopes(tuple(z), tuple(b), values)


def _entering(layers: Sequence[Array], corners: Array, slopes: list[Open]) -> list[Array]:
    z = [layers[0] @ corners]
    for W, slope in zip(layers[1:], slopes, strict=False):
        z.append(W @ (slope * z[-1]))
    return z


def _returning(layers: Sequence[Array], w: Array, slopes: list[Open]) -> list[Array]:
    b = [np.repeat(w[:, None], slopes[0].shape[1], axis=1)]
    for W, slope in zip(reversed(layers[1:]), reversed(slopes), strict=False):
        b.append(W.T @ (slope * b[-1]))
    return b[::-1]


def _better(a: Slopes, b: Slopes) -> Slopes:
    """Take, corner by corner, whichever reaches more."""
    up = b.values > a.values

    def pick(x: Array, y: Array) -> Array:
        return np.where(up, y, x)

    return Slopes(
        tuple(map(pick, a.entering, b.entering)),
        tuple(map(pick, a.returning, b.returning)),
        pick(a.values, b.values),
    )


def _rounded_off(x: Array, smoothing: float) -> Array:
    return np.hypot(x, smoothing * np.sqrt(np.mean(x**2)))
