r"""Losses of a residual :math:`r = y - f(x)`: squared, absolute, quantile and Huber's.

.. math::
    r^2, \qquad |r|, \qquad \tau \max(r, 0) + (1 - \tau) \max(-r, 0), \qquad
    \begin{cases} r^2 & |r| \le \delta \\ 2 \delta |r| - \delta^2 & |r| > \delta \end{cases}

All are convex. The fit of the third one is the quantile :math:`\tau` of y, given x; the last one is
squared for small residuals and absolute for large ones (Koenker and Bassett 1978; Huber 1964).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pindown.affine import Array

LOSSES = ("squared", "absolute", "quantile", "huber")


@dataclass(frozen=True)
class Loss:
    r"""A loss by its name, with its number.

    Attributes:
        name: One of ``LOSSES``.
        quantile: :math:`\tau`, for ``"quantile"``.
        threshold: :math:`\delta`, for ``"huber"``.

    >>> Loss("quantile", quantile=0.9)(np.array([1.0, -1.0])).round(9).tolist()
    [0.9, 0.1]
    >>> Loss("huber", threshold=1.0)(np.array([0.5, -3.0])).tolist()
    [0.25, 5.0]
    """

    name: str
    quantile: float = 0.5
    threshold: float = np.inf

    @property
    def is_quadratic(self) -> bool:
        """Whether it is quadratic near zero: its unit is that of y, squared."""
        return self.name in ("squared", "huber")

    def __call__(self, residual: Array) -> Array:
        """Return the loss of each residual."""
        size = np.abs(residual)
        if self.name == "squared":
            return size**2
        if self.name == "absolute":
            return size
        if self.name == "quantile":
            return np.where(residual > 0.0, self.quantile, 1.0 - self.quantile) * size
        outer = 2.0 * self.threshold * size - self.threshold**2
        return np.where(size <= self.threshold, np.minimum(size, self.threshold) ** 2, outer)

    def scaled(self, size: float) -> Loss:
        """Return the loss for residuals in units of ``size``."""
        return replace(self, threshold=self.threshold / size)

    def weights(self, w: Array) -> Array:
        """Return the rows of weights that the compiled search takes."""
        if self.name == "huber":
            return np.array([w, w, np.full_like(w, self.threshold)])
        if self.name == "quantile":
            return np.array([self.quantile * w, (1.0 - self.quantile) * w])
        return np.array([w, w])
