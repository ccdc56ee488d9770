"""What is left of a classifier's decisions behind a mask, behind its complement, behind random ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pindown.affine import Array
from pindown.probes.fourier.filters import checked_mask, mirrored, random_masks
from pindown.probes.fourier.model import Classifier, read_problem
from pindown.probes.fourier.objective import behind

_HALF = 0.5  # of the largest weight: frequencies above are kept
_SAME_WEIGHT = 1e-12  # opposite frequencies may differ by a rounding
CLOSED = 0.05  # a mask whose largest weight is below has closed: its price was too high


def kept_frequencies(mask: ArrayLike, axes: int = 2) -> NDArray[np.bool_]:
    r"""Return which frequencies a mask keeps: those above half of its largest weight.

    The penalty draws all weights below 1, so :math:`1 - M` would let the kept ones pass as well. A mask
    without any weight of 0.05 has closed and keeps none.

    >>> kept_frequencies([0.6, 0.2, 0.1, 0.2], axes=1).tolist()
    [True, False, False, False]
    """
    weights = np.asarray(mask, dtype=np.float64)
    largest = weights.max(axis=tuple(range(-axes, 0)), keepdims=True)
    return np.asarray((weights > _HALF * largest) & (largest >= CLOSED))


@dataclass(frozen=True)
class MaskCheck:
    """Shares of images with the right class; without labels, with the class they had.

    Attributes:
        clean: Without a mask.
        masked: Behind the mask as trained.
        kept: Behind the kept frequencies, each let through fully.
        complement: Behind all others.
        random: Behind random masks of as many frequencies, the mean.
        random_error: Its standard error, over images.
        n: Number of images.
        frequencies: Kept frequencies, the mean over masks.
        n_frequencies: How many there are.
    """

    clean: float
    masked: float
    kept: float
    complement: float
    random: float
    random_error: float
    n: int
    frequencies: float
    n_frequencies: int
    kind: str = "estimate"

    @property
    def holds(self) -> bool:
        """Whether the kept frequencies do better than their complement and than random ones."""
        return self.kept > max(self.complement, self.random)

    def __str__(self) -> str:
        return (
            f"{self.frequencies:.4g} of {self.n_frequencies} frequencies: right on {self.clean:.1%} of "
            f"{self.n} images without mask, {self.masked:.1%} behind it, {self.kept:.1%} behind what it "
            f"keeps, {self.complement:.1%} behind the rest, {self.random:.1%} behind as many random ones"
        )


def mask_check(
    model: Any,
    mask: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    n_random: int = 10,
    seed: int = 0,
) -> MaskCheck:
    """Compare a classifier behind a mask, behind the complement, and behind random masks of equal size.

    Args:
        model: A module or :class:`~pindown.network.ReluNetwork`.
        mask: One mask, or one for each image.
        X: Images, as for :func:`~pindown.probes.fourier.fourier_mask`; best ones it was not
            trained on.
        y: Classes; the model's own decisions if None.
        image_shape: Shape of one image if X has rows.
        n_random: Random masks for each mask.
        seed: Of these.

    Returns:
        A :class:`MaskCheck`.

    Lecture course, section on essential frequencies (complementary masks).
    """
    classifier, images, classes = read_problem(model, X, y, image_shape)
    weights = checked_mask(mask, len(classifier.grid))
    if weights.shape not in (classifier.grid, (len(images), *classifier.grid)):
        raise ValueError(
            f"mask must have shape {classifier.grid}, or one for each of {len(images)} images; "
            f"got {weights.shape}."
        )
    if n_random < 1:
        raise ValueError(f"n_random must be at least 1, got {n_random}.")
    return check(classifier, weights.reshape(-1, *classifier.grid), images, classes, n_random, seed)


def sufficient_frequencies(
    model: Any,
    mask: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    share: float = 0.95,
    image_shape: tuple[int, ...] | None = None,
) -> NDArray[np.bool_]:
    """Return the first frequencies, by falling weight, that keep a share of the right answers.

    Half of the largest weight is a cut that knows nothing of decisions; this one comes from bisection on
    how many frequencies are kept, with opposite ones together.

    Args:
        model: A module or :class:`~pindown.network.ReluNetwork`.
        mask: One mask.
        X: Images.
        y: Classes; the model's own decisions if None.
        share: Of the right answers without a mask.
        image_shape: Shape of one image if X has rows.

    Returns:
        Which frequencies are kept, in the shape of the mask.
    """
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share must be above 0 and at most 1; got {share}.")
    classifier, images, classes = read_problem(model, X, y, image_shape)
    weights = checked_mask(mask, len(classifier.grid))
    if weights.shape != classifier.grid:
        raise ValueError(f"mask must have shape {classifier.grid}; got {weights.shape}.")
    levels = np.unique(np.maximum(weights, mirrored(weights, weights.ndim)))[::-1]
    spectra = torch.fft.fftn(images, dim=classifier.axes)
    needed = share * float((classifier.classes(images) == classes).double().mean())

    def enough(level: float) -> bool:
        kept = torch.tensor(weights >= level - _SAME_WEIGHT, dtype=images.dtype, device=images.device)
        seen = behind(spectra, kept[None], classifier.axes)
        return float((classifier.classes(seen) == classes).double().mean()) >= needed

    low, high = 0, len(levels) - 1  # with every frequency it is enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(float(levels[middle])) else (middle + 1, high)
    return np.asarray(weights >= float(levels[low]) - _SAME_WEIGHT)


def check(
    model: Classifier, masks: Array, images: Tensor, classes: Tensor, n_random: int, seed: int
) -> MaskCheck:
    """Do it for masks (1 or n, *grid)."""
    axes = len(model.grid)
    kept = kept_frequencies(masks, axes)
    spectra = torch.fft.fftn(images, dim=model.axes)

    def right(weights: NDArray[Any]) -> Array:
        seen = behind(
            spectra, torch.tensor(weights, dtype=images.dtype, device=images.device), model.axes
        )
        return (model.classes(seen) == classes).cpu().numpy().astype(np.float64)

    rng = np.random.default_rng(seed)
    drawn = np.stack([random_masks(one, n_random, axes=axes, random_state=rng) for one in kept], axis=1)
    chance = np.mean([right(some) for some in drawn], axis=0)
    n = len(images)
    return MaskCheck(
        clean=float((model.classes(images) == classes).double().mean()),
        masked=float(right(masks).mean()), kept=float(right(kept).mean()),
        complement=float(right(~kept).mean()), random=float(chance.mean()),
        random_error=float(chance.std() / np.sqrt(n)), n=n,
        frequencies=float(kept.reshape(len(kept), -1).sum(axis=1).mean()),
        n_frequencies=int(np.prod(model.grid)),
    )  # fmt: skip
