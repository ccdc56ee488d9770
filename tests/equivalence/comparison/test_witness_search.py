"""Witnesses: what is claimed at a point is true there, and differences are found fast."""

import os
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.comparison._witness_search import search
from pindown.io import load
from pindown.network import ReluNetwork
from pindown.relaxation.differential import proved_gap
from tests.equivalence.comparison.nets import exact_gap, perturbed, random_net, unit_box

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared")) / "models"


def shared(name):
    if not (SHARED / name).exists():
        pytest.skip(f"needs the public model {name}, which is not here")
    return load(SHARED / name).relu_network()


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-6, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e60])
def test_proved_gap_is_below_the_exact_one_and_near_it(size, scale):
    rng = np.random.default_rng(1)
    for _ in range(5):
        a = random_net((3, 6, 6, 2), rng, scale)
        b = perturbed(a, size, rng)
        x = rng.normal(size=3)
        truth, found = exact_gap(a, b, x), proved_gap(a, b, x)
        assert Fraction(found) <= truth
        assert size < 1e-10 or scale != 1.0 or found >= 0.9 * truth


def test_relative_gap_is_below_the_exact_one():
    rng = np.random.default_rng(2)
    a, b = random_net((2, 4, 1), rng), random_net((2, 4, 1), rng)
    for radius in (1e-8, 1.0, 1e8):
        x = radius * rng.normal(size=2)
        squared = Fraction(float(x[0])) ** 2 + Fraction(float(x[1])) ** 2
        found = Fraction(proved_gap(a, b, x, relative=True))
        # gap / (1 + r) >= found, squared to stay rational: (gap / found - 1)^2 >= r^2.
        assert found > 0
        assert (exact_gap(a, b, x) / found - 1) ** 2 >= squared


def test_huge_and_tiny_numbers_prove_nothing_wrong():
    a = ReluNetwork.from_layers([([[1e300]], [0]), ([[1e300]], [0])])
    b = ReluNetwork.from_layers([([[1e300]], [0]), ([[1e-300]], [0])])
    assert proved_gap(a, b, [1.0]) == 0.0
    assert search(a, b, Box([-1], [1])).gap >= 0.0
    tiny = ReluNetwork.from_layers([([[5e-324]], [0]), ([[1.0]], [0])])
    assert Fraction(proved_gap(tiny, b, [-1.0])) <= 0


@pytest.mark.parametrize("network", ["1_1", "1_2"])
@pytest.mark.parametrize("percent", [5, 10, 30])
def test_pruned_networks_differ(network, percent):
    a = shared(f"acasxu_{network}.onnx")
    b = shared(f"acasxu_{network}_pruned{percent}.onnx")
    box = Box.cube(5, -0.5, 0.5)
    began = time.process_time()
    found = search(a, b, box, target=1e-4, budget=2.0)
    assert time.process_time() - began < 1.0
    assert found.gap > 1e-4
    assert box.contains(found.point)
    assert np.abs(a(found.point) - b(found.point)).max() >= found.gap


def test_search_finds_the_largest_gap_of_small_pairs():
    rng = np.random.default_rng(3)
    good = 0
    for _ in range(20):
        a, b = random_net((3, 6, 1), rng), random_net((3, 5, 5, 1), rng)
        X = unit_box(3).sample(50_000, rng)
        seen = np.abs(a(X) - b(X)).max()
        good += search(a, b, unit_box(3)).gap >= seen * (1 - 1e-9)
    assert good >= 18


def test_search_is_the_same_for_a_seed_and_uses_given_points():
    rng = np.random.default_rng(4)
    a, b = random_net((4, 9, 2), rng), random_net((4, 9, 2), rng)
    first, second = (search(a, b, unit_box(4), budget=60.0, seed=7) for _ in range(2))
    assert first.gap == second.gap
    assert np.array_equal(first.point, second.point)
    # A spike that samples miss: relu(x - 0.99999).
    spike = ReluNetwork.from_layers(
        [([[1e6], [1e6], [1e6]], [-2e5, -2e5 - 1, -2e5 - 2]), ([[1, -2, 1]], [0])]
    )
    flat = ReluNetwork.from_layers([([[0.0]], [0])])
    found = search(spike, flat, Box([-1], [1]), starts=np.array([[0.200001]]))
    assert found.gap > 0.9


def test_without_a_box_far_points_and_near_ones_are_found():
    steep = [ReluNetwork.from_layers([([[w]], [0]), ([[1.0]], [0])]) for w in (1.0, 1.5)]
    assert search(*steep, None).gap > 0.49
    shifted = [ReluNetwork.from_layers([([[1.0]], [b]), ([[1.0]], [0])]) for b in (0.0, 0.5)]
    assert search(*shifted, None).gap > 0.49


def test_target_stops_and_budget_is_kept():
    rng = np.random.default_rng(5)
    a, b = random_net((50, 200, 200, 5), rng), random_net((50, 200, 200, 5), rng)
    early = search(a, b, unit_box(50), target=1e-3)
    assert early.gap > 1e-3
    assert "differ by at least" in repr(early)
    began = time.process_time()
    search(a, b, unit_box(50), budget=0.05)
    assert time.process_time() - began < 1.0
