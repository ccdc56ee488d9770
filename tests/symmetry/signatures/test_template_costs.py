"""How many templates: the formula, its failure rate by simulation, and what it does not promise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.signatures import (
    orbit_distance,
    orbit_projections,
    pool_over_inputs,
    pool_over_templates,
    pooling_cost,
    signature_distance,
    simulate_templates,
    templates_needed,
)
from pindown.symmetry.signatures.projections import unit_templates


def test_formula_makes_hoeffding_and_the_union_bound_hold():
    assert templates_needed(10, 0.1, 0.1) == 461
    for Q, eps, delta in itertools.product((1, 2, 10, 500), (0.02, 0.1, 0.5), (0.01, 0.3)):
        K = templates_needed(Q, eps, delta)
        pairs = Q * (Q - 1) / 2
        assert pairs * 2 * math.exp(-2 * K * eps**2) <= delta**2 * (1 + 1e-9)
    assert templates_needed(10, 0.1, 0.1, c=1.0) == 922  # 2 ln(100) / 0.01, rounded up


def test_distance_is_the_mean_over_templates():
    assert signature_distance([0.0, 1.0, 2.0, 5.0], [1.0, 1.0, 0.0, 0.0]) == 2.0
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 7))
    assert signature_distance(np.tile(first, 3), np.tile(second, 3)) == pytest.approx(
        signature_distance(first, second)
    )


@pytest.mark.parametrize("nonlinearity", ["step", "sigmoid"])
def test_failures_are_rarer_than_stated(nonlinearity):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 8))
    found = simulate_templates(
        X, cyclic(8), eps=0.1, delta=0.1, threshold=0.3, nonlinearity=nonlinearity, repeats=40
    )
    assert found.n_templates == 461 and found.failures == 0
    assert 0 < found.largest < 0.1
    assert found.smallest_limit > 0.001
    # Hoeffding for each of the pairs: what may fail is what was asked for.
    bounds = [45 * 2 * math.exp(-2 * K * 0.1**2) for K in (461, 455)]
    assert bounds[0] <= found.allowed < bounds[1]


def test_fewer_templates_do_fail():
    """With a hundredth of the templates deviations exceed eps: the simulation can see failures."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 8))
    tight = simulate_templates(X, dihedral(4), eps=0.1, delta=0.1, repeats=20, limit_templates=4000)
    few = simulate_templates(X, dihedral(4), eps=0.9, delta=0.9, repeats=20, limit_templates=4000)
    assert few.n_templates < tight.n_templates / 100
    assert few.largest > 0.1 > tight.largest


def test_printed_equivalence_fails_however_many_templates():
    """Enough templates bring D_K near its limit; for x and -x under rectified units the limit is 0."""
    group, rng = cyclic(8), np.random.default_rng(1)
    x = rng.standard_normal(8)
    x -= x.mean()
    assert orbit_distance(x, -x, group) > 1
    K = templates_needed(2, 0.01, 0.01)
    templates = unit_templates(K, 8, rng)
    first, second = np.maximum(orbit_projections([x, -x], templates, group), 0).mean(axis=2)
    assert K > 50_000 and signature_distance(first, second) < 1e-12
    first, second = (orbit_projections([x, -x], templates, group) > 0.3).mean(axis=2)
    assert signature_distance(first, second) > 0.02


def test_bad_input_is_refused():
    for arguments, words in (
        ((0, 0.1, 0.1), "n_orbits"),
        ((2.5, 0.1, 0.1), "n_orbits"),
        ((10, 0.0, 0.1), "eps"),
        ((10, 0.1, 1.0), "delta"),
        ((10, float("nan"), 0.1), "eps"),
    ):
        with pytest.raises(ValueError, match=words):
            templates_needed(*arguments)
    with pytest.raises(ValueError, match="c must"):
        templates_needed(10, 0.1, 0.1, c=0.0)
    with pytest.raises(ValueError, match="one length"):
        signature_distance([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="'step', 'sigmoid'"):
        simulate_templates(np.ones((2, 3)), cyclic(3), nonlinearity="relu")


@pytest.mark.parametrize("group", [cyclic(6), dihedral(4).permuting(), symmetric(4).permuting()])
@pytest.mark.parametrize("eta", [np.tanh, np.abs, lambda u: np.maximum(u - 0.3, 0)])
def test_orthogonal_actions_may_move_either(group, eta):
    x, t = np.random.default_rng(0).standard_normal((2, group.degree))
    expected = pool_over_inputs(x, t, group, eta)
    assert pool_over_templates(x, t, group, eta) == pytest.approx(expected, abs=1e-12)
    assert pool_over_templates(x, t, group, eta, adjoint=True) == pytest.approx(expected, abs=1e-12)


def test_other_actions_need_the_adjoint():
    """A group that scales: the template's own orbit gives neither equality nor invariance."""
    stretch = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 3.0], [1 / 3, 0.0]]])
    group = cyclic(2).acting_by(stretch)
    x, t = np.array([1.0, 2.0]), np.array([1.0, -0.5])
    expected = pool_over_inputs(x, t, group, np.abs)
    assert abs(pool_over_templates(x, t, group, np.abs) - expected) > 0.1
    assert pool_over_templates(x, t, group, np.abs, adjoint=True) == pytest.approx(expected, abs=1e-12)
    moved = group.act(1, x[None])[0]
    assert pool_over_inputs(moved, t, group, np.abs) == pytest.approx(expected, abs=1e-12)
    assert (
        abs(pool_over_templates(moved, t, group, np.abs) - pool_over_templates(x, t, group, np.abs))
        > 0.1
    )


def test_costs_count_a_matrix_product():
    cost = pooling_cost(n_templates=3, order=4, n_features=5)
    assert cost.stored == 3 * 4 * 5 == cost.stored_products
    assert cost.moved_products - cost.stored_products == 4 * 5 * 5
    assert cost.moved == 4 * 25 + 15 and "60 numbers" in str(cost)
    with pytest.raises(ValueError, match="order"):
        pooling_cost(3, 0, 5)
