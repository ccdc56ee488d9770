"""Folds in the plane by layer, along a segment with the outputs, and as a small transparent image."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.extras import require
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.folds.fold_set import FoldSet, fold_set
from pindown.geometry.plots.style import (
    COLOURS,
    FAINT,
    MANY,
    frame,
    legend_beside,
    new_axes,
    overlay,
    plane_complex,
    shape,
)
from pindown.geometry.slices.plane import PlaneSlice
from pindown.geometry.slices.segment import SegmentFolds
from pindown.validation import refuse

_MANY_KNOTS = 60  # from here on dots on the curves would hide them
_FINER = 3  # pixels drawn for one pixel shown: the mean of their squares smooths the lines
_LEVELS = 16  # shades of grey: four bits per pixel
_GREY, _OPAQUE = 110, 235
_SOFTER = 0.7  # below 1, a single line shows well and a bundle of them is not black


def plot_folds(
    source: FoldSet | PolyhedralComplex | PlaneSlice,
    *,
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw where a network is not differentiable, one colour per layer.

    Folds that the output does not show are thin and grey.

    Args:
        source: Folds, cells, or a slice of a network with more inputs.
        points: Data to draw on top, (n, 2), or inputs (n, d) that are projected to the slice.
        labels: Their classes (n,).
        legend: Whether to name the layers beside the axes.
        ax: Axes to draw on.

    Returns:
        The axes.

    >>> from pindown import ReluNetwork
    >>> from pindown.geometry import polyhedral_complex
    >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0.0]), ([[1.0]], [0.0])])
    >>> ax = plot_folds(polyhedral_complex(net, ([-1, -1], [1, 1])))
    >>> len(ax.collections)
    1

    Phuong 2021, figure 2.2.
    """
    require("matplotlib")
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    folds = source if isinstance(source, FoldSet) else fold_set(plane_complex(source))
    cx = plane_complex(folds.complex)
    ax = new_axes(ax, size=(5.2, 4.4 * shape(cx) + 0.6))
    many, seen = len(folds) > MANY, int(folds.visible.sum())
    if seen < len(folds):
        hidden = list(folds.segments[~folds.visible])
        thin = 0.6 * _width(len(folds))
        ax.add_collection(LineCollection(hidden, colors=FAINT, linewidths=thin, rasterized=many))
    handles: list[Any] = []
    for layer in range(cx.net.depth - 1, 0, -1):  # earlier layers on top: theirs are the long lines
        own = (folds.layers == layer) & folds.visible
        if own.any():
            colour, width = COLOURS[(layer - 1) % len(COLOURS)], _width(seen)
            lines = list(folds.segments[own])
            ax.add_collection(
                LineCollection(lines, colors=colour, linewidths=width, rasterized=many, zorder=3)
            )
            handles.insert(0, Line2D([], [], color=colour, linewidth=1.6, label=f"layer {layer}"))
    if seen < len(folds):
        handles.append(Line2D([], [], color=FAINT, linewidth=1.2, label="not visible"))
    overlay(ax, source, points, labels)
    frame(ax, source, cx)
    if legend and handles:
        legend_beside(ax, handles, "folds of")
    return ax


def _width(n: int) -> float:
    return float(np.clip(30.0 / np.sqrt(max(n, 1)), 0.15, 1.6))


def plot_segment(
    folds: SegmentFolds,
    *,
    outputs: Sequence[int] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the outputs between two inputs, and a tick for every unit that switches on the way.

    Ticks stand below the curves, one row per layer; those that the output does not show are grey.

    Args:
        folds: What ``along_segment(net, a, b)`` found.
        outputs: Which outputs to draw; all by default.
        legend: Whether to name the outputs beside the axes, if there are several.
        ax: Axes to draw on.

    Returns:
        The axes.

    >>> from pindown import ReluNetwork
    >>> from pindown.geometry import along_segment
    >>> net = ReluNetwork.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])])
    >>> ax = plot_segment(along_segment(net, [-1.0], [1.0]))
    >>> ax.lines[0].get_ydata().tolist()
    [0.0, 0.0, 1.0]
    """
    if not isinstance(folds, SegmentFolds):
        raise TypeError(f"folds must be one SegmentFolds; got {type(folds).__name__}.")
    k = folds.values.shape[1]
    chosen = list(range(k)) if outputs is None else list(outputs)
    if not chosen or not all(0 <= i < k for i in chosen):
        refuse("outputs", f"numbers from 0 to {k - 1}, at least one", outputs)
    ax = new_axes(ax, size=(6.4, 3.8))
    dots = "o" if len(folds.knots) <= _MANY_KNOTS else ""
    for i, output in enumerate(chosen):
        ax.plot(
            folds.knots,
            folds.values[:, output],
            color=COLOURS[i % len(COLOURS)],
            linestyle="-" if i < len(COLOURS) else "--",
            linewidth=1.6,
            marker=dots,
            markersize=3.2,
            markevery=slice(1, -1),
            label=f"output {output}",
        )
    _ticks(ax, folds)
    ax.set_xlim(0, 1)
    ax.set_xlabel("from a (0) to b (1)")
    ax.set_ylabel("output")
    for name, side in ax.spines.items():
        side.set_visible(name in ("bottom", "left"))
        side.set_color(FAINT)
    ax.tick_params(color=FAINT)
    if legend and len(chosen) > 1:
        legend_beside(ax)
    return ax


def _ticks(ax: Any, folds: SegmentFolds) -> None:
    """Draw a row of ticks per layer under the curves, in units of the axes' height."""
    layers = np.searchsorted(np.cumsum([0, *folds.net.hidden_widths]), folds.units, side="right")
    rows = max(1, folds.net.depth - 1)
    height = min(0.055, 0.25 / rows)
    span = rows * height
    low, high = ax.get_ylim()
    ax.set_yticks([tick for tick in ax.get_yticks() if low <= tick <= high])
    ax.set_ylim(low - (high - low) * span / (1 - span) * 1.15, high)
    for layer in range(1, folds.net.depth):
        place = span - layer * height
        for visible, colour in ((True, "#565f68"), (False, "#d3d6da")):
            own = (layers == layer) & (folds.visible == visible)
            ax.vlines(
                folds.t[own],
                place + 0.15 * height,
                place + 0.85 * height,
                transform=ax.get_xaxis_transform(),
                colors=colour,
                linewidths=0.7,
            )
        ax.annotate(
            f"layer {layer}",
            (1.0, place + 0.5 * height),
            (3, 0),
            xycoords="axes fraction",
            textcoords="offset points",
            va="center",
            fontsize=min(8.0, 140 * height),
            color="#565f68",
        )


def lines_image(segments: Array, box: Box, *, pixels: int = 640, width: int = 1) -> bytes:
    """Draw segments (m, 2, 2) in mid-grey on nothing, so that light and dark pages can show through.

    Args:
        segments: Their ends.
        box: What the image shows, a rectangle.
        pixels: Along the longer side.
        width: How wide the lines are, in thirds of a pixel.

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
