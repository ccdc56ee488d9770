"""Oja's and Hebb's rules find the leading eigenspace; the rule as printed runs away."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import IncrementalPCA

from pindown.symmetry import cyclic, dihedral
from pindown.symmetry.plasticity import (
    gradient_rule,
    leading_share,
    learn,
    oja,
    oja_rule,
    plasticity_equivariance_error,
    sanger,
)

STD = np.array([2.0, 1.0, 0.5])


def stream(n=20_000, seed=0, std=STD):
    return np.random.default_rng(seed).standard_normal((n, len(std))) * std


@pytest.mark.parametrize("rule", ["oja", "hebb"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_converge_to_the_leading_eigenvector(rule, seed):
    run = oja(stream(seed=seed), np.ones(3), rule=rule)
    assert abs(run.weights[0]) / np.linalg.norm(run.weights) > 0.999
    assert run.norms[-1] == pytest.approx(1.0, abs=1e-2)
    assert run.steps == 20_000 and run.turns[-1] < 1e-4 < run.turns[0]
    assert run.converged and run.shares == (
        pytest.approx(leading_share(run.weights, stream(seed=seed))),
    )


def test_printed_rule_diverges():
    """With y x in place of y w in the second term nothing holds the length."""
    X, w, largest = stream(), np.ones(3), 0.0
    for t, x in enumerate(X, start=1):
        y = w @ x
        w = w + 1.0 / (200 + t) * y * (x - y * x)
        largest = max(largest, float(np.linalg.norm(w)))
        if largest > 100:
            break
    ours = oja(X, np.ones(3))
    assert largest > 100
    assert max(ours.norms) < 2 and ours.norms[-1] == pytest.approx(1.0, abs=1e-2)


def test_samples_are_not_centred():
    X = np.random.default_rng(3).standard_normal((5000, 3)) * 0.3 + [0.0, 0.0, 2.0]
    run = oja(X, np.ones(3))
    assert abs(run.weights[2]) > 0.99


def test_ties_end_in_the_eigenspace_and_depend_on_the_start():
    X = stream(std=np.array([2.0, 2.0, 0.5]))
    ends = [oja(X, start).weights for start in ([1.0, 0.1, 1.0], [0.1, 1.0, 1.0])]
    for w in ends:
        assert np.linalg.norm(w[:2]) > 0.999 * np.linalg.norm(w)
    assert abs(ends[0] @ ends[1]) < 0.7


def test_oja_on_full_orbits_ends_in_an_eigenspace_that_holds_the_orbit():
    group, rng = cyclic(8), np.random.default_rng(4)
    X = np.concatenate([group.orbit(t) for t in rng.standard_normal((3, 8))])
    run = oja(X, rng.standard_normal(8), epochs=500, delay=400.0, random_state=0)
    moment = X.T @ X
    w = run.weights / np.linalg.norm(run.weights)
    assert leading_share(w, X) > 0.999
    quotients = [v @ moment @ v for v in group.orbit(w)]
    assert np.ptp(quotients) < 1e-9 * max(quotients)


def test_sanger_agrees_with_principal_components():
    X = stream(8000, seed=5, std=np.array([3.0, 2.0, 1.0, 0.5]))
    start = np.random.default_rng(0).standard_normal((2, 4)) / 4
    found = sanger(X, start).weights
    expected = IncrementalPCA(2).fit(X).components_
    for ours, theirs in zip(found, expected, strict=True):
        assert abs(ours @ theirs) / np.linalg.norm(ours) > 0.995


def test_standing_still_is_not_settled():
    """Eigenvalues are close: the weights hardly turn any more, far from where they are going."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((2000, 3)) * [0.5, 0.45, 0.4]
    run = oja(X, rng.standard_normal(3))
    assert run.turns[-1] < 1e-6 and leading_share(run.weights, X) < 0.2
    assert not run.converged and "not settled" in str(run) and "0.15" in str(run)
    assert not oja(stream(), [0.0, 1e-6, 1.0], step=1e-3).converged  # next to a saddle


def test_every_unit_of_sanger_must_be_settled():
    X = stream(std=np.array([2.0, 1.0, 0.25]))
    start = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [0.0, 1.0, 1.0]])
    two, three = sanger(X, start[:2]), sanger(X, start)
    assert two.converged and min(two.shares) > 0.999
    assert not three.converged and min(three.shares[:2]) > 0.999
    assert three.shares[2] < 0.5
    axes = np.repeat(np.vstack([np.diag([2.0, 1.0, 0.5]), -np.diag([2.0, 1.0, 0.5])]), 2, axis=0)
    wrong = sanger(axes, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], step=1e-9)  # the third, not the second
    assert wrong.shares == (1.0, 0.0) and not wrong.converged
    assert sanger(axes, np.eye(3), step=1e-9).shares == (1.0, 1.0, 1.0)


def test_units_in_one_eigenspace_must_be_orthogonal():
    X = np.repeat(np.vstack([np.eye(2), -np.eye(2)]), 2, axis=0)
    alike, apart = sanger(X, [[1.0, 0.0], [1.0, 0.0]], step=1e-9), sanger(X, np.eye(2), step=1e-9)
    assert alike.shares == apart.shares == (1.0, 1.0)
    assert apart.converged and not alike.converged


def test_leading_share_is_one_only_in_the_eigenspace():
    X = np.diag([2.0, 2.0, 1.0])
    assert leading_share([1.0, -3.0, 0.0], X) == pytest.approx(1.0)
    assert leading_share([0.0, 0.0, 1.0], X) == pytest.approx(0.0)


def test_the_same_seed_shuffles_the_same_way():
    X = stream(500)
    first, second = (oja(X, np.ones(3), epochs=2, random_state=1).weights for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, oja(X, np.ones(3), epochs=2).weights)


def test_bad_input_is_refused():
    X = stream(300)
    with pytest.raises(ValueError, match="not all zero"):
        oja(X, np.zeros(3))
    with pytest.raises(ValueError, match="3 numbers"):
        oja(X, np.ones(2))
    with pytest.raises(ValueError, match="rule"):
        oja(X, np.ones(3), rule="printed")
    with pytest.raises(ValueError, match="step"):
        oja(X, np.ones(3), step=-1.0)
    with pytest.raises(ValueError, match="diverged"):
        oja(100 * X, np.ones(3), delay=0.0)
    with pytest.raises(ValueError, match="diverged"):
        sanger(100 * X, np.ones((1, 3)), delay=0.0)
    with pytest.raises(ValueError, match="all samples are zero"):
        oja(np.zeros((5, 3)), np.ones(3))
    with pytest.raises(ValueError, match="finite"):
        oja([[np.nan, 1.0, 2.0]], np.ones(3))
    with pytest.raises(ValueError, match="k at most"):
        sanger(X, np.ones((4, 3)))
    assert "settled" in str(oja(X, np.ones(3)))


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


def test_bad_rules_and_units_are_refused():
    group = cyclic(3)
    with pytest.raises(ValueError, match="unit"):
        plasticity_equivariance_error(oja_rule, np.ones(3), group.orbit([1.0, 0, 0]), group, unit=1)
    with pytest.raises(ValueError, match="weights have 2"):
        plasticity_equivariance_error(oja_rule, np.ones(2), group.orbit([1.0, 0, 0]), group)
    with pytest.raises(ValueError, match="steps"):
        learn(oja_rule, np.ones(3), np.eye(3), step=0.1, steps=-1)
