"""The graph of a network with two inputs, as the polyhedral surface it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.plots.cells import polygons
from pindown.geometry.plots.style import (
    MANY,
    VALUES,
    chosen_output,
    line_width,
    new_axes,
    plane_complex,
)
from pindown.geometry.slices.plane_slice import PlaneSlice


def plot_surface(
    source: PolyhedralComplex | PlaneSlice,
    *,
    output: int = 0,
    view: tuple[float, float] = (32.0, -58.0),
    ax: Any = None,
) -> Any:
    """Draw one output over the plane: a flat polygon over every cell.

    Args:
        source: The cells, or a slice of a network with more inputs.
        output: Which output.
        view: Elevation and azimuth of the viewer, in degrees.
        ax: Axes with ``projection="3d"``.

    Returns:
        The axes.

    Mukherjee 2020, section 2.3: a piecewise linear function is its polyhedral pieces.
    """
    from matplotlib import colormaps
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    cx = plane_complex(source)
    k = chosen_output(cx, output)
    ax = new_axes(ax, projection="3d", size=(5.6, 4.8))
    flat = polygons(cx)
    heights = [corners @ A + c for corners, A, c in zip(flat, cx.A[:, k], cx.c[:, k], strict=True)]
    if heights:
        low, high = (float(pick([pick(v) for v in heights])) for pick in (np.min, np.max))
        means = np.array([values.mean() for values in heights])
        shares = (means - low) / (high - low) if high > low else np.full(len(means), 0.5)
        colours = colormaps[VALUES](0.15 + 0.85 * shares)
        colours[:, :3] *= _light(cx.A[:, k] * (cx.box.upper - cx.box.lower) / (high - low or 1.0))
        ax.add_collection3d(
            Poly3DCollection(
                _padded([np.column_stack(pair) for pair in zip(flat, heights, strict=True)]),
                facecolors=colours,
                edgecolors=(0.1, 0.12, 0.15, 0.45),
                linewidths=0.6 * line_width(cx.n_regions),
                rasterized=cx.n_regions > MANY,
            )
        )
        pad = 0.02 * (high - low) or 0.5
        ax.set_zlim(low - pad, high + pad)
    (left, front), (right, back) = cx.box.lower, cx.box.upper
    ax.set_xlim(left, right)
    ax.set_ylim(front, back)
    names = ("s", "t") if isinstance(source, PlaneSlice) else ("$x_1$", "$x_2$")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.set_zlabel("output" if cx.net.out_features == 1 else f"output {k}")
    ax.locator_params(nbins=5)
    ax.view_init(*view)
    return ax


def _padded(faces: list[Any]) -> Any:
    """Repeat last corners until all polygons have as many: axes would be scaled to other padding."""
    most = max(map(len, faces))
    return np.array([face[np.minimum(np.arange(most), len(face) - 1)] for face in faces])


def _light(slopes: Any) -> Any:
    """Return how bright polygons of these slopes are in soft light from above left, (n, 1)."""
    normals = np.column_stack([-slopes, np.ones(len(slopes))])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    towards = np.array([-0.5, -0.4, 0.77])
    return 0.72 + 0.28 * np.clip(normals @ towards, 0.0, 1.0)[:, None]
