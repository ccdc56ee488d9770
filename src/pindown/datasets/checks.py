"""Whether a parameter is the number it should be; booleans are not numbers here."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_whole(value: Any, least: int = 1) -> bool:
    """Return whether the value is an integer of at least ``least``.

    >>> is_whole(3), is_whole(3.0), is_whole(True), is_whole(0)
    (True, False, False, False)
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(whole and value >= least)


def is_number(value: Any, low: float = -np.inf, high: float = np.inf) -> bool:
    """Return whether the value is a finite real number from ``low`` to ``high``.

    >>> is_number(0.5, 0, 1), is_number(np.nan), is_number("1"), is_number(True)
    (True, False, False, False)
    """
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(real and np.isfinite(value) and low <= value <= high)


def require_whole(name: str, value: Any, least: int = 1) -> int:
    """Return the integer, or say what was wanted.

    Raises:
        ValueError: If it is none, or too small.
    """
    if not is_whole(value, least):
        raise ValueError(f"{name} must be an integer, at least {least}; got {value!r}.")
    return int(value)
