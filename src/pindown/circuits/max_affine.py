r"""Signed sums of maxima of affine maps: a form that every continuous piecewise linear function has.

.. math:: f(x) = \sum_j c_j \max_{i \in S_j} \ell_i(x), \qquad \ell_i(x) = g_i \cdot x + b_i

Here it is brought to sets of at most n + 1 maps, in exact arithmetic, and compiled into a network with
:math:`\lceil \log_2 (n + 1) \rceil` hidden layers.

Mukherjee 2020, Theorem 2.2.1, where the small sets are cited from Wang and Sun 2005; the reduction in
:func:`reduced_sets` is self-contained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits._radon import Map, reduced_sets, without_dominated
from pindown.circuits.arithmetic import (
    Net,
    alike,
    compose,
    linear_combination,
    network,
)
from pindown.circuits.extrema import rectified_maxima
from pindown.circuits.tuning import MAX_TERMS


@dataclass(frozen=True, eq=False, repr=False)
class MaxAffineSum:
    r"""The function :math:`\sum_j c_j \max_{i \in S_j} \ell_i`.

    Attributes:
        maps: The :math:`\ell_i` as rows :math:`(g_1, \dots, g_n, b)`.
        terms: Pairs of :math:`c_j` and the indices :math:`S_j`, ascending.

    Example:
        ``|x| - |y|`` as a sum of two maxima:

        >>> f = MaxAffineSum.of([(1, [[1, 0, 0], [-1, 0, 0]]), (-1, [[0, 1, 0], [0, -1, 0]])])
        >>> f, f.at([3, -5])
        (MaxAffineSum(2 inputs, 2 terms of up to 2 maps, exact), Fraction(-2, 1))
    """

    maps: tuple[Map, ...]
    terms: tuple[tuple[Any, tuple[int, ...]], ...]

    @classmethod
    def of(cls, terms: Iterable[tuple[Any, Sequence[Sequence[Any]]]]) -> MaxAffineSum:
        """Build from pairs of a coefficient and the maps under the maximum, rows ``(g, b)``."""
        given = [(c, [map_row(row) for row in rows]) for c, rows in terms]
        lengths = {len(row) for _, rows in given for row in rows}
        if len(lengths) != 1 or min(lengths) < 2 or not all(rows for _, rows in given):
            raise ValueError(
                f"each term needs one or more maps (g_1, ..., g_n, b) of one length n + 1 >= 2; "
                f"got lengths {sorted(lengths)}."
            )
        (length,) = lengths
        flat = alike(
            [*(v for _, rows in given for row in rows for v in row), *(c for c, _ in given)],
            "coefficients and maps",
        )
        numbers = iter(flat)
        index: dict[Map, int] = {}
        sets = []
        for _, rows in given:
            keys = [tuple(next(numbers) for _ in range(length)) for _ in rows]
            sets.append(tuple(sorted({index.setdefault(key, len(index)) for key in keys})))
        merged: dict[tuple[int, ...], Any] = {}
        for chosen, c in zip(sets, numbers, strict=True):
            merged[chosen] = merged.get(chosen, 0) + c
        return cls(tuple(index), tuple((c, chosen) for chosen, c in merged.items()))

    @classmethod
    def difference(cls, plus: Sequence[Sequence[Any]], minus: Sequence[Sequence[Any]]) -> MaxAffineSum:
        r"""Return :math:`\max_i \ell_i - \max_j m_j`, a difference of two convex functions.

        >>> MaxAffineSum.difference([[1, 0], [-1, 0]], [[0, 1]]).at([3])  # |x| - 1
        Fraction(2, 1)
        """
        return cls.of([(1, plus), (-1, minus)])

    @property
    def in_features(self) -> int:
        """Number n of variables."""
        return len(self.maps[0]) - 1

    @cached_property
    def exact(self) -> bool:
        """Whether all numbers are fractions."""
        return all(isinstance(v, Fraction) for row in self.maps for v in row) and all(
            isinstance(c, Fraction) for c, _ in self.terms
        )

    def at(self, x: Sequence[Any]) -> Any:
        """Evaluate one point in the arithmetic of the numbers given."""
        if len(x) != self.in_features:
            raise ValueError(f"the function takes {self.in_features} inputs; got {len(x)}.")
        point = [Fraction(v) for v in x] if self.exact else [float(v) for v in x]
        values = [sum(g * t for g, t in zip(row, point, strict=False)) + row[-1] for row in self.maps]
        return sum(c * max(values[i] for i in chosen) for c, chosen in self.terms)

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate rows (N, n) in float64: (N,)."""
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
        table = np.array(self.maps, dtype=float)
        values = rows @ table[:, :-1].T + table[:, -1]
        total = np.zeros(len(rows))
        for c, chosen in self.terms:
            total += float(c) * values[:, list(chosen)].max(axis=1)
        return total

    def reduced(self, *, max_terms: int = MAX_TERMS) -> MaxAffineSum:
        """Return the same function with at most n + 1 maps under each maximum.

        Args:
            max_terms: Give up beyond this many maxima.

        Raises:
            ValueError: If more maxima than that would be needed.
        """
        exact = [tuple(Fraction(v) for v in row) for row in self.maps]
        pruned = [
            (c, without_dominated(exact, chosen) if len(chosen) > len(self.maps[0]) else chosen)
            for c, chosen in self.terms
        ]
        found = reduced_sets(exact, pruned, max_terms=max_terms)
        terms = tuple((c, chosen) for chosen, c in found.items())
        return MaxAffineSum(self.maps, terms or ((self.terms[0][0] * 0, (0,)),))

    def __repr__(self) -> str:
        largest = max(len(chosen) for _, chosen in self.terms)
        return (
            f"MaxAffineSum({self.in_features} inputs, {len(self.terms)} terms of up to {largest} maps"
            f"{', exact' if self.exact else ''})"
        )


