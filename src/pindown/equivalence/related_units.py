r"""Units that repeat each other, or that do nothing, read off the weights alone.

Write unit i of a hidden layer as its row :math:`r_i = (W_i, b_i)`. If :math:`r_j = t\, r_i` with
:math:`t > 0`, then :math:`\rho(z_j) = t\, \rho(z_i)` and the two are one unit; with :math:`t < 0` they
are opposite, and :math:`\rho(z) - \rho(-z) = z` makes the pair a linear map. Candidates are found by
sorting random projections of the rows, so the search is near-linear in the number of weights, and every
candidate is then compared entry by entry.

Phuong and Lampert 2020, "Functional vs. parametric equivalence of ReLU networks" (which networks are
equal only by permuting and rescaling units).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from math import copysign, inf

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense
from pindown.deadline import Deadline, OutOfTime
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF, two_product


@dataclass(frozen=True)
class ParallelUnits:
    """Units of one layer whose rows ``(W_i, b_i)`` are multiples of the first one's.

    Exact multiples of each other are one group. If further units are parallel to these to rounding,
    one unit of each exact group stands for it in another group.

    Attributes:
        units: Their indices in the layer, ascending.
        factors: The multiples t: 1 for a duplicate, positive for a proportional unit, negative for an
            opposite one. The first is 1.
        exact: For each, whether the rows are multiples number for number, or only to rounding.
    """

    units: tuple[int, ...]
    factors: tuple[float, ...]
    exact: tuple[bool, ...]

    def count(self, kind: str, *, exact: bool) -> int:
        """Count units after the first: ``"duplicate"``, ``"proportional"`` or ``"opposite"`` ones."""
        kinds = [_kind(factor) for factor in self.factors[1:]]
        return sum(k == kind and e == exact for k, e in zip(kinds, self.exact[1:], strict=True))

    def mergeable(self, idle: Collection[int] = ()) -> tuple[int, ...]:
        """Units that the first positive, or the first negative, exact multiple makes superfluous.

        Args:
            idle: Units that go anyway and so cannot take over the work of others.
        """
        triples = zip(self.units, self.factors, self.exact, strict=True)
        exact = [(unit, factor) for unit, factor, same in triples if same and unit not in idle]
        positive, negative = ([u for u, t in exact if s * t > 0] for s in (1, -1))
        return tuple(sorted(positive[1:] + negative[1:]))


@dataclass(frozen=True)
class LayerRelations:
    """What the weights alone say about the units of one hidden layer.

    Attributes:
        layer: Number of the ReLU layer, from 1.
        width: Number of units.
        constant: Units without incoming weights: their value is ``relu(bias)`` for every input.
        unused: Units without outgoing weights.
        parallel: Groups of two or more units with proportional rows.
    """

    layer: int
    width: int
    constant: tuple[int, ...]
    unused: tuple[int, ...]
    parallel: tuple[ParallelUnits, ...]

    def count(self, kind: str, *, exact: bool) -> int:
        """Count duplicate, proportional or opposite units, as :meth:`ParallelUnits.count`."""
        return sum(group.count(kind, exact=exact) for group in self.parallel)

    @property
    def redundant(self) -> tuple[int, ...]:
        """Units that can go, by exact equalities, without changing the function."""
        idle = {*self.constant, *self.unused}
        merged = {unit for group in self.parallel for unit in group.mergeable(idle)}
        return tuple(sorted(idle | merged))


@on_network
def unit_relations(
    net: ReluNetwork, *, relative: float = 1e-6, seed: int = 0, budget: float = inf
) -> tuple[LayerRelations, ...]:
    r"""Find constant, unused, duplicate, proportional and opposite units of every hidden layer.

    Args:
        net: The network, layers dense or sparse.
        relative: Rows count as multiples of each other if, scaled to length one, they differ by at
            most this; the default forgives float32 rounding. Exact multiples are marked as such.
        seed: Chooses the projections. The result depends on it only with probability zero (for rows
            that are parallel to the tolerance only, below 1e-14 for a pair).
        budget: Seconds it may take.

    Raises:
        OutOfTime: If the budget does not suffice; a ``TimeoutError``.

    >>> W = [[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0], [0.0, 0.0]]
    >>> net = ReluNetwork.from_layers([(W, [1, 2, -1, 5]), (np.ones((1, 4)), [0])])
    >>> layer, = unit_relations(net)
    >>> layer.constant, layer.parallel[0].units, layer.parallel[0].factors
    ((3,), (0, 1, 2), (1.0, 2.0, -1.0))
    """
    deadline = Deadline.after(budget)
    return tuple(
        _layer_relations(i, layer, following, relative, seed, deadline)
        for i, (layer, following) in enumerate(zip(net.layers, net.layers[1:], strict=False), 1)
    )


def _layer_relations(
    number: int, layer: Affine, following: Affine, relative: float, seed: int, deadline: Deadline
) -> LayerRelations:
    constant = tuple(np.flatnonzero(_squared_lengths(layer.weight) == 0.0).tolist())
    constant = tuple(unit for unit in constant if not _row(layer, unit)[:-1].any())
    unused = tuple(np.flatnonzero(~_used_columns(following.weight)).tolist())
    groups = _parallel_groups(layer, set(constant), relative, seed, deadline)
    return LayerRelations(number, layer.out_features, constant, unused, groups)


def _squared_lengths(weight: Matrix) -> Array:
    """Return the squared length of each row; tiny rows may read 0."""
    if sp.issparse(weight):
        return np.asarray((weight * weight).sum(axis=1)).reshape(-1)
    return np.einsum("ij,ij->i", weight, weight)


def _used_columns(weight: Matrix) -> NDArray[np.bool_]:
    if sp.issparse(weight):
        return np.bincount(weight.indices, minlength=weight.shape[1]) > 0
    return np.asarray(weight.any(axis=0))


def _row(layer: Affine, unit: int) -> Array:
    """Return one unit's weights and bias."""
    W, b = layer
    if not sp.issparse(W):
        return np.append(W[unit], b[unit])
    row = np.zeros(layer.in_features + 1)  # by hand: SciPy's indexing takes ten times as long
    stored = slice(W.indptr[unit], W.indptr[unit + 1])
    row[W.indices[stored]], row[-1] = W.data[stored], b[unit]
    return row


