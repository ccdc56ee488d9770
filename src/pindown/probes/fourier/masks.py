r"""The few frequencies that a trained classifier needs, for one image or for a data set.

And the control: what is left of its decisions behind a mask, behind its complement, behind random ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pindown.affine import Array
from pindown.deadline import Deadline, checked_budget
from pindown.evidence import Kind
from pindown.probes.fourier._model import Classifier, read_problem
from pindown.probes.fourier.filters import (
    FrequencyProfile,
    checked_mask,
    frequency_profile,
    kept_frequencies,
    mirrored,
    random_masks,
)
from pindown.probes.fourier.training import Plan, behind, train_each, train_shared
from pindown.probes.tuning import OPEN_MASK_PRICE, RANDOM_MASKS
from pindown.torch_modules import own_randomness
from pindown.validation import choice, integer, number, optional, positive

Mode = Literal["dataset", "image"]
_SAME_WEIGHT = 1e-12  # opposite frequencies may differ by a rounding


@dataclass(frozen=True, eq=False)
class FourierMask:
    """Weights of frequencies behind which a classifier decides as before.

    Attributes:
        mask: Weights from 0 to 1, (H, W) for a data set, (n, H, W) with one mask for each image.
        objective: The objective after each step, mean over masks.
        check: Decisions behind the mask, its complement and random masks, on the images that
            trained it.
        mode: ``"dataset"`` or ``"image"``.
        finished: For ``"image"``, how many masks were trained to the end; the others are open.
        stopped: ``"steps"``, ``"budget"`` or ``"interrupted"``.
        kind: ``"estimate"``: a minimum that was searched for, on the images given.
    """

    mask: Array = field(repr=False)
    objective: Array = field(repr=False)
    check: MaskCheck
    mode: Mode
    finished: int
    stopped: str
    axes: int = field(default=2, repr=False)
    kind: Kind = "estimate"

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which frequencies have more than half of the largest weight."""
        return kept_frequencies(self.mask, self.axes)

    @property
    def closed(self) -> bool:
        """Whether a mask lets nothing pass: its price was too high, or no frequency matters."""
        return not bool(self.kept.any(axis=tuple(range(-self.axes, 0))).all())

    @property
    def complement(self) -> NDArray[np.bool_]:
        """The other frequencies."""
        return ~self.kept

    def frequencies(self) -> list[tuple[int, ...]]:
        """Return the kept frequencies as signed whole cycles per image, ascending; of one mask only.

        >>> import numpy as np
        >>> from pindown.probes.fourier.masks import MaskCheck
        >>> check = MaskCheck(1, 1, 1, 0, 0, 0, 1, 2, 4)
        >>> mask = np.array([0.0, 1.0, 0.0, 1.0])
        >>> FourierMask(mask, np.zeros(1), check, "dataset", 1, "steps", 1).frequencies()
        [(-1,), (1,)]
        """
        if self.mode != "dataset":
            raise ValueError("there is one mask for each image; take np.argwhere(masks.kept[i]).")
        grid = [np.fft.fftfreq(size, 1.0 / size).astype(int) for size in self.mask.shape]
        places = np.argwhere(self.kept)
        return sorted(tuple(int(f[i]) for f, i in zip(grid, place, strict=True)) for place in places)

    def profile(self, X: ArrayLike | None = None) -> FrequencyProfile:
        """Return the mask by radius and direction; see :func:`frequency_profile`."""
        return frequency_profile(self.mask, X, axes=self.axes)

    def __str__(self) -> str:
        ended = "" if self.stopped == "steps" else f" (stopped: {self.stopped})"
        ended += " (closed: lower sparsity)" if self.closed else ""
        whose = "each image" if self.mode == "image" else "a data set"
        return f"Fourier mask of {whose}{ended}: {self.check}"


