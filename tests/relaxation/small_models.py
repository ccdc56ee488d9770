"""Small models on which bounds are checked in rational numbers: dense, residual, convolutional."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from pindown.model import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import as_fractions
from pindown.model.operations.relu import Relu
from pindown.model.operations.windows import Window


def dense(rng, widths=(2, 4, 3, 2), spread=0.0):
    """Return a dense network whose layers have scales of their own."""
    graph = Builder((1, widths[0]))
    x = graph.input
    for i, (n, m) in enumerate(pairwise(widths)):
        scale = 10.0 ** rng.uniform(-spread, spread, 2)
        x = graph.add(Dense(scale[0] * rng.normal(size=(m, n)), scale[1] * rng.normal(size=m)), x)
        if i < len(widths) - 2:
            x = graph.add(Relu(), x)
    return graph.model(x, input_shape=(widths[0],))


def residual(rng, spread=0.0):
    """Return a network in which tensors are read twice: the input, what enters and leaves a ReLU."""
    graph, scale = Builder((1, 2)), lambda: 10.0 ** rng.uniform(-spread, spread)
    z = graph.add(Dense(scale() * rng.normal(size=(3, 2)), rng.normal(size=3)), graph.input)
    a = graph.add(Relu(), z)
    b = graph.add(Dense(scale() * rng.normal(size=(3, 3)), rng.normal(size=3)), a)
    c = graph.add(Relu(), graph.add(Add(), graph.add(Add(), a, b), z))
    both = graph.add(Add(), c, graph.add(Dense(rng.normal(size=(3, 2))), graph.input))
    return graph.model(graph.add(Dense(scale() * rng.normal(size=(2, 3))), both), input_shape=(2,))


def convolutional(rng, spread=0.0):
    """Return a network of two convolutions on images of two by three."""
    graph, scale = Builder((1, 1, 2, 3)), lambda: 10.0 ** rng.uniform(-spread, spread)
    window = Window((2, 2), (1, 1), (1, 0), (0, 1), (1, 1))
    x = graph.input
    for n, m in ((1, 2), (2, 1)):
        kernel = scale() * rng.normal(size=(m, n, 2, 2))
        x = graph.add(Relu(), graph.add(Convolution(kernel, rng.normal(size=m), window=window), x))
    x = graph.add(Reshape((1, 6)), x)
    return graph.model(graph.add(Dense(rng.normal(size=(2, 6))), x), input_shape=(1, 2, 3))


MAKERS = {"dense": dense, "residual": residual, "convolutional": convolutional}


def tensors_at(model, x):
    """Return every tensor at one input, the input first, flat and in rational numbers."""
    return [
        [Fraction(v) for v in np.ravel(t).tolist()]
        for t in model.walk(as_fractions(np.asarray(x, dtype=float)[None]))
    ]


def exactly(form, values):
    """Return a linear form of rational numbers."""
    pairs = zip(np.ravel(form).tolist(), values, strict=True)
    return sum((Fraction(a) * v for a, v in pairs if a), Fraction(0))


def relu_inputs(model):
    """Return the tensors that enter ReLUs."""
    return sorted({node.inputs[0] for node in model.nodes if isinstance(node.operation, Relu)} - {0})
