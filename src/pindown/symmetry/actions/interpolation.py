"""Rotations by any angle, motions of the plane (SE(2)), scalings and warps: on images, by interpolation.

Smooth warps form no group, not even locally one of finite dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.actions.images import Images, require_images
from pindown.symmetry.families import Transformations
from pindown.symmetry.groups import Group, cyclic


def image_turns(n: int) -> Group:
    """The n rotations of images about their centre by multiples of 360 / n degrees, counter-clockwise.

    Pixels are interpolated bilinearly and what comes from outside is zero, so two turns differ a little
    from one by the sum; only multiples of 90 degrees on square images are exact.

    >>> image_turns(4).act(1, [[[1.0, 2.0], [3.0, 4.0]]]).round(12).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]

    Lecture course, slides on groups.
    """
    # Half turns move whole pixels.
    return replace(cyclic(n).acting_by(partial(_turned, n)), approximate=n > 2)


def image_scalings(factors: Sequence[float]) -> Transformations:
    """Images enlarged about their centre by some factors; below one they shrink.

    >>> image_scalings([0.5, 2.0]).elements
    (0.5, 2.0)
    """
    sizes = tuple(float(factor) for factor in factors)
    if not all(0.0 < size < np.inf for size in sizes):
        raise ValueError(f"factors are positive numbers; got {sizes}.")
    moves = tuple(lambda X, size=size: affine_images(X, [[size, 0.0], [0.0, size]]) for size in sizes)
    return Transformations("scalings", sizes, moves)


def affine_images(X: ArrayLike, matrix: ArrayLike, shift: Sequence[float] = (0.0, 0.0)) -> Images:
    r"""Move images by an affine map of the plane.

    The new image at p is the old one at :math:`M^{-1}(p - t)`.
    Coordinates are (x, y) in pixels, measured from the centre, x to the right and y upwards.

    Args:
        X: Images, last two axes height and width.
        matrix: The map M, ``(2, 2)``, invertible.
        shift: The translation t.

    >>> affine_images([[[1.0, 2.0, 3.0]]], np.eye(2), shift=(1.0, 0.0)).tolist()
    [[[0.0, 1.0, 2.0]]]

    Lecture course, slides on transformations.
    """
    images = require_images(np.asarray(X, dtype=float))
    M = np.asarray(matrix, dtype=float)
    if M.shape != (2, 2) or not np.isfinite(M).all() or abs(np.linalg.det(M)) < np.finfo(float).tiny:
        raise ValueError(f"the map is an invertible (2, 2) matrix; got {M.tolist()}.")
    inverse = np.linalg.inv(M)
    key = tuple(inverse.ravel().tolist())
    operator = _affine_operator(*images.shape[-2:], key, (float(shift[0]), float(shift[1])))
    return _apply_operator(operator, images)


def se2(theta: float, tx: float = 0.0, ty: float = 0.0) -> NDArray[np.float64]:
    r"""Return the matrix of a motion of the plane: turn by theta, then shift by (tx, ty).

    .. math::
        \begin{pmatrix}\cos\theta & -\sin\theta & t_x\\ \sin\theta & \cos\theta & t_y\\
        0 & 0 & 1\end{pmatrix}

    The source prints both sines with a plus; that matrix has determinant :math:`\cos 2\theta` and turns
    nothing.

    >>> se2(np.pi / 2, 1.0, 0.0).round(12).tolist()
    [[0.0, -1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    Lecture course, slides on transformations, with a sign corrected.
    """
    if not np.isfinite([theta, tx, ty]).all():
        raise ValueError(f"angle and shift are finite numbers; got {theta!r}, {tx!r}, {ty!r}.")
    c, s = np.cos(theta), np.sin(theta)
    return np.array([[c, -s, tx], [s, c, ty], [0.0, 0.0, 1.0]])


def act_points(motion: ArrayLike, points: ArrayLike) -> NDArray[np.float64]:
    """Move points of the plane, ``(..., 2)``, by a matrix in homogeneous coordinates, ``(3, 3)``.

    >>> act_points(se2(np.pi / 2, 1.0, 0.0), [[1.0, 0.0]]).round(12).tolist()
    [[1.0, 1.0]]
    """
    T, P = _motion(motion), np.asarray(points, dtype=float)
    if P.shape[-1:] != (2,):
        raise ValueError(f"points of the plane have two coordinates; got shape {P.shape}.")
    return np.asarray(P @ T[:2, :2].T + T[:2, 2])


def act_images(motion: ArrayLike, X: ArrayLike) -> NDArray[np.float64]:
    """Move images by a motion of the plane about their centre, in pixels, by interpolation.

    >>> act_images(se2(0.0, 1.0, 0.0), [[[1.0, 2.0, 3.0]]]).tolist()
    [[[0.0, 1.0, 2.0]]]
    """
    T = _motion(motion)
    return affine_images(X, T[:2, :2], (T[0, 2], T[1, 2]))


def planar_rotations(n: int) -> Group:
    """The n rotations of the plane by multiples of 360 / n degrees, acting on points (x, y).

    >>> planar_rotations(4).orbit([1.0, 0.0]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -1.0]]
    """
    group = cyclic(n)
    return group.acting_by([se2(2.0 * np.pi * k / n)[:2, :2] for k in range(n)])


def warp(X: ArrayLike, displacement: ArrayLike) -> Images:
    r"""Read images at displaced places: the new image at p is the old one at :math:`p + u(p)`.

    Args:
        X: Images, last two axes height and width.
        displacement: The field u in pixels, ``(2, H, W)``: downwards and to the right.

    >>> warp([[[1.0, 2.0, 3.0]]], [np.zeros((1, 3)), np.ones((1, 3))]).tolist()
    [[[2.0, 3.0, 0.0]]]

    Lecture course, slides on transformations.
    """
    images, field = require_images(np.asarray(X, dtype=float)), np.asarray(displacement, dtype=float)
    if field.shape != (2, *images.shape[-2:]) or not np.isfinite(field).all():
        raise ValueError(f"the displacement is finite, {(2, *images.shape[-2:])}; got {field.shape}.")
    i, j = np.meshgrid(*(np.arange(n) for n in images.shape[-2:]), indexing="ij")
    return _apply_operator(_sampling_operator(i + field[0], j + field[1]), images)


def smooth_displacement(
    height: int, width: int, size: float, smoothness: int = 3, seed: int = 0
) -> NDArray[np.float64]:
    """Return a random field made of the lowest sine waves, zero at the border, of a largest length.

    Args:
        height: Rows.
        width: Columns.
        size: Largest length of a displacement, in pixels.
        smoothness: How many waves on each axis; fewer are smoother.
        seed: Seed of the amplitudes.

    >>> field = smooth_displacement(8, 8, size=0.5)
    >>> round(float(np.hypot(*field).max()), 12)
    0.5
    """
    if not (size >= 0.0 and smoothness >= 1 and min(height, width) >= 3):
        raise ValueError(
            f"a field needs size from 0, smoothness from 1 and images from 3 x 3; got {size!r}, "
            f"{smoothness!r}, {height} x {width}."
        )
    rng, waves = np.random.default_rng(seed), np.arange(1, smoothness + 1)
    rows = np.sin(np.pi * np.outer(waves, np.linspace(0, 1, height)))
    columns = np.sin(np.pi * np.outer(waves, np.linspace(0, 1, width)))
    amplitudes = rng.standard_normal((2, smoothness, smoothness)) / np.add.outer(waves, waves)
    field = np.einsum("kab,ai,bj->kij", amplitudes, rows, columns)
    longest = float(np.hypot(field[0], field[1]).max())
    return np.asarray(field * (size / longest))


def smooth_warps(
    height: int, width: int, size: float, n: int = 5, smoothness: int = 3, seed: int = 0
) -> Transformations:
    """Return some random smooth warps of images.

    >>> smooth_warps(8, 8, size=1.0, n=3).order
    3
    """
    fields = [smooth_displacement(height, width, size, smoothness, seed + k) for k in range(n)]
    moves = tuple(lambda X, field=field: warp(X, field) for field in fields)
    return Transformations(f"warps of size {size:g}", tuple(range(n)), moves)


def _turned(n: int, index: int, X: Images) -> Images:
    angle = 2.0 * np.pi * index / n
    return affine_images(X, [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _apply_operator(operator: sp.csr_array, images: Images) -> Images:
    """Apply a sparse map of pixels to every image."""
    rows = images.reshape(-1, operator.shape[1])
    return np.asarray((operator @ rows.T).T).reshape(images.shape)


def _sampling_operator(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> sp.csr_array:
    """Return the sparse map that reads an image between its pixels, bilinearly, zero outside.

    Args:
        rows: Where to read, ``(H, W)``, in pixels from the top.
        columns: Where to read, ``(H, W)``, in pixels from the left.
    """
    height, width = rows.shape
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = rows - top, columns - left
    target = np.arange(height * width).reshape(height, width)
    parts = []
    for i, j, weight in (
        (top, left, (1 - down) * (1 - right)),
        (top, left + 1, (1 - down) * right),
        (top + 1, left, down * (1 - right)),
        (top + 1, left + 1, down * right),
    ):
        inside = (i >= 0) & (i < height) & (j >= 0) & (j < width) & (weight != 0)
        parts.append((weight[inside], target[inside], i[inside] * width + j[inside]))
    data, targets, sources = (np.concatenate(column) for column in zip(*parts, strict=True))
    return sp.csr_array((data, (targets, sources)), shape=(height * width, height * width))


@lru_cache(maxsize=512)
def _affine_operator(
    height: int, width: int, inverse: tuple[float, ...], shift: tuple[float, float]
) -> sp.csr_array:
    i, j = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    x, y = j - (width - 1) / 2 - shift[0], (height - 1) / 2 - i - shift[1]
    a, b, c, d = inverse
    columns, rows = a * x + b * y + (width - 1) / 2, (height - 1) / 2 - (c * x + d * y)
    # Whole pixels must stay whole: a quarter turn is exact although its cosine is not quite zero.
    return _sampling_operator(_settled(rows), _settled(columns))


def _settled(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = np.round(positions)
    slack = 64 * np.finfo(float).eps * (1.0 + np.abs(positions))
    return np.asarray(np.where(np.abs(positions - whole) <= slack, whole, positions))


def _motion(motion: ArrayLike) -> NDArray[np.float64]:
    T = np.asarray(motion, dtype=float)
    if T.shape != (3, 3) or not np.array_equal(T[2], [0.0, 0.0, 1.0]):
        raise ValueError(f"a motion is (3, 3) with last row 0, 0, 1; got shape {T.shape}.")
    return T
