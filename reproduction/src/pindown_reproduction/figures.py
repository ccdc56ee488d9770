"""How the figures of experiments look: one style, legends beside the panels, ticks that can be read.

An experiment draws its data, names its axes and labels what it draws; sizes, legends and ticks are set
here.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pindown_reproduction.experiment import Experiment, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Inches of a panel, across and up: the only one of its figure, one of several, one of many images.
ALONE, PANEL, IMAGE = (5.4, 3.7), (3.4, 3.1), (1.7, 1.9)
_MANY_COLUMNS = 5
_FEW_DECADES, _PART_OF_ONE = 2.5, 0.75  # below which powers of ten alone are too few ticks


def figure_of(experiment: Experiment, results: Results) -> Figure:
    """Return an experiment's figure, its ticks, legends and sizes set."""
    if experiment.draw is None:
        raise ValueError(f"{experiment.id} has no figure.")
    with style():
        figure = experiment.draw(results)
        tidy(figure)
    return figure


def svg_of(figure: Figure, salt: str) -> bytes:
    """Return a figure as an SVG that is the same, byte by byte, whenever it is drawn."""
    target = io.BytesIO()
    with style({"svg.hashsalt": salt}):
        figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None})
    return target.getvalue()


def png_of(figure: Figure, dots_per_inch: int) -> bytes:
    """Return a figure as a PNG that is the same, byte by byte, whenever it is drawn."""
    target, metadata = io.BytesIO(), {"Software": None}
    with style():
        figure.savefig(target, format="png", dpi=dots_per_inch, bbox_inches="tight", metadata=metadata)
    return target.getvalue()


@contextmanager
def style(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Draw in the style of the gallery, whatever a user's settings are."""
    import matplotlib as mpl

    from pindown.geometry.plots.style import settings

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**settings(), **(more or {})})
        yield


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure of so many panels, in rows of three."""
    from matplotlib.figure import Figure

    figure, columns = Figure(), min(count, 3)
    rows = -(-count // columns)
    return figure, [figure.add_subplot(rows, columns, i) for i in range(1, count + 1)]


def tidy(figure: Figure) -> None:
    """Set the ticks of all panels, put legends beside them, and make room for both."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)  # measures letters
    for ax in figure.axes:
        if ax.name == "3d":
            ax.locator_params(nbins=3)
        else:
            for axis in (ax.xaxis, ax.yaxis):
                _set_ticks(ax, axis)
    _set_size(figure, _place_legends(figure))


def _set_ticks(ax: Axes, axis: Axis) -> None:
    """Keep chosen ticks, count in whole numbers what comes in them, and read short log scales out."""
    from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter, NullLocator

    if isinstance(axis.get_major_locator(), FixedLocator):
        axis.set_minor_locator(NullLocator())
    elif axis.get_scale() == "linear" and _counts(ax, axis):
        axis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    elif axis.get_scale() == "log":
        low, high = sorted(np.log10(axis.get_view_interval()))
        axis.set_minor_formatter(NullFormatter())
        if high - low < _PART_OF_ONE:
            axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
        elif high - low < _FEW_DECADES:
            subs = (1.0, 2.0, 5.0) if high - low < _FEW_DECADES / 2 else (1.0, 3.0)
            axis.set_major_locator(LogLocator(subs=subs))
        if high - low < _FEW_DECADES:
            axis.set_major_formatter("{x:g}")


def _counts(ax: Axes, axis: Axis) -> bool:
    """Tell whether all values along an axis are whole and some were given as such."""
    along = list(_values(ax, axis))
    whole = all(np.all(values == np.round(values)) for values in along if values.dtype.kind == "f")
    return whole and any(values.dtype.kind in "iu" for values in along)


def _values(ax: Axes, axis: Axis) -> Iterator[Any]:
    for line in ax.lines:
        if line.get_transform().contains_branch_seperately(ax.transData)[axis is ax.yaxis]:
            values = np.asarray(line.get_data(orig=True)[axis is ax.yaxis])
            if values.dtype.kind in "iuf":
                yield values[np.isfinite(values)]


def _place_legends(figure: Figure) -> dict[int, float]:
    """Put each set of labels to the right of one panel of those it explains; return inches by column."""
    chosen: dict[tuple[str, ...], Any] = {}
    for ax in sorted(figure.axes, key=lambda ax: (_place(ax)[0], -_place(ax)[1])):
        labels = tuple(dict.fromkeys(ax.get_legend_handles_labels()[1]))
        if labels:
            chosen.setdefault(labels, ax)
    widths: dict[int, float] = {}
    for ax in chosen.values():
        # Labels that several artists of a panel share stand once.
        entries = {name: handle for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        legend = ax.legend(
            list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(1.02, 1.0),
            borderaxespad=0.0, fontsize=9, handlelength=1.5,
        )  # fmt: skip
        inches = legend.get_window_extent().width / figure.dpi + 0.1
        column = _place(ax)[1]
        widths[column] = max(widths.get(column, 0.0), inches)
    return widths


def _set_size(figure: Figure, legends: dict[int, float]) -> None:
    """Give every column and row what its widest and highest panel needs, and legends their own room."""
    sizes = {_place(ax): _inches(figure, ax) for ax in figure.axes if ax.get_subplotspec() is not None}
    across = {column: max(w for (_, c), (w, _) in sizes.items() if c == column) for _, column in sizes}
    up = {row: max(h for (r, _), (_, h) in sizes.items() if r == row) for row, _ in sizes}
    figure.set_size_inches(sum(across.values()) + sum(legends.values()), sum(up.values()))


def _inches(figure: Figure, ax: Axes) -> tuple[float, float]:
    columns = 1 if (spec := ax.get_subplotspec()) is None else spec.get_gridspec().ncols
    image = bool(ax.images) and columns > _MANY_COLUMNS
    return IMAGE if image else ALONE if len(figure.axes) == 1 else PANEL


def _place(ax: Axes) -> tuple[int, int]:
    """Return row and column of a panel."""
    spec = ax.get_subplotspec()
    return (0, 0) if spec is None else (spec.rowspan.start, spec.colspan.start)
