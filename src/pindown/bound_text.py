"""Bounds in few digits that stay bounds: upper ones rounded up, lower ones down."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def rounded_up(value: float, digits: int = 3) -> str:
    """Return an upper bound to at most six digits, rounded up so that what is said stays true.

    >>> rounded_up(0.12301), rounded_up(0.2), rounded_up(1.0000001e-7, 2), rounded_up(math.inf)
    ('0.124', '0.2', '1.1e-07', 'inf')
    """
    return f"{rounded(value, digits, ROUND_CEILING):g}"


def rounded_down(value: float, digits: int = 3) -> str:
    """Return a lower bound to at most six digits, rounded down.

    >>> rounded_down(0.12399), rounded_down(-0.12301), rounded_down(0.0)
    ('0.123', '-0.124', '0')
    """
    return f"{rounded(value, digits, ROUND_FLOOR):g}"


def interval_text(lower: float, upper: float, digits: int = 3) -> str:
    """Return a proved interval, rounded outwards.

    >>> interval_text(0.12349, 0.12351)
    '[0.123, 0.124]'
    """
    return f"[{rounded_down(lower, digits)}, {rounded_up(upper, digits)}]"


def rounded(value: float, digits: int, rounding: str) -> float:
    """Return the nearest number of so many digits on one side; what has no more digits stays."""
    if not math.isfinite(value):
        return value
    # repr: 0.2 is meant by the float next to it, not 0.200001.
    return float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value)))))
