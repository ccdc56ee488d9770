"""An input drawn as the image it is, if it is one."""

from __future__ import annotations

import base64
import io
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array

_SMALLEST_SIDE = 8  # a square of fewer inputs is rather a table than an image


def image_of(x: Array, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """Return the input as (height, width) or (height, width, 3) in [0, 1], or None if it is no image.

    Inputs without a second axis count as an image if they fill a square of 8 x 8 or more.

    >>> image_of(np.zeros(784), (784, 1)).shape, image_of(np.zeros(12), (12,)) is None
    ((28, 28), True)
    """
    axes = tuple(n for n in shape if n > 1)
    if len(axes) == 1 and isqrt(axes[0]) ** 2 == axes[0] and isqrt(axes[0]) >= _SMALLEST_SIDE:
        axes = (isqrt(axes[0]),) * 2
    if len(axes) == 3 and axes[0] == 3:
        picture = x.reshape(axes).transpose(1, 2, 0)
    elif len(axes) == 2 or (len(axes) == 3 and axes[2] == 3):
        picture = x.reshape(axes)
    else:
        return None
    low, high = min(0.0, float(picture.min())), max(1.0, float(picture.max()))
    return np.asarray((picture - low) / (high - low))


def png_of(picture: NDArray[np.float64]) -> str:
    """Return an image as PNG in base64."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    imsave(buffer, picture, cmap="gray", vmin=0.0, vmax=1.0, format="png")
    return base64.b64encode(buffer.getvalue()).decode("ascii")
