"""Small graphs of operations, with numbers so coarse that channels repeat each other by chance."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from pindown.model.builder import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce, Scale
from pindown.model.operations.moves import Concat, Fill, Reshape, Transpose
from pindown.model.operations.operation import as_fractions
from pindown.model.operations.piecewise_linear import Abs, Clip, LeakyRelu, Relu
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.resize import Resize
from pindown.model.operations.windows import Window


def window(size, stride=1, pad=0):
    return Window((size,) * 2, (stride,) * 2, (pad,) * 2, (pad,) * 2, (1, 1))


def conv(kernel, bias=None, stride=1, pad=0, groups=1):
    return Convolution(kernel, bias, window=window(kernel.shape[-1], stride, pad), groups=groups)


class Chain:
    """A graph in the making, whose last tensor is what the next operation takes."""

    def __init__(self, shape):
        self.graph = Builder((1, *shape))
        self.x = self.graph.input

    def add(self, *operations):
        for operation in operations:
            self.x = self.graph.add(operation, self.x)
        return self

    def flat(self):
        return self.add(Reshape((1, int(np.prod(self.x.shape)))))

    @property
    def channels(self):
        return self.x.shape[1]

    def model(self, **facts):
        return self.graph.model(self.x, input_shape=self.graph.input.shape[1:], **facts)


def single(rng, *shape):
    """Numbers in single precision, as in a model file."""
    return rng.standard_normal(shape).astype(np.float32).astype(float)


def coarse(rng, *shape):
    """Small integers, mostly zero."""
    return rng.choice([-2.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0], size=shape)


def rows(rng, out, *shape):
    """Return a kernel and biases, often with a row that is a multiple of another."""
    kernel, bias = coarse(rng, out, *shape), coarse(rng, out)
    kernel[:, 0].flat[0] = 1.0
    if rng.random() < 0.6:
        i, j = rng.choice(out, 2, replace=False)
        t = float(rng.choice([1.0, 2.0, 3.0, -1.0]))
        kernel[j], bias[j] = t * kernel[i], t * bias[i]
    return kernel, bias


def per_channel(rng, n, *values):
    """Return numbers for every channel, often one for all."""
    return np.full(n, rng.choice(values)) if rng.random() < 0.6 else rng.choice(values, size=n)


def random_graph(rng):
    """Return a random small graph of piecewise-linear operations on pictures."""
    chain = Chain((int(rng.integers(1, 3)), 4, 4))
    for _ in range(int(rng.integers(2, 5))):
        _random_layer(chain, rng)
        for _ in range(int(rng.integers(0, 3))):
            _random_passage(chain, rng)
    if rng.random() < 0.5:
        chain.add(Reduce((2, 3), mean=bool(rng.random() < 0.5)))
    chain.flat()
    n = chain.x.shape[1]
    hidden = int(rng.integers(2, 5))
    chain.add(Dense(coarse(rng, hidden, n), coarse(rng, hidden)), Relu(), Dense(coarse(rng, 2, hidden)))
    return chain.model()


def _random_layer(chain, rng):
    kind = rng.choice(["conv", "conv", "residual", "concat"])
    n, pad = chain.channels, int(rng.integers(0, 2))
    size = 3 if min(chain.x.shape[2:]) >= 3 or pad else 1
    if kind == "conv":
        out = int(rng.integers(2, 5))
        kernel, bias = rows(rng, out, n, size, size)
        chain.add(conv(kernel, bias if rng.random() < 0.8 else None, int(rng.integers(1, 3)), pad))
        return
    start, branches = chain.x, []
    out = int(rng.integers(2, 4))
    for k in range(2):
        chain.x = start
        identity = k and rng.random() < 0.3 and (kind == "concat" or out == n)
        if not identity:
            chain.add(conv(*rows(rng, out, n, 3, 3), 1, 1))
            _random_passage(chain, rng, keep_shape=True)
        branches.append(chain.x)
    operation = Add((1, int(rng.choice([1, -1])))) if kind == "residual" else Concat(1)
    chain.x = chain.graph.add(operation, *branches)
    if rng.random() < 0.7:
        chain.add(Relu())


def _random_passage(chain, rng, keep_shape=False):
    n = chain.channels
    options = [
        Relu,
        Relu,
        Abs,
        lambda: LeakyRelu(per_channel(rng, n, 0.0, 0.5, 1.0)[:, None, None]),
        lambda: Clip(float(rng.integers(-1, 1)), float(rng.integers(1, 3))),
        lambda: BatchNorm(
            *(per_channel(rng, n, *values) for values in ((0, 1, 2), (-1, 0), (0, 1), (1, 4))), 0.0
        ),
        lambda: Scale(*(per_channel(rng, n, *values)[:, None, None] for values in ((1, 2), (-1, 0)))),
        lambda: conv(
            np.stack([per_channel(rng, n, *v) for v in [(-1, 0, 1)] * 9], 1).reshape(n, 1, 3, 3),
            per_channel(rng, n, -1, 0),
            *(1, 1, n),
        ),
    ]
    if not keep_shape:
        copies = int(rng.integers(1, 3))
        options += [
            lambda: conv(per_channel(rng, copies * n, 1, 2).reshape(-1, 1, 1, 1), None, groups=n),
            lambda: Fill((0, 0, 1, 0), (0, 0, 0, 1), float(rng.integers(-1, 2))),
            lambda: Transpose((0, 1, 3, 2)),
            lambda: Resize.of(chain.x.shape, scales=(1, 1, 2, 1), coordinate="asymmetric"),
        ]
        if min(chain.x.shape[2:]) >= 2:
            options += [
                lambda: MaxPool(window(2, 2)),
                lambda: AveragePool(window(2, 1, 1), count_padding=bool(rng.random() < 0.5)),
            ]
    chain.add(options[int(rng.integers(len(options)))]())


def scaled_by_chance(model, rng):
    """Return the graph with all numbers of an operation times one, so that their sums are rounded."""

    def scaled(operation):
        arrays = {field.name: getattr(operation, field.name) for field in fields(operation)}
        parts = {
            name: value * rng.uniform(0.5, 1.5)
            for name, value in arrays.items()
            if isinstance(value, np.ndarray) and name != "variance"
        }
        return replace(operation, **parts) if parts else operation

    nodes = tuple(node._replace(operation=scaled(node.operation)) for node in model.nodes)
    return replace(model, nodes=nodes)


def exact_values(model, rows):
    """Return the outputs in rational arithmetic."""
    return model.evaluate(as_fractions(rows)).reshape(len(rows), -1)


def dyadic_rows(model, rng, n=3, low=-2.0, high=2.0):
    """Return inputs that rational arithmetic holds in few digits."""
    return np.round(rng.uniform(low, high, (n, model.in_features)) * 8) / 8
