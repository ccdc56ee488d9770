r"""The smallest and the largest value of every output on a box, where they are, and how certain that is.

A network is affine on each cell, and an affine function on a convex polytope is largest at a vertex:
:math:`\max_B f_k = \max_v f_k(v)` over the vertices v of the complex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts.cell_bounds import upper_bounds
from pindown.geometry.facts.vertex_values import BoxLike, complex_of, vertex_values
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import fraction_down, fraction_up

_ROUNDING = 1e-9  # relative to the larger bound: intervals wider than this say what rounding did
_FEW_PARAMETERS = 5_000  # of networks that are evaluated in rational numbers where it helps
_STATUS = {
    "proved": "proved",
    "float64": "complete search in float64",
    "partial": "search not complete",
}


@dataclass(frozen=True, eq=False, repr=False)
class Extremum:
    r"""The largest, or smallest, value of one output on a box.

    ``lower <= true value <= upper`` is proved for the real-number network whatever the status is: one
    side by the value at ``point``, the other by interval arithmetic or, when certified, cell by cell.

    Attributes:
        kind: ``"maximum"`` or ``"minimum"``.
        output: Which output.
        value: The output at ``point`` in float64, moved between the bounds if it is not there.
        point: A point of the box, (d,).
        lower: Proved lower bound.
        upper: Proved upper bound.
        status: ``"proved"`` if all cells are certified: as a rule the bounds then differ by rounding
            only; ``"float64"`` if all cells were searched in float64: then ``value`` is the answer up
            to rounding, but one bound may be wide; ``"partial"`` if a budget ended the search.
    """

    kind: str
    output: int
    value: float
    point: Array
    lower: float
    upper: float
    status: str

    @property
    def exact(self) -> bool:
        """Whether all cells are certified and bounded: then the interval is the answer."""
        return self.status == "proved"

    @property
    def text(self) -> str:
        """The value, or what is proved of it where that is less than six digits."""
        ends = f"{self.lower:.6g}", f"{self.upper:.6g}"
        wide = self.upper - self.lower > _ROUNDING * max(abs(self.lower), abs(self.upper))
        return (
            f"[{', '.join(ends)}]" if self.exact and wide and ends[0] != ends[1] else f"{self.value:.6g}"
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.point[:4]) + (", ..." if len(self.point) > 4 else "")
        return (
            f"{self.kind} of output {self.output}: {self.text} at ({shown}) "
            f"({_STATUS[self.status]}; surely in [{self.lower:.6g}, {self.upper:.6g}])"
        )


@dataclass(frozen=True, eq=False, repr=False)
class OutputRange:
    """What every output can be on a box.

    Attributes:
        minima: The smallest value of each output.
        maxima: The largest value of each output.
    """

    minima: tuple[Extremum, ...]
    maxima: tuple[Extremum, ...]

    @property
    def exact(self) -> bool:
        """Whether all extrema are proved."""
        return all(found.exact for found in (*self.minima, *self.maxima))

    @property
    def lower(self) -> Array:
        """Proved lower bounds on all values of the outputs, (k,)."""
        return np.array([found.lower for found in self.minima])

    @property
    def upper(self) -> Array:
        """Proved upper bounds on all values of the outputs, (k,)."""
        return np.array([found.upper for found in self.maxima])

    def __repr__(self) -> str:
        pairs = zip(self.minima[:4], self.maxima[:4], strict=True)
        shown = ", ".join(f"{low.text} .. {high.text}" for low, high in pairs)
        more = f", {len(self.minima) - 4} more" if len(self.minima) > 4 else ""
        return f"OutputRange({shown}{more}; {_STATUS[self.maxima[0].status]})"


def output_range(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    budget: float | None = None,
    certified: bool = False,
) -> OutputRange:
    """Find the smallest and largest value of every output on a box.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        budget: Seconds for finding the cells; the best values on those found are returned.
        certified: Prove both sides to rounding: all signs of all cells, and a dual bound for each. A
            complex that is certified already is always used so.

    Returns:
        For each output its extrema, with points and proved bounds.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If the box does not fit the network.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])  # |x|
        >>> found = output_range(net, (-1, 2), certified=True)
        >>> found
        OutputRange(0 .. 2; proved)
        >>> found.maxima[0].point, found.minima[0].point
        (array([2.]), array([0.]))
    """
    cx = complex_of(net, box, budget=budget, certified=certified)
    points = np.vstack([np.clip(cx.vertices, cx.box.lower, cx.box.upper), cx.box.center])
    values = np.vstack([vertex_values(cx), cx.net(cx.box.center)])
    crude = interval_bounds(cx.net, cx.box)[-1]
    outputs = range(cx.net.out_features)
    return OutputRange(
        tuple(_extremum(cx, k, -1.0, points, values, -float(crude.lower[k])) for k in outputs),
        tuple(_extremum(cx, k, 1.0, points, values, float(crude.upper[k])) for k in outputs),
    )


def _extremum(
    cx: PolyhedralComplex, output: int, sign: float, points: Array, values: Array, crude: float
) -> Extremum:
    """Return the maximum of ``sign`` times an output, put as a maximum or a minimum."""
    best = int(np.argmax(sign * values[:, output]))
    point = points[best].copy()
    point.flags.writeable = False
    attained = _attained(cx.net, point, output, sign)
    limit, status = crude, "float64" if cx.complete else "partial"
    if cx.complete and cx.certified:
        proved = float(upper_bounds(cx, output, sign).max(initial=-np.inf))
        limit, status = (min(crude, proved), "proved") if np.isfinite(proved) else (crude, status)
    low, high = (attained, limit) if sign > 0 else (-limit, -attained)
    value = float(np.clip(values[best, output], low, high))
    return Extremum("maximum" if sign > 0 else "minimum", output, value, point, low, high, status)


def _attained(net: ReluNetwork, point: Array, output: int, sign: float) -> float:
    """Bound ``sign`` times an output at a point from below; in rationals if float64 blurs it."""
    here = interval_bounds(net, Box(point, point))[-1]
    low, high = float(here.lower[output]), float(here.upper[output])
    if not high - low <= _ROUNDING * max(abs(low), abs(high)) and net.n_parameters <= _FEW_PARAMETERS:
        value = net.as_fractions()(point.tolist())[output]
        return fraction_down(value) if sign > 0 else -fraction_up(value)
    return low if sign > 0 else -high
