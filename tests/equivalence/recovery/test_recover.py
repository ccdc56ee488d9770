import time
from itertools import pairwise

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.comparison import diff
from pindown.equivalence.comparison.matching import match
from pindown.equivalence.identifiable import identifiable_network
from pindown.equivalence.recovery import Recovered, recover
from pindown.equivalence.recovery._known_layers import KnownLayers
from pindown.equivalence.recovery._oracle import Oracle
from pindown.equivalence.recovery.recovering import excluded_share, proved
from pindown.network import ReluNetwork

BOX = (-3.0, 3.0)


def gaussian(widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    )


def with_bias(net, layer, unit, bias):
    layers = [[np.array(W), np.array(b)] for W, b in net.layers]
    layers[layer - 1][1][unit] = bias
    return ReluNetwork.from_layers(layers)


def check_same_function(net, found, box, tolerance=1e-9, n=50_000):
    low, high = box
    X = np.random.default_rng(99).uniform(low, high, (n, net.in_features))
    gap = np.abs(net(X) - found.network(X)).max()
    assert gap <= tolerance * max(1.0, np.abs(net(X)).max())


def check_recovered(net, found, box):
    assert found.status == ("recovered",) and found, found
    check_same_function(net, found, box)
    matching = match(net, found.network, rtol=1e-6)
    assert matching.matched, matching


@pytest.mark.parametrize(
    "widths", [(2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 1), (6, 5, 4, 3, 1), (4, 4, 4, 4, 1)]
)
def test_identifiable_networks_are_recovered_from_values(widths):
    net = identifiable_network(widths, seed=1)
    check_recovered(net, recover(net, widths[0], box=(-1, 1), widths=widths), (-1, 1))


@pytest.mark.parametrize("widths", [(2, 2, 1), (3, 3, 2, 1), (4, 4, 3, 1)])
def test_recovered_networks_are_proved_the_same_by_diff(widths):
    net = identifiable_network(widths, seed=2)
    found = recover(net.__call__, widths[0], box=(-1, 1), widths=widths)
    assert found.comparison is None and "proved" not in repr(found)
    assert diff(net, found.network, box=(-1, 1), tol=1e-6).verdict == "same"
    open_box = recover(net, widths[0], box=(-1, 1), widths=widths)
    assert open_box.comparison.verdict == "same" and open_box.comparison.gap_upper <= 1e-6
    assert open_box.n_queries == found.n_queries and "proved within" in repr(open_box)


def test_a_network_that_is_proved_different_is_taken_back():
    net, box = gaussian((3, 3, 1)), Box.cube(3, -3, 3)
    oracle = Oracle(net, box)
    oracle.calibrate(np.random.default_rng(0))
    kept = proved(Recovered(net, 1), net, oracle)
    assert kept.network is net and kept.comparison.verdict == "same"
    taken = proved(Recovered(with_bias(net, 1, 0, 0.5), 1), net, oracle)
    assert taken.network is None and taken.status == ("mismatch",) and "off by" in taken.reason


def test_rounding_that_differs_from_cell_to_cell_is_measured():
    """In a tenth of the box this network's values carry a hundred times the rounding of the rest."""
    net = identifiable_network((6, 5, 4, 4, 3, 1), seed=13)
    found = recover(net, 6, box=(-1, 1), widths=net.widths, seed=13, max_queries=500_000)
    check_recovered(net, found, (-1, 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "widths",
    [
        (2, 2, 1),
        (2, 2, 2, 1),
        (2, 2, 2, 2, 1),
        (2, 2, 2, 2, 2, 1),
        (3, 3, 2, 1),
        (4, 4, 3, 1),
        (4, 4, 3, 2, 1),
        (6, 5, 4, 3, 1),
        (4, 4, 4, 4, 1),
        (5, 5, 5, 5, 1),
        (3, 3, 3, 3, 3, 1),
        (6, 5, 4, 4, 3, 1),
        (8, 6, 5, 4, 3, 2, 1),
    ],
)
def test_identifiable_networks_five_seeds(widths):
    for seed in (0, 1, 2, 13, 14):
        net = identifiable_network(widths, seed=seed)
        found = recover(net, widths[0], box=(-1, 1), widths=widths, seed=seed)
        check_recovered(net, found, (-1, 1))
        assert found.comparison.verdict == "same" and found.comparison.gap_upper <= 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_random_shallow_networks_are_recovered(seed):
    net = gaussian((4, 4, 1), seed)
    check_recovered(net, recover(net, 4, box=BOX, widths=(4, 4, 1)), BOX)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("widths", "least"),
    [((4, 4, 3, 1), 7), ((6, 5, 3, 1), 6), ((8, 6, 4, 1), 7), ((6, 5, 4, 3, 1), 3)],
)
def test_random_deeper_networks_are_often_recovered_and_never_wrong(widths, least):
    recovered = 0
    for seed in range(10):
        net = gaussian(widths, seed)
        found = recover(net, widths[0], box=BOX, widths=widths, seed=seed)
        if found:
            recovered += 1
            check_same_function(net, found, BOX, n=400_000)
        else:
            assert found.status[0] in {"few", "orient", "mismatch"} and np.isnan(found.max_error)
    assert recovered >= least


