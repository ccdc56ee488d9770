r"""Maxima over many affine maps as signed sums of maxima over at most n + 1 of them.

Among n + 2 affine maps of n variables some combination with :math:`\sum_i c_i = 0` is constant (Radon).
So the weighted mean of the maps in :math:`I = \{c_i > 0\}` and that of the maps in
:math:`J = \{c_i < 0\}` differ by a constant :math:`\kappa`. If :math:`\kappa \ge 0` the smallest map in
J is nowhere above the largest in I, and inclusion-exclusion over J ends in zero:

.. math:: \max_S = \sum_{\emptyset \ne T \subseteq J} (-1)^{|T| + 1} \max_{S \setminus T} .

If :math:`\kappa < 0`, I and J change roles. Repeated, this leaves sets of n + 1 maps or fewer.

Before that, maps that are nowhere on top are left out: :math:`\ell_i \le \max_{j \ne i} \ell_j`
everywhere exactly if some convex combination of the others has the slope of :math:`\ell_i` and is
nowhere below it. A linear program in float64 proposes the combination, rational arithmetic checks it:
what is left out is left out rightly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from pindown.circuits.tuning import MAX_TERMS, ZERO_WEIGHT
from pindown.programs import Attempt, linear_program
from pindown.rational import null_vector, solve

Map: TypeAlias = tuple[Any, ...]  # (g_1, ..., g_n, b)


def reduced_sets(
    maps: Sequence[Map], terms: Iterable[tuple[Any, tuple[int, ...]]], *, max_terms: int = MAX_TERMS
) -> dict[tuple[int, ...], Any]:
    """Return the coefficients of maxima over small sets whose sum is the same function.

    Args:
        maps: Rows ``(g, b)`` of fractions.
        terms: Pairs of a coefficient and the indices of maps under a maximum.
        max_terms: Give up beyond this many maxima.

    Returns:
        For each set of at most n + 1 indices its coefficient, none of them zero.

    Raises:
        ValueError: If more than ``max_terms`` maxima would be needed.

    Example:
        Of three lines through one point, the middle one is never alone on top:

        >>> lines = [(Fraction(s), Fraction(0)) for s in (-1, 0, 1)]
        >>> reduced_sets(lines, [(1, (0, 1, 2))])
        {(0, 2): 1}
    """
    most = len(maps[0])
    # Sets of one length at a time, longest first: equal sets have met before they are expanded.
    pending: dict[int, dict[tuple[int, ...], Any]] = {}
    for c, chosen in terms:
        _add(pending, chosen, c)
    while pending and max(pending) > most:
        for chosen, c in pending.pop(max(pending)).items():
            for sign, smaller in expand(maps, chosen):
                _add(pending, smaller, sign * c)
            if sum(map(len, pending.values())) > max_terms:
                raise ValueError(
                    f"bringing the maxima to {most} maps each takes more than max_terms={max_terms} "
                    "of them; raise max_terms, or compile without the reduction, which needs more depth."
                )
    return {chosen: c for group in pending.values() for chosen, c in group.items() if c}


def expand(maps: Sequence[Map], chosen: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Write one maximum over n + 2 maps or more as a signed sum over smaller sets.

    >>> lines = [(Fraction(s), Fraction(b)) for s, b in ((-1, 0), (0, 1), (1, 0))]
    >>> expand(lines, (0, 1, 2))  # max{-x, 1, x}
    [(1, (1, 2)), (1, (0, 1)), (-1, (1,))]
    """
    n = len(maps[0]) - 1
    some = chosen[: n + 2]
    rows = [[Fraction(maps[i][k]) for i in some] for k in range(n)] + [[Fraction(1)] * (n + 2)]
    c = null_vector(rows)
    gap = sum(weight * maps[i][-1] for weight, i in zip(c, some, strict=True))
    plus = [i for weight, i in zip(c, some, strict=True) if weight > 0]
    minus = [i for weight, i in zip(c, some, strict=True) if weight < 0]
    if gap < 0 or (gap == 0 and len(plus) < len(minus)):
        minus = plus
    return [
        ((-1) ** (size + 1), tuple(i for i in chosen if i not in left_out))
        for size in range(1, len(minus) + 1)
        for left_out in combinations(minus, size)
    ]


def _add(pending: dict[int, dict[tuple[int, ...], Any]], chosen: tuple[int, ...], c: Any) -> None:
    group = pending.setdefault(len(chosen), {})
    total = group.get(chosen, 0) + c
    if total:
        group[chosen] = total
    else:
        group.pop(chosen, None)
        if not group:
            del pending[len(chosen)]


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
    support = [j for j, weight in zip(others, found.x, strict=True) if weight > ZERO_WEIGHT]
    if not support:
        return False
    rows = [[maps[j][k] for j in support] for k in range(len(maps[i]) - 1)]
    rows.append([Fraction(1)] * len(support))
    weights = solve(rows, [*maps[i][:-1], Fraction(1)])
    if weights is None or min(weights) < 0:
        return False
    return bool(sum(w * maps[j][-1] for w, j in zip(weights, support, strict=True)) >= maps[i][-1])
