"""From data in the user's units to a function in the user's units, with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from pindown.affine import Array
from pindown.learn.segmented.problem import RESOLUTION, Clock, Function, Scaled, vertices

# Seconds for a least-squares fit that a least-absolute one starts from.
_START = 0.5
# A gap below this fraction of the loss is closed.
_CLOSED = 1e-6


@dataclass(frozen=True, repr=False)
class SegmentedFit:
    """A continuous piecewise-linear function, its loss (a weighted sum), and what is proved about it."""

    function: Function
    loss: float
    lower_bound: float
    proved: bool  # the two meet up to rounding, or every point is fitted up to rounding
    n_programs: int

    @property
    def n_pieces(self) -> int:
        """Pieces that differ in slope."""
        return len(self.function.slopes)

    def __repr__(self) -> str:
        bound = "optimal" if self.proved else f"optimum above {self.lower_bound:.6g}"
        return f"SegmentedFit({self.n_pieces} pieces, loss {self.loss:.6g}, {bound})"


def solve(
    x: Array, y: Array, w: Array, n_pieces: int, loss: str, budget: float | None, cap: float = np.inf
) -> SegmentedFit:
    """Return the best continuous piecewise-linear fit with at most ``n_pieces`` pieces.

    Args:
        x: Any finite numbers, in any order, repeated or not.
        y: Targets.
        w: Weights, not negative and not all zero.
        n_pieces: At least 1.
        loss: ``"squared"`` or ``"absolute"``.
        budget: Seconds, or None for no limit.
        cap: A loss of interest: among fits above it, a good one will do.
    """
    from pindown.learn.segmented.squared import least_squares

    compile_kernels(loss)
    clock = Clock(budget)
    data = Scaled.of(x, y, w)
    at, means, weights, within = data.merged()
    K = min(n_pieces, max(len(at) - 1, 1))
    with np.errstate(over="ignore"):  # the caller sees an infinite loss
        size = np.float64(data.y_size)
        unit = float((size * size if loss == "squared" else size) * data.w_size)
    limit = cap / unit if unit > 0.0 and cap < np.inf else np.inf
    if loss == "squared":
        fit = least_squares(at, means, weights, K, clock, limit - within)
        unavoidable = within
    else:
        from pindown.learn.segmented.absolute import least_absolute

        fit = least_squares(at, means, weights, K, Clock(_START))
        fit = least_absolute(data.x, data.y, data.w, data.first, fit.gaps, K, clock, limit)
        unavoidable = 0.0
    floor = float((fit.lower_bound + unavoidable) * unit)
    function = _in_units(vertices(fit, at), data)
    with np.errstate(over="ignore"):
        error = np.abs(y - function(x))
        value = float(w @ (error**2 if loss == "squared" else error))
    # The loss as the search saw it, from moments, can have lost all its digits.
    seen = max(fit.loss + unavoidable, value / unit if 0.0 < unit < np.inf else 0.0)
    gap = seen - unavoidable - fit.lower_bound
    small = gap <= 2 * RESOLUTION * float(data.w.sum())
    closed = small and gap <= _CLOSED * seen
    proved = closed or (small and _is_fitted(function, x[w > 0], y[w > 0]))
    return SegmentedFit(function, value, min(floor, value), proved, fit.leaves)


def _is_fitted(function: Function, x: Array, y: Array) -> bool:
    """Whether no point, light or heavy, has an error beyond rounding: then the loss is as good as zero.

    A small sum is not enough, since one outlier or one heavy point makes all others look small.
    """
    return bool((np.abs(y - function(x)) <= function.rounding(x)).all())


@cache
def compile_kernels(loss: str) -> None:
    """Compile the kernels on a toy problem, outside of anybody's budget."""
    from pindown.learn.segmented.absolute import least_absolute
    from pindown.learn.segmented.squared import least_squares

    x = np.linspace(-1.0, 1.0, 7)
    y = np.array([0.3, -0.2, 0.5, 1.0, 0.1, -0.8, 0.4])
    fit = least_squares(x, y, np.ones(7), 3, Clock(None))
    if loss == "absolute":
        least_absolute(x, y, np.ones(7), np.arange(8), fit.gaps, 3, Clock(None))


def _in_units(function: Function, data: Scaled) -> Function:
    """Undo the scaling."""
    return Function(
        data.x_centre + data.x_half * function.knots,
        data.y_centre + data.y_size * function.values,
        function.slopes * (data.y_size / data.x_half),
    )
