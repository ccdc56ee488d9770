"""Kernel logistic regression.

The minimiser by other routes, equivalences, calibration, scikit-learn's rules.
"""

import pickle
import time
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn.kernels import KernelLogisticClassifier, Laplace, Sinc, fit_kernel_problem, gram
from pindown.learn.kernels._kernel_logistic_newton import Dense, Factored, operator
from pindown.learn.margins import LOGISTIC


@parametrize_with_checks([KernelLogisticClassifier(), KernelLogisticClassifier(n_components=10)])
def test_scikit_learn_checks(estimator, check):
    if estimator.n_components == 10 and "sample_weight_equivalence" in str(check):
        pytest.skip("landmarks are drawn from the samples as they are given, repeated ones included")
    check(estimator)


def moons(n=60, seed=0):
    X, y = make_moons(n, noise=0.3, random_state=seed)
    return X, y


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimum_is_no_higher_than_a_quasi_newton_method_finds(C, seed):
    X, y = moons(seed=seed)
    model = KernelLogisticClassifier(C=C, gamma=1.0, fit_intercept=False, tol=1e-12).fit(X, y)
    K, labels = gram("rbf", X, gamma=1.0), 2 * y - 1
    other = fit_kernel_problem(K, labels, 1 / (len(X) * C), LOGISTIC)
    ours = LOGISTIC.value(labels * model.decision_function(X)).mean()
    ours += model.dual_coef_[0] @ K @ model.dual_coef_[0] / (2 * len(X) * C)
    assert ours <= other.objective + 1e-9
    np.testing.assert_allclose(model.decision_function(X), other.values, atol=1e-4)
    # The fixed point: coefficients are the slopes.
    u = labels * model.decision_function(X)
    np.testing.assert_allclose(model.dual_coef_[0], -C * labels * LOGISTIC.slope(u), atol=1e-10 * C)


def test_gradient_of_the_objective_vanishes_with_an_offset_and_three_classes():
    X, y = load_iris(return_X_y=True)
    model = KernelLogisticClassifier(C=5.0, gamma=0.5, tol=1e-10).fit(X, y)
    K, Y = gram("rbf", X, gamma=0.5), np.eye(3)[y]

    def objective(v):
        A, b = v[:-3].reshape(-1, 3), v[-3:]
        return 0.5 * np.sum(A * (K @ A)) - 5.0 * np.sum(Y * log_softmax(K @ A + b, axis=1))

    rng = np.random.default_rng(0)
    best = np.r_[model.dual_coef_.T.ravel(), model.intercept_]
    assert objective(best) == pytest.approx(model.convergence_.objective)
    for _ in range(20):
        move = rng.normal(size=len(best))
        h = 1e-5
        slope = (objective(best + h * move) - objective(best - h * move)) / (2 * h)
        assert abs(slope) < 1e-5
        assert objective(best + move) > objective(best)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_linear_kernel_is_logistic_regression(n_classes, intercept):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    ours = KernelLogisticClassifier("linear", C=0.7, fit_intercept=intercept, tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=0.7, fit_intercept=intercept, tol=1e-10, solver="newton-cholesky").fit(
        X, y
    )
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_mode_of_a_gaussian_process():
    X, y = moons()
    process = GaussianProcessClassifier(ConstantKernel(3.0) * RBF(0.8), optimizer=None).fit(X, y)
    ours = KernelLogisticClassifier(RBF(0.8), C=3.0, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), process.predict(X))
    # The mode's gradient, y - p, is our coefficient over C.
    np.testing.assert_allclose(
        process.base_estimator_.y_train_ - process.base_estimator_.pi_,
        ours.dual_coef_[0] / 3.0,
        atol=1e-4,
    )


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_gap_encloses_the_optimum(n_classes, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, n_classes, 80)
    loose = KernelLogisticClassifier(C=10.0, tol=1e-2).fit(X, y).convergence_
    tight = KernelLogisticClassifier(C=10.0, tol=1e-12).fit(X, y).convergence_
    rounding = 1e-11 * tight.objective
    assert tight.objective <= loose.objective + rounding
    assert loose.objective - tight.objective <= loose.gap + rounding
    assert tight.gap < 1e-8


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_dual_is_below_the_optimum_everywhere_and_meets_it_there(n_classes):
    from pindown.learn.kernels._kernel_logistic_newton import Task, solve

    rng = np.random.default_rng(3)
    X, y, weights = rng.normal(size=(40, 2)), rng.integers(0, n_classes, 40), rng.uniform(0.5, 9, 40)
    targets = np.eye(n_classes)[y] if n_classes > 2 else y[:, None].astype(float)
    task = Task(gram("rbf", X, gamma=1.0), targets, weights, intercept=False)
    best = solve(task, tolerance=1e-12, max_iter=100)
    assert task.dual(best.outputs) == pytest.approx(best.objective, rel=1e-9)
    losses = best.objective - 0.5 * np.vdot(best.coefficients, task.K @ best.coefficients)
    p = task.probabilities(best.outputs)
    chances = p[np.arange(40), y] if n_classes > 2 else np.where(y, p[:, 0], 1 - p[:, 0])
    assert losses == pytest.approx(-weights @ np.log(chances))
    for size in (0.01, 0.1, 1.0, 3.0):
        away = best.outputs + size * rng.normal(size=targets.shape)
        assert task.dual(away) < best.objective
        coefficients = best.coefficients + size * rng.normal(size=targets.shape)
        values = task.K @ coefficients
        assert task.objective(coefficients, values, values) > best.objective


