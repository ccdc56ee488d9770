"""Outputs move by no more than the bound says, Gaussian matrices are as small as it says."""

import math
from itertools import pairwise

import numpy as np
import pytest

from pindown.guarantees.bounds.rescaled_weights import WeightList
from pindown.guarantees.bounds.weight_noise import noise_scale, norm_level, norm_tail, perturbation_bound


def random_network(rng, widths, scale=1.0):
    return WeightList(
        "given",
        tuple(scale * rng.standard_normal((m, n)) / math.sqrt(n) for n, m in pairwise(widths)),
    )


@pytest.mark.parametrize("widths", [(3, 5, 2), (4, 6, 6, 3), (2, 3, 3, 3, 2), (5, 1)])
def test_holds_for_every_network_and_perturbation(widths):
    rng = np.random.default_rng(0)
    for _ in range(40):
        net = random_network(rng, widths, rng.uniform(0.3, 2))
        moved = net.shifted(net.vector + 10 ** rng.uniform(-3, 0) * rng.standard_normal(net.vector.size))
        moves = [np.linalg.norm(a - b, 2) for a, b in zip(moved.matrices, net.matrices, strict=True)]
        X = rng.standard_normal((30, widths[0]))
        B = np.linalg.norm(X, axis=1).max()
        found = np.linalg.norm(moved(X) - net(X), axis=1).max()
        sharp = perturbation_bound(net.norms, moves, B)
        assert found <= sharp
        assert sharp <= perturbation_bound(net.norms, moves, B, variant="as_printed") * (1 + 1e-9)


def test_sharp_form_is_attained_by_one_long_chain():
    net = WeightList("given", (np.array([[2.0]]), np.array([[3.0]])))
    moved = WeightList("given", (np.array([[2.5]]), np.array([[3.25]])))
    x = np.array([[4.0]])
    assert float(moved(x)[0, 0] - net(x)[0, 0]) == pytest.approx(
        perturbation_bound([2, 3], [0.5, 0.25], 4.0)
    )


def test_source_needs_its_side_condition():
    """The printed formula without its condition fails: layers of norm one doubled at depth five."""
    assert perturbation_bound([1] * 5, [1] * 5) == pytest.approx(31)
    assert math.e * 5 < 31
    assert perturbation_bound([1] * 5, [1] * 5, variant="as_printed") == math.inf


@pytest.mark.parametrize("variant", ["sharp", "as_printed"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 40)])
def test_tail_by_simulation(variant, shape):
    rng = np.random.default_rng(1)
    norms = np.linalg.norm(rng.standard_normal((4000, *shape)), 2, axis=(1, 2))
    for failure in (0.5, 0.1, 0.01):
        level = norm_level(*shape, failure, variant=variant)
        share = np.mean(norms > level)
        assert share <= failure + 3 * math.sqrt(failure / 4000)
        assert norm_tail(*shape, level, variant=variant) == pytest.approx(failure, rel=1e-6)


def test_printed_tail_with_the_hidden_width_fails_where_the_input_is_wider():
    """h = 10 for a 10 x 400 layer: the norm is above the level it names nearly always, not in 1 %."""
    rng = np.random.default_rng(2)
    norms = np.linalg.norm(rng.standard_normal((300, 10, 400)), 2, axis=(1, 2))
    printed = math.sqrt(2 * 10 * math.log(2 * 10 / 0.01))
    assert np.mean(norms > printed) > 0.99
    assert np.mean(norms > norm_level(10, 400, 0.01, variant="as_printed")) <= 0.05
    assert np.mean(norms > norm_level(10, 400, 0.01)) <= 0.05


@pytest.mark.parametrize("success", [0.5, 0.9, 0.99])
def test_noise_of_that_scale_moves_outputs_no_further(success):
    rng = np.random.default_rng(3)
    net = random_network(rng, (4, 8, 8, 3))
    X = rng.standard_normal((20, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    sigma = noise_scale(net.norms, net.shapes, 0.5, success=success)
    far = 0
    for _ in range(300):
        moved = net.shifted(net.vector + sigma * rng.standard_normal(net.vector.size))
        far += np.linalg.norm(moved(X) - net(X), axis=1).max() > 0.5
    assert far / 300 <= 1 - success + 3 * math.sqrt((1 - success) / 300)


def test_noise_scale_is_monotone_and_tight():
    base = noise_scale([2, 3], [(4, 3), (2, 4)], 1.0)
    assert noise_scale([2, 3], [(4, 3), (2, 4)], 2.0) > base
    assert noise_scale([2, 4], [(4, 3), (2, 4)], 1.0) < base
    assert noise_scale([2, 3], [(4, 3), (2, 4)], 1.0, input_norm=2.0) < base
    assert noise_scale([2, 3], [(4, 3), (2, 4)], 1.0, success=0.9) < base
    levels = [norm_level(p, q, 0.25) for p, q in ((4, 3), (2, 4))]
    assert perturbation_bound([2, 3], [base * t for t in levels]) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("norms", [(0.0, 0.0), (1e-200, 1e200), (1e100, 1e100)])
def test_extreme_norms(norms):
    assert 0 < noise_scale(norms, [(1, 1), (1, 1)], 1.0) < math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: perturbation_bound([], []),
        lambda: perturbation_bound([1], [1, 2]),
        lambda: perturbation_bound([-1], [1]),
        lambda: noise_scale([1], [(1, 1)], 0.0),
        lambda: noise_scale([1], [(1, 1)], 1.0, input_norm=0.0),
        lambda: norm_tail(0, 1, 1.0),
    ],
)
def test_refuses(call):
    with pytest.raises(ValueError, match=r"must|need|zero"):
        call()


def test_a_tail_is_never_zero():
    for variant in ("sharp", "as_printed"):
        assert 0.0 < norm_tail(2, 2, 1e3, variant=variant) < 1e-300
