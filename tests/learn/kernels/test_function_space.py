"""Function spaces of kernels.

Reproduction, norms, Mercer, representers, ridge, centring, components, errata.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA, KernelPCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.kernels import (
    KernelExpansion,
    Laplace,
    LeaveOneOutKernelRidge,
    center_cross,
    center_gram,
    distance_to_mean,
    effective_dimension,
    fit_kernel_problem,
    gram,
    kernel_components,
    kernel_distance,
    leave_one_out_residuals,
    lipschitz_report,
    mean_distance_squared,
    mercer_spectrum,
    norm_squared_from_values,
    spectral_filter,
    squared_loss,
)
from pindown.learn.margins import LOGISTIC


def rng(seed=0):
    return np.random.default_rng(seed)


def random_function(seed, kernel="rbf", n=7):
    return KernelExpansion(kernel, rng(seed).normal(size=(n, 2)), rng(seed + 1).normal(size=n))


@parametrize_with_checks([LeaveOneOutKernelRidge()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", ["rbf", RBF(0.7), Laplace(1.0)])
@pytest.mark.parametrize("seed", range(4))
def test_reproducing_property_and_bounds(kernel, seed):
    f, X = random_function(seed, kernel), rng(9).normal(size=(30, 2))
    for x in X[:5]:
        assert f.inner(KernelExpansion(kernel, x[None], [1.0])) == pytest.approx(
            f(x[None])[0], abs=1e-10
        )
    assert (np.abs(f(X)) <= f.largest(X) * (1 + 1e-9)).all()
    changes = np.abs(f(X)[:, None] - f(X))
    assert (changes <= f.largest_change(X, X) + 1e-9).all()
    report = lipschitz_report(f, X)
    assert report.observed <= report.norm * (1 + 1e-6)
    if report.euclidean is not None:
        assert report.observed_euclidean <= report.euclidean * (1 + 1e-9)


def test_bounds_are_attained():
    x, z = np.array([[0.3, -1.0]]), np.array([[1.0, 0.5]])
    one = KernelExpansion("rbf", x, [2.0])
    assert abs(one(x)[0]) == pytest.approx(one.largest(x)[0])
    two = KernelExpansion("rbf", np.vstack([x, z]), [1.0, -1.0])
    assert (two(x) - two(z))[0] == pytest.approx(two.largest_change(x, z)[0, 0])


def test_algebra_and_projection():
    f, g = random_function(0), random_function(5)
    X = rng(1).normal(size=(4, 2))
    np.testing.assert_allclose((2 * f - g)(X), 2 * f(X) - g(X), atol=1e-12)
    Z = rng(2).normal(size=(5, 2))
    p = f.project(Z)
    np.testing.assert_allclose(p(Z), f(Z), atol=1e-8)
    assert f.norm**2 == pytest.approx(p.norm**2 + (f - p).norm ** 2, rel=1e-8)
    np.testing.assert_allclose(p.project(Z)(X), p(X), atol=1e-8)
    with pytest.raises(ValueError, match="different spaces"):
        f + random_function(0, "linear")


def test_one_function_has_one_norm():
    a = KernelExpansion("linear", [[1.0], [2.0]], [4.0, 0.0])
    b = KernelExpansion("linear", [[1.0], [2.0]], [0.0, 2.0])
    assert a.norm == b.norm == 4.0


def minimum(A, B):
    return np.minimum(A, B.T)


def test_mercer_of_the_minimum():
    n = 2000
    t = (np.arange(n) + 0.5) / n
    found = mercer_spectrum(minimum, t, n_terms=40)
    i = np.arange(1, 41)
    np.testing.assert_allclose(found.eigenvalues[:3], 1 / ((i[:3] - 0.5) ** 2 * np.pi**2), atol=1e-6)
    x = np.array([0.1, 0.45, 0.8])
    expected = np.sqrt(2) * np.sin((i[:3] - 0.5) * np.pi * x[:, None])
    np.testing.assert_allclose(np.abs(found.eigenfunctions(x)[:, :3]), np.abs(expected), atol=1e-3)
    assert found.norm_squared(t) == pytest.approx(1.0, abs=0.02)  # the integral of the squared slope
    errors = [
        np.abs(found.features(x)[:, :k] @ found.features(x)[:, :k].T - np.minimum(x[:, None], x)).max()
        for k in (2, 10, 40)
    ]
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("weighted", [False, True])
def test_mercer_features_are_exact_on_as_many_points_as_terms(weighted):
    """k(x, z) = sum of lambda_i phi_i(x) phi_i(z), the phi_i orthonormal under the weights."""
    X = rng(3).normal(size=(6, 2))
    w = rng(4).uniform(0.2, 2.0, 6) if weighted else None
    found = mercer_spectrum("rbf", X, w, n_terms=6, gamma=0.8)
    w = np.full(6, 1 / 6) if w is None else w
    K, x = gram("rbf", X, gamma=0.8), rng(5).normal(size=(4, 2))
    np.testing.assert_allclose(found.features(X) @ found.features(X).T, K, atol=1e-9)
    cross = gram("rbf", x, X, gamma=0.8)
    np.testing.assert_allclose(found.features(x) @ found.features(X).T, cross, atol=1e-9)
    np.testing.assert_allclose(found.at_points.T @ (w[:, None] * found.at_points), np.eye(6), atol=1e-9)
    np.testing.assert_allclose(found.eigenfunctions(X), found.at_points, atol=1e-7)
    values = rng(6).normal(size=6)
    np.testing.assert_allclose(found.at_points @ found.coefficients(values), values, atol=1e-9)
    assert found.norm_squared(values) == pytest.approx(values @ np.linalg.solve(K, values))
    np.testing.assert_allclose(found.apply(values), K @ (w * values), atol=1e-12)
    assert found.eigenvalues.sum() == pytest.approx((w * K.diagonal()).sum())  # the trace


def test_printed_integral_smooths_and_does_not_reproduce():
    n = 2000
    t = (np.arange(n) + 0.5) / n
    found = mercer_spectrum(minimum, t, n_terms=200)
    x = n // 2
    assert found.apply(t)[x] == pytest.approx(11 / 48, abs=1e-3)
    assert abs(found.apply(t)[x] - t[x]) > 0.25
    # The inner product with the kernel at x, in Mercer's coordinates, is the value.
    reproduced = (
        found.coefficients(t) * found.coefficients(np.minimum(t, t[x])) / found.eigenvalues
    ).sum()
    assert reproduced == pytest.approx(t[x], abs=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_representer_in_a_finite_feature_space(seed):
    Phi, y = rng(seed).normal(size=(6, 15)), np.sign(rng(seed + 1).normal(size=6))

    def objective(w):
        u = y * (Phi @ w)
        return LOGISTIC.value(u).mean() + 0.05 * w @ w, Phi.T @ (y * LOGISTIC.slope(u)) / 6 + 0.1 * w

    w = minimize(objective, rng(3).normal(size=15), jac=True, method="BFGS", options={"gtol": 1e-11}).x
    coefficients = np.linalg.lstsq(Phi.T, w, rcond=None)[0]
    assert np.linalg.norm(w - Phi.T @ coefficients) < 1e-7
    found = fit_kernel_problem(Phi @ Phi.T, y, 0.1, LOGISTIC)
    np.testing.assert_allclose(found.values, Phi @ w, atol=1e-6)
    assert found.objective == pytest.approx(objective(w)[0], abs=1e-10)


def test_printed_representer_needs_a_strictly_increasing_penalty():
    Phi, y = rng(0).normal(size=(4, 9)), rng(1).normal(size=4)
    span = np.linalg.pinv(Phi) @ Phi  # projector on the span of the samples' features

    def minimise(omega, start):
        def objective(w):
            value, slope = omega(w @ w)
            residual = Phi @ w - y
            return residual @ residual + value, 2 * Phi.T @ residual + 2 * slope * w

        found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-11})
        return found.x, found.fun

    def flat(s):  # max(0, s - 100): non-decreasing, and constant up to 100
        return max(0.0, s - 100.0), float(s > 100.0)

    def strict(s):
        return 0.1 * s, 0.1

    for seed in range(5):
        start = rng(seed + 10).normal(size=9)
        w, value = minimise(flat, start)
        # As printed this minimiser would be in the span; it is not, and is as good as the one that is.
        assert np.linalg.norm(w - span @ w) > 0.1
        assert value == pytest.approx(minimise(flat, span @ start)[1], abs=1e-12)
        inside = minimise(flat, span @ start)[0]
        assert np.linalg.norm(inside - span @ inside) < 1e-8
        w, _ = minimise(strict, start)
        assert np.linalg.norm(w - span @ w) < 1e-7
    # Ours looks in the span, with a strictly increasing penalty: n / 2 times its own is that of strict.
    ours = fit_kernel_problem(Phi @ Phi.T, y, 0.1 / len(y))
    np.testing.assert_allclose(Phi.T @ ours.coefficients, w, atol=1e-6)


def test_squared_loss_is_ridge_and_outputs_can_be_coupled():
    X, Y = rng(0).normal(size=(20, 2)), rng(1).normal(size=(20, 2))
    K, penalty = gram("rbf", X), 0.03
    one = fit_kernel_problem(K, Y[:, 0], penalty, squared_loss)
    ridge = KernelRidge(alpha=20 * penalty, kernel="precomputed").fit(K, Y[:, 0])
    np.testing.assert_allclose(one.values, ridge.predict(K), atol=1e-5)
    B = np.array([[2.0, 1.0], [1.0, 2.0]])
    both = fit_kernel_problem(K, Y, penalty, coupling=B)
    whole = np.kron(K, B)  # the matrix-valued kernel, sample by sample
    alpha = np.linalg.solve(whole + 20 * penalty * np.eye(40), Y.ravel())
    np.testing.assert_allclose(both.values.ravel(), whole @ alpha, atol=1e-5)


def test_closed_form_leave_one_out_against_refitting():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60] * 10, y[:60]
    for alpha in (1e-3, 0.1, 10.0):
        model = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5)
        brute = y - cross_val_predict(model, X, y, cv=LeaveOneOut())
        np.testing.assert_allclose(
            leave_one_out_residuals(gram("rbf", X, gamma=0.5), y, alpha), brute, rtol=1e-7
        )
    found = LeaveOneOutKernelRidge((0.1, 1.0, 10.0), gamma=0.5).fit(X, y)
    search = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=0.5),
        {"alpha": [0.1, 1.0, 10.0]},
        cv=LeaveOneOut(),
        scoring="neg_mean_squared_error",
    ).fit(X, y)
    assert found.alpha_ == search.best_params_["alpha"]
    assert found.loo_errors_.min() == pytest.approx(-search.best_score_)
    np.testing.assert_allclose(found.predict(X), search.predict(X), rtol=1e-8)


def test_ridge_relations():
    X, y = rng(0).normal(size=(25, 3)), rng(1).normal(size=25)
    K = X @ X.T
    linear = Ridge(alpha=25 * 0.1, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(
        KernelRidge(alpha=25 * 0.1).fit(X, y).predict(X), linear.predict(X), atol=1e-8
    )
    _, vectors, factors = spectral_filter(K, 2.5)
    np.testing.assert_allclose(
        vectors * factors @ vectors.T, K @ np.linalg.inv(K + 2.5 * np.eye(25)), atol=1e-10
    )
    assert effective_dimension(K, 2.5) == pytest.approx(factors.sum())
    assert effective_dimension(K, 1e-6) == pytest.approx(3.0, abs=1e-6)


def test_printed_norm_lacks_its_square():
    f = random_function(3)
    K, c = gram("rbf", f.centers), f.coefficients
    form = c @ K @ c
    assert abs(form - f.norm) > 0.05
    values, vectors = np.linalg.eigh(K)
    assert f.norm**2 == pytest.approx(form)
    assert f.norm**2 == pytest.approx((values * (vectors.T @ c) ** 2).sum())
    assert f.norm**2 == pytest.approx(norm_squared_from_values(K, K @ c), rel=1e-6)


def test_distances():
    X, Z = rng(0).normal(size=(8, 3)), rng(1).normal(size=(5, 3))
    np.testing.assert_allclose(
        kernel_distance("linear", X, Z), np.linalg.norm(X[:, None] - Z, axis=2), atol=1e-7
    )
    D = kernel_distance("rbf", X)
    assert D.max() <= np.sqrt(2)
    assert (D[:, :, None] <= D[:, None, :] + D[None, :, :].transpose(0, 2, 1) + 1e-9).all()
    assert mean_distance_squared("linear", X, Z) == pytest.approx(((X.mean(0) - Z.mean(0)) ** 2).sum())
    np.testing.assert_allclose(
        distance_to_mean("linear", X, Z), np.linalg.norm(X - Z.mean(0), axis=1), atol=1e-7
    )


def test_unbiased_mean_distance_has_mean_zero_for_one_distribution():
    draws = [
        mean_distance_squared(
            "rbf", rng(s).normal(size=(20, 1)), rng(s + 500).normal(size=(20, 1)), unbiased=True
        )
        for s in range(200)
    ]
    biased = [
        mean_distance_squared("rbf", rng(s).normal(size=(20, 1)), rng(s + 500).normal(size=(20, 1)))
        for s in range(200)
    ]
    assert abs(np.mean(draws)) < 3 * np.std(draws) / np.sqrt(200)
    assert np.mean(biased) > 0.02


def test_centring():
    Phi, New = rng(0).normal(size=(7, 4)), rng(1).normal(size=(3, 4))
    K = Phi @ Phi.T
    centred = Phi - Phi.mean(0)
    np.testing.assert_allclose(center_gram(K), centred @ centred.T, atol=1e-12)
    np.testing.assert_allclose(center_cross(New @ Phi.T, K), (New - Phi.mean(0)) @ centred.T, atol=1e-12)
    np.testing.assert_allclose(center_gram(center_gram(K)), center_gram(K), atol=1e-12)
    np.testing.assert_allclose(center_gram(K).sum(axis=0), 0, atol=1e-12)


def test_printed_ranges_of_the_mean_do_not_centre():
    Phi = rng(0).normal(size=(5, 3))
    K, n = Phi @ Phi.T, 5
    ours = center_gram(K)
    explicit = (Phi - Phi.mean(axis=0)) @ (Phi - Phi.mean(axis=0)).T
    np.testing.assert_allclose(ours, explicit, atol=1e-12)
    np.testing.assert_allclose(ours.sum(axis=0), 0.0, atol=1e-12)

    def centred(mean):
        return (Phi - mean) @ (Phi - mean).T

    # Indices from 0 to n: there is no sample 0; taken modulo n, as an array would, one counts twice.
    zero_to_n = centred(sum(Phi[i % n] for i in range(n + 1)) / n)
    assert np.abs(zero_to_n.sum(axis=0)).max() > 0.1
    # A sum over j of the k-th feature: each one is its own mean, and nothing is left.
    sum_of_one = centred(np.array([sum(Phi[k] for _ in range(n)) / n for k in range(n)]))
    assert np.abs(sum_of_one).max() < 1e-12 < np.abs(ours).max()


def test_components():
    X, new = rng(0).normal(size=(30, 3)) @ np.diag([3, 2, 1]), rng(1).normal(size=(4, 3))
    found = kernel_components(X @ X.T)
    pca = PCA().fit(X)
    assert len(found.variances) == 3
    np.testing.assert_allclose(found.variances, pca.explained_variance_ * 29 / 30, rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.transform(new @ X.T)), np.abs(pca.transform(new)), atol=1e-9)
    K = gram("rbf", X)
    other = KernelPCA(5, kernel="rbf").fit(X)
    np.testing.assert_allclose(
        np.abs(kernel_components(K, 5).scores), np.abs(other.transform(X)), atol=1e-8
    )


def test_printed_cancellation_keeps_directions_without_variance():
    X = rng(0).normal(size=(10, 2))
    K = center_gram(X @ X.T)
    null = np.linalg.svd(K)[2][-1]
    # K² a = n λ K a holds for every λ on the null space; K a = n λ a holds there for λ = 0 only.
    for value in (0.0, 1.0, 7.0):
        np.testing.assert_allclose(K @ K @ null, 10 * value * K @ null, atol=1e-10)
    assert np.abs(K @ null - 10 * 7.0 * null).max() > 1
    found = kernel_components(X @ X.T)
    assert len(found.variances) == 2
    np.testing.assert_allclose(found.coefficients.T @ K @ found.coefficients, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(found.scores.var(axis=0), found.variances, rtol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda: KernelExpansion("rbf", [[1.0]], [1.0, 2.0]),
        lambda: mercer_spectrum("rbf", [1.0, 2.0], [1.0, -1.0]),
        lambda: mercer_spectrum("rbf", [1.0, 2.0], n_terms=0),
        lambda: fit_kernel_problem(np.eye(2), [1.0, 2.0], 0.0),
        lambda: fit_kernel_problem(np.eye(2), [1.0], 1.0),
        lambda: fit_kernel_problem([[0.0, 1.0], [1.0, 0.0]], [1.0, 2.0], 1.0),
        lambda: leave_one_out_residuals(np.eye(2), [1.0, 2.0], 0.0),
        lambda: center_gram([[1.0, 2.0]]),
        lambda: center_gram([[1.0, 2.0], [0.0, 1.0]]),
        lambda: kernel_components(np.eye(2), 3),
        lambda: mean_distance_squared("rbf", [1.0], [1.0], unbiased=True),
        lambda: LeaveOneOutKernelRidge(alphas=[0.0]).fit([[1.0], [2.0]], [1.0, 2.0]),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(
    ("kernel", "parameters"), [("rbf", {"gamma": 1.0}), (RBF(0.7), {}), ("laplacian", {}), ("poly", {})]
)
def test_bounds_hold_for_samples_that_nearly_coincide(kernel, parameters):
    f = KernelExpansion(kernel, rng(0).normal(size=(20, 2)), rng(1).normal(size=20), parameters)
    x = rng(2).normal(size=(30, 2))
    for apart in (1e-3, 1e-7, 1e-9, 1e-12):
        z = x + apart * rng(3).normal(size=x.shape)
        changes, bounds = np.abs(f(x) - f(z)), np.diag(f.largest_change(x, z))
        assert (changes <= bounds + 1e-14 * np.abs(f.coefficients).sum()).all()
        assert (bounds > 0).all()


def test_norms_that_cancel_still_bound():
    # Two kernels 1e-9 apart with weights of 1e8: the squared norm is 0.02, its rounding 2.
    f = KernelExpansion("rbf", [[0.0], [1e-9]], [1e8, -1e8], {"gamma": 1.0})
    assert f.largest([[0.5]])[0] >= 1e8 * 1e-9 * 2 * 0.5 * np.exp(-0.25)


def test_distances_of_far_away_samples():
    far = 2.0**27
    assert kernel_distance("linear", [[far, 0.0]], [[far, 1.0]]).item() == 1.0
    exact = np.sqrt(-2 * np.expm1(-1.0))
    assert kernel_distance("rbf", [[far]], [[far + 1]], gamma=1.0).item() == pytest.approx(exact)


@pytest.mark.parametrize(
    "call",
    [
        lambda: leave_one_out_residuals(np.eye(2), [1.0, 2.0, 3.0], 1.0),
        lambda: leave_one_out_residuals(np.eye(2), [1.0, np.nan], 1.0),
        lambda: norm_squared_from_values(-np.eye(2), [1.0, 1.0]),
        lambda: norm_squared_from_values(np.eye(2), [1.0, 1.0, 1.0]),
        lambda: LeaveOneOutKernelRidge(alphas=[]).fit([[0.0], [1.0]], [0.0, 1.0]),
    ],
)
def test_targets_that_do_not_fit_are_refused(call):
    with pytest.raises(ValueError):
        call()
