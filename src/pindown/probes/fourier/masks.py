r"""The few frequencies that a trained classifier needs, for one image or for a data set."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.guarantees.certificate.clock import Stage, own_randomness
from pindown.probes.fourier.checks import MaskCheck, check, kept_frequencies
from pindown.probes.fourier.descent import Plan, train_each, train_shared
from pindown.probes.fourier.model import read_problem
from pindown.probes.fourier.profiles import FrequencyProfile, frequency_profile

Mode = Literal["dataset", "image"]
_RANDOM = 10  # masks drawn for the control
_OPEN_COST = (
    0.2  # of a mask that keeps everything, beside a data term of 0.17 for a change of 0.4 in the loss
)


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
    kind: str = "estimate"

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
        >>> from pindown.probes.fourier.checks import MaskCheck
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
        steps: Of Adam.
        rate: Its step size.
        batch_size: Images in a step.
        budget: Seconds after which to stop.
        seed: Of the batches and of the random control.
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
    _check_settings(mode, sparsity, exponent, steps, rate, batch_size, budget)
    classifier, images, classes = read_problem(model, X, y, image_shape)
    price = _OPEN_COST / math.prod(classifier.grid) if sparsity is None else sparsity
    plan = Plan(price, exponent, one_sided, steps, rate, batch_size)
    deadline = None if budget is None else time.monotonic() + budget
    with own_randomness(seed, threads) as generator:
        if mode == "dataset":
            stage = Stage("training a mask", steps, deadline, verbose)
            trained = train_shared(classifier, images, classes, plan, stage, generator)
        else:
            total = steps * math.ceil(len(images) / batch_size)
            stage = Stage("training masks", total, deadline, verbose)
            trained = train_each(classifier, images, classes, plan, stage)
        found = check(classifier, trained.masks, images, classes, _RANDOM, seed)
    return FourierMask(
        mask=trained.masks[0] if mode == "dataset" else trained.masks, objective=trained.objective,
        check=found, mode=mode, finished=trained.finished, stopped=trained.stopped,
        axes=len(classifier.grid),
    )  # fmt: skip


def _check_settings(
    mode: str, sparsity: float | None, exponent: float, steps: int, rate: float, batch_size: int,
    budget: float | None,
) -> None:  # fmt: skip
    if mode not in ("dataset", "image"):
        raise ValueError(f"mode must be 'dataset' or 'image'; got {mode!r}.")
    if sparsity is not None and not (math.isfinite(sparsity) and sparsity >= 0):
        raise ValueError(f"sparsity must be a finite number >= 0; got {sparsity}.")
    for name, value in (("exponent", exponent), ("rate", rate)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a finite number > 0; got {value}.")
    for name, count in (("steps", steps), ("batch_size", batch_size)):
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {count}.")
    if budget is not None and not budget >= 0:
        raise ValueError(f"budget must be seconds >= 0, or None; got {budget}.")
