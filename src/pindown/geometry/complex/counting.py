"""How many linear regions: counted exactly, without building the cells of the last layer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box, as_box
from pindown.network import ReluNetwork
from pindown.notebook import card

MOST_INPUTS = 12  # a box has 2^d corners, and cells many more


@dataclass(frozen=True)
class RegionCount:
    """How many full-dimensional cells a network has on a box.

    Attributes:
        n_regions: Cells found; all of them if ``complete``, else a lower bound.
        complete: Whether the whole box was searched.
        growth: Cells after each hidden layer, as far as the search came.
        certified: Whether every sign was proved or decided in exact arithmetic.
        n_exact: Cells of some layer that were left to exact arithmetic: those with a sign that could not
            be proved; if not certified, those in which rounded signs contradict each other.
        seconds: Time spent, compilation included.
    """

    n_regions: int
    complete: bool
    growth: tuple[int, ...]
    certified: bool
    n_exact: int
    seconds: float

    _repr_html_ = card

    def __str__(self) -> str:
        how = "certified" if self.certified else "float64 signs"
        bound = "" if self.complete else "at least "
        return f"{bound}{self.n_regions:,} regions ({how}, {self.seconds:.2g} s)"


def count_regions(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    n_jobs: int | None = None,
    *,
    certified: bool = False,
) -> int:
    """Return the number of full-dimensional activation cells of a network on a box.

    Args:
        net: The network.
        box: The inputs, full-dimensional.
        n_jobs: Threads; None means one, -1 all cores.
        certified: Prove every sign; undecided ones go to exact rational arithmetic.

    Raises:
        ValueError: If the box does not fit, is flat, or has too many dimensions.

    Two lines that cross in the square make four cells, two that miss each other three:

    >>> cross = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> count_regions(cross, (-1, 1))
    4
    >>> apart = ReluNetwork.from_layers([([[1.0, 0.0], [1.0, 0.0]], [0, 0.5]), ([[1.0, 1.0]], [0])])
    >>> count_regions(apart, (-1, 1))
    3
    """
    return region_count(net, box, n_jobs=n_jobs, certified=certified).n_regions


def region_count(
    net: ReluNetwork,
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    budget: float | None = None,
    certified: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> RegionCount:
    """Count cells within a time budget; see :func:`count_regions`.

    Args:
        net: The network.
        box: The inputs, full-dimensional.
        budget: Seconds; when they are over, the count so far is returned as a lower bound.
        certified: Prove every sign; undecided ones go to exact rational arithmetic.
        n_jobs: Threads; None means one, -1 all cores.
        progress: Called with the count so far, a few times per second.
    """
    began = time.monotonic()
    domain = full_box(box, net.in_features)
    deadline = deadline_of(budget, began)

    def result(n: int, complete: bool, growth: Any = (), n_exact: int = 0) -> RegionCount:
        seconds = time.monotonic() - began
        return RegionCount(n, complete, tuple(map(int, growth)), certified, n_exact, seconds)

    if deadline is not None and deadline <= began:
        return result(0, False)
    if net.size == 0:
        return result(1, True)
    if net.in_features == 1:
        from pindown.geometry.complex.sources import cells_on_line

        found = cells_on_line(net, domain, certified, deadline)
        return result(found.cells.n, found.complete, found.growth, found.n_exact)
    from pindown.geometry.complex.threads import walk_in_threads

    walked = walk_in_threads(net, domain, certified, n_jobs, deadline, progress)
    n, growth, complete = walked.n_cells, walked.growth.copy(), walked.finished
    if len(walked.deferred):
        from pindown.geometry.exact.complex import exact_cells_within

        for states in walked.deferred:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                complete = False
                break
            exact = exact_cells_within(net, domain, states, budget=left)
            n, complete = n + exact.n_regions, complete and exact.complete
            growth += open_growth(net, states, exact.growth)
    return result(n, complete, growth, len(walked.deferred))


def open_growth(
    net: ReluNetwork, states: NDArray[np.int8], growth: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return what a deferred cell adds to the growth: nothing for layers that were decided before."""
    decided = np.array([bool(layer.all()) for layer in net.by_layer(states)])
    return np.where(decided, 0, np.array(growth, dtype=np.int64))


def full_box(box: Box | tuple[ArrayLike, ArrayLike], dim: int) -> Box:
    """Return a full-dimensional box for ``dim`` inputs, or say what is wrong with the one given."""
    domain = as_box(box, dim)
    flat = domain.lower >= domain.upper
    if flat.any():
        i = int(flat.argmax())
        raise ValueError(
            f"the box is flat in coordinate {i} ({domain.lower[i]:g} to {domain.upper[i]:g}); cells "
            "there have no volume. Give it some width, or use along_segment or on_plane."
        )
    if dim > MOST_INPUTS:
        raise ValueError(
            f"all cells can be listed for up to {MOST_INPUTS} inputs; the network takes {dim}. Use "
            "region_at, explore, along_segment or on_plane instead."
        )
    return domain


def deadline_of(budget: float | None, began: float) -> float | None:
    """Return when a budget of seconds ends, on the clock of ``time.monotonic()``."""
    if budget is None:
        return None
    if not budget >= 0:
        raise ValueError(f"a budget is a number of seconds >= 0 or None; got {budget}.")
    return began + budget
