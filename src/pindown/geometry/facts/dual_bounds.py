r"""Proved upper bounds on an output over each cell of a complex, by weak duality.

On the cell of a pattern, :math:`f(x) = a \cdot x + c` and :math:`s_u z_u(x) \ge 0` for every unit u,
with :math:`s_u = 1` if it is on and -1 if off. So on the cell, for any multipliers
:math:`\lambda \ge 0`,

.. math::
    f(x) \le f(x) + \sum_u \lambda_u s_u z_u(x) = R \cdot x + r \le \max_{y \in B} R \cdot y + r.

Multipliers at the facets through the best vertex make the bound tight. They come from float64 and need
not be right: the inequality holds for all of them, and what rounding can do to R and r is added.

Only patterns enter. If these are proved to be all patterns on the box, the largest of the bounds is a
proved bound for the box.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.geometry.complex._cells import following
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts._values_and_slopes import Ids
from pindown.geometry.tuning import DUAL_BOUND_CELLS_PER_BLOCK
from pindown.network import ReluNetwork
from pindown.rounding import TINY, add_up, gamma

# Relative to the terms of a form: far more than rounding moves it. Facets this near may be meant.
_NEAR = 1e-9
_DAMPING = 1e-10  # of normals of length one: far above rounding, and its square far below
MIN_PRODUCT = 1e-250  # below it, rounding is no longer relative


def upper_bounds(cx: PolyhedralComplex, output: int, sign: float = 1.0) -> Array:
    """Bound ``sign`` times an output from above on every cell, for the exact real-number network.

    Args:
        cx: The complex; its patterns are trusted, its vertices and maps are not.
        output: Which output.
        sign: 1 for the output, -1 for its negative.

    Returns:
        One bound per cell, (n,); infinite where float64 cannot tell.

    Example:
        On the two cells of ``|x|`` for x between -1 and 2:

        >>> from pindown.geometry.complex.polyhedral import polyhedral_complex
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> upper_bounds(polyhedral_complex(net, (-1, 2)), 0).round(9)
        array([1., 2.])
    """
    bounds = np.full(cx.n_regions, np.inf)
    if smallest_product(cx.net) < MIN_PRODUCT:
        return bounds
    for start in range(0, cx.n_regions, DUAL_BOUND_CELLS_PER_BLOCK):
        part = np.arange(start, min(start + DUAL_BOUND_CELLS_PER_BLOCK, cx.n_regions))
        with np.errstate(over="ignore", invalid="ignore"):
            found = _block_bounds(cx, part, output, sign)
        bounds[part] = np.where(np.isfinite(found), found, np.inf)
    return bounds


@lru_cache(maxsize=8)
def smallest_product(net: ReluNetwork) -> float:
    """Return a number below all products of weights or biases other than 0, one of each layer."""
    sizes = [np.abs(part) for W, b in net.layers for part in (dense(W), b)]
    return prod(float(np.min(size, initial=1.0, where=size > 0)) for size in sizes)


class _Goals(NamedTuple):
    """What to bound: affine forms with the sizes of their terms, patterns, and points to be tight at."""

    slopes: Array
    offsets: Array
    slope_terms: Array
    offset_terms: Array
    patterns: NDArray[np.bool_]
    points: Array

    def of(self, which: Ids) -> _Goals:
        """Return some of the goals."""
        a, c, a_terms, c_terms, patterns, points = self
        forms = a[which], c[which], a_terms[which], c_terms[which]
        return _Goals(*forms, patterns[which], points[which])


def _block_bounds(cx: PolyhedralComplex, cells: Ids, output: int, sign: float) -> Array:
    """Return the bounds of some cells, which follow each other."""
    net, box, n = cx.net, cx.box, len(cells)
    patterns = cx.cells.unpacked_patterns(slice(int(cells[0]), int(cells[-1]) + 1))
    a, c, a_terms, c_terms = _forms(net, patterns, net.depth - 1, np.full(n, output))
    a, c = sign * a, sign * c
    best = _best_rows(cx, cells, a)
    point = np.clip(cx.cell_vertices[best], box.lower, box.upper)
    goals = _Goals(a, c, a_terms, c_terms, patterns, point)
    bounds = _dual_bounds(net, box, goals, *_facets_through(cx, cells, best), within=inf)
    # In a cell thinner than float64 resolves, opposite vertices are one, and their facets mixed up.
    there = np.einsum("nd,nd->n", a, point) + c
    loose = np.flatnonzero(bounds - there > _NEAR * (a_terms @ _reach(box) + c_terms))
    if len(loose):
        again = _dual_bounds(net, box, goals.of(loose), *_all_facets(cx, cells[loose]), within=_NEAR)
        bounds[loose] = np.fmin(bounds[loose], again)
    return bounds


def _reach(box: Box) -> Array:
    return 2.0 * np.maximum(np.abs(box.lower), np.abs(box.upper))


def _dual_bounds(
    net: ReluNetwork, box: Box, goals: _Goals, owner: Ids, label: Ids, within: float
) -> Array:
    """Bound goals by facets (whose, which), of them those within a relative distance of the point."""
    a, c, point, reach = goals.slopes, goals.offsets, goals.points, _reach(box)
    normals, offsets, terms, offset_terms = _sides(net, box, goals.patterns, owner, label)
    heights = np.einsum("nd,nd->n", normals, point[owner]) + offsets
    sizes = terms @ reach + offset_terms
    near = np.flatnonzero(np.abs(heights) <= within * sizes)
    owner, normals, heights, sizes = owner[near], normals[near], heights[near], sizes[near]
    damping = 0.0 if within == inf else _DAMPING
    weights = _multipliers(a, owner, normals, damping) * (label[near] < net.size)
    slope, value = a.copy(), np.einsum("nd,nd->n", a, point) + c
    np.subtract.at(slope, owner, weights[:, None] * normals)
    np.subtract.at(value, owner, weights * heights)
    scale = goals.slope_terms @ reach + goals.offset_terms
    np.add.at(scale, owner, weights * sizes)
    spread = np.maximum(slope * (box.lower - point), slope * (box.upper - point)).sum(axis=1)
    # Every number above is a sum of these terms; four times, for they are rounded too.
    most = int(np.bincount(owner, minlength=1).max())
    operations = sum(net.widths) + 2 * net.depth + 8 * net.in_features + most + 64
    slack = 4.0 * gamma(operations) * scale + TINY  # what underflows is never so much
    np.add.at(slack, owner, TINY * weights)
    return add_up(value + spread, slack)


def _forms(
    net: ReluNetwork, patterns: NDArray[np.bool_], level: int, units: Ids
) -> tuple[Array, Array, Array, Array]:
    """Return the affine forms of units of one layer where patterns hold, and the sizes of their terms.

    Entry i is for unit ``units[i]`` of that layer and pattern i: slope (n, d), offset (n,), and the same
    with absolute values of all weights.
    """
    W, b = dense(net.layers[level].weight), net.layers[level].bias
    rows, offset = W[units], b[units]
    sizes, offset_sizes = np.abs(rows), np.abs(offset)
    masks = net.by_layer(patterns)
    for below in range(level - 1, -1, -1):
        W, b = dense(net.layers[below].weight), net.layers[below].bias
        rows, sizes = rows * masks[below], sizes * masks[below]
        offset, offset_sizes = offset + rows @ b, offset_sizes + sizes @ np.abs(b)
        rows, sizes = rows @ W, sizes @ np.abs(W)
    return rows, offset, sizes, offset_sizes


def _best_rows(cx: PolyhedralComplex, cells: Ids, slopes: Array) -> Ids:
    """Return for each cell the row of its vertex that is farthest along the slope."""
    starts = cx.offsets[cells[0] : cells[-1] + 2]
    owner = np.repeat(np.arange(len(cells)), np.diff(starts))
    heights = np.einsum("vd,vd->v", slopes[owner], cx.cell_vertices[starts[0] : starts[-1]])
    order = np.lexsort([-heights, owner])
    return starts[0] + order[starts[:-1] - starts[0]]


def _facets_through(cx: PolyhedralComplex, cells: Ids, rows: Ids) -> tuple[Ids, Ids]:
    """Return pairs (number in ``cells``, label of a facet of that cell through its row)."""
    data, own = cx.cells, np.arange(len(cells))
    if data.dim == 1:
        return own, data.facets[rows].astype(np.int64)
    if data.dim == 2:
        before = np.empty(len(data.coords), np.int64)
        before[following(data.vertex_starts)] = np.arange(len(data.coords))
        places = np.concatenate([rows, before[rows]])
        return np.concatenate([own, own]), data.facets[places].astype(np.int64)
    assert data.masks is not None
    bits = np.unpackbits(data.masks[rows].view(np.uint8), axis=1, bitorder="little")
    owner, bit = np.nonzero(bits)
    return owner, data.facets[data.facet_starts[cells[owner]] + bit].astype(np.int64)


def _all_facets(cx: PolyhedralComplex, cells: Ids) -> tuple[Ids, Ids]:
    """Return pairs (number in ``cells``, label of a facet of that cell)."""
    labels = [cx.cells.labels(i) for i in cells.tolist()]
    owner = np.repeat(np.arange(len(cells)), [len(own) for own in labels])
    return owner, np.concatenate(labels).astype(np.int64)


def _sides(
    net: ReluNetwork, box: Box, patterns: NDArray[np.bool_], owner: Ids, label: Ids
) -> tuple[Array, Array, Array, Array]:
    """Return facets as ``normal . x + offset <= 0`` inside: normals, offsets, and the sizes of terms."""
    m, d = len(label), net.in_features
    normals, offsets, terms, offset_terms = np.zeros((m, d)), np.zeros(m), np.zeros((m, d)), np.zeros(m)
    side = np.flatnonzero(label >= net.size)
    axis, upper = np.divmod(label[side] - net.size, 2)
    normals[side, axis] = np.where(upper, 1.0, -1.0)
    offsets[side] = np.where(upper, -box.upper[axis], box.lower[axis])
    terms[side], offset_terms[side] = np.abs(normals[side]), np.abs(offsets[side])
    starts = np.cumsum([0, *net.hidden_widths])
    for level in range(net.depth - 1):
        at = np.flatnonzero((label >= starts[level]) & (label < starts[level + 1]))
        if not len(at):
            continue
        states = patterns[owner[at]]
        G, g, sizes, offset_sizes = _forms(net, states, level, label[at] - starts[level])
        out = np.where(states[np.arange(len(at)), label[at]], -1.0, 1.0)
        normals[at], offsets[at] = G * out[:, None], g * out
        terms[at], offset_terms[at] = sizes, offset_sizes
    return normals, offsets, terms, offset_terms


def _multipliers(slopes: Array, owner: Ids, normals: Array, damping: float) -> Array:
    """Write each slope as a non-negative combination of its normals, as well as possible.

    Damping keeps the combination small where normals are nearly opposite, for little of the fit.
    """
    n, d = slopes.shape
    weights = np.zeros(len(owner))
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=n)
    first = np.cumsum(counts) - counts
    # Scale-free normals: units may be of any size, and singularity should not depend on it.
    lengths = np.linalg.norm(normals, axis=1)
    unit = normals / np.where(lengths > 0, lengths, 1.0)[:, None]
    simple = np.flatnonzero(counts == d) if damping == 0.0 else np.zeros(0, np.intp)
    known = np.all(np.isfinite(slopes), axis=1)
    known[owner[~np.all(np.isfinite(unit), axis=1)]] = False
    simple = simple[known[simple]]
    counts[~known] = 0  # beyond float64: no multipliers, and no finite bound
    if len(simple):
        places = order[first[simple][:, None] + np.arange(d)]
        matrices = unit[places].transpose(0, 2, 1)
        weights[places] = (np.linalg.pinv(matrices) @ slopes[simple][:, :, None])[:, :, 0]
    counts[simple] = 0
    for i in np.flatnonzero(counts):
        places = order[first[i] : first[i] + counts[i]]
        matrix = np.vstack([unit[places].T, damping * np.eye(counts[i])])
        weights[places] = nnls(matrix, np.append(slopes[i], np.zeros(counts[i])))[0]
    weights = np.where(lengths > 0, weights / np.where(lengths > 0, lengths, 1.0), 0.0)
    return np.where(np.isfinite(weights), np.maximum(weights, 0.0), 0.0)
