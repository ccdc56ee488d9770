"""Cells in the plane, coloured by what one wants to know of them, and the surface that the graph is."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts.plane_areas import class_areas
from pindown.geometry.plots.style import (
    COLOURS,
    FAINT,
    INK,
    MANY,
    VALUES,
    chosen_output,
    frame,
    legend_beside,
    line_width,
    new_axes,
    overlay,
    plane_complex,
    shape,
)
from pindown.geometry.slices.plane import PlaneSlice
from pindown.validation import choice

Colouring: TypeAlias = Literal["piece", "layer", "output", "class", "none"]
_PALE = 0.55  # share of white in areas, so that lines and points stand out


def plot_cells(
    source: PolyhedralComplex | PlaneSlice,
    *,
    color: Colouring = "piece",
    output: int = 0,
    value_range: tuple[float, float] | None = None,
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sides: bool = True,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the cells of a network in the plane.

    Args:
        source: The cells, or a slice of a network with more inputs.
        color: ``"piece"``: cells with one affine map are one area, and areas that touch differ;
            ``"layer"``: by the deepest layer with a fold on the cell's boundary; ``"output"``: by the
            value of an output, shaded linearly inside each cell, as the function is; ``"class"``: by the
            largest output, cut exactly where it changes; ``"none"``: sides only.
        output: Which output to shade by.
        value_range: Ends of the colour scale; by default the least and the largest value.
        points: Data to draw on top, (n, 2), or inputs (n, d) that are projected to the slice.
        labels: Their classes (n,).
        sides: Whether to draw the sides of the cells.
        legend: Whether to explain the colours beside the axes.
        ax: Axes to draw on.

    Returns:
        The axes.

    >>> from pindown import ReluNetwork
    >>> from pindown.geometry import polyhedral_complex
    >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0.0]), ([[1.0]], [0.0])])
    >>> ax = plot_cells(polyhedral_complex(net, ([-1, -1], [1, 1])))
    >>> [round(float(x), 6) for x in ax.get_xlim()]
    [-1.0, 1.0]

    Phuong 2021, figure 2.1, shows such cells for one hidden layer.
    """
    cx = plane_complex(source)
    painters = {"piece": _by_piece, "layer": _by_layer, "class": _by_class, "none": _plain}
    choice("color", color, (*painters, "output"))
    ax = new_axes(ax, size=(5.2, 4.4 * shape(cx) + 0.6))
    if color == "output":
        _by_output(ax, cx, chosen_output(cx, output), value_range, legend)
    else:
        painters[color](ax, cx, legend)
    if sides and cx.n_regions:
        _sides(ax, cx, FAINT if color == "none" else "white" if color == "output" else INK)
    overlay(ax, source, points, labels)
    frame(ax, source, cx)
    return ax


def polygons(cx: PolyhedralComplex) -> list[Any]:
    """Return the corners of every cell, a list of (m, 2) arrays."""
    return np.split(cx.cell_vertices, cx.offsets[1:-1]) if cx.n_regions else []


def layer_of_last_fold(cx: PolyhedralComplex) -> NDArray[np.int64]:
    """Return for each cell the deepest layer with a fold on its boundary; 0 if there is none."""
    ends = np.cumsum([0, *cx.net.hidden_widths])
    layers = np.searchsorted(ends, cx.cell_facets, side="right")
    layers[cx.cell_facets >= cx.net.size] = 0
    if not cx.n_regions:
        return np.zeros(0, dtype=np.int64)
    return np.maximum.reduceat(layers, cx.facet_offsets[:-1]).astype(np.int64)


def colour_pieces(cx: PolyhedralComplex) -> NDArray[np.int64]:
    """Return a small number for each cell: equal within a piece, different between pieces that touch."""
    touching: list[set[int]] = [set() for _ in range(cx.n_pieces)]
    for a, b in cx.pieces[cx.neighbours].tolist():
        if a != b:
            touching[a].add(b)
            touching[b].add(a)
    chosen = [-1] * cx.n_pieces
    used = [0] * len(COLOURS)
    for piece in sorted(range(cx.n_pieces), key=lambda p: -len(touching[p])):
        taken = {chosen[other] for other in touching[piece]}
        free = [c for c in range(len(COLOURS)) if c not in taken] or [piece % len(COLOURS)]
        chosen[piece] = min(free, key=lambda c: used[c])
        used[chosen[piece]] += 1
    return np.array(chosen, dtype=np.int64)[cx.pieces]


