"""Proved cells on a line against exact rationals, with rationals where intervals do not decide."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex._certified_line import proved_line
from pindown.geometry.complex.counting import region_count
from pindown.geometry.exact.complex import exact_complex
from tests.geometry.hostile import HOSTILE, hostile_network
from tests.geometry.oracles import reference_network


def check(net, box):
    found, exact = proved_line(net, box), exact_complex(net, box)
    starts = [vertices[0][0] for vertices in exact.vertices]
    order = sorted(range(len(starts)), key=starts.__getitem__)
    np.testing.assert_array_equal(found.patterns, exact.patterns[order])
    np.testing.assert_array_equal(found.ends[:-1], [float(starts[i]) for i in order])  # rounded once
    return found


@pytest.mark.parametrize("family", HOSTILE)
@pytest.mark.parametrize("seed", range(5))
def test_cells_are_those_of_rational_arithmetic(family, seed):
    rng = np.random.default_rng([seed, 1])
    net, box = hostile_network(rng, 1, family)
    check(net, box)


def test_ordinary_networks_hardly_need_rationals():
    for seed in range(3):
        found = check(reference_network((1, 24, 24, 1), seed), Box([-1], [1]))
        assert found.n_exact <= 0.1 * len(found.patterns)


def test_cells_below_the_resolution_of_float64_signs_are_found():
    net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1e-300]), ([[1.0, -1.0]], [0.0])])
    found = check(net, Box([-1], [1]))
    assert found.ends.tolist() == [-1, 0, 1e-300, 1] and found.n_exact == 3
    counted = region_count(net, (-1, 1), certified=True)
    assert counted.n_regions == 3 and counted.growth == (3,) and counted.n_exact == 3


def test_folds_that_share_a_point_and_one_at_the_end():
    net = ReluNetwork.from_layers([([[1.0], [-3.0], [2.0]], [-1, 3, 2]), ([[1.0, 1.0, 1.0]], [0.0])])
    found = check(net, Box([-1], [4]))
    assert found.ends.tolist() == [-1, 1, 4] and 0 < found.n_exact < 4
