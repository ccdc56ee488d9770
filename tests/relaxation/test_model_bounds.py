"""Bounds of models, operation by operation."""

import numpy as np
import pytest

from pindown import ReluNetwork, load
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.model import Builder
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.dense import Add, BatchNorm, Dense, Reduce, Scale
from pindown.model.operations.moves import Reshape, Transpose
from pindown.model.operations.normalisation import LayerNorm
from pindown.model.operations.operation import Interval
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.products import MatrixProduct, Multiply
from pindown.model.operations.smooth import Gelu, Sigmoid, Silu, Tanh
from pindown.model.operations.softmax import Softmax
from pindown.model.operations.windows import Window
from pindown.relaxation import bounds, interval_bounds, linear_bounds
from pindown.relaxation.model_bounds import tighten
from pindown.relaxation.relaxed_model import RelaxedModel
from tests.relaxation.plain_crown import plain_crown
from tests.verification.nets import SHARED


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


@pytest.mark.parametrize("method", ["interval", "linear", "optimised"])
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


def distances_to_plain_crown(model, x, radius, rows):
    """Return how far both ends are from those of an independent implementation without rounding."""
    layers = [(W, b) for W, b in model.relu_network().layers]
    plain = plain_crown(layers, x - radius, x + radius, rows)
    ours = bounds(model, x - radius, x + radius, rows)
    return np.array([plain[0] - ours[0], ours[1] - plain[1]])


def test_they_are_those_of_crown_on_small_networks():
    rng = np.random.default_rng(8)
    for model in [mlp(Relu(), rng) for _ in range(6)] + [small_conv(rng) for _ in range(3)]:
        rows = rng.normal(size=(3, model.out_features))
        x, radius = rng.normal(size=model.in_features), rng.choice([0.0, 0.1, 1.0])
        apart = distances_to_plain_crown(model, x, radius, rows)
        assert np.abs(apart).max() < 1e-9 and (apart > -1e-12).all()


@pytest.mark.parametrize("name", ["mnist_256x4", "cifar_conv_base"])
@pytest.mark.parametrize("radius", [2 / 255, 0.03])
def test_they_are_those_of_crown_on_images(name, radius):
    path = SHARED / "models" / f"{name}.onnx.gz"
    if not path.exists():
        pytest.skip("the shared models are not here")
    model = load(path)
    x = np.random.default_rng(3).uniform(size=model.in_features)
    apart = distances_to_plain_crown(model, x, radius, np.eye(10)[:1] - np.eye(10)[1:])
    assert np.abs(apart).max() < 1e-5 and (apart > -1e-10).all()


def small_conv(rng):
    graph = Builder((1, 1, 4, 4))
    x = graph.add(
        Convolution(rng.normal(size=(2, 1, 3, 3)), rng.normal(size=2), window=window(3, 2, 1)),
        graph.input,
    )
    x = graph.add(Reshape((1, 8)), graph.add(Relu(), x))
    x = graph.add(Relu(), graph.add(Dense(rng.normal(size=(5, 8)), rng.normal(size=5)), x))
    return graph.model(graph.add(Dense(rng.normal(size=(2, 5))), x), input_shape=(1, 4, 4))


@pytest.mark.parametrize("make", ["Relu", "Tanh", "Silu", "small_conv", "cnn", "attention"])
def test_each_method_is_at_least_as_tight_as_the_one_before(make):
    rng = np.random.default_rng(12)
    others = {"cnn": cnn, "attention": attention, "small_conv": small_conv}
    smooth = {"Relu": Relu, "Tanh": Tanh, "Silu": Silu}
    model = mlp(smooth[make](), rng) if make in smooth else others[make](rng)
    centres = rng.normal(size=(2, model.in_features))
    rows = rng.normal(size=(2, model.out_features))
    for radius in (0.0, 0.02, 0.3):
        found = [
            bounds(model, centres - radius, centres + radius, rows, method=method)
            for method in ("interval", "linear", "optimised")
        ]
        for (low, high), (lower, higher) in zip(found[1:], found, strict=False):
            assert (low >= lower).all() and (high <= higher).all() and (low <= high).all()
    if make == "Relu":  # and where there is something to choose, the last one is better
        (low, high), (better, lower) = found[1:]
        assert ((lower - better) < 0.95 * (high - low)).any()


