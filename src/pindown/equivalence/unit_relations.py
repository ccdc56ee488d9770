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

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix
from pindown.network import ReluNetwork

_SPLITTER = 2.0**27 + 1.0  # cuts a float64 into two halves whose products are exact


@dataclass(frozen=True)
class ParallelUnits:
    """Units of one layer whose rows ``(W_i, b_i)`` are multiples of the first one's.

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


def unit_relations(
    net: ReluNetwork, *, relative: float = 1e-6, seed: int = 0
) -> tuple[LayerRelations, ...]:
    r"""Find constant, unused, duplicate, proportional and opposite units of every hidden layer.

    Args:
        net: The network, layers dense or sparse.
        relative: Rows count as multiples of each other if, scaled to length one, they differ by at
            most this; the default forgives float32 rounding. Exact multiples are marked as such.
        seed: Chooses the projections. The result depends on it only with probability zero.

    >>> W = [[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0], [0.0, 0.0]]
    >>> net = ReluNetwork.from_layers([(W, [1, 2, -1, 5]), (np.ones((1, 4)), [0])])
    >>> layer, = unit_relations(net)
    >>> layer.constant, layer.parallel[0].units, layer.parallel[0].factors
    ((3,), (0, 1, 2), (1.0, 2.0, -1.0))
    """
    return tuple(
        _layer_relations(i, layer, following, relative, seed)
        for i, (layer, following) in enumerate(zip(net.layers, net.layers[1:], strict=False), 1)
    )


def _layer_relations(
    number: int, layer: Affine, following: Affine, relative: float, seed: int
) -> LayerRelations:
    constant = tuple(np.flatnonzero(_squared_lengths(layer.weight) == 0.0).tolist())
    constant = tuple(unit for unit in constant if not _row(layer, unit)[:-1].any())
    unused = tuple(np.flatnonzero(~_used_columns(following.weight)).tolist())
    groups = _parallel_groups(layer, set(constant), relative, seed)
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
    weights = W[[unit]].toarray()[0] if sp.issparse(W) else W[unit]
    return np.append(weights, b[unit])


def _parallel_groups(
    layer: Affine, skip: set[int], relative: float, seed: int
) -> tuple[ParallelUnits, ...]:
    keys = _projection_keys(layer, seed)
    row = partial(_row, layer)
    window = 8.0 * relative * np.sqrt(layer.in_features + 1)  # a key moves by at most |g| times the row
    groups: list[list[tuple[int, float, bool]]] = []
    open_groups: list[int] = []  # those whose first key is within the window of the current one
    for unit in np.argsort(np.abs(keys[:, 0]), kind="stable").tolist():
        if unit in skip:
            continue
        here = keys[unit]
        open_groups = [g for g in open_groups if abs(here[0]) - abs(keys[groups[g][0][0], 0]) <= window]
        for g in open_groups:
            first = groups[g][0][0]
            if not _keys_agree(keys[first], here, window):
                continue
            relation = _multiple(row(first), row(unit), relative)
            if relation is not None:
                groups[g].append((unit, *relation))
                break
        else:
            groups.append([(unit, 1.0, True)])
            open_groups.append(len(groups) - 1)
    found = [_from_lowest(group, row, relative) for group in groups if len(group) > 1]
    return tuple(sorted(found, key=lambda group: group.units))


def _projection_keys(layer: Affine, seed: int) -> Array:
    """Return two random projections of each row, scaled to length one: equal up to sign if parallel."""
    g = np.random.default_rng(seed).standard_normal((layer.in_features + 1, 2))
    W, b = layer
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        length = np.sqrt(_squared_lengths(W) + b**2)
        keys = (np.asarray(W @ g[:-1]) + b[:, None] * g[-1]) / length[:, None]
    # Rows whose squares leave float64 all get key 0, and are then compared with each other.
    return np.where(np.isfinite(keys), keys, 0.0)


def _keys_agree(a: Array, b: Array, window: float) -> bool:
    return bool(np.abs(a - b).max() <= window or np.abs(a + b).max() <= window)


def _from_lowest(
    group: list[tuple[int, float, bool]], row: Callable[[int], Array], relative: float
) -> ParallelUnits:
    """Order the group by unit and give all factors relative to its lowest unit."""
    units = tuple(sorted(unit for unit, _, _ in group))
    first = row(units[0])
    relations = [_multiple(first, row(unit), 4.0 * relative) for unit in units]
    factors, exact = zip(*[relation or (1.0, False) for relation in relations], strict=True)
    return ParallelUnits(units, factors, exact)


def _multiple(a: Array, b: Array, relative: float) -> tuple[float, bool] | None:
    """Return ``(t, exact)`` with ``b = t a``, exactly or to the tolerance, or None."""
    pivot = int(np.argmax(np.abs(a)))
    if b[pivot] == 0.0:
        return None
    if _same_products(b, a[pivot], a, b[pivot]):
        return float(b[pivot] / a[pivot]), True
    p, q = a / np.abs(a).max(), b / np.abs(b).max()
    cosine_sign = np.sign(a[pivot]) * np.sign(b[pivot])
    p, q = p / np.linalg.norm(p), cosine_sign * q / np.linalg.norm(q)
    if np.linalg.norm(p - q) > relative:
        return None
    factor = float(b[pivot] / a[pivot])
    return (float(np.sign(factor)) if abs(abs(factor) - 1.0) <= relative else factor), False


def _same_products(a: Array, b: float, c: Array, d: float) -> bool:
    """Return whether ``a b == c d`` in exact arithmetic, entry by entry."""
    with np.errstate(over="ignore", invalid="ignore"):
        (first, first_error), (second, second_error) = _two_product(a, b), _two_product(c, d)
        same = (first == second) & (first_error == second_error)
    return bool(np.all(same))


def _two_product(a: Array, b: float) -> tuple[Array, Array]:
    """Return the rounded product and its exact rounding error (Dekker)."""
    product = a * b
    a_high, b_high = _high_half(a), _high_half(np.asarray(b))
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _high_half(a: Array) -> NDArray[np.float64]:
    scaled = _SPLITTER * a
    return scaled - (scaled - a)


def _kind(factor: float) -> str:
    if factor < 0:
        return "opposite"
    return "duplicate" if factor == 1.0 else "proportional"
