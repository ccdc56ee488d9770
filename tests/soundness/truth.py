"""What is certainly true about a network on lines: ranges, slopes, gaps, flips, in rational numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, permutations
from math import isinf, isqrt

import numpy as np

from pindown.box import Box
from pindown.geometry.exact.complex import exact_complex
from pindown.network import ReluNetwork
from tests.soundness.rational_line import ZERO, ExactNetwork, Line, Vector, along, rationals

NORMS = ("l1", "l2", "linf")


def power(norm: str) -> int:
    """Return the power of a length that is rational: its square in l2."""
    return 2 if norm == "l2" else 1


def size(vector: Vector, norm: str) -> Fraction:
    """Return the length of a vector, in l2 its square."""
    if norm == "l2":
        return sum((v * v for v in vector), ZERO)
    sizes = [abs(v) for v in vector]
    return sum(sizes, ZERO) if norm == "l1" else max(sizes, default=ZERO)


def to_power(bound: float | Fraction, norm: str) -> Fraction | float:
    """Return a length as :func:`size` counts it."""
    return bound if isinstance(bound, float) and isinf(bound) else Fraction(bound) ** power(norm)


def difference(a: Sequence, b: Sequence) -> Vector:
    """Return a - b."""
    return [x - y for x, y in zip(rationals(a), rationals(b), strict=True)]


def inside(x: Sequence, box: Box | None) -> bool:
    """Return whether a rational point lies in a box."""
    return box is None or all(
        low <= v <= high for low, v, high in zip(box.lower, x, box.upper, strict=True)
    )


def _times_within(x: np.ndarray, v: Vector, box: Box) -> tuple[Fraction, Fraction] | None:
    """Return between which times ``x + t v`` lies in the box; None if that is a point."""
    low, high = None, None
    for a, s, bottom, top in zip(
        rationals(x), v, rationals(box.lower), rationals(box.upper), strict=True
    ):
        if s:
            ends = sorted([(bottom - a) / s, (top - a) / s])
            low = ends[0] if low is None else max(low, ends[0])
            high = ends[1] if high is None else min(high, ends[1])
    return None if low is None or high is None or low >= high else (low, high)


def lines_in(net: ExactNetwork, x: np.ndarray, box: Box, ways: Sequence[Vector]) -> list[Line]:
    """Return a network on lines through x, cut to the box; at least x itself."""
    cuts = [(v, ends) for v in ways if (ends := _times_within(x, v, box)) is not None]
    lines = [along(net, x, v, ends) for v, ends in cuts]
    return lines or [along(net, x, ways[0] if ways else [ZERO] * len(x), (ZERO, ZERO))]


def within_ball(line: Line, radius: float, norm: str) -> Line:
    """Return the part of a line with ends that certainly lies in the ball around its p."""
    length, reach = size(line.v, norm), to_power(radius, norm)
    share = reach / length if length else ZERO
    limit = root_down(share) if norm == "l2" else share
    low, high = max(line.knots[0], -limit), min(line.knots[-1], limit)
    cut = line.refined([low, high])
    kept = [i for i, t in enumerate(cut.knots) if low <= t <= high]
    knots, values = [cut.knots[i] for i in kept], [cut.values[i] for i in kept]
    return Line(line.p, line.v, knots, values, None, line.units)


def patterns(net: ExactNetwork, line: Line) -> int:
    """Return how many patterns of units that are on (>= 0) there are between the knots of a line."""
    middles = [(s + t) / 2 for s, t in pairwise(line.knots)]
    return len({tuple(z >= 0 for row in net.trace(line.point(t))[:-1] for z in row) for t in middles})


def nearest_float(value: Fraction) -> float:
    """Return the nearest float64, short of its largest numbers."""
    return float(max(min(value, Fraction(1e300)), Fraction(-1e300)))


def ranges(lines: Sequence[Line]) -> list[list[tuple[Fraction, Fraction]]]:
    """Return for every layer and unit the smallest and the largest value on the lines."""
    found = []
    for layer in range(len(lines[0].units)):
        rows = [row for line in lines for row in line.units[layer]]
        found.append([(min(column), max(column)) for column in zip(*rows, strict=True)])
    return found


def dot(row: Sequence, y: Vector) -> Fraction:
    """Return a linear form of the outputs."""
    return sum((Fraction(float(r)) * v for r, v in zip(row, y, strict=True)), ZERO)


def form_range(lines: Sequence[Line], row: Sequence) -> tuple[Fraction, Fraction]:
    """Return the smallest and the largest value of ``row . f`` on the lines."""
    values = [dot(row, y) for line in lines for y in line.values]
    return min(values), max(values)


def steepest(lines: Sequence[Line], norm: str, output: int | None = None) -> Fraction:
    """Return the largest slope on the lines, as :func:`size` counts it."""
    chosen = slice(None) if output is None else slice(output, output + 1)
    return max(
        (size(s[chosen], norm) / size(line.v, norm) for line in lines for s in line.slopes()),
        default=ZERO,
    )


def steepest_cell(net: ReluNetwork, box: Box, norm: str, output: int | None = None) -> Fraction:
    """Return the largest norm of a map of the library's exact complex, to rounding."""
    order, exact = {"l1": 1, "l2": 2, "linf": np.inf}[norm], net.as_fractions()
    chosen = slice(None) if output is None else [output]
    norms = []
    for corners in exact_complex(net, box).vertices:
        middle = [sum(column, ZERO) / len(corners) for column in zip(*corners, strict=True)]
        A = exact.local_affine(middle)[0][chosen]
        unit = max((abs(value) for value in A.flat), default=ZERO) or Fraction(1)
        norms.append(unit * Fraction(float(np.linalg.norm((A / unit).astype(float), order))))
    return max(norms)


