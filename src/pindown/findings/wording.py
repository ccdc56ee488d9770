"""Numbers and counts in words, the same in every report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR

from pindown.text import rounded


def number_text(value: float, unit: str = "") -> str:
    """Return a number with a unit, as a person would write it.

    >>> number_text(1234567), number_text(0.012345), number_text(3.2e-9), number_text(0.5, "%")
    ('1,234,567', '0.0123', '3.2e-09', '50.0%')
    """
    if unit == "%":
        return percent(value)
    return with_unit(_plain(value), unit)


def with_unit(number: str, unit: str) -> str:
    """Return a number with what it counts, one thing in the singular.

    >>> with_unit("1", "cells"), with_unit("1.1", "cells"), with_unit("2", "")
    ('1 cell', '1.1 cells', '2')
    """
    return f"{number} {unit.removesuffix('s') if number == '1' else unit}".strip()


def at_most(value: float) -> str:
    """Return an upper bound to three digits, rounded up so that the words stay true.

    >>> at_most(43.01), at_most(2.0), at_least(38.99)
    ('43.1', '2', '38.9')
    """
    return _three_digits(value, ROUND_CEILING)


def at_least(value: float) -> str:
    """Return a lower bound to three digits, rounded down so that the words stay true."""
    return _three_digits(value, ROUND_FLOOR)


def percent(share: float) -> str:
    """Return a share of one in percent; never rounds to 0 or 100 what is not.

    >>> percent(0.5), percent(1.0), percent(0.99996), percent(0.99999999)
    ('50.0%', '100%', '99.996%', '99.999999%')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f}%"
    for digits in range(1, 5 if share < 0.5 else 15):
        text = f"{100 * share:.{digits}f}"
        if float(text) not in (0.0, 100.0):
            return f"{text}%"
    return f"{100 * share:.3g}%"


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return ``n`` with its noun.

    >>> count(1, "unit"), count(2_000, "unit"), count(0, "class", "classes")
    ('1 unit', '2,000 units', 'no classes')
    """
    many = plural or f"{noun}s"
    if n == 0:
        return f"no {many}"
    return f"1 {noun}" if n == 1 else f"{n:,} {many}"


def shape(widths: Sequence[int]) -> str:
    """Return the widths of a network, the middle of a deep one left out.

    >>> shape((784, 256, 10)), shape([8] * 200)
    ('784 → 256 → 10', '8 → 8 → 8 → 8 → 8 → … 190 more … → 8 → 8 → 8 → 8 → 8')
    """
    words = [f"{width:,}" for width in widths]
    if len(words) > 16:
        words[5:-5] = [f"… {len(words) - 10} more …"]
    return " → ".join(words)


def memory(size: float) -> str:
    """Return bytes in a readable unit.

    >>> memory(1_500), memory(2e9)
    ('1.5 kB', '2 GB')
    """
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"


def _three_digits(value: float, rounding: str) -> str:
    return _plain(rounded(value, 3, rounding))


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return "unbounded" if value > 0 else str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1000 and abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.3g}"