def test_widths_are_found_if_not_given():
    net = identifiable_network((4, 4, 3, 1), seed=3)
    found = recover(net, 4, box=(-1, 1))
    assert found.network.widths == (4, 4, 3, 1)
    check_recovered(net, found, (-1, 1))


def test_the_function_is_returned_where_only_signs_are_open():
    """Eighteen dependent rows of two inputs: too many signs to try, and the function without them."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((18, 2))
    b = rng.uniform(-0.8, 0.8, 18) * np.linalg.norm(W, axis=1)
    net = ReluNetwork.from_layers([(W, b), (rng.standard_normal((1, 18)), [0.3])])
    found = recover(net.__call__, 2, box=(-1, 1), widths=(2, 18, 1))
    assert found.network.widths == (2, 19, 1) and "is open" in found.notes[0]
    check_same_function(net, found, (-1, 1))


def test_several_outputs():
    net = gaussian((4, 4, 3, 3), 1)
    check_recovered(net, recover(net, 4, box=BOX, widths=net.widths), BOX)


def test_a_wide_shallow_network():
    net = gaussian((3, 9, 1), 2)
    check_recovered(net, recover(net, 3, box=BOX, widths=net.widths), BOX)


def test_any_box_and_any_units_of_the_values():
    low, high = np.array([5.0, -1e3, 0.0]), np.array([7.0, 1e3, 1e-2])
    cube = gaussian((3, 3, 1), 4)
    (W, b), last = cube.layers
    scaled = W / ((high - low) / 2)
    net = ReluNetwork.from_layers([(scaled, b - scaled @ (low + high) / 2), last])
    found = recover(lambda X: 1e-9 * net(X) + 7.0, 3, box=(low, high), widths=net.widths)
    X = np.random.default_rng(0).uniform(low, high, (1000, 3))
    # 7 + 1e-9 f has about six digits of f left.
    assert found and np.abs((found.network(X) - 7.0) / 1e-9 - net(X)).max() < 1e-4


def test_a_float32_query_is_recovered_to_its_own_precision():
    net = gaussian((4, 4, 1), 0)
    found = recover(lambda X: net(X.astype(np.float32)).astype(np.float32), 4, box=BOX, widths=(4, 4, 1))
    assert found and 1e-9 < found.noise < 1e-6
    check_same_function(net, found, BOX, 1e-5)
    assert match(net, found.network, rtol=1e-3).matched


def test_affine_and_constant_functions_are_networks_without_hidden_layer():
    found = recover(lambda X: X @ [[1.0, 2.0], [3.0, 4.0]] + 5.0, 2, box=BOX)
    assert found.network.widths == (2, 2) and found.max_error < 1e-12
    constant = recover(lambda X: np.full(len(X), 2.5), 2, box=BOX)
    assert constant.network.widths == (2, 1) and constant.max_error == 0.0


def test_a_dead_unit_is_reported_by_its_layer():
    net = gaussian((4, 4, 3, 1), 0)
    for layer in (1, 2):
        dead = with_bias(net, layer, 1, -100.0)
        found = recover(dead, 4, box=BOX, widths=(4, 4, 3, 1))
        assert found.network is None and found.status == ("few", layer) and np.isnan(found.max_error)
        assert "of hidden layer" in found.reason


def test_without_widths_a_dead_unit_is_left_out():
    dead = with_bias(gaussian((4, 4, 3, 1), 0), 2, 1, -100.0)
    found = recover(dead, 4, box=BOX)
    assert found.network.widths == (4, 4, 2, 1)
    check_same_function(dead, found, BOX)


def test_a_unit_that_never_switches_is_replaced_and_said_so():
    net = with_bias(gaussian((4, 4, 3, 1), 0), 2, 1, 100.0)
    found = recover(net, 4, box=BOX, widths=(4, 4, 3, 1))
    assert found.notes and "never switch" in found.notes[0]
    check_same_function(net, found, BOX)


@pytest.mark.parametrize("f", [np.sin, np.tanh, np.square])
def test_curved_functions_are_refused(f):
    found = recover(lambda X: f(X).sum(axis=1), 3, box=BOX)
    assert found.network is None and found.status == ("not piecewise linear",)


def test_a_noisy_query_is_refused():
    rng = np.random.default_rng(0)
    net = gaussian((4, 4, 1))
    found = recover(lambda X: net(X) + 1e-3 * rng.standard_normal((len(X), 1)), 4, box=BOX)
    assert found.network is None and found.status == ("noisy",) and "noisy" in repr(found)


@pytest.mark.parametrize("rounded", [lambda y: np.round(y, 3), lambda y: y.astype(np.float16)])
def test_a_query_that_rounds_coarsely_is_refused(rounded):
    net = gaussian((4, 4, 1))
    found = recover(lambda X: rounded(net(X)), 4, box=BOX)
    assert found.network is None and found.status == ("noisy",) and "steps" in found.reason


@pytest.mark.parametrize("widths", [(3, 3, 1), (3, 2, 2, 1), (3, 3, 3, 3, 1)])
def test_wrong_widths_never_give_a_wrong_function(widths):
    net = gaussian((3, 3, 2, 1), 5)
    found = recover(net, 3, box=BOX, widths=widths, max_queries=500_000)
    if found:
        check_same_function(net, found, BOX)
    else:
        assert found.reason and np.isnan(found.max_error)


def test_a_function_that_no_such_network_computes_is_not_recovered():
    found = recover(lambda X: np.abs(X).max(axis=1), 3, box=BOX, widths=(3, 3, 2, 1))
    assert found.network is None and found.reason


def bumped(net, share):
    """A network's values with a bump of height 0.5 on this share of the box."""

    def query(X):
        inside = (X[:, 0] > 0.777) & (X[:, 0] < 0.777 + share * (BOX[1] - BOX[0]))
        return net(X)[:, 0] + 0.5 * inside

    return query


