"""A network along a segment: its outputs, and where they break."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pindown.geometry.plots.style import COLOURS, FAINT, legend_beside, new_axes
from pindown.geometry.slices.segment_folds import SegmentFolds

_MANY_KNOTS = 60  # from here on dots on the curves would hide them


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
    """
    if not isinstance(folds, SegmentFolds):
        raise TypeError(f"plot_segment takes one SegmentFolds; got {type(folds).__name__}.")
    k = folds.values.shape[1]
    chosen = list(range(k)) if outputs is None else list(outputs)
    if not chosen or not all(0 <= i < k for i in chosen):
        raise ValueError(f"outputs must be numbers from 0 to {k - 1}, at least one; got {outputs}.")
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
