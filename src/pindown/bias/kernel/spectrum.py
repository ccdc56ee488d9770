r"""Which parts of the target are learned first.

In the eigenbasis :math:`K = Q \Lambda Q^\top` every component of the residual decays on its own:

.. math:: q_i^\top (f_t - y) = e^{-c\eta\lambda_i t}\, q_i^\top (f_0 - y),

which is :math:`-e^{-c\eta\lambda_i t} q_i^\top y` for a start at zero. Large eigenvalues come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.bias.kernel.checks import as_columns, as_gram
from pindown.bias.kernel.dynamics import NULL, Loss, _like, check_kernel, loss_constant


@dataclass(frozen=True, eq=False)
class SpectralBias:
    r"""The residual at the start, taken apart by how fast it will be learned.

    Attributes:
        eigenvalues: Of the kernel, descending.
        vectors: Eigenvectors as columns, in the same order.
        coefficients: Components of the residual :math:`f_0 - y`, (n, k).
        rates: Decay rates :math:`c \eta \lambda_i`; 0 where nothing is learned.
        half_times: After which time each component is halved; infinite where it never is.
        shares: Share of the squared residual in each component.
        kind: What the numbers are worth for a network.
    """

    eigenvalues: Array
    vectors: Array
    coefficients: Array
    rates: Array
    half_times: Array
    shares: Array
    kind: str = "heuristic"

    @property
    def never(self) -> float:
        """Share of the squared residual that is never learned."""
        return float(self.shares[self.rates == 0].sum())

    def time_to(self, share: float) -> float:
        """Return when this share of the squared residual is gone; infinity if it never is.

        Raises:
            ValueError: If the share is not between 0 and 1.
        """
        if not 0 <= share < 1:
            raise ValueError(f"share must be at least 0 and below 1; got {share!r}.")
        left = 1.0 - share

        def remaining(t: float) -> float:
            return float(np.sum(self.shares * np.exp(-2 * self.rates * t)))

        if remaining(0.0) <= left:
            return 0.0
        if self.never >= left:
            return float("inf")
        from scipy.optimize import brentq

        high = 1.0 / float(self.rates.max())
        while remaining(high) > left:
            high *= 2.0
        return float(brentq(lambda t: remaining(t) - left, 0.0, high))

    def __str__(self) -> str:
        rank = int(np.count_nonzero(self.rates))
        half, most = self.time_to(0.5), self.time_to(0.9)
        return (
            f"{rank} of {len(self.rates)} directions are learned; half of the squared residual is gone "
            f"at time {half:.3g}, 90 % at {most:.3g}, {100 * self.never:.3g} % never ({self.kind})"
        )


def spectral_bias(
    K: Any, y: Any, *, f0: Any = None, lr: float = 1.0, loss: Loss = "half-sum"
) -> SpectralBias:
    r"""Return the rate at which each part of the target is learned while the kernel stays.

    Args:
        K: Kernel of the training inputs, (n, n).
        y: Targets (n,) or (n, k).
        f0: Outputs at the start; zero by default.
        lr: Learning rate :math:`\eta`.
        loss: ``"half-sum"``, ``"sum"`` or ``"mean"`` of squares.

    Returns:
        The residual in the kernel's eigenbasis with rates and half-times :math:`\ln 2 / c\eta\lambda_i`.

    Example:
        >>> report = spectral_bias(np.diag([4.0, 1.0]), [1.0, 1.0])
        >>> report.half_times / np.log(2)
        array([0.25, 1.  ])

    Lecture course, slides on spectral bias (with the sign of its later displays restored).
    """
    gram = as_gram(K)
    targets = as_columns(y, len(gram), "y")
    start = np.zeros_like(targets) if f0 is None else _like(f0, targets.shape, "f0")
    if not (np.isfinite(lr) and lr > 0):
        raise ValueError(f"lr must be positive and finite; got {lr!r}.")
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    check_kernel(values)
    kept = np.where(values > NULL * max(float(values[0]), 0.0), values, 0.0)
    rates = loss_constant(loss, len(gram)) * lr * kept
    half = np.divide(np.log(2.0), rates, out=np.full_like(rates, np.inf), where=rates > 0)
    coefficients = vectors.T @ (start - targets)
    unit = float(np.abs(coefficients).max()) or 1.0  # squares stay within the floats
    energy = np.sum((coefficients / unit) ** 2, axis=1)
    shares = energy / energy.sum() if energy.any() else energy
    return SpectralBias(values, vectors, coefficients, rates, half, shares)


def residual_in_eigenbasis(K: Any, y: Any, predictions: Any) -> tuple[Array, Array]:
    r"""Return how measured residuals look in the kernel's eigenbasis.

    Args:
        K: Kernel of the training inputs, (n, n).
        y: Targets (n,).
        predictions: Outputs over time, (T, n).

    Returns:
        Components :math:`q_i^\top (f_t - y)` of shape (T, n) and eigenvalues (n,), both by descending
        eigenvalue.

    Example:
        >>> residual_in_eigenbasis(np.eye(1), [1.0], [[0.0], [0.5]])[0] ** 2
        array([[1.  ],
               [0.25]])
    """
    gram = as_gram(K)
    targets = as_columns(y, len(gram), "y")[:, 0]
    outputs = np.atleast_2d(np.asarray(predictions, dtype=np.float64))
    if outputs.shape[1:] != targets.shape:
        raise ValueError(f"predictions must have shape (T, {len(targets)}); got {outputs.shape}.")
    values, vectors = np.linalg.eigh(gram)
    return (outputs - targets) @ vectors[:, ::-1], values[::-1]
