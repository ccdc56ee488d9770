"""Which part of the search to run, in what order, with what time there is."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

from pindown.learn.exact.groups import merge_groups
from pindown.learn.exact.polish import polish
from pindown.learn.exact.problem import Problem
from pindown.learn.exact.refine import refine
from pindown.learn.exact.search import (
    Search,
    can_list,
    descend_from_random_cells,
    examine_all,
    expected_seconds,
)

# An enumeration that is expected to take longer than this many times what is left is not begun.
_HOPELESS = 2.0
_RANDOM_STARTS = 20
_AS_GOOD = 1e-12  # among equals a vertex is preferred: its weights are moderate


def run(search: Search) -> None:
    """Search until the bounds meet or the time is over."""
    search.note()
    points = len(search.problem.distinct()[0])
    if not can_list(points, search.problem.rank, search.remaining):
        descend_from_random_weights(search)
    elif not search.solved:
        seconds = expected_seconds(search.problem, search.width, points)
        table = descend_from_random_cells(search)
        if seconds > search.remaining / 3:  # something to show if it does not end in time
            merge_groups(search, search.remaining / 6)
        if seconds <= _HOPELESS * search.remaining:
            examine_all(search, table, seconds)
        search.offer(polish(table), as_good=_AS_GOOD)
    if not search.solved:
        merge_groups(search, search.remaining)
    search.note(1.0)


def descend_from_random_weights(search: Search) -> None:
    """Find a good network where cells are too many to list: random weights, then downhill."""
    rng = np.random.default_rng(search.seed)
    problem, width = search.problem, search.width
    for _ in range(_RANDOM_STARTS):
        if search.remaining <= 0 or search.solved:
            break
        signs = rng.choice([-1, 1], size=width)
        start = problem.network(signs, rng.normal(size=width * (problem.rank + 1)), 0.0)
        search.offer(refine(start, problem))
        search.note()


@cache
def compile_kernels(loss: str) -> None:
    """Compile the kernels on a toy problem, outside of anybody's budget."""
    X, y = np.array([[-1.0], [0.0], [1.0], [3.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    run(Search(Problem.of(X, y, np.ones(4), loss, 0.0, False), 1, time.monotonic() + 1e6))
