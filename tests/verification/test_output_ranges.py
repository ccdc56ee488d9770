"""Ranges of outputs: true ends, the same as by cells, and never worse with more work."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from pindown.verification import output_range
from pindown.verification import output_ranges as module
from tests.verification.nets import random_network


def test_no_point_of_a_grid_is_outside_and_both_ends_are_close():
    net = random_network(np.random.default_rng(1), [2, 6, 6, 2])
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 301)] * 2), axis=-1).reshape(-1, 2)
    y = net(grid)
    found = output_range(net, (-1, 1), precision=5e-2, budget=None, n_jobs=1)
    assert found.exact
    assert np.all(found.lower <= y.min(axis=0)) and np.all(y.max(axis=0) <= found.upper)
    for one in (*found.minima, *found.maxima):
        width = np.ptp(y[:, one.output])
        assert one.upper - one.lower <= 5.1e-2 * width
        value = net(one.point)[one.output]
        assert value == pytest.approx(one.value, abs=1e-9) and np.all(np.abs(one.point) <= 1)
        assert value == pytest.approx(one.lower if one.kind == "maximum" else one.upper, abs=1e-9)


def test_a_smooth_model():
    """tanh(2 x) - tanh(x): its largest value on [0, 2], found on a fine grid."""
    graph = Builder((1, 1))
    bent = graph.add(Tanh(), graph.add(Dense([[2.0], [1.0]]), graph.input))
    model = graph.model(graph.add(Dense([[1.0, -1.0]]), bent), input_shape=(1,))
    x = np.linspace(0, 2, 100_001)
    y = np.tanh(2 * x) - np.tanh(x)
    found = output_range(model, (0, 2), precision=1e-2, n_jobs=1)
    assert found.maxima[0].lower <= y.max() + 1e-9 and y.max() <= found.upper[0] < y.max() * 1.011
    assert found.lower[0] <= 0.0 <= found.minima[0].upper + 1e-12


def test_more_work_is_never_worse(monkeypatch):
    net = random_network(np.random.default_rng(5), [2, 6, 6, 1])
    before = None
    for turns in (0, 1, 2):
        monkeypatch.setattr(module, "RANGE_TURNS", turns)
        found = output_range(net, (-1, 1), precision=2e-2, budget=None, n_jobs=1)
        if before is not None:
            assert np.all(found.lower >= before.lower) and np.all(found.upper <= before.upper)
            pairs = zip(found.maxima, before.maxima, strict=True)
            assert all(now.lower >= then.lower for now, then in pairs)
        before = found


def test_no_time_and_a_constant():
    net = random_network(np.random.default_rng(5), [3, 6, 2])
    found = output_range(net, (-1, 1), budget=0)
    y = net(np.random.default_rng(0).uniform(-1, 1, (1000, 3)))
    assert (
        not found.exact and np.all(found.lower <= y.min(axis=0)) and np.all(y.max(axis=0) <= found.upper)
    )
    flat = ReluNetwork.from_layers([([[0.0]], [1.0]), ([[2.0]], [1.0])])
    assert output_range(flat, (-1, 1)).exact


@pytest.mark.parametrize(
    ("box", "more", "words"),
    [
        (([0, 0], [1, 1]), {}, "box"),
        ((1, 0), {}, "lower"),
        ((0, 1), {"precision": 0.0}, "precision"),
        ((0, 1), {"budget": -1.0}, "budget"),
    ],
)
def test_what_is_refused(box, more, words):
    model = model_of_network(random_network(np.random.default_rng(0), [1, 3, 1]))
    with pytest.raises(ValueError, match=words):
        output_range(model, box, **more)
