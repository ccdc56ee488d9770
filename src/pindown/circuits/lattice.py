r"""Maxima of minima of affine maps: the form in which a function is read off its pieces.

.. math:: f(x) = \max_i \min_{j \in S_i} \ell_j(x)

Ovchinnikov 2002; Mukherjee 2020, Theorem 2.2.1 uses the signed sums of maxima that it turns into here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.circuits._radon import Map
from pindown.circuits.arithmetic import Net, alike, network
from pindown.circuits.extrema import maximum, minimum
from pindown.circuits.max_affine import MaxAffineSum, compile_max_affine, map_row
from pindown.circuits.tuning import MAX_TERMS


@dataclass(frozen=True, eq=False, repr=False)
class LatticeForm:
    r"""The function :math:`\max_i \min_{j \in S_i} \ell_j`.

    Attributes:
        maps: The :math:`\ell_j` as rows :math:`(g_1, \dots, g_n, b)`.
        groups: The sets :math:`S_i` of indices. One that contains another is left out: it adds nothing.

    Example:
        A tent: 0, or the lower of x and 2 - x.

        >>> tent = LatticeForm.of([[1, 0], [-1, 2], [0, 0]], [[0, 1], [2]])
        >>> tent, [int(tent.at([x])) for x in (-1, 0, 1, 2, 3)]
        (LatticeForm(1 input, maximum of 2 minima over 3 maps, exact), [0, 0, 1, 0, 0])
    """

    maps: tuple[Map, ...]
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, maps: Sequence[Sequence[Any]], groups: Iterable[Iterable[int]]) -> LatticeForm:
        """Build from rows ``(g, b)`` and sets of their indices."""
        given = [map_row(row) for row in maps]
        lengths = {len(row) for row in given}
        if len(lengths) != 1 or min(lengths) < 2:
            raise ValueError(
                f"maps must be rows (g_1, ..., g_n, b) of one length n + 1 >= 2; "
                f"got lengths {sorted(lengths)}."
            )
        (length,) = lengths
        flat = alike([v for row in given for v in row], "maps")
        rows = [tuple(flat[i : i + length]) for i in range(0, len(flat), length)]
        sets = {frozenset(index(j) for j in group) for group in groups}
        if not sets or not all(sets) or not all(0 <= j < len(rows) for group in sets for j in group):
            raise ValueError(f"groups must be non-empty sets of indices below {len(rows)}, one or more.")
        smallest = [group for group in sets if not any(other < group for other in sets)]
        return cls(tuple(rows), tuple(sorted(tuple(sorted(group)) for group in smallest)))

    @property
    def in_features(self) -> int:
        """Number n of variables."""
        return len(self.maps[0]) - 1

    @property
    def exact(self) -> bool:
        """Whether all numbers are fractions."""
        return isinstance(self.maps[0][0], Fraction)

    def at(self, x: Sequence[Any]) -> Any:
        """Evaluate one point in the arithmetic of the numbers given."""
        if len(x) != self.in_features:
            raise ValueError(f"the function takes {self.in_features} inputs; got {len(x)}.")
        point = [Fraction(v) for v in x] if self.exact else [float(v) for v in x]
        values = [sum(g * t for g, t in zip(row, point, strict=False)) + row[-1] for row in self.maps]
        return max(min(values[j] for j in group) for group in self.groups)

    def __call__(self, X: ArrayLike) -> Array:
        """Evaluate rows (N, n) in float64: (N,)."""
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
        table = np.array(self.maps, dtype=float)
        values = rows @ table[:, :-1].T + table[:, -1]
        return np.max([values[:, list(group)].min(axis=1) for group in self.groups], axis=0)

    def as_max_affine(self, *, max_terms: int = MAX_TERMS) -> MaxAffineSum:
        r"""Return the same function as a signed sum of maxima.

        With :math:`m_i = \min_{S_i} \ell_j`, inclusion-exclusion gives
        :math:`\max_i m_i = \sum_{T \ne \emptyset} (-1)^{|T| + 1} \min_{i \in T} m_i`, and a minimum of
        minima is one minimum over the union of their sets.

        Raises:
            ValueError: If more than ``max_terms`` terms arise.

        >>> LatticeForm.of([[1, 0], [-1, 2], [0, 0]], [[0, 1], [2]]).as_max_affine().at([1])
        Fraction(1, 1)
        """
        found: dict[frozenset[int], int] = {}
        for group in map(frozenset, self.groups):
            # max(f, m) = f + m - min(f, m), where f is a signed sum of minima already
            added = {group: 1}
            for union, c in found.items():
                added[union | group] = added.get(union | group, 0) - c
            for union, c in added.items():
                found[union] = found.get(union, 0) + c
            found = {union: c for union, c in found.items() if c}
            if len(found) > max_terms:
                raise ValueError(
                    f"the maximum of {len(self.groups)} minima takes more than max_terms={max_terms} "
                    "signed maxima; raise max_terms, or compile with shallow=False."
                )
        rows = tuple(tuple(-v for v in row) for row in self.maps)
        one = Fraction(1) if self.exact else 1.0
        terms = tuple((-c * one, tuple(sorted(union))) for union, c in found.items())
        return MaxAffineSum(rows, terms)

    def __repr__(self) -> str:
        inputs = "1 input" if self.in_features == 1 else f"{self.in_features} inputs"
        return (
            f"LatticeForm({inputs}, maximum of {len(self.groups)} minima over {len(self.maps)} maps"
            f"{', exact' if self.exact else ''})"
        )


def compile_lattice(f: LatticeForm, *, shallow: bool = True, max_terms: int = MAX_TERMS) -> Net:
    r"""Return a network that computes f on all of space.

    Args:
        f: The function of n variables.
        shallow: Whether the depth must be at most :math:`\lceil \log_2(n + 1) \rceil + 1`; the size can
            then be exponential in the number of maps. Otherwise trees of minima under a tree of maxima
            are built, of depth :math:`\lceil \log_2 |\text{groups}| \rceil +
            \lceil \log_2 \max_i |S_i| \rceil + 1` and small size.
        max_terms: Limit for the shallow form.

    Returns:
        A rational network if f is exact, one in float64 otherwise.

    Example:
        >>> tent = LatticeForm.of([[1, 0], [-1, 2], [0, 0]], [[0, 1], [2]])
        >>> [len(compile_lattice(tent, shallow=shallow).layers) for shallow in (True, False)]
        [2, 3]

    Mukherjee 2020, Theorem 2.2.1 and Lemma 2.A.4.
    """
    if not isinstance(f, LatticeForm):
        raise TypeError(f"compile_lattice takes a LatticeForm; got {type(f).__name__}.")
    if shallow:
        return compile_max_affine(f.as_max_affine(max_terms=max_terms), max_terms=max_terms)
    rows = [network([([row[:-1]], [row[-1]])], exact=f.exact) for row in f.maps]
    lower = [minimum([rows[j] for j in group], gates=3).network for group in f.groups]
    return maximum(lower, gates=3).network
