"""The kernel of infinite width against integrals, sampling, finite networks and published numbers."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import erf

from pindown.bias.tangent_kernel import empirical_ntk, infinite_ntk, tangent_network


def test_two_layers_by_the_angle():
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal(5), rng.standard_normal(5)
    r, s = np.linalg.norm(x), np.linalg.norm(z)
    angle = np.arccos(x @ z / (r * s))
    wanted = r * s / (2 * np.pi) * (np.sin(angle) + 2 * (np.pi - angle) * np.cos(angle))
    assert infinite_ntk(x[None], z[None])[0, 0] == pytest.approx(wanted, rel=1e-13)
    A, B, C = x @ x, z @ z, x @ z
    root = np.sqrt((1 + 2 * A) * (1 + 2 * B))
    wanted = 2 / np.pi * np.arcsin(2 * C / root) + C * 4 / np.pi / np.sqrt(root**2 - 4 * C**2)
    assert infinite_ntk(x[None], z[None], activation="erf")[0, 0] == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_means_of_activations_by_integration(activation):
    """The arc-cosine forms of Cho and Saul, as integrals over the direction of the weights."""
    for angle in (0.0, 0.3, np.pi / 2, 2.5, np.pi):
        x, z = np.array([1.0, 0.0]), 0.8 * np.array([np.cos(angle), np.sin(angle)])
        if activation == "relu":
            # In polar coordinates the radius integrates to E r^2 / 2 pi = 1 / pi.
            def mean(t, a=x, b=z):
                u = np.array([np.cos(t), np.sin(t)])
                return max(u @ a, 0.0) * max(u @ b, 0.0) / np.pi

            kinks = np.mod([np.pi / 2, 3 * np.pi / 2, angle + np.pi / 2, angle - np.pi / 2], 2 * np.pi)
            wanted = quad(mean, 0, 2 * np.pi, points=np.sort(kinks))[0]
        else:
            nodes, weights = np.polynomial.hermite_e.hermegauss(120)
            u, v = np.meshgrid(nodes, nodes)
            both = np.outer(weights, weights) / (2 * np.pi)
            wanted = np.sum(both * erf(u * x[0] + v * x[1]) * erf(u * z[0] + v * z[1]))
        found = infinite_ntk(x[None], z[None], activation=activation, kernel="nngp")[0, 0]
        assert found == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_on_the_diagonal_every_layer_adds_the_same(depth):
    # With weights of variance two, activations keep their size and each affine map adds |x|^2.
    x = np.random.default_rng(0).standard_normal((3, 4))
    K = infinite_ntk(x, depth=depth, weight_std=np.sqrt(2))
    np.testing.assert_allclose(np.diag(K), 2 * depth * np.sum(x**2, axis=1), rtol=1e-14)
    if depth == 1:
        np.testing.assert_allclose(K, 2 * x @ x.T, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("depth", "width"), [(2, 20_000), (3, 1200), (4, 600)])
def test_finite_networks_converge_to_it(depth, width):
    X = np.random.default_rng(0).standard_normal((6, 4))
    limit = infinite_ntk(X, depth=depth, weight_std=1.3, bias_std=0.4)
    hidden = [width] * (depth - 1)
    kernels = [
        empirical_ntk(tangent_network([4, *hidden, 1], weight_std=1.3, bias_std=0.4, random_state=s), X)
        for s in range(4)
    ]
    error = np.linalg.norm(np.mean(kernels, axis=0) - limit) / np.linalg.norm(limit)
    assert error < 0.06
    narrow = empirical_ntk(tangent_network([4, *[20] * (depth - 1), 1], weight_std=1.3, bias_std=0.4), X)
    assert np.linalg.norm(narrow - limit) / np.linalg.norm(limit) > 1.5 * error


def test_the_distance_to_the_limit_falls_as_the_root_of_the_width():
    X = np.random.default_rng(0).standard_normal((5, 3))
    limit, widths = infinite_ntk(X), (64, 256, 1024, 4096)
    gaps = [
        np.mean(
            [
                np.linalg.norm(empirical_ntk(tangent_network([3, m, 1], random_state=s), X) - limit)
                for s in range(12)
            ]
        )
        for m in widths
    ]
    slope = np.polyfit(np.log(widths), np.log(gaps), 1)[0]
    assert -0.6 < slope < -0.4


def test_several_outputs_converge_to_the_same_kernel():
    X = np.random.default_rng(0).standard_normal((4, 3))
    K = empirical_ntk(tangent_network([3, 8000, 4]), X)
    assert np.linalg.norm(K - infinite_ntk(X)) < 0.05 * np.linalg.norm(K)


# A user of neural-tangents printed this kernel in the project's issue 55 (September 2020): the
# covariance of the cookbook's network, three dense layers with W_std = 1.5, b_std = 0.05 and two erf
# layers, at five inputs in (-pi, pi). The inputs were not printed, but the diagonal determines them up
# to signs.
PRINTED_DIAGONAL = [1.3201054, 1.3087238, 1.2956082, 0.43115377, 1.2212754]
PRINTED = {
    (0, 1): 1.3133823,
    (0, 2): -1.2921143,
    (0, 3): -0.6002171,
    (0, 4): 1.2353275,
    (1, 2): -1.2892499,
    (1, 3): -0.60428584,
    (1, 4): 1.2391908,
}


def test_numbers_of_neural_tangents():
    options = {"weight_std": 1.5, "bias_std": 0.05, "activation": "erf", "kernel": "nngp", "depth": 3}
    sizes = [
        brentq(lambda x, v=value: infinite_ntk([[x]], **options)[0, 0] - v, 0, 10, xtol=1e-12)
        for value in PRINTED_DIAGONAL
    ]
    x = np.array(sizes) * [1, 1, -1, -1, 1]
    assert np.abs(x).max() < np.pi
    K = infinite_ntk(x[:, None], **options)
    for entry, value in PRINTED.items():
        # Printed in float32. Near its saturation the diagonal tells the input only to about 1e-5.
        assert K[entry] == pytest.approx(value, abs=2e-6)
    other = infinite_ntk(x[:, None], **{**options, "bias_std": 0.1})
    assert abs(other[0, 3] - PRINTED[0, 3]) > 1e-4


def test_eigenvalues_on_the_circle():
    """Without bias, odd frequencies from 3 have eigenvalue 0 and are never learned; with it, all are."""
    n = 4096
    t = 2 * np.pi * np.arange(n) / n
    X = np.c_[np.cos(t), np.sin(t)]

    def eigenvalues(Z):
        return np.fft.rfft(infinite_ntk(Z[:1], Z)[0])[:8].real / n

    plain = eigenvalues(X)
    np.testing.assert_allclose(plain[:3], [3 / np.pi**2, 0.25, 0.0788], atol=1e-4)
    assert np.abs(plain[[3, 5, 7]]).max() < 1e-7 and plain[[4, 6]].min() > 3e-3
    biased = eigenvalues(np.c_[X, np.ones(n)])
    np.testing.assert_allclose(biased[:5], [1.03, 0.40, 0.050, 0.010, 0.0054], rtol=0.05)
    assert (np.diff(biased) < 0).all() and biased.min() > 1e-4


def test_scaling_and_rotating_inputs():
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((6, 4)), np.linalg.qr(rng.standard_normal((4, 4)))[0]
    K = infinite_ntk(X, depth=4)
    np.testing.assert_allclose(infinite_ntk(3 * X, depth=4), 9 * K, rtol=1e-12)
    np.testing.assert_allclose(infinite_ntk(X @ Q, depth=4), K, rtol=1e-7)
    np.testing.assert_allclose(infinite_ntk(X, X, depth=4), K, rtol=1e-7)


def test_blocks_fit_together():
    X = np.random.default_rng(0).standard_normal((150, 3))
    K = infinite_ntk(X, depth=3, bias_std=0.1)
    np.testing.assert_array_equal(K, K.T)
    for rows in (slice(0, 3), slice(62, 67), slice(120, 150)):
        np.testing.assert_allclose(infinite_ntk(X[rows], X, depth=3, bias_std=0.1), K[rows], rtol=1e-7)


@pytest.mark.filterwarnings("error")
def test_zero_tiny_and_opposite_inputs():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [1e-120, 0.0]])
    K = infinite_ntk(X)
    assert (K[0] == 0).all() and K[1, 1] == 1.0
    assert K[1, 2] == pytest.approx(0, abs=1e-15)
    assert K[1, 3] == pytest.approx(1e-120) and K[3, 3] == pytest.approx(1e-240)
    assert infinite_ntk([[0.0]], bias_std=1.0)[0, 0] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 0}, "depth must be an integer"),
        ({"depth": 2.5}, "depth must be an integer"),
        ({"depth": True}, "depth must be an integer"),
        ({"weight_std": -1.0}, "not negative"),
        ({"weight_std": [1.0, 2.0, 3.0]}, "one per affine map"),
        ({"bias_std": np.nan}, "finite"),
        ({"activation": "tanh"}, "'relu', 'erf'"),
        ({"kernel": "both"}, "'ntk', 'nngp'"),
        ({"X1": [[np.inf, 1.0]]}, "must be finite"),
        ({"X1": [1.0, 2.0]}, "shape"),
        ({"X2": [[1.0]]}, "one shape"),
        ({"X1": [[1e200, 0.0]]}, "overflows"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        infinite_ntk(**{"X1": [[1.0, 2.0]], **change})


def test_the_error_function_of_large_inputs():
    X = np.array([[3e9, 4e9], [4e9, -3e9]])
    # The slope at x = x' is (4/pi) / sqrt(1 + 4 |x|^2), of which (1 + 2|x|^2)^2 - 4|x|^4 leaves nothing.
    square = 25e18
    wanted = 2 / np.pi * np.arcsin(2 * square / (1 + 2 * square))
    wanted += square * 4 / np.pi / np.sqrt(1 + 4 * square)
    np.testing.assert_allclose(np.diag(infinite_ntk(X, activation="erf")), wanted, rtol=1e-12)
