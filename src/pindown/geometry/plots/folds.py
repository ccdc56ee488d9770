"""Fold-sets in the plane, by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

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
from pindown.geometry.slices.plane_slice import PlaneSlice


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

    Phuong 2021, figure 2.2.
    """
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
