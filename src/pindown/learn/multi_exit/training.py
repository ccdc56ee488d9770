"""Training a network with exits: labelled batches, and batches of everything for distillation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pindown.affine import Array
from pindown.learn.multi_exit.model import MultiExitModel
from pindown.learn.multi_exit.self_distillation import MultiExitDistiller
from pindown.learn.multi_exit.tuning import (
    IMAGE_RATES,
    IMAGE_STEPS,
    MAX_IMAGE_EPOCHS,
    MAX_TABLE_EPOCHS,
    MIN_EPOCHS,
    MIN_HELD_OUT,
    RATE_DROPS,
    TABLE_RATES,
    TABLE_STEPS,
)

OPTIMISERS = ("adam", "sgd")
# Batch normalisation has no variance of one sample.
_MIN_BATCH = 2


@dataclass
class History:
    """What happened in training, epoch by epoch.

    Attributes:
        loss: Mean loss. Its distillation part grows with the squared temperature.
        classification: Mean exit-wise loss of the labelled rows alone.
        temperature: At the end of the epoch.
        confidence: Tempered confidence of the teachers in the last batch.
        interrupted: Whether it was stopped by hand.
    """

    loss: list[float] = field(default_factory=list)
    classification: list[float] = field(default_factory=list)
    temperature: list[float] = field(default_factory=list)
    confidence: list[float] = field(default_factory=list)
    interrupted: bool = False


def make_optimiser(name: str, model: MultiExitModel, rate: float, decay: float) -> torch.optim.Optimizer:
    """Return Adam, or stochastic gradient descent with Nesterov's momentum as in the source."""
    if name == "sgd":
        return torch.optim.SGD(
            model.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=decay, fused=True
        )
    return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)


