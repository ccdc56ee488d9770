"""The complete search around inputs: never wrong, decides what is small, and takes every model."""

from itertools import pairwise

import numpy as np
import pytest

from pindown import load
from pindown.model import Builder
from pindown.model.from_network import model_of_network
from pindown.model.operations.dense import Dense
from pindown.model.operations.smooth import Tanh
from pindown.network import ReluNetwork
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.lp_balls import NORMS, Balls
from pindown.verification import (
    accuracy_curves,
    certified,
    certified_accuracy,
    minimum_distance,
)
from pindown.verification.ball_proofs import (
    Ball,
    bounded_form,
    decide,
    engine_form,
    margins_at,
    quick_margins,
)
from pindown.verification.classes import classifier, margin_rows
from pindown.verification.counterexamples import gradient_attack
from tests.relaxation.small_models import convolutional, dense, residual
from tests.verification.nets import SHARED, random_changes, random_network
from tests.verification.test_counterexamples import mnist_images


def smooth(rng):
    """Return a network with hyperbolic tangents."""
    graph = Builder((1, 3))
    x = graph.add(Tanh(), graph.add(Dense(rng.normal(size=(5, 3)), rng.normal(size=5)), graph.input))
    return graph.model(graph.add(Dense(rng.normal(size=(3, 5))), x), input_shape=(3,))


MAKERS = {"smooth": smooth, "residual": residual, "convolutional": convolutional}


@pytest.mark.parametrize("norm", NORMS)
def test_balls_below_and_above_the_exact_distance_are_decided(norm):
    """Cells are walked by other code: no ball below the distance has a witness, none above a proof."""
    rng = np.random.default_rng(1)
    decided = 0
    for _ in range(6):
        net, x = random_network(rng, [2, 6, 5, 3]), rng.standard_normal(2)
        exact = minimum_distance(net, x, norm, method="cells", box=(x - 3, x + 3))
        if not np.isfinite(exact.upper):
            continue
        model = engine_form(net)
        for share in (0.97, 1.03):
            ball = Ball(x, exact.label, share * exact.upper, norm, None)
            found = decide(model, ball, 4)
            assert not found.proved or share < 1
            if found.witness is not None:
                assert share > 1 and net(found.witness).argmax() != exact.label
            decided += found.proved or found.witness is not None
    assert decided >= 5


