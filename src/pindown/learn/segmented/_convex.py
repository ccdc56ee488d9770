r"""Global optimum of continuous piecewise-linear regression with quantile or Huber loss, with a proof.

The bound of a tuple of gaps is the sum of the best separate lines, from a table of all of them; tuples
below the best loss known are solved exactly, with knots at data points where lines do not meet in the
gap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pindown.affine import Array, Integers
from pindown.deadline import Deadline, OutOfTime
from pindown.learn.segmented._compiled import convex as compiled
from pindown.learn.segmented._compiled.breakpoints import is_jump
from pindown.learn.segmented._problem import RESOLUTION, Fit
from pindown.learn.segmented.losses import Loss
from pindown.learn.segmented.tuning import CONVEX_NODES_PER_CHECK

# Size of the perturbation that makes optima unique, relative to targets and weights of order one.
_PERTURBATION = 1e-12


def least_convex(
    x: Array,
    y: Array,
    w: Array,
    first: Integers,
    start: Integers,
    n_pieces: int,
    deadline: Deadline,
    loss: Loss,
    cap: float = np.inf,
) -> Fit:
    """Return the best continuous fit with at most ``n_pieces`` pieces.

    Args:
        x: Ascending numbers in [-1, 1]; equal ones stand together.
        y: Targets, scaled to order one.
        w: Positive weights.
        first: Where each distinct x begins, and the number of points.
        start: Gaps of a good fit, to begin with.
        n_pieces: Pieces, at least 1, and fewer than there are distinct x (or 1).
        deadline: When to stop.
        loss: In the units of y here.
        cap: A loss of interest: among fits above it, a good one will do.

    Returns:
        The fit; unless time ran out, its bound is its loss or ``cap``, up to the resolution.
    """
    random = np.random.default_rng(0)
    shaken = y + _PERTURBATION * random.uniform(-1, 1, len(y))
    heavier = w * (1 + _PERTURBATION * random.uniform(-1, 1, len(w)))
    problem = _Problem(x, shaken, heavier, first, n_pieces, loss, cap)
    problem.improve(start)
    bound = 0.0
    leaves = 0
    try:
        problem.fill(deadline)
        floors, stack, height = problem.root()
        bound = float(floors[-1, -1])
        while height:
            deadline.check()
            height, more = problem.run(floors, stack, height)
            leaves += more
    except (OutOfTime, KeyboardInterrupt) as end:  # what is known by now is kept
        fit = _polished(problem, y, w, min(bound, problem.loss), leaves)
        return replace(fit, interrupted=isinstance(end, KeyboardInterrupt))
    return _polished(problem, y, w, max(min(problem.loss, cap) - problem.slack, 0.0), leaves)


def _polished(problem: _Problem, y: Array, w: Array, bound: float, leaves: int) -> Fit:
    """Refit the best structure to the data as they are, if that does no harm."""
    exact = _Problem(problem.x, y, w, problem.first, problem.n_pieces, problem.rule, np.inf)
    if exact.adopt(problem.gaps, problem.mask) and exact.loss <= problem.loss + problem.slack:
        return exact.fit(min(bound, exact.loss), leaves)
    return problem.fit(bound, leaves)


class _Problem:
    """Perturbed data, the table of lines, and the best fit known."""

    def __init__(
        self, x: Array, y: Array, w: Array, first: Integers, n_pieces: int, rule: Loss, cap: float
    ) -> None:
        self.x, self.y, self.w, self.first = x, y, rule.weights(w), first
        self.rule = rule
        self.at, self.n_pieces = x[first[:-1]], n_pieces
        G = len(self.at)
        self.losses = np.full((G, G), np.nan)
        self.table = np.zeros((G, G, 2))
        self.filled = np.zeros(G, dtype=bool)
        self.cap = cap
        self.slack = RESOLUTION * float(w.sum())
        self.gaps = np.empty(0, dtype=np.int64)
        self.mask, self.loss, self.lines = 0, np.inf, np.zeros((n_pieces, 2))

    @property
    def arguments(self) -> tuple[Array, Array, Array, Integers, Array, Array, Array]:
        return self.x, self.y, self.w, self.first, self.at, self.losses, self.table

    def fill(self, deadline: Deadline) -> None:
        """Fit a line to every run of points."""
        for a in range(len(self.at)):
            deadline.check()
            compiled.line_table(self.x, self.y, self.w, self.first, self.losses, self.table, a)

    def improve(self, start: Integers) -> None:
        """Begin with one tuple of gaps, with all joints at data points if that determines the lines."""
        joints = [j for j in range(len(start)) if not is_jump(start, j)]
        if not self.adopt(start, sum(1 << j for j in joints)):
            self.adopt(start, 0)

    def adopt(self, gaps: Integers, mask: int) -> bool:
        """Take a choice of gaps and knots as the best fit, if it is a fit."""
        lines = np.zeros((len(gaps) + 1, 2))
        self._separate(gaps)
        loss = float(compiled.fit_with_knots(*self.arguments, gaps, mask, np.inf, lines))
        for j in range(len(gaps)):
            if not (mask >> j) & 1 and not is_jump(gaps, j):
                loss = loss if compiled.crosses(self.at, gaps, lines, j) else np.inf
        if loss < np.inf:
            self.gaps, self.mask, self.loss, self.lines = gaps, mask, loss, lines
        return loss < np.inf

    def _separate(self, gaps: Integers) -> None:
        """Fill the rows of the table that one tuple needs."""
        for a in {0, *(int(g) + 1 for g in gaps)}:
            compiled.line_table(self.x, self.y, self.w, self.first, self.losses, self.table, a)

    def root(self) -> tuple[Array, Array, int]:
        """Return bounds of prefixes and a stack with the root on it."""
        K, G = self.n_pieces, len(self.at)
        floors = compiled.prefix_floors(self.losses, K)
        stack = np.zeros((K * (G + 1) + 1, 3 + K - 1))
        stack[0, :3] = floors[-1, -1], K - 1, 0.0
        return floors, stack, 1

    def run(self, floors: Array, stack: Array, height: int) -> tuple[int, int]:
        """Take nodes off the stack and improve the best fit."""
        path = np.zeros(self.n_pieces - 1, dtype=np.int64)
        lines = np.zeros((self.n_pieces, 2))
        height, loss, mask, leaves, _ = compiled.explore(
            *self.arguments,
            floors,
            stack,
            height,
            min(self.loss, self.cap),
            self.slack,
            path,
            -1,
            lines,
            CONVEX_NODES_PER_CHECK,
        )
        if mask >= 0:
            self.gaps, self.mask, self.loss, self.lines = path, int(mask), float(loss), lines
        return int(height), int(leaves)

    def fit(self, bound: float, leaves: int) -> Fit:
        """Return what is known."""
        return Fit(self.gaps, self.mask, self.lines, self.loss, bound, leaves)
