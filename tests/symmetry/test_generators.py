"""Generators: the matrix of an infinitesimal transformation, and its remainder of second order."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.ndimage import map_coordinates

from pindown.symmetry.generators import estimate_generators, fit_generators, local_orbit

SIDE = 13


def turned(X, theta):
    """Rotate images by spline interpolation, which is linear in the image."""
    images = X.reshape(-1, SIDE, SIDE)
    i, j = np.meshgrid(*[np.arange(SIDE) - (SIDE - 1) / 2] * 2, indexing="ij")
    c, s = np.cos(theta[0]), np.sin(theta[0])
    places = np.array([c * i - s * j, s * i + c * j]) + (SIDE - 1) / 2
    return np.array([map_coordinates(im, places, order=5, mode="grid-wrap") for im in images]).reshape(
        X.shape
    )


def smooth_image():
    i, j = np.meshgrid(*[np.arange(SIDE) - (SIDE - 1) / 2] * 2, indexing="ij")
    return (np.exp(-((i - 1) ** 2 + 2 * j**2) / 8)).ravel()


@pytest.fixture(scope="module")
def generator():
    return estimate_generators(turned, SIDE**2, step=1e-4)


def test_the_exponential_of_the_generator_turns_a_smooth_image(generator):
    x = smooth_image()
    for theta in (0.05, 0.2):
        exact = turned(x[None], np.array([theta]))[0]
        found = local_orbit(x, generator, [[theta]])[0]
        assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)
        linear = x + theta * generator[0] @ x
        assert np.linalg.norm(found - exact) < np.linalg.norm(linear - exact)


def test_printed_remainder_is_of_second_order_and_not_smaller(generator):
    """The source prints o(theta^2); divided by theta^2 the remainder has a limit that is not zero."""
    x, thetas = smooth_image(), np.array([0.02, 0.04, 0.08])
    remainders = [
        np.linalg.norm(turned(x[None], np.array([t]))[0] - x - t * generator[0] @ x) for t in thetas
    ]
    slope = np.polyfit(np.log(thetas), np.log(remainders), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1)
    assert min(remainders / thetas**2) > 0.1 * np.linalg.norm(x)


def test_generators_of_planar_motions_are_exact():
    def move(X, theta):
        return X @ expm(theta[0] * np.array([[0, -1.0], [1, 0]]) + theta[1] * np.eye(2)).T

    L = estimate_generators(move, 2, 2)
    assert np.allclose(L, [[[0, -1], [1, 0]], [[1, 0], [0, 1]]], atol=1e-9)
    found = local_orbit([1.0, 2.0], L, [[0.3, 0.1]])
    assert np.allclose(found, move(np.array([[1.0, 2.0]]), [0.3, 0.1]), atol=1e-8)


def test_fitting_recovers_generators_from_pairs():
    rng = np.random.default_rng(0)
    L = rng.standard_normal((2, 4, 4))
    X, thetas = rng.standard_normal((60, 4)), 1e-4 * rng.standard_normal((60, 2))
    moved = np.array([expm(np.tensordot(t, L, 1)) @ x for x, t in zip(X, thetas, strict=True)])
    assert np.abs(fit_generators(X, moved, thetas) - L).max() < 0.01


def test_transformations_that_are_not_linear_or_not_centred_are_refused():
    with pytest.raises(ValueError, match="not linear"):
        estimate_generators(lambda X, t: X + t[0] * X**2, 3)
    with pytest.raises(ValueError, match="must be X"):
        estimate_generators(lambda X, t: 2 * X, 3)
    with pytest.raises(ValueError, match="keep the shape"):
        estimate_generators(lambda X, t: X[:, :1], 3)
    with pytest.raises(ValueError, match=r"grid is \(m, 1\)"):
        local_orbit([1.0, 0.0], np.zeros((1, 2, 2)), [[0.1, 0.2]])


def test_nothing_to_learn_from_is_refused_and_an_empty_grid_has_no_images():
    with pytest.raises(ValueError, match="from 1"):
        estimate_generators(lambda X, theta: X, 0)
    with pytest.raises(ValueError, match="X and moved"):
        fit_generators(np.zeros((0, 2)), np.zeros((0, 2)), np.zeros((0, 1)))
    assert local_orbit([1.0, 0.0], np.zeros((1, 2, 2)), np.zeros((0, 1))).shape == (0, 2)
