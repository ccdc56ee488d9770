"""Networks for tests of folds: random ones, transparent ones, and their cells in exact arithmetic."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np

from pindown.box import Box, as_box
from pindown.geometry.exact.complex import exact_complex
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds


def gaussian(rng, widths) -> ReluNetwork:
    """Standard normal weights and biases: general with probability one."""
    return ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairwise(widths)]
    )


def transparent(rng, widths, box: Box) -> ReluNetwork:
    """A general network with margin 1/4 or more: in every layer units 0 and 1 sum to 1/2 or more."""
    layers = []
    for n, m in pairwise(widths):
        W, b = rng.standard_normal((m, n)), rng.standard_normal(m)
        if len(layers) < len(widths) - 2:
            tilt = rng.standard_normal(n)
            reach = _reach(layers, n, tilt, box)
            W[1], b[1] = -W[0] + 0.5 * tilt / reach, 1 - b[0]
        layers.append((W, b))
    return ReluNetwork.from_layers(layers)


def _reach(layers, n, tilt, box):
    """The largest ``|tilt . a|`` that interval arithmetic allows for the inputs a of the next layer."""
    net = ReluNetwork.from_layers([*layers, (tilt[None], [0])])
    last = interval_bounds(net, box)[-1]
    return max(float(np.abs(last.lower).max()), float(np.abs(last.upper).max()))


def exact_cells(net: ReluNetwork, box) -> SimpleNamespace:
    """The complex of a network from rational arithmetic, with the attributes that folds need."""
    cells = exact_complex(net, box)
    A, c = net.affine_of_pattern(cells.patterns)
    corners = [np.array([[float(x) for x in v] for v in vertices]) for vertices in cells.vertices]
    pairs = np.array(cells.neighbours, dtype=int).reshape(-1, 2)
    number: dict = {}
    switches = cells.patterns[pairs[:, 0]] != cells.patterns[pairs[:, 1]]
    return SimpleNamespace(
        net=net,
        box=as_box(box, net.in_features),
        n_regions=cells.n_regions,
        complete=cells.complete,
        patterns=cells.patterns,
        A=A,
        c=c,
        volumes=np.array([float(v) for v in cells.volumes]),
        neighbours=pairs,
        neighbour_units=switches.argmax(axis=1),
        offsets=np.cumsum([0, *map(len, corners)]),
        cell_vertices=np.concatenate(corners),
        vertex_ids=np.array([number.setdefault(v, len(number)) for vs in cells.vertices for v in vs]),
    )


def symmetric_copy(net: ReluNetwork, rng) -> ReluNetwork:
    """The same function: units permuted and scaled by positive factors that the next layer undoes."""
    layers, before, order = [], np.ones(net.in_features), np.arange(net.in_features)
    for i, (W, b) in enumerate(net.layers):
        rows = rng.permutation(len(b)) if i < net.depth - 1 else np.arange(len(b))
        scale = np.exp(rng.standard_normal(len(b))) if i < net.depth - 1 else np.ones(len(b))
        layers.append(((W[:, order] / before)[rows] * scale[:, None], b[rows] * scale))
        before, order = scale, rows
    return ReluNetwork.from_layers(layers)
