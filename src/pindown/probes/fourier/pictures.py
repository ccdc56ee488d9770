"""Pictures of masks: the spectrum with the constant frequency in the middle, and images behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.probes.fourier.filters import apply_mask
from pindown.probes.fourier.masks import FourierMask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROWS = 4  # images shown at most


def draw_mask(found: FourierMask, X: ArrayLike | None = None, *, rows: int = _ROWS) -> Figure:
    """Draw a mask, its weights by radius and direction, and images without and behind it.

    Args:
        found: What :func:`~pindown.probes.fourier.fourier_mask` returned, for images.
        X: The images it was trained on, (n, H, W) or (n, C, H, W); of colours the mean is shown.
        rows: How many of them to show.

    Returns:
        A matplotlib figure: ``draw_mask(found, X).savefig("mask.png")``.

    Raises:
        ValueError: If the mask is of signals, or X is not of its shape.
    """
    from matplotlib.figure import Figure

    if found.axes != 2:
        raise ValueError("a mask of signals has no picture; plot found.mask against the frequency.")
    grid = found.mask.shape[-2:]
    images = np.zeros((0, *grid)) if X is None else _grey(X, grid)[: max(rows, 0)]
    if found.mode == "image" and X is not None and len(np.asarray(X)) != len(found.mask):
        raise ValueError(f"X must hold the {len(found.mask)} images that the masks belong to.")
    figure = Figure(figsize=(7.2, 2.4 + 1.8 * len(images)), layout="constrained")
    axes = figure.subplots(1 + len(images), 4 if len(images) else 3, squeeze=False)
    _summary(axes[0], found, X)
    for i, image in enumerate(images):
        mask = found.mask[i] if found.mode == "image" else found.mask
        kept = found.kept[i] if found.mode == "image" else found.kept
        shown = (
            (
                np.fft.fftshift(mask),
                "mask" if found.mode == "image" else "mask of the data set",
                "viridis",
            ),
            (image, "image", "gray"),
            (apply_mask(image, mask), "behind the mask", "gray"),
            (apply_mask(image, ~kept), "behind the rest", "gray"),
        )
        for ax, (values, title, colours) in zip(axes[1 + i], shown, strict=True):
            ax.imshow(values, cmap=colours, **({"vmin": 0, "vmax": 1} if colours == "viridis" else {}))
            ax.set_axis_off()
            if i == 0:
                ax.set_title(title, fontsize=8)
    return figure


def _summary(axes: Any, found: FourierMask, X: ArrayLike | None) -> None:
    mean = found.mask.reshape(-1, *found.mask.shape[-2:]).mean(axis=0)
    half = mean.shape[0] / 2, mean.shape[1] / 2
    axes[0].imshow(np.fft.fftshift(mean), vmin=0, vmax=1, extent=(-half[1], half[1], half[0], -half[0]))
    axes[0].set_title("mean weight of the masks" if found.mode == "image" else "weights", fontsize=8)
    profile = found.profile(None if X is None else np.asarray(X, dtype=np.float64))
    axes[1].plot(profile.radius, profile.mask, label="weight")
    if X is not None:
        axes[1].plot(profile.radius, profile.energy, label="energy of images")
        axes[1].plot(profile.radius, profile.passed, label="energy that passes")
        axes[1].legend(fontsize=6, frameon=False)
    axes[1].set_xlabel("cycles per image", fontsize=8)
    axes[2].bar(profile.direction, profile.angular, width=0.8 * 180 / len(profile.direction))
    axes[2].set_xlabel("direction, degrees", fontsize=8)
    for ax in axes:
        ax.tick_params(labelsize=7)
    if len(axes) > 3:
        check = found.check
        names = ("clean", "masked", "kept", "complement", "random")
        axes[3].barh(names, [getattr(check, name) for name in names])
        axes[3].invert_yaxis()
        axes[3].set_xlim(0, 1)
        axes[3].set_title("share right", fontsize=8)


def _grey(X: ArrayLike, grid: tuple[int, ...]) -> Array:
    images = np.asarray(X, dtype=np.float64)
    if images.ndim not in (3, 4) or images.shape[-2:] != grid:
        raise ValueError(
            f"X must hold images of {grid[0]} x {grid[1]}, (n, [C,] H, W); got {images.shape}."
        )
    return np.asarray(images.mean(axis=1) if images.ndim == 4 else images)
