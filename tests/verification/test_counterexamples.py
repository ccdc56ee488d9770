"""Attacks on any model: classes and targets, ties, softmax, and how strong they are."""

import warnings
from itertools import pairwise

import numpy as np
import pytest

from pindown import Model, ReluNetwork
from pindown.model.builder import Builder
from pindown.model.from_network import model_of_network
from pindown.model.gradients import gradients
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Exp, Sigmoid, Tanh
from pindown.model.operations.softmax import Softmax
from pindown.relaxation.lp_balls import Balls, lengths
from pindown.verification import counterexamples as module
from pindown.verification.classes import as_targets, class_goals, classifier
from pindown.verification.counterexamples import gradient_attack
from pindown.verification.linearised_boundaries import deepfool
from tests.model.test_gradients import branching_model
from tests.verification.nets import SHARED, random_network


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def with_end(rng, operation, widths=(4, 8, 3)):
    """A random tanh model that ends in an operation."""
    graph = Builder((1, widths[0]))
    x = graph.input
    for i, (into, out) in enumerate(pairwise(widths)):
        x = graph.add(Tanh(), x) if i else x
        x = graph.add(Dense(rng.standard_normal((out, into)), rng.standard_normal(out)), x)
    return graph.model(graph.add(operation, x), input_shape=(widths[0],), dtype="float64")


# ---------------------------------------------------------------------- classes of models


def test_a_last_softmax_or_sigmoid_is_left_out():
    rng = np.random.default_rng(0)
    for operation in (Softmax(1), Sigmoid()):
        model = with_end(rng, operation)
        scores = model.scores()
        assert len(scores.nodes) == len(model.nodes) - 1
        X = rng.standard_normal((50, 4))
        np.testing.assert_array_equal(scores(X).argmax(axis=1), model(X).argmax(axis=1))
    plain = with_end(rng, Exp())
    assert plain.scores() is plain


@pytest.mark.parametrize("shape", [(1, 1), (1,), (1, 1, 1)])
def test_one_output_is_two_classes_whatever_its_shape(shape):
    from pindown.model.operations.moves import Reshape

    graph = Builder((1, 2))
    made = graph.add(
        Reshape(shape), graph.add(Dense(np.array([[2.0, 0.0]]), np.array([1.0])), graph.input)
    )
    both = classifier(graph.model(made, input_shape=(2,)))
    np.testing.assert_array_equal(both(np.array([[3.0, 9.0]])), [[0.0, 7.0]])
    found = gradient_attack(both, [[3.0, 9.0]], radius=3.6)
    assert found.success[0] and found.X[0, 0] <= -0.5


def test_sigmoid_of_one_output_is_a_class_by_the_sign_before_it():
    graph = Builder((1, 1))
    model = graph.model(graph.add(Sigmoid(), graph.input), input_shape=(1,))
    found = gradient_attack(model, [[1.0], [-1.0]], radius=1.1)
    assert found.success.all()
    assert found.X[0, 0] <= 0 < found.X[1, 0]


def test_goals_are_strict_where_the_first_largest_wins():
    """At a tie of two outputs the first is the class."""
    outputs = np.array([[1.0, 0.5, 0.2], [0.1, 1.0, 0.9]])
    balls = Balls.around(np.zeros((2, 1)), np.ones(2), "linf")
    goals, inputs = class_goals(outputs, np.array([0, 1]), balls, None, 9)
    np.testing.assert_array_equal(inputs, [0, 0, 1, 1])
    tie = np.zeros((4, 3))
    reached = goals.reached(np.arange(4), goals.residuals(np.arange(4), np.zeros((4, 1)), tie))
    np.testing.assert_array_equal(
        reached, [False, False, False, True]
    )  # of class 1, only 0 is before it
    goals, _ = class_goals(outputs, np.array([0, 1]), balls, np.array([1, 0]), 9)
    reached = goals.reached(np.arange(2), goals.residuals(np.arange(2), np.zeros((2, 1)), tie[:2]))
    np.testing.assert_array_equal(reached, [False, True])  # class 1 is none at a tie, class 0 is


def test_ties_are_counted_as_the_classes_say():
    """Outputs (x, -x): at 0 they tie, and the class is 0."""
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
    for x, there in ((0.5, False), (-0.5, True)):
        found = gradient_attack(net, [[x]], radius=0.5)
        assert found.success[0] == there
        assert deepfool(net, [[x]], overshoot=0.1).success[0]


def test_only_the_nearest_classes_are_tried():
    outputs = np.arange(30.0)[None]
    balls = Balls.around(np.zeros((1, 1)), np.ones(1), "linf")
    goals, _ = class_goals(outputs, np.array([29]), balls, None, 5)
    assert len(goals) == 5
    np.testing.assert_array_equal(np.flatnonzero((goals.rows[:, 0] < 0).any(axis=0)), np.arange(24, 29))