def default_epochs(steps: int, image: bool) -> int:
    """Return how many epochs of so many steps suit tables or images.

    >>> default_epochs(5, False), default_epochs(1000, True)
    (30, 10)
    """
    wanted, most = (IMAGE_STEPS, MAX_IMAGE_EPOCHS) if image else (TABLE_STEPS, MAX_TABLE_EPOCHS)
    return min(max(wanted // steps, MIN_EPOCHS), most)


def default_rate(optimiser: str, image: bool) -> float:
    """Return the first step size of an optimiser."""
    return (IMAGE_RATES if image else TABLE_RATES)[optimiser]


def split_off_unlabelled(rows: Array, y: NDArray[Any], mark: Any) -> tuple[Array, NDArray[Any], Array]:
    """Return labelled rows, their labels, and the rows whose label is the mark of those without one.

    Args:
        rows: All rows, (n, d).
        y: Their labels, some of which may be the mark.
        mark: What rows without a label have in its place; None if all have one.

    Raises:
        ValueError: If labels and mark are of different kinds, or no row has a label.
    """
    if mark is None:
        return rows, y, rows[:0]
    if y.dtype.kind in "US" and not isinstance(mark, str):  # numpy calls these different, always
        raise ValueError(f"labels are text, so unlabelled_label must be; got {mark!r}.")
    if y.dtype.kind in "biuf" and isinstance(mark, str):
        raise ValueError(f"labels are numbers, so unlabelled_label must be one; got {mark!r}.")
    known = np.asarray(y != mark)
    if not known.any():
        raise ValueError(f"no row has a label: all are {mark!r}.")
    return rows[known], y[known], rows[~known]


def stratified_split(
    labels: NDArray[np.int64], fraction: float, rng: np.random.RandomState
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows to train on and rows to hold out: the same share of every class, or none if too few.

    Args:
        labels: Classes of the rows.
        fraction: The share.
        rng: Where randomness comes from.
    """
    held: list[int] = []
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        held += own[: int(fraction * len(own))].tolist()
    if len(held) < MIN_HELD_OUT:
        held = []
    return np.setdiff1d(np.arange(len(labels)), held), np.sort(np.array(held, dtype=np.int64))


def train(
    model: MultiExitModel,
    distiller: MultiExitDistiller,
    optimiser: torch.optim.Optimizer,
    X: Tensor,
    y: Tensor,
    *,
    unlabelled: Tensor | None = None,
    epochs: Iterable[int],
    n_epochs: int,
    batch_size: int,
    generator: torch.Generator,
    augment: Callable[[Tensor, torch.Generator], Tensor] | None = None,
    drops: Sequence[float] = RATE_DROPS,
) -> History:
    """Train in place; an interruption after the first epoch keeps the weights.

    Args:
        model: The network.
        distiller: Its loss.
        optimiser: Over the network's weights; its step size falls to a tenth at ``drops``.
        X: Inputs with labels.
        y: The labels, whole numbers from 0.
        unlabelled: Inputs without labels; with them, every step draws a second batch from all inputs.
        epochs: Counts the epochs (a progress bar may hide in it).
        n_epochs: How many there will be; one goes through the labelled inputs once.
        batch_size: Samples in a batch.
        generator: Source of the random order.
        augment: Changes a batch of inputs at random, such as :func:`crop_and_flip`.
        drops: Shares of the epochs after which the step size falls: half and three quarters, as for
            CIFAR in the source; a third and two thirds for ImageNet.

    Raises:
        ValueError: If the loss is no longer finite.

    Phuong 2021, Algorithm 6.1 and section 6.3.1.
    """
    history = History()
    schedule = torch.optim.lr_scheduler.MultiStepLR(
        optimiser, sorted({max(1, round(share * n_epochs)) for share in drops})
    )
    everything = None if unlabelled is None else torch.cat([X, unlabelled])
    draws = None if everything is None else _endless(len(everything), batch_size, generator)
    model.train()
    try:
        for _ in epochs:
            losses = []
            for rows in _batches(len(X), batch_size, generator):
                x = X[rows]
                extra = None if draws is None or everything is None else everything[next(draws)]
                if augment is not None:
                    x = augment(x, generator)
                    extra = None if extra is None else augment(extra, generator)
                losses.append(_step(model, distiller, optimiser, x, y[rows], extra))
            schedule.step()
            history.loss.append(sum(total for total, _ in losses) / len(losses))
            history.classification.append(sum(part for _, part in losses) / len(losses))
            history.temperature.append(distiller.temperature)
            annealer = distiller.annealer
            history.confidence.append(float("nan") if annealer is None else annealer.confidence)
            if not history.loss[-1] < float("inf"):
                raise ValueError(
                    "training diverged: the loss is not finite; use a smaller learning_rate."
                )
    except KeyboardInterrupt:
        if not history.loss:
            raise
        history.interrupted = True
        warnings.warn("interrupted: the weights so far are kept", stacklevel=3)
    finally:
        model.eval()
    return history


def _step(
    model: MultiExitModel,
    distiller: MultiExitDistiller,
    optimiser: torch.optim.Optimizer,
    x: Tensor,
    y: Tensor,
    extra: Tensor | None,
) -> tuple[float, float]:
    optimiser.zero_grad(set_to_none=True)
    if extra is None:
        labelled = seen = model(x)
    else:  # one pass for both batches, which batch normalisation then treats alike
        both = model(torch.cat([x, extra]))
        labelled, seen = [z[: len(x)] for z in both], [z[len(x) :] for z in both]
    classification = distiller.classification(labelled, y)
    loss = classification + distiller.distillation(seen)
    loss.backward()
    optimiser.step()
    distiller.update(seen)
    return float(loss.detach()), float(classification.detach())


def _batches(n: int, size: int, generator: torch.Generator) -> list[Tensor]:
    """Return the rows of an epoch's batches; a last one that is too small joins the one before."""
    parts = list(torch.split(torch.randperm(n, generator=generator), size))
    if len(parts) > 1 and len(parts[-1]) < _MIN_BATCH:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def _endless(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    while True:
        yield from _batches(n, size, generator)


def crop_and_flip(
    x: Tensor, generator: torch.Generator, border: int = 4, *, mirror: bool = True, fill: Any = 0.0
) -> Tensor:
    """Return images moved by up to ``border`` pixels each way, half of them mirrored.

    Args:
        x: Images, (n, channels, height, width).
        generator: Source of the moves.
        border: Most pixels.
        mirror: Whether to mirror; a mirrored digit is none.
        fill: What comes in at the border: a number, or a tensor (1, channels, 1, 1).

    Example:
        >>> image = torch.ones(1, 1, 2, 2)
        >>> crop_and_flip(image, torch.Generator().manual_seed(0), border=1, fill=5.0)[0, 0].tolist()
        [[1.0, 5.0], [5.0, 5.0]]
    """
    n, channels, height, width = x.shape
    padded = x.new_empty(n, channels, height + 2 * border, width + 2 * border)
    padded[:] = fill
    padded[:, :, border : border + height, border : border + width] = x
    tops, lefts = torch.randint(2 * border + 1, (2, n), generator=generator)
    rows, columns = tops[:, None] + torch.arange(height), lefts[:, None] + torch.arange(width)
    picked = padded[torch.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    moved = picked.permute(0, 3, 1, 2).contiguous()
    if not mirror:
        return moved
    mirrored = torch.rand(n, generator=generator) < 0.5
    return torch.where(mirrored[:, None, None, None], moved.flip(3), moved)
