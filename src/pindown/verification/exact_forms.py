"""Cells and margins as seen from one input in rational numbers: slow, and without rounding."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.geometry.exact.integer_network import integer_network
from pindown.network import ReluNetwork
from pindown.rational import solve
from pindown.relaxation.lp_norms import Norm
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF
from pindown.verification.cell_forms import CellForms, Sides, dual_lengths

Row = list[Fraction]  # a_1, ..., a_d, b of a side a . t <= b


def exact_rows(
    net: ReluNetwork, x: Array, pattern: NDArray[np.bool_], rows: Array
) -> tuple[list[Row], list[Row]]:
    """Return every unit's side of a pattern's cell, and where each of ``rows @ f`` is at most 0.

    Sides hold for changes t of x, and may be multiplied by positive numbers.

    >>> net = ReluNetwork.from_layers([([[2.0]], [1]), ([[0.5]], [-1])])
    >>> exact_rows(net, np.array([3.0]), np.array([True]), np.array([[1.0]]))[1]
    [[Fraction(1, 1), Fraction(-5, 2)]]
    """
    integers, d = integer_network(net), len(x)
    start = [Fraction(float(value)) for value in x]
    forms = np.array([[*map(int, np.eye(d, dtype=int)[i]), 0] for i in range(d)], dtype=object)
    units: list[Row] = []
    for W, b, on in zip(integers.weights, integers.biases, [*net.by_layer(pattern), None], strict=True):
        forms = W.dot(forms)
        forms[:, -1] += b
        if on is not None:
            units += [_side(form, start, -1 if up else 1) for form, up in zip(forms, on, strict=True)]
            forms = forms * on.astype(int).astype(object)[:, None]
    outputs = [[v / scale for v in form] for form, scale in zip(forms, integers.scales, strict=True)]
    margins = [
        [
            sum((Fraction(r) * f[c] for r, f in zip(row, outputs, strict=True)), Fraction(0))
            for c in range(d + 1)
        ]
        for row in rows.tolist()
    ]
    return units, [_side(margin, start, 1) for margin in margins]


def _side(form: Sequence[int | Fraction], start: Row, sign: int) -> Row:
    """Return ``sign * form <= 0`` for changes of the start."""
    *slope, offset = (Fraction(sign * v) for v in form)
    return [*slope, -sum((a * v for a, v in zip(slope, start, strict=True)), offset)]


def rounded_forms(
    net: ReluNetwork, x: Array, pattern: NDArray[np.bool_], rows: Array, norm: Norm
) -> CellForms:
    """Return the same rounded once, each side scaled to numbers of size 1."""
    units, margins = exact_rows(net, x, pattern, rows)
    return CellForms(pattern, _rounded(units, len(x), norm), _rounded(margins, len(x), norm))


def _rounded(rows: list[Row], d: int, norm: Norm) -> Sides:
    table, errors = np.zeros((len(rows), d + 1)), np.zeros((len(rows), d + 1))
    for i, row in enumerate(rows):
        largest = max(map(abs, row))
        if largest:
            table[i] = [float(v / largest) for v in row]
            errors[i] = [
                0.0 if v == 0 else UNIT_ROUNDOFF * abs(float(v / largest)) + SMALLEST for v in row
            ]
    return Sides(table[:, :-1], table[:, -1], dual_lengths(errors[:, :-1], norm), errors[:, -1], norm)


def contradict(rows: Sequence[Row]) -> bool:
    r"""Return whether a combination of sides shows that they have no common point: :math:`0 \le -1`.

    Only one combination is looked at, so False says nothing.

    >>> contradict([[Fraction(1), Fraction(0)], [Fraction(-1), Fraction(-1)]])  # x <= 0, x >= 1
    True
    """
    columns = [list(column) for column in zip(*rows, strict=True)]
    weights = solve(columns, [Fraction(0)] * (len(columns) - 1) + [Fraction(-1)])
    return weights is not None and min(weights) >= 0