def test_targets_are_checked():
    np.testing.assert_array_equal(as_targets([0, 1], 2, 3), [0, 1])
    for target in (3, -1, 0.5, [0, 1, 2]):
        with pytest.raises(ValueError, match=r"y must|classes|whole"):
            as_targets(target, 2, 3)


# ---------------------------------------------------------------------- attacks


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("attack", ["gradient", "deepfool"])
def test_targets_are_reached_and_nothing_else_counts(norm, attack):
    rng = np.random.default_rng(1)
    net, X = random_network(rng, [4, 16, 3]), rng.standard_normal((30, 4))
    for target in (0, 2):
        if attack == "gradient":
            found = gradient_attack(net, X, radius=2.0, norm=norm, target=target)
        else:
            found = deepfool(net, X, norm=norm, target=target)
        np.testing.assert_array_equal(found.success, net(found.X).argmax(axis=1) == target)
        assert found.success.mean() > 0.6
        already = net(X).argmax(axis=1) == target
        assert (found.distance[already & (attack == "deepfool")] == 0).all()
        assert (found.margin[found.success] <= 0).all() and (found.margin[~found.success] >= 0).all()


def test_one_target_for_each_input():
    rng = np.random.default_rng(2)
    net, X = random_network(rng, [3, 12, 3]), rng.standard_normal((20, 3))
    targets = rng.integers(0, 3, 20)
    found = gradient_attack(net, X, radius=3.0, target=targets)
    np.testing.assert_array_equal(found.success, net(found.X).argmax(axis=1) == targets)
    assert found.success.mean() > 0.6


def test_models_with_branches_and_products_are_attacked():
    rng = np.random.default_rng(3)
    model = branching_model(rng)
    X = rng.uniform(0, 1, (12, 1, 4, 4))
    y = model(X).argmax(axis=1)
    found = gradient_attack(model, X, radius=0.5, box=(0, 1))
    np.testing.assert_array_equal(found.success, model(found.X).argmax(axis=1) != y)
    assert found.success.mean() > 0.5 and found.X.min() >= 0 and found.X.max() <= 1
    assert (found.distance <= 0.5 * (1 + 1e-12)).all()
    words = {"gradient descent", "linear bounds on shrinking boxes", "the input itself"}
    assert {word for word, hit in zip(found.by, found.success, strict=True) if hit} <= words
    assert all(not word for word, hit in zip(found.by, found.success, strict=True) if not hit)


@pytest.mark.parametrize(("passes", "restarts"), [(module.ANNEALED_PASSES, 3), (1, 1)])
def test_blocks_of_inputs_do_not_mix(passes, restarts, monkeypatch):
    monkeypatch.setattr(module, "ANNEALED_PASSES", passes)
    rng = np.random.default_rng(4)
    net, X = random_network(rng, [3, 8, 4]), rng.standard_normal((9, 3))
    monkeypatch.setattr(module, "ATTACK_BLOCK_NUMBERS", 30)
    y = net(X).argmax(axis=1)
    found = gradient_attack(net, X, radius=0.7, restarts=restarts)
    np.testing.assert_array_equal(found.success, net(found.X).argmax(axis=1) != y)
    assert (found.distance <= 0.7 * (1 + 1e-12)).all() and 0 < found.success.mean() <= 1


def test_wrong_labels_are_broken_already():
    net = ReluNetwork.from_layers([(np.eye(2), np.zeros(2))])
    found = gradient_attack(net, [[1.0, 0.0]], [1], radius=0.1)
    assert found.success[0] and found.distance[0] == 0.0 and found.by == ("the input itself",)
    assert found.n_gradients == 0


def test_models_that_overflow_beside_the_input_are_attacked_without_a_warning():
    graph = Builder((1, 1))
    large = graph.add(Exp(), graph.add(Dense(np.array([[900.0], [0.0]]), np.zeros(2)), graph.input))
    model = graph.model(large, input_shape=(1,))
    found = gradient_attack(model, [[-0.1]], radius=3.0)  # exp(900 x) against 1
    assert found.success[0] and np.isfinite(model(found.X)).all() and found.X[0, 0] > 0


