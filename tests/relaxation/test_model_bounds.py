"""Bounds of models, operation by operation."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.box import Box
from pindown.model import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce, Scale
from pindown.model.operations.moves import Reshape, Transpose
from pindown.model.operations.normalisation import LayerNorm
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.products import MatrixProduct, Multiply
from pindown.model.operations.smooth import Gelu, Sigmoid, Silu, Tanh
from pindown.model.operations.softmax import Softmax
from pindown.model.operations.windows import Window
from pindown.relaxation import bounds, interval_bounds, linear_bounds


def window(k, stride=1, pad=0):
    return Window((k, k), (stride, stride), (pad, pad), (pad, pad), (1, 1))


def mlp(activation, rng, width=8):
    graph = Builder((1, 4))
    x = graph.input
    for _ in range(2):
        fan = x.shape[1]
        x = graph.add(
            activation,
            graph.add(
                Dense(rng.normal(size=(width, fan)) / np.sqrt(fan), rng.normal(size=width) / 3), x
            ),
        )
    return graph.model(
        graph.add(Dense(rng.normal(size=(3, width)), rng.normal(size=3)), x), input_shape=(4,)
    )


def cnn(rng):
    graph = Builder((1, 2, 6, 6))
    x = graph.add(
        Convolution(rng.normal(size=(3, 2, 3, 3)) / 3, rng.normal(size=3), window=window(3, pad=1)),
        graph.input,
    )
    x = graph.add(BatchNorm(*rng.uniform(0.5, 1.5, size=(4, 3))), x)
    skip = x = graph.add(Relu(), x)
    x = graph.add(Convolution(rng.normal(size=(3, 3, 3, 3)) / 3, window=window(3, pad=1)), x)
    x = graph.add(Relu(), graph.add(Add(), x, skip))
    x = graph.add(MaxPool(window(2, 2)), x)
    x = graph.add(AveragePool(window(2, 1)), x)
    x = graph.add(Reduce((2, 3), mean=True), x)
    x = graph.add(Reshape((1, 3)), x)
    return graph.model(graph.add(Dense(rng.normal(size=(2, 3))), x), input_shape=(2, 6, 6))


def attention(rng):
    graph = Builder((1, 3, 4))
    x = graph.add(LayerNorm((2,), np.ones(4), np.zeros(4), 1e-1), graph.input)
    q, k, v = (graph.add(Dense(rng.normal(size=(4, 4)) / 2), x) for _ in range(3))
    scores = graph.add(
        Scale(np.array(0.5)), graph.add(MatrixProduct(), q, graph.add(Transpose((0, 2, 1)), k))
    )
    mixed = graph.add(MatrixProduct(), graph.add(Softmax(2), scores), v)
    x = graph.add(Add(), mixed, graph.input)
    gated = graph.add(Multiply(), x, graph.add(Sigmoid(), x))
    return graph.model(graph.add(Reshape((1, 12)), gated), input_shape=(3, 4))


@pytest.mark.parametrize("method", ["interval", "linear"])
@pytest.mark.parametrize("make", ["Relu", "Tanh", "Gelu", "Silu", "cnn", "attention"])
@pytest.mark.parametrize("radius", [0.0, 0.01, 0.3])
def test_bounds_hold(make, method, radius):
    rng = np.random.default_rng(5)
    smooth = {"Relu": Relu, "Tanh": Tanh, "Gelu": Gelu, "Silu": Silu}
    model = (
        mlp(smooth[make](), rng) if make in smooth else {"cnn": cnn, "attention": attention}[make](rng)
    )
    centres = rng.normal(size=(3, model.in_features))
    rows = rng.normal(size=(2, model.out_features))
    low, high = bounds(model, centres - radius, centres + radius, method=method)
    form_low, form_high = bounds(model, centres - radius, centres + radius, rows, method=method)
    assert low.shape == (3, model.out_features) and form_low.shape == (3, 2)
    for _ in range(60):
        step = (
            rng.uniform(-1, 1, centres.shape)
            if rng.uniform() < 0.5
            else rng.choice([-1, 1], centres.shape)
        )
        y = model(np.clip(centres + radius * step, centres - radius, centres + radius))
        assert (low - 1e-12 <= y).all() and (y <= high + 1e-12).all()
        assert (form_low - 1e-11 <= y @ rows.T).all() and (y @ rows.T <= form_high + 1e-11).all()
    if radius == 0.0:  # and they are not idle
        assert (high - low).max() < 1e-3 * (1 + np.abs(high).max()) or make == "attention"


def test_of_a_relu_network_they_are_those_of_the_normal_form():
    rng = np.random.default_rng(1)
    net = ReluNetwork.from_layers(
        [
            (rng.normal(size=(12, 5)), rng.normal(size=12)),
            (rng.normal(size=(9, 12)), rng.normal(size=9)),
            (rng.normal(size=(2, 9)), rng.normal(size=2)),
        ]
    )
    box = Box(-np.ones(5), np.ones(5) / 2)
    for method, other in (("interval", interval_bounds), ("linear", linear_bounds)):
        low, high = bounds(net, box.lower, box.upper, method=method)
        known = other(net, box)[-1]
        assert np.allclose(low, known.lower, rtol=1e-9) and np.allclose(high, known.upper, rtol=1e-9), (
            method
        )


def test_linear_bounds_are_never_wider_than_intervals():
    rng = np.random.default_rng(2)
    for model in (mlp(Tanh(), rng), mlp(Gelu(), rng), cnn(rng)):
        x = rng.normal(size=model.in_features)
        ends = {
            method: bounds(model, x - 0.05, x + 0.05, method=method) for method in ("interval", "linear")
        }
        assert (ends["linear"][0] >= ends["interval"][0]).all() and (
            ends["linear"][1] <= ends["interval"][1]
        ).all()
        widths = {method: (high - low).mean() for method, (low, high) in ends.items()}
        assert widths["linear"] < 0.9 * widths["interval"]


def test_bad_questions_are_refused_in_a_line():
    net = ReluNetwork.from_layers([([[1.0]], [0])])
    with pytest.raises(ValueError, match="method must be one of"):
        bounds(net, [0.0], [1.0], method="magic")
    with pytest.raises(ValueError, match="must have shape"):
        bounds(net, [0.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite with lower <= upper"):
        bounds(net, [1.0], [0.0])
    with pytest.raises(ValueError, match="rows must have shape"):
        bounds(net, [0.0], [1.0], rows=[[1.0, 2.0]])
