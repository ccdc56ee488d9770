"""Invariant kernels: invariant, positive, one sum as good as two, and at home in scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from pindown.symmetry import cyclic, dihedral, invariant_gram, invariant_kernel, pooled_features
from pindown.symmetry.kernels import base_gram, is_known_invariant
from tests.symmetry.layers.actions import polygon, skewed

CORNERS = dihedral(4).permuting()
SKEWED = CORNERS.acting_by(skewed(CORNERS, 0))


def samples(n=12, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def bent(X, Z):
    """A kernel that no symmetry leaves alone."""
    lift = lambda A: np.column_stack([A, A[:, 0] ** 2, np.sin(A[:, 1])])  # noqa: E731
    return lift(X) @ lift(Z).T


CASES = [
    ("rbf", CORNERS),
    ("poly", CORNERS),
    ("laplacian", CORNERS),
    ("rbf", SKEWED),
    (bent, CORNERS),
    (bent, SKEWED),
    (RBF(1.5) + ConstantKernel(0.5) * DotProduct(), CORNERS),
]


@pytest.mark.parametrize(("base", "group"), CASES)
def test_the_matrix_is_invariant_positive_and_the_double_sum(base, group):
    X, Z = samples(), samples(7, seed=1)
    K = invariant_gram(base, group, X, Z)
    for g in range(group.order):
        assert np.abs(invariant_gram(base, group, X, group.act(g, Z)) - K).max() < 1e-10
        assert np.abs(invariant_gram(base, group, group.act(g, X), Z) - K).max() < 1e-10
    itself = invariant_gram(base, group, X)
    assert np.array_equal(itself, itself.T)
    assert np.linalg.eigvalsh(itself).min() > -1e-10 * np.abs(itself).max()
    assert np.abs(invariant_gram(base, group, X, Z, mode="double") - K).max() < 1e-12 * (
        1 + np.abs(K).max()
    )
    moved = [group.act(g, X) for g in range(8)], [group.act(h, Z) for h in range(8)]
    by_hand = np.mean([base_gram(base, x, z, {}) for x in moved[0] for z in moved[1]], axis=0)
    np.testing.assert_allclose(K, by_hand, atol=1e-12 * (1 + np.abs(K).max()))
    total = invariant_gram(base, group, X, Z, reduce="sum")
    assert np.allclose(total, 64 * K)


@pytest.mark.parametrize(
    "base", ["linear", "rbf", "poly", "sigmoid", "cosine", RBF(), Matern(), DotProduct()]
)
@pytest.mark.parametrize("group", [CORNERS, polygon(5)])
def test_one_sum_equals_two_for_kernels_that_the_action_leaves_alone(base, group):
    X, Z = samples(d=group.degree), samples(7, group.degree, seed=1)
    assert is_known_invariant(base, group)
    one, two = (invariant_gram(base, group, X, Z, mode=mode) for mode in ("single", "double"))
    assert np.abs(one - two).max() < 1e-12
    assert np.array_equal(one, invariant_gram(base, group, X, Z))


def test_one_sum_is_the_order_times_cheaper():
    calls = []

    def counted(X, Z):
        calls.append(len(X) * len(Z))
        return np.exp(-((X[:, None] - Z) ** 2).sum(-1))

    X = samples(20)
    for mode in ("double", "single"):
        calls.clear()
        invariant_gram(counted, CORNERS, X, X, mode=mode)
        pairs = sum(size for size in calls if size == 400)
        assert pairs == (64 if mode == "double" else 8) * 400


@pytest.mark.parametrize(
    ("base", "group"),
    [
        ("rbf", SKEWED),
        ("laplacian", polygon(5)),
        (bent, CORNERS),
        (RBF([1.0, 2.0, 3.0, 4.0]), CORNERS),
    ],
)
def test_one_sum_is_refused_where_it_would_be_wrong(base, group):
    assert not is_known_invariant(base, group)
    with pytest.raises(ValueError, match="use mode 'double'"):
        invariant_gram(base, group, samples(d=group.degree), mode="single")


def relu(u):
    return np.maximum(u, 0.0)


def test_printed_base_kernel_does_not_depend_on_what_is_summed():
    """The kernel of pooled features is the double sum of K'(g^-1 x, h^-1 x'), with all templates.

    Printed is K'(x, x') under the sums over g and h, and the first template t_1 under the sum over t.
    """
    X, T = samples(6), samples(5, seed=2)
    features = pooled_features(X, T, CORNERS)
    K = features @ features.T
    base = lambda A, B: relu(A @ T.T) @ relu(B @ T.T).T  # noqa: E731
    inverse = [CORNERS.act(int(CORNERS.inverses[g]), X) for g in range(8)]
    corrected = sum(base(A, B) for A in inverse for B in inverse)
    assert np.allclose(corrected, K)
    assert np.allclose(invariant_gram(base, CORNERS, X, reduce="sum"), K)
    constant_term = 64 * base(X, X)
    assert np.abs(constant_term - K).max() > 0.1
    first = pooled_features(X, T[:1], CORNERS)
    assert np.abs(5 * first @ first.T - K).max() > 0.1


def test_kernel_ridge_svc_and_gaussian_processes_take_it():
    X, Z = samples(60), samples(50, seed=1)
    y = np.cos(2 * X).sum(axis=1)
    kernel = invariant_kernel("rbf", CORNERS, gamma=0.5)
    ridge = KernelRidge(alpha=1e-3, kernel=kernel).fit(X, y)
    K, across = (
        invariant_gram("rbf", CORNERS, X, gamma=0.5),
        invariant_gram("rbf", CORNERS, Z, X, gamma=0.5),
    )
    by_hand = across @ np.linalg.solve(K + 1e-3 * np.eye(60), y)
    assert np.allclose(ridge.predict(Z), by_hand, atol=1e-8)
    assert np.abs(ridge.predict(CORNERS.act(3, Z)) - ridge.predict(Z)).max() < 1e-8
    np.testing.assert_allclose(kernel.diag(Z), np.diag(kernel(Z)))
    svc = SVC(kernel=kernel).fit(X, y > np.median(y))
    assert (svc.predict(CORNERS.act(5, Z)) == svc.predict(Z)).all()
    process = GaussianProcessRegressor(
        invariant_kernel(ConstantKernel() * RBF(), CORNERS)
        + WhiteKernel(0.1, noise_level_bounds=(1e-9, 1.0)),
        random_state=0,
    ).fit(X, y + 0.2 * np.random.default_rng(3).standard_normal(60))
    mean, deviation = process.predict(Z, return_std=True)
    moved, same = process.predict(CORNERS.act(6, Z), return_std=True)
    assert np.abs(mean - moved).max() < 1e-6 and np.abs(deviation - same).max() < 1e-6
    assert np.corrcoef(mean, np.cos(2 * Z).sum(axis=1))[0, 1] > 0.9


def test_parameters_of_the_base_are_tuned_through_the_kernel():
    kernel = invariant_kernel(ConstantKernel(2.0) * RBF(3.0), CORNERS)
    assert np.allclose(kernel.theta, np.log([2.0, 3.0])) and kernel.bounds.shape == (2, 2)
    moved = clone(kernel)
    moved.theta = np.log([1.0, 0.5])
    assert np.allclose(kernel.theta, np.log([2.0, 3.0])) and moved.base.k2.length_scale == pytest.approx(
        0.5
    )
    X, y = samples(30), samples(30).sum(axis=1)
    search = GridSearchCV(
        KernelRidge(kernel=invariant_kernel("rbf", CORNERS)), {"kernel__gamma": [0.1, 1.0]}
    )
    assert search.fit(X, y).best_params_["kernel__gamma"] in (0.1, 1.0)


@pytest.mark.parametrize("group", [CORNERS, SKEWED], ids=["one sum", "two sums"])
@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_gradient_is_that_of_differences(group, reduce):
    X, step = samples(6), 1e-6
    kernel = invariant_kernel(ConstantKernel(2.0) * RBF(1.5), group, reduce=reduce)
    _, gradient = kernel(X, eval_gradient=True)
    for i in range(2):
        ahead, behind = (
            kernel.clone_with_theta(kernel.theta + sign * step * np.eye(2)[i]) for sign in (1, -1)
        )
        slope = (ahead(X) - behind(X)) / (2 * step)
        assert np.allclose(gradient[:, :, i], slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
    assert np.allclose(kernel.diag(X), np.diag(kernel(X)))
    assert invariant_kernel("rbf", group)(X, eval_gradient=True)[1].shape == (6, 6, 0)
    with pytest.raises(ValueError, match="leave Y out"):
        kernel(X, X, eval_gradient=True)


def test_a_kernel_without_invariant_functions_warns():
    X = samples(d=2)
    with pytest.warns(UserWarning, match="averaged kernel is 0"):
        K = invariant_gram("linear", polygon(4), X)
    assert np.abs(K).max() < 1e-12
    assert invariant_gram("rbf", polygon(4), X).min() > 0


def test_bad_kernels_are_refused():
    X = samples()
    for arguments, message in (
        (("magic", CORNERS, X), "base must be"),
        (("rbf", CORNERS, np.full((2, 4), np.nan)), "finite table of samples"),
        (("rbf", CORNERS, np.empty((0, 4))), "finite table of samples"),
        (("rbf", cyclic(3), X), "acts here on vectors of 3"),
        ((lambda A, B: np.ones(3), CORNERS, X), "must return"),
    ):
        with pytest.raises(ValueError, match=message):
            invariant_gram(*arguments)
    with pytest.raises(ValueError, match="mode must be"):
        invariant_gram("rbf", CORNERS, X, mode="triple")
    with pytest.raises(TypeError, match="name or a function"):
        invariant_gram(3, CORNERS, X)
    with pytest.raises(TypeError, match="must be a Group"):
        invariant_kernel("rbf", 8)
    with pytest.raises(ValueError, match="noise outside"):
        invariant_kernel(RBF() + WhiteKernel(), CORNERS)


def test_a_group_too_large_for_matrices_has_an_invariant_kernel():
    X = samples(2, 401)
    K = invariant_gram("rbf", cyclic(401), X, np.roll(X, 7, axis=1))
    assert np.allclose(K, invariant_gram("rbf", cyclic(401), X), rtol=1e-12)
