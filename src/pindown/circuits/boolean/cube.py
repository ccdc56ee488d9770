r"""The Boolean cube in both alphabets, tables of functions on it, and their Fourier coefficients.

Two alphabets are in use. In ``"pm"`` a bit is a sign, and -1 means true; in ``"bits"`` it is 0 or 1. The
converters are :math:`x = 1 - 2 b` and :math:`b = (1 - x) / 2`.

A *table* lists the values of a function at all vertices. Vertex number k is the binary expansion of k,
most significant bit first: ``bits`` 00, 01, 10, 11, or ``pm`` (+,+), (+,-), (-,+), (-,-).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from operator import index
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.circuits.boolean.exact_numbers import Number, fractions_of, whole_array

Alphabet: TypeAlias = Literal["pm", "bits"]
Signs: TypeAlias = NDArray[np.int8]

MAX_CUBE_BITS = 20  # 2^20 vertices of 20 bytes; whatever is computed from them takes many times more


def to_pm(bits: ArrayLike) -> Signs:
    """Turn bits into signs: 0 to +1, and 1 (true) to -1.

    >>> to_pm([0, 1])
    array([ 1, -1], dtype=int8)
    """
    return (1 - 2 * _letters(bits, "bits")).astype(np.int8)


def to_bits(signs: ArrayLike) -> Signs:
    """Turn signs into bits: +1 to 0, and -1 (true) to 1.

    >>> to_bits([1, -1])
    array([0, 1], dtype=int8)
    """
    return ((1 - _letters(signs, "pm")) // 2).astype(np.int8)


def sign_rows(X: ArrayLike, *, alphabet: Alphabet = "pm") -> tuple[Signs, bool]:
    """Return inputs as rows of signs (N, n), and whether there was only one, given as (n,).

    Raises:
        ValueError: If an entry is not of the alphabet, or the shape is neither (n,) nor (N, n).
    """
    letters = _letters(X, alphabet)
    if letters.ndim not in (1, 2) or letters.shape[-1] == 0:
        raise ValueError(f"inputs have shape (n,) or (N, n) with n >= 1; got {letters.shape}.")
    rows = np.atleast_2d(letters)
    return (to_pm(rows) if alphabet == "bits" else rows), letters.ndim == 1


def vertices(n: int, *, alphabet: Alphabet = "pm") -> Signs:
    """Return all vertices of the cube, (2^n, n), in the order of tables.

    >>> vertices(2, alphabet="bits").tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    require_cube(n)
    _require_alphabet(alphabet)
    bits = np.empty((2**n, n), dtype=np.int8)
    numbers = np.arange(2**n)
    for i in range(n):
        bits[:, i] = numbers >> (n - 1 - i) & 1
    return bits if alphabet == "bits" else to_pm(bits)


