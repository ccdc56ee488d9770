r"""What scaling the inputs does to the shape of a squared loss, and to the speed of gradient descent.

The Hessian of the halved mean squared error is :math:`X^\top X/n`, with a column of ones for the
intercept. With the best step :math:`2/(\lambda_{\min} + \lambda_{\max})` gradient descent shrinks the
error by :math:`(\kappa - 1)/(\kappa + 1)` in each step, :math:`\kappa = \lambda_{\max}/\lambda_{\min}`.
Directions that the data do not see do not move and do not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.checks import number, table

_RANK = 1e-12  # singular values below this share of the largest are zero, as in the least norm
_SHRINK = 1e-6  # the default share of its error that descent is to be left with


@dataclass(frozen=True)
class Conditioning:
    """Condition numbers before and after standardisation, and the steps of gradient descent they mean.

    Attributes:
        raw: Condition number of the loss's Hessian, inputs as they are.
        standardised: The same for inputs with mean zero and variance one.
        raw_steps: Steps that shrink every part of the error to the share asked for, best step size.
        standardised_steps: The same after standardisation.
        rank: Rank of the inputs with the intercept.
        constant: Inputs that never change; standardisation removes them.
        kind: ``"exact"``, up to rounding.
    """

    raw: float
    standardised: float
    raw_steps: int
    standardised_steps: int
    rank: int
    constant: tuple[int, ...] = ()
    kind: str = "exact"

    @property
    def speed_up(self) -> float:
        """How many times fewer steps the standardised inputs need."""
        return self.raw_steps / self.standardised_steps

    def __str__(self) -> str:
        return (
            f"condition number {self.raw:.3g} -> {self.standardised:.3g}, "
            f"{self.raw_steps} -> {self.standardised_steps} steps"
        )


def conditioning(X: ArrayLike, *, intercept: bool = True, shrink: float = _SHRINK) -> Conditioning:
    """Return what standardising the inputs does to the conditioning of a squared loss.

    Args:
        X: Inputs (n, d).
        intercept: Whether a column of ones is added.
        shrink: Share of its error that descent is to be left with.

    Returns:
        A :class:`Conditioning`.

    Raises:
        ValueError: If inputs are not finite, or ``shrink`` is not in (0, 1).

    Example:
        Two uncorrelated inputs, one ten times as large: the condition number is the square of ten.

        >>> conditioning([[10, 1], [10, -1], [-10, 1], [-10, -1]]).raw
        100.0

    Lecture course, slides on data normalisation; the numbers are ours.
    """
    X = table(X)
    shrink = number("shrink", shrink, 0.0, 1.0, closed=False)
    if shrink == 1.0:
        raise ValueError(f"shrink must be below 1; got {shrink!r}.")
    largest = np.abs(X).max(axis=0)
    scaled = X / np.where(largest > 0, largest, 1.0)  # squares stay within the floats
    spread = scaled.std(axis=0)
    # A column of equal numbers has a spread of rounding errors, not of zero.
    still = spread <= np.finfo(float).eps * np.sqrt(len(X))
    Z = np.where(still, 0.0, (scaled - scaled.mean(axis=0)) / np.where(still, 1.0, spread))
    ones = np.ones((len(X), 1 if intercept else 0))
    raw, rank = _condition(np.hstack([X, ones]))
    standardised, _ = _condition(np.hstack([Z, ones]))
    return Conditioning(
        raw=raw,
        standardised=standardised,
        raw_steps=_steps(raw, shrink),
        standardised_steps=_steps(standardised, shrink),
        rank=rank,
        constant=tuple(int(i) for i in np.flatnonzero(still)),
    )


def _condition(X: Array) -> tuple[float, int]:
    singular = np.linalg.svd(X, compute_uv=False)
    if singular[0] == 0:
        return 1.0, 0
    kept = singular[singular > _RANK * singular[0]]
    return float(round((kept[0] / kept[-1]) ** 2, 12)), len(kept)


def _steps(condition: float, shrink: float) -> int:
    if condition <= 1.0:
        return 1
    return max(1, math.ceil(math.log(shrink) / math.log1p(-2 / (condition + 1))))