def classes(y: Vector) -> Vector:
    """Return outputs of which the largest names the class."""
    return [ZERO, *y] if len(y) == 1 else y


def class_of(y: Vector) -> int:
    """Return the first largest output; by its sign if there is one."""
    outputs = classes(y)
    return outputs.index(max(outputs))


def nearest_change(lines: Sequence[Line], label: int, norm: str) -> Fraction | None:
    """Return the least distance from p on the lines at which another output is as large as the label's.

    None if there is none; in l2 its square.
    """
    found = []
    for line in lines:
        times = [abs(t) for t in _changes(line, label)]
        if times:
            found.append(min(times) ** power(norm) * size(line.v, norm))
    return min(found, default=None)


def _changes(line: Line, label: int) -> Iterator[Fraction]:
    """Yield times nearest to 0 on each piece at which another output is as large."""
    margins = [
        [classes(y)[label] - other for j, other in enumerate(classes(y)) if j != label]
        for y in line.values
    ]
    for (s, t), (g, h) in zip(pairwise(line.knots), pairwise(margins), strict=True):
        for a, b in zip(g, h, strict=True):
            yield from _reached(s, t, a, b)
    if len(line.knots) == 1:
        yield from (line.knots[0] for a in margins[0] if a <= 0)
    if line.rays is None:
        return
    for end, side in ((0, -1), (-1, 1)):  # 0 is a knot of every line without ends
        slope = classes(line.rays[end])
        falls = [slope[label] - other for j, other in enumerate(slope) if j != label]
        for a, s in zip(margins[end], falls, strict=True):
            if a <= 0:
                yield line.knots[end]
            elif s * side < 0:
                yield line.knots[end] - a / s


def _reached(s: Fraction, t: Fraction, a: Fraction, b: Fraction) -> Iterator[Fraction]:
    """Yield the time nearest to 0 between s and t at which the affine function from a to b is <= 0."""
    if a > 0 and b > 0:
        return
    low, high = s, t
    if a > 0:
        low = s + (t - s) * a / (a - b)
    elif b > 0:
        high = s + (t - s) * a / (a - b)
    yield min(max(ZERO, low), high)


def _weight(line: Line, t: Fraction, relative: bool) -> Fraction:
    """Return what a gap at a time is divided by, rounded up: ``1 + |x|`` or 1."""
    if not relative:
        return Fraction(1)
    x = line.point(t)
    return 1 + (abs(x[0]) if len(x) == 1 else _root_up(size(x, "l2")))


def root_down(square: Fraction) -> Fraction:
    """Return a rational number just below a square root."""
    scale = 1 << 1200
    return Fraction(isqrt(square.numerator * scale * scale // square.denominator), scale)


def _root_up(square: Fraction) -> Fraction:
    """Return a rational number just above a square root."""
    return root_down(square) + Fraction(1, 1 << 1200)


def gap_on(a: Line, b: Line, *, relative: bool = False) -> Fraction:
    """Return the largest gap of two networks on a line; relative: divided by about ``1 + |x|``."""
    times = [*a.knots, *b.knots]
    if relative:
        times += [ZERO] if a.rays is not None or min(times) <= 0 <= max(times) else []
    first, second = a.refined(times), b.refined(times)
    best = max(
        max(abs(u) for u in difference(y, z)) / _weight(first, t, relative)
        for t, y, z in zip(first.knots, first.values, second.values, strict=True)
    )
    if relative and first.rays is not None and second.rays is not None:
        length = _root_up(size(first.v, "l2")) if len(first.v) > 1 else abs(first.v[0])
        for mine, theirs in zip(first.rays, second.rays, strict=True):
            best = max(best, max(abs(u) for u in difference(mine, theirs)) / length)
    return best


def disagreement_on(a: Line, b: Line) -> Fraction:
    """Return the largest ``min(a_i - a_j, b_j - b_i)`` where a chooses i and b chooses j."""
    times = {*a.knots, *b.knots}
    first, second = a.refined(sorted(times)), b.refined(sorted(times))
    for line in (first, second):
        times |= set(_ties(line))
    first, second = first.refined(sorted(times)), second.refined(sorted(times))
    best = ZERO
    ends = list(zip(first.knots, first.values, second.values, strict=True))
    if len(ends) == 1:
        ends = [*ends, *ends]
    for (s, y, z), (t, v, w) in pairwise(ends):
        middle = (s + t) / 2
        i, j = class_of(first.at(middle)), class_of(second.at(middle))
        if i != j:
            best = max(best, _largest_minimum((y[i] - y[j], v[i] - v[j]), (z[j] - z[i], w[j] - w[i])))
    return best


def _ties(line: Line) -> Iterator[Fraction]:
    for (s, t), (y, z) in zip(pairwise(line.knots), pairwise(line.values), strict=True):
        for i, j in permutations(range(len(y)), 2):
            a, b = y[i] - y[j], z[i] - z[j]
            if a < 0 < b:
                yield s + (t - s) * a / (a - b)


def _largest_minimum(f: tuple[Fraction, Fraction], g: tuple[Fraction, Fraction]) -> Fraction:
    """Return the largest minimum of two affine functions on a segment, by their ends."""
    best = max(min(f[0], g[0]), min(f[1], g[1]))
    a, b = f[0] - g[0], f[1] - g[1]
    if (a < 0 < b) or (b < 0 < a):
        share = a / (a - b)
        best = max(best, f[0] + share * (f[1] - f[0]))
    return best
