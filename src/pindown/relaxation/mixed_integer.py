r"""A network on a box as a mixed-integer linear program.

With proved bounds :math:`l \le z \le u` on what enters a ReLU, :math:`a = \max(0, z)` is

.. math::
    a \ge z, \quad a \ge 0, \quad a \le u\, \delta, \quad a \le z - l (1 - \delta),
    \qquad \delta \in \{0, 1\},

one binary variable for each unit whose sign is not settled by its bounds.

Tjeng, Xiao and Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, is_finite
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.model.operations.operation import Interval
from pindown.network import ReluNetwork
from pindown.programs import IGNORED_COEFFICIENT, MAX_COEFFICIENT, SOLVER_TOLERANCE, Rows
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import linear_bounds
from pindown.rounding import UNIT_ROUNDOFF, add_up, gamma

_ROOM = 1.0 + 2.0**-40  # for the rounding of scaled bounds, far below the tolerance of the solver


@dataclass(frozen=True, eq=False)
class Encoding:
    """Variables ``[t, a_1, ..., a_(L-1), binaries]`` and rows ``lower <= rows @ v <= upper``.

    The inputs are ``x = center + radius * t`` with ``|t| <= 1``.

    Attributes:
        rows: Sparse matrix of the constraints of the ReLUs.
        row_lower: Their lower ends.
        row_upper: Their upper ends.
        lower: Lower bounds of the variables.
        upper: Upper bounds of the variables.
        integrality: 1 for binary variables, 0 for the others.
        output: The last affine map, from the variables to the outputs.
        error: For each output, how far the solver's tolerance can move it, by the way it spreads
            through the layers.
        center: Middle of the box.
        radius: Half its widths, rounded up.
    """

    rows: Any
    row_lower: Array
    row_upper: Array
    lower: Array
    upper: Array
    integrality: NDArray[np.int64]
    output: Affine
    error: Array
    center: Array
    radius: Array

    @property
    def constraints(self) -> Rows:
        """The rows with their ends."""
        return Rows(self.rows, self.row_lower, self.row_upper)

    def inputs(self, variables: Array) -> Array:
        """Return the input x that values of all variables stand for."""
        return self.center + self.radius * variables[: len(self.center)]


def encode(net: ReluNetwork, box: Box) -> Encoding | None:
    """Write the network on the box as constraints; None if they leave float64, or what HiGHS takes.

    Every input and every unit is first scaled to values of size one, so that the solver's absolute
    tolerances mean the same everywhere.

    >>> relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> encode(relu, Box([-1], [1])).integrality
    array([0, 0, 1])
    """
    bounds = interval_bounds(net, box)
    if not all(np.isfinite(end).all() for bound in bounds for end in bound):
        return None
    unstable = [(z.lower < 0) & (z.upper > 0) for z in bounds[:-1]]
    first = _on_unit_box(net.layers[0], box)
    with np.errstate(over="ignore", invalid="ignore"):
        layers, bounds, roundings = _scaled(first, net, bounds)
    if not all(is_finite(layer.weight.data) and is_finite(layer.bias) for layer in layers):
        return None
    if max((float(abs(layer.weight).max()) for layer in layers[:-1]), default=0.0) > MAX_COEFFICIENT:
        return None
    places = np.cumsum([net.in_features, *net.hidden_widths, *(int(u.sum()) for u in unstable)])
    n_layers, total = net.depth - 1, int(places[-1])
    starts = [0, *places[:-1].tolist()]
    parts: list[Any] = []
    low: list[Array] = []
    high: list[Array] = []
    lower, upper = np.zeros(total), np.ones(total)
    lower[: box.dim] = -1.0
    error = np.zeros(net.in_features)
    for i, (layer, z) in enumerate(zip(layers[:-1], bounds[:-1], strict=True)):
        here, binaries = starts[i + 1], starts[1 + n_layers + i]
        upper[here : here + layer.out_features] = np.maximum(z.upper, 0.0)
        block = _relu_rows(layer, z, unstable[i], (starts[i], here, binaries), total)
        parts.append(block[0])
        low.append(block[1])
        high.append(block[2])
        # Constraints and integers may each be off by the tolerance.
        error = abs(layer.weight) @ error + (2.0 * SOLVER_TOLERANCE + _ignored(layer) + roundings[i])
    last = layers[-1]
    place = np.arange(starts[n_layers], starts[n_layers] + last.in_features)
    spread = sp.csr_array((np.ones(len(place)), (np.arange(len(place)), place)), (len(place), total))
    return Encoding(
        rows=sp.vstack(parts, format="csr") if parts else sp.csr_array((0, total)),
        row_lower=np.concatenate([np.zeros(0), *low]),
        row_upper=np.concatenate([np.zeros(0), *high]),
        lower=lower,
        upper=upper,
        integrality=(np.arange(total) >= starts[1 + n_layers] if n_layers else np.zeros(total)).astype(
            int
        ),
        output=Affine(sp.csr_array(last.weight) @ spread, last.bias),
        error=np.asarray(abs(last.weight) @ error) + (SOLVER_TOLERANCE + roundings[-1]),
        center=first.center,
        radius=first.radius,
    )


def _relu_rows(
    layer: Affine, z: Interval, unstable: NDArray[np.bool_], starts: tuple[int, int, int], total: int
) -> tuple[Any, Array, Array]:
    """Return rows, lower and upper ends that tie the outputs of one layer's ReLUs to its inputs."""
    source, target, binary = starts
    m, n = layer.out_features, layer.in_features
    before = sp.csr_array(layer.weight)
    own = sp.eye_array(m, format="csr")
    switch = sp.csr_array(
        (np.ones(int(unstable.sum())), (np.flatnonzero(unstable), np.arange(int(unstable.sum())))),
        (m, int(unstable.sum())),
    )

    def rows(of_source: Any, of_target: Any, of_binary: Any, keep: NDArray[np.bool_]) -> Any:
        parts = [(of_source, source), (of_target, target), (of_binary, binary)]
        chosen = [(sp.coo_array(part[keep]), start) for part, start in parts if part is not None]
        data = np.concatenate([part.data for part, _ in chosen])
        row = np.concatenate([part.row for part, _ in chosen])
        column = np.concatenate([part.col + start for part, start in chosen])
        return sp.csr_array((data, (row, column)), (int(keep.sum()), total))

    on = (z.lower >= 0) & ~unstable
    above = rows(-before, own, None, on | unstable)  # a - W s >= b, with equality where always on
    below = rows(-before, own, sp.diags_array(-z.lower) @ switch, unstable)
    capped = rows(sp.csr_array((m, n)), own, sp.diags_array(-z.upper) @ switch, unstable)
    b, infinite = layer.bias, np.full(m, np.inf)
    tied = np.where(on, b, infinite)
    return (
        sp.vstack([above, below, capped]),
        np.concatenate([b[on | unstable], -infinite[unstable], -infinite[unstable]]),
        np.concatenate([tied[on | unstable], (b - z.lower)[unstable], np.zeros(int(unstable.sum()))]),
    )


