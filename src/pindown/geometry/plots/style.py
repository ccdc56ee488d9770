"""Colours, axes and data points: what all pictures have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.extras import require
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.slices.plane import PlaneSlice
from pindown.validation import integer

# Colours of Okabe and Ito and of Tol, told apart with any kind of colour vision as far as ten can be.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#332288",
    "#7F7F7F",
    "#999933",
    "#882255",
)
INK, FAINT = "#1d2227", "#b9bec4"
VALUES = "cividis"  # a colour map that grows in brightness and is safe for colour vision
# Dark enough for lines and text on white, and told apart with all common kinds of colour vision.
LINES = ("#2b5c9e", "#e2703a", "#1f9e89", "#8e4585", "#e0a526", "#c43c51", "#7a7f87", "#5bb0e0")
_DARK, _PALE = "#22262b", "#c9cdd2"
MANY = 20_000  # cells: from here on they are drawn as pixels also in vector files

_MARKERS = "osD^vPXh"


def settings() -> dict[str, Any]:
    """Return what all figures have in common, as matplotlib's ``rcParams`` name it.

    The gallery, the figures of experiments and pictures on axes of their own are drawn with it.
    """
    from matplotlib.rcsetup import cycler

    return {
        "figure.figsize": (6.6, 4.1),
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.h_pad": 0.1,
        "figure.constrained_layout.w_pad": 0.1,
        "figure.titlesize": 13,
        "figure.labelsize": 12,
        "figure.titleweight": "bold",
        "savefig.dpi": 150,
        "font.size": 11,
        "axes.prop_cycle": cycler(color=LINES),
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.titlepad": 9,
        "axes.labelcolor": _DARK,
        "axes.edgecolor": _DARK,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "text.color": _DARK,
        "xtick.color": _DARK,
        "ytick.color": _DARK,
        "grid.color": _PALE,
        "grid.linewidth": 0.6,
        "lines.linewidth": 2.0,
        "lines.solid_capstyle": "round",
        "legend.frameon": False,
        "image.cmap": "RdYlBu",
    }


def new_axes(ax: Any, *, size: tuple[float, float], projection: str | None = None) -> Any:
    """Return the axes given, or new ones on a figure that no window knows of."""
    if ax is not None:
        if projection == "3d" and getattr(ax, "name", "") != "3d":
            raise ValueError('a surface needs axes with projection="3d"; got flat ones.')
        return ax
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(settings()):
        figure = Figure(figsize=size, dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        return figure.add_subplot(projection=projection)


def plane_complex(source: PolyhedralComplex | PlaneSlice | Any) -> PolyhedralComplex:
    """Return the cells of a source that has them, in the plane.

    Raises:
        TypeError: If it has none.
        ValueError: If they are not in the plane.
    """
    cx = source.complex if isinstance(source, PlaneSlice) else source
    if not isinstance(cx, PolyhedralComplex):
        raise TypeError(
            f"this picture needs a PolyhedralComplex or a PlaneSlice; got {type(source).__name__}. "
            "polyhedral_complex(net, box) and on_plane(net, ...) make them."
        )
    if cx.net.in_features != 2:
        raise ValueError(
            f"this picture is flat, and the network takes {cx.net.in_features} inputs; "
            "on_plane(net, ...) or plane_through(net, a, b, c) restricts it to a plane."
        )
    return cx


def shape(cx: PolyhedralComplex) -> float:
    """Return the height of a picture of the box for width one."""
    width, height = cx.box.upper - cx.box.lower
    return float(height / width) if _on_one_scale(cx) else 0.85


def _on_one_scale(cx: PolyhedralComplex) -> bool:
    width, height = cx.box.upper - cx.box.lower
    return bool(0.25 <= height / width <= 4)


def chosen_output(cx: PolyhedralComplex, output: int) -> int:
    """Return the number of an output, checked."""
    k = cx.net.out_features
    return integer("output", output, least=-k, most=k - 1) % k


def frame(ax: Any, source: Any, cx: PolyhedralComplex) -> None:
    """Show the box, both directions on one scale, with the coordinates' names."""
    (left, low), (right, high) = cx.box.lower, cx.box.upper
    ax.set_xlim(left, right)
    ax.set_ylim(low, high)
    ax.set_aspect("equal" if _on_one_scale(cx) else "auto")
    names = ("s", "t") if isinstance(source, PlaneSlice) else ("$x_1$", "$x_2$")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    ax.locator_params(nbins=5)
    for side in ax.spines.values():
        side.set_color(FAINT)
    ax.tick_params(color=FAINT)


def overlay(ax: Any, source: Any, points: ArrayLike | None, labels: ArrayLike | None) -> None:
    """Draw data points, one colour and one shape per label; inputs are projected to a slice's plane."""
    if points is None:
        if labels is not None:
            raise ValueError("labels were given without the points they belong to.")
        return
    places, groups = _places(source, points), _groups(points, labels)
    whole = groups.dtype.kind in "biu"
    for rank, label in enumerate(np.unique(groups).tolist()):
        own = groups == label
        i = int(label) if whole else rank  # the colour of a class is the same for points and areas
        ax.plot(
            *places[own].T,
            linestyle="",
            marker=_MARKERS[i % len(_MARKERS)],
            color=COLOURS[i % len(COLOURS)],
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=None if labels is None else str(label),
            zorder=4,
        )


def legend_beside(ax: Any, handles: Any = None, title: str | None = None) -> None:
    """Put a legend to the right of the axes, where it hides nothing."""
    options = {"handles": handles} if handles is not None else {}
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        title=title,
        alignment="left",
        handlelength=1.2,
        **options,
    )


def line_width(n: int) -> float:
    """Return a width for the sides of n cells: thinner where there are many."""
    return float(np.clip(8.0 / np.sqrt(max(n, 1)), 0.08, 0.8))


def _places(source: Any, points: ArrayLike) -> Array:
    rows = np.asarray(points, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"points must have shape (n, d); got {rows.shape}.")
    if isinstance(source, PlaneSlice) and rows.shape[1] == source.net.in_features:
        return source.project(rows)
    if rows.shape[1] != 2:
        raise ValueError(f"points of a plane have shape (n, 2); got {rows.shape}.")
    return rows


def _groups(points: ArrayLike, labels: ArrayLike | None) -> NDArray[Any]:
    n = len(np.asarray(points))
    groups = np.zeros(n, dtype=np.int64) if labels is None else np.asarray(labels)
    if groups.shape != (n,):
        raise ValueError(f"labels must have one entry per point, ({n},); got {groups.shape}.")
    return groups
