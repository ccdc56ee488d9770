r"""Training of masks by Adam, one for all images or one for each, so that few frequencies pass.

The loss of every image is to stay what it was,

.. math:: \frac1n\sum_x\Bigl(e^{[L(\Phi(\bar x), y) - L(\Phi(x), y)]^2} - 1\Bigr)
          + \lambda\lVert M\rVert_p

The source prints the sum without the mean and the 1, which has the number of images as its floor and
leaves float32 at a change of 9.4 in the loss. Here the exponential continues as its tangent where the
square exceeds 4: minimisers lie far below, and first steps from far away do not spoil the memory of
Adam.

Lecture course, section on essential frequencies; Karantzas et al. 2022.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.probes.fourier._model import Classifier
from pindown.probes.tuning import FIRST_LOGIT, STRAIGHT_ABOVE
from pindown.progress import watched


def data_term(change: Tensor, *, one_sided: bool = False) -> Tensor:
    r"""Return :math:`e^{c^2} - 1`, continued as a tangent above :math:`c^2 = 4`.

    Args:
        change: c, the change of each loss.
        one_sided: Let improvements of the loss cost nothing.

    >>> [round(v, 4) for v in data_term(torch.tensor([0.0, 1.0, -1.0])).tolist()]
    [0.0, 1.7183, 1.7183]
    >>> bool(data_term(torch.tensor([100.0])).isfinite())
    True
    """
    worse = torch.relu(change) if one_sided else change
    square = worse * worse
    curved = torch.clamp(square, max=STRAIGHT_ABOVE)
    return torch.expm1(curved) + math.exp(STRAIGHT_ABOVE) * (square - curved)


def symmetric_mask(logits: Tensor, axes: tuple[int, ...]) -> Tensor:
    r"""Return :math:`(S(k) + S(-k)) / 2`, S the sigmoid of the logits: real images stay real."""
    weights = torch.sigmoid(logits)
    opposite = torch.roll(torch.flip(weights, axes), [1] * len(axes), axes)
    return 0.5 * (weights + opposite)


def behind(spectra: Tensor, masks: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return images from their spectra (n, [C,] ...) behind masks (n or 1, ...)."""
    if masks.ndim < spectra.ndim:
        masks = masks[:, None]  # one mask for all channels
    return torch.fft.ifftn(spectra * masks, dim=axes).real


def size_penalty(masks: Tensor, exponent: float) -> Tensor:
    r"""Return :math:`\lVert M\rVert_p` of each mask."""
    total = (masks.flatten(1) ** exponent).sum(1)
    return total if exponent == 1.0 else total ** (1.0 / exponent)


class Plan(NamedTuple):
    r"""How masks are trained.

    Attributes:
        sparsity: :math:`\lambda`, the price of a frequency.
        exponent: p of the penalty.
        one_sided: Whether improvements of the loss are free.
        steps: Steps of Adam.
        rate: Its rate.
        batch_size: Images per step of a shared mask; images whose masks are trained together.
    """

    sparsity: float
    exponent: float
    one_sided: bool
    steps: int
    rate: float
    batch_size: int


class Trained(NamedTuple):
    """Masks (m, *grid), how many are finished, the mean objective along the way and why it ended."""

    masks: Array
    finished: int
    objective: Array
    stopped: str


def train_shared(
    model: Classifier,
    images: Tensor,
    classes: Tensor,
    plan: Plan,
    deadline: Deadline,
    *,
    verbose: int,
) -> Trained:
    """Train one mask for all images; interrupted or late, it is what it was by then."""
    logits = _logits(1, model)
    optimiser = torch.optim.Adam([logits], lr=plan.rate)
    spectra, losses = _before(model, images, classes)
    n, size = len(images), min(plan.batch_size, len(images))
    seen, stopped = [], "steps"
    try:
        for _ in _steps("training a mask", plan.steps, deadline, verbose):
            rows = torch.arange(n) if size == n else torch.randperm(n)[:size]
            seen.append(
                _step(model, logits, spectra[rows], classes[rows], losses[rows], plan, optimiser)
            )
    except KeyboardInterrupt:
        stopped = "interrupted"
    if stopped == "steps" and len(seen) < plan.steps:
        stopped = "budget"
    masks = symmetric_mask(logits.detach(), model.axes).cpu().numpy().astype(np.float64)
    return Trained(masks, 1, np.array(seen), stopped)


def train_each(
    model: Classifier, images: Tensor, classes: Tensor, plan: Plan, deadline: Deadline, *, verbose: int
) -> Trained:
    """Train a mask for each image; what has not begun when time is over keeps every frequency.

    Adam moves every coordinate by itself, so images trained together do not touch each other.
    """
    masks = np.ones((len(images), *model.grid))
    curves: list[list[float]] = []
    finished, stopped = 0, "steps"
    total = plan.steps * math.ceil(len(images) / plan.batch_size)
    ticks = _steps("training masks", total, deadline, verbose)
    try:
        for rows in torch.arange(len(images)).split(plan.batch_size):
            logits = _logits(len(rows), model)
            optimiser = torch.optim.Adam([logits], lr=plan.rate)
            spectra, losses = _before(model, images[rows], classes[rows])
            curve: list[float] = []
            try:
                while len(curve) < plan.steps and next(ticks, None) is not None:
                    curve.append(_step(model, logits, spectra, classes[rows], losses, plan, optimiser))
            finally:  # interrupted, they are what they were by then
                if curve:
                    masks[rows.numpy()] = symmetric_mask(logits.detach(), model.axes).cpu().numpy()
                    curves.append(curve)
            if len(curve) < plan.steps:
                stopped = "budget"
                break
            finished += len(rows)
    except KeyboardInterrupt:
        stopped = "interrupted"
    longest = max((len(curve) for curve in curves), default=0)
    mean = [float(np.mean([c[i] for c in curves if i < len(c)])) for i in range(longest)]
    return Trained(masks, finished, np.array(mean), stopped)


def _steps(what: str, total: int, deadline: Deadline, verbose: int) -> Iterator[int]:
    """Count steps until the time is over, and show them; the first is always taken."""
    for step in watched(range(total), what, verbose=verbose):
        if step and deadline.passed:
            return
        yield step


def _logits(m: int, model: Classifier) -> Tensor:
    # In float64 whatever the model: a price of 1e-8 must not drown beside a loss of 1.
    shape = (m, *model.grid)
    logits = torch.full(shape, FIRST_LOGIT, dtype=torch.float64, device=model.device)
    return logits.requires_grad_()


def _before(model: Classifier, images: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the images' spectra and losses, which masks do not change."""
    with torch.no_grad():
        losses = cross_entropy(model.scores(images), classes, reduction="none")
    return torch.fft.fftn(images, dim=model.axes), losses


def _step(
    model: Classifier, logits: Tensor, spectra: Tensor, classes: Tensor, losses: Tensor, plan: Plan,
    optimiser: torch.optim.Optimizer,
) -> float:  # fmt: skip
    masks = symmetric_mask(logits, model.axes)
    seen = behind(spectra, masks.to(losses.dtype), model.axes)
    change = cross_entropy(model.scores(seen), classes, reduction="none") - losses
    harm = data_term(change, one_sided=plan.one_sided)
    share = len(masks) / len(harm)  # the mean for a shared mask, the sum for one each
    value = share * harm.sum() + plan.sparsity * size_penalty(masks, plan.exponent).sum()
    if not bool(torch.isfinite(value)):
        raise ValueError("the loss behind the mask is not finite; the model overflows on these images.")
    optimiser.zero_grad()
    value.backward()
    optimiser.step()
    return float(value.detach()) / len(masks)
