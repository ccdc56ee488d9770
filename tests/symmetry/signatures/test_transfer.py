"""Pooling over templates equals pooling over inputs for orthogonal actions, and what each costs."""

import numpy as np
import pytest

from pindown.symmetry import cyclic, dihedral, symmetric
from pindown.symmetry.signatures import pool_over_inputs, pool_over_templates, pooling_cost


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