def test_a_deadline_leaves_bounds_that_hold():
    """Without time the boxes inside stay those of intervals; the outputs get linear bounds anyway."""
    model = mlp(Relu(), np.random.default_rng(4))
    low, high = -np.ones(4), np.ones(4)
    late, never = (bounds(model, low, high, deadline=Deadline.after(seconds)) for seconds in (0.0, None))
    interval = bounds(model, low, high, method="interval")
    assert (late[0] <= never[0]).all() and (never[1] <= late[1]).all()
    assert (interval[0] <= late[0]).all() and (late[1] <= interval[1]).all()


def test_past_a_deadline_many_outputs_are_not_all_carried_back(monkeypatch):
    rng = np.random.default_rng(1)
    net = ReluNetwork.from_layers(
        [(rng.normal(size=(6, 3)), np.zeros(6)), (rng.normal(size=(40, 6)), np.zeros(40))]
    )
    box = -np.ones(3), np.ones(3)
    ways = [bounds(net, *box, method=method) for method in ("interval", "linear")]
    # Blocks of one output.
    monkeypatch.setattr("pindown.relaxation.model_bounds.MODEL_BLOCK_ENTRIES", 1)
    late = bounds(net, *box, deadline=Deadline.after(0.0))
    for interval, linear, found, sign in zip(*ways, late, (1, -1), strict=True):
        assert (sign * found >= sign * interval).all() and (sign * linear >= sign * found - 1e-12).all()
        assert (found[1:] == interval[1:]).all() and (linear != interval).any()
    assert late[1][0] < ways[0][1][0]
    every = bounds(net, *box)
    assert every[1] == pytest.approx(ways[1][1], rel=1e-12)


def test_bounds_that_became_better_are_used():
    """Lines that were made on looser boxes are made anew."""
    rng = np.random.default_rng(9)
    model = mlp(Relu(), rng)
    box = Interval(-np.ones((1, 4)), np.ones((1, 4)))
    fresh, used = (RelaxedModel.by_intervals(model, box) for _ in range(2))
    form, last = rng.normal(size=(1, 5, 1, 3)), len(model.nodes)
    before = used.upper_ends(last, form)
    for relaxed in (fresh, used):
        tighten(relaxed)
    after = used.upper_ends(last, form)
    np.testing.assert_allclose(after, fresh.upper_ends(last, form), rtol=1e-12)
    assert (after < before).all()


def test_only_the_entries_that_are_named_are_tightened():
    """Slopes are chosen for them; all others keep what they had, and may gain by intervals alone."""
    rng = np.random.default_rng(5)
    model = mlp(Relu(), rng)
    box = Interval(-np.ones((1, model.in_features)), np.ones((1, model.in_features)))
    before, after = (RelaxedModel.by_intervals(model, box) for _ in range(2))
    tighten(before)
    tighten(after)
    j = max(node.inputs[0] for node in model.nodes if isinstance(node.operation, Relu))
    low, high = (end.ravel() for end in before.values[j])
    open_ = np.flatnonzero((low < 0) & (high > 0))
    only = np.zeros((1, len(low)), bool)
    only[0, open_[0]] = True
    nothing = {i: np.zeros((1, value.lower.size), bool) for i, value in enumerate(after.values)}
    tighten(after, steps=8, only=nothing | {j: only})
    moved = (after.values[j].lower.ravel() > low + 1e-9) | (after.values[j].upper.ravel() < high - 1e-9)
    assert np.flatnonzero(moved).tolist() == [open_[0]] and len(open_) > 1


def test_several_boxes_are_bounded_as_one_by_one():
    rng = np.random.default_rng(6)
    model = cnn(rng)
    centres = rng.normal(size=(3, model.in_features))
    for method in ("interval", "linear", "optimised"):
        together = bounds(model, centres - 0.1, centres + 0.1, method=method)
        for i, x in enumerate(centres):
            alone = bounds(model, x - 0.1, x + 0.1, method=method)
            for one, all_ends in zip(alone, together, strict=True):
                np.testing.assert_allclose(one, all_ends[i], rtol=1e-9, atol=1e-9)