def test_newton_converges_quadratically():
    X, y = moons(30)
    model = KernelLogisticClassifier(tol=1e-12).fit(X, y)
    assert model.n_iter_ <= 8


@pytest.mark.parametrize("n_classes", [2, 4])
def test_thin_factors_change_nothing(n_classes, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(600, 2)), rng.integers(0, n_classes, 600)
    assert isinstance(operator(gram("rbf", X, gamma=0.5)), Factored)
    thin = KernelLogisticClassifier(gamma=0.5, C=10.0, tol=1e-9).fit(X, y)
    monkeypatch.setattr("pindown.learn.kernels._kernel_logistic_newton.operator", Dense)
    full = KernelLogisticClassifier(gamma=0.5, C=10.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(thin.decision_function(X), full.decision_function(X), atol=1e-6)


def test_operators_solve_their_systems():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 2))
    K, w, v = gram("rbf", X), rng.uniform(0, 2, 500), rng.normal(size=500)
    w[:50] = 0.0
    for form in (Dense(K), operator(K)):
        np.testing.assert_allclose(form.product(v), K @ v, atol=1e-9)
        x = form.inverse(w)(v)
        np.testing.assert_allclose(x + w * (K @ x), v, atol=1e-9)
        for single, rounding in ((True, 1e-2), (False, 1e-9)):
            z = form.rough_inverse(0.3, single)(v[:, None])[:, 0]
            np.testing.assert_allclose(z + 0.3 * (K @ z), v, atol=rounding)


def test_all_samples_as_landmarks_is_the_whole_problem():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    whole = KernelLogisticClassifier(n_components=None, tol=1e-9).fit(X, y)
    nearly = KernelLogisticClassifier(n_components=len(X) - 1, tol=1e-9).fit(X, y)
    assert nearly.convergence_.landmarks == len(X) - 1
    np.testing.assert_allclose(nearly.predict_proba(X), whole.predict_proba(X), atol=0.02)
    assert nearly.convergence_.objective >= whole.convergence_.objective - 1e-6
    assert nearly.convergence_.kind == "heuristic"


def test_landmarks_for_many_samples():
    X, y = make_moons(6000, noise=0.2, random_state=0)
    model = KernelLogisticClassifier(n_components=100).fit(X[:5000], y[:5000])
    assert model.dual_coef_.shape == (1, 100)
    assert model.score(X[5000:], y[5000:]) > 0.95
    whole = KernelLogisticClassifier(n_components=None).fit(X[:1500], y[:1500])
    gap = log_loss(y[5000:], model.predict_proba(X[5000:])) - log_loss(
        y[5000:], whole.predict_proba(X[5000:])
    )
    assert gap < 0.01


