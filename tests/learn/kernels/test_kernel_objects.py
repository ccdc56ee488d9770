"""Kernel objects: values, gradients, use in scikit-learn, features, spectra, definiteness.

Errata of the slides.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from pindown.learn.kernels import (
    GeometricSeries,
    Laplace,
    Sinc,
    finite_feature_map,
    gaussian_power_features,
    geometric_features,
    gram,
    monomials,
    plot_filters,
    refute_definiteness,
    ridge_filter,
    smoothness,
    spectral_norm_squared,
    spectrum,
)

KERNELS = [GeometricSeries(0.7), Laplace(1.3), Sinc(2.0)]


def inside(seed, n=12, d=2):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return (
        X
        / (1.01 * np.linalg.norm(X, axis=1, keepdims=True))
        * np.random.default_rng(seed + 1).uniform(size=(n, 1))
    )


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [1, 3])
def test_kernel_protocol(kernel, d):
    X = inside(0, d=d)
    K = kernel(X)
    np.testing.assert_allclose(kernel(X, X[:5]), K[:, :5], atol=1e-14)
    np.testing.assert_allclose(kernel.diag(X), K.diagonal(), atol=1e-14)
    assert kernel.is_stationary() == (not isinstance(kernel, GeometricSeries))
    assert not refute_definiteness(kernel, X).refuted
    _, gradient = kernel(X, eval_gradient=True)
    h = 1e-6
    higher, lower = (kernel.clone_with_theta(kernel.theta + t)(X) for t in (h, -h))
    np.testing.assert_allclose(gradient[:, :, 0], (higher - lower) / (2 * h), atol=1e-7)
    fixed = clone(kernel).set_params(**{kernel.hyperparameters[0].name + "_bounds": "fixed"})
    assert fixed(X, eval_gradient=True)[1].shape == (12, 12, 0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_used_by_scikit_learn(kernel):
    X = inside(3, n=60)
    y = np.sin(3 * X[:, 0])
    ridge = KernelRidge(alpha=0.1, kernel=kernel).fit(X, y)
    alpha = np.linalg.solve(kernel(X) + 0.1 * np.eye(60), y)
    np.testing.assert_allclose(ridge.predict(X), kernel(X) @ alpha, atol=1e-8)
    machine = SVC(kernel=kernel).fit(X, y > 0)
    assert machine.score(X, y > 0) > 0.8
    noisy = ConstantKernel(1.0, "fixed") * kernel + WhiteKernel(0.01)
    process = GaussianProcessRegressor(noisy).fit(X, y)
    assert (
        process.log_marginal_likelihood_value_
        >= GaussianProcessRegressor(noisy, optimizer=None).fit(X, y).log_marginal_likelihood_value_
    )
    assert process.score(X, y) > 0.5


def test_relations_to_kernels_of_scikit_learn():
    X = inside(1)
    np.testing.assert_allclose(
        Laplace(2.0)(X), laplacian_kernel(X, gamma=2.0) / 4, atol=1e-14
    )  # a half per feature
    x = X[:, :1]
    np.testing.assert_allclose(2 * Laplace(2.0)(x), Matern(0.5, nu=0.5)(x), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_truncation_of_the_geometric_series_is_exact(d):
    X = inside(2, d=d)
    for terms in (1, 4, 9):
        F = geometric_features(X, 0.8, terms)
        q = 0.64 * X @ X.T
        np.testing.assert_allclose(GeometricSeries(0.8)(X) - F @ F.T, q**terms / (1 - q), atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("sigma", [2**-0.5, 1.0, 2.0])
def test_gaussian_features_within_their_bound(d, sigma):
    X = np.random.default_rng(d).normal(size=(8, d))
    U = X / (sigma * np.sqrt(2))
    sizes = np.exp(-(U**2).sum(1)[:, None] - (U**2).sum(1))
    for degree in (0, 3, 8, 12):
        F = gaussian_power_features(X, sigma, degree)
        error = np.abs(RBF(sigma)(X) - F @ F.T)
        z = 2 * np.abs(U @ U.T)
        tail = np.exp(z) * gammainc(degree + 1, z)  # of the exponential series
        assert (error <= sizes * tail + 1e-12).all()


def test_monomials_multiply_to_powers():
    X = np.random.default_rng(0).normal(size=(5, 3))
    for s in range(5):
        F = monomials(X, s)
        np.testing.assert_allclose(F @ F.T, (X @ X.T) ** s, atol=1e-10)


def test_printed_polynomial_kernel_is_of_no_degree():
    # A polynomial of degree p in z has vanishing differences of order p + 1; this one has none.
    z = np.linspace(0, 1, 13)
    values = GeometricSeries(0.9)(np.ones((1, 1)), z[:, None])[0]
    polynomial = (z + 1) ** 5
    assert np.abs(np.diff(polynomial, 6)).max() < 1e-12
    assert all(np.abs(np.diff(values, order)).max() > 1e-9 for order in range(1, 10))


def test_printed_gaussian_features_lack_weights_and_the_constant():
    X = np.array([[0.3], [-0.5]])
    printed = np.exp(-(X**2)) * np.hstack([X**s for s in range(1, 30)])
    assert np.abs(printed @ printed.T - RBF(2**-0.5)(X)).max() > 0.1
    ours = gaussian_power_features(X, 2**-0.5, 29)
    np.testing.assert_allclose(ours @ ours.T, RBF(2**-0.5)(X), atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [Laplace(1.5), RBF(0.7), Matern(0.8, nu=1.5), Matern(0.8, nu=2.5), 2.0 * RBF(1.0)],
    ids=repr,
)
def test_spectrum_is_the_fourier_transform(kernel):
    for omega in (0.0, 0.7, 3.0):
        integral = (
            2
            * quad(
                lambda t, w=omega: np.cos(w * t) * kernel(np.array([[t]]), np.zeros((1, 1)))[0, 0],
                0,
                40,
                limit=500,
            )[0]
        )
        assert spectrum(kernel, omega) == pytest.approx(integral, abs=1e-6)


def test_spectrum_of_sinc_by_its_inverse():
    kernel = Sinc(2.0)
    for t in (0.0, 0.4, 1.7):
        inverse = quad(lambda w, t=t: float(kernel.spectrum(w)) * np.cos(w * t), 0, 2.0)[0] / np.pi
        assert kernel.profile(t) == pytest.approx(inverse, abs=1e-10)


def test_printed_spectrum_of_the_gaussian_lacks_its_constant():
    sigma, omega = 0.7, 1.1
    truth = 2 * quad(lambda t: np.cos(omega * t) * np.exp(-(t**2) / (2 * sigma**2)), 0, 20)[0]
    printed = np.exp(-(sigma**2) * omega**2 / 2)
    assert abs(printed - truth) > 0.3
    assert spectrum(RBF(sigma), omega) == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("kernel", [Laplace(1.5), RBF(0.7)], ids=repr)
def test_norm_of_the_kernel_is_its_height(kernel):
    t = np.linspace(-40, 40, 2**16 + 1)
    f = kernel(t[:, None], np.zeros((1, 1)))[:, 0]
    assert spectral_norm_squared(kernel, f, t) == pytest.approx(
        kernel.diag(np.zeros((1, 1)))[0], rel=2e-3
    )


def test_laplace_norm_is_a_sobolev_norm():
    t = np.linspace(-12, 12, 4001)
    f, slope = np.exp(-(t**2)) * np.cos(3 * t), None
    slope = np.exp(-(t**2)) * (-2 * t * np.cos(3 * t) - 3 * np.sin(3 * t))
    step = t[1] - t[0]
    expected = 2.0 * (f**2).sum() * step + (slope**2).sum() * step / 2.0
    assert spectral_norm_squared(Laplace(2.0), f, t) == pytest.approx(expected, rel=1e-6)


def test_growth_of_the_norm_with_frequency():
    t = np.linspace(-40, 40, 8001)
    waves = {w: np.exp(-(t**2) / 50) * np.sin(w * t) for w in (2.0, 4.0)}
    for kernel, expected, within in ((RBF(1.0), np.exp((16 - 4) / 2), 0.5), (Laplace(0.1), 4.0, 0.05)):
        low, high = (spectral_norm_squared(kernel, waves[w], t) for w in (2.0, 4.0))
        assert high / low == pytest.approx(expected, rel=within)
    assert spectral_norm_squared(Sinc(3.0), waves[4.0], t) == np.inf


def test_sinc_ridge_is_band_limited():
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, 80)[:, None]
    alpha = KernelRidge(alpha=0.1, kernel=Sinc(2.0)).fit(X, rng.normal(size=80)).dual_coef_
    # The transform of the fit is the cutoff times a sum of waves: nothing is left outside the band.
    grid = np.linspace(-3000, 3000, 2**16, endpoint=False)
    f = np.zeros_like(grid)
    for a, x in zip(alpha, X[:, 0], strict=True):
        f += a * Sinc(2.0).profile(grid - x)
    energy = np.abs(np.fft.rfft(f * np.hanning(len(f)))) ** 2
    omega = 2 * np.pi * np.fft.rfftfreq(len(grid), grid[1] - grid[0])
    assert energy[omega > 2.05].sum() < 1e-6 * energy.sum()


def test_smoothness_orders_the_spaces():
    found = [smoothness(k) for k in (Sinc(1.0), RBF(2.0), Laplace(5.0), Matern(1.0, nu=1.5))]
    assert [s.decay for s in found] == ["band-limited", "exponential", "algebraic", "algebraic"]
    assert found[3].derivatives == 2


def test_ridge_filter_is_what_ridge_does_to_a_wave():
    n, length, penalty = 800, 40.0, 0.05
    t = np.arange(n) * length / n
    lags = np.minimum(
        np.abs(t[:, None] - t), length - np.abs(t[:, None] - t)
    )  # on a circle waves are eigenvectors
    K = Laplace(1.0).profile(lags)
    wave = np.cos(2 * np.pi * 6 / length * t)
    fitted = K @ np.linalg.solve(K + penalty * n / length * np.eye(n), wave)
    factor = ridge_filter(Laplace(1.0), 2 * np.pi * 6 / length, penalty)
    np.testing.assert_allclose(fitted, factor * wave, atol=2e-3)


def test_filters_are_drawn():
    import matplotlib

    matplotlib.use("Agg")
    figure = plot_filters([RBF(1.0), Laplace(1.0), Sinc(2.0)])
    assert len(figure.axes) == 3
    drawn = figure.axes[1].lines[1].get_xydata()
    np.testing.assert_allclose(drawn[:, 1], spectrum(Laplace(1.0), drawn[:, 0]))


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: np.tanh(A @ B.T + 1),
        lambda A, B: -((A[:, None] - B) ** 2).sum(2),
        lambda A, B: np.maximum(A[:, :1], B[:, 0]),
    ],
)
def test_false_kernels_are_refuted_with_a_witness(kernel):
    verdict = refute_definiteness(kernel)
    assert verdict.refuted
    c = verdict.weights
    assert c @ gram(kernel, verdict.points) @ c < 0
    assert verdict.form == pytest.approx(c @ gram(kernel, verdict.points) @ c)


@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", "laplacian", RBF(1.0) * Laplace(1.0) + ConstantKernel(2.0)]
)
def test_true_kernels_are_not_refuted(kernel):
    assert not refute_definiteness(kernel).refuted
    assert "proves nothing" in str(refute_definiteness(kernel))


def test_asymmetry_is_refuted():
    assert refute_definiteness(lambda A, B: A[:, :1] - B[:, 0] + 3).reason == "not symmetric"


def test_features_of_a_matrix_are_not_unique():
    x = np.array([1.0, -2.0, 0.5])
    one, two = x[:, None], np.c_[x, x] / np.sqrt(2)
    np.testing.assert_allclose(one @ one.T, two @ two.T)
    found = finite_feature_map(one @ one.T)
    assert found.shape == (3, 1)
    np.testing.assert_allclose(found @ found.T, one @ one.T, atol=1e-12)
    with pytest.raises(ValueError, match="not positive"):
        finite_feature_map([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: GeometricSeries(1.0)(np.ones((1, 1))), ValueError),
        (lambda: GeometricSeries(0.9)(np.full((1, 1), 2.0)), ValueError),
        (lambda: Laplace(-1.0)(np.ones((1, 1))), ValueError),
        (lambda: Sinc(1.0)(np.ones((1, 2)), np.ones((1, 3))), ValueError),
        (lambda: Sinc(1.0)(np.ones((1, 1)), np.ones((1, 1)), eval_gradient=True), ValueError),
        (lambda: spectrum(WhiteKernel(), 1.0), TypeError),
        (lambda: spectrum(RBF([1.0, 2.0]), 1.0), TypeError),
        (lambda: spectral_norm_squared(RBF(), [1.0, 2.0, 3.0], [0.0, 1.0, 5.0]), ValueError),
        (lambda: ridge_filter(RBF(), 1.0, 0.0), ValueError),
        (lambda: gaussian_power_features([[1.0]], 0.0, 3), ValueError),
        (lambda: geometric_features(np.ones((1, 50)), 0.5, 30), ValueError),
        (lambda: gram("rbf", [[np.inf]]), ValueError),
        (lambda: gram("rbf", []), ValueError),
        (lambda: gram(lambda A, B: np.log(A @ B.T * 0 - 1 + 1e-9j).real * np.nan, [[1.0]]), ValueError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


def test_rounding_refutes_no_kernel():
    points = 1e6 + np.random.default_rng(0).normal(size=(40, 2))

    def cancelling(A, B):  # the Gaussian by squares that cancel: off by far more than a rounding
        squares = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squares, 0.0))

    assert np.linalg.eigvalsh(cancelling(points, points))[0] < -1e-6
    assert not refute_definiteness(cancelling, points).refuted
    assert not refute_definiteness("rbf", points).refuted
    assert refute_definiteness(lambda A, B: np.tanh(A @ B.T + 1)).refuted


@pytest.mark.parametrize(
    ("kernel", "decay", "derivatives"),
    [
        (Sinc(1e8), "band-limited", np.inf),
        (Sinc(1e-8), "band-limited", np.inf),
        (ConstantKernel(2.0) * RBF(1e-8), "exponential", np.inf),
        (ConstantKernel(2.0) * Matern(1e-8, nu=1.5), "algebraic", 2.0),
        (RBF(1.0) + Laplace(1e9), "algebraic", 1.0),
        (RBF(1.0) + Sinc(1.0), "exponential", np.inf),
    ],
)
def test_smoothness_does_not_depend_on_units(kernel, decay, derivatives):
    found = smoothness(kernel)
    assert (found.decay, found.derivatives) == (decay, derivatives)


def test_norms_that_only_rounding_ends_are_said():
    t = np.linspace(-20, 20, 4001)
    for width in (0.8, 1.0, 2.0):  # exp(-t^2 / 2 s^2) is in the space of RBF(1) for s^2 > 1/2
        true = width**2 / np.sqrt(2 * (width**2 - 0.5))
        assert spectral_norm_squared(RBF(1.0), np.exp(-(t**2) / 2 / width**2), t) == pytest.approx(true)
    with pytest.warns(UserWarning, match="infinite"):
        spectral_norm_squared(RBF(1.0), np.exp(-(t**2) / 2 / 0.25), t)
    with pytest.raises(ValueError, match="finite"):
        spectral_norm_squared(RBF(1.0), np.full(4001, np.nan), t)


def test_sparse_samples_are_refused_in_words():
    from scipy.sparse import csr_matrix

    with pytest.raises(TypeError, match="toarray"):
        gram("rbf", csr_matrix(np.eye(3)))
