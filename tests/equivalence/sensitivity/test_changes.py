"""The proved gap holds at every input, and is not far above what is seen."""

import itertools
import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork, load
from pindown.affine import dense
from pindown.box import Box
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.sensitivity.changes import Change, gap_of_changes
from pindown.equivalence.weight_symmetry import apply, random_symmetry
from tests.equivalence.nets import changed, random_net

MODELS = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared")) / "models"
needs_models = pytest.mark.skipif(
    not (MODELS / "mnist_256x4.onnx.gz").exists(), reason="the shared model files are not there"
)


def changes_between(a, b):
    """Return the exact changes, layer by layer, as far as float64 holds them."""
    found = {}
    for i, ((W, b_), (V, c)) in enumerate(zip(a.layers, b.layers, strict=True)):
        D, d = dense(V) - dense(W), c - b_
        found[i] = Change(D, d, 2.0**-52 * np.abs(D), 2.0**-52 * np.abs(d))
    return found


def seen_gap(a, b, X, relative):
    gaps = np.abs(a(X) - b(X)).max(axis=1)
    return float(np.max(gaps / (1 + np.linalg.norm(X, axis=1)) if relative else gaps))


def inputs(rng, d, box):
    if box is not None:
        return np.vstack([box.sample(5000, rng), rng.choice([-1.0, 1.0], (3000, d))])
    X = rng.standard_normal((8000, d))
    return X * 10.0 ** rng.uniform(-3, 4, (8000, 1))


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("size", [1e-7, 1e-2, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_dominates_what_is_seen(seed, size, sparse, relative):
    rng = np.random.default_rng(seed)
    net = random_net(rng, sparse=sparse)
    other = changed(net, rng, size)
    box = None if relative else Box.cube(net.in_features, -1, 1)
    changes = changes_between(net, other)
    seen = seen_gap(net, other, inputs(rng, net.in_features, box), relative)
    bounds = [gap_of_changes(net, changes, box=box, target=t, budget=0.3).value for t in (np.inf, 0.0)]
    assert seen <= bounds[1] <= bounds[0]
    assert bounds[1] <= 200 * seen  # not vacuous: the networks are small


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_one_changed_layer_and_exact_rationals(seed, layer):
    rng = np.random.default_rng(seed)
    net = random_net(rng, [4, 8, 7, 2])
    other = changed(net, rng, 1e-14, layers=[layer])
    bound = gap_of_changes(net, match(net, other).changes, box=Box.cube(4, 0, 1), budget=1.0).value
    f, g = net.as_fractions(), other.as_fractions()
    for x in rng.random((30, 4)):
        gap = max(abs(p - q) for p, q in zip(f(x), g(x), strict=True))
        assert gap <= Fraction(bound)


def test_a_changed_bias_with_one_path_is_exact():
    net = ReluNetwork.from_layers([([[2.0]], [1.0]), ([[3.0]], [0.0]), ([[-5.0]], [0.0])])
    change = {0: Change(np.zeros((1, 1)), np.array([0.5]))}
    for box in (None, Box([0], [1])):
        assert gap_of_changes(net, change, box=box).value == pytest.approx(7.5, rel=1e-9)


def test_slack_counts_as_change():
    net = ReluNetwork.from_layers([([[2.0]], [1.0]), ([[3.0]], [0.0])])
    zero = np.zeros((1, 1))
    box = Box([0], [4])
    by_weight = gap_of_changes(net, {0: Change(zero, np.zeros(1), 0.25, 0.0)}, box=box)
    by_bias = gap_of_changes(net, {0: Change(zero, np.zeros(1), 0.0, np.array([0.25]))}, box=box)
    assert by_weight.value == pytest.approx(3.0, rel=1e-9)
    assert by_bias.value == pytest.approx(0.75, rel=1e-9)


def test_without_a_box_bias_and_slack_add_up():
    net = ReluNetwork.from_layers([([[2.0]], [1.0]), ([[3.0]], [0.0])])
    change = Change(np.array([[1e-3]]), np.array([0.5]), 0.0, np.array([0.25]))
    assert gap_of_changes(net, {0: change}, box=None).value >= 3 * 0.75  # at x = 0


def test_the_bound_does_not_depend_on_scales():
    rng = np.random.default_rng(0)
    net = random_net(rng, [5, 20, 20, 2])
    other = changed(net, rng, 1e-4)
    plain = gap_of_changes(net, changes_between(net, other), box=Box.cube(5, 0, 1), budget=2.0).value
    symmetry = random_symmetry(net, 8.0, seed=1)
    a, b = apply(symmetry, net), apply(symmetry, other)
    moved = gap_of_changes(a, changes_between(a, b), box=Box.cube(5, 0, 1), budget=2.0).value
    assert moved == pytest.approx(plain, rel=0.2)


def test_no_change_is_no_gap():
    net = random_net(np.random.default_rng(0), [3, 4, 1])
    assert gap_of_changes(net, {}, box=None).value == 0.0
    zero = {0: Change(np.zeros((4, 3)), np.zeros(4))}
    assert gap_of_changes(net, zero, box=None).value == 0.0
    assert gap_of_changes(net, match(net, net).changes, box=Box.cube(3, 0, 1)).method == "equal"


def test_symmetric_copies_differ_by_rounding():
    rng = np.random.default_rng(0)
    net = random_net(rng, [20, 50, 40, 5])
    copy = apply(random_symmetry(net, seed=1), net)
    for box in (None, Box.cube(20, -1, 1)):
        bound = gap_of_changes(net, match(net, copy).changes, box=box, target=1e-10)
        assert 0.0 < bound.value <= 1e-10


@pytest.mark.parametrize("size", [1e-300, 1e-310, 1e150])
@pytest.mark.parametrize("relative", [False, True])
def test_extreme_numbers(size, relative):
    net = ReluNetwork.from_layers([([[size, 1.0], [1.0, -size]], [0, size]), ([[1.0, 1.0]], [0])])
    layers = [(np.array([[1.5 * size, 1.0], [1.0, -size]]), [0, 2 * size]), net.layers[1]]
    other = ReluNetwork.from_layers(layers)
    box = None if relative else Box.cube(2, -1, 1)
    bound = gap_of_changes(net, changes_between(net, other), box=box, budget=1.0).value
    f, g = net.as_fractions(), other.as_fractions()
    for x in np.random.default_rng(0).uniform(-1, 1, (50, 2)):
        gap = abs(f(x)[0] - g(x)[0])
        assert gap <= Fraction(bound) * (1 + Fraction(float(np.linalg.norm(x))) if relative else 1)


@pytest.mark.parametrize("powers", [(-2, 2), (-150, -100), (60, 90), (-320, -290), (-60, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_far_apart_in_exact_rationals(seed, powers):
    rng = np.random.default_rng(seed)
    widths = [3, 4, 3, 2]

    def numbers(*shape):
        return (
            rng.standard_normal(shape) * 10.0 ** rng.uniform(*powers, shape) * (rng.random(shape) < 0.8)
        )

    net = ReluNetwork.from_layers([(numbers(m, n), numbers(m)) for n, m in itertools.pairwise(widths)])
    other = apply(random_symmetry(net, seed=rng), changed(net, rng, 10.0 ** rng.uniform(-16, 0)))
    changes = match(net, other).changes
    box = Box(-rng.random(3), rng.random(3))
    bound = gap_of_changes(net, changes, box=box, budget=0.2).value
    relative = gap_of_changes(net, changes, box=None, budget=0.2).value
    if np.isinf(bound) or np.isinf(relative):
        assert max(powers) > 50  # only there can products leave float64
        return
    f, g = net.as_fractions(), other.as_fractions()
    for x in np.vstack([box.sample(4, rng), np.where(rng.random((4, 3)) < 0.5, box.lower, box.upper)]):
        gap = max(abs(p - q) for p, q in zip(f(x), g(x), strict=True))
        assert gap <= Fraction(bound)
        assert gap <= Fraction(relative) * (1 + Fraction(float(np.linalg.norm(x)) * (1 + 1e-15)))


def test_overflow_gives_no_bound():
    net = ReluNetwork.from_layers([([[1e200]], [0]), ([[1e200]], [0])])
    bound = gap_of_changes(net, {0: Change([[1e200]], np.zeros(1))}, box=Box([0], [1e10]))
    assert bound.value == np.inf
    unknown = {0: Change(np.zeros((1, 1)), np.zeros(1), np.inf, np.inf)}
    assert gap_of_changes(net, unknown, box=None).value == np.inf


def test_budget_and_target_are_kept():
    rng = np.random.default_rng(0)
    net = random_net(rng, [100, 300, 300, 300, 10])
    changes = changes_between(net, changed(net, rng, 1e-3))
    start = time.monotonic()
    late = gap_of_changes(net, changes, box=Box.cube(100, 0, 1), budget=1.0)
    assert np.isfinite(late.value) and time.monotonic() - start < 4.0
    early = gap_of_changes(net, changes, box=Box.cube(100, 0, 1), target=np.inf)
    assert early.method == "absolute weights" and early.value >= late.value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({2: Change(np.zeros((4, 3)), np.zeros(4))}, "0..1; got 2"),
        ({0: Change(np.zeros((4, 2)), np.zeros(4))}, "shape"),
    ],
)
def test_changes_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        gap_of_changes(random_net(np.random.default_rng(0), [3, 4, 1]), changes, box=None)


def test_bad_changes():
    with pytest.raises(ValueError, match="got \\(2, 2\\) and \\(3,\\)"):
        Change(np.zeros((2, 2)), np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        Change(np.array([[np.nan]]), np.zeros(1))
    with pytest.raises(ValueError, match="weight_slack must not be negative"):
        Change(np.zeros((1, 1)), np.zeros(1), -1.0)
    with pytest.raises(ValueError, match="weight_slack must be one number or have shape"):
        Change(np.zeros((1, 1)), np.zeros(1), np.zeros((2, 1)))
    net = random_net(np.random.default_rng(0), [3, 4, 1])
    with pytest.raises(ValueError, match="dimensions"):
        gap_of_changes(net, {}, box=Box.cube(2, 0, 1))


def split_biases(name):
    """Return mnist_256x4 and by how much the biases of a split copy's first layer differ."""
    net, split = (load(MODELS / f"mnist_256x4{part}.onnx.gz").relu_network() for part in ("", name))
    W, shift = dense(split.layers[1].weight), np.zeros(256)
    for i, row in enumerate(W):
        if np.count_nonzero(row) == 2:
            first = np.flatnonzero(row > 0)[0]
            shift[i] = split.layers[0].bias[first] + split.layers[1].bias[i] - net.layers[0].bias[i]
    return net, shift


@needs_models
@pytest.mark.parametrize("name", ["_split_a", "_split_b"])
@pytest.mark.parametrize("relative", [False, True])
def test_biases_of_split_networks(name, relative):
    net, shift = split_biases(name)
    box = None if relative else Box.cube(784, 0, 1)
    change = {0: Change(np.zeros((256, 784)), shift)}
    start = time.process_time()
    bound = gap_of_changes(net, change, box=box, target=1e-4, budget=60.0)
    assert bound.value <= 1e-4 and time.process_time() - start < 20.0  # 5 if nothing else runs
    X = np.random.default_rng(0).random((200, 784))
    first = net.layers[0]._replace(bias=net.layers[0].bias + shift)
    other = ReluNetwork((first, *net.layers[1:]), net.input_shape)
    assert np.abs(other(X) - net(X)).max() <= bound.value


@needs_models
def test_aircraft_network_against_a_float32_copy():
    net = load(MODELS / "acasxu_1_1.onnx").relu_network()
    copy = apply(random_symmetry(net, seed=0), net)
    copy = ReluNetwork.from_layers(
        [(dense(W).astype(np.float32), b.astype(np.float32)) for W, b in copy.layers]
    )
    found = match(net, copy)
    box = Box.cube(5, -0.5, 0.5)
    bound = gap_of_changes(net, found.changes, box=box, budget=5.0)
    seen = seen_gap(net, copy, box.sample(5000, np.random.default_rng(0)), False)
    assert found.matched and seen <= bound.value < 1.0


@pytest.mark.slow
def test_eleven_million_parameters():
    rng = np.random.default_rng(0)
    net = random_net(rng, [784, 2048, 2048, 2048, 10])
    copy = apply(random_symmetry(net, seed=1), net)
    start = time.process_time()
    found = match(net, copy)
    bound = gap_of_changes(net, found.changes, box=Box.cube(784, 0, 1), target=1e-5)
    assert found.matched and bound.value <= 1e-5 and time.process_time() - start < 15.0


def test_sparse_layers_stay_sparse():
    rng = np.random.default_rng(0)
    W = sp.random_array((4096, 3072), density=0.01, rng=rng, format="csr")
    V = sp.random_array((2048, 4096), density=0.01, rng=rng, format="csr")
    net = ReluNetwork.from_layers(
        [(W, np.ones(4096)), (V, np.ones(2048)), (np.ones((10, 2048)), np.zeros(10))]
    )
    found = match(net, changed(net, rng, 1e-9))
    assert all(sp.issparse(found.changes[i].weight_slack) for i in (0, 1))
    for box in (None, Box.cube(3072, 0, 1)):
        bound = gap_of_changes(net, found.changes, box=box, target=1e-2, budget=10.0)
        assert 0.0 < bound.value < 1e-2