@pytest.mark.parametrize(
    "kernel", ["poly", "laplacian", RBF(0.5), Laplace(1.0), Sinc(2.0), lambda A, B: (1 + A @ B.T) ** 2]
)
def test_every_kind_of_kernel(kernel):
    X, y = moons()
    model = KernelLogisticClassifier(kernel, C=10.0).fit(X, y)
    K = gram(kernel, X, gamma=model._gamma, degree=3, coef0=0.0)
    same = KernelLogisticClassifier("precomputed", C=10.0).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X[:7]), same.decision_function(K[:7]), atol=1e-8)
    assert model.score(X, y) > 0.75


def test_weights_are_repetitions():
    X, y = moons()
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = KernelLogisticClassifier(tol=1e-10).fit(X, y, sample_weight=counts)
    repeated = KernelLogisticClassifier(tol=1e-10).fit(
        np.repeat(X, counts, axis=0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-6)
    K = gram("rbf", X, gamma=weighted._gamma)
    pairs = KernelLogisticClassifier("precomputed", tol=1e-10).fit(K, y, sample_weight=counts)
    np.testing.assert_allclose(weighted.decision_function(X), pairs.decision_function(K), atol=1e-6)


def test_balanced_classes_move_the_offset():
    rng = np.random.default_rng(0)
    X, y = (
        np.r_[rng.normal(size=(90, 2)), rng.normal(size=(10, 2)) + 1],
        np.r_[np.zeros(90), np.ones(10)],
    )
    plain, balanced = (KernelLogisticClassifier(class_weight=c).fit(X, y) for c in (None, "balanced"))
    assert balanced.predict(X).sum() > plain.predict(X).sum()


def test_mean_probability_is_the_share_of_the_class():
    X, y = load_breast_cancer(return_X_y=True)
    model = KernelLogisticClassifier(tol=1e-9).fit(StandardScaler().fit_transform(X), y)
    # The offset's equation: on the training samples the model is calibrated in the mean.
    assert model.predict_proba(StandardScaler().fit_transform(X))[:, 1].mean() == pytest.approx(
        y.mean(), abs=1e-8
    )


def test_probabilities_are_calibrated_on_logistic_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(2000, 1))
    truth = 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0])))
    y = (rng.uniform(size=2000) < truth).astype(int)
    model = KernelLogisticClassifier(gamma=1.0).fit(X, y)
    assert np.abs(model.predict_proba(X)[:, 1] - truth).mean() < 0.04


DATA = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "digits": tuple(a[:500] for a in load_digits(return_X_y=True)),
    "moons": make_moons(300, noise=0.25, random_state=0),
    "circles": make_circles(300, noise=0.12, factor=0.5, random_state=0),
}


def best(model, scoring, X, y):
    """Best cross-validated score over one grid of C, on standardised features."""
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(
        model,
        {"estimator__C" if hasattr(model, "estimator") else "C": [0.1, 1, 10, 100]},
        scoring=scoring,
        cv=folds,
    )
    return search.fit(StandardScaler().fit_transform(X), y).best_score_


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "digits" else name for name in DATA]
)
def test_as_accurate_as_a_support_vector_machine(name):
    X, y = DATA[name]
    assert best(KernelLogisticClassifier(), "accuracy", X, y) >= best(SVC(), "accuracy", X, y) - 0.012


@pytest.mark.slow
def test_better_calibrated_than_platt_scaling_on_most():
    platt = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
    wins = [
        best(KernelLogisticClassifier(), "neg_log_loss", X, y) > best(platt, "neg_log_loss", X, y)
        for X, y in DATA.values()
    ]
    assert sum(wins) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 10])
