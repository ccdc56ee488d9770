"""Certificates: never wrong, and as tight as they should be."""

import gzip
import time
from fractions import Fraction

import numpy as np
import pytest

import pindown as pn
from pindown import ReluNetwork
from pindown.box import Box
from pindown.probes import linear_distance
from pindown.relaxation.linear import linear_bounds
from pindown.relaxation.linear_on_balls import interval_margins, margin_bounds, relax_balls
from pindown.relaxation.lp_balls import NORMS, Balls
from pindown.verification import certified, certified_accuracy, certified_radii, minimum_distance
from tests.soundness.searches import ball_bounds
from tests.verification.nets import SHARED, random_changes, random_network


def random_widths(rng):
    hidden = rng.integers(2, 9, int(rng.integers(1, 4)))
    return [int(rng.integers(1, 5)), *hidden.tolist(), int(rng.integers(1, 5))]


@pytest.mark.parametrize("norm", NORMS)
def test_bounds_are_above_everything_on_the_ball(norm):
    rng = np.random.default_rng(0)
    for _ in range(25):
        net = random_network(rng, random_widths(rng))
        d, k = net.in_features, net.out_features
        X, radius = rng.standard_normal((3, d)), rng.uniform(0.01, 2.0, 3)
        rows = np.concatenate([np.eye(k), -np.eye(k)])
        every = np.broadcast_to(rows, (3, *rows.shape))
        balls = Balls.around(X, radius, norm)
        plain = margin_bounds(net, balls, every)
        better = np.minimum(plain, ball_bounds(net, balls, every))
        loose = interval_margins(net, balls, every)
        for i in range(3):
            points = X[i] + radius[i] * random_changes(rng, 400, d, norm)
            values = (net(points) @ rows.T).max(axis=0)
            assert (values <= better[i] + 1e-12).all()
        assert (better <= plain).all() and (plain <= loose + 1e-9 * (1 + np.abs(loose))).all()