def map_row(values: Any) -> Map:
    """Return an affine map as a tuple, or say what one is."""
    if not isinstance(values, Iterable):
        raise TypeError(f"a map is a row (g_1, ..., g_n, b) of numbers; got {values!r}.")
    return tuple(values)


def compile_max_affine(f: MaxAffineSum, *, max_terms: int = MAX_TERMS, reduce: bool = True) -> Net:
    r"""Return a network that computes f on all of space.

    Args:
        f: The function of n variables.
        max_terms: Limit for the reduction to small sets.
        reduce: Whether to bring the sets to n + 1 maps first; then the depth is at most
            :math:`\lceil \log_2(n + 1) \rceil + 1`. Without, it is that of the largest set, and the
            network is often much smaller.

    Returns:
        A rational network if f is exact, one in float64 otherwise.

    Example:
        The largest of six numbers, each an affine map of the plane: two hidden layers.

        >>> rows = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [1, 1, -1], [-1, -1, -1]]
        >>> net = compile_max_affine(MaxAffineSum.of([(1, rows)]))
        >>> len(net.layers), net([5, -2])
        (3, [Fraction(5, 1)])

    Mukherjee 2020, Theorem 2.2.1.
    """
    if not isinstance(f, MaxAffineSum):
        raise TypeError(f"compile_max_affine takes a MaxAffineSum; got {type(f).__name__}.")
    g = f.reduced(max_terms=max_terms) if reduce else f
    return hinge_network(*_hinged(g), exact=f.exact)


def hinge_network(
    affine: Sequence[Any], hinges: Mapping[tuple[Map, ...], Any], *, exact: bool = False
) -> Net:
    r"""Return :math:`\ell(x) + \sum_j c_j \max\{0, d_{j1}(x), \dots, d_{jm_j}(x)\}` as a network.

    Args:
        affine: The map :math:`\ell` as a row ``(g, b)``.
        hinges: For each tuple of maps :math:`d_{j1}, \dots` its coefficient :math:`c_j`.
        exact: Whether to build it over the rationals.

    >>> hinge_network([1, 0], {((-1, 0),): 2}, exact=True)([-3])  # x + 2 relu(-x)
    [Fraction(3, 1)]
    """
    by_length: dict[int, list[tuple[Any, tuple[Map, ...]]]] = {}
    for rows, c in hinges.items():
        by_length.setdefault(len(rows), []).append((c, rows))
    parts = [_sum_of_hinges(terms, exact=exact) for terms in by_length.values()]
    *slope, offset = affine
    if any(slope) or not parts:
        parts.append(network([(_numbers([slope], exact), _numbers([offset], exact))], exact=exact))
        offset = 0
    total = linear_combination([1] * len(parts), parts)
    if not offset:
        return total
    return compose(network([([[1]], _numbers([offset], exact))], exact=exact), total)


def _hinged(f: MaxAffineSum) -> tuple[list[Fraction], dict[tuple[Map, ...], Fraction]]:
    r"""Write f as an affine map plus :math:`\sum_j c_j \max\{0, d_1, \dots, d_m\}`, equal ones merged.

    In every set the least map, in the order of its numbers, is taken out of the maximum.
    """
    maps = [tuple(Fraction(v) for v in row) for row in f.maps]
    affine = [Fraction(0)] * len(maps[0])
    hinges: dict[tuple[Map, ...], Fraction] = {}
    for c, chosen in f.terms:
        weight = Fraction(c)
        base, *others = sorted(maps[i] for i in chosen)
        affine = [total + weight * v for total, v in zip(affine, base, strict=True)]
        if others:
            rows = [[u - v for u, v in zip(row, base, strict=True)] for row in others]
            # Multiples of one another are one: the leading number, positive by the order, becomes 1.
            lead = next((v for v in rows[0] if v), Fraction(1))
            key = tuple(tuple(v / lead for v in row) for row in rows)
            hinges[key] = hinges.get(key, Fraction(0)) + weight * lead
    return affine, {key: c for key, c in hinges.items() if c}


def _sum_of_hinges(terms: Sequence[tuple[Any, tuple[Map, ...]]], *, exact: bool) -> Net:
    """Return the sum of rectified maxima of sets of one length; all trees stand side by side."""
    rows = [row for _, chosen in terms for row in chosen]
    affine = network(
        [(_numbers([row[:-1] for row in rows], exact), _numbers([row[-1] for row in rows], exact))],
        exact=exact,
    )
    trees = rectified_maxima(len(terms[0][1]), len(terms), exact=exact)
    add = network([(_numbers([[c for c, _ in terms]], exact), [0])], exact=exact)
    return compose(add, compose(trees, affine))


def _numbers(values: Any, exact: bool) -> Any:
    return values if exact else np.array(values, dtype=float)