def test_two_thousand_samples_in_seconds(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 30))
    y = (X @ rng.normal(size=(30, n_classes)) + rng.normal(size=(2000, n_classes))).argmax(axis=1)
    start = time.process_time()
    model = KernelLogisticClassifier(C=10.0).fit(X, y)
    taken = time.process_time() - start
    # Three seconds of one thread on a quiet machine, where the eigenvalues of such a matrix take one; on
    # a busy one both take longer.
    K = gram("rbf", X, gamma=1 / 30)
    start = time.process_time()
    np.linalg.eigvalsh(K)
    assert taken < max(3.0, 3.0 * (time.process_time() - start))
    assert model.convergence_.residual < 1e-6


def test_pipelines_grids_and_pickles():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), KernelLogisticClassifier())
    grid = GridSearchCV(
        pipe, {"kernellogisticclassifier__C": [0.1, 10.0]}, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    assert grid.best_params_ == {"kernellogisticclassifier__C": 10.0}
    again = pickle.loads(pickle.dumps(grid.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), grid.predict_proba(X))


def test_grid_over_precomputed_kernels_cuts_both_ways():
    X, y = load_iris(return_X_y=True)
    K = gram("rbf", X, gamma=0.3)
    by_matrix = cross_val_score(KernelLogisticClassifier("precomputed"), K, y, cv=3)
    by_name = cross_val_score(KernelLogisticClassifier(gamma=0.3), X, y, cv=3)
    np.testing.assert_allclose(by_matrix, by_name)


def test_extreme_settings_stay_finite():
    X, y = make_moons(100, noise=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for C in (1e-12, 1e8):
            model = KernelLogisticClassifier(C=C).fit(X, y)
            assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.score(X, y) == 1.0
    constant = KernelLogisticClassifier().fit(np.ones((6, 2)), [0, 0, 1, 1, 1, 1])
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 2))), [[1 / 3, 2 / 3]], atol=1e-6)


def test_printed_loss_scalings_are_two_problems():
    X, y = moons(30)
    K, n, penalty = gram("rbf", X, gamma=1.0), 30, 0.05
    labels = 2 * y - 1

    def minimiser(scale):
        def value(a):
            f = K @ a
            g = -scale * labels * np.exp(log_expit(-labels * f))
            return -scale * log_expit(labels * f).sum() + penalty / 2 * a @ f, K @ (g + penalty * a)

        return (
            K
            @ minimize(
                value,
                np.zeros(n),
                jac=True,
                method="L-BFGS-B",
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
            ).x
        )

    mean_loss, sum_loss = minimiser(1 / n), minimiser(1.0)
    assert np.abs(mean_loss - sum_loss).max() > 0.5  # one penalty, the two printed objectives
    for C, expected in (
        (1 / (n * penalty), mean_loss),
        (1 / penalty, sum_loss),
    ):  # penalty of the sum is n times
        model = KernelLogisticClassifier(gamma=1.0, C=C, fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)


