"""Least Fourier norms: proved gaps, stationary points, duality, and trained convolutional networks."""

import numpy as np
import pytest

from pindown.bias.margins import (
    fourier_norm,
    fourier_radius,
    fourier_stationarity,
    linear_network_limit,
    max_fourier_margin,
    max_margin,
    spectrum,
    train_linear_network,
    worst_fourier_perturbation,
)

from .test_hard_margin import separable_points


@pytest.mark.parametrize(("n", "d"), [(1, 4), (12, 8), (4, 16), (6, 9)])
def test_depth_two_attains_the_proved_bound(n, d):
    X, y = separable_points(n, d, seed=n)
    found = max_fourier_margin(X, y)
    assert (y * (X @ found.w)).min() == pytest.approx(1, abs=1e-12)
    assert found.upper - found.margin <= 1e-8 * found.margin
    assert found.residual < 1e-6 and found.kind == "exact"
    assert found.objective == pytest.approx(1 / found.margin)
    assert found.objective <= fourier_norm(max_margin(X, y).w) + 1e-9


def test_depth_two_against_an_independent_convex_solver():
    """Moduli as polygons with 720 corners, one linear program: a bound from below to 1e-5."""
    from scipy.optimize import linprog

    X, y = separable_points(8, 6, seed=1)
    d = 6
    F = np.exp(-2j * np.pi * np.outer(np.arange(d), np.arange(d)) / d) / np.sqrt(d)
    turned = [np.exp(-1j * angle) * F for angle in np.arange(720) * np.pi / 360]
    rows = np.vstack([np.hstack([part.real, -np.eye(d)]) for part in turned])
    rows = np.vstack([rows, np.hstack([-y[:, None] * X, np.zeros((8, d))])])
    target = np.r_[np.zeros(720 * d), -np.ones(8)]
    bounds = [(None, None)] * d + [(0, None)] * d
    answer = linprog(
        np.r_[np.zeros(d), np.ones(d)], A_ub=rows, b_ub=target, bounds=bounds, method="highs"
    )
    assert answer.fun <= max_fourier_margin(X, y).objective + 1e-7
    assert max_fourier_margin(X, y).objective == pytest.approx(answer.fun, rel=2e-5)


@pytest.mark.parametrize("depth", [3, 4])
def test_deeper_solutions_are_stationary(depth):
    X, y = separable_points(12, 8, seed=0)
    found = max_fourier_margin(X, y, depth=depth)
    assert found.residual < 1e-6 and found.kind == "heuristic"
    assert fourier_stationarity(found.w, X, y, depth=depth) < 1e-6
    # The Euclidean solution is not stationary for this objective.
    assert fourier_stationarity(max_margin(X, y).w, X, y, depth=depth) > 1e-2
    assert found.objective <= fourier_norm(max_fourier_margin(X, y).w, 2 / depth) * (1 + 1e-9)


def test_depth_one_is_the_euclidean_margin():
    X, y = separable_points(12, 8, seed=0)
    assert max_fourier_margin(X, y, depth=1).w == pytest.approx(max_margin(X, y).w)
    assert max_fourier_margin(X, y, depth=1).residual < 1e-8


def test_the_norm_is_the_largest_product_with_flat_spectra():
    rng = np.random.default_rng(0)
    for shape in (None, (3, 4)):
        w = rng.standard_normal(12)
        delta = worst_fourier_perturbation(w, 0.7, shape)
        assert np.abs(spectrum(delta, shape)).max() == pytest.approx(0.7, abs=1e-10)
        assert w @ delta == pytest.approx(-0.7 * fourier_norm(w, 1, shape), abs=1e-10)


def test_the_transform_is_unitary_with_its_own_index():
    """The course uses d both for the size and for the frequency; with k for the frequency norms are "
    "kept."""
    w = np.random.default_rng(1).standard_normal(7)
    n = np.arange(7)
    ours = np.array([(w * np.exp(-2j * np.pi * k * n / 7)).sum() for k in range(7)]) / np.sqrt(7)
    printed = np.array([(w * np.exp(-2j * np.pi * 7 * n / 7)).sum() for _ in range(7)]) / np.sqrt(7)
    assert spectrum(w) == pytest.approx(ours)
    assert np.linalg.norm(ours) == pytest.approx(np.linalg.norm(w))
    assert np.abs(printed - printed[0]).max() < 1e-9  # every entry is the same: no transform
    assert fourier_norm(w, 2.0) == pytest.approx(np.linalg.norm(w))
    for p in (0.5, 1.0, 2.0, 3.0):
        assert fourier_norm(-3 * w, p) == pytest.approx(3 * fourier_norm(w, p))


def test_the_bound_from_weights_holds_in_many_digits():
    """The largest frequency of a convex combination, summed without rounding."""
    import mpmath

    from pindown.bias.margins.fourier import _largest_frequency

    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        for d in (5, 6, 8):
            part, Z = rng.uniform(size=3), rng.standard_normal((3, d))
            weights = [mpmath.mpf(v) for v in part]
            point = [sum(v * mpmath.mpf(z) for v, z in zip(weights, row, strict=True)) for row in Z.T]
            waves = [mpmath.expjpi(mpmath.mpf(-2 * k) / d) for k in range(d)]
            largest = max(abs(sum(x * w**i for i, x in enumerate(point))) for w in waves)
            exact = largest / mpmath.sqrt(d) / sum(weights)
            assert exact <= _largest_frequency(part, Z, None) <= exact * (1 + mpmath.mpf("1e-12"))


