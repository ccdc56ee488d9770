"""Smooth warps of images: no group, not even locally of finite dimension."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.actions.families import Transformations
from pindown.symmetry.actions.images import Images, _images
from pindown.symmetry.actions.interpolated import apply_operator, sampling_operator


def warp(X: ArrayLike, displacement: ArrayLike) -> Images:
    r"""Read images at displaced places: the new image at p is the old one at :math:`p + u(p)`.

    Args:
        X: Images, last two axes height and width.
        displacement: The field u in pixels, ``(2, H, W)``: downwards and to the right.

    >>> warp([[[1.0, 2.0, 3.0]]], [np.zeros((1, 3)), np.ones((1, 3))]).tolist()
    [[[2.0, 3.0, 0.0]]]

    Lecture course, slides on transformations.
    """
    images, field = _images(np.asarray(X, dtype=float)), np.asarray(displacement, dtype=float)
    if field.shape != (2, *images.shape[-2:]) or not np.isfinite(field).all():
        raise ValueError(f"the displacement is finite, {(2, *images.shape[-2:])}; got {field.shape}.")
    i, j = np.meshgrid(*(np.arange(n) for n in images.shape[-2:]), indexing="ij")
    return apply_operator(sampling_operator(i + field[0], j + field[1]), images)


def smooth_displacement(
    height: int, width: int, size: float, smoothness: int = 3, seed: int = 0
) -> NDArray[np.float64]:
    """Return a random field made of the lowest sine waves, zero at the border, of a largest length.

    Args:
        height: Rows.
        width: Columns.
        size: Largest length of a displacement, in pixels.
        smoothness: How many waves on each axis; fewer are smoother.
        seed: For the draw.

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