def _parallel_groups(
    layer: Affine, skip: set[int], relative: float, seed: int, deadline: Deadline
) -> tuple[ParallelUnits, ...]:
    """Group exact multiples; then the first units of these groups, if parallel to the tolerance."""
    d = layer.in_features
    keys = _projection_keys(layer, seed)
    row = partial(_row, layer)
    units = [unit for unit in range(layer.out_features) if unit not in skip]
    # Keys of exact multiples differ by rounding only, at most |g|, about sqrt(d + 1), times the row's.
    rounding = 8.0 * (d + 10) * UNIT_ROUNDOFF * np.sqrt(d + 1)
    exact = _sweep(units, keys, rounding, lambda a, b: _are_multiples(row(a), row(b)), deadline)
    firsts = sorted(min(group) for group in exact)
    # What is parallel to the tolerance only moves a key, normally distributed, by eight deviations.
    window = rounding + 8.0 * relative
    near = _sweep(
        firsts, keys, window, lambda a, b: _multiple(row(a), row(b), relative) is not None, deadline
    )
    found = [_from_lowest(group, row, relative) for group in (*exact, *near) if len(group) > 1]
    return tuple(sorted(found, key=lambda group: group.units))


def _sweep(
    units: list[int], keys: Array, window: float, related: Callable[[int, int], bool], deadline: Deadline
) -> list[list[int]]:
    """Put every unit into the first group whose first unit has keys near its own and is related."""
    order = np.array(units, dtype=np.intp)[np.argsort(np.abs(keys[units, 0]), kind="stable")]
    apart = np.diff(np.abs(keys[order, 0]), prepend=-np.inf, append=np.inf) > window
    alone = apart[:-1] & apart[1:]
    groups = [[unit] for unit in order[alone].tolist()]
    firsts, start = np.empty((len(groups) + len(units), 2)), len(groups)  # keys of groups, by size
    for unit in order[~alone].tolist():
        if deadline.passed:
            raise OutOfTime("the units could not be compared in the time given.")
        here = keys[unit]
        while start < len(groups) and abs(here[0]) - abs(firsts[start, 0]) > window:
            start += 1
        known = firsts[start : len(groups)]
        near = [(np.abs(known - sign * here) <= window).all(axis=1) for sign in (1.0, -1.0)]
        candidates = (start + np.flatnonzero(near[0] | near[1])).tolist()
        mine = next((groups[g] for g in candidates if related(groups[g][0], unit)), None)
        if mine is None:
            firsts[len(groups)] = here
            groups.append([unit])
        else:
            mine.append(unit)
    return groups


