"""Finding the cells of a complex: by a walk through them, in exact arithmetic, by sweeping a line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import compress, product
from operator import and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.complex._cells import Cells, Found, pack_patterns
from pindown.geometry.complex.proportional_units import (
    ProportionalUnits,
    flip_hashes,
    proportional_units,
)
from pindown.geometry.exact.complex import ExactComplex, exact_cells_within, exact_complex
from pindown.geometry.exact.polytope import facets_of, in_order
from pindown.network import ReluNetwork
from pindown.progress import Report


def cells_of(
    net: ReluNetwork,
    box: Box,
    deadline: Deadline,
    max_cells: int,
    certified: bool,
    progress: Report | None = None,
) -> Found:
    """Find the cells of a network, by the fastest way for its dimension."""
    late = deadline.passed
    if net.size == 0 or late:
        return whole_box(net, box, empty=late)
    if net.in_features == 1:
        return cells_on_line(net, box, certified, deadline, max_cells)
    return cells_by_walk(net, box, deadline, max_cells, certified, progress)


def cells_by_walk(
    net: ReluNetwork,
    box: Box,
    deadline: Deadline,
    max_cells: int,
    certified: bool,
    progress: Report | None = None,
) -> Found:
    """Walk through all cells, and leave undecided ones to exact arithmetic if certified."""
    from pindown.geometry._compiled import arrays
    from pindown.geometry.complex._traversal import Walk

    walk = Walk(net, box, counting=False, certified=certified)
    walk.run(deadline=deadline, max_cells=max_cells, progress=progress)
    store, n, d, k = walk.store, walk.n_cells, net.in_features, net.out_features
    assert store is not None
    vertices, facets = (int(walk.counters[i]) for i in (arrays.VERTICES, arrays.FACETS))
    cells = Cells(
        hidden_widths=net.hidden_widths,
        vertex_starts=store.starts[: n + 1, 0].copy(),
        facet_starts=store.starts[: n + 1, 1].copy(),
        coords=store.coords[:vertices],
        facets=store.facets[:facets],
        masks=None if d == 2 else store.masks[:vertices],
        patterns=store.patterns[:n],
        keys=store.keys[:n],
        hashes=walk.hashes,
        flips=flip_hashes(net, ProportionalUnits(*walk.flat[-3:]), walk.hashes),
        maps=store.outputs[:n].reshape(n, d + 1, k),
    )
    growth, complete, parts = walk.growth.copy(), walk.finished, [cells]
    for states in walk.deferred:
        room = max_cells - n
        if room <= 0 or deadline.passed:
            complete = False
            break
        exact = exact_cells_within(net, box, states, budget=deadline.left, max_cells=room)
        parts.append(from_exact(exact, walk.hashes))
        n, complete = n + exact.n_regions, complete and exact.complete
        growth += open_growth(net, states, exact.growth)
    return Found(joined(parts), tuple(map(int, growth)), complete)


def open_growth(
    net: ReluNetwork, states: NDArray[np.int8], growth: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return what a deferred cell adds to the growth: nothing for layers that were decided before."""
    decided = np.array([bool(layer.all()) for layer in net.by_layer(states)])
    return np.where(decided, 0, np.array(growth, dtype=np.int64))


def cells_on_line(
    net: ReluNetwork,
    box: Box,
    certified: bool,
    deadline: Deadline = NEVER,
    max_cells: int | None = None,
) -> Found:
    """Sweep along the one input; the limits are for the exact way, the other is done in no time."""
    n_exact = 0
    if certified:
        from pindown.geometry.complex._certified_line import proved_line

        proved = proved_line(net, box, deadline)
        if proved is None or (max_cells is not None and len(proved.patterns) > max_cells):
            exact = exact_complex(net, box, budget=deadline.left, max_cells=max_cells)
            found = from_exact(exact, unit_hashes(net))
            return Found(found, exact.growth, exact.complete, exact.n_regions)
        ends, patterns, n_exact = proved
    else:
        from pindown.geometry.slices.segment import line_complex

        line = line_complex(net, float(box.lower[0]), float(box.upper[0]))
        ends, patterns = np.concatenate([box.lower, line.breakpoints, box.upper]), line.patterns
    n, size = len(patterns), net.size
    first = np.argmax(patterns[1:] != patterns[:-1], axis=1)  # unit that changes, lowest layer
    labels = np.concatenate([[size], first, [size + 1]])
    cells = _assembled(
        net,
        [ends[i : i + 2, None] for i in range(n)],
        [labels[i : i + 2] for i in range(n)],
        None,
        patterns,
        unit_hashes(net),
    )
    growth = [1 + int(np.sum(first < end)) for end in np.cumsum(net.hidden_widths)]
    return Found(cells, tuple(growth), True, n_exact)


