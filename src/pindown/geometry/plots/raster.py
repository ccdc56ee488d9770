"""Many thin lines as a small transparent image, for pages that must stay small."""

from __future__ import annotations

import io

import numpy as np

from pindown.affine import Array
from pindown.geometry.box import Box

_LEVELS = 16  # shades of grey: four bits per pixel


def lines_image(segments: Array, box: Box, *, pixels: int = 640, width: float = 0.5) -> bytes:
    """Draw segments (m, 2, 2) in mid-grey on nothing, so that light and dark pages can show through.

    Args:
        segments: Their ends.
        box: What the image shows, a rectangle.
        pixels: Along the longer side.
        width: Of the lines, in pixels.

    Returns:
        A PNG file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from PIL import Image

    sides = box.upper - box.lower
    wide, high = (max(1, round(float(pixels * side / sides.max()))) for side in sides)
    figure = Figure(figsize=(wide / 100, high / 100), dpi=100)
    canvas = FigureCanvasAgg(figure)
    ax = figure.add_axes((0, 0, 1, 1))
    ax.axis("off")
    ax.set_xlim(box.lower[0], box.upper[0])
    ax.set_ylim(box.lower[1], box.upper[1])
    ax.add_collection(LineCollection(list(segments), colors="black", linewidths=0.72 * width))
    canvas.draw()
    darkness = 255 - np.asarray(canvas.buffer_rgba())[..., 0].astype(np.int64)
    image = Image.fromarray((darkness * (_LEVELS - 1) // 255).astype(np.uint8), mode="P")
    image.putpalette([110] * (3 * _LEVELS))
    opacity = bytes(round(230 * level / (_LEVELS - 1)) for level in range(_LEVELS))
    file = io.BytesIO()
    image.save(file, "png", transparency=opacity, bits=4, optimize=True)
    return file.getvalue()
