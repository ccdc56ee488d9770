r"""An affine form :math:`\langle a, x \rangle + b` with rational numbers: what every gate looks at.

On the cube :math:`\{-1, 1\}^n` such a form has a smallest and a largest value, and a gap below zero that
no vertex falls into. All three are computed exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from pindown.circuits.boolean.cube import Signs
from pindown.circuits.boolean.exact_numbers import Number, fractions_of, whole_array

# The gap of a form in n variables sorts two lists of 2^(n/2) sums: 2^20 numbers each at most.
MAX_GAP_INPUTS = 40


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


def _signed_sums(a: Any) -> Any:
    """Return all sums of the numbers with signs, one for each vertex of the cube."""
    sums = np.zeros(1, dtype=a.dtype)
    for number in a:
        sums = np.concatenate([sums - number, sums + number])
    return sums
