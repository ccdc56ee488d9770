"""Rotations by any angle, scalings and other affine maps of images: approximate, by interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.actions.families import Transformations
from pindown.symmetry.actions.images import Images, _images
from pindown.symmetry.groups import Group, cyclic


def image_turns(n: int) -> Group:
    """The n rotations of images about their centre by multiples of 360 / n degrees, counter-clockwise.

    Pixels are interpolated bilinearly and what comes from outside is zero, so two turns differ a little
    from one by the sum; only multiples of 90 degrees on square images are exact.

    >>> image_turns(4).act(1, [[[1.0, 2.0], [3.0, 4.0]]]).round(12).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]

    Lecture course, slides on groups.
    """
    return replace(
        cyclic(n).acting_by(partial(_turned, n)), approximate=n > 2
    )  # half turns move whole pixels


def _turned(n: int, index: int, X: Images) -> Images:
    angle = 2.0 * np.pi * index / n
    return affine_images(X, [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


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
    images = _images(np.asarray(X, dtype=float))
    M = np.asarray(matrix, dtype=float)
    if M.shape != (2, 2) or not np.isfinite(M).all() or abs(np.linalg.det(M)) < np.finfo(float).tiny:
        raise ValueError(f"the map is an invertible (2, 2) matrix; got {M.tolist()}.")
    inverse = np.linalg.inv(M)
    key = tuple(inverse.ravel().tolist())
    operator = _affine_operator(*images.shape[-2:], key, (float(shift[0]), float(shift[1])))
    return apply_operator(operator, images)


def apply_operator(operator: sp.csr_array, images: Images) -> Images:
    """Apply a sparse map of pixels to every image."""
    rows = images.reshape(-1, operator.shape[1])
    return np.asarray((operator @ rows.T).T).reshape(images.shape)


def sampling_operator(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> sp.csr_array:
    """Return the sparse map that reads an image between its pixels, bilinearly, zero outside.

    Args:
        rows: Where to read, ``(H, W)``, in pixels from the top.
        columns: Alike, from the left.
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
    return sampling_operator(_settled(rows), _settled(columns))


def _settled(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = np.round(positions)
    slack = 64 * np.finfo(float).eps * (1.0 + np.abs(positions))
    return np.asarray(np.where(np.abs(positions - whole) <= slack, whole, positions))
