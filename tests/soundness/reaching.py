"""Whether a network reaches an unsafe set, in rational numbers: on lines, and at one input."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from pindown.verification.properties import UnsafeSet
from tests.soundness.rational_line import Line, Vector
from tests.soundness.truth import dot


def excesses(unsafe: UnsafeSet, x: Vector, y: Vector) -> Vector:
    """Return by how much every row is above its limit at an input with its outputs."""
    found = [dot(row, y) for row in unsafe.rows]
    if unsafe.input_rows is not None:
        found = [value + dot(row, x) for value, row in zip(found, unsafe.input_rows, strict=True)]
    return [value - Fraction(float(t)) for value, t in zip(found, unsafe.limits, strict=True)]


def satisfied(unsafe: UnsafeSet, found: Vector) -> bool:
    """Return whether no row is above its limit, and no strict one at it."""
    strict = [False] * len(found) if unsafe.strict is None else unsafe.strict
    return all(v < 0 or (v == 0 and not at) for v, at in zip(found, strict, strict=True))


def contains(unsafe: UnsafeSet, x: Vector, y: Vector) -> bool:
    """Return whether an input with its outputs lies in the set, its box included."""
    held = zip(unsafe.lower, x, unsafe.upper, strict=True)
    return all(low <= v <= high for low, v, high in held) and satisfied(unsafe, excesses(unsafe, x, y))


def reached(lines: Sequence[Line], unsafe: UnsafeSet) -> bool:
    """Return whether the set is reached somewhere on lines that lie in its box."""
    for line in lines:
        values = [
            excesses(unsafe, line.point(t), y) for t, y in zip(line.knots, line.values, strict=True)
        ]
        if any(satisfied(unsafe, row) for row in values):
            return True
        for y, z in pairwise(values):
            low, high = Fraction(0), Fraction(1)  # where on the piece no row is above its limit
            for a, b in zip(y, z, strict=True):
                if a > 0 and b > 0:
                    low, high = Fraction(1), Fraction(0)
                elif a > 0:
                    low = max(low, a / (a - b))
                elif b > 0:
                    high = min(high, a / (a - b))
            # Its closure is [low, high]: strict rows leave the middle, if they leave anything.
            middle = (low + high) / 2
            there = [a + middle * (b - a) for a, b in zip(y, z, strict=True)]
            if low <= high and satisfied(unsafe, there):
                return True
    return False


def deepest(line: Line, unsafe: UnsafeSet) -> Fraction:
    """Return how far inside its limits the least row is at most, at the knots of a line."""
    return max(
        -max(excesses(unsafe, line.point(t), y)) for t, y in zip(line.knots, line.values, strict=True)
    )


def side_by_side(a: Line, b: Line) -> Line:
    """Return two networks on the same line as one with the outputs of both."""
    first, second = a.refined(b.knots), b.refined(a.knots)
    values = [y + z for y, z in zip(first.values, second.values, strict=True)]
    return Line(first.p, first.v, first.knots, values, None, [])
