r"""Global optimum of continuous piecewise-linear least squares, with a proof.

An upper bound comes from the same search on a coarse grid of gaps, and local moves. Gaps that hold no
breakpoint of a better fit are left out (:mod:`~pindown.learn.segmented._compiled.screening`); on the
others a tight lower bound comes from :mod:`~pindown.learn.segmented._compiled.relaxation`, and the
tuples of gaps between the two bounds are solved exactly.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pindown.affine import Array, Integers
from pindown.deadline import Deadline, OutOfTime
from pindown.learn.segmented._compiled import branch_and_bound as branching
from pindown.learn.segmented._compiled import breakpoints as joints
from pindown.learn.segmented._compiled import relaxation, screening
from pindown.learn.segmented._compiled.parabolas import moment_blocks, two_passes
from pindown.learn.segmented._problem import RESOLUTION, Fit
from pindown.learn.segmented.tuning import (
    BLOCK_REFINEMENT,
    BROAD_PIECE_SHARE,
    COARSE_GRID_SPACING,
    COARSE_GRIDS,
    MAX_COARSE_GRID,
    NO_IMPROVEMENT,
    ROWS_PER_CHECK,
    SQUARED_NODES_PER_CHECK,
    STEEP_SEGMENT,
    TIE_STIFFNESS,
)

# What ties take on a coarse grid, where they are to cost nothing, and no segment counts as steep.
_NOTHING = 1e-12
_NEVER_STEEP = 1e300
# An improvement that sums of float64 cannot show, per unit of weight, is not looked for.
_ROUNDING = 1e-14


def least_squares(
    x: Array, y: Array, w: Array, n_pieces: int, deadline: Deadline, cap: float = np.inf
) -> Fit:
    """Return the best continuous fit with at most ``n_pieces`` pieces.

    Args:
        x: Distinct ascending numbers in [-1, 1].
        y: Targets, scaled to order one.
        w: Positive weights.
        n_pieces: Pieces, at least 1, and fewer than there are points (or 1).
        deadline: When to stop.
        cap: A loss of interest: among fits above it, a good one will do.

    Returns:
        The fit; unless time ran out, its bound is its loss or ``cap``, up to the resolution.
    """
    no_gaps = np.empty(0, dtype=np.int64)
    one, _ = joints.best_in_gaps(x, moment_blocks(x, y, w), no_gaps, np.inf)
    best = _Best(no_gaps, 0, one)
    slack = _slack(one, w)
    bound, leaves, proved = max(min(one, cap) - slack, 0.0), 0, 0.0
    try:
        # Of two that are one grid here, only the last is tried, with its patience.
        grids = {_places(len(x) - 2, coarse): patience for coarse, patience in COARSE_GRIDS}
        for places, patience in grids.items() if n_pieces > 1 and one > slack else ():
            rival = _upper_bound(x, y, w, n_pieces, one + slack, places, deadline)
            best = rival if rival.loss < best.loss or not len(best.gaps) else best
            if rival.interrupted:
                raise KeyboardInterrupt
            slack = _slack(best.loss, w)
            if best.loss <= slack:
                return _fit(x, y, w, best, 0.0, leaves)
            gaps, floor = possible_gaps(x, y, w, n_pieces, min(best.loss, cap), deadline)
            proved = max(proved, floor)
            bound, done = max(min(best.loss, cap) - slack, 0.0), True
            if len(gaps):
                tree = _Tree(x, y, w, gaps, n_pieces, slack, cap)
                tree.tie(best)
                bound, more, done = tree.prove(best, floor, deadline, patience)
                leaves += more
            if done:
                break
    except KeyboardInterrupt:  # what is known by now is kept
        return replace(_fit(x, y, w, best, min(proved, best.loss), leaves), interrupted=True)
    return _fit(x, y, w, best, bound, leaves)


def possible_gaps(
    x: Array, y: Array, w: Array, n_pieces: int, ceiling: float, deadline: Deadline
) -> tuple[Integers, float]:
    """Return the gaps that may hold a breakpoint of a fit with a loss below ``ceiling``.

    Also a number that no fit with so many pieces is below. Blocks begin with about as many gaps as there
    are blocks, and get smaller until they are single gaps or time is over.
    """
    n, breaks = len(x), n_pieces - 1
    moments = moment_blocks(x, y, w)
    size = max(int(np.sqrt(n) / 2), 1)
    low = np.arange(0, n - 1, size)
    high = np.minimum(low + size - 1, n - 2)
    floor = 0.0
    while len(low):
        try:
            sums = _least_sums(moments, low, high, n, breaks, ceiling, deadline)
        except OutOfTime:
            break
        floor = max(floor, min(float(sums.min()), ceiling))
        low, high = low[sums < ceiling], high[sums < ceiling]
        if size == 1:
            break
        size = max(size // BLOCK_REFINEMENT, 1)
        parts = [np.arange(a, b + 1, size) for a, b in zip(low, high, strict=True)]
        ends = [np.minimum(part + size - 1, b) for part, b in zip(parts, high, strict=True)]
        low, high = (np.concatenate([*part, np.empty(0, np.int64)]) for part in (parts, ends))
    inside = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    return np.concatenate([*inside, np.empty(0, np.int64)]), floor


def _least_sums(
    moments: Array,
    low: Integers,
    high: Integers,
    n: int,
    breaks: int,
    ceiling: float,
    deadline: Deadline,
) -> Array:
    """Return the least loss of separate lines with a breakpoint in each block."""
    inside, prefix, suffix = (np.full((breaks + 1, len(low)), np.inf) for _ in range(3))
    chunks = [(row, min(row + ROWS_PER_CHECK, len(low))) for row in range(0, len(low), ROWS_PER_CHECK)]
    short, long = screening.runs(moments, low, high, n)
    for rows in chunks:
        deadline.check()
        screening.inside_losses(moments, low, high, inside, rows)
        screening.forwards(moments, low, short, long, inside, ceiling, prefix, rows)
    for rows in reversed(chunks):
        deadline.check()
        screening.backwards(moments, high, n, short, long, inside, ceiling, suffix, rows)
    return (prefix[1:] + suffix[::-1][1:]).min(axis=0)


def _slack(loss: float, w: Array) -> float:
    """Return the improvement that is not looked for: small next to the loss, and more than rounding."""
    return float(np.clip(NO_IMPROVEMENT * loss, _ROUNDING * w.sum(), RESOLUTION * w.sum()))


class _Best:
    """The best fit known: gaps, knots, loss, and whether its search was interrupted."""

    def __init__(self, gaps: Integers, mask: int, loss: float, *, interrupted: bool = False) -> None:
        self.gaps, self.mask, self.loss, self.interrupted = gaps, mask, loss, interrupted

    def lines(self, x: Array, y: Array, w: Array) -> tuple[Array, Array]:
        """Return (value at the centre of mass, slope) per piece, and the moments of the pieces."""
        blocks = moment_blocks(x, y, w)
        ends = np.concatenate([[0], self.gaps + 1, [len(x)]])
        stats = np.empty((len(ends) - 1, 6))
        for piece in range(len(stats)):
            two_passes(blocks, ends[piece], ends[piece + 1], stats[piece])
        lines = np.zeros((len(stats), 2))
        joints.fit_with_knots(x, self.gaps, stats, self.mask, lines)
        return lines, stats


def _fit(x: Array, y: Array, w: Array, best: _Best, bound: float, leaves: int) -> Fit:
    lines, stats = best.lines(x, y, w)
    lines[:, 0] -= np.nan_to_num(lines[:, 1]) * stats[:, 1]  # value at 0 instead of the centre of mass
    return Fit(best.gaps, best.mask, lines, best.loss, bound, leaves)


def _places(last: int, coarse: int) -> int:
    """Return how many gaps a coarse grid has."""
    return min(last + 1, max(coarse, min(last // COARSE_GRID_SPACING, MAX_COARSE_GRID)))


def _upper_bound(
    x: Array, y: Array, w: Array, n_pieces: int, cap: float, places: int, deadline: Deadline
) -> _Best:
    """Best tuple on a coarse grid of gaps, then local moves and jumps."""
    last = len(x) - 2
    grid = np.unique(np.linspace(0, last, places).round().astype(np.int64))
    tree = _Tree(x, y, w, grid, n_pieces, 0.0)
    blocks = tree.blocks
    best = _Best(np.zeros(n_pieces - 1, dtype=np.int64), -1, cap)
    interrupted = False
    try:
        tree.grow(best, deadline)
        while tree.height and best.mask < 0:
            deadline.check()
            tree.run(best, 1)
    except OutOfTime:
        pass
    except KeyboardInterrupt:
        interrupted = True
    if best.mask < 0:  # no time, or no relaxed tuple keeps its promise: evenly spread breakpoints
        spread = np.linspace(0, last, n_pieces + 1)[1:-1].round().astype(np.int64)
        loss, mask = joints.best_in_gaps(x, blocks, spread, np.inf)
        best = _Best(spread, mask, loss)
    loss, mask, gaps = joints.improve(x, blocks, best.gaps, best.loss, best.mask)
    better = loss > _slack(loss, w)  # else it is rounding, and not worth a steeper fit
    while better and not (deadline.passed or interrupted):
        better, loss, mask, gaps = joints.jump(x, blocks, gaps, loss, mask)
    return _Best(gaps, int(mask), float(loss), interrupted=interrupted)


class _Tree:
    """The relaxation on some gaps and the stack of the search over them."""

    def __init__(
        self,
        x: Array,
        y: Array,
        w: Array,
        grid: Integers,
        n_pieces: int,
        slack: float,
        cap: float = np.inf,
    ) -> None:
        self.data = x, y, w
        self.blocks = moment_blocks(x, y, w)
        self.grid, self.n_pieces, self.slack, self.cap = grid, n_pieces, slack, cap
        self.stack = np.empty((n_pieces * (len(grid) + 1) + 1, 7 + n_pieces - 1))
        self.height = 0
        centres = (x[grid] + x[grid + 1]) / 2
        # On a coarse grid no bound is claimed: ties are stiff and take next to nothing.
        stiff = TIE_STIFFNESS * float(w.sum()) / n_pieces
        self.ties = np.array(
            [
                centres,
                0 * centres + np.sqrt(2 * _NOTHING / stiff),
                0 * centres + _NOTHING,
                0 * centres,
                0 * centres + _NEVER_STEEP,
            ]
        )
        self.sizes = np.array([4 * _NOTHING])

    def tie(self, best: _Best) -> None:
        """Set ties and reference slopes so that the bound is tight near the best fit known."""
        x, y, w = self.data
        piece = float(w.sum()) / self.n_pieces
        lines, stats = best.lines(x, y, w)
        broad = (stats[:, 0] >= BROAD_PIECE_SHARE * piece) & np.isfinite(lines[:, 1])
        slopes, centres = lines[broad, 1], stats[broad, 1]
        if len(slopes) < 2:  # one trend all along
            slopes, centres = np.repeat(slopes if len(slopes) else 0.0, 2), np.array([-1.0, 1.0])
        # Halfway between two broad pieces is about where their joint is.
        near = np.searchsorted((centres[:-1] + centres[1:]) / 2, self.ties[0]).clip(max=len(slopes) - 2)
        change = np.abs(slopes[near + 1] - slopes[near])
        h = x[self.grid + 1] - x[self.grid]
        force = np.sqrt(best.loss / w.sum() * piece)
        with np.errstate(divide="ignore"):
            strength = np.minimum(TIE_STIFFNESS * piece, force / (h * change))
        self.ties[1:4] = h, strength * h * h / 2, (slopes[near] + slopes[near + 1]) / 2
        self.ties[4] = STEEP_SEGMENT * best.loss / w.sum()
        self.sizes = relaxation.classes(x, w, self.ties[2])

    def grow(self, best: _Best, deadline: Deadline) -> float:
        """Run the dynamic program and open the root; return the bound it proves."""
        x, y, w = self.data
        K, G = self.n_pieces, len(self.grid)
        ceiling = min(best.loss, self.cap)
        floors = np.full((K + 1, G), np.inf)
        for row in range(G, 0, -ROWS_PER_CHECK):
            deadline.check()
            rows = (max(row - ROWS_PER_CHECK, 0), row)
            relaxation.suffix_floors(x, y, w, self.grid, self.ties, self.sizes, floors, rows)
        counts, parabolas, untied = relaxation.first_level(
            x, y, w, self.grid, self.ties, self.sizes, ceiling - floors[K - 1]
        )
        levels = [self._level(counts, parabolas, untied)]
        for k in range(2, K):
            parts = []
            for row in range(0, G, ROWS_PER_CHECK):
                deadline.check()
                rows = (row, min(row + ROWS_PER_CHECK, G))
                limit = ceiling - floors[K - k]
                parts.append(
                    relaxation.next_level(
                        x, y, w, self.grid, self.ties, self.sizes, *levels[-1], limit, rows
                    )
                )
            counts, parabolas, untied = (
                np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)
            )
            levels.append(self._level(counts, parabolas, untied))
        ends = np.cumsum([0] + [level[1].shape[1] for level in levels])
        starts, parabola, loose, least = zip(*levels, strict=True)
        self.levels = (
            ends,
            np.array(starts),
            np.concatenate(parabola, axis=1),
            np.array(loose),
            np.array(least),
        )
        children = branching.open_nodes(
            x, y, w, self.grid, self.ties, self.sizes, *levels[-1], ceiling, G, 0.0, (0.0, 0.0, 0.0)
        )
        self.height = branching.push(self.stack, 0, children, K - 1, np.zeros(K - 1))
        return float(min(children[:, 0], default=ceiling))

    @staticmethod
    def _level(
        counts: Integers, parabolas: Array, untied: Array
    ) -> tuple[Integers, Array, Array, Array]:
        starts = np.concatenate([[0], np.cumsum(counts)])
        return starts, parabolas, untied, relaxation.least(starts, parabolas, untied)

    def run(self, best: _Best, steps: int) -> int:
        """Take nodes off the stack, improve the best fit in place; return the tuples solved."""
        path = (
            best.gaps.copy() if len(best.gaps) == self.n_pieces - 1 else np.zeros(self.n_pieces - 1, int)
        )
        self.height, loss, mask, leaves, _ = branching.explore(
            *self.data,
            self.blocks,
            self.grid,
            self.ties,
            self.sizes,
            self.levels,
            self.stack,
            self.height,
            min(best.loss, self.cap),
            self.slack,
            path,
            -1,
            steps,
        )
        if mask >= 0:
            best.loss, best.mask, best.gaps = float(loss), int(mask), path
        return int(leaves)

    def prove(
        self, best: _Best, floor: float, deadline: Deadline, patience: float
    ) -> tuple[float, int, bool]:
        """Search until nothing is left; return the lower bound, the tuples solved, and whether to stop.

        ``floor`` is a bound known before.
        After more than ``patience`` tuples a better fit to compare with would pay off: do not stop then.
        """
        leaves = 0
        bound = min(floor, best.loss)
        try:
            bound = max(self.grow(best, deadline), bound)
            while self.height:
                deadline.check()
                if leaves > patience:
                    return min(bound, best.loss), leaves, False
                leaves += self.run(best, SQUARED_NODES_PER_CHECK)
        except OutOfTime:
            return min(bound, best.loss), leaves, True
        return max(min(best.loss, self.cap) - self.slack, 0.0), leaves, True