def plain_descent(model, X, y, radius, *, steps, restarts, seed):
    """Projected sign steps on the margin to the best other class, written plainly."""
    rng, broken = np.random.default_rng(seed), np.zeros(len(X), bool)
    low, high, at = np.maximum(X - radius, 0), np.minimum(X + radius, 1), np.arange(len(X))

    def forms(made, part):
        others = made.copy()
        others[np.arange(len(made)), y[part]] = -np.inf
        rows = np.zeros_like(made)
        rows[np.arange(len(made)), y[part]] = 1.0
        rows[np.arange(len(made)), others.argmax(axis=1)] -= 1.0
        return rows

    for start in range(restarts):
        points = X if start == 0 else np.clip(X + rng.uniform(-radius, radius, X.shape), low, high)
        for step in range(steps + 1):
            made, slopes = gradients(model, points, forms)
            broken |= made.argmax(axis=1) != y
            rate = 0.5 * radius * 0.04 ** (step / steps)
            points = np.clip(points - rate * np.sign(slopes), low, high)
    assert at.size == broken.size
    return broken


def linear_corners(net, X, y, radius):
    """Whether a corner of the linear bound of some margin has another class."""
    from pindown.box import Box
    from pindown.relaxation.linear_on_balls import output_forms, relax_balls
    from pindown.verification.classes import margin_rows

    n, d = X.shape
    balls = Balls.around(X, np.full(n, radius), "linf", Box(np.zeros(d), np.ones(d)))
    forms = output_forms(relax_balls(net, balls), margin_rows(y, net.out_features))
    points = np.where(forms.weight > 0, balls.upper[:, None], balls.lower[:, None])
    classes = net(points.reshape(-1, d)).argmax(axis=1).reshape(n, -1)
    return (classes != y[:, None]).any(axis=1)


@pytest.mark.slow
def test_default_attack_is_as_strong_as_ten_restarts_with_corners():
    from pindown import load

    path = SHARED / "vnncomp" / "mnist_fc" / "mnist-net_256x2.onnx.gz"
    if not path.exists():
        pytest.skip("the networks of the competition are not here")
    X, y = mnist_images(60)
    model = load(path)
    right = model(X).argmax(axis=1) == y
    X, y = X[right], y[right]
    found = gradient_attack(model, X, y, radius=0.05, box=(0, 1))
    ten = plain_descent(model, X, y, 0.05, steps=40, restarts=4, seed=0)
    reference = ten | linear_corners(model.relu_network(), X, y, 0.05)
    assert reference.mean() > 0.5
    assert found.success.sum() >= reference.sum()
    assert (lengths(found.X - X, "linf") <= 0.05 * (1 + 1e-12)).all()


def mnist_images(n):
    import gzip

    folder = SHARED / "data" / "mnist"
    if not folder.exists():
        pytest.skip("the images are not here")
    images = gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16, count=784 * n).reshape(n, 784) / 255.0
    return X, np.frombuffer(labels, np.uint8, offset=8, count=n).astype(int)


def test_networks_and_models_are_attacked_alike():
    rng = np.random.default_rng(5)
    net, X = random_network(rng, [3, 8, 4]), rng.standard_normal((9, 3))
    model = model_of_network(net)
    assert isinstance(model, Model)
    np.testing.assert_array_equal(
        gradient_attack(net, X, radius=0.4).X, gradient_attack(model, X, radius=0.4).X
    )


def test_linear_bounds_alone_break_inputs_behind_a_plateau():
    """Class 1 only in a corner of 30 dimensions, behind a flat part: gradients at the input are zero."""
    net = ReluNetwork.from_layers([(np.ones((1, 30)), [-13.5]), ([[0.0], [1.0]], [0.4, 0.0])])
    found = gradient_attack(net, np.full((2, 30), [[0.0], [0.1]]), radius=0.5, restarts=1)
    np.testing.assert_array_equal(found.success, [True, True])
    assert set(found.by) == {"linear bounds on shrinking boxes"}
    assert not gradient_attack(net, np.zeros((1, 30)), radius=0.45, restarts=1).success[0]


def test_the_nearest_goals_of_every_input():
    rng = np.random.default_rng(6)
    model = classifier(model_of_network(random_network(rng, [2, 4, 5])))
    X = rng.standard_normal((4, 2))
    made = model(X)
    balls = Balls.around(X, np.ones(4), "linf")
    goals, inputs = class_goals(made, made.argmax(axis=1), balls, None, 9)
    search = module.Searching(model, goals, inputs, rng, module.NEVER)
    search.note(np.arange(16), X[inputs], goals.residuals(np.arange(16), X[inputs], made[inputs]))
    chosen = module._nearest(search, 2)
    np.testing.assert_array_equal(np.bincount(inputs[chosen]), [2, 2, 2, 2])
    for i in range(4):
        own = np.flatnonzero(inputs == i)
        best = own[np.argsort(search.loss[own])[:2]]
        assert set(best) == set(chosen[inputs[chosen] == i])
    search.open[inputs == 1] = False
    np.testing.assert_array_equal(np.unique(inputs[module._nearest(search, 1)]), [0, 2, 3])
