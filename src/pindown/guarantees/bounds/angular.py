r"""How inputs lie to the teacher: the probability of an angle of at least :math:`\theta`.

.. math:: p(\theta) = P_x[\bar\alpha(w_*, x) \ge \theta], \qquad
          \bar\alpha(u, v) = \arccos\frac{|u \cdot v|}{\|u\| \|v\|} \in [0, \pi/2]

Phuong 2021, section 5.3 (angular alignment).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.bound import outward, positive, probability

_GRID = 4096  # angles at which exponents are fitted
_ANGLE_ERROR = 1e-12  # of float64 angles; they are rounded up, towards harder inputs


def unsigned_angle(X: ArrayLike, w: ArrayLike) -> Array:
    """Return the angle between each row and the line along w, between 0 and pi / 2.

    A zero row has the angle pi / 2: it tells nothing.

    >>> (unsigned_angle([[1.0, 1.0], [-3.0, 0.0], [0.0, 2.0]], [1.0, 0.0]) * 4 / np.pi).round(9)
    array([1., 0., 2.])
    """
    rows, axis = np.asarray(X, dtype=np.float64), np.asarray(w, dtype=np.float64).ravel()
    if rows.ndim != 2 or rows.shape[1] != axis.size or not np.isfinite(rows).all():
        raise ValueError(f"X must be finite, of shape (m, {axis.size}); got shape {rows.shape}.")
    length = float(np.linalg.norm(axis))
    if not 0 < length < math.inf:
        raise ValueError("w must be finite and not zero.")
    along = rows @ (axis / length)
    across = np.linalg.norm(rows - along[:, None] * (axis / length), axis=1)
    return np.where((along == 0) & (across == 0), np.pi / 2, np.arctan2(across, np.abs(along)))


@dataclass(frozen=True, eq=False)
class AngularProfile:
    r"""The function :math:`p(\theta)`, or an upper bound on it.

    Attributes:
        survival: Maps angles to probabilities, entry by entry.
        delta: Probability with which it is not an upper bound; 0 if it is exact.
        n: Sample size it rests on; 0 if it is given.
        about: In words.

    >>> profile = AngularProfile.power(1.0)
    >>> profile([0.0, np.pi / 4, np.pi / 2])
    array([1. , 0.5, 0. ])
    """

    survival: Callable[[Array], Array]
    delta: float = 0.0
    n: int = 0
    about: str = "as given"

    def __call__(self, theta: ArrayLike) -> Array:
        """Return p at angles."""
        return np.clip(self.survival(np.asarray(theta, dtype=np.float64)), 0.0, 1.0)

    @classmethod
    def from_samples(cls, X: ArrayLike, w: ArrayLike, *, delta: float | None = None) -> AngularProfile:
        r"""Return the shares in a sample, or with ``delta`` an upper bound that holds for all angles.

        Args:
            X: Inputs, (m, d).
            w: The teacher's weights.
            delta: At most 1/2; adds :math:`\sqrt{\log(1/\delta) / 2 m}` (one-sided DKW).
        """
        angles = np.sort(unsigned_angle(X, w)) + _ANGLE_ERROR
        m = len(angles)
        if not m:
            raise ValueError("X is empty; give at least one input.")
        slack = 0.0
        if delta is not None:
            if probability("delta", delta) > 0.5:
                raise ValueError(f"delta must be at most 1/2 for the one-sided bound; got {delta}.")
            slack = outward(math.sqrt(math.log(1.0 / delta) / (2 * m)))

        def shares(theta: Array) -> Array:
            return np.asarray((m - np.searchsorted(angles, theta, side="left")) / m + slack)

        about = "shares of a sample" if delta is None else "upper bound from a sample"
        return cls(shares, delta or 0.0, m, about)

    @classmethod
    def power(cls, exponent: float) -> AngularProfile:
        r"""Return :math:`p(\theta) = (1 - 2 \theta / \pi)^\kappa`."""
        kappa = positive("exponent", exponent, zero=True)
        return cls(
            lambda theta: np.clip(1 - 2 * theta / np.pi, 0.0, 1.0) ** kappa, about=f"power {kappa:g}"
        )

    @property
    def estimated(self) -> bool:
        """Whether it is a share of a sample without a proved error."""
        return self.n > 0 and self.delta == 0.0


def fit_exponent(profile: AngularProfile) -> float:
    r"""Return the largest :math:`\kappa` with :math:`p(\theta) \le (1 - 2\theta/\pi)^\kappa` on a grid.

    >>> round(fit_exponent(AngularProfile.power(2.0)), 6)
    2.0
    """
    theta = np.linspace(0.0, np.pi / 2, _GRID + 2)[1:-1]
    p = profile(theta)
    if (p >= 1.0).any():
        return 0.0
    with np.errstate(divide="ignore"):
        ratios = np.log(p) / np.log(1 - 2 * theta / np.pi)
    return float(ratios.min())


def fit_margin(profile: AngularProfile) -> tuple[float, float]:
    r"""Return the least :math:`\beta` on a grid with :math:`p(\beta) = 0`, and :math:`p(\pi/2 - \beta)`.

    Example:
        All inputs within 0.4 of the teacher's line:

        >>> beta, rate = fit_margin(AngularProfile(lambda t: (t <= 0.4).astype(float)))
        >>> round(beta, 2), rate
        (0.4, 0.0)
    """
    theta = np.linspace(0.0, np.pi / 2, _GRID)
    zero = np.flatnonzero(profile(theta) == 0.0)
    beta = float(theta[zero[0]]) if len(zero) else math.pi / 2
    return beta, float(profile(math.pi / 2 - beta))