def require_cube(n: int, largest: int = MAX_CUBE_BITS) -> None:
    """Refuse a cube before it takes memory.

    Raises:
        TypeError: If n is not a whole number.
        ValueError: If n is not between 1 and ``largest``.
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        raise TypeError(f"the number of variables must be a whole number; got {n!r}.")
    if not 1 <= n <= largest:
        raise ValueError(f"here a function may have 1 to {largest} variables (2^n vertices); got {n}.")


def table_of(function: Callable[[Signs], ArrayLike], n: int) -> list[Any]:
    """Return the values of a vectorised function at all vertices.

    >>> table_of(lambda X: X.prod(axis=1), 2)
    [1, -1, -1, 1]
    """
    values = np.asarray(function(vertices(n)))
    if values.size != 2**n:
        raise ValueError(
            f"the function must give one value for each of {2**n} rows; got {values.shape}."
        )
    return values.ravel().tolist()


def variables_of_table(table: Sequence[Any] | NDArray[Any]) -> int:
    """Return n for a table of 2^n values, n >= 1."""
    size = len(table)
    if size < 2 or size & (size - 1):
        raise ValueError(f"a table holds 2^n values, n >= 1; got {size}.")
    n = size.bit_length() - 1
    require_cube(n)
    return n


def fourier_coefficients(table: Sequence[Number] | NDArray[Any]) -> dict[tuple[int, ...], Fraction]:
    r"""Return the non-zero Fourier coefficients of a function on the cube, exactly.

    .. math:: \hat f(S) = 2^{-n} \sum_x f(x) \prod_{i \in S} x_i

    Args:
        table: The 2^n values of f in the order of :func:`vertices`; floats are taken exactly.

    Returns:
        Sets S as ascending tuples of variables, counted from 0, with their coefficients.

    Example:
        The exclusive or of two signs is their product; "and" needs all four terms:

        >>> fourier_coefficients([1, -1, -1, 1])
        {(0, 1): Fraction(1, 1)}
        >>> [str(c) for c in fourier_coefficients([1, 1, 1, -1]).values()]
        ['1/2', '1/2', '1/2', '-1/2']

    Mukherjee 2020, Lemma 2.5.1.
    """
    n = variables_of_table(table)
    values = fractions_of(table, "the values of a table")
    scale = math.lcm(*(value.denominator for value in values))
    sums = walsh_hadamard([int(value * scale) for value in values])
    return {
        tuple(i for i in range(n) if k >> (n - 1 - i) & 1): Fraction(int(sums[k]), scale * 2**n)
        for k in np.flatnonzero(sums).tolist()
    }


def table_from_fourier(coefficients: Mapping[Any, Number], n: int) -> list[Fraction]:
    """Return the table of a function given by Fourier coefficients; undoes :func:`fourier_coefficients`.

    >>> [int(v) for v in table_from_fourier({(0, 1): 1}, 2)]
    [1, -1, -1, 1]
    """
    require_cube(n)
    terms = fourier_terms(coefficients, n)
    scale = math.lcm(*(c.denominator for c in terms.values()), 1)
    at: list[int] = [0] * 2**n
    for subset, coefficient in terms.items():
        at[sum(1 << (n - 1 - i) for i in subset)] = int(coefficient * scale)
    return [Fraction(int(value), scale) for value in walsh_hadamard(at)]


def walsh_hadamard(values: Iterable[int]) -> Any:
    """Return all signed sums of 2^n whole numbers, in n 2^n additions, without rounding.

    >>> walsh_hadamard([1, -1, -1, 1])
    array([0, 0, 0, 4])
    """
    whole = list(values)
    a = whole_array(whole, max(map(abs, whole)) * len(whole))
    step = 1
    while step < len(a):
        pairs = a.reshape(-1, 2, step)
        a = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        step *= 2
    return a


def fourier_terms(coefficients: Mapping[Any, Number], n: int) -> dict[tuple[int, ...], Fraction]:
    """Check sparse Fourier coefficients: sets of variables from 0 to n - 1; zeros are dropped.

    Raises:
        ValueError: If a set names a variable that does not exist, or one twice, or comes twice.
    """
    terms: dict[tuple[int, ...], Fraction] = {}
    for subset, value in coefficients.items():
        if isinstance(subset, str) or not isinstance(subset, Iterable):
            raise TypeError(f"a set of variables is a tuple such as (0, 2); got {subset!r}.")
        key = tuple(sorted(index(i) for i in subset))
        if len(set(key)) < len(key) or (key and not 0 <= key[0] <= key[-1] < n):
            raise ValueError(f"a set holds different variables from 0 to {n - 1}; got {tuple(subset)}.")
        if key in terms:
            raise ValueError(f"the set {key} is given twice.")
        terms[key] = fractions_of([value], "Fourier coefficients")[0]
    return {key: value for key, value in terms.items() if value}


def _require_alphabet(alphabet: str) -> None:
    if alphabet not in ("pm", "bits"):
        raise ValueError(f"the alphabet is 'pm' (-1 and +1) or 'bits' (0 and 1); got {alphabet!r}.")


def _letters(values: ArrayLike, alphabet: str) -> Signs:
    _require_alphabet(alphabet)
    array = np.asarray(values)
    low = -1 if alphabet == "pm" else 0
    if array.dtype.kind not in "biuf" or not ((array == low) | (array == 1)).all():
        wanted, way = ("-1 and +1", "to_pm") if alphabet == "pm" else ("0 and 1", "to_bits")
        raise ValueError(f"entries must be {wanted} here; {way} converts from the other alphabet.")
    return array.astype(np.int8)
