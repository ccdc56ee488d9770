"""Pictures of attributions: maps of images, bars of other inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.probes.attribution import Attributions
from pindown.probes.tuning import SHOWN_ATTRIBUTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_attributions(found: Attributions, X: ArrayLike | None = None, *, rows: int = 3) -> Figure:
    """Draw the first few inputs: an image beside its map, red for what raises the output and blue for
    what lowers it; of other inputs the largest attributions as bars.

    Args:
        found: From :func:`~pindown.probes.attributions`.
        X: The inputs, to be drawn beside the maps.
        rows: How many inputs to draw at most.

    >>> from pindown import ReluNetwork
    >>> from pindown.probes import attributions
    >>> net = ReluNetwork.from_layers([([[1.0, -2.0]], [0.0])])
    >>> figure = draw_attributions(attributions(net, [[1.0, 1.0]]))
    >>> [round(float(bar.get_width()), 1) for bar in figure.axes[0].patches]
    [1.0, -2.0]
    """  # noqa: D205
    from matplotlib.figure import Figure

    values = found.values.reshape(len(found.gap), *found.values.shape[found.values.ndim > 1 :])
    n = min(rows, len(values))
    given = None if X is None else np.asarray(X, dtype=np.float64).reshape(values.shape)
    image = values.ndim >= 3
    columns = 2 if image and given is not None else 1
    figure = Figure(figsize=(3.2 * columns if image else 5.0, 2.9 * max(n, 1)), layout="constrained")
    axes = figure.subplots(max(n, 1), columns, squeeze=False)
    for i in range(n):
        title = f"output {int(found.output[i])}: {found.change[i]:+.3g} from the baseline"
        if not image:
            _bars(axes[i, 0], values[i].ravel(), title)
            continue
        if given is not None:
            _picture(axes[i, 0], given[i])
        _map(axes[i, -1], values[i], title)
    return figure


def _bars(ax: Axes, values: Array, title: str) -> None:
    order = np.argsort(-np.abs(values), kind="stable")[:SHOWN_ATTRIBUTIONS][::-1]
    order = order if len(values) > SHOWN_ATTRIBUTIONS else np.arange(len(values))
    colours = ["#b2182b" if v > 0 else "#2166ac" for v in values[order]]
    ax.barh(np.arange(len(order)), values[order], color=colours)
    ax.set_yticks(np.arange(len(order)), [f"x{j + 1}" for j in order])
    ax.axvline(0.0, color="0.6", lw=0.8)
    ax.set_title(title, fontsize=10)


def _picture(ax: Axes, image: Array) -> None:
    shown = np.moveaxis(image, 0, -1) if image.ndim == 3 and image.shape[0] == 3 else image
    shown = shown.mean(axis=0) if shown.ndim == 3 and shown.shape[-1] != 3 else shown
    low, high = float(shown.min()), float(shown.max())
    ax.imshow((shown - low) / (high - low or 1.0), cmap="Greys")
    ax.set(xticks=[], yticks=[])


def _map(ax: Axes, values: Array, title: str) -> None:
    summed = values.sum(axis=0) if values.ndim == 3 else values
    size = float(np.abs(summed).max()) or 1.0
    ax.imshow(summed, cmap="RdBu_r", vmin=-size, vmax=size)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=10)
