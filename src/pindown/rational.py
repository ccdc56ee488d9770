"""ReLU networks over the rationals: no rounding, for constructions, ties and tests.

Every float64 is a rational number, so a :class:`~pindown.network.ReluNetwork` has an exact
meaning, and this module computes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import dense
from pindown.network import ReluNetwork

Rationals: TypeAlias = Any  # an object array of Fraction; NumPy's types know no such thing


@dataclass(frozen=True)
class RationalNetwork:
    r"""The network :math:`A_L \circ \rho \circ \dots \circ A_1` with rational weights.

    Attributes:
        layers: Pairs ``(W, b)`` of object arrays that hold ``Fraction``.

    Example:
        One third is exact here, and 0.1 is the float it really is:

        >>> third = RationalNetwork.from_layers([([[Fraction(1, 3)]], [0])])
        >>> third([1])
        [Fraction(1, 3)]
        >>> ReluNetwork.from_layers([([[0.1]], [0])]).as_fractions()([10])[0] == 1
        False
    """

    layers: tuple[tuple[Rationals, Rationals], ...]

    @classmethod
    def from_layers(cls, layers: Iterable[tuple[Any, Any]]) -> RationalNetwork:
        """Build from ``[(W1, b1), ...]`` of integers, fractions or floats (taken exactly)."""
        return cls(tuple((_rational(W), _rational(b)) for W, b in layers))

    @classmethod
    def from_network(cls, net: ReluNetwork) -> RationalNetwork:
        """Take every float64 of ``net`` as the rational number it is."""
        return cls.from_layers((dense(W), b) for W, b in net.layers)

    def to_network(self) -> ReluNetwork:
        """Round every weight to the nearest float64."""
        return ReluNetwork.from_layers((W.astype(float), b.astype(float)) for W, b in self.layers)

    def __call__(self, x: Sequence[Any]) -> list[Fraction]:
        """Evaluate one input exactly."""
        return list(self.trace(x)[-1])

    def trace(self, x: Sequence[Any]) -> list[Rationals]:
        """Return the outputs of all affine maps at one input."""
        a, values = _rational(x), []
        for W, b in self.layers:
            z = W @ a + b
            values.append(z)
            a = z * (z > 0)
        return values

    def pattern(self, x: Sequence[Any]) -> NDArray[np.bool_]:
        """Return which ReLUs are on (preactivation >= 0) at one input, all layers in a row."""
        hidden = [z >= 0 for z in self.trace(x)[:-1]]
        return np.concatenate([np.zeros(0, bool), *hidden]).astype(bool)

    def local_affine(self, x: Sequence[Any]) -> tuple[Rationals, Rationals]:
        """Return ``(A, c)`` with ``f = A x + c`` on the closed cell of x's pattern."""
        (A, c), values = self.layers[0], self.trace(x)
        for (W, b), z in zip(self.layers[1:], values, strict=False):
            on = np.array([Fraction(int(v >= 0)) for v in z], dtype=object)
            A, c = W @ (A * on[:, None]), W @ (c * on) + b
        return A, c


def _rational(values: Any) -> Rationals:
    array: Rationals = np.array(values, dtype=object)
    for index in np.ndindex(array.shape):
        value = array[index]
        # NumPy's integers would stay inside the fraction and overflow there.
        array[index] = Fraction(value.item() if isinstance(value, np.generic) else value)
    return array


def reduce_rows(rows: Sequence[Sequence[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """Return the reduced row echelon form, and the column of each leading one.

    >>> reduce_rows([[Fraction(2), Fraction(4)]])
    ([[Fraction(1, 1), Fraction(2, 1)]], [0])
    """
    table = [list(row) for row in rows]
    leading: list[int] = []
    for column in range(len(table[0]) if table else 0):
        top = len(leading)
        pivot = next((i for i in range(top, len(table)) if table[i][column]), None)
        if pivot is None:
            continue
        table[top], table[pivot] = table[pivot], table[top]
        lead = table[top][column]
        table[top] = [v / lead for v in table[top]]
        for i, row in enumerate(table):
            if i != top and row[column]:
                factor = row[column]
                table[i] = [v - factor * u for v, u in zip(row, table[top], strict=True)]
        leading.append(column)
    return table, leading


def null_vector(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """Return a vector c != 0 with ``rows @ c = 0`` for a matrix with more columns than rows.

    >>> [int(v) for v in null_vector([[Fraction(1), Fraction(-2)]])]
    [2, 1]
    """
    table, leading = reduce_rows(rows)
    n = len(rows[0])
    free = next(j for j in range(n) if j not in leading)
    c = [Fraction(0)] * n
    c[free] = Fraction(1)
    for row, column in zip(table, leading, strict=False):
        c[column] = -row[free]
    return c


def solve(rows: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> list[Fraction] | None:
    """Return some x with ``rows @ x = right``, or None if there is none; free unknowns are 0.

    >>> solve([[Fraction(2), Fraction(0)]], [Fraction(1)])
    [Fraction(1, 2), Fraction(0, 1)]
    """
    n = len(rows[0])
    table, leading = reduce_rows([[*row, b] for row, b in zip(rows, right, strict=True)])
    if n in leading:
        return None
    x = [Fraction(0)] * n
    for row, column in zip(table, leading, strict=False):
        x[column] = row[-1]
    return x
