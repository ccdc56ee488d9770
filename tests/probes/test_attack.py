"""The door to attacks: a radius, or the smallest change that is found."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.model.builder import Builder
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from pindown.probes import Differentiable, attack, linear_distance
from pindown.relaxation.lp_balls import NORMS, lengths
from pindown.verification import minimum_distance
from tests.verification.nets import random_network


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("method", ["auto", "pgd", "deepfool"])
def test_smallest_change_of_an_affine_model_is_its_distance(norm, method):
    rng = np.random.default_rng(0)
    W, b, X = rng.standard_normal((3, 4)), rng.standard_normal(3), rng.standard_normal((6, 4))
    found = attack(ReluNetwork.from_layers([(W, b)]), X, norm=norm, method=method)
    exact = linear_distance(W, b, X, norm=norm)
    assert found.success.all() and len(found.by) == 6 and all(found.by)
    assert (found.distance >= exact * (1 - 1e-9)).all() and found.exact == (method == "auto")
    close = {"deepfool": 1e-3, "auto": 1e-5, "pgd": 0.3}[method]
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
    found = attack(net, [[0.0, 0.0]])
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
        ({"method": "fgsm"}, "needs a radius"),
        ({"radius": 0.1, "strength": 1.0}, "not both"),
        ({"method": "cw", "strength": 1.0}, "smallest change"),
        ({"strength": -1.0}, "strength"),
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
    found = attack(net, X, budget=0.0, method="pgd")
    assert not found.success.any()
    assert attack(net, np.zeros((0, 3))).X.shape == (0, 3)


# ---------------------------------------------------------------------- the three problems


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("target", [None, 2])
def test_closed_forms_and_searches_solve_the_same_three_problems(norm, target):
    """An affine model, and the same function with rectifiers that are always on."""
    rng = np.random.default_rng(6)
    W, b, X = rng.standard_normal((3, 4)), rng.standard_normal(3), rng.uniform(-1, 1, (5, 4))
    plain = ReluNetwork.from_layers([(W, b)])
    far = 1e3
    deep = ReluNetwork.from_layers([(np.eye(4), np.full(4, far)), (W, b - far * W.sum(axis=1))])
    for options, error in (({}, 0.05), ({"radius": 0.2}, 0.02), ({"strength": 0.05}, 0.05)):
        exact = attack(plain, X, norm=norm, target=target, **options)
        found = attack(deep, X, norm=norm, target=target, **options)
        assert exact.exact and not found.exact
        if not options:
            np.testing.assert_allclose(found.distance, exact.distance, rtol=error, atol=1e-9)
            assert found.success.all() and (found.distance >= exact.distance * (1 - 2e-6)).all()
            continue
        cost, left = [result.margin for result in (found, exact)], ~exact.success
        if "strength" in options:
            cost, left = (
                [0.5 * r.distance**2 + 0.05 * r.margin for r in (found, exact)],
                np.full(5, True),
            )
        np.testing.assert_array_equal(found.success, exact.success)
        assert (cost[0] >= cost[1] - 1e-9).all()  # within a radius the search ends where it succeeds
        np.testing.assert_allclose(cost[0][left], cost[1][left], atol=error * np.abs(cost[1]).max())


def test_carlini_and_wagner_find_the_price_of_a_bent_boundary():
    """The circle of radius 2: at the right price the change ends on it, at its nearest point."""
    circle = Differentiable(lambda X: (X**2).sum(axis=1) - 4, lambda a, X: 2 * a * X)
    X = np.array([[5.0, 1.0], [0.0, 3.0], [0.5, 0.2], [-1.0, 1.0]])
    found = attack(circle, X, norm="l2", method="cw")
    np.testing.assert_allclose(found.distance, np.abs(np.hypot(*X.T) - 2), rtol=0.02)
    assert found.success.all() and all("Carlini" in by for by in found.by)


def test_one_step_along_the_gradient_is_the_fast_gradient_sign_method():
    rng = np.random.default_rng(7)
    net, X = random_network(rng, [4, 16, 3]), rng.standard_normal((30, 4))
    one = attack(net, X, radius=0.2, method="fgsm")
    np.testing.assert_allclose(np.abs(one.X - X), 0.2)
    for i in range(3):  # by finite differences
        outputs = net(X[i])
        own, other = np.argsort(outputs)[[-1, -2]]
        slope = [
            (net(X[i] + 1e-6 * e) - net(X[i] - 1e-6 * e))[[own, other]] @ [1, -1] for e in np.eye(4)
        ]
        np.testing.assert_array_equal(np.sign(X[i] - one.X[i]), np.sign(slope))
    many, all_of_it = (attack(net, X, radius=0.2, method=m) for m in ("pgd", "auto"))
    assert one.success.sum() <= many.success.sum() <= all_of_it.success.sum()


def test_price_buys_longer_changes_the_higher_it_is():
    rng = np.random.default_rng(8)
    net, X = random_network(rng, [4, 16, 3]), rng.standard_normal((20, 4))
    found = [attack(net, X, norm="l2", strength=s) for s in (0.0, 0.01, 0.1, 1.0)]
    assert (found[0].distance == 0).all()
    means = [f.distance.mean() for f in found]
    margins = [f.margin.mean() for f in found]
    assert means == sorted(means) and margins == sorted(margins, reverse=True)
    rng = np.random.default_rng(9)
    for f, s in zip(found, (0.0, 0.01, 0.1, 1.0), strict=True):
        near = f.X[:, None] + 0.02 * rng.standard_normal((20, 200, 4))
        outputs = net(near.reshape(-1, 4)).reshape(20, 200, 3)
        own = net(X).argmax(axis=1)
        right = np.take_along_axis(outputs, own[:, None, None], axis=2)[..., 0]
        np.put_along_axis(outputs, own[:, None, None], -np.inf, axis=2)
        cost = 0.5 * ((near - X[:, None]) ** 2).sum(axis=2) + s * (right - outputs.max(axis=2))
        mine = 0.5 * f.distance**2 + s * f.margin
        assert (mine <= cost.min(axis=1) + 0.02 * (s + 1e-9)).mean() > 0.8


def test_boxes_are_kept_by_closed_forms_too():
    plane = ReluNetwork.from_layers([([[1.0, 3.0]], [0.0])])
    free, boxed = (
        attack(plane, [[0.5, 0.5]], norm="l2"),
        attack(plane, [[0.5, 0.5]], norm="l2", box=([-9.0, 0.0], [9.0, 9.0])),
    )
    assert (
        free.exact and free.X[0, 1] < 0 and free.distance[0] == pytest.approx(2 / np.sqrt(10), rel=1e-5)
    )
    assert not boxed.exact and boxed.X[0, 1] >= 0 and boxed.success[0]
    assert boxed.distance[0] == pytest.approx(np.hypot(0.5, 0.5), rel=0.01)  # to the origin


# ---------------------------------------------------------------------- any model with gradients


def test_modules_and_functions_of_tensors_are_attacked():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Odd(torch.nn.Module):
        """Decides by its input which way to go: no graph can be read from it."""

        def __init__(self):
            super().__init__()
            self.one, self.two = torch.nn.Linear(6, 3), torch.nn.Linear(6, 3)

        def forward(self, x):
            flat = x.flatten(1)
            return torch.where(flat.sum() == 1e9, self.two(flat), self.one(torch.sin(flat)).erfc())

    module, X = Odd().train(), np.random.default_rng(0).standard_normal((4, 2, 3))
    found = attack(module, X, norm="l2", method="cw")
    assert found.X.shape == X.shape and found.success.sum() >= 2 and module.training
    with torch.no_grad():
        before, after = (
            module.eval()(torch.tensor(x, dtype=torch.float32)).argmax(1).numpy() for x in (X, found.X)
        )
    np.testing.assert_array_equal(found.success, before != after)
    again = attack(lambda x: module(x.float()), X, norm="l2", method="cw")
    np.testing.assert_allclose(again.distance, found.distance, rtol=1e-3)
    within = attack(module, X, norm="l2", radius=2 * found.distance[found.success].max())
    assert within.success[found.success].all()


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (Differentiable(lambda X: X.sum(), lambda a, X: X), np.ones((2, 2)), "gives"),
        (Differentiable(lambda X: X[:, 0], lambda a, X: X), np.ones(2), "takes inputs"),
        (Differentiable(lambda X: X @ np.ones(5), lambda a, X: X), np.ones((2, 2)), "size"),
        (lambda x: x @ x.new_ones(5), np.ones((2, 2)), "does not take inputs of shape"),
    ],
)
def test_functions_that_do_not_fit_are_refused(model, X, message):
    with pytest.raises(ValueError, match=message):
        attack(model, X)


def test_no_model_at_all_is_refused():
    with pytest.raises(TypeError, match="attack takes a Model"):
        attack(3.0, np.ones((2, 2)))
