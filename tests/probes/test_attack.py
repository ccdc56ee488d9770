"""The door to attacks: a radius, or the smallest change that is found."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.model.builder import Builder
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from pindown.probes import attack, linear_distance
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification import minimum_distance
from tests.verification.nets import random_network


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("method", ["auto", "gradient", "deepfool"])
def test_smallest_change_of_an_affine_model_is_its_distance(norm, method):
    rng = np.random.default_rng(0)
    W, b, X = rng.standard_normal((3, 4)), rng.standard_normal(3), rng.standard_normal((6, 4))
    found = attack(ReluNetwork.from_layers([(W, b)]), X, norm=norm, method=method)
    exact = linear_distance(W, b, X, norm=norm)
    assert found.success.all() and len(found.by) == 6 and all(found.by)
    assert (found.distance >= exact * (1 - 1e-9)).all()
    close = {"deepfool": 1e-3, "auto": 1e-3, "gradient": 0.11}[method]
    np.testing.assert_allclose(found.distance, exact, rtol=close)
    np.testing.assert_allclose(found.distance, lengths(found.X - X, norm))


def test_smallest_change_is_between_the_exact_distance_and_deepfool():
    rng = np.random.default_rng(1)
    gains = []
    for _ in range(4):
        net, x = random_network(rng, [3, 12, 3]), rng.standard_normal(3)
        for norm in ("l2", "linf"):
            exact = minimum_distance(net, x, norm, method="cells", box=(x - 5, x + 5))
            if not np.isfinite(exact.upper):
                continue
            best, plain = (attack(net, x, norm=norm, method=method) for method in ("auto", "deepfool"))
            assert best.success[0] and best.distance[0] >= exact.lower
            assert best.distance[0] <= plain.distance[0]
            assert best.distance[0] <= 1.15 * exact.upper
            gains.append(plain.distance[0] / best.distance[0])
    assert max(gains) > 1.02


def test_smallest_change_to_a_target_and_in_a_box():
    rng = np.random.default_rng(2)
    net, X = random_network(rng, [4, 16, 3]), rng.uniform(-1, 1, (15, 4))
    any_class, to_two = attack(net, X, box=(-2, 2)), attack(net, X, target=2, box=(-2, 2))
    np.testing.assert_array_equal(net(to_two.X[to_two.success]).argmax(axis=1), 2)
    both = any_class.success & to_two.success & (net(X).argmax(axis=1) != 2)
    assert both.sum() > 5
    assert (any_class.distance[both] <= to_two.distance[both] * 1.2).all()
    assert np.abs(to_two.X).max() <= 2.0
    already = net(X).argmax(axis=1) == 2
    assert (to_two.distance[already] == 0).all()


def test_what_cannot_be_changed_stays_at_an_infinite_distance():
    flat = ReluNetwork.from_layers([(np.zeros((2, 2)), [1.0, 0.0])])
    found = attack(flat, np.ones((3, 2)), box=(0, 2))
    assert not found.success.any() and np.isinf(found.distance).all()
    np.testing.assert_array_equal(found.X, np.ones((3, 2)))
    assert found.by == ("", "", "")


def test_gradients_that_vanish_at_the_input_do_not_stop_it():
    """Class 1 only where relu(x1 + x2 - 3) > 0.5: flat at the origin."""
    net = ReluNetwork.from_layers([([[1.0, 1.0]], [-3.0]), ([[0.0], [1.0]], [0.5, 0.0])])
    found = attack(net, [[0.0, 0.0]], method="gradient")
    assert found.success[0] and found.distance[0] == pytest.approx(1.75, rel=0.02)


def test_radius_is_kept_and_models_of_any_kind_are_read():
    rng = np.random.default_rng(3)
    graph = Builder((1, 3))
    hidden = graph.add(
        Tanh(), graph.add(Dense(rng.standard_normal((9, 3)), rng.standard_normal(9)), graph.input)
    )
    model = graph.model(graph.add(Dense(rng.standard_normal((4, 9)), None), hidden), input_shape=(3,))
    X = rng.standard_normal((20, 3))
    found = attack(model, X, radius=0.3)
    assert (found.distance <= 0.3 * (1 + 1e-12)).all() and 0 < found.success.mean() < 1
    again = attack(model, X, radius=0.3)
    np.testing.assert_array_equal(found.X, again.X)
    smallest = attack(model, X)
    assert (smallest.distance[found.success] <= 0.3 * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"method": "deepfool", "radius": 0.1}, "smallest change"),
        ({"budget": -1.0}, "budget"),
        ({"norm": "l3"}, "norm"),
        ({"target": 7}, "classes 0 to 1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        attack(ReluNetwork.from_layers([(np.eye(2), np.zeros(2))]), np.eye(2), **options)


def test_no_time_leaves_what_is_known():
    rng = np.random.default_rng(4)
    net, X = random_network(rng, [3, 8, 3]), rng.standard_normal((5, 3))
    found = attack(net, X, budget=0.0, method="gradient")
    assert not found.success.any()
    assert attack(net, np.zeros((0, 3))).X.shape == (0, 3)
