r"""Changes that are small in every frequency and cost a classifier most.

Within :math:`\lVert F\delta\rVert_\infty\le\epsilon` (unitary F) a linear score with gradient g falls
by at most :math:`\epsilon\lVert Fg\rVert_1`, attained at :math:`\delta = -\epsilon F^{-1}(Fg/|Fg|)`,
which is real and has a flat spectrum: one step is FGSM with frequencies in place of pixels. For other
models the step is repeated, and moduli are cut back to :math:`\epsilon`, as in PGD.

Lecture course, section on robustness in the Fourier domain.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.probes.fourier._model import Classifier, read_problem
from pindown.probes.tuning import FOURIER_ATTACK_REACH
from pindown.validation import integer, positive


@dataclass(frozen=True, eq=False)
class FourierAttack:
    """Changed images.

    Attributes:
        X: They, in the shape of those given.
        success: Whether the class is no longer the one asked about, or is the target (n,).
        margin: The score of that class minus the best other one, or of the best other one minus the
            target's (n,).
        radius: Largest modulus of a change's spectrum that was allowed.
        kind: ``"estimate"``: a better attack may exist.
    """

    X: Array = field(repr=False)
    success: NDArray[np.bool_] = field(repr=False)
    margin: Array = field(repr=False)
    radius: float
    kind: Kind = "estimate"

    def __str__(self) -> str:
        hits = int(self.success.sum())
        n = len(self.success)
        return f"{hits} of {n} images changed class within {self.radius:.4g} in every frequency"


def fourier_attack(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    radius: float,
    target: int | None = None,
    steps: int = 10,
    image_shape: tuple[int, ...] | None = None,
) -> FourierAttack:
    r"""Change images by at most ``radius`` in every frequency so that their class loses most.

    Args:
        model: A module or :class:`~pindown.network.ReluNetwork`.
        X: Images, as for :func:`~pindown.probes.fourier.fourier_mask`; pixels are not limited. Each
            channel has a spectrum of its own.
        y: Classes to leave; the model's own decisions if None.
        target: The class to reach; any other than y if None.
        radius: :math:`\epsilon`, the largest modulus of the unitary transform.
        steps: 1 is the closed form, exact for linear models of two classes.
        image_shape: Shape of one image if X has rows.

    Returns:
        A :class:`FourierAttack` with the best change seen for each image.

    Example:
        For w = (1, 0), any w x above :math:`\sqrt2` is out of reach of changes of radius 1.

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0, 0.0]], [0.0])])
        >>> found = fourier_attack(net, [[1.4, 0.0], [1.5, 0.0]], radius=1.0, image_shape=(2,))
        >>> found.success.tolist(), round(float(found.margin[1]), 4)
        ([True, False], 0.0858)
    """
    radius, steps = positive("radius", radius, zero=True), integer("steps", steps)
    classifier, images, classes = read_problem(model, X, y, image_shape)
    sign = 1.0
    if target is not None:
        most = int(classifier.scores(images[:1]).shape[1]) - 1
        classes = torch.full_like(classes, integer("target", target, least=0, most=most))
        sign = -1.0
    length = radius if steps == 1 else FOURIER_ATTACK_REACH * radius / steps
    change = torch.zeros_like(images)
    best, least = change, sign * _margins(classifier, images, classes).detach()
    for _ in range(steps):
        change.requires_grad_()
        lowered = sign * _margins(classifier, images + change, classes)
        (slope,) = torch.autograd.grad(lowered.sum(), change)
        change = _cut(change.detach() - length * _flat(slope, classifier.axes), radius, classifier.axes)
        now = sign * _margins(classifier, images + change, classes).detach()
        better = now < least
        least = torch.where(better, now, least)
        best = torch.where(better.reshape(-1, *(1,) * (images.ndim - 1)), change, best)
    changed = (images + best).detach().cpu().numpy().astype(np.float64)
    decided = classifier.classes(images + best)
    success = decided != classes if target is None else decided == classes
    return FourierAttack(
        X=changed.reshape(np.shape(X)), success=success.cpu().numpy(),
        margin=least.cpu().numpy().astype(np.float64), radius=float(radius),
    )  # fmt: skip


def _margins(model: Classifier, images: Tensor, classes: Tensor) -> Tensor:
    scores = model.scores(images)
    own = scores.gather(1, classes[:, None])[:, 0]
    others = scores.scatter(1, classes[:, None], -torch.inf)
    return own - others.max(1).values


def _flat(slope: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the real change with all moduli 1 that rises most along the slope."""
    image = torch.fft.fftn(slope, dim=axes, norm="ortho")
    return torch.fft.ifftn(torch.sgn(image), dim=axes, norm="ortho").real


def _cut(change: Tensor, radius: float, axes: tuple[int, ...]) -> Tensor:
    """Return the nearest change whose moduli are at most the radius."""
    image = torch.fft.fftn(change, dim=axes, norm="ortho")
    smaller = torch.sgn(image) * image.abs().clamp(max=radius)
    return torch.fft.ifftn(smaller, dim=axes, norm="ortho").real