def test_a_bump_that_was_missed_is_within_the_share_that_is_not_excluded():
    net = identifiable_network((2, 2, 1))
    missed = recover(bumped(net, 2e-5), 2, box=BOX, widths=(2, 2, 1))
    assert missed.status == ("recovered",)
    assert missed.max_error < 1e-9
    assert missed.kind == "probability"
    assert 2e-5 < missed.excluded_share < 1e-3
    assert "at most 0.00075 of the box with 95% confidence" in str(missed)
    seen = recover(bumped(net, 5 * missed.excluded_share), 2, box=BOX, widths=(2, 2, 1))
    assert seen.network is None


def test_the_excluded_share_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    for n in (1, 7, 60):
        largest = rng.uniform(size=(20_000, n)).max(axis=1)  # errors whose share above t is 1 - t
        failed = np.mean(1 - largest > excluded_share(n, 0.05))
        assert failed == pytest.approx(0.05, abs=0.005)


def test_the_same_seed_gives_the_same_network():
    net = gaussian((3, 3, 2, 1), 0)
    first, second = (recover(net, 3, box=BOX, widths=net.widths, seed=7) for _ in range(2))
    assert first.network == second.network and first.n_queries == second.n_queries


def test_queries_are_counted_and_stay_in_the_box():
    net, asked, inside = gaussian((3, 3, 1)), [], []

    def query(X):
        asked.append(len(X))
        inside.append(np.abs(X).max() <= 3.0)
        return net(X)

    found = recover(query, 3, box=BOX, widths=(3, 3, 1))
    assert found.n_queries == sum(asked) and all(inside)
    assert len(asked) < 1000


