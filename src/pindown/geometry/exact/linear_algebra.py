r"""Exact linear algebra on matrices of float64 numbers: in integers, and modulo a prime.

Every float64 is an integer times a power of two, so a matrix of them is :math:`2^{-s} N` with integer
:math:`N`: rank and direction do not depend on the scale, and Python's integers know no rounding.

It also has a residue modulo an odd prime p, and sums and products of residues are the residues of the
exact sums and products, at the speed of float64. A matrix can only lose rank modulo p, and parallel
vectors stay parallel. So *full rank* and *not parallel* modulo p are proofs about the real numbers, free
of rounding; the opposite findings are wrong with a chance of about :math:`1/p`, and are confirmed with
integers where they matter.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers: TypeAlias = Any  # an object array of int; NumPy's types know no such thing
Residues: TypeAlias = NDArray[np.int64]
PRIME = 2**31 - 19  # products of two residues fit int64; 2 generates a large subgroup, unlike 2**31 - 1
_LIMB = 2**16  # two limbs a residue: a product of limbs is below 2**32, and 2**20 of them fit float64
_MAX_INNER = 2**20


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


def residues(values: ArrayLike) -> Residues:
    """Return the residues of float64 numbers, each taken as the exact number it is.

    >>> half = residues([0.5])
    >>> (2 * half) % PRIME
    array([1])
    """
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64) % PRIME
    shifts, place = np.unique(exponent - 53, return_inverse=True)
    powers = np.array([pow(2, int(shift), PRIME) for shift in shifts], dtype=np.int64)
    factors = powers[place].reshape(whole.shape) if whole.size else whole
    product: Residues = whole * factors % PRIME
    return product


def multiply(A: Residues, B: Residues) -> Residues:
    """Return the matrix product of residues (stacks as in ``numpy.matmul``).

    >>> multiply(np.array([[PRIME - 1]]), np.array([[5, 7]]))  # -1 times (5, 7)
    array([[2147483624, 2147483622]])
    """
    if A.shape[-1] > _MAX_INNER:
        raise ValueError(f"matrices with at most {_MAX_INNER} inner entries fit; got {A.shape[-1]}.")
    a_high, a_low = (part.astype(np.float64) for part in divmod(A, _LIMB))
    b_high, b_low = (part.astype(np.float64) for part in divmod(B, _LIMB))
    high = _mod(a_high @ b_high)
    middle = (_mod(a_high @ b_low) + _mod(a_low @ b_high)) % PRIME
    low = _mod(a_low @ b_low)
    product: Residues = ((high * _LIMB + middle) % PRIME * _LIMB + low) % PRIME
    return product


def ranks(stack: Residues) -> NDArray[np.int64]:
    """Return the rank modulo the prime of each matrix of a stack (n, rows, columns).

    >>> ranks(residues([[[1, 2], [2, 4]], [[1, 2], [3, 4]]]))
    array([1, 2])
    """
    work = np.array(stack)
    if work.shape[1] > work.shape[2]:
        work = work.transpose(0, 2, 1).copy()
    n, rows, columns = work.shape
    rank, every = np.zeros(n, dtype=np.int64), np.arange(n)
    order = np.arange(rows)
    for column in range(columns):
        if (rank == rows).all():
            break
        usable = (work[:, :, column] != 0) & (order >= rank[:, None])
        pivot = usable.argmax(axis=1)
        has = usable[every, pivot] & (rank < rows)
        if not has.any():
            continue
        chosen = every[has]
        at, source = rank[has], pivot[has]
        top = work[chosen, source].copy()
        work[chosen, source] = work[chosen, at]
        work[chosen, at] = top
        below = order > at[:, None]
        factors = np.where(below, work[chosen, :, column], 0)[:, :, None]
        lead = np.where(below, top[:, column, None], 1)[:, :, None]
        rest = work[chosen, :, column:]
        work[chosen, :, column:] = (rest * lead - factors * top[:, None, column:] % PRIME) % PRIME
        rank[has] += 1
    return rank


def directions(vectors: Residues) -> Residues:
    """Scale each row so that its first non-zero entry is 1; parallel rows become equal.

    >>> directions(residues([[2, 4], [-1, -2], [0, 0]]))
    array([[1, 2],
           [1, 2],
           [0, 0]])
    """
    first = (vectors != 0).argmax(axis=1)
    lead = vectors[np.arange(len(vectors)), first]
    scaled: Residues = vectors * _inverse(lead)[:, None] % PRIME
    return scaled


def _inverse(values: Residues) -> Residues:
    """Return the inverses by Fermat's little theorem, and 0 for 0."""
    result, power, exponent = np.ones_like(values), values % PRIME, PRIME - 2
    while exponent:
        if exponent & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        exponent >>= 1
    return np.where(values == 0, 0, result)


def _mod(values: NDArray[np.float64]) -> Residues:
    reduced: Residues = values.astype(np.int64) % PRIME
    return reduced
