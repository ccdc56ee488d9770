"""How stochastic gradients shrink with the true one: a diagnosis, not a certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.optim.problems import positive


@dataclass(frozen=True)
class Interpolation:
    r"""Stochastic gradients at one point beside their mean.

    Attributes:
        strong_growth: :math:`\mathbb{E}\|g\|^2 / \|\nabla f\|^2`; infinite at a critical point of the
            mean that is not one of every term. Bounded along training where the terms can all be fitted.
        constant: The least c with :math:`\mathbb{E}[\|g\|^2 + \sqrt{d \xi} \|g\|] \le c \|\nabla f\|^2`.
        floor: Where :math:`\|\nabla f\|` is below this, no oracle has that c.
        gradient_norm: :math:`\|\nabla f\|`.
    """

    strong_growth: float
    constant: float
    floor: float
    gradient_norm: float

    def __str__(self) -> str:
        return (
            f"strong growth {self.strong_growth:.4g} at gradient norm {self.gradient_norm:.4g}; "
            f"c = {self.constant:.4g} (a diagnosis: no convergence follows)"
        )


def interpolation_diagnostic(gradient_samples: ArrayLike, shift: float) -> Interpolation:
    r"""Measure how much larger single gradients are than their mean.

    Args:
        gradient_samples: Gradients of all terms (or a sample of them) at a point, shape (k, d).
        shift: :math:`\xi` of RMSProp.

    Raises:
        ValueError: If the table is empty or not finite, or the shift is not positive.

    Example:
        Gradients 1 and 3 have mean 2 and mean square 5:

        >>> found = interpolation_diagnostic([[1.0], [3.0]], shift=1.0)
        >>> found.strong_growth, found.constant
        (1.25, 1.75)

    Mukherjee 2020, Definition 19 and section 5.7.1: what the proof needs of the oracle.
    """
    G = _table(gradient_samples)
    positive("shift", shift)
    norms = np.linalg.norm(G, axis=1)
    square = float(np.linalg.norm(G.mean(axis=0))) ** 2
    root = math.sqrt(G.shape[1] * shift)
    second, with_shift = float((norms**2).mean()), float((norms**2 + root * norms).mean())
    if square == 0:
        growth = constant = math.inf if second > 0 else math.nan
    else:
        growth, constant = second / square, with_shift / square
    floor = root / (constant - 1) if constant > 1 and math.isfinite(constant) else 0.0
    return Interpolation(growth, constant, floor, math.sqrt(square))


def interpolating_oracle_holds(gradient_samples: ArrayLike, shift: float, c: float) -> bool:
    r"""Tell whether the oracle condition holds at a point, as it is defined.

    .. math::
        \mathbb{E}\big(\|g\| + \tfrac12 \sqrt{d \xi}\big)^2 \le
        \big(\sqrt c\, \|\nabla f\| - \tfrac12 \sqrt{d \xi}\big)^2.

    Args:
        gradient_samples: Gradients of all terms at the point, shape (k, d).
        shift: :math:`\xi`.
        c: The constant of the condition.

    Example:
        >>> interpolating_oracle_holds([[10.0], [10.0]], shift=1.0, c=4.0)
        True
        >>> interpolating_oracle_holds([[0.1], [0.1]], shift=1.0, c=4.0)
        False

    Mukherjee 2020, Definition 19.
    """
    G = _table(gradient_samples)
    positive("shift", shift)
    positive("c", c)
    half = math.sqrt(G.shape[1] * shift) / 2
    left = float(((np.linalg.norm(G, axis=1) + half) ** 2).mean())
    return left <= (math.sqrt(c) * float(np.linalg.norm(G.mean(axis=0))) - half) ** 2


def interpolating_oracle_floor(dimension: int, shift: float, c: float) -> float:
    r"""Return the gradient norm below which no oracle meets the condition, noise or not.

    By Jensen's inequality the condition forces :math:`\|\nabla f\| \ge \sqrt{d \xi} / (\sqrt c - 1)` at
    every point that is not critical; for :math:`c \le 1` it never holds there. So with a fixed shift it
    cannot hold on the way to a critical point.

    Example:
        >>> interpolating_oracle_floor(4, shift=1.0, c=9.0)
        1.0

    Our own, about Mukherjee 2020, Definition 19.
    """
    positive("dimension", dimension)
    positive("shift", shift)
    positive("c", c)
    return math.sqrt(dimension * shift) / (math.sqrt(c) - 1) if c > 1 else math.inf


def _table(samples: ArrayLike) -> Array:
    G = np.asarray(samples, dtype=float)
    if G.ndim != 2 or G.size == 0 or not np.all(np.isfinite(G)):
        raise ValueError(f"gradient_samples must be a finite table (k, d); got shape {G.shape}.")
    return G
