"""Rules that are gradients of sums over units and samples respect the symmetry of the samples."""

import numpy as np
import pytest
import torch

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.plasticity import gradient_rule, learn, oja_rule, plasticity_equivariance_error

torch.set_num_threads(1)
OBJECTIVES = {
    "variance": lambda u: u**2,
    "kurtosis": lambda u: -(u**4),
    "softplus": torch.nn.functional.softplus,
    "rectified and squared": lambda u: torch.relu(u) ** 2,
}


def autograd_rule(f):
    def rule(W, X):
        weights = torch.tensor(W, requires_grad=True)
        f(weights @ torch.tensor(X).T).sum().backward()
        return weights.grad.numpy()

    return rule


def setting(group, units=3, orbits=2, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((units, group.degree))
    X = np.concatenate([group.orbit(t) for t in rng.standard_normal((orbits, group.degree))])
    return W, X


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("group", [cyclic(6), dihedral(4).permuting()])
def test_gradients_of_separable_objectives_move_with_a_unit(name, group):
    W, X = setting(group)
    rule = autograd_rule(OBJECTIVES[name])
    for unit in (0, 2, None):
        assert plasticity_equivariance_error(rule, W, X, group, unit=unit) < 1e-10
    assert plasticity_equivariance_error(rule, W, X[:-2], group) > 1e-3  # orbits not complete


def test_gradient_rule_agrees_with_autograd():
    W, X = setting(cyclic(5))
    ours = gradient_rule(lambda u: 4 * u**3)(W, X)
    assert np.allclose(ours, autograd_rule(lambda u: u**4)(W, X))


def test_trajectories_from_moved_weights_are_moved():
    group = dihedral(4)
    W, X = setting(group, units=1)
    X = X / np.linalg.norm(X, axis=1).max() / 4
    for rule in (oja_rule, gradient_rule(lambda u: 1 / (1 + np.exp(-u)))):
        end = learn(rule, W, X, step=0.1, steps=100)
        assert np.abs(end - W).max() > 0.1
        for index in range(group.order):
            moved = learn(rule, group.act(index, W), X, step=0.1, steps=100)
            assert np.abs(moved - group.act(index, end)).max() < 1e-8


def test_units_that_compete_must_be_moved_together():
    """A decorrelating term couples units: moving one alone breaks the rule's symmetry."""
    group = cyclic(6)
    W, X = setting(group)

    def decorrelating(W, X):
        C = X.T @ X
        return W @ C - (W @ C @ W.T) @ W

    assert plasticity_equivariance_error(decorrelating, W, X, group, unit=0) > 1e-2
    assert plasticity_equivariance_error(decorrelating, W, X, group, unit=None) < 1e-10


def test_oja_rule_is_the_mean_of_its_single_updates():
    W, X = setting(cyclic(4), units=2)
    for w, update in zip(W, oja_rule(W, X), strict=True):
        singles = sum((w @ x) * (x - (w @ x) * w) for x in X)
        assert np.allclose(update, singles)


def test_bad_input_is_refused():
    group = cyclic(3)
    with pytest.raises(ValueError, match="unit"):
        plasticity_equivariance_error(oja_rule, np.ones(3), group.orbit([1.0, 0, 0]), group, unit=1)
    with pytest.raises(ValueError, match="weights have 2"):
        plasticity_equivariance_error(oja_rule, np.ones(2), group.orbit([1.0, 0, 0]), group)
    with pytest.raises(ValueError, match="steps"):
        learn(oja_rule, np.ones(3), np.eye(3), step=0.1, steps=-1)
