r"""A function that one ReLU gate computes and that needs n threshold gates under a sum.

The number that n bits spell takes :math:`2^n` values. A sum of w threshold gates takes at most
:math:`2^w`.

Mukherjee 2020, Proposition 2.5.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import sign_rows, variables_of_table
from pindown.circuits.boolean.exact_numbers import Number, fractions_of
from pindown.circuits.boolean.threshold import ThresholdGate
from pindown.rational import RationalNetwork
from pindown.validation import at_least


@dataclass(frozen=True)
class SumOfThresholds:
    r"""The function :math:`x \mapsto c + \sum_j c_j\, g_j(x)` of threshold gates :math:`g_j`.

    Attributes:
        gates: The threshold gates, all with the same inputs.
        coefficients: :math:`c_j`.
        bias: :math:`c`.
    """

    gates: tuple[ThresholdGate, ...]
    coefficients: tuple[Fraction, ...]
    bias: Fraction

    def __post_init__(self) -> None:
        if len(self.gates) != len(self.coefficients) or not self.gates:
            raise ValueError(
                f"a sum needs gates and as many coefficients; got {len(self.gates)} and "
                f"{len(self.coefficients)}."
            )

    @property
    def gate_count(self) -> int:
        """Number of threshold gates."""
        return len(self.gates)

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate exactly: (N, n) -> N fractions in an array, (n,) -> one fraction."""
        rows, single = sign_rows(X)
        signs = np.column_stack([gate(rows) for gate in self.gates]).astype(object)
        values = signs @ np.array(self.coefficients, dtype=object) + self.bias
        return values[0] if single else values


def binary_value(X: ArrayLike) -> Any:
    r"""Return :math:`f(x) = \sum_{i=1}^n 2^i (1 + x_i) / 2`, twice the number that the +1 bits spell.

    Here +1 counts as the digit 1, unlike in the rest of this package; the first variable is the lowest.

    Example:
        >>> binary_value([[-1, -1], [1, -1], [-1, 1], [1, 1]])
        array([0, 2, 4, 6], dtype=object)

    Mukherjee 2020, Proposition 2.5.3.
    """
    rows, single = sign_rows(X)
    powers = np.array([2**i for i in range(1, rows.shape[1] + 1)], dtype=object)
    values = ((1 + rows) // 2).astype(object) @ powers
    return values[0] if single else values


def binary_value_network(n: int, *, gates: int = 1) -> RationalNetwork:
    r"""Return :func:`binary_value` as a sum of one or two ReLU gates.

    Two gates, :math:`\rho(f) - \rho(-f)`, give the linear function on all of :math:`\mathbb{R}^n`; on
    the cube f is never negative, and one gate is enough.

    >>> [int(v) for v in binary_value_network(3)([1, 1, 1])]
    [14]

    Mukherjee 2020, Proposition 2.5.3.
    """
    at_least(1, n=n)
    if gates not in (1, 2):
        raise ValueError(f"gates must be 1 or 2; got {gates}.")
    weights = [Fraction(2**i, 2) for i in range(1, n + 1)]
    signs = (1, -1)[:gates]
    hidden = [[s * w for w in weights] for s in signs], [s * sum(weights) for s in signs]
    return RationalNetwork.from_layers([hidden, ([list(signs)], [0])])


def binary_value_thresholds(n: int) -> SumOfThresholds:
    """Return :func:`binary_value` as a sum of n threshold gates, one for each bit: none can be spared.

    >>> binary_value_thresholds(3).gate_count, int(binary_value_thresholds(3)([1, 1, 1]))
    (3, 14)
    """
    at_least(1, n=n)
    gates = tuple(ThresholdGate.of([int(i == j) for j in range(n)]) for i in range(n))
    halves = fractions_of([2**i for i in range(n)], "weights")
    return SumOfThresholds(gates, halves, sum(halves, Fraction(0)))


def value_count(table: Iterable[Number]) -> int:
    """Return how many different values a table holds, compared exactly."""
    return len(set(fractions_of(table, "the values of a table")))


def min_threshold_gates(table: Sequence[Number]) -> int:
    r"""Return a lower bound on the threshold gates of any sum that computes a table.

    w gates have at most :math:`2^w` patterns of signs, hence at least :math:`\lceil \log_2 v \rceil`
    gates are needed for v different values.

    Example:
        >>> min_threshold_gates([0, 2, 4, 6])
        2

    Mukherjee 2020, Proposition 2.5.3.
    """
    variables_of_table(table)
    return (value_count(table) - 1).bit_length()
