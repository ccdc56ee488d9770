"""Numbers without rounding: fractions from what is given, whole numbers in the fastest safe array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = int | float | Fraction

# Sums whose terms add up to less than this in size stay inside int64, with room for one addition.
_INT64_ROOM = 2**62


def fractions_of(values: Iterable[Any], what: str) -> tuple[Fraction, ...]:
    """Read finite real numbers exactly: a float is the rational number it is.

    Raises:
        TypeError: If one is not a real number.
        ValueError: If one is NaN or infinite.
    """
    return tuple(_fraction(value, what) for value in values)


def whole_array(values: Sequence[int], largest_sum: int) -> Any:
    """Return whole numbers as int64 if sums up to ``largest_sum`` fit, else as Python's integers."""
    return np.array(values, dtype=np.int64 if largest_sum < _INT64_ROOM else object)


def _fraction(value: Any, what: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (Rational, float)):
        raise TypeError(f"{what} must be real numbers; got {type(value).__name__}.")
    try:
        return Fraction(plain)
    except (OverflowError, ValueError):
        raise ValueError(f"{what} must be finite; got {plain}.") from None
