r"""What units and margins are on the cell of a pattern, seen from one input, with proved errors.

With the states of a pattern held fixed, unit u is affine in a change t of the input,
:math:`z_u(t) = z_u + g_u \cdot t`. Both parts are computed in float64, and a running error analysis
bounds what rounding did: :math:`|z_u - \hat z_u| \le e_u`, and in the dual norm
:math:`\|g_u - \hat g_u\|_q \le \epsilon_u`.

A polyhedron :math:`a_i \cdot t \le b_i` is at least as far away as any multipliers
:math:`\lambda \ge 0` show, for each of its points has

.. math::
    -\sum_i \lambda_i b_i \;\le\; -\sum_i \lambda_i a_i \cdot t
    \;\le\; \Bigl\| \sum_i \lambda_i a_i \Bigr\|_q \|t\|_p .

The multipliers may come from any solver; the inequality holds for all of them. Where float64 is too
coarse, small networks get the same forms in rational numbers: slow, and without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.geometry.exact.integer_network import integer_network
from pindown.geometry.facts.dual_bounds import MIN_PRODUCT, smallest_product
from pindown.network import ReluNetwork
from pindown.rational import solve
from pindown.relaxation.lp_balls import DUALS, Norm, lengths
from pindown.rounding import SMALLEST, TINY, UNIT_ROUNDOFF, gamma

_COARSE = 1e-9
Row = list[Fraction]  # a_1, ..., a_d, b of a side a . t <= b


@dataclass(frozen=True, eq=False)
class Sides:
    r"""Inequalities :math:`a_i \cdot t \le b_i`, known up to errors.

    Attributes:
        a: About their normals, (m, d).
        b: About their limits, (m,).
        slope_errors: Bounds on the error of each normal, in the dual norm, (m,).
        errors: Bounds on the error of each limit, (m,).
        norm: Norm of changes.
    """

    a: Array
    b: Array
    slope_errors: Array
    errors: Array
    norm: Norm

    def __getitem__(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Sides:
        return Sides(
            self.a[which], self.b[which], self.slope_errors[which], self.errors[which], self.norm
        )

    def __neg__(self) -> Sides:
        return Sides(-self.a, -self.b, self.slope_errors, self.errors, self.norm)

    def __add__(self, other: Sides) -> Sides:
        return Sides(
            np.concatenate([self.a, other.a]),
            np.concatenate([self.b, other.b]),
            np.concatenate([self.slope_errors, other.slope_errors]),
            np.concatenate([self.errors, other.errors]),
            self.norm,
        )

    def coarse(self, scale: float) -> NDArray[np.bool_]:
        """Return which sides float64 places worse than to a small share of a length, (m,)."""
        size = lengths(self.a, DUALS[self.norm])
        with np.errstate(over="ignore", invalid="ignore"):
            return ~((self.slope_errors <= _COARSE * size) & (self.errors <= _COARSE * scale * size))

    def distances(self) -> Array:
        """Return proved lower bounds on the distance of each half-space, (m,): 0 inside."""
        d = self.a.shape[1]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = lengths(self.a, DUALS[self.norm]) * (1.0 + gamma(d + 8)) + self.slope_errors
            gap = -self.b - self.errors
            far = np.where(gap > 0, gap / size * (1.0 - gamma(8)), 0.0)
        return np.where(np.isnan(far), 0.0, far)

    def distance(self, weights: Array) -> float:
        """Return a proved lower bound on the distance of the whole polyhedron, by multipliers."""
        used = np.flatnonzero(np.isfinite(weights) & (weights > 0))
        own = self[used]
        lam, m, d = weights[used], len(used), self.a.shape[1]
        if not m:
            return 0.0
        lam = lam / lam.max()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gap = -float(lam @ own.b) - float(lam @ own.errors) * (1.0 + gamma(m + 4))
            gap -= gamma(m + 4) * float(lam @ np.abs(own.b)) + TINY * (m + 1)
            blur = gamma(m + 4) * (lam @ np.abs(own.a)) + TINY * (m + 1)
            size = float(lengths(np.abs(lam @ own.a) + blur, DUALS[self.norm]))
            size += float(lam @ own.slope_errors)
            far = gap * (1.0 - gamma(16)) / (size * (1.0 + gamma(2 * d + m + 16)) + TINY)
        return far if far > 0.0 and isfinite(gap) else 0.0


@dataclass(frozen=True, eq=False)
class CellForms:
    """The cell of a pattern and the margins on it, as seen from x.

    Attributes:
        pattern: Which units are on, (size,).
        units: Every unit's side of the cell, (size,).
        margins: Where each other class is as large as that of x, (k - 1,).
    """

    pattern: NDArray[np.bool_]
    units: Sides
    margins: Sides


def cell_forms(
    net: ReluNetwork, x: Array, pattern: NDArray[np.bool_], rows: Array, norm: Norm
) -> CellForms:
    """Return the sides of a pattern's cell, and where ``rows @ f`` is at most 0 on it."""
    smallest = smallest_product(net) * float(np.min(np.abs(x), initial=1.0, where=x != 0))
    tiny = TINY if smallest < MIN_PRODUCT else 0.0  # what underflow can take; zeros stay zeros else
    a, off = x, np.zeros_like(x)
    S, wrong = np.eye(len(x)), np.zeros((len(x), len(x)))
    values, errors, slopes, slope_errors = [], [], [], []
    masks = net.by_layer(pattern)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, layer in enumerate(net.layers):
            W, b = dense(layer.weight), layer.bias
            size, n = np.abs(W), W.shape[1]
            rounding, lost = 2.0 * gamma(n + 8), tiny * (n + 1)
            z, off = W @ a + b, size @ (off + rounding * (np.abs(a) + off)) + rounding * np.abs(b) + lost
            G, wrong = W @ S, size @ (wrong + rounding * (np.abs(S) + wrong)) + lost
            if i == len(masks):
                break
            values.append(z)
            errors.append(off)
            slopes.append(G)
            slope_errors.append(wrong)
            on = masks[i]
            a, off, S, wrong = z * on, off * on, G * on[:, None], wrong * on[:, None]
        last = Sides(
            rows @ G,
            -(rows @ z),
            dual_lengths(np.abs(rows) @ (wrong + gamma(len(z) + 4) * np.abs(G)), norm),
            (np.abs(rows) @ (off + gamma(len(z) + 4) * np.abs(z))) * (1.0 + gamma(len(z) + 8)),
            norm,
        )
        d, sign = len(x), np.where(pattern, 1.0, -1.0)
        units = Sides(
            -sign[:, None] * np.concatenate([np.zeros((0, d)), *slopes]),
            sign * np.concatenate([np.zeros(0), *values]),
            dual_lengths(np.concatenate([np.zeros((0, d)), *slope_errors]), norm),
            np.concatenate([np.zeros(0), *errors]),
            norm,
        )
    return CellForms(pattern, _finite(units), _finite(last))


def dual_lengths(rows: Array, norm: Norm) -> Array:
    """Return the dual norm of each row, rounded up."""
    return lengths(rows, DUALS[norm]) * (1.0 + gamma(rows.shape[1] + 16))


def _finite(sides: Sides) -> Sides:
    """Return the sides with those that leave float64 unknown: zero, with infinite errors."""
    known = np.isfinite(sides.a).all(axis=1) & np.isfinite(sides.b)
    return Sides(
        np.where(known[:, None], sides.a, 0.0),
        np.where(known, sides.b, 0.0),
        np.where(known, sides.slope_errors, inf),
        np.where(known, sides.errors, inf),
        sides.norm,
    )


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
