"""Local generators of smooth transformations, also of those that form no group."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Transform = Callable[[NDArray[np.float64], NDArray[np.float64]], ArrayLike]

# Central differences of smooth functions are best near the cube root of machine precision.
STEP = 6e-6


def estimate_generators(
    transform: Transform, dimension: int, n_parameters: int = 1, step: float = STEP
) -> NDArray[np.float64]:
    r"""Return the matrices :math:`L_i = \partial_{\theta_i} s(\cdot, \theta)|_0` of a linear map.

    Near :math:`\theta = 0`, :math:`s(x, \theta) = x + \sum_i \theta_i L_i x + O(\|\theta\|^2)`. The
    transformation must be linear in x, as moving the pixels of an image is; otherwise there are no such
    matrices, and :func:`fit_generators` finds the best ones on given data.

    Args:
        transform: ``transform(X, theta)`` moves rows of X by parameters theta ``(n_parameters,)``.
        dimension: Length d of a row.
        n_parameters: How many parameters there are.
        step: Step of the central differences.

    Returns:
        Array ``(n_parameters, d, d)``.

    Raises:
        ValueError: If ``transform(X, 0)`` is not X, or the transformation is not linear in x.

    >>> def turn(X, theta):
    ...     c, s = np.cos(theta[0]), np.sin(theta[0])
    ...     return X @ np.array([[c, s], [-s, c]])
    >>> estimate_generators(turn, 2).round(6)[0].tolist()
    [[0.0, -1.0], [1.0, 0.0]]

    Lecture course, slides on local generators, with the order of the remainder corrected.
    """
    if dimension < 1 or n_parameters < 1:
        raise ValueError(f"dimension and n_parameters are from 1; got {dimension}, {n_parameters}.")
    basis, zero = np.eye(dimension), np.zeros(n_parameters)
    _require_linear(transform, dimension, zero)
    found = []
    for i in range(n_parameters):
        theta = zero.copy()
        theta[i] = step
        forth, back = _moved(transform, basis, theta), _moved(transform, basis, -theta)
        found.append((forth - back).T / (2.0 * step))
    return np.array(found)


def fit_generators(X: ArrayLike, moved: ArrayLike, thetas: ArrayLike) -> NDArray[np.float64]:
    r"""Return the matrices that explain :math:`s(x,\theta) - x` best, in least squares.

    Args:
        X: Samples ``(n, d)``.
        moved: The same samples after the transformation, ``(n, d)``.
        thetas: Small parameters of each, ``(n, p)``.

    Returns:
        Array ``(p, d, d)``; of the solutions the one of least norm where the pairs leave a choice.

    >>> X = np.eye(2)
    >>> fit_generators(X, X + 0.1 * X @ [[0.0, 1.0], [-1.0, 0.0]], [[0.1], [0.1]]).round(12)[0].tolist()
    [[0.0, -1.0], [1.0, 0.0]]
    """
    samples, images, parameters = (np.asarray(a, dtype=float) for a in (X, moved, thetas))
    if (
        samples.ndim != 2
        or 0 in samples.shape
        or images.shape != samples.shape
        or parameters.shape[:1] != samples.shape[:1]
    ):
        raise ValueError(
            f"X and moved are (n, d), thetas (n, p); got {samples.shape}, {images.shape}, "
            f"{parameters.shape}."
        )
    if parameters.ndim != 2 or not all(np.isfinite(a).all() for a in (samples, images, parameters)):
        raise ValueError(f"thetas is (n, p) and all numbers are finite; got {parameters.shape}.")
    (n, d), p = samples.shape, parameters.shape[1]
    design = (parameters[:, :, None] * samples[:, None, :]).reshape(n, p * d)
    solution = np.linalg.lstsq(design, images - samples, rcond=None)[0]
    return np.asarray(solution.reshape(p, d, d).transpose(0, 2, 1))


def local_orbit(x: ArrayLike, generators: ArrayLike, grid: ArrayLike) -> NDArray[np.float64]:
    r"""Return :math:`\exp(\sum_i \theta_i L_i)\,x` for every row theta of a grid.

    Args:
        x: One sample ``(d,)``.
        generators: Matrices ``(p, d, d)``.
        grid: Parameters ``(m, p)``.

    Returns:
        Array ``(m, d)``.

    >>> turn = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    >>> local_orbit([1.0, 0.0], turn, [[0.0], [np.pi / 2]]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0]]

    Lecture course, slides on local generators.
    """
    from scipy.sparse.linalg import expm_multiply

    sample, matrices, thetas = (np.asarray(a, dtype=float) for a in (x, generators, grid))
    if matrices.ndim != 3 or matrices.shape[1:] != (len(sample), len(sample)):
        raise ValueError(
            f"generators are (p, d, d) for a sample (d,); got {matrices.shape} and {sample.shape}."
        )
    if thetas.ndim != 2 or thetas.shape[1] != len(matrices):
        raise ValueError(f"grid is (m, {len(matrices)}), a row per image; got {thetas.shape}.")
    moved = [expm_multiply(np.tensordot(row, matrices, 1), sample) for row in thetas]
    return np.array(moved).reshape(len(thetas), len(sample))


def _moved(
    transform: Transform, X: NDArray[np.float64], theta: NDArray[np.float64]
) -> NDArray[np.float64]:
    images = np.asarray(transform(X, theta), dtype=float)
    if images.shape != X.shape:
        raise ValueError(f"transform must keep the shape {X.shape} of rows; it gave {images.shape}.")
    return images


def _require_linear(transform: Transform, d: int, zero: NDArray[np.float64]) -> None:
    probes = np.random.default_rng(0).standard_normal((2, d))
    if np.abs(_moved(transform, probes, zero) - probes).max() > STEP:
        raise ValueError("transform(X, 0) must be X: parameters are measured from no transformation.")
    theta = np.full(len(zero), 0.1)
    both = _moved(transform, probes, theta)
    joined = _moved(transform, probes.sum(axis=0, keepdims=True), theta)
    if np.abs(joined - both.sum(axis=0)).max() > STEP * (1.0 + np.abs(both).max()):
        raise ValueError("the transformation is not linear in x; fit_generators takes pairs instead.")
