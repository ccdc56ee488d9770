r"""The price of a function of one variable in ReLUs and in ReLUs that saturate.

A function with :math:`f = f' = 0` on the left is an integral of ReLUs with density :math:`c = f''`. With
units that saturate, :math:`S_w(x) = (\mathrm{ReLU}(x) - \mathrm{ReLU}(x - w))/w`, it is

.. math:: f(x) = \int d(\beta)\,S_w(x - \beta)\,d\beta, \qquad
          d(\beta) = w\sum_{n\ge0}f''(\beta - nw),

and on a range of length :math:`x_{\max}` the first :math:`N = \lceil x_{\max}/w\rceil` terms do. The
squared norms of the densities are penalties on frequencies:

.. math:: \int c^2 = \frac1{2\pi}\int k^4\lvert\hat f\rvert^2dk, \qquad
          \int d^2 = \frac1{2\pi}\int w^2\,\frac{\sin^2(Nwk/2)}{\sin^2(wk/2)}\,k^4\lvert\hat f\rvert^2dk.

Saturation adds a comb, with teeth of height :math:`w^2N^2` at the multiples of :math:`2\pi/w`. With one
term (units wider than the range) it only scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.tuning import LEGENDRE_NODES, LEGENDRE_PARTS
from pindown.evidence import Kind
from pindown.validation import integer, positive

Function: TypeAlias = Callable[[Array], ArrayLike]
_TOOTH = 1e-7  # nearer to a multiple of 2 pi / w the quotient of sines is its limit, to 1e-14 of it


@dataclass(frozen=True)
class ActivationPrice:
    """What one function costs in both kinds of units.

    Attributes:
        relu: Squared norm of the density of ReLUs.
        saturating: Squared norm of the density of saturating units.
        width: Width w over which a unit rises.
        terms: Terms N of the sum.
        kind: ``"exact"``: identities, up to quadrature.
    """

    relu: float
    saturating: float
    width: float
    terms: int
    kind: Kind = "exact"

    @property
    def ratio(self) -> float:
        """Price in saturating units over price in ReLUs; NaN for a function that costs nothing."""
        return self.saturating / self.relu if self.relu else float("nan")

    def __str__(self) -> str:
        return (
            f"price {self.relu:.6g} in ReLUs, {self.saturating:.6g} in units that saturate after "
            f"{self.width:g} ({self.terms} terms)"
        )


def n_terms(length: float, width: float) -> int:
    """Return how many terms reproduce a function on a range: the length over the width, rounded up.

    >>> n_terms(2.0, 0.8), n_terms(2.0, 3.0)
    (3, 1)
    """
    width = positive("width", width)
    return max(1, math.ceil(positive("length", length) / width))


def saturating_density(second: Function, width: float, terms: int) -> Function:
    r"""Return :math:`d(\beta) = w\sum_{n<N}f''(\beta - nw)`.

    Args:
        second: The second derivative f'', on arrays; zero on the left of the range.
        width: Width w over which a unit rises.
        terms: Terms N.

    Example:
        >>> density = saturating_density(lambda x: np.where((0 <= x) & (x < 1), 1.0, 0.0), 2.0, 3)
        >>> np.asarray(density(np.array([0.5, 1.5, 2.5]))).tolist()
        [2.0, 0.0, 2.0]

    Lecture course, slides on the choice of the nonlinearity; the factor w is corrected.
    """
    width = positive("width", width)
    shifts = width * np.arange(integer("terms", terms))

    def density(beta: Array) -> Array:
        beta = np.asarray(beta, dtype=np.float64)
        return width * np.sum([np.asarray(second(beta - shift)) for shift in shifts], axis=0)

    return density


def superpose(
    density: Function, x: ArrayLike, *, breaks: ArrayLike, width: float | None = None
) -> Array:
    r"""Return :math:`\int d(\beta)\,S(x - \beta)\,d\beta` at points, for ReLUs or units that saturate.

    Args:
        density: The density, on arrays; zero below the first of the breaks.
        x: Points.
        breaks: Where the density begins, and where it is not smooth.
        width: Width over which a unit rises; None for ReLUs.

    Returns:
        The values of the function at the points.

    Example:
        Density one from zero on: half the square.

        >>> superpose(lambda b: np.ones_like(b), [2.0], breaks=[0.0]).round(12).tolist()
        [2.0]

    Lecture course, slides on the choice of the nonlinearity.
    """
    points = np.atleast_1d(np.asarray(x, dtype=np.float64))
    marks = np.sort(np.atleast_1d(np.asarray(breaks, dtype=np.float64)))
    if not marks.size or not (np.isfinite(marks).all() and np.isfinite(points).all()):
        raise ValueError("x and breaks must be finite, with at least one break.")
    if width is not None:
        width = positive("width", width)

    def value(at: float) -> float:
        def integrand(beta: Array) -> Array:
            unit = np.maximum(at - beta, 0.0)
            if width is not None:
                unit = np.minimum(unit, width) / width
            return np.asarray(density(beta)) * unit

        cuts = [m for m in marks if m < at]
        if not cuts:
            return 0.0
        if width is not None and cuts[0] < at - width:
            cuts.append(at - width)
        return _integral(integrand, np.array([*sorted(cuts), at]))

    return np.array([value(float(at)) for at in points])


def activation_price(
    second: Function, width: float, support: tuple[float, float], *, length: float | None = None
) -> ActivationPrice:
    """Return what a function costs in ReLUs and in saturating units, by integrals over densities.

    Args:
        second: The second derivative of the function, on arrays.
        width: Width over which a unit rises.
        support: Interval outside of which the second derivative is zero.
        length: Length of the range of x on which the function is wanted, from the left end of the
            support; the length of the support if left out.

    Returns:
        An :class:`ActivationPrice`.

    Raises:
        ValueError: If the interval is empty or a length is not positive.

    Lecture course, slides on the choice of the nonlinearity; corrected.
    """
    low, high = support
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"support must be an interval with its smaller end first; got {support!r}.")
    terms = n_terms(high - low if length is None else length, width)
    density = saturating_density(second, width, terms)
    ends = np.unique(np.concatenate([end + width * np.arange(terms) for end in (low, high)]))
    relu = _integral(lambda b: np.asarray(second(b)) ** 2, np.array([low, high]))
    saturating = _integral(lambda b: np.asarray(density(b)) ** 2, ends)
    return ActivationPrice(relu, saturating, float(width), terms)


def frequency_weight(k: ArrayLike, width: float, terms: int) -> Array:
    r"""Return :math:`w^2\sin^2(Nwk/2)/\sin^2(wk/2)`: how much dearer a frequency is in saturating units.

    Args:
        k: Frequencies.
        width: Width w over which a unit rises.
        terms: Terms N.

    >>> frequency_weight([0.0, 1.0], 2.0, 1).tolist(), frequency_weight(2 * np.pi, 1.0, 3).tolist()
    ([4.0, 4.0], 9.0)

    Lecture course, slides on the choice of the nonlinearity; corrected.
    """
    width = positive("width", width)
    terms = integer("terms", terms)
    half = np.asarray(k, dtype=np.float64) * width / 2
    bottom = np.sin(half)
    tooth = np.abs(bottom) < _TOOTH / terms
    with np.errstate(invalid="ignore", divide="ignore"):
        comb = np.where(tooth, float(terms), np.sin(terms * half) / np.where(tooth, 1.0, bottom))
    return np.asarray(width**2 * comb**2)


def spectral_price(
    transform: Callable[[Array], ArrayLike], width: float | None, terms: int, *, cutoff: float
) -> float:
    r"""Return the price of a function from its Fourier transform.

    Args:
        transform: :math:`\hat f(k) = \int f(x)e^{-ikx}dx`, on arrays.
        width: Width over which a unit rises; None for ReLUs.
        terms: Terms N; not used for ReLUs.
        cutoff: Frequencies up to this one are summed; :math:`k^4\lvert\hat f\rvert^2` must be negligible
            beyond.

    Returns:
        The squared norm of the density.

    Lecture course, slides on the choice of the nonlinearity; corrected.
    """
    cutoff = positive("cutoff", cutoff)
    pieces = max(16, math.ceil(cutoff * (1 if width is None else width * terms) / LEGENDRE_PARTS))

    def integrand(k: Array) -> Array:
        weight = 1.0 if width is None else frequency_weight(k, width, terms)
        return np.asarray(weight * k**4 * np.abs(np.asarray(transform(k))) ** 2 / (2 * np.pi))

    return _integral(integrand, np.linspace(-cutoff, cutoff, pieces + 1))


def _integral(function: Callable[[Array], Array], breaks: Array) -> float:
    nodes, weights = np.polynomial.legendre.leggauss(LEGENDRE_NODES)
    edges = np.concatenate(
        [np.linspace(a, b, LEGENDRE_PARTS, endpoint=False) for a, b in pairwise(breaks)] + [breaks[-1:]]
    )
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    values = function((middle[:, None] + half[:, None] * nodes).ravel()).reshape(len(half), -1)
    return float(half @ (values @ weights))
