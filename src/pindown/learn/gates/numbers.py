"""Checks of numbers given by the user: one sentence that says what was given and what is accepted."""

from __future__ import annotations

from numbers import Integral

from pindown.guarantees.bounds.bound import positive, probability

__all__ = ["count", "positive", "probability"]


def count(name: str, value: object) -> int:
    """Return an integer of at least one."""
    if type(value) is bool or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}.")
    return int(value)
