r"""Conjunctions over the rationals as unsafe sets in float64.

Numbers are rounded outwards for the set that proofs are about, and inwards for the one that a witness
has to lie in:

* ends of the box and limits go to the next float64 on either side;
* coefficients are integers, nearly always float64 themselves. Where they are not, a coefficient of an
  input is rounded, and what that changes on the box at most is added to the limit; with a coefficient of
  an output the set is cut in two where that output is zero, and its sign says to which side to round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import inf, isfinite, nextafter
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.errors import PropertyFileError
from pindown.verification._vnnlib.conjunctions import Conjunction, Direction, Exact, Limit, check_sets
from pindown.verification.properties import UnsafeSet

MAX_NUMBERS = 64_000_000  # in all corners, or all rows, of one property: 0.5 GB
MAX_SIGNS = 6  # outputs with coefficients that no float64 holds: 64 sets for one
_BEYOND = "the property holds a number beyond float64."
_MAX_EXPONENT = 1023  # integers of so many bits do not overflow


class _Row(NamedTuple):
    """One row of a set and of its inner set, in this order."""

    coefficients: tuple[dict[int, float], dict[int, float]]
    limits: tuple[float, float]
    strict: tuple[bool, bool]


def straddling(value: Exact) -> tuple[float, float]:
    """Return the largest float64 that is at most a number, and the smallest that is at least it.

    >>> straddling(Fraction(1, 2)), straddling(Fraction(1, 10)) == (nextafter(0.1, 0), 0.1)
    ((0.5, 0.5), True)
    """
    n, d = value.as_integer_ratio()
    try:
        nearest = n / d  # Python rounds quotients of integers correctly
    except OverflowError:
        raise PropertyFileError(_BEYOND) from None
    p, q = nearest.as_integer_ratio()
    if n * q == p * d:
        return nearest, nearest
    above = n * q > p * d
    other = nextafter(nearest, inf if above else -inf)
    if not isfinite(other):
        raise PropertyFileError(_BEYOND)
    return (nearest, other) if above else (other, nearest)


def rounded_interval(low: Exact, high: Exact, strict: tuple[bool, bool]) -> tuple[float, ...]:
    """Return an interval rounded outwards and inwards: lower, upper, inner lower, inner upper.

    Where there is no float64 in it, the inner one is the float64 nearest to its middle, and nothing if
    an end is left out.

    >>> rounded_interval(0, 1, (False, True)) == (0.0, 1.0, 0.0, nextafter(1.0, 0))
    True
    >>> rounded_interval(Fraction("0.1"), Fraction("0.1"), (False, False))[2:]
    (0.1, 0.1)
    """
    (lower, inner_lower), (inner_upper, upper) = straddling(low), straddling(high)
    if strict[0] and lower == inner_lower:
        inner_lower = nextafter(lower, inf)
    if strict[1] and upper == inner_upper:
        inner_upper = nextafter(upper, -inf)
    if inner_lower > inner_upper and not any(strict):
        inner_lower = inner_upper = float(Fraction(low + high) / 2)
    return lower, upper, inner_lower, inner_upper


def unsafe_sets(
    base: Conjunction,
    parts: Sequence[Conjunction],
    n_inputs: int,
    n_outputs: int,
    name: Callable[[int], str],
) -> tuple[UnsafeSet, ...]:
    """Return conjunctions as unsafe sets; what is seen to be empty is left out.

    Args:
        base: What they have in common.
        parts: The conjunctions, built on the base.
        n_inputs: How many inputs there are.
        n_outputs: How many outputs there are.
        name: What the property calls an input.
    """
    ends = ((i, sign) for i in range(n_inputs) for sign in (1, -1))
    needed = [end for end in ends if end not in base.limits]
    kept = [(part, forms) for part in parts if part.close(forms := part.forms(), needed, name)]
    corners, which = _corners(base, [part for part, _ in kept], n_inputs)
    sets = []
    for (_, forms), i in zip(kept, which, strict=True):
        sets += [(i, rows) for rows in _rounded_rows(forms, corners[i, :2])]
        check_sets(len(sets))
    return tuple(_assembled(corners, sets, n_inputs, n_outputs))


def _corners(base: Conjunction, parts: Sequence[Conjunction], d: int) -> tuple[Array, list[int]]:
    """Return the corners of all boxes, (boxes, 4, d), and which of them each part has."""
    own = [sorted({v for v, _ in part.limits if isinstance(v, int) and v >= 0}) for part in parts]
    n_own = sum(map(bool, own))
    if (1 + n_own) * 4 * d > MAX_NUMBERS:
        raise PropertyFileError(f"the boxes of the property hold more than {MAX_NUMBERS:,} numbers.")
    corners = np.zeros((1 + n_own, 4, d))
    shared = [i for i in range(d) if (i, 1) in base.limits and (i, -1) in base.limits]
    if shared:
        corners[:, :, shared] = np.array([_ends(base, i) for i in shared]).T
    # The box that all share comes first, then those of parts that have bounds of their own.
    numbers = iter(range(1, 1 + n_own))
    which = [next(numbers) if each else 0 for each in own]
    places = [(box, i) for box, each in zip(which, own, strict=True) for i in each]
    if places:
        boxes, inputs = np.array(places).T
        corners[boxes, :, inputs] = [
            _ends(part, i) for part, each in zip(parts, own, strict=True) for i in each
        ]
    return corners, which


def _ends(part: Conjunction, i: int) -> tuple[float, ...]:
    low, high = part.limit((i, -1)), part.limit((i, 1))
    assert low is not None and high is not None
    return rounded_interval(-low.value, high.value, (low.strict, high.strict))


def _rounded_rows(forms: Mapping[Direction, Limit], box: Array) -> Iterator[list[_Row]]:
    """Yield the rows in float64, once for every choice of signs that they need."""
    rows: list[tuple[dict[int, int], Limit, bool]] = []
    doubtful: set[int] = set()
    for (form, sign), limit in forms.items():
        terms = {form: sign} if isinstance(form, int) else {v: sign * c for v, c in form}
        sure = all(map(_is_float, terms.values()))
        rows.append((terms, limit, sure))
        if not sure:
            doubtful.update(v for v in terms if v < 0)
    if not rows:
        rows = [({}, Limit(0, False), True)]
    if len(doubtful) > MAX_SIGNS:
        raise PropertyFileError(
            f"coefficients of {len(doubtful)} outputs have more digits than float64 holds; "
            f"{MAX_SIGNS} may: write them with 15 digits."
        )
    for signs in product((1, -1), repeat=len(doubtful)):
        sign_of = dict(zip(sorted(doubtful), signs, strict=True))
        halves = [_exact_row({v: -sign}, Limit(0, False)) for v, sign in sign_of.items()]
        yield halves + [
            _exact_row(terms, limit) if sure else _charged_row(terms, limit, sign_of, box)
            for terms, limit, sure in rows
        ]


def _is_float(c: int) -> bool:
    return c.bit_length() <= _MAX_EXPONENT and int(float(c)) == c


def _exact_row(terms: Mapping[int, int], limit: Limit) -> _Row:
    coefficients = {v: float(c) for v, c in terms.items()}
    down, up = straddling(limit.value)
    return _Row((coefficients, coefficients), (up, down), (limit.strict, limit.strict and down == up))


def _charged_row(terms: Mapping[int, int], limit: Limit, signs: Mapping[int, int], box: Array) -> _Row:
    """Round coefficients: those of inputs at the cost of the limit, those of outputs by their signs."""
    scale = 2 ** max(c.bit_length() for c in terms.values())
    outer, inner, charge = {}, {}, Fraction(0)
    for v, c in terms.items():
        exact = Fraction(c, scale)
        if v >= 0:
            outer[v] = inner[v] = float(exact)
            charge += abs(exact - Fraction(outer[v])) * Fraction(np.abs(box[:, v]).max())
        else:
            ends = straddling(exact)
            # The smaller the product, the larger the set.
            outer[v], inner[v] = ends if signs[v] > 0 else ends[::-1]
    value = Fraction(limit.value) / scale
    limits = straddling(value + charge)[1], straddling(value - charge)[0]
    return _Row((outer, inner), limits, (limit.strict, limit.strict))


def _assembled(
    corners: Array, sets: Sequence[tuple[int, list[_Row]]], n_inputs: int, n_outputs: int
) -> Iterator[UnsafeSet]:
    """Yield the sets; the rows of all are parts of one array, for there can be many and small ones."""
    rows = [row for _, each in sets for row in each]
    reads = [any(v >= 0 for row in each for v in row.coefficients[0]) for _, each in sets]
    wide = sum(len(each) for (_, each), true in zip(sets, reads, strict=True) if true)
    if 2 * (len(rows) * n_outputs + wide * n_inputs) > MAX_NUMBERS:
        raise PropertyFileError(f"the rows of the property hold more than {MAX_NUMBERS:,} numbers.")
    limits = np.array([row.limits for row in rows]).reshape(-1, 2).T
    strict = np.array([row.strict for row in rows], dtype=bool).reshape(-1, 2).T
    of_outputs = [_scattered([row.coefficients[s] for row in rows], n_outputs, True) for s in (0, 1)]
    tight = (corners[:, :2] == corners[:, 2:]).all(axis=(1, 2)).tolist()
    boxes = [list(box) for box in corners]  # sets of one box have the same arrays
    start = 0
    for (i, each), with_inputs in zip(sets, reads, strict=True):
        part = slice(start, start + len(each))
        start = part.stop
        same = tight[i] and all(
            row.limits[0] == row.limits[1] and row.coefficients[0] is row.coefficients[1] for row in each
        )
        made = None
        for side in (0,) if same else (1, 0):  # the inner set first
            of_inputs = None
            if with_inputs:
                of_inputs = _scattered([row.coefficients[side] for row in each], n_inputs, False)
            made = UnsafeSet(
                boxes[i][2 * side],
                boxes[i][2 * side + 1],
                of_outputs[side][part],
                limits[side][part],
                of_inputs,
                strict[side][part] if any(row.strict[side] for row in each) else None,
                made,
            )
        assert made is not None
        yield made


def _scattered(forms: Sequence[Mapping[int, float]], width: int, outputs: bool) -> Array:
    """Return the coefficients of outputs, or those of inputs, as rows."""
    entries = [
        (i, ~v if outputs else v, c)
        for i, form in enumerate(forms)
        for v, c in form.items()
        if (v < 0) == outputs
    ]
    dense = np.zeros((len(forms), width))
    if entries:
        i, j, values = zip(*entries, strict=True)
        dense[list(i), list(j)] = values
    return dense
