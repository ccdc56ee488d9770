"""Rotations and motions of the plane, acting on points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group, cyclic


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
    from pindown.symmetry.actions.interpolated import affine_images

    T = _motion(motion)
    return affine_images(X, T[:2, :2], (T[0, 2], T[1, 2]))


def planar_rotations(n: int) -> Group:
    """The n rotations of the plane by multiples of 360 / n degrees, acting on points (x, y).

    >>> planar_rotations(4).orbit([1.0, 0.0]).round(12).tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [-0.0, -1.0]]
    """
    group = cyclic(n)
    return group.acting_by([se2(2.0 * np.pi * k / n)[:2, :2] for k in range(n)])


def _motion(motion: ArrayLike) -> NDArray[np.float64]:
    T = np.asarray(motion, dtype=float)
    if T.shape != (3, 3) or not np.array_equal(T[2], [0.0, 0.0, 1.0]):
        raise ValueError(f"a motion is (3, 3) with last row 0, 0, 1; got shape {T.shape}.")
    return T
