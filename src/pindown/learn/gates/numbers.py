"""Checks of numbers given by the user: one sentence that says what was given and what is accepted."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np


def positive(name: str, value: object, *, zero: bool = False) -> float:
    """Return a finite number above zero, or not below it.

    Example:
        >>> positive("eps", 0)
        Traceback (most recent call last):
        ValueError: eps must be a finite number above zero; got 0.
    """
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not number or not np.isfinite(x := float(value)) or x < 0 or (x == 0 and not zero):  # type: ignore[arg-type]
        raise ValueError(
            f"{name} must be a finite number {'not below' if zero else 'above'} zero; got {value!r}."
        )
    return x


def probability(name: str, value: object) -> float:
    """Return a number strictly between zero and one."""
    x = positive(name, value)
    if x >= 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}.")
    return x


def count(name: str, value: object) -> int:
    """Return an integer of at least one."""
    if type(value) is bool or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}.")
    return int(value)