def _pale(number: int) -> Any:
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(COLOURS[number % len(COLOURS)]))
    return _PALE + (1 - _PALE) * rgb


def _fill(ax: Any, parts: list[Any], colours: Any, n: int) -> None:
    from matplotlib.collections import PolyCollection

    # A hair of the own colour around each polygon: without it the background shines through the seams.
    ax.add_collection(
        PolyCollection(
            parts, facecolors=colours, edgecolors=colours, linewidths=0.3, rasterized=n > MANY, zorder=1
        )
    )


def _by_piece(ax: Any, cx: PolyhedralComplex, legend: bool) -> None:
    table = np.array([_pale(i) for i in range(len(COLOURS))])
    _fill(ax, polygons(cx), table[colour_pieces(cx)], cx.n_regions)


def _by_layer(ax: Any, cx: PolyhedralComplex, legend: bool) -> None:
    from matplotlib.patches import Patch

    layers = layer_of_last_fold(cx)
    table = np.array([(1.0, 1.0, 1.0), *(_pale(i) for i in range(cx.net.depth - 1))])
    _fill(ax, polygons(cx), table[layers], cx.n_regions)
    if legend:
        shown = [Patch(color=table[i], label=f"layer {i}") for i in np.unique(layers) if i > 0]
        legend_beside(ax, shown, "last fold in")


def _by_class(ax: Any, cx: PolyhedralComplex, legend: bool) -> None:
    from matplotlib.patches import Patch

    areas = class_areas(cx)
    k = max(2, cx.net.out_features)
    table = np.array([_pale(i) for i in range(k)])
    _fill(ax, [areas.polygon(i) for i in range(len(areas))], table[areas.labels], len(areas))
    if legend:
        names = ("≤ 0", "> 0") if cx.net.out_features == 1 else tuple(map(str, range(k)))
        shown = [Patch(color=table[i], label=names[i]) for i in np.unique(areas.labels)]
        legend_beside(ax, shown, "output" if cx.net.out_features == 1 else "class")


def _plain(ax: Any, cx: PolyhedralComplex, legend: bool) -> None:
    """Colour nothing."""


def _by_output(
    ax: Any,
    cx: PolyhedralComplex,
    output: int,
    value_range: tuple[float, float] | None,
    legend: bool,
) -> None:
    if not cx.n_regions:
        return
    owner = np.repeat(np.arange(cx.n_regions), np.diff(cx.offsets))
    values = np.einsum("pd,pd->p", cx.A[owner, output], cx.cell_vertices) + cx.c[owner, output]
    low, high = (values.min(), values.max()) if value_range is None else value_range
    shading = ax.tripcolor(
        *cx.cell_vertices.T, fans(cx), values, shading="gouraud", cmap=VALUES, vmin=low, vmax=high
    )
    shading.set_rasterized(True)  # vector files would hold each triangle as an image of its own
    if legend:
        name = "output" if cx.net.out_features == 1 else f"output {output}"
        ax.figure.colorbar(shading, ax=ax, label=name, shrink=0.85)


def fans(cx: PolyhedralComplex) -> NDArray[np.int64]:
    """Return triangles (m, 3) that tile the cells: each cell is a fan from its first corner."""
    counts = np.diff(cx.offsets) - 2
    first = np.repeat(cx.offsets[:-1], counts)
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.stack([first, first + step + 1, first + step + 2], axis=1)


def _sides(ax: Any, cx: PolyhedralComplex, colour: str) -> None:
    from matplotlib.collections import LineCollection

    ax.add_collection(
        LineCollection(
            list(cx.vertices[cx.edges]),
            colors=colour,
            linewidths=line_width(cx.n_regions),
            rasterized=cx.n_regions > MANY,
            zorder=2,
        )
    )


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

    >>> from pindown import ReluNetwork
    >>> from pindown.geometry import polyhedral_complex
    >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0.0]), ([[1.0]], [0.0])])
    >>> plot_surface(polyhedral_complex(net, ([-1, -1], [1, 1]))).name
    '3d'

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
