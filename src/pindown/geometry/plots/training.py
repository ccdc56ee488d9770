"""How cells change during training: small multiples and an animation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.box import Box
from pindown.extras import require
from pindown.geometry.complex.polyhedral import PolyhedralComplex, polyhedral_complex
from pindown.geometry.plots.cells import plot_cells
from pindown.geometry.plots.folds import plot_folds
from pindown.geometry.plots.style import shape
from pindown.network import ReluNetwork
from pindown.validation import positive, refuse

Picture = Literal["piece", "layer", "output", "class", "none", "folds"]


def plot_training(
    nets: Sequence[ReluNetwork],
    box: Box | tuple[ArrayLike, ArrayLike],
    *,
    kind: Picture = "class",
    titles: Sequence[str] | None = None,
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    columns: int = 4,
    budget: float | None = None,
) -> Any:
    """Draw the cells of several networks with two inputs side by side, on one box and one scale.

    Args:
        nets: The networks, for instance checkpoints of one training run.
        box: The box, the same for all.
        kind: What :func:`plot_cells` calls ``color``, or ``"folds"`` for :func:`plot_folds`.
        titles: One per network; by default its number and its number of cells.
        points: Data to draw on all of them, (n, 2).
        labels: Their classes (n,).
        columns: How many in a row.
        budget: Seconds for finding the cells of all together; drawing them is not cut short.

    Returns:
        The figure.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0.0]), ([[1.0]], [0.0])])
    >>> figure = plot_training([net, net], ([-1, -1], [1, 1]), kind="folds", titles=["before", "after"])
    >>> [ax.get_title() for ax in figure.axes]
    ['before', 'after']
    """
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cells = _complexes(nets, box, budget)
    names = _titles(cells, titles)
    columns = min(max(1, columns), len(cells))
    rows = -(-len(cells) // columns)
    figure = Figure(
        figsize=(2.5 * columns + 0.4, (2.3 * shape(cells[0]) + 0.35) * rows + 0.3),
        dpi=150,
        layout="constrained",
    )
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    paint = _painter(kind, cells, points, labels)
    for ax in grid.flat[len(cells) :]:
        ax.set_visible(False)
    for ax, cx, name in zip(grid.flat, cells, names, strict=False):
        paint(ax, cx)
        ax.set_title(name, fontsize=9)
        ax.label_outer()
    return figure


def animate_training(
    nets: Sequence[ReluNetwork],
    box: Box | tuple[ArrayLike, ArrayLike],
    path: str | PathLike[str],
    *,
    kind: Picture = "class",
    titles: Sequence[str] | None = None,
    points: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    fps: int = 4,
    budget: float | None = None,
) -> Path:
    """Write the cells of several networks, one after the other, as an animated GIF.

    Args:
        nets: The networks, one per frame.
        box: The box, the same for all.
        path: Where to write; must end in ``.gif``.
        kind: As in :func:`plot_training`, and so the next ones.
        titles: One per network.
        points: Data to draw.
        labels: Their classes.
        fps: Frames per second.
        budget: Seconds for finding the cells; drawing them is not cut short.

    Returns:
        The path.
    """
    require("matplotlib")
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    target = Path(path)
    if target.suffix.lower() != ".gif":
        refuse("path", "a file that ends in .gif", target.name)
    positive("fps", fps)
    cells = _complexes(nets, box, budget)
    names = _titles(cells, titles)
    figure = Figure(figsize=(4.6, 4.0 * shape(cells[0]) + 0.9), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    ax = figure.add_subplot()
    paint = _painter(kind, cells, points, labels)

    def frame(i: int) -> tuple[()]:
        ax.clear()
        paint(ax, cells[i])
        ax.set_title(names[i], fontsize=10, loc="left")
        return ()

    movie = FuncAnimation(figure, frame, frames=len(cells), init_func=lambda: ())
    movie.save(target, writer=PillowWriter(fps=fps))
    return target


def _complexes(
    nets: Sequence[ReluNetwork], box: Box | tuple[ArrayLike, ArrayLike], budget: float | None
) -> list[PolyhedralComplex]:
    if not len(nets):
        raise ValueError("give at least one network.")
    for i, net in enumerate(nets):
        if net.in_features != 2:
            raise ValueError(f"network {i} takes {net.in_features} inputs; pictures need two.")
    share = None if budget is None else budget / len(nets)
    return [polyhedral_complex(net, box, budget=share) for net in nets]


def _titles(cells: list[PolyhedralComplex], titles: Sequence[str] | None) -> list[str]:
    if titles is None:
        return [
            f"{i}: {cx.n_regions:,} cells{'' if cx.complete else ' so far'}"
            for i, cx in enumerate(cells)
        ]
    if len(titles) != len(cells):
        raise ValueError(f"{len(titles)} titles for {len(cells)} networks.")
    return list(titles)


def _painter(
    kind: Picture, cells: list[PolyhedralComplex], points: ArrayLike | None, labels: ArrayLike | None
) -> Callable[[Any, PolyhedralComplex], Any]:
    """Return how to draw one network, on a colour scale that is common to all."""
    if kind == "folds":
        return lambda ax, cx: plot_folds(cx, points=points, labels=labels, legend=False, ax=ax)
    ends = [_value_range(cx) for cx in cells if cx.n_regions]
    span = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
    return lambda ax, cx: plot_cells(
        cx, color=kind, value_range=span, points=points, labels=labels, legend=False, ax=ax
    )


def _value_range(cx: PolyhedralComplex) -> tuple[float, float]:
    values = cx.net(cx.vertices)[:, 0]
    return float(np.min(values)), float(np.max(values))
