r"""Exact linear algebra on small matrices of float64 numbers, by scaling them to integers.

Every float64 is an integer times a power of two, so a matrix of them is :math:`2^{-s} N` with integer
:math:`N`: rank and direction do not depend on the scale, and Python's integers know no rounding.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

Integers: TypeAlias = Any  # an object array of int; NumPy's types know no such thing


def as_integers(values: ArrayLike) -> tuple[Integers, int]:
    """Return integers N and a positive integer s with ``values == N / s``, number for number.

    >>> as_integers([[0.5, 3.0]])
    (array([[1, 6]], dtype=object), 2)
    """
    given = np.asarray(values, dtype=np.float64)
    exact = [Fraction(float(value)) for value in given.ravel()]
    scale = max((number.denominator for number in exact), default=1)  # all are powers of two
    numbers = [number.numerator * (scale // number.denominator) for number in exact]
    return _object_array(numbers, given.shape), scale


def integer_rank(matrix: Integers) -> int:
    """Return the rank, by elimination without fractions.

    >>> integer_rank(as_integers([[0.1, 0.3], [1.0, 3.0]])[0])  # three times 0.1 is not 0.3 in float64
    2
    >>> integer_rank(as_integers([[1.0, 2.0], [2.0, 4.0]])[0])
    1

    Bareiss 1968, "Sylvester's identity and multistep integer-preserving Gaussian elimination".
    """
    rows = [list(row) for row in matrix]
    n_columns = len(rows[0]) if rows else 0
    rank, previous = 0, 1
    for column in range(n_columns):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        top = rows[rank]
        for row in rows[rank + 1 :]:
            factor = row[column]
            for j in range(column + 1, n_columns):
                row[j] = (top[column] * row[j] - factor * top[j]) // previous
            row[column] = 0
        previous = top[column]
        rank += 1
        if rank == len(rows):
            break
    return rank


def direction(vector: Integers) -> tuple[int, ...]:
    """Return the one representative of all non-zero multiples of an integer vector.

    >>> direction(np.array([-4, 6], dtype=object)), direction(np.array([2, -3], dtype=object))
    ((2, -3), (2, -3))
    """
    entries = [int(entry) for entry in vector]
    divisor = gcd(*entries)
    if divisor == 0:
        return tuple(entries)
    first = next(entry for entry in entries if entry)
    sign = 1 if first > 0 else -1
    return tuple(sign * entry // divisor for entry in entries)


def _object_array(numbers: list[int], shape: tuple[int, ...]) -> Integers:
    array: Integers = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return array.reshape(shape)