def test_the_radius_is_where_a_sample_changes_its_side():
    X, y = separable_points(12, 8, seed=3)
    w = max_fourier_margin(X, y).w
    radius = fourier_radius(w, X, y)
    assert radius == pytest.approx(max_fourier_margin(X, y).margin)
    crossed = {
        factor: any(
            label * (w @ (x + worst_fourier_perturbation(label * w, factor * radius))) < 0
            for x, label in zip(X, y, strict=True)
        )
        for factor in (0.999, 1.001)
    }
    assert crossed == {0.999: False, 1.001: True}


def test_images_use_the_transform_of_their_shape():
    X, y = separable_points(6, 12, seed=4)
    flat, image = max_fourier_margin(X, y), max_fourier_margin(X, y, shape=(3, 4))
    assert image.upper - image.margin < 1e-8
    assert fourier_norm(image.w, 1, (3, 4)) < fourier_norm(flat.w, 1, (3, 4))


def test_two_convolutions_end_at_the_least_fourier_norm():
    X, y = separable_points(12, 8, seed=0)
    run = train_linear_network(X, y, "convolution", 2, steps=5_000)
    least = max_fourier_margin(X, y).objective
    assert least * (1 - 1e-9) <= run.objective()[-1] < 1.02 * least
    assert run.objective()[-1] < fourier_norm(max_margin(X, y).w)
    assert run.objective()[-1] < run.objective()[len(run.steps) // 2]


@pytest.mark.slow
def test_three_convolutions_end_at_a_stationary_point_not_always_the_least():
    """The course says "stationary point of argmin": it is one of the constrained problem, with its "
    "own value."""
    X, y = separable_points(12, 8, seed=0)
    nearest = []
    for seed in (0, 2):
        run = train_linear_network(X, y, "convolution", 3, steps=10_000, seed=seed)
        beta = run.beta[-1] / run.margins[-1]
        found = max_fourier_margin(X, y, depth=3, start=beta)
        nearest.append(found.objective)
        assert found.residual < 1e-6
        assert run.objective()[-1] == pytest.approx(found.objective, rel=0.03)
    # Two starts, two stationary points: the larger is no minimiser, so "of argmin" cannot be meant.
    assert nearest[1] > 2 * nearest[0]


def test_a_stationary_point_need_not_be_a_minimiser():
    """The same from chosen starts: a frequency that is zero stays zero, and the values differ."""
    X, y = separable_points(4, 8, seed=0)
    values = []
    for absent in (0, 2, 3):
        image = np.fft.fft(X, axis=1)
        image[:, [absent, -absent % 8]] = 0
        start = max_margin(np.fft.ifft(image, axis=1).real, y).w
        found = max_fourier_margin(X, y, depth=3, start=start)
        assert found.residual < 1e-6
        assert np.abs(spectrum(found.w)[absent]) < 1e-9
        values.append(found.objective)
    assert max(values) > 1.05 * min(values)


def test_the_optimum_is_over_the_end_to_end_weights():
    """The course minimises over filters w_1 .. w_L: their sizes are not determined, the product's is."""
    limit = linear_network_limit([[2.0, 1.0, 1.0, 0.0]], [1], "convolution", 2)
    beta = limit.direction * limit.objective
    for scale in (0.1, 10.0):  # filters (c, 1/c): one product, one classifier, other filters
        first, second = scale * np.fft.fft(beta) ** 0.5, np.fft.fft(beta) ** 0.5 / scale
        assert np.fft.ifft(first * second).real == pytest.approx(beta)
    assert fourier_norm(beta) == pytest.approx(limit.objective)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_fully_connected_networks_of_every_depth_end_at_the_euclidean_margin(depth):
    X, y = separable_points(8, 4, seed=0)
    limit = linear_network_limit(X, y, "connected", depth)
    assert limit.residual < 1e-8
    run = train_linear_network(X, y, "connected", depth, steps=5_000)
    beta = run.beta[-1]
    assert beta @ limit.direction / np.linalg.norm(beta) > 0.995
    assert limit.objective <= run.objective()[-1] * (1 + 1e-9) < 1.01 * limit.objective


@pytest.mark.parametrize("architecture", ["connected", "convolution"])
def test_gradients_of_the_layers_match_differences(architecture):
    from pindown.bias.margins.linear_networks import _connected, _convolved

    product = _convolved if architecture == "convolution" else _connected
    rng = np.random.default_rng(0)
    d, depth = 4, 3
    theta = rng.standard_normal(depth * d if architecture == "convolution" else 2 * d * d + d)
    g = rng.standard_normal(d)
    _, back = product(theta, d, depth)
    for i in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        difference = g @ (product(up, d, depth)[0] - product(down, d, depth)[0]) / 2e-6
        assert back(g)[i] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: max_fourier_margin([[1.0]], [1], depth=0), "depth must be"),
        (
            lambda: max_fourier_margin([[1.0, 2.0, 3.0]], [1], shape=(2, 2)),
            "does not have the 3 entries",
        ),
        (lambda: max_fourier_margin([[1.0], [1.0]], [1, -1]), "no linear classifier"),
        (lambda: linear_network_limit([[1.0]], [1], "recurrent"), "architecture must be"),
        (lambda: linear_network_limit([[1.0]], [1], depth=0), "depth must be"),
        (lambda: fourier_stationarity([-1.0], [[1.0]], [1], depth=2), "must separate"),
        (lambda: fourier_radius([0.0], [[1.0]], [1]), "not all zero"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
