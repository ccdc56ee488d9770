r"""Extreme and near inputs by mixed-integer programs: points that sampling would hardly meet.

Each ReLU :math:`a = \max(0, z)` with :math:`|z| \le M` becomes :math:`z \le a`,
:math:`a \le z + M(1 - s)`, :math:`a \le M s` with :math:`s \in \{0, 1\}`. What the solver returns is a
mere hint where to look: its points are evaluated in rational numbers.
"""

from __future__ import annotations

from math import inf

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp

from pindown.box import Box
from pindown.network import ReluNetwork

_LARGEST = 1e5  # of what enters a ReLU: beyond, the solver's tolerances see nothing
_SECONDS = 0.5


class Program:
    """The network on a box as rows over inputs, ReLUs, their signs, and one length."""

    def __init__(self, net: ReluNetwork, box: Box) -> None:
        self.box, self.d = box, net.in_features
        self.n = self.d + 2 * net.size + 1
        self.rows: list[np.ndarray] = []
        self.highs: list[float] = []
        self.fits, self.integers = True, np.zeros(self.n)
        self.lower = np.concatenate([box.lower, np.zeros(self.n - self.d)])
        self.upper = np.concatenate([box.upper, np.full(self.n - self.d, inf)])
        reach, start, place = np.maximum(abs(box.lower), abs(box.upper)), 0, self.d
        for i, (W, b) in enumerate(net.layers):
            dense = W.toarray() if sp.issparse(W) else W
            Z = np.zeros((len(b), self.n))
            Z[:, start : start + dense.shape[1]] = dense
            with np.errstate(over="ignore", invalid="ignore"):
                reach = abs(dense) @ reach + abs(b)
            self.fits &= bool(np.isfinite(reach).all() and reach.max() < _LARGEST)
            if i == net.depth - 1:
                self.outputs, self.offsets = Z, b
                break
            for unit, (z, c, M) in enumerate(zip(Z, b, reach, strict=True)):
                a, s = place + unit, place + len(b) + unit
                self._add(z, {a: -1.0}, -c)
                self._add(-z, {a: 1.0, s: M}, M + c)
                self._add(0 * z, {a: 1.0, s: -M}, 0.0)
                self.upper[s], self.integers[s] = 1.0, 1.0
            start, place = place, place + 2 * len(b)

    def _add(self, row: np.ndarray, more: dict[int, float], high: float) -> None:
        row = row.copy()
        for at, value in more.items():
            row[at] += value
        self.rows.append(row)
        self.highs.append(high)

    def _solved(self, cost: np.ndarray, rows: list[np.ndarray], highs: list[float]) -> np.ndarray | None:
        result = milp(
            cost,
            constraints=LinearConstraint(
                np.array([*self.rows, *rows]), -inf, np.array([*self.highs, *highs])
            ),
            bounds=Bounds(self.lower, self.upper),
            integrality=self.integers,
            options={"time_limit": _SECONDS},
        )
        if result.x is None:
            return None
        return np.clip(result.x[: self.d], self.box.lower, self.box.upper)

    def farthest(self, row: np.ndarray) -> np.ndarray | None:
        """Return about where ``row . f`` is largest."""
        return self._solved(-(row @ self.outputs), [np.zeros(self.n)], [0.0])

    def nearest(self, x: np.ndarray, row: np.ndarray) -> np.ndarray | None:
        """Return about the nearest input in linf with ``row . f <= 0``."""
        rows, highs = [row @ self.outputs], [-float(row @ self.offsets)]
        for i in range(self.d):
            for sign in (1.0, -1.0):
                change = np.zeros(self.n)
                change[i], change[-1] = sign, -1.0
                rows.append(change)
                highs.append(sign * x[i])
        return self._solved(np.eye(self.n)[-1], rows, highs)


def hints(net: ReluNetwork, box: Box, x: np.ndarray, label: int) -> list[np.ndarray]:
    """Return inputs where the first output is extreme, and the nearest one of another class."""
    program = Program(net, box)
    if net.size == 0 or not program.fits or not np.all(box.upper > box.lower):
        return []
    eye = np.eye(net.out_features)
    found = [program.farthest(eye[0]), program.farthest(-eye[0])]
    if len(eye) == 1:
        found.append(program.nearest(x, eye[0] if label else -eye[0]))
    else:
        found += [program.nearest(x, eye[label] - other) for i, other in enumerate(eye) if i != label]
    return [point for point in found if point is not None and np.isfinite(point).all()]