class _First(NamedTuple):
    """The first layer as a function of ``t``, and at least how far rounding moved its offsets."""

    layer: Affine
    rounding: Array
    center: Array
    radius: Array


def _on_unit_box(layer: Affine, box: Box) -> _First:
    """Write the inputs of the first layer as ``center + radius * t``."""
    center = box.center
    radius = np.maximum(add_up(box.upper, -center), add_up(center, -box.lower))
    W = sp.csr_array(layer.weight)
    with np.errstate(over="ignore", invalid="ignore"):
        bias = np.asarray(W @ center) + layer.bias
        sizes = np.asarray(abs(W) @ np.abs(center)) + np.abs(layer.bias)
    rounding = 2.0 * gamma(layer.in_features + 4) * sizes
    return _First(Affine(W @ sp.diags_array(radius), bias), rounding, center, radius)


def _scaled(
    first: _First, net: ReluNetwork, bounds: tuple[Interval, ...]
) -> tuple[list[Affine], tuple[Interval, ...], list[Array]]:
    """Divide every hidden unit by the largest size its bounds allow, and undo it in the next layer.

    Returns:
        The layers, the bounds, and what rounding can move each unit by.
    """
    layers: list[Affine] = []
    ends: list[Interval] = []
    roundings: list[Array] = []
    before = np.ones(net.in_features)
    for layer, z in zip((first.layer, *net.layers[1:]), bounds, strict=True):
        size = unit_sizes(z) if len(layers) < net.depth - 1 else np.ones(layer.out_features)
        # In this order: a weight times what it multiplies fits float64 if the bounds do.
        weight = sp.csr_array(layer.weight) @ sp.diags_array(before)
        weight = sp.csr_array(sp.diags_array(1.0 / size) @ weight)
        layers.append(Affine(weight, layer.bias / size))
        moved = first.rounding / size if len(layers) == 1 else 0.0
        sums = np.asarray(abs(weight).sum(axis=1)).reshape(-1) + np.abs(layers[-1].bias)
        roundings.append(moved + 8.0 * UNIT_ROUNDOFF * sums)
        ends.append(Interval(z.lower / size, z.upper / size))
        before = np.where(z.upper > 0.0, size, 0.0)  # a unit that is never positive gives nothing
    return layers, tuple(ends), roundings


def unit_sizes(z: Interval) -> Array:
    """Return what the encoding divides each unit by: the largest size its bounds allow."""
    return np.maximum(np.maximum(np.abs(z.lower), np.abs(z.upper)), np.finfo(float).tiny)


def _ignored(layer: Affine) -> Array:
    """Return at most how much coefficients add up to that the solver takes for zero.

    All variables have size one, so that what is lost is their sum.
    """
    small = abs(layer.weight)
    small.data = np.where(small.data <= IGNORED_COEFFICIENT, small.data, 0.0)
    return np.asarray(small.sum(axis=1)).reshape(-1)


def tight_encoding(net: ReluNetwork, box: Box, *, deadline: Deadline) -> Encoding | None:
    """Encode a network on a box; None if its numbers are too far apart for a solver.

    Args:
        net: The network.
        box: The inputs.
        deadline: When to stop tightening bounds; they are looser then.
    """
    plain = encode(net, box)
    if plain is None:
        return None
    wide, tight = interval_bounds(net, box), linear_bounds(net, box, deadline=deadline)
    lower, upper = plain.lower.copy(), plain.upper.copy()
    place, binary = box.dim, box.dim + net.size
    for z, own in zip(wide[:-1], tight[:-1], strict=True):
        size = unit_sizes(z)
        end = place + len(size)
        upper[place:end] = np.minimum(upper[place:end], np.maximum(own.upper, 0.0) / size * _ROOM)
        place = end
        was_open = (z.lower < 0) & (z.upper > 0)
        switches = slice(binary, binary + int(was_open.sum()))
        lower[switches] = np.where(own.lower[was_open] >= 0, 1.0, 0.0)
        upper[switches] = np.where(own.upper[was_open] <= 0, 0.0, 1.0)
        binary = switches.stop
    both = (lower == 1.0) & (upper == 0.0) & (plain.integrality == 1)
    lower[both] = 0.0  # a unit that is 0 everywhere is neither on nor off: leave no contradiction
    return replace(plain, lower=lower, upper=upper)
