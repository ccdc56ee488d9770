"""Many thin lines as a small transparent image, for pages that must stay small."""

from __future__ import annotations

import io

import numpy as np

from pindown.affine import Array
from pindown.box import Box

_FINER = 3  # pixels drawn for one pixel shown: the mean of their squares smooths the lines
_LEVELS = 16  # shades of grey: four bits per pixel
_GREY, _OPAQUE = 110, 235
_SOFTER = 0.7  # below 1, a single line shows well and a bundle of them is not black


def lines_image(segments: Array, box: Box, *, pixels: int = 640, width: int = 1) -> bytes:
    """Draw segments (m, 2, 2) in mid-grey on nothing, so that light and dark pages can show through.

    Args:
        segments: Their ends.
        box: What the image shows, a rectangle.
        pixels: Along the longer side.
        width: Of the lines, in thirds of a pixel.

    Returns:
        A PNG file.
    """
    from PIL import Image, ImageDraw

    sides = box.upper - box.lower
    wide, high = (max(1, round(float(pixels * side / sides.max()))) for side in sides)
    scale = _FINER * np.array([wide, -high]) / sides
    ends = (segments - [box.lower[0], box.upper[1]]) * scale - 0.5
    fine = Image.new("L", (_FINER * wide, _FINER * high))
    brush = ImageDraw.Draw(fine)
    for line in ends.reshape(-1, 4).tolist():
        brush.line(line, fill=255, width=width)
    covered = np.asarray(fine.reduce(_FINER), dtype=np.float64) / 255
    levels = np.rint((_LEVELS - 1) * covered**_SOFTER).astype(np.uint8)
    image = Image.fromarray(levels, mode="P")
    image.putpalette([_GREY] * (3 * _LEVELS))
    opacity = bytes(round(_OPAQUE * level / (_LEVELS - 1)) for level in range(_LEVELS))
    file = io.BytesIO()
    image.save(file, "png", transparency=opacity, bits=4, optimize=True)
    return file.getvalue()