def test_budgets_end_with_a_status():
    net = gaussian((4, 4, 3, 1))
    few = recover(net, 4, box=BOX, max_queries=5_000)
    assert few.status == ("budget",) and few.n_queries <= 5_000 and few.network is None

    def slow(X):
        time.sleep(0.01)
        return net(X)

    start = time.monotonic()
    assert recover(slow, 4, box=BOX, budget=0.5).status == ("budget",)
    assert time.monotonic() - start < 1.5


def test_the_budget_holds_with_many_inputs():
    net = gaussian((400, 30, 5))
    start = time.monotonic()
    assert recover(net, 400, box=BOX, budget=1.0).status == ("budget",)
    assert time.monotonic() - start < 3.0


def test_progress_is_told():
    told = []
    recover(
        gaussian((3, 3, 2, 1)), 3, box=BOX, widths=(3, 3, 2, 1), progress=lambda *now: told.append(now)
    )
    assert told[0] == ("hidden layer 1", 0, 2) and told[-1][0].startswith("checking")


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        (lambda X: np.full((len(X), 1), np.nan), ValueError, "finite"),
        (lambda X: np.zeros((3, 1)), ValueError, "returned shape"),
        (lambda X: np.zeros((len(X), 1, 1)), ValueError, "returned shape"),
        (lambda X: np.zeros((len(X), 0)), ValueError, "returned shape"),
        (lambda X: [[1.0]] * (len(X) - 1) + [[1.0, 2.0]], ValueError, "array of values"),
        (lambda X: 1.7e308 * np.sign(X[:, 0]), ValueError, "too large"),
        (lambda X: ["cat"] * len(X), TypeError, "real numbers"),
        (3.0, TypeError, "function"),
    ],
)
def test_bad_queries_are_refused_in_one_line(query, error, words):
    with pytest.raises(error, match=words) as caught:
        recover(query, 2, box=BOX)
    assert "\n" not in str(caught.value)


def test_an_error_of_the_query_comes_through():
    def query(X):
        raise RuntimeError("the server is down")

    with pytest.raises(RuntimeError, match="server is down"):
        recover(query, 2, box=BOX)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"widths": (3, 2, 1)}, "d_0 = 2"),
        ({"widths": (2, 2, 5)}, "returns 1"),
        ({"widths": (2, 0, 1)}, "widths"),
        ({"widths": (2, 2.5, 1)}, "widths"),
        ({"widths": 5}, "widths"),
        ({"widths": (2, 10**9, 1)}, "1,000,000,000 hidden units"),
        ({"box": ([0, 0], [1, 0])}, "interior"),
        ({"box": ([0, 0, 0], [1, 1, 1])}, "dimensions"),
        ({"budget": -1.0}, "budget must be a number above 0"),
        ({"max_queries": 0}, "max_queries must be an integer of at least 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        recover(gaussian((2, 2, 1)), 2, **{"box": BOX, **arguments})


@pytest.mark.parametrize("in_features", [0, -1, 2.0, "2", None])
def test_a_bad_number_of_inputs_is_refused(in_features):
    with pytest.raises(ValueError, match="in_features must be an integer of at least 1"):
        recover(gaussian((2, 2, 1)), in_features, box=BOX)


def test_points_of_a_zero_set_that_random_segments_rarely_cross():
    rng = np.random.default_rng(0)
    w, b = np.ones(6), -4.2
    crossed = (rng.uniform(-1, 1, (100_000, 6)) @ w + b > 0).mean()
    assert crossed < 1e-2
    points = KnownLayers(6).zeros(w, b, 32, rng)
    assert len(points) == 32 and np.abs(points).max() <= 1.0
    assert np.abs(points @ w + b).max() < 1e-12 and len(np.unique(points, axis=0)) == 32