def fourier_mask(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    mode: Mode = "dataset",
    image_shape: tuple[int, ...] | None = None,
    sparsity: float | None = None,
    exponent: float = 1.0,
    one_sided: bool = False,
    steps: int = 300,
    rate: float = 0.05,
    batch_size: int = 256,
    budget: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    verbose: int = 1,
) -> FourierMask:
    r"""Learn a sparse mask over frequencies behind which a frozen classifier keeps its losses.

    .. math:: \min_M \frac1n\sum_x\Bigl(e^{[L(\Phi(\bar x), y) - L(\Phi(x), y)]^2} - 1\Bigr)
              + \lambda\lVert M\rVert_p, \qquad \bar x = F^{-1}(M\odot Fx),

    with L the cross entropy. A frequency is kept if its weight exceeds half of the largest.

    Args:
        model: A ``torch.nn.Module`` that gives scores (n, classes), or one output whose sign decides; or
            a :class:`~pindown.network.ReluNetwork`. A copy is used, in evaluation mode.
        X: Images (n, H, W) or (n, C, H, W), as the model takes them; rows (n, d) with ``image_shape``.
            Colour channels share a mask.
        y: Classes 0 to k - 1 (-1 and 1 for two); the model's own decisions if None.
        mode: ``"dataset"``: one mask. ``"image"``: one for each image.
        image_shape: ``(H, W)`` or ``(C, H, W)``; ``(d,)`` for signals.
        sparsity: :math:`\lambda`: what keeping a frequency costs; if None, 0.2 over their number. Where
            the mask closes altogether it was too much.
        exponent: p.
        one_sided: Charge only losses that grow; the printed square also charges those that fall.
        steps: Steps of Adam.
        rate: Its step size.
        batch_size: Images in a step.
        budget: Seconds after which to stop.
        seed: Seed of the batches and of the random control.
        threads: For torch; as they are if None.
        verbose: 0 for no progress bar.

    Returns:
        A :class:`FourierMask`. Ctrl-C returns the mask as it is by then.

    Raises:
        ValueError: If shapes, labels, numbers or settings do not fit.
        TypeError: If the model is neither of the two.

    Example:
        A classifier that looks at one frequency only:

        >>> from pindown import ReluNetwork
        >>> rng = np.random.default_rng(0)
        >>> wave = np.cos(2 * np.pi * 2 * np.arange(8) / 8)
        >>> X = rng.standard_normal((200, 8))
        >>> net = ReluNetwork.from_layers([(wave[None], [0.0])])
        >>> found = fourier_mask(net, X, image_shape=(8,), steps=150)
        >>> found.frequencies()
        [(-2,), (2,)]

    Lecture course, section on essential frequencies; Karantzas et al. 2022.
    """
    choice("mode", mode, ("dataset", "image"))
    sparsity = optional(positive, "sparsity", sparsity, zero=True)
    exponent, rate = positive("exponent", exponent), positive("rate", rate)
    steps, batch_size = integer("steps", steps), integer("batch_size", batch_size)
    deadline = Deadline.after(None if budget is None else checked_budget(budget, zero=True))
    classifier, images, classes = read_problem(model, X, y, image_shape)
    price = OPEN_MASK_PRICE / math.prod(classifier.grid) if sparsity is None else sparsity
    plan = Plan(price, exponent, one_sided, steps, rate, batch_size)
    train = train_shared if mode == "dataset" else train_each
    with own_randomness(seed, threads):
        trained = train(classifier, images, classes, plan, deadline, verbose=verbose)
        found = _checked(classifier, trained.masks, images, classes, RANDOM_MASKS, seed)
    return FourierMask(
        mask=trained.masks[0] if mode == "dataset" else trained.masks, objective=trained.objective,
        check=found, mode=mode, finished=trained.finished, stopped=trained.stopped,
        axes=len(classifier.grid),
    )  # fmt: skip


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
    kind: Kind = "estimate"

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
        seed: Seed of these.

    Returns:
        A :class:`MaskCheck`.

    Lecture course, section on essential frequencies (complementary masks).
    """
    n_random = integer("n_random", n_random)
    classifier, images, classes = read_problem(model, X, y, image_shape)
    weights = checked_mask(mask, len(classifier.grid))
    if weights.shape not in (classifier.grid, (len(images), *classifier.grid)):
        raise ValueError(
            f"mask must have shape {classifier.grid}, or one for each of {len(images)} images; "
            f"got {weights.shape}."
        )
    return _checked(classifier, weights.reshape(-1, *classifier.grid), images, classes, n_random, seed)


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
        share: Share of the right answers without a mask.
        image_shape: Shape of one image if X has rows.

    Returns:
        Which frequencies are kept, in the shape of the mask.
    """
    share = number("share", share, 0.0, 1.0, above=True)
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


def _checked(
    model: Classifier, masks: Array, images: Tensor, classes: Tensor, n_random: int, seed: int
) -> MaskCheck:
    """Compare decisions behind masks (1 or n, *grid), their complements and random masks."""
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
