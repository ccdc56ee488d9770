"""Symmetries of the pixel grid, exact on every image, and changes of light.

Quarter turns, reflections and circular shifts move pixels; brightness, contrast and gamma change their
values. Images are arrays whose last two axes are height and width: (n, H, W) or (n, C, H, W).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pindown.symmetry.constructions import direct_product
from pindown.symmetry.families import Transformations
from pindown.symmetry.groups import Group, cyclic, dihedral
from pindown.validation import choice

Images = NDArray[np.float64]


def image_rotations() -> Group:
    """The four quarter turns of square images, counter-clockwise.

    >>> image_rotations().act(1, [[[1.0, 2.0], [3.0, 4.0]]]).tolist()
    [[[2.0, 4.0], [1.0, 3.0]]]

    Lecture course, slides on groups.
    """
    return cyclic(4).acting_by(_turned)


def image_reflection(axis: Literal["left-right", "up-down"] = "left-right") -> Group:
    """An image and its mirror image.

    >>> image_reflection().act(1, [[[1.0, 2.0], [3.0, 4.0]]]).tolist()
    [[[2.0, 1.0], [4.0, 3.0]]]
    """
    choice("axis", axis, ("left-right", "up-down"))
    return cyclic(2).acting_by(partial(_flipped, -1 if axis == "left-right" else -2))


def image_dihedral() -> Group:
    """The eight symmetries of the square: quarter turns after an optional left-right reflection.

    >>> image_dihedral().order
    8
    """
    return dihedral(4).acting_by(_turned_after_flip)


def image_translations(height: int, width: int, step: int = 1) -> Group:
    """Circular shifts: what leaves the image on one side comes back on the other.

    Args:
        height: Rows of the images; must be a multiple of the step.
        width: Columns; alike.
        step: Shift by multiples of this many pixels.

    >>> shifts = image_translations(2, 3)
    >>> shifts.elements[1], shifts.act(1, [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]).tolist()
    ((0, 1), [[[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]]])
    """
    if step < 1 or height % step or width % step:
        raise ValueError(
            f"height {height} and width {width} must be multiples of the step; got step {step}."
        )
    group = direct_product(cyclic(height // step), cyclic(width // step))
    return group.acting_by(partial(_shifted, (height, width), step))


def illumination(factors: Sequence[float]) -> Transformations:
    """All numbers of a sample times a positive factor: a part of the multiplicative group.

    >>> illumination([2.0]).act(0, [[1.0, 3.0]]).tolist()
    [[2.0, 6.0]]

    Lecture course, slides on illumination.
    """
    values = _positive(factors, "factors")
    moves = tuple(lambda X, factor=factor: factor * X for factor in values)
    return Transformations("illumination", values, moves)


def contrast_changes(gains: Sequence[float], offsets: Sequence[float] = (0.0,)) -> Transformations:
    """Every gain with every offset, x to gain x + offset: a part of the affine group of the line.

    >>> contrast_changes([1.0, 2.0], [0.0, 0.5]).elements
    ((1.0, 0.0), (1.0, 0.5), (2.0, 0.0), (2.0, 0.5))
    """
    pairs = tuple((g, float(o)) for g in _positive(gains, "gains") for o in offsets)
    if not np.isfinite(pairs).all():
        raise ValueError(f"offsets are finite numbers; got {tuple(offsets)}.")
    moves = tuple(lambda X, g=g, o=o: g * X + o for g, o in pairs)
    return Transformations("contrast", pairs, moves)


def gamma_changes(exponents: Sequence[float]) -> Transformations:
    """All numbers of a sample, which must be from 0, raised to a power.

    >>> gamma_changes([2.0]).act(0, [[0.5, 1.0]]).tolist()
    [[0.25, 1.0]]
    """

    def power(X: np.ndarray, exponent: float) -> np.ndarray:
        if X.size and X.min() < 0.0:
            raise ValueError(f"gamma acts on numbers from 0; got {X.min():.3g}. Shift the data first.")
        return np.asarray(X**exponent)

    values = _positive(exponents, "exponents")
    moves = tuple(lambda X, exponent=exponent: power(X, exponent) for exponent in values)
    return Transformations("gamma", values, moves)


# Actions are functions of the module, not of a call, so that models that hold them can be saved.
def _turned(index: int, X: Images) -> Images:
    return np.rot90(_square(X), index, axes=(-2, -1))


def _flipped(axis: int, index: int, X: Images) -> Images:
    return np.flip(require_images(X), axis) if index else require_images(X)


def _turned_after_flip(index: int, X: Images) -> Images:
    images = _square(X)
    return np.rot90(np.flip(images, -1) if index >= 4 else images, index % 4, axes=(-2, -1))


def _shifted(shape: tuple[int, int], step: int, index: int, X: Images) -> Images:
    images = require_images(X)
    if images.shape[-2:] != shape:
        raise ValueError(f"these shifts act on images {shape}; got shape {X.shape}.")
    down, right = divmod(index, shape[1] // step)
    return np.roll(images, (step * down, step * right), axis=(-2, -1))


def require_images(X: Images) -> Images:
    """Return images (n, H, W) or (n, C, H, W), or say what is wrong."""
    if X.ndim < 3:
        raise ValueError(
            f"images are (n, H, W) or (n, C, H, W); got shape {X.shape}. "
            f"For flat rows say flattened(group, shape)."
        )
    return X


def _square(X: Images) -> Images:
    if require_images(X).shape[-1] != X.shape[-2]:
        raise ValueError(f"quarter turns need square images; got {X.shape[-2]} x {X.shape[-1]}.")
    return X


def _positive(values: Sequence[float], name: str) -> tuple[float, ...]:
    found = tuple(float(value) for value in values)
    if not found or not all(0.0 < value < np.inf for value in found):
        raise ValueError(f"{name} are positive numbers, at least one; got {found}.")
    return found