def whole_box(net: ReluNetwork, box: Box, *, empty: bool) -> Found:
    """Return the box as the one cell of an affine network; or no cell at all."""
    d, size = box.dim, net.size
    upper = np.array(list(product((0, 1), repeat=d)))
    corners = np.where(upper == 1, box.upper, box.lower)
    labels = size + np.arange(2 * d)
    masks = (np.uint64(1) << (2 * np.arange(d) + upper).astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    if d == 2:
        corners, labels = corners[[0, 2, 3, 1]], np.array([size + 2, size + 1, size + 3, size])
    cells = _assembled(
        net,
        [] if empty else [corners],
        [] if empty else [labels],
        None if d <= 2 else [] if empty else [masks[:, None]],
        np.zeros((0 if empty else 1, size), bool),
        unit_hashes(net),
    )
    return Found(cells, (0,) * (net.depth - 1) if empty else (), not empty)


def from_exact(exact: ExactComplex, hashes: NDArray[np.uint64]) -> Cells:
    """Round an exact complex to float64 arrays."""
    vertices, labels, masks = [], [], []
    for cell in map(in_order, exact.cells):
        vertices.append(np.array([vertex.fractions for vertex in cell], dtype=float))
        tight = [vertex.tight for vertex in cell]
        everywhere = reduce(and_, tight)  # units that vanish on the whole cell hold no facet
        if exact.box.dim == 2:
            sides = [a & b & ~everywhere for a, b in zip(tight, [*tight[1:], tight[0]], strict=True)]
            labels.append(np.array([_lowest(side) for side in sides]))
            continue
        facets = facets_of(tight)
        on = [[facet >> v & 1 for v in range(len(cell))] for facet in facets]
        shared = [reduce(and_, compress(tight, members)) & ~everywhere for members in on]
        labels.append(np.array([_lowest(facet) for facet in shared]))
        masks.append(_mask_words(np.array(on, dtype=bool)))
    words = max((m.shape[1] for m in masks), default=1)
    padded = [np.pad(m, ((0, 0), (0, words - m.shape[1]))) for m in masks]
    three = padded if exact.box.dim > 2 else None
    return _assembled(exact.net, vertices, labels, three, exact.patterns, hashes)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _mask_words(on: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Turn (facets, vertices) membership into words of facet bits, one row per vertex."""
    n_facets, n = on.shape
    bits = np.zeros((n, (n_facets + 63) // 64 * 64), bool)
    bits[:, :n_facets] = on.T
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


def _assembled(
    net: ReluNetwork,
    vertices: list[Array],
    facets: list[NDArray[np.int64]],
    masks: list[NDArray[np.uint64]] | None,
    patterns: NDArray[np.bool_],
    hashes: NDArray[np.uint64],
) -> Cells:
    """Put per-cell lists into one :class:`Cells`."""
    n, d, k = len(vertices), net.in_features, net.out_features
    with np.errstate(over="ignore", invalid="ignore"):  # exact cells may have maps beyond float64
        A, c = net.affine_of_pattern(patterns) if n else (np.zeros((0, k, d)), np.zeros((0, k)))
    keys = np.bitwise_xor.reduce(np.where(patterns, hashes, np.uint64(0)), axis=1, dtype=np.uint64)
    words = max((m.shape[1] for m in masks), default=1) if masks is not None else 1
    return Cells(
        hidden_widths=net.hidden_widths,
        vertex_starts=_starts(list(map(len, vertices))),
        facet_starts=_starts(list(map(len, facets))),
        coords=np.concatenate([np.zeros((0, d)), *vertices]),
        facets=np.concatenate([np.zeros(0, np.int32), *facets]).astype(np.int32),
        masks=None if masks is None else np.concatenate([np.zeros((0, words), np.uint64), *masks]),
        patterns=pack_patterns(patterns, net.hidden_widths),
        keys=keys,
        hashes=hashes,
        flips=flip_hashes(net, proportional_units(net), hashes),
        maps=np.concatenate([A.transpose(0, 2, 1), c[:, None, :]], axis=1),
    )


def _starts(counts: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def unit_hashes(net: ReluNetwork) -> NDArray[np.uint64]:
    """Return the hash of each unit that keys of cells are made of."""
    return np.random.default_rng(0).integers(0, 2**64, net.size, dtype=np.uint64)


def joined(parts: list[Cells]) -> Cells:
    """Return the cells of one or several lists as one."""
    first = parts[0]
    if len(parts) == 1:
        return first

    def all_of(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    def starts(name: str) -> Any:
        return _starts(np.concatenate([np.diff(getattr(part, name)) for part in parts]))

    masks = None
    if first.masks is not None:
        given = [part.masks for part in parts if part.masks is not None]
        words = max(m.shape[1] for m in given)
        masks = np.concatenate([np.pad(m, ((0, 0), (0, words - m.shape[1]))) for m in given])
    return Cells(
        hidden_widths=first.hidden_widths,
        vertex_starts=starts("vertex_starts"),
        facet_starts=starts("facet_starts"),
        coords=all_of("coords"),
        facets=all_of("facets"),
        masks=masks,
        patterns=all_of("patterns"),
        keys=all_of("keys"),
        hashes=first.hashes,
        flips=first.flips,
        maps=all_of("maps"),
    )
