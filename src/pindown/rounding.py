r"""What float64 rounding can do at most, so that bounds can be rounded outwards.

With unit roundoff :math:`u = 2^{-53}`, a sum of n products, taken in any order and with or
without fused multiply-add, differs from the true sum by at most

.. math::
    \gamma_n \sum_i |w_i| |a_i|, \qquad \gamma_n = \frac{n u}{1 - n u}.

Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import frexp, inf, ldexp, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

UNIT_ROUNDOFF = 2.0**-53
TINY = float(np.finfo(np.float64).tiny)  # below it, products lose relative accuracy
SAFE_PRODUCT = TINY * 2.0**60  # sums of larger products round as gamma says
_SPLITTER = 2.0**27 + 1.0  # cuts a float64 into two halves whose products are exact
_CACHED = 2**18  # numbers looked at together: 2 MB stay in the cache
SMALLEST = 2.0**-1074  # what underflow can take from a product, twice over


def gamma(n: int) -> float:
    r"""Return :math:`\gamma_n`, rounded up.

    >>> 4 * 2.0**-53 < gamma(4) < 5 * 2.0**-53
    True
    """
    error = n * UNIT_ROUNDOFF
    if error >= 0.5:
        raise ValueError(f"float64 error bounds need n < 2**52 operations; got n={n}.")
    return float(np.nextafter(error / (1.0 - error), np.inf))


def add_up(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the smallest float64 that is at least ``a + b``, entry by entry.

    >>> float(add_up(1.0, 2.0)), float(add_up(1.0, 1e-30)) > 1.0
    (3.0, True)
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite numbers stay what they are
        total, error = two_sum(a, b)
        fell = (total == -np.inf) & (a > -np.inf) & (b > -np.inf)  # below all of float64
        return np.where((error > 0) | fell, np.nextafter(total, np.inf), total)


def add_down(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the largest float64 that is at most ``a + b``, entry by entry."""
    return -add_up(-np.asarray(a, dtype=float), -np.asarray(b, dtype=float))


def norm_up(vector: Array) -> float:
    """Return an upper bound on the Euclidean norm (of a matrix: the Frobenius norm)."""
    largest = float(max(np.max(vector, initial=0.0), -np.min(vector, initial=0.0)))
    if largest in (0.0, inf):
        return largest
    if not 1e-140 < largest < 1e140:  # squares would leave float64
        return nextafter(largest * norm_up(vector / largest), inf)
    return float(np.linalg.norm(vector)) * (1.0 + gamma(vector.size + 8))


def norm_down(vector: Array) -> float:
    """Return a lower bound on the Euclidean norm."""
    largest = float(np.max(np.abs(vector), initial=0.0))
    if largest == 0.0:
        return 0.0
    if not 1e-140 < largest < 1e140:
        return nextafter(largest * norm_down(vector / largest), 0.0)  # from infinity to a number, too
    return float(np.linalg.norm(vector)) * (1.0 - gamma(vector.size + 8))


def product_up(factors: Iterable[float]) -> float:
    """Return an upper bound on a product of numbers >= 0, also where parts of it leave float64.

    >>> product_up([1e-200, 1e-200, 1e300]).__round__(110), product_up([1e-200, 1e-200]) > 0
    (1e-100, True)
    """
    ordered = sorted(factors)
    mantissa, exponent = 1.0, 0
    for factor in ordered:
        if factor in (0.0, inf):
            return factor
        fraction, shift = frexp(factor)
        mantissa, carry = frexp(mantissa * fraction)
        exponent += shift + carry
    return times_power_up(mantissa * (1.0 + gamma(len(ordered) + 2)), exponent)


def times_power_up(value: float, exponent: int) -> float:
    """Return ``value * 2**exponent`` for a positive value, rounded up."""
    try:
        product = ldexp(value, exponent)
    except OverflowError:
        return inf
    return product if product >= TINY else nextafter(product, inf)


def fraction_up(value: Fraction) -> float:
    """Return the smallest float64 that is at least a rational number.

    >>> fraction_up(Fraction(1, 3)) > Fraction(1, 3), fraction_up(Fraction(10) ** 400)
    (True, inf)
    """
    try:
        nearest = float(value)
    except OverflowError:
        return inf if value > 0 else -float(np.finfo(np.float64).max)
    return nearest if nearest >= value else nextafter(nearest, inf)


def fraction_down(value: Fraction) -> float:
    """Return the largest float64 that is at most a rational number."""
    return -fraction_up(-value)


def smallest_nonzero(*arrays: Array) -> float:
    """Return the smallest absolute number that is not zero, and 1 if there is none smaller.

    Where the product of two such numbers is below ``SAFE_PRODUCT``, :func:`gamma` is not all that
    rounding does. It is asked first, because the absolute term that is needed then blurs exact zeros.

    >>> smallest_nonzero(np.array([0.0, -0.5]), np.array([2.0]))
    0.5
    """
    smallest = 1.0
    for values in arrays:
        for block in np.array_split(values.ravel(), max(1, values.size // _CACHED)):
            magnitudes = np.abs(block)
            smallest = min(smallest, float(np.min(magnitudes, initial=1.0, where=magnitudes > 0)))
    return smallest


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum and its exact rounding error (Knuth)."""
    total = a + b
    b_part = total - a
    a_part = total - b_part
    return total, (a - a_part) + (b - b_part)


def two_product(a: Array, b: Any) -> tuple[Array, Array]:
    """Return the rounded product and its exact rounding error (Dekker)."""
    product = a * b
    a_high, b_high = _high_half(a), _high_half(np.asarray(b))
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _high_half(a: Array) -> Array:
    scaled = _SPLITTER * a
    return scaled - (scaled - a)
