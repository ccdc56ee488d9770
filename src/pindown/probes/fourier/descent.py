"""Training of masks by Adam: one for all images, or one for each, all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pindown.affine import Array
from pindown.guarantees.certificate.clock import Stage
from pindown.probes.fourier.model import Classifier
from pindown.probes.fourier.objective import behind, data_term, size_penalty, symmetric_mask

_FIRST_LOGIT = 2.0  # masks begin almost open, at 0.88, where the sigmoid still has a slope


class Plan(NamedTuple):
    r"""How masks are trained.

    Attributes:
        sparsity: :math:`\lambda`, the price of a frequency.
        exponent: p of the penalty.
        one_sided: Whether improvements of the loss are free.
        steps: Of Adam.
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
    stage: Stage,
    generator: torch.Generator,
) -> Trained:
    """Train one mask for all images; interrupted or late, it is what it was by then."""
    logits = _logits(1, model)
    optimiser = torch.optim.Adam([logits], lr=plan.rate)
    spectra, losses = _before(model, images, classes)
    n, size = len(images), min(plan.batch_size, len(images))
    seen, stopped = [], "steps"
    try:
        for _ in stage.steps():
            rows = torch.arange(n) if size == n else torch.randperm(n, generator=generator)[:size]
            seen.append(
                _step(model, logits, spectra[rows], classes[rows], losses[rows], plan, optimiser)
            )
    except KeyboardInterrupt:
        stopped = "interrupted"
    if stopped == "steps" and len(seen) < stage.total:
        stopped = "budget"
    masks = symmetric_mask(logits.detach(), model.axes).cpu().numpy().astype(np.float64)
    return Trained(masks, 1, np.array(seen), stopped)


def train_each(model: Classifier, images: Tensor, classes: Tensor, plan: Plan, stage: Stage) -> Trained:
    """Train a mask for each image; what has not begun when time is over keeps every frequency.

    Adam moves every coordinate by itself, so images trained together do not touch each other.
    """
    masks = np.ones((len(images), *model.grid))
    curves: list[list[float]] = []
    finished, stopped = 0, "steps"
    ticks = stage.steps()
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


def _logits(m: int, model: Classifier) -> Tensor:
    # In float64 whatever the model: a price of 1e-8 must not drown beside a loss of 1.
    shape = (m, *model.grid)
    logits = torch.full(shape, _FIRST_LOGIT, dtype=torch.float64, device=model.device)
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
