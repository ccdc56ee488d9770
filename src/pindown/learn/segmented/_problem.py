"""The best fit with a number of pieces: scaled data, lines between gaps, vertices, the network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pindown.affine import Array, Integers
from pindown.deadline import NEVER, Deadline
from pindown.learn.segmented.losses import Loss
from pindown.learn.segmented.tuning import CLOSED_GAP, CONVEX_START_SECONDS
from pindown.network import ReluNetwork
from pindown.rounding import gamma

# Losses closer than this per unit of weight (x in [-1, 1], y of unit size) count as equal.
RESOLUTION = 1e-11
# Neighbouring slopes (in scaled units) that differ by less, relative to the larger, make no breakpoint.
_NO_KINK = 1e-11
# Roundings on the way from the data to a value: into the units of the search (4), a line (5), a vertex
# (2), back into the user's units (2), along its piece (3).
_OPERATIONS = 16


@dataclass(frozen=True)
class Fit:
    """A fit in scaled units: gaps of its breakpoints, which are knots, lines, loss and proof."""

    gaps: Integers
    mask: int
    lines: Array  # one row per piece: value at 0 and slope; NaN where any slope will do
    loss: float
    lower_bound: float
    leaves: int = 0
    interrupted: bool = False


@dataclass(frozen=True)
class Scaled:
    """Sorted data with x in [-1, 1], y centred with unit size, weights of mean one and positive."""

    x: Array
    y: Array
    w: Array
    x_centre: float
    x_half: float
    y_centre: float
    y_size: float
    w_size: float

    @classmethod
    def of(cls, x: Array, y: Array, w: Array) -> Scaled:
        """Sort and scale; points of weight zero are left out."""
        kept = w > 0.0
        order = np.argsort(x[kept], kind="stable")
        x, y, w = x[kept][order], y[kept][order], w[kept][order]
        w_size = float(w.mean())
        w = w / w_size
        centre = float(x[0] / 2 + x[-1] / 2)
        half = float(x[-1] / 2 - x[0] / 2) or 1.0
        y_max = float(np.abs(y).max()) or 1.0
        y_mean = float(np.average(y / y_max, weights=w)) * y_max
        size = float(np.sqrt(np.average(((y - y_mean) / y_max) ** 2, weights=w))) * y_max
        if size <= np.finfo(float).eps * y_max:
            size = y_max
        return cls((x - centre) / half, (y - y_mean) / size, w, centre, half, y_mean, size, w_size)

    @property
    def first(self) -> Integers:
        """Where each distinct x begins, and the number of points at the end."""
        return np.flatnonzero(np.r_[True, np.diff(self.x) > 0, True]).astype(np.int64)

    def merged(self) -> tuple[Array, Array, Array, float]:
        """One point per distinct x, and the squared loss that no function of x can avoid."""
        first = self.first
        w = np.add.reduceat(self.w, first[:-1])
        y = np.add.reduceat(self.w * self.y, first[:-1]) / w
        within = self.y - np.repeat(y, np.diff(first))
        return self.x[first[:-1]], y, w, float(self.w @ within**2)


@dataclass(frozen=True)
class Function:
    """A continuous piecewise-linear function: vertices and the slopes of all its pieces."""

    knots: Array
    values: Array
    slopes: Array

    def __call__(self, x: Array) -> Array:
        """Evaluate, on the line of the piece that holds each point."""
        anchor, slope = self._piece(x)
        return self.values[anchor] + slope * (x - self.knots[anchor])

    def rounding(self, x: Array) -> Array:
        """Return how far rounding can take a value, on the way from the data and in its evaluation."""
        anchor, slope = self._piece(x)
        reach = np.abs(slope) * (np.abs(x) + np.abs(self.knots[anchor]))
        size = max(np.abs(self.values).max(), np.abs(self(x)).max())  # a corner may lie at 0
        return gamma(_OPERATIONS) * (size + reach)

    def _piece(self, x: Array) -> tuple[Integers, Array]:
        """Return the vertex that each point is counted from, and the slope there."""
        if not len(self.slopes) > 1:
            return np.zeros(np.shape(x), np.int64), np.full(np.shape(x), self.slopes[0])
        piece = np.searchsorted(self.knots, x, side="right")
        return np.maximum(piece - 1, 0), self.slopes[piece]


def vertices(fit: Fit, at: Array) -> Function:
    """Turn lines between gaps into a function: one vertex per joint, two per jump.

    Args:
        fit: What the search found.
        at: The distinct ascending x the gaps refer to.
    """
    lines = np.nan_to_num(fit.lines)
    knots: list[float] = []
    values: list[float] = []

    def on(piece: int, t: float) -> float:
        return float(lines[piece, 0] + lines[piece, 1] * t)

    joint = 0
    while joint < len(fit.gaps):
        g = int(fit.gaps[joint])
        low, high = float(at[g]), float(at[g + 1])
        last = joint
        while last + 1 < len(fit.gaps) and fit.gaps[last + 1] == g:
            last += 1
        if last > joint:  # a jump: from one line at one end of the gap to the other at the other
            knots += [low, high]
            values += [on(joint, low), on(last + 1, high)]
        else:
            change = lines[joint + 1, 1] - lines[joint, 1]
            t = low
            if not (fit.mask >> joint) & 1 and change != 0.0:
                t = float(np.clip((lines[joint, 0] - lines[joint + 1, 0]) / change, low, high))
            knots.append(t)
            values.append(on(_flatter(fit, joint), t))
        joint = last + 1
    return _simplified(knots, values, float(lines[0, 1]), float(lines[-1, 1]), on(0, 0.0))


def _flatter(fit: Fit, joint: int) -> int:
    """Return the piece at a joint whose line loses fewer digits there, and has a slope that matters."""
    left, right = np.abs(np.nan_to_num(fit.lines[joint : joint + 2, 1], nan=np.inf))
    return joint if left < right else joint + 1


def _simplified(
    knots: list[float], values: list[float], left: float, right: float, at_zero: float
) -> Function:
    """Drop vertices that coincide or do not bend."""
    t, v = np.array(knots), np.array(values)
    distinct = np.r_[True, np.diff(t) > 0] if len(t) else np.empty(0, dtype=bool)
    t, v = t[distinct], v[distinct]
    slopes = np.r_[left, np.diff(v) / np.diff(t), right] if len(t) else np.array([left])
    size = np.maximum(np.abs(slopes[:-1]), np.abs(slopes[1:]))
    bends = np.abs(np.diff(slopes)) > _NO_KINK * np.maximum(size, 1.0)
    if not bends.any():
        return Function(np.zeros(1), np.array([at_zero]), np.array([left]))
    t, v = t[bends], v[bends]
    return Function(t, v, np.r_[left, np.diff(v) / np.diff(t), right])


def as_network(function: Function, column: int = 0, n_features: int = 1) -> ReluNetwork:
    r"""Write a function of one variable with p pieces as a network with at most p units.

    One unit faces left from the first breakpoint, the others face right:

    .. math:: f(x) = f(t_1) - a_0 \rho(t_1 - x) + a_1 \rho(x - t_1)
        + \sum_{j \ge 2} (a_j - a_{j-1}) \rho(x - t_j) .

    A straight line needs no unit at all.

    Mukherjee 2020, Theorem 2.2.2, whose proof uses as many.
    """
    t, v, a = function.knots, function.values, function.slopes
    choose = np.eye(n_features)[[column]]
    if len(a) == 1:
        return ReluNetwork.from_layers([(a[0] * choose, [v[0] - a[0] * t[0]])])
    hidden = np.r_[-1.0, np.ones(len(t))][:, None] * choose, np.r_[t[0], -t]
    return ReluNetwork.from_layers([hidden, (np.r_[-a[0], a[1], np.diff(a[1:])][None], [v[0]])])


@dataclass(frozen=True, repr=False)
class SegmentedFit:
    """A continuous piecewise-linear function, its loss (a weighted sum), and what is proved about it."""

    function: Function
    loss: float
    lower_bound: float
    proved: bool  # the two meet up to rounding, or every point is fitted up to rounding
    n_programs: int
    interrupted: bool = False

    @property
    def n_pieces(self) -> int:
        """Pieces that differ in slope."""
        return len(self.function.slopes)

    def __repr__(self) -> str:
        bound = "optimal" if self.proved else f"optimum above {self.lower_bound:.6g}"
        return f"SegmentedFit({self.n_pieces} pieces, loss {self.loss:.6g}, {bound})"


def solve(
    x: Array,
    y: Array,
    w: Array,
    n_pieces: int,
    loss: Loss,
    deadline: Deadline = NEVER,
    cap: float = np.inf,
) -> SegmentedFit:
    """Return the best continuous piecewise-linear fit with at most ``n_pieces`` pieces.

    Args:
        x: Any finite numbers, in any order, repeated or not.
        y: Targets.
        w: Weights, not negative and not all zero.
        n_pieces: At least 1.
        loss: In the units of y.
        deadline: When to stop; Ctrl-C does the same, and the fit says so.
        cap: A loss of interest: among fits above it, a good one will do.
    """
    from pindown.learn.segmented._squared import least_squares

    data = Scaled.of(x, y, w)
    at, means, weights, within = data.merged()
    K = min(n_pieces, max(len(at) - 1, 1))
    with np.errstate(over="ignore"):  # the caller sees an infinite loss
        size = np.float64(data.y_size)
        unit = float((size * size if loss.is_quadratic else size) * data.w_size)
    limit = cap / unit if unit > 0.0 and cap < np.inf else np.inf
    if loss.name == "squared":
        fit = least_squares(at, means, weights, K, deadline, limit - within)
        unavoidable = within
    else:
        from pindown.learn.segmented._convex import least_convex

        fit = least_squares(at, means, weights, K, Deadline.after(CONVEX_START_SECONDS))
        rule, start = loss.scaled(data.y_size), fit
        deadline = Deadline.after(0.0) if start.interrupted else deadline
        fit = least_convex(data.x, data.y, data.w, data.first, start.gaps, K, deadline, rule, limit)
        fit = replace(fit, interrupted=fit.interrupted or start.interrupted)
        unavoidable = 0.0
    floor = float((fit.lower_bound + unavoidable) * unit)
    function = _in_units(vertices(fit, at), data)
    with np.errstate(over="ignore"):
        value = float(w @ loss(y - function(x)))
    # The loss as the search saw it, from moments, can have lost all its digits.
    seen = max(fit.loss + unavoidable, value / unit if 0.0 < unit < np.inf else 0.0)
    gap = seen - unavoidable - fit.lower_bound
    small = gap <= 2 * RESOLUTION * float(data.w.sum())
    closed = small and gap <= CLOSED_GAP * seen
    proved = closed or (small and _is_fitted(function, x[w > 0], y[w > 0]))
    return SegmentedFit(function, value, min(floor, value), proved, fit.leaves, fit.interrupted)


def _is_fitted(function: Function, x: Array, y: Array) -> bool:
    """Whether no point, light or heavy, has an error beyond rounding: then the loss is as good as zero.

    A small sum is not enough, since one outlier or one heavy point makes all others look small.
    """
    return bool((np.abs(y - function(x)) <= function.rounding(x)).all())


def _in_units(function: Function, data: Scaled) -> Function:
    """Undo the scaling."""
    return Function(
        data.x_centre + data.x_half * function.knots,
        data.y_centre + data.y_size * function.values,
        function.slopes * (data.y_size / data.x_half),
    )