def test_hidden_bounds_are_those_of_the_geometry():
    """The same relaxation, written for one box, stands elsewhere in the package."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        net = random_network(rng, [3, 7, 6, 5, 2])
        x = rng.standard_normal((1, 3))
        balls = Balls.around(x, np.array([0.4]), "linf")
        known = relax_balls(net, balls)
        expected = linear_bounds(net, Box(balls.lower[0], balls.upper[0]))[:-1]
        for ours, theirs in zip(known.bounds, expected, strict=True):
            np.testing.assert_allclose(ours.lower[0], theirs.lower, atol=1e-9)
            np.testing.assert_allclose(ours.upper[0], theirs.upper, atol=1e-9)


def test_optimised_slopes_prove_more():
    rng = np.random.default_rng(2)
    counts = {"interval": 0, "linear": 0, "optimised": 0}
    for _ in range(10):
        net, X = random_network(rng, [4, 20, 20, 3]), rng.standard_normal((30, 4))
        found = {name: certified(net, X, radius=0.12, method=name) for name in counts}
        assert (found["linear"] >= found["interval"]).all()
        assert (found["optimised"] >= found["linear"]).all()
        for name in counts:
            counts[name] += int(found[name].sum())
    assert counts["interval"] < counts["linear"] < counts["optimised"]


@pytest.mark.parametrize("norm", NORMS)
def test_certificates_are_exact_for_linear_models(norm):
    rng = np.random.default_rng(3)
    W, b, X = rng.standard_normal((3, 6)), rng.standard_normal(3), rng.standard_normal((20, 6))
    net, exact = ReluNetwork.from_layers([(W, b)]), linear_distance(W, b, X, norm=norm)
    assert certified(net, X, radius=exact * (1 - 1e-9), norm=norm).all()
    assert not certified(net, X, radius=exact * (1 + 1e-9), norm=norm).any()


@pytest.mark.parametrize("norm", NORMS)
def test_radii_of_linear_models_are_the_distance_to_the_last_halving(norm):
    rng = np.random.default_rng(3)
    W, b, X = rng.standard_normal((3, 6)), rng.standard_normal(3), rng.standard_normal((20, 6))
    net, exact = ReluNetwork.from_layers([(W, b)]), linear_distance(W, b, X, norm=norm)
    for steps in (3, 7):
        found = certified_radii(net, X, norm=norm, largest=1.0, steps=steps)
        assert (found <= exact).all() and (found >= np.minimum(exact, 1.0) - 2.0**-steps).all()


def test_boxes_around_balls_are_cut_and_hold_them():
    rng = np.random.default_rng(4)
    X, box = rng.random((50, 3)), Box.cube(3, 0, 1)
    balls = Balls.around(X, np.full(50, 0.4), "l2", box)
    np.testing.assert_allclose(balls.lower, np.maximum(X - 0.4, 0), atol=1e-15)
    np.testing.assert_allclose(balls.upper, np.minimum(X + 0.4, 1), atol=1e-15)
    free, radius = Balls.around(X, np.full(50, 0.4), "l2"), Fraction(0.4)
    for x, low, high in zip(X.ravel(), free.lower.ravel(), free.upper.ravel(), strict=True):
        assert Fraction(low) <= Fraction(x) - radius and Fraction(x) + radius <= Fraction(high)


@pytest.mark.parametrize("norm", NORMS)
def test_a_box_can_only_help(norm):
    rng = np.random.default_rng(4)
    net, X = random_network(rng, [3, 10, 10, 3]), rng.random((60, 3))
    free = certified(net, X, radius=0.2, norm=norm)
    cut = certified(net, X, radius=0.2, norm=norm, box=(0, 1))
    assert (cut >= free).all() and cut.sum() > free.sum()


def check_radii_against_exact(n, seed):
    """Compare certified radii with exact distances on n random networks."""
    rng = np.random.default_rng(seed)
    tight = []
    for i in range(n):
        widths = [int(rng.integers(1, 3)), *rng.integers(2, 6, int(rng.integers(1, 3))).tolist(), 2]
        net, norm = random_network(rng, widths), NORMS[i % 3]
        x = rng.standard_normal(widths[0])
        exact = minimum_distance(net, x, norm, method="cells", box=(x - 3, x + 3))
        assert exact.complete or exact.upper == np.inf
        radius = certified_radii(net, x[None], norm=norm, largest=2.9)[0]
        assert radius <= exact.upper
        attained = exact.upper if np.isfinite(exact.upper) else exact.lower
        tight.append(radius / min(attained, 2.9))
    return np.median(tight)


def test_certified_radius_is_never_above_the_exact_distance():
    assert check_radii_against_exact(15, seed=5) > 0.5


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_certified_radius_is_never_above_the_exact_distance_on_500_networks():
    assert check_radii_against_exact(500, seed=6) > 0.5


def test_huge_and_tiny_networks_are_bounded_or_not_decided():
    huge = ReluNetwork.from_layers(
        [([[1e150], [-1e150]], [0, 0]), ([[1e150, 0.0], [0.0, 1e150]], [0, 0])]
    )
    assert certified(huge, [[1.0]], radius=0.5)[0] and not certified(huge, [[1.0]], radius=1e9)[0]
    tiny = ReluNetwork.from_layers(
        [([[1e-160], [-1e-160]], [0, 0]), ([[1e-160, 0.0], [0.0, 1e-160]], [0, 0])]
    )
    assert not certified(tiny, [[1.0]], radius=2.0)[0]


def test_ties_are_no_proof():
    same = ReluNetwork.from_layers([([[1.0], [1.0]], [0, 0])])
    assert not certified(same, [[1.0]], radius=0.0)[0]


# ---------------------------------------------------------------------- accuracy


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    model = MLPClassifier((16, 12), max_iter=40, random_state=0)
    with pytest.warns(Warning):
        model.fit(X / 16, y)
    return ReluNetwork.from_sklearn(model), X[:40] / 16, y[:40]


def test_accuracy_curve_is_a_proper_enclosure(digits):
    net, X, y = digits
    found = certified_accuracy(net, X, y, [0.05, 0.0, 0.01, 0.02], box=(0, 1), verbose=0)
    assert found.complete and found.radii.tolist() == [0.0, 0.01, 0.02, 0.05]
    assert (found.lower <= found.upper).all() and (np.diff(found.lower) <= 0).all()
    assert (np.diff(found.upper) <= 0).all()
    assert found.lower[0] == found.upper[0] == (net(X).argmax(axis=1) == y).mean()
    assert found.lower[1] > 0.5 and found.undecided.max() < 1.0
    assert (found.certified_radius < found.attacked_radius).all()
    assert "40 inputs" in repr(found)
    largest = certified_accuracy(net, X, y, [0.01], box=(0, 1), verbose=0)  # certified at just that
    assert largest.lower[0] == found.lower[1] and largest.certified_radius.max() == 0.01


def test_accuracy_agrees_with_exact_distances(digits):
    net, X, y = digits
    found = certified_accuracy(net, X[:6], y[:6], [0.02, 0.04], verbose=0)
    for i in range(3):
        exact = minimum_distance(net, X[i], budget=1.0)
        if exact.label == y[i]:
            assert found.certified_radius[i] <= exact.upper
            assert found.attacked_radius[i] >= exact.lower


def test_accuracy_by_threads_is_the_same(digits):
    net, X, y = digits
    alone, many = (
        certified_accuracy(net, X[:12], y[:12], [0.01, 0.03], n_jobs=n, verbose=0) for n in (1, 2)
    )
    np.testing.assert_array_equal(alone.attacked_radius, many.attacked_radius)
    assert (many.certified_radius <= many.attacked_radius).all()


def test_accuracy_without_time_is_undecided_not_wrong(digits):
    net, X, y = digits
    found = certified_accuracy(net, X, y, [0.01], budget=0.0, verbose=0)
    right = (net(X).argmax(axis=1) == y).mean()
    assert not found.complete and found.lower[0] == 0.0 and found.upper[0] == right
    assert "time ran out" in repr(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radii": []}, "radii is empty"),
        ({"radii": [-0.1]}, "radius"),
        ({"radii": [0.1], "y": [0] * 39}, "one class"),
        ({"radii": [0.1], "norm": "l0"}, "norm"),
        ({"radii": [0.1], "box": (0.5, 1)}, "outside the box"),
        ({"radii": [0.1], "X": np.zeros((0, 64)), "y": []}, "empty"),
    ],
)
def test_bad_curves_are_refused(digits, arguments, message):
    net, X, y = digits
    with pytest.raises(ValueError, match=message):
        certified_accuracy(net, **{"X": X, "y": y, "verbose": 0, **arguments})


def test_bad_method_is_refused(digits):
    with pytest.raises(ValueError, match="method must be"):
        certified(digits[0], digits[1], radius=0.1, method="magic")


@pytest.mark.slow
def test_a_thousand_digits_take_less_than_two_minutes_on_two_cores():
    model, images = SHARED / "models/mnist_256x4.onnx.gz", SHARED / "data/mnist"
    if not (model.exists() and images.exists()):
        pytest.skip("the shared models or data are not here")
    with gzip.open(images / "t10k-images-idx3-ubyte.gz") as stream:
        X = np.frombuffer(stream.read(), np.uint8, offset=16)
    with gzip.open(images / "t10k-labels-idx1-ubyte.gz") as stream:
        y = np.frombuffer(stream.read(), np.uint8, offset=8)
    X = X.reshape(-1, 784)[:1000] / 255
    began = time.process_time()
    found = certified_accuracy(
        pn.load(model), X, y[:1000], [2 / 255, 8 / 255], box=(0, 1), optimise=False, verbose=0
    )
    assert time.process_time() - began < 240.0  # two minutes on each of two cores
    assert found.complete and found.lower[0] > 0.9 and found.upper[1] < found.upper[0]
