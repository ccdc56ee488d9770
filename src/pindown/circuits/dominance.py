r"""Which affine maps can be left out of a maximum.

:math:`\ell_i \le \max_{j \ne i} \ell_j` everywhere exactly if some convex combination of the others has
the slope of :math:`\ell_i` and is nowhere below it. A linear program in float64 proposes the
combination, rational arithmetic checks it: what is left out is left out rightly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pindown.circuits.radon import Map
from pindown.programs import Attempt, linear_program
from pindown.rational import solve

# Weights that the solver leaves below this are zero at the vertex it means.
_NO_WEIGHT = 1e-9


def without_dominated(maps: Sequence[Map], chosen: tuple[int, ...]) -> tuple[int, ...]:
    """Return the indices that are left when maps below the maximum of the others are removed.

    Args:
        maps: Rows ``(g, b)`` of fractions.
        chosen: Indices of the maps under the maximum.

    Example:
        Zero is below the larger of x and -x, one is not:

        >>> lines = [(Fraction(s), Fraction(b)) for s, b in ((1, 0), (-1, 0), (0, 0), (0, 1))]
        >>> without_dominated(lines, (0, 1, 2)), without_dominated(lines, (0, 1, 3))
        ((0, 1), (0, 1, 3))
    """
    kept = list(_highest_of_each_slope(maps, chosen))
    for i in list(kept):
        others = [j for j in kept if j != i]
        if others and _is_dominated(maps, i, others):
            kept = others
    return tuple(sorted(kept))


def _highest_of_each_slope(maps: Sequence[Map], chosen: Sequence[int]) -> list[int]:
    best: dict[Map, int] = {}
    for i in chosen:
        rival = best.get(maps[i][:-1])
        if rival is None or maps[i][-1] > maps[rival][-1]:
            best[maps[i][:-1]] = i
    return list(best.values())


def _is_dominated(maps: Sequence[Map], i: int, others: Sequence[int]) -> bool:
    try:
        table = np.array([[float(v) for v in maps[j]] for j in others])
    except OverflowError:  # leaving a map in is never wrong
        return False
    equal = np.vstack([table[:, :-1].T, np.ones(len(others))])
    target = np.array([*(float(v) for v in maps[i][:-1]), 1.0])
    found = linear_program(-table[:, -1], equal=(equal, target), lower=0.0, attempts=Attempt("highs-ds"))
    if found.x is None:
        return False
    support = [j for j, weight in zip(others, found.x, strict=True) if weight > _NO_WEIGHT]
    if not support:
        return False
    rows = [[maps[j][k] for j in support] for k in range(len(maps[i]) - 1)]
    rows.append([Fraction(1)] * len(support))
    weights = solve(rows, [*maps[i][:-1], Fraction(1)])
    if weights is None or min(weights) < 0:
        return False
    return bool(sum(w * maps[j][-1] for w, j in zip(weights, support, strict=True)) >= maps[i][-1])
