"""Networks with redundancy put in on purpose: the function stays, the network grows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pindown.affine import dense
from pindown.geometry import Box, interval_bounds
from pindown.network import ReluNetwork


def random_net(rng, widths, *, integers=False, scale=1.0):
    """Return a dense network with Gaussian weights, or small integers."""

    def draw(*shape):
        if integers:
            return rng.integers(-3, 4, size=shape).astype(float)
        # Single precision, as in a model file.
        return (scale * rng.standard_normal(shape)).astype(np.float32).astype(float)

    return ReluNetwork.from_layers([(draw(m, n), draw(m)) for n, m in pairwise(widths)])


def pairs(net):
    return [(dense(W).copy(), b.copy()) for W, b in net.layers]


def _insert(layers, layer, row, bias, column):
    """Add one unit to a hidden layer."""
    W, b = layers[layer]
    C, c = layers[layer + 1]
    layers[layer] = np.vstack([W, row]), np.append(b, bias)
    layers[layer + 1] = np.hstack([C, np.reshape(column, (-1, 1))]), c


def dead(layers, layer, rng):
    """A unit that nothing can switch on, and one that nothing reads."""
    W, _ = layers[layer]
    C, _ = layers[layer + 1]
    _insert(layers, layer, np.zeros(W.shape[1]), -1.0, rng.integers(-2, 3, len(C)).astype(float))
    _insert(layers, layer, rng.integers(-2, 3, W.shape[1]).astype(float), 1.0, np.zeros(len(C)))


def constant(layers, layer, rng):
    """A unit without inputs, taken back in the next bias."""
    W, _ = layers[layer]
    C, c = layers[layer + 1]
    column = rng.integers(-2, 3, len(C)).astype(float)
    layers[layer + 1] = C, c - 0.5 * column
    _insert(layers, layer, np.zeros(W.shape[1]), 0.5, column)


def duplicate(layers, layer, rng):
    """A unit twice as large, with a column that is taken from the old one's."""
    W, b = layers[layer]
    C, c = layers[layer + 1]
    unit = int(rng.integers(len(b)))
    column = rng.integers(-2, 3, len(C)).astype(float)
    C = C.copy()
    C[:, unit] -= 2.0 * column
    layers[layer + 1] = C, c
    _insert(layers, layer, 2.0 * W[unit], 2.0 * b[unit], column)


def split(layers, layer, rng):
    """One unit as two, whose outgoing weights add up."""
    W, b = layers[layer]
    C, c = layers[layer + 1]
    unit = int(rng.integers(len(b)))
    C = C.copy()
    C[:, unit] *= 0.25
    column = 3.0 * C[:, unit]
    layers[layer + 1] = C, c
    _insert(layers, layer, W[unit], b[unit], column)


def opposite_pair(layers, layer, rng):
    """relu(u) - relu(-u) - u = 0, the last term by a pair of its own that cancels it."""
    W, _ = layers[layer]
    C, _ = layers[layer + 1]
    row = rng.integers(-2, 3, W.shape[1]).astype(float)
    row[0] = 3.0
    column = rng.integers(-2, 3, len(C)).astype(float)
    column[0] = 1.0
    for factor, sign in ((1.0, 1.0), (-1.0, -1.0), (2.0, -0.5), (-2.0, 0.5)):
        _insert(layers, layer, factor * row, factor, sign * column)


def identity_layer(layers, layer, rng):
    """relu(relu(z)) = relu(z)."""
    n = len(layers[layer][1])
    order = rng.permutation(n)
    C, c = layers[layer + 1]
    layers[layer + 1] = C[:, order], c
    layers.insert(layer + 1, (np.eye(n)[order], np.zeros(n)))


def split_layer(layers, layer, rng):
    """ReLU splitting: some units as opposite pairs whose difference the next layer takes."""
    W, b = layers[layer]
    n = len(b)
    chosen = rng.random(n) < 0.5
    rows, biases, reads = [], [], np.zeros((n, 0))
    for unit in range(n):
        for sign in (1.0, -1.0) if chosen[unit] else (1.0,):
            rows.append(sign * W[unit])
            biases.append(0.0 if chosen[unit] else b[unit])
            reads = np.hstack([reads, sign * np.eye(n)[:, unit : unit + 1]])
    layers[layer] = np.array(rows), np.array(biases)
    layers.insert(layer + 1, (reads, np.where(chosen, b, 0.0)))


def always_on(layers, layer, rng):
    """A linear function of the layer's input, on throughout [-1, 1]^d by its bias, and its negative."""
    W, _ = layers[layer]
    C, _ = layers[layer + 1]
    row = rng.integers(-2, 3, W.shape[1]).astype(float)
    column = rng.integers(-2, 3, len(C)).astype(float)
    big = _power_above(layers[:layer], row)
    _insert(layers, layer, row, big, column)
    _insert(layers, layer, 2.0 * row, big, -0.5 * column)
    C, c = layers[layer + 1]
    layers[layer + 1] = C, c - 0.5 * big * column


def _power_above(below, row):
    """Return a power of two above ``2 |row . a|`` for all inputs a of the layer on the cube."""
    net = ReluNetwork.from_layers([*below, (2.0 * row[None], [0.0])])
    low, high = interval_bounds(net, Box.cube(net.in_features, -1, 1))[-1]
    return 2.0 ** np.ceil(np.log2(max(1.0, -low[0], high[0])) + 1)


KINDS = {
    kind.__name__: kind
    for kind in (dead, constant, duplicate, split, opposite_pair, identity_layer, split_layer, always_on)
}


def redundant(net, rng, kinds):
    """Return the same function with redundancy of the given kinds at random places."""
    layers = pairs(net)
    for kind in kinds:
        KINDS[kind](layers, int(rng.integers(len(layers) - 1)), rng)
    return ReluNetwork.from_layers(layers)


def dyadic_points(rng, n, d, low=-2.0, high=2.0):
    """Return short numbers, so that exact arithmetic stays cheap."""
    return np.round(rng.uniform(low, high, size=(n, d)) * 64) / 64
