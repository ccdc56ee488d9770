from itertools import pairwise

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.flat_directions import (
    functional_dimension,
    n_parameters,
    parameter_jacobian,
)
from pindown.equivalence.identifiable import identifiable_network
from pindown.equivalence.recovery._last_layer import moved
from pindown.network import ReluNetwork


def gaussian(widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    )


@pytest.mark.parametrize(
    ("widths", "rank", "total"),
    [
        ((4, 4, 3, 1), 32, 39),
        ((3, 3, 2, 1), 18, 23),
        ((4, 3, 3, 2, 1), 30, 38),
        ((6, 5, 4, 3, 1), 66, 78),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_identifiable_networks_have_no_hidden_redundancy(widths, rank, total, seed):
    found = functional_dimension(identifiable_network(widths, seed=seed), Box.cube(widths[0], -1, 1))
    assert (found.rank, found.n_parameters) == (rank, total)
    assert found.hidden == 0 and found.unavoidable == sum(widths[1:-1]) and found.stable
    assert found.gap > 1e-3 and found.singular_values[found.rank] < 1e-13


def test_jacobian_matches_finite_differences():
    net = gaussian((3, 5, 4, 2), 1)
    X = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    J = parameter_jacobian(net, X)
    P = n_parameters(net)
    assert J.shape == (40, P)
    for i in range(P):
        step = 1e-6 * np.eye(P)[i]
        change = (moved(net, step)(X) - moved(net, -step)(X)).reshape(-1) / 2e-6
        np.testing.assert_allclose(J[:, i], change, atol=1e-6)


def test_some_columns_are_those_of_the_whole():
    net = gaussian((3, 5, 4, 2), 1)
    X = np.random.default_rng(1).uniform(-1, 1, (6, 3))
    some = np.array([0, 7, 14, 15, 19, 20, 43, 44, 53])
    np.testing.assert_array_equal(parameter_jacobian(net, X, some), parameter_jacobian(net, X)[:, some])


def test_a_dead_unit_loses_all_its_parameters():
    net = gaussian((4, 4, 3, 1), 0)
    layers = [[np.array(W), np.array(b)] for W, b in net.layers]
    layers[1][1][0] = -1e3
    before = functional_dimension(net, Box.cube(4, -3, 3))
    after = functional_dimension(ReluNetwork.from_layers(layers), Box.cube(4, -3, 3))
    # Four weights in, a bias and a weight out; one of the six was its scale.
    assert after.hidden == before.hidden + 5


def test_an_always_on_unit_adds_one_flat_direction():
    net = identifiable_network((4, 4, 3, 1), seed=0)
    layers = [[np.array(W), np.array(b)] for W, b in net.layers]
    layers[1][1][2] = 1e3
    found = functional_dimension(ReluNetwork.from_layers(layers), Box.cube(4, -1, 1))
    assert found.rank == 31


def test_rank_is_invariant_under_rescaling_units():
    net = gaussian((4, 6, 5, 1), 3)
    layers = [[np.array(W), np.array(b)] for W, b in net.layers]
    s = np.exp(np.random.default_rng(0).normal(size=6))
    layers[0][0] *= s[:, None]
    layers[0][1] *= s
    layers[1][0] /= s
    box = Box.cube(4, -3, 3)
    assert (
        functional_dimension(ReluNetwork.from_layers(layers), box).rank
        == functional_dimension(net, box).rank
    )


def test_inputs_can_be_given_and_too_few_are_not_stable():
    net = identifiable_network((3, 3, 2, 1))
    X = np.random.default_rng(0).uniform(-1, 1, (10, 3))
    found = functional_dimension(net, X)
    assert found.n_samples == 10 and found.rank <= 10 and not found.stable
    assert "not stable" in repr(found)


def test_large_networks_get_a_lower_bound():
    found = functional_dimension(gaussian((20, 100, 60, 3)), Box.cube(20, -1, 1), n_samples=300)
    assert found.lower_bound and 0 < found.rank <= 400
    assert "at least" in repr(found)


def test_budget_ends_with_fewer_samples():
    net = gaussian((10, 20, 10, 1))
    found = functional_dimension(net, Box.cube(10, -1, 1), n_samples=300_000, budget=0.2)
    assert found.n_samples < 300_000 and "time ended" in found.notes[0]


def test_constant_network():
    net = ReluNetwork.from_layers([(np.zeros((2, 2)), np.zeros(2)), (np.zeros((1, 2)), [0.0])])
    found = functional_dimension(net, Box.cube(2, -1, 1))
    assert found.rank == 1 and found.unavoidable == 0


def test_bad_sample_counts_are_refused():
    with pytest.raises(ValueError, match="n_samples"):
        functional_dimension(gaussian((2, 2, 1)), Box.cube(2, -1, 1), n_samples=-1)


@pytest.mark.parametrize("seed", [4, 8])
def test_rare_cells_are_not_mistaken_for_flat_directions(seed):
    """Uniform draws alone miss the cells in which a unit of this network matters."""
    net = identifiable_network((4, 4, 3, 1), seed=seed)
    for draw in range(5):
        found = functional_dimension(net, Box.cube(4, -1, 1), seed=draw)
        assert found.hidden == 0 and found.n_samples == 5 * found.n_parameters
