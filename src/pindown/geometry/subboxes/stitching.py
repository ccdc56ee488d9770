"""A complex found sub-box by sub-box and put together again, cell for cell.

A cell that a cut goes through shows up in several sub-boxes. Cells are convex, so on the whole box an
activation pattern belongs to one cell only, and the pattern is all that a sub-box needs to report of it:

1. every sub-box lists its cells; one that does not touch a cut is whole, and final;
2. of the others only the patterns are kept, and equal ones are one;
3. each of these is built once more, on the whole box, by the steps that the walk through the whole box
   takes to reach it. Corners and facets that a cut made are gone; a fold that lies in a cut is a fold.

The result does not know where the cuts were: cells, maps, facets and neighbours are those of
:func:`~pindown.geometry.polyhedral_complex`. A cell that meets a sub-box in less than full dimension is
no cell there, and adds nothing. Certified walks prove every sign in all three steps. In float64 a fold
that passes a cut within rounding may disturb cells beside it, or make some that are none. Those that
touch a cut, and those thin enough for rounding to matter, are left to step 3, whoever saw them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box
from pindown.deadline import Stopwatch
from pindown.geometry.complex._cell_search import joined
from pindown.geometry.complex._cells import Cells, full_box
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.nearness import same_place
from pindown.geometry.subboxes._batches import (
    Patterns,
    cell_batches,
    cells_with_patterns,
    distinct,
    is_among,
    near_cut,
    rounding_may_matter,
    select,
    with_facet_in,
)
from pindown.geometry.subboxes.grid import Grid, Splits, as_grid
from pindown.geometry.tuning import CELLS_PER_BATCH, CUT_PATTERNS_PER_TASK
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.parallel import each
from pindown.progress import Report


class Part(NamedTuple):
    """What a batch of one sub-box adds: whole cells, and patterns of cells that a cut may go through."""

    cells: Cells
    patterns: Patterns


@on_network
def complex_by_parts(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    splits: Splits = 8,
    *,
    certified: bool = False,
    n_jobs: int | None = None,
    progress: Report | None = None,
) -> PolyhedralComplex:
    """Find every cell of a network on a box, one sub-box at a time, side by side.

    Args:
        net: The network; its input should have few dimensions.
        box: The inputs, full-dimensional.
        splits: How many sub-boxes, in all or along each coordinate; or a :class:`Grid`.
        certified: Prove every sign; cells with undecided ones go to exact rational arithmetic.
        n_jobs: Workers; None leaves it to ``pindown.parallel.workers``, -1 is all cores. On one machine
            they are threads, or processes if certified, since exact arithmetic is Python.
        progress: Called with what is done (sub-boxes, then cells on cuts), tasks done and tasks in all.

    Returns:
        The complex, as :func:`~pindown.geometry.polyhedral_complex` finds it, in another order that
        depends on ``splits`` and not on ``n_jobs``.

    Raises:
        ValueError: If the box or the grid does not fit, is flat, or has too many dimensions.

    Two lines that cross in the square, cut in four off its centre: four cells still, four neighbours.

    >>> cross = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> whole = complex_by_parts(cross, (-1, 1), splits=4)
    >>> whole.n_regions, len(whole.neighbours), whole.volumes
    (4, 4, array([1., 1., 1., 1.]))
    """
    watch = Stopwatch()
    domain = full_box(box, net.in_features)
    grid = as_grid(domain, splits, net.in_features)
    where: Any = {"n_jobs": n_jobs, "threads": not certified, "progress": progress}
    part = partial(_part, net, grid, certified)
    found = dict(each(part, range(len(grid)), what="sub-boxes", **where))
    parts = [found.pop(i) for i in range(len(grid))]
    whole = joined([part.cells for part in parts])
    cut = distinct(np.concatenate([part.patterns for part in parts]))
    cut = cut[~is_among(cut, whole.patterns)]
    chunks = [cut[k : k + CUT_PATTERNS_PER_TASK] for k in range(0, len(cut), CUT_PATTERNS_PER_TASK)]
    again = partial(_rebuilt, net, domain, certified)
    rebuilt = dict(each(again, chunks, what="cells on cuts", **where))
    cells = joined([whole, *(part for i in sorted(rebuilt) for part in rebuilt[i])])
    if certified and cells.n != whole.n + len(cut):
        raise ArithmeticError("a proved cell was not found again on the whole box; please report this.")
    growth = _growth(cells.patterns, net.hidden_widths)
    return PolyhedralComplex(net, domain, True, certified, growth, cells, watch.seconds)


def parts_of(
    net: ReluNetwork,
    grid: Grid,
    i: int,
    *,
    certified: bool,
    room: int,
    most_exact: int | None = None,
) -> Iterator[Part]:
    """Yield what sub-box i adds to the whole, about ``room`` cells at a time."""
    cuts = net.size + grid.inner_sides(i)
    limits: Any = {"certified": certified, "room": room, "most_exact": most_exact}
    box, sides = grid[i], grid.box.upper / 2 - grid.box.lower / 2
    near = 2 * same_place(grid.box) * sides
    for cells in cell_batches(net, box, grid.box, **limits):
        open_ones = with_facet_in(cells, cuts)
        for c, upper in (divmod(side, 2) for side in grid.inner_sides(i).tolist()):
            place = float((box.upper if upper else box.lower)[c])
            open_ones |= near_cut(cells, c, place, near[c])
        if not certified and len(cuts):
            open_ones |= rounding_may_matter(cells, grid.box)
        yield Part(select(cells, ~open_ones), cells.patterns[open_ones])


def _part(net: ReluNetwork, grid: Grid, certified: bool, i: int) -> Part:
    parts = list(parts_of(net, grid, i, certified=certified, room=CELLS_PER_BATCH))
    cells, patterns = joined([part.cells for part in parts]), [part.patterns for part in parts]
    return Part(cells, distinct(np.concatenate(patterns)))


def _rebuilt(net: ReluNetwork, box: Box, certified: bool, patterns: Patterns) -> list[Cells]:
    # Copied, for a batch is overwritten by the next one.
    return [
        select(cells, np.ones(cells.n, bool))
        for cells in cells_with_patterns(net, box, patterns, certified=certified, room=CELLS_PER_BATCH)
    ]


def _growth(patterns: NDArray[np.uint64], hidden_widths: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many cells there are after each layer: different beginnings of patterns."""
    ends = np.cumsum([(width + 63) // 64 for width in hidden_widths], dtype=np.int64)
    return tuple(len(distinct(np.ascontiguousarray(patterns[:, :end]))) for end in ends.tolist())
