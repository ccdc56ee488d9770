r"""The Boolean cube in both alphabets: tables of functions, Fourier coefficients, affine forms.

Two alphabets are in use. In ``"pm"`` a bit is a sign, and -1 means true; in ``"bits"`` it is 0 or 1. The
converters are :math:`x = 1 - 2 b` and :math:`b = (1 - x) / 2`.

A *table* lists the values of a function at all vertices. Vertex number k is the binary expansion of k,
most significant bit first: ``bits`` 00, 01, 10, 11, or ``pm`` (+,+), (+,-), (-,+), (-,-).

Every gate looks at an affine form :math:`\langle a, x \rangle + b` with rational numbers. On the cube
:math:`\{-1, 1\}^n` it has a smallest and a largest value, and a gap below zero that no vertex falls
into. All three are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from operator import index
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.circuits.tuning import MAX_CUBE_BITS, MAX_GAP_INPUTS
from pindown.validation import choice, integer

Alphabet: TypeAlias = Literal["pm", "bits"]

Signs: TypeAlias = NDArray[np.int8]

Number: TypeAlias = int | float | Fraction

# Sums whose terms add up to less than this in size stay inside int64, with room for one addition.
_INT64_ROOM = 2**62


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
    choice("alphabet", alphabet, ("pm", "bits"))
    bits = np.empty((2**n, n), dtype=np.int8)
    numbers = np.arange(2**n)
    for i in range(n):
        bits[:, i] = numbers >> (n - 1 - i) & 1
    return bits if alphabet == "bits" else to_pm(bits)


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


@dataclass(frozen=True)
class LinearForm:
    r"""The affine form :math:`\langle a, x \rangle + b`.

    Attributes:
        weights: :math:`a`, as fractions.
        bias: :math:`b`.

    Example:
        >>> form = LinearForm.of([1, 2], bias=Fraction(1, 2))
        >>> form.range()
        (Fraction(-5, 2), Fraction(7, 2))
        >>> form.gap()  # the values are -5/2, -1/2, 3/2 and 7/2
        Fraction(1, 2)
    """

    weights: tuple[Fraction, ...]
    bias: Fraction

    @classmethod
    def of(cls, weights: Iterable[Number], bias: Number = 0) -> Self:
        """Read numbers exactly: a float is the rational number it is."""
        return cls(fractions_of(weights, "weights"), fractions_of([bias], "the bias")[0])

    @property
    def n_inputs(self) -> int:
        """How many variables the form reads."""
        return len(self.weights)

    def values(self, X: Signs) -> Any:
        """Return the values at rows of signs times :meth:`scale`: whole numbers, int64 or Python's."""
        a, b = self.integer_form()
        return X.astype(a.dtype) @ a + b

    def scale(self) -> int:
        """Return the smallest positive whole number that makes all weights and the bias whole."""
        return math.lcm(self.bias.denominator, *(w.denominator for w in self.weights))

    def integer_form(self) -> tuple[Any, int]:
        """Return weights (int64 if all sums fit, else Python's integers) and bias, times the scale."""
        scale = self.scale()
        whole = [int(w * scale) for w in self.weights]
        bias = int(self.bias * scale)
        return whole_array(whole, sum(map(abs, whole)) + abs(bias)), bias

    def range(self) -> tuple[Fraction, Fraction]:
        r"""Return the smallest and largest value on the cube, :math:`b \mp \|a\|_1`."""
        reach = sum((abs(w) for w in self.weights), Fraction(0))
        return self.bias - reach, self.bias + reach

    def gap(self) -> Fraction | None:
        r"""Return :math:`p > 0`, where :math:`-p` is the largest negative value on the cube.

        Both halves of the variables give a list of sums; for each sum of one half the best partner of
        the other is found by bisection, so the time is :math:`2^{n/2}`, not :math:`2^n`.

        Returns:
            The gap, or None if the form is negative nowhere on the cube.

        Raises:
            ValueError: For more than 40 weights that are not zero.
        """
        a, b = self.integer_form()
        a = a[a != 0]
        if len(a) > MAX_GAP_INPUTS:
            raise ValueError(
                f"the exact gap takes at most {MAX_GAP_INPUTS} weights that are not zero; got {len(a)}. "
                "For whole weights and bias, 1 is a lower bound of it."
            )
        half = len(a) // 2
        left, right = _signed_sums(a[:half]), np.sort(_signed_sums(a[half:]))
        below = np.searchsorted(right, -b - left) - 1  # the last partner with a negative total
        found = below >= 0
        if not found.any():
            return None
        return Fraction(-int((left[found] + right[below[found]] + b).max()), self.scale())


def require_cube(n: int, largest: int = MAX_CUBE_BITS) -> None:
    """Refuse a cube before it takes memory.

    Raises:
        ParameterError: If n is not an integer from 1 to ``largest``: there are 2^n vertices.
    """
    integer("the number of variables", n, most=largest)


def variables_of_table(table: Sequence[Any] | NDArray[Any]) -> int:
    """Return n for a table of 2^n values, n >= 1."""
    size = len(table)
    if size < 2 or size & (size - 1):
        raise ValueError(f"a table holds 2^n values, n >= 1; got {size}.")
    n = size.bit_length() - 1
    require_cube(n)
    return n


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


def _letters(values: ArrayLike, alphabet: str) -> Signs:
    choice("alphabet", alphabet, ("pm", "bits"))
    array = np.asarray(values)
    low = -1 if alphabet == "pm" else 0
    if array.dtype.kind not in "biuf" or not ((array == low) | (array == 1)).all():
        wanted, way = ("-1 and +1", "to_pm") if alphabet == "pm" else ("0 and 1", "to_bits")
        raise ValueError(f"entries must be {wanted} here; {way} converts from the other alphabet.")
    return array.astype(np.int8)


def fractions_of(values: Iterable[Any], what: str) -> tuple[Fraction, ...]:
    """Read finite real numbers exactly: a float is the rational number it is.

    Raises:
        TypeError: If one is not a real number.
        ValueError: If one is NaN or infinite.
    """
    return tuple(_fraction(value, what) for value in values)


def whole_array(values: Sequence[int], largest_sum: int) -> Any:
    """Return whole numbers as int64 if sums up to ``largest_sum`` fit, else as Python's integers."""
    return np.array(values, dtype=np.int64 if largest_sum < _INT64_ROOM else object)


def _fraction(value: Any, what: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, (Rational, float)):
        raise TypeError(f"{what} must be real numbers; got {type(value).__name__}.")
    try:
        return Fraction(plain)
    except (OverflowError, ValueError):
        raise ValueError(f"{what} must be finite; got {plain}.") from None


def _signed_sums(a: Any) -> Any:
    """Return all sums of the numbers with signs, one for each vertex of the cube."""
    sums = np.zeros(1, dtype=a.dtype)
    for number in a:
        sums = np.concatenate([sums - number, sums + number])
    return sums
