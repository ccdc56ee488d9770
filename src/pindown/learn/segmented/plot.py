"""A picture of a fitted function: data, pieces, breakpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.segmented.problem import Function

# Space on both sides of what is drawn, as a fraction of its width.
_MARGIN = 0.05


def draw(function: Function, x: Array | None, y: ArrayLike | None, ax: Any) -> Any:
    """Draw a function over the data (or around its breakpoints) on the axes, or on new ones."""
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots()
    bends = len(function.slopes) > 1
    shown = function.knots if x is None else np.r_[x, function.knots] if bends else x
    low, high = float(shown.min()), float(shown.max())
    margin = _MARGIN * (high - low) if high > low else 1.0
    ends = np.array([low - margin, *(function.knots if bends else ()), high + margin])
    if x is not None and y is not None:
        ax.plot(x, np.asarray(y, dtype=float), ".", color="0.6", markersize=3, zorder=1, label="data")
    ax.plot(ends, function(ends), color="C0", zorder=2, label=f"{len(function.slopes)} pieces")
    if bends:
        ax.plot(function.knots, function.values, "o", color="C3", zorder=3, label="breakpoints")
    ax.legend()
    return ax
