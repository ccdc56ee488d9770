r"""Lower bounds when there are too many tuples: groups of samples, each with its own network.

.. math:: \min_f \sum_j \ell(f(x_j), y_j) \;\ge\; \sum_g \min_{f_g} \sum_{j \in g} \ell(f_g(x_j), y_j),

for any division into groups. Larger groups give a better bound and cost more; merging them two by two
raises the bound for as long as there is time. The networks of the groups are starting points for all
samples.
"""

from __future__ import annotations

import time

import numpy as np

from pindown.learn.exact.problem import Problem
from pindown.learn.exact.refine import refine
from pindown.learn.exact.search import (
    Search,
    can_list,
    descend_from_random_cells,
    examine_all,
    expected_seconds,
)

# A group with fewer samples than this per weight of its network costs next to nothing.
_SAMPLES_PER_WEIGHT = 2
# The first division takes about this share of the time; each merging multiplies the work many times
# over.
_FIRST_SHARE = 0.2


def merge_groups(search: Search, seconds: float) -> None:
    """Raise the lower bound by groups of samples, for some seconds."""
    problem, width = search.problem, search.width
    reach = time.monotonic() + seconds
    order = np.random.default_rng(search.seed).permutation(len(problem.X))
    smallest = _SAMPLES_PER_WEIGHT * (width * (problem.rank + 1) + problem.biased)
    if len(order) < 2 * smallest:
        return
    size = _first_size(search, smallest, _FIRST_SHARE * seconds)
    groups = np.array_split(order, max(2, len(order) // size))
    bounds = np.zeros(len(groups))
    while len(groups) > 1:
        for index, rows in enumerate(groups):
            part = problem.part(rows)
            if not _affordable(part, width, reach - time.monotonic()):
                return
            bounds[index] = max(bounds[index], _bound_of_part(search, part, reach))
            search.lower = max(search.lower, min(float(bounds.sum()), search.upper))
            search.note(index / len(groups))
        pairs = range(0, len(groups), 2)
        bounds = np.array([bounds[i : i + 2].sum() for i in pairs])
        groups = [np.concatenate(groups[i : i + 2]) for i in pairs]


def _affordable(part: Problem, width: int, seconds: float) -> bool:
    n_points = len(part.X)
    return can_list(n_points, part.rank, seconds) and expected_seconds(part, width, n_points) <= seconds


def _first_size(search: Search, smallest: int, seconds: float) -> int:
    size, n = smallest, len(search.problem.X)
    while size < n // 2:
        larger = min(n // 2, size + max(1, size // 4))
        if expected_seconds(search.problem, search.width, larger) * n / larger > seconds:
            break
        size = larger
    return size


def _bound_of_part(search: Search, part: Problem, reach: float) -> float:
    """Return a lower bound for a group, and try its network on all samples."""
    inner = Search(part, search.width, reach, search.n_jobs, search.seed)
    table = descend_from_random_cells(inner)
    if not inner.solved:
        examine_all(inner, table, expected_seconds(part, search.width, len(part.X)))
    search.n_tuples += inner.n_tuples
    search.n_programs += inner.n_programs
    search.offer(refine(inner.network, search.problem))
    return inner.lower