def _projection_keys(layer: Affine, seed: int) -> Array:
    """Return two random projections of each row, scaled to length one: equal up to sign if parallel."""
    g = np.random.default_rng(seed).standard_normal((layer.in_features + 1, 2))
    W, b = _moderate_rows(layer)
    length = np.sqrt(_squared_lengths(W) + b**2)
    keys = np.asarray(W @ g[:-1]) + b[:, None] * g[-1]
    return keys / np.where(length > 0.0, length, 1.0)[:, None]


def _moderate_rows(layer: Affine) -> tuple[Matrix, Array]:
    """Return W and b with rows times powers of two, where their squares would leave float64."""
    W, b = layer
    largest = np.maximum(np.asarray(dense(abs(W).max(axis=1))).reshape(-1), np.abs(b))
    exponents = -np.frexp(largest)[1]
    if np.all((largest == 0.0) | (np.abs(exponents) < 400)):
        return W, b
    if not sp.issparse(W):
        return np.ldexp(W, exponents[:, None]), np.ldexp(b, exponents)
    scaled = W.copy()
    scaled.data = np.ldexp(W.data, np.repeat(exponents, np.diff(W.indptr)))
    return scaled, np.ldexp(b, exponents)


def _from_lowest(group: list[int], row: Callable[[int], Array], relative: float) -> ParallelUnits:
    """Order the group by unit and give all factors relative to its lowest unit."""
    units = tuple(sorted(group))
    first = row(units[0])
    relations = [_multiple(first, row(unit), 4.0 * relative) for unit in units]
    factors, exact = zip(*[relation or (1.0, False) for relation in relations], strict=True)
    return ParallelUnits(units, factors, exact)


def _multiple(a: Array, b: Array, relative: float) -> tuple[float, bool] | None:
    """Return ``(t, exact)`` with ``b = t a``, exactly or to the tolerance, or None."""
    pivot = int(np.argmax(np.abs(a)))
    if b[pivot] == 0.0:
        return None
    ratio = float(b[pivot]) / float(a[pivot])
    factor = copysign(max(abs(ratio), SMALLEST), ratio)  # too small for float64, but not zero
    if _are_multiples(a, b):
        return factor, True
    p, q = a / np.abs(a).max(), b / np.abs(b).max()
    p, q = p / np.linalg.norm(p), copysign(1.0, factor) * q / np.linalg.norm(q)
    if np.linalg.norm(p - q) > relative:
        return None
    return (copysign(1.0, factor) if abs(abs(factor) - 1.0) <= relative else factor), False


def _are_multiples(a: Array, b: Array) -> bool:
    """Return whether ``b = t a`` for a number t other than zero, in exact arithmetic."""
    pivot = int(np.argmax(np.abs(a)))
    return bool(b[pivot] != 0.0) and _same_products(b, a[pivot], a, b[pivot])


def _same_products(a: Array, b: float, c: Array, d: float) -> bool:
    """Return whether ``a b == c d`` in exact arithmetic, entry by entry."""
    # Fractions in [1/2, 1) and exponents apart: products of the fractions cannot leave float64.
    (a_part, a_power), (b_part, b_power) = np.frexp(a), np.frexp(b)
    (c_part, c_power), (d_part, d_power) = np.frexp(c), np.frexp(d)
    shift = np.clip(a_power + b_power - c_power - d_power, -4, 4)  # at 2 they differ for sure
    (first, first_error), (second, second_error) = (
        two_product(a_part, b_part),
        two_product(c_part, d_part),
    )
    same = (np.ldexp(first, shift) == second) & (np.ldexp(first_error, shift) == second_error)
    return bool(np.all(same))


def _kind(factor: float) -> str:
    if factor < 0:
        return "opposite"
    return "duplicate" if factor == 1.0 else "proportional"
