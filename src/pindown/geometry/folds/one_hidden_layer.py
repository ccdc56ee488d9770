r"""Which functions of one or two variables a single hidden layer can compute.

A sum of ReLU gates and an affine map,

.. math:: f(x) = \sum_j \kappa_j \max(0, n_j \cdot x + b_j) + A x + c,

bends along whole lines, and by the same amount :math:`\kappa_j n_j^\top` all along each line.
Conversely, a continuous piecewise-linear f on the plane, or on a convex part of it, that bends so is
such a sum: the jumps of the gradient are the gates. A line on which the jump is not constant proves that
no width suffices; :math:`\max\{0, x_1, x_2\}` has three.

Mukherjee 2020, Proposition 2.5.2 and section 2.B.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.geometry.folds._bends import Bends, Circle, bends_of
from pindown.geometry.nearness import RESOLUTION, SAME
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork

_MAX_INPUTS = 2
# Parts of a line (as seen from the origin, in radians) that are left out of account: folds end at
# crossings, and crossings at a small angle are computed with that much error.
_GAP = 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class UnevenLine:
    """A line along which the jump of the gradient is not constant.

    Attributes:
        normal: Unit normal n (2,).
        offset: The number b in ``n . x + b = 0``.
        points: Two points (2, 2) on the line.
        jumps: The jump (2, k) of each output's gradient there, in units of the normal; 0 where the
            function does not bend.
    """

    normal: Array
    offset: float
    points: Array
    jumps: Array

    def __repr__(self) -> str:
        line = f"{self.normal[0]:.6g} x_1 {self.normal[1]:+.6g} x_2 {self.offset:+.6g} = 0"
        said = [
            f"{np.array2string(jump, precision=6)} at ({point[0]:.6g}, {point[1]:.6g})"
            for point, jump in zip(self.points, self.jumps, strict=True)
        ]
        return f"on {line} the gradient jumps by {said[0]} but by {said[1]}"


@dataclass(frozen=True, eq=False, repr=False)
class OneHiddenLayer:
    """Whether a function is a sum of ReLU gates and an affine map, and which.

    Attributes:
        representable: True, False, or None if the time did not suffice.
        box: The domain, None for all inputs.
        normals: The gates' normals n (g, d), of unit length.
        offsets: The gates' offsets b (g,).
        coefficients: What each output takes of each gate, (k, g).
        slope: The matrix A (k, d) of the affine rest.
        intercept: Its offset c (k,).
        certificate: A line that forbids it, if not representable.
    """

    representable: bool | None
    box: Box | None
    normals: Array
    offsets: Array
    coefficients: Array
    slope: Array
    intercept: Array
    certificate: UnevenLine | None = None

    @property
    def network(self) -> ReluNetwork:
        """The network with one hidden layer: the gates, and two more for each output's affine rest.

        Raises:
            ValueError: If there is none.
        """
        if not self.representable:
            raise ValueError(f"the function has no network with one hidden layer: {self!r}")
        used = np.flatnonzero(self.slope.any(axis=1))
        if not len(self.normals) and not len(used):
            return ReluNetwork.from_layers([(self.slope, self.intercept)])
        rest, pick = self.slope[used], np.eye(len(self.slope))[:, used]
        return ReluNetwork.from_layers(
            [
                (
                    np.concatenate([self.normals, rest, -rest]),
                    np.append(self.offsets, np.zeros(2 * len(used))),
                ),
                (np.column_stack([self.coefficients, pick, -pick]), self.intercept),
            ]
        )

    def __repr__(self) -> str:
        where = "all inputs" if self.box is None else f"{self.box!r}"
        if self.representable is None:
            return f"OneHiddenLayer(not decided on {where}: the time did not suffice)"
        if not self.representable:
            return f"OneHiddenLayer(impossible on {where}: {self.certificate!r})"
        return f"OneHiddenLayer({len(self.normals)} gates and an affine map, on {where})"


@on_network
def flatten_to_one_hidden(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
    *,
    budget: float | None = None,
) -> OneHiddenLayer:
    """Write a network with one or two inputs as one hidden layer, or show a line that forbids it.

    Without a box the answer is about all inputs: folds are followed to infinity.

    Args:
        net: The network, of any depth.
        box: The domain, or None for all of R or R^2.
        budget: Seconds for finding the cells.

    Returns:
        The gates and the affine rest, or the line. Jumps and points are compared in float64, to about
        nine digits.

    Raises:
        ValueError: If the network takes more than two inputs.

    Example:
        The maximum of two is one gate and a linear map; of three there is no such form:

        >>> W = [[1.0, -1], [0, 1], [0, -1]]  # max(x, y) = relu(x - y) + y
        >>> two = ReluNetwork.from_layers([(W, [0, 0, 0]), ([[1.0, 1, -1]], [0])])
        >>> flatten_to_one_hidden(two)
        OneHiddenLayer(1 gates and an affine map, on all inputs)
        >>> relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
        >>> flatten_to_one_hidden(relu @ two).representable
        False

    Mukherjee 2020, Proposition 2.5.2.
    """
    d = net.in_features
    if d > _MAX_INPUTS:
        raise ValueError(f"one hidden layer is decided for 1 or 2 inputs; the network takes {d}.")
    domain = None if box is None else as_box(box, d)
    found = bends_of(net, domain, Deadline.of(budget))
    if found is None:
        return _without_gates(net, None, domain, None)
    uneven = None if d == 1 else _uneven_line(found, domain)
    if uneven is not None:
        return _without_gates(net, False, domain, uneven)
    gates = np.array([found.jumps[members].mean(axis=0) for members in found.lines])
    gates = gates.reshape(len(found.lines), net.out_features)
    planes = np.array([found.planes[members[0]] for members in found.lines]).reshape(-1, d + 1)
    on = planes @ found.start > 0
    rest = found.start_map - gates[on].T @ planes[on]
    rest[np.abs(rest) <= RESOLUTION * found.scale] = 0.0
    return OneHiddenLayer(
        True, domain, planes[:, :d], planes[:, d], gates.T, rest[:, :d], rest[:, d], None
    )


def _without_gates(
    net: ReluNetwork, verdict: bool | None, box: Box | None, line: UnevenLine | None
) -> OneHiddenLayer:
    d, k = net.in_features, net.out_features
    empty = np.zeros((0, d)), np.zeros(0), np.zeros((k, 0)), np.zeros((k, d)), np.zeros(k)
    return OneHiddenLayer(verdict, box, *empty, line)


def _uneven_line(bends: Bends, box: Box | None) -> UnevenLine | None:
    """Return a line whose jump is not the same all along it, None if there is no such line."""
    for members in bends.lines:
        line = Circle.of(bends.planes[members[0]], bends.radius)
        arcs = np.sort(line.angles(bends.rays[members]), axis=1)
        low, high = (0.0, pi) if box is None else line.chord(box)
        if high - low <= _GAP:
            continue  # touches the box at a corner
        jumps = bends.jumps[members]
        strongest = int(np.argmax(np.abs(jumps).max(axis=1)))
        first = float(arcs[strongest].mean())
        differs = np.abs(jumps - jumps[strongest]).max(axis=1) > SAME * bends.scale
        if differs.any():
            other = int(np.argmax(np.where(differs, arcs[:, 1] - arcs[:, 0], -1.0)))
            second, second_jump = float(arcs[other].mean()), jumps[other]
        else:
            gap = _widest_gap(arcs, low, high)
            if gap is None:
                continue
            second, second_jump = gap, np.zeros_like(jumps[0])
        return UnevenLine(
            bends.planes[members[0], :2],
            float(bends.planes[members[0], 2]),
            np.array([line.point(first), line.point(second)]),
            np.array([jumps[strongest], second_jump]),
        )
    return None


def _widest_gap(arcs: Array, low: float, high: float) -> float | None:
    """Return the middle of the widest part of [low, high] outside all arcs, None if they cover it."""
    order = np.argsort(arcs[:, 0])
    starts = np.append(arcs[order, 0], high)
    reached = np.maximum.accumulate(np.append(low, arcs[order, 1]))
    gaps = starts - reached
    widest = int(np.argmax(gaps))
    return float(starts[widest] + reached[widest]) / 2.0 if gaps[widest] > _GAP else None
