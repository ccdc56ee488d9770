"""One table of all bounds: sorted, together valid, honest about what is vacuous."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from pindown import ReluNetwork
from pindown.guarantees import bound_table
from pindown.guarantees.bounds import (
    WeightList,
    held_out_bound,
    occam_bound,
    spectral_margin_bound,
    weight_noise_bound,
)
from pindown.guarantees.bounds.rescaled_weights import homogeneous
from pindown.guarantees.bounds.table import stored_bits
from pindown.model.from_network import model_of_network


def easy(rng, m):
    x = np.where(rng.random(m) < 0.5, 1.0, -1.0) * rng.uniform(0.8, 1, m)
    return x[:, None], (x > 0).astype(int)


def identity():
    return ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, -1.0]], [0])])


def test_sorted_with_the_observed_error_beside():
    rng = np.random.default_rng(0)
    X, y = easy(rng, 3000)
    X_test, y_test = easy(rng, 500)
    y_test[:25] = 1 - y_test[:25]
    table = bound_table(identity(), X, y, X_test=X_test, y_test=y_test, start=identity())
    values = [b.formula_value for b in table.bounds]
    assert values == sorted(values) and len(values) == 7
    assert table.test_error == 0.05 and table.train_error == 0.0
    assert all(b.delta == pytest.approx(0.05 / 7) for b in table.bounds)
    assert sum(b.delta for b in table.bounds) <= 0.05 + 1e-12
    text = str(table).splitlines()
    assert len(text) == 8 and "0.05 of 500" in text[0]
    held_out = next(b for b in table.bounds if b.name == "held-out examples")
    assert held_out.value > 0.05


def test_every_row_is_the_bound_called_by_itself_with_its_share():
    rng = np.random.default_rng(5)
    X, y = easy(rng, 300)
    X_test, y_test = easy(rng, 100)
    X_test[:3] = 0.0  # ties are mistakes
    net = ReluNetwork.from_layers([([[1.5], [-1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [0.0])])
    table = bound_table(
        net, X, y, X_test=X_test, y_test=y_test, start=identity(), delta=0.07, random_state=3
    )
    mine, centre, each = homogeneous(net), homogeneous(identity()), 0.07 / 7
    noise = {"delta": each, "random_state": 3}
    alone = {
        "description length": occam_bound(0.0, stored_bits(net), 300, each),
        "held-out examples": held_out_bound(3, 100, each),
        "spectral margin": spectral_margin_bound(net, X, y, delta=each),
        "spectral margin, source": spectral_margin_bound(net, X, y, delta=each, variant="corrected"),
        "spectral margin around given centres": spectral_margin_bound(
            mine, X, y, delta=each, centres=[centre]
        ),
        "weight noise": weight_noise_bound(net, X, y, **noise),
        "weight noise around the start": weight_noise_bound(mine, X, y, start=centre, **noise),
    }
    assert {b.name: b.formula_value for b in table.bounds} == {
        name: b.formula_value for name, b in alone.items()
    }
    assert table.test_error == 0.03 and table.n_test == 100


def test_vacuous_is_said():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((9, 3)), rng.standard_normal(9)), (rng.standard_normal((2, 9)), [0, 0])]
    )
    table = bound_table(net, X, y)
    assert all(b.vacuous for b in table.bounds)
    assert "vacuous" in str(table)


def test_weight_noise_holds_by_simulation():
    rng = np.random.default_rng(2)
    weights = WeightList("given", (np.array([[1.0]]),))
    runs, delta, mislabelled = 40, 0.1, 0.1
    failed = draws_alone = 0
    for seed in range(runs):
        X, y = easy(rng, 1000)
        flip = rng.random(1000) < mislabelled
        bound = weight_noise_bound(weights, X, np.where(flip, 1 - y, y), delta=delta, random_state=seed)
        # The only weight decides: with its sign kept, mistakes are the wrong labels, else the others.
        turned = norm.cdf(-1.0 / bound.terms["scale"])
        risk = turned * (1 - mislabelled) + (1 - turned) * mislabelled
        failed += risk > bound.value
        draws_alone += risk > bound.terms["error of the draws"]
        assert not bound.vacuous
    # A bound that may fail with probability delta fails more often than this once in ten thousand
    # such tests; what was counted on the sample, without a price, does.
    allowed = binom.ppf(0.9999, runs, delta)
    assert failed <= allowed
    assert draws_alone > allowed


def test_weight_noise_around_the_start_is_smaller_near_it():
    X, y = easy(np.random.default_rng(3), 500)
    net = WeightList("given", (np.array([[3.0]]),))
    near = WeightList("given", (np.array([[2.9]]),))
    assert weight_noise_bound(net, X, y, start=near).value < weight_noise_bound(net, X, y).value
    with pytest.raises(ValueError, match="shapes"):
        weight_noise_bound(net, X, y, start=WeightList("given", (np.eye(2),)))


def test_start_without_biases_for_a_network_with_some():
    X, y = easy(np.random.default_rng(4), 300)
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0.1, 0.1]), ([[1.0, -1.0]], [0])])
    table = bound_table(net, X, y, start=identity())
    assert {"weight noise around the start", "spectral margin around given centres"} <= {
        b.name for b in table.bounds
    }
    swapped = bound_table(identity(), X, y, start=net)
    assert len(swapped.bounds) == len(table.bounds)


def test_one_class_and_linear_networks():
    net = ReluNetwork.from_layers([([[1.0]], [0.0])])
    table = bound_table(net, np.ones((50, 1)), np.ones(50, int))
    assert table.train_error == 0.0 and len(table.bounds) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X_test": np.ones((3, 1))}, "belong together"),
        ({"delta": 1.0}, "delta"),
        ({"y": np.full(10, 7)}, "y must"),
        ({"X": np.full((10, 1), np.nan)}, "NaN|finite"),
        ({"X": np.ones((1, 1)), "y": np.ones(1, int)}, "at least 2 rows"),
    ],
)
def test_refuses(change, words):
    arguments = {"X": np.ones((10, 1)), "y": np.ones(10, int)} | change
    with pytest.raises(ValueError, match=words):
        bound_table(identity(), **arguments)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e100])
def test_weights_of_any_size(scale):
    rng = np.random.default_rng(0)
    layers = [(scale * rng.normal(size=(o, i)), np.zeros(o)) for i, o in ((3, 5), (5, 2))]
    X = rng.normal(size=(40, 3))
    table = bound_table(ReluNetwork.from_layers(layers), X, X[:, 0] > 0)
    assert all(bound.vacuous for bound in table.bounds) and len(table.bounds) == 4


def test_inputs_of_zeros():
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(o, i)), np.zeros(o)) for i, o in ((3, 5), (5, 2))]
    table = bound_table(ReluNetwork.from_layers(layers), np.zeros((40, 3)), np.arange(40) % 2)
    assert table.train_error == 1.0 and all(bound.vacuous for bound in table.bounds)


def test_which_of_two_codes_was_used_is_part_of_the_description():
    # Kraft: networks of one number that float32 holds, and all others, share a total weight of one.
    short, long = (ReluNetwork.from_layers([([[w]], [0.0])]) for w in (0.5, 0.1))
    weight = 2.0**64 * 2.0 ** -stored_bits(short) + 2.0**128 * 2.0 ** -stored_bits(long)
    assert weight <= 1.0


@pytest.mark.parametrize("biases", [False, True])
def test_starts_and_centres_are_models_of_any_kind(biases):
    rng = np.random.default_rng(6)
    nets = [
        ReluNetwork.from_layers(
            [(rng.normal(size=(3, 2)), biases * rng.normal(size=3)), (rng.normal(size=(2, 3)), [0, 0])]
        )
        for _ in range(2)
    ]
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    graphs = [model_of_network(net) for net in nets]
    for net, start in (graphs, (nets[0], graphs[1])):
        table, plain = bound_table(net, X, y, start=start), bound_table(nets[0], X, y, start=nets[1])
        assert [b.terms for b in table.bounds] == [b.terms for b in plain.bounds]
        around = spectral_margin_bound(net, X, y, centres=[start])
        lists = [homogeneous(each) for each in nets]
        rows = np.hstack([X, np.ones((30, 1))]) if biases else X
        assert around.terms == spectral_margin_bound(lists[0], rows, y, centres=lists[1:]).terms
    with pytest.raises(ValueError, match="rows of 2 inputs"):
        spectral_margin_bound(WeightList("given", (np.eye(2), np.eye(2))), X[:, :1], y)