@pytest.mark.parametrize("norm", NORMS)
def test_quick_bounds_of_models_are_those_of_matrices(norm):
    rng = np.random.default_rng(2)
    for _ in range(12):
        net = random_network(rng, [3, 7, 6, 4])
        balls = Balls.around(rng.standard_normal((1, 3)), rng.uniform(0.01, 1.0, 1), norm)
        rows = margin_rows(rng.integers(0, 4, 1), 4)
        for method in ("interval", "linear"):
            ours = quick_margins(model_of_network(net), balls, rows, method)
            np.testing.assert_allclose(ours, quick_margins(net, balls, rows, method), atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("make", MAKERS)
def test_every_model_has_a_certified_accuracy(make, norm):
    rng = np.random.default_rng(6)
    model = MAKERS[make](rng)
    assert bounded_form(model, "a test") is model
    deep = classifier(model)
    X = rng.standard_normal((6, model.in_features))
    y = deep(X).argmax(axis=1)
    radii = np.array([0.01, 0.1, 0.5])
    found = certified_accuracy(model, X, y, radii, norm=norm, verbose=0, budget=20.0)
    assert found.lower[0] > 0 and (found.certified_radius < found.attacked_radius).all()
    for x, label, radius in zip(X, y, found.certified_radius, strict=True):
        if radius > 0:
            points = x + radius * random_changes(rng, 500, len(x), norm)
            assert (deep(points).argmax(axis=1) == label).all()


def test_matrices_stand_for_a_chain_of_them_only():
    rng = np.random.default_rng(4)
    net = random_network(rng, [3, 5, 2])
    assert isinstance(bounded_form(model_of_network(net), "a test"), ReluNetwork)
    assert bounded_form(net, "a test") is net
    assert isinstance(bounded_form(dense(rng), "a test"), ReluNetwork)


def test_margins_at_points_are_above_what_float64_sees():
    rng = np.random.default_rng(5)
    net, points = random_network(rng, [3, 8, 4]), rng.standard_normal((50, 3))
    values = net(points)
    seen = values[:, 1] - np.delete(values, 1, axis=1).max(axis=1)
    for form in (net, model_of_network(net)):
        upper = margins_at(form, points, 1)
        assert (upper >= seen).all() and np.abs(upper - seen).max() < 1e-10


def test_more_turns_only_add(monkeypatch):
    """Steps of a longer run begin with those of a shorter one."""
    rng = np.random.default_rng(6)
    net, X = random_network(rng, [6, 14, 14, 3]), rng.standard_normal((12, 6))
    y, curves = net(X).argmax(axis=1), []
    for turns in ((), (1,), (1, 4)):
        monkeypatch.setattr(accuracy_curves, "ACCURACY_TURNS", turns)
        curves.append(certified_accuracy(net, X, y, [0.1, 0.25], verbose=0))
    for short, longer in pairwise(curves):
        assert (longer.certified_radius >= short.certified_radius).all()
        assert (longer.attacked_radius <= short.attacked_radius).all()
    assert curves[-1].undecided.sum() < curves[0].undecided.sum()
    for i in np.flatnonzero(curves[0].certified_radius < 0.25):
        alone = decide(engine_form(net), Ball(X[i], int(y[i]), 0.25, "linf", None), 4)
        assert alone.proved == (curves[-1].certified_radius[i] >= 0.25)


@pytest.mark.parametrize("norm", NORMS)
def test_forms_are_largest_at_the_farthest_point_of_a_ball(norm):
    rng = np.random.default_rng(8)
    balls = Balls.around(rng.standard_normal((3, 4)), rng.uniform(0.1, 2.0, 3), norm)
    forms = rng.standard_normal((3, 2, 4))
    reached = np.einsum("nqd,nqd->nq", forms, balls.farthest(forms))
    np.testing.assert_allclose(reached, balls.support(forms))
    np.testing.assert_allclose(reached, balls.largest(LinearForms(forms, np.zeros((3, 2)))))


def test_one_turn_proves_what_optimised_certificates_prove():
    rng = np.random.default_rng(7)
    net, X = random_network(rng, [4, 20, 20, 3]), rng.standard_normal((10, 4))
    found = certified(net, X, radius=0.15, method="optimised")
    model, labels = engine_form(net), net(X).argmax(axis=1)
    balls = [Ball(x, int(label), 0.15, "linf", None) for x, label in zip(X, labels, strict=True)]
    np.testing.assert_array_equal(found, [decide(model, ball, 1).proved for ball in balls])


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_hundred_digits_without_a_box():
    """Linear bounds alone prove 95 and 56; the upper ends are those of strong attacks, or better."""
    path = SHARED / "models" / "mnist_256x4.onnx.gz"
    if not path.exists():
        pytest.skip("the shared models are not here")
    model, (X, y) = load(path), mnist_images(100)
    for radius, least in ((2 / 255, 96), (4 / 255, 65)):
        found = certified_accuracy(model, X, y, [radius], verbose=0)
        strong = gradient_attack(model, X, y, radius=radius, restarts=10, steps=100)
        assert found.complete and round(100 * found.lower[0]) >= least
        assert round(100 * found.upper[0]) <= 100 - strong.success.sum() + 3


@pytest.mark.parametrize("norm", NORMS)
def test_distances_by_searches_of_balls_close_on_the_exact_one(norm):
    rng = np.random.default_rng(9)
    for _ in range(2):
        net, x = random_network(rng, [2, 6, 5, 3]), rng.standard_normal(2)
        exact = minimum_distance(net, x, norm, method="cells", box=(x - 3, x + 3))
        loose = minimum_distance(net, x, norm, method="relaxation", box=(x - 3, x + 3))
        found = minimum_distance(net, x, norm, method="bisection", box=(x - 3, x + 3), budget=3.0)
        assert loose.lower <= found.lower <= exact.upper <= found.upper * (1 + 1e-9)
        assert found.lower >= 0.9 * exact.lower


@pytest.mark.parametrize("make", MAKERS)
def test_every_model_has_a_distance(make):
    rng = np.random.default_rng(6)
    model = MAKERS[make](rng)
    x = rng.standard_normal(model.in_features)
    found = minimum_distance(model, x, "l2", method="bisection", budget=2.0, box=(x - 2, x + 2))
    assert 0 < found.lower <= found.upper
    points = x + min(found.lower, 2.0) * random_changes(rng, 1000, len(x), "l2")
    assert (model(points).argmax(axis=1) == found.label).all()
    if found.witness is not None:
        assert model(found.witness).argmax() == found.other != found.label
        assert np.linalg.norm(found.witness - x) <= found.upper
