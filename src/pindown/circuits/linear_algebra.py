"""Small systems of linear equations over the rationals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


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