def test_printed_derivative_of_the_penalty_is_that_of_a_linear_term():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(5, 5))
    K, a, h = Z @ Z.T, rng.normal(size=5), 1e-6
    quadratic = [
        (0.5 * (a + h * e) @ K @ (a + h * e) - 0.5 * (a - h * e) @ K @ (a - h * e)) / (2 * h)
        for e in np.eye(5)
    ]
    printed = [
        0.5 * K[j] @ a for j in range(5)
    ]  # half of sum_k a_k K_jk has no second factor to differentiate
    np.testing.assert_allclose(K @ a, quadratic, atol=1e-6)
    assert np.abs(np.array(printed) - quadratic).max() > 0.1
    # At our optimum the right derivative vanishes together with that of the loss, the printed one not.
    signs, penalty = np.array([1, -1, 1, 1, -1]), 0.3
    ours = fit_kernel_problem(K, signs, penalty, LOGISTIC)
    loss = K @ (-signs / (1 + np.exp(signs * ours.values))) / 5
    np.testing.assert_allclose(loss + penalty * K @ ours.coefficients, 0, atol=1e-6)
    assert np.abs(loss + penalty / 2 * K @ ours.coefficients).max() > 0.1


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"C": 0}, ValueError), ({"C": -1.0}, ValueError), ({"C": "1"}, ValueError),
        ({"tol": 0.0}, ValueError),
        ({"gamma": "none"}, ValueError), ({"gamma": -1.0}, ValueError), ({"kernel": 3}, TypeError),
        ({"kernel": "none"}, ValueError), ({"n_components": 0}, ValueError),
        ({"n_components": 1.5}, ValueError),
        ({"kernel": lambda A, B: np.ones(3)}, ValueError), ({"kernel": "precomputed"}, ValueError),
    ],
)  # fmt: skip
def test_bad_parameters(parameters, error):
    with pytest.raises(error):
        KernelLogisticClassifier(**parameters).fit([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [0, 1, 1])


def test_bad_samples():
    for X, y in (([[np.nan]], [1]), (np.zeros((0, 1)), []), ([[1.0], [2.0]], [1, 1])):
        with pytest.raises(ValueError):
            KernelLogisticClassifier().fit(X, y)
    with pytest.raises(ValueError, match="weight"):
        KernelLogisticClassifier().fit([[0.0], [1.0]], [0, 1], sample_weight=[0, 0])


@pytest.mark.parametrize(
    "bad", [{"max_iter": 0}, {"max_iter": 2.5}, {"max_iter": None}, {"gamma": None}, {"gamma": True},
            {"C": None}, {"C": [1.0]}, {"C": 1e-300}],
)  # fmt: skip
def test_parameters_of_the_wrong_kind_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        KernelLogisticClassifier(**bad).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_matrices_of_no_kernel_are_refused(n_classes):
    rng = np.random.default_rng(7)
    A, y = rng.normal(size=(60, 60)), np.arange(60) % n_classes
    with pytest.raises(ValueError, match="symmetric"):
        KernelLogisticClassifier("precomputed").fit(A, y)
    for K in (A + A.T, -np.eye(60)):
        with pytest.raises(ValueError, match="semi-definite"):
            KernelLogisticClassifier("precomputed").fit(K, y)
    with pytest.raises(ValueError, match="semi-definite"):
        KernelLogisticClassifier("sigmoid", gamma=3.0, coef0=-2.0).fit(A[:, :3], y)


def test_far_away_samples_are_as_good_as_near_ones():
    X, y = moons()
    near = KernelLogisticClassifier(C=10.0).fit(X, y)
    far = KernelLogisticClassifier(C=10.0).fit(X + 2.0**20, y)
    np.testing.assert_allclose(far.decision_function(X + 2.0**20), near.decision_function(X), atol=1e-5)


def test_scales_that_leave_the_floats_are_refused():
    X, _ = moons()
    with pytest.raises(ValueError, match="scale the samples or lower C"):
        KernelLogisticClassifier("poly", gamma=1.0).fit(X * 1e6, np.arange(60) % 2)


def test_a_gap_that_is_no_minimum_is_warned_of():
    X, y = np.random.default_rng(7).normal(size=(60, 3)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match="of its optimum"):
        model = KernelLogisticClassifier(C=1e12).fit(X, y)
    assert model.convergence_.gap > 1e-3 * model.convergence_.objective
    assert model.convergence_.kind == "estimate"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_interrupt_keeps_the_last_step(n_classes, monkeypatch):
    from pindown.learn.kernels import _kernel_logistic_newton as newton

    calls, real = [], newton._damped

    def damped(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % n_classes
    whole = KernelLogisticClassifier(C=10.0).fit(X, y)
    monkeypatch.setattr(newton, "_damped", damped)
    with pytest.warns(UserWarning, match="interrupted"):
        model = KernelLogisticClassifier(C=10.0).fit(X, y)
    assert model.n_iter_ == 2
    assert model.convergence_.objective - whole.convergence_.objective <= model.convergence_.gap
    assert model.predict_proba(X).shape == (40, n_classes)
