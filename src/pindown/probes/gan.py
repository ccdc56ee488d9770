r"""Generative adversarial networks: the game, its optimum on finitely many outcomes, and training.

A discriminator D says with which probability an outcome comes from the data; the generator wants it to
be wrong, and so to draw outcomes as the data do. With data p and generator q the value is

.. math:: V(D, q) = \sum_x p(x) \ln D(x) + \sum_x q(x) \ln (1 - D(x)), \qquad
          D^* = \frac{p}{p + q}, \qquad V(D^*, q) = 2\,\mathrm{JS}(p \| q) - 2 \ln 2,

so that the generator's best is q = p, with D = 1/2 and the value -2 ln 2.

Networks are trained one against the other in the plain form of the source,

.. math::
    \text{discriminator, ascends: } \frac1m \sum_i \ln D(x_i) + \ln(1 - D(G(z_i))), \qquad
    \text{generator, descends: } \frac1m \sum_i \ln(1 - D(G(z_i))).

The second is nearly flat where the discriminator is sure, at the start; the non-saturating
:math:`-\ln D(G(z))` has the same fixed point and is not.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr, xlog1py, xlogy

from pindown.affine import Array
from pindown.errors import ParameterError
from pindown.evidence import Kind
from pindown.probes.tuning import GAN_END_SHARE, GAN_MOMENTA
from pindown.progress import watched
from pindown.validation import choice, integer, positive

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


_TOTAL_ERROR = 1e-9  # probabilities given as floats sum to one up to rounding


def optimal_discriminator(p: ArrayLike, q: ArrayLike) -> Array:
    r"""Return the best discriminator of two distributions, :math:`D^* = p / (p + q)`.

    Where neither has mass nothing is ever decided; it is 1/2 there.

    Args:
        p: Probabilities of the data, (k,).
        q: Probabilities of the generator, (k,).

    Raises:
        ValueError: If they are no distributions on the same outcomes.

    Example:
        >>> optimal_discriminator([0.75, 0.25, 0.0], [0.25, 0.25, 0.5]).tolist()
        [0.75, 0.5, 0.0]

    Lecture course, section on generative adversarial networks; Goodfellow et al. 2014, Proposition 1.
    """
    data, made = _pair(p, q)
    total = data + made
    return np.divide(data, total, out=np.full_like(total, 0.5), where=total > 0)


def gan_value(p: ArrayLike, q: ArrayLike, discriminator: ArrayLike) -> float:
    r"""Return :math:`\sum p \ln D + \sum q \ln (1 - D)`; minus infinity where D is certain and wrong.

    Args:
        p: Probabilities of the data, (k,).
        q: Probabilities of the generator, (k,).
        discriminator: D, probabilities (k,), or one for all.

    Example:
        >>> round(gan_value([0.5, 0.5], [0.5, 0.5], 0.5), 4)  # -2 ln 2
        -1.3863

    Lecture course, section on generative adversarial networks.
    """
    data, made = _pair(p, q)
    D = np.broadcast_to(np.asarray(discriminator, dtype=np.float64), data.shape)
    if not ((D >= 0) & (D <= 1)).all():
        raise ValueError("discriminator must hold probabilities from 0 to 1; some are outside, or NaN.")
    return float(np.sum(xlogy(data, D)) + np.sum(xlog1py(made, -D)))


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> float:
    r"""Return the Jensen-Shannon divergence in nats, between 0 and ln 2.

    .. math:: \mathrm{JS} = \tfrac12 \sum p \ln \frac{2 p}{p + q} + \tfrac12 \sum q \ln \frac{2 q}{p + q}

    Example:
        >>> round(jensen_shannon([1.0, 0.0], [0.0, 1.0]), 6), jensen_shannon([0.3, 0.7], [0.3, 0.7])
        (0.693147, 0.0)

    Lecture course, section on generative adversarial networks, where the second logarithm is missing.
    """
    data, made = _pair(p, q)
    middle = 0.5 * (data + made)
    return float(0.5 * np.sum(rel_entr(data, middle)) + 0.5 * np.sum(rel_entr(made, middle)))


def cross_entropy(labels: ArrayLike, scores: ArrayLike) -> Array:
    r"""Return the loss of a discriminator that gives scores z, :math:`D = 1 / (1 + e^{-z})`.

    .. math:: -y \ln D - (1 - y) \ln (1 - D) = y \ln(1 + e^{-z}) + (1 - y) \ln(1 + e^{z})

    The right side loses no digits where D is near 0 or 1.

    Args:
        labels: y, 1 for data and 0 for the generator's, or shares between.
        scores: z.

    Example:
        >>> cross_entropy([1, 1, 0], [0.0, 800.0, 800.0]).round(6).tolist()
        [0.693147, 0.0, 800.0]

    Lecture course, section on generative adversarial networks, where the label is lost.
    """
    y, z = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if not ((y >= 0) & (y <= 1)).all():
        raise ValueError("labels must lie between 0 and 1; some are outside, or NaN.")
    if np.isnan(z).any():
        raise ValueError("scores must be numbers; some are NaN.")
    return np.asarray(y * np.logaddexp(0.0, -z) + (1.0 - y) * np.logaddexp(0.0, z))


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    found = []
    for name, values in (("p", p), ("q", q)):
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or not len(array):
            raise ValueError(f"{name} must hold one probability per outcome, (k,); got {array.shape}.")
        if not (array >= 0).all() or not abs(float(array.sum()) - 1.0) <= _TOTAL_ERROR:
            raise ValueError(f"{name} must be at least 0 and sum to 1; its sum is {array.sum():g}.")
        found.append(array)
    if found[0].shape != found[1].shape:
        raise ValueError(f"p and q need the same outcomes; got {len(found[0])} and {len(found[1])}.")
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class GanHistory:
    """What happened in training, one number per step.

    Attributes:
        value: The game's value on the batch, before the generator's step; -2 ln 2 where D is 1/2.
        real: Mean of D on data.
        fake: Mean of D on the generator's outcomes.
        stopped: ``"steps"``, ``"interrupted"`` or ``"diverged"``.
        kind: ``"estimate"``: means over batches.
    """

    value: Array = field(repr=False)
    real: Array = field(repr=False)
    fake: Array = field(repr=False)
    stopped: str = "steps"
    kind: Kind = "estimate"

    @property
    def balance(self) -> float:
        """Mean of D over the last tenth of the steps, on data and on outcomes: 1/2 at the optimum."""
        last = max(1, int(GAN_END_SHARE * len(self.value)))
        return float(0.5 * (self.real[-last:].mean() + self.fake[-last:].mean()))

    def __str__(self) -> str:
        if not len(self.value):
            return f"GAN without a step ({self.stopped})"
        last = max(1, int(GAN_END_SHARE * len(self.value)))
        return (
            f"GAN after {len(self.value):,} steps ({self.stopped}): value "
            f"{self.value[-last:].mean():.3f} (optimum {-2 * math.log(2):.3f}), D on data "
            f"{self.real[-last:].mean():.2f}, on made ones {self.fake[-last:].mean():.2f} (estimate)"
        )


def train_gan(
    generator: nn.Module,
    discriminator: nn.Module,
    data: ArrayLike | Tensor,
    *,
    latent_features: int,
    steps: int = 2000,
    inner_steps: int = 1,
    batch_size: int = 128,
    generator_rate: float = 1e-3,
    discriminator_rate: float = 1e-3,
    generator_loss: Literal["non-saturating", "minimax"] = "non-saturating",
    random_state: int = 0,
    verbose: int = 1,
) -> GanHistory:
    r"""Train both networks in place, one against the other.

    Args:
        generator: G, from standard normal latents (m, latent_features) to outcomes.
        discriminator: Gives one *score* per outcome, (m,) or (m, 1): D is its logistic function.
        data: The data, (n, ...).
        latent_features: Latent dimensions.
        steps: Steps of the generator.
        inner_steps: Steps of the discriminator before each of them.
        batch_size: m.
        generator_rate: Step size of Adam for G, with momentum 0.5.
        discriminator_rate: The same for D.
        generator_loss: ``"non-saturating"``, or ``"minimax"`` as above.
        random_state: Seeds batches and latents.
        verbose: 0 for no progress bar; it shows on terminals only.

    Returns:
        The history. Ctrl-C returns what there is by then, and keeps the networks.

    Raises:
        ValueError: If a number, the data or the shapes that the networks give do not fit.
        TypeError: If a network is no torch module.

    Lecture course, section on generative adversarial networks; Goodfellow et al. 2014, Algorithm 1.
    """
    from pindown.extras import torch

    numbers = {"latent_features": latent_features, "inner_steps": inner_steps, "batch_size": batch_size}
    rates = {"generator_rate": generator_rate, "discriminator_rate": discriminator_rate}
    _check(generator, discriminator, numbers, steps, rates, generator_loss)
    first = next(iter(discriminator.parameters()), torch.zeros(1))
    values = torch.as_tensor(data if isinstance(data, torch.Tensor) else np.asarray(data)).to(first)
    if values.ndim < 1 or not len(values) or not bool(torch.isfinite(values).all()):
        raise ValueError(
            f"data must hold at least one finite example, (n, ...); got {tuple(values.shape)}."
        )
    source = torch.Generator().manual_seed(random_state)
    play = _Play(generator, discriminator, values, latent_features, batch_size, generator_loss, source)
    play.check_shapes()
    for_d = torch.optim.Adam(discriminator.parameters(), discriminator_rate, GAN_MOMENTA)
    for_g = torch.optim.Adam(generator.parameters(), generator_rate, GAN_MOMENTA)
    rows: list[tuple[float, float, float]] = []
    stopped = "steps"
    try:
        for _ in watched(range(steps), "training both networks", verbose=verbose):
            seen = [play.discriminator_step(for_d) for _ in range(inner_steps)][-1]
            if not all(map(math.isfinite, seen)):
                stopped = "diverged"
                break
            play.generator_step(for_g)
            rows.append(seen)
    except KeyboardInterrupt:
        warnings.warn("interrupted: the networks stay as they are now", stacklevel=2)
        stopped = "interrupted"
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return GanHistory(table[:, 0], table[:, 1], table[:, 2], stopped)


@dataclass
class _Play:
    generator: nn.Module
    discriminator: nn.Module
    data: Tensor
    latent_features: int
    batch_size: int
    loss: str
    source: torch.Generator

    def made(self) -> Tensor:
        from pindown.extras import torch

        noise = torch.randn(self.batch_size, self.latent_features, generator=self.source)
        return self.generator(noise.to(self.data))

    def discriminator_step(self, optimiser: torch.optim.Optimizer) -> tuple[float, float, float]:
        """Ascend the value once; return it with the means of D, before the step."""
        from torch.nn.functional import softplus

        from pindown.extras import torch

        chosen = torch.randint(len(self.data), (self.batch_size,), generator=self.source)
        with torch.no_grad():
            made = self.made()
        real, fake = self.discriminator(self.data[chosen]), self.discriminator(made)
        loss = softplus(-real).mean() + softplus(fake).mean()  # minus the value
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            return float(-loss), float(real.sigmoid().mean()), float(fake.sigmoid().mean())

    def generator_step(self, optimiser: torch.optim.Optimizer) -> None:
        from torch.nn.functional import softplus

        scores = self.discriminator(self.made())
        loss = softplus(-scores).mean() if self.loss == "non-saturating" else -softplus(scores).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def check_shapes(self) -> None:
        """Refuse outcomes that are not like the data, and anything but one score for each."""
        from pindown.extras import torch

        with torch.no_grad():
            made = self.made()
            if made.shape[1:] != self.data.shape[1:]:
                raise ValueError(
                    f"the generator must give outcomes like the data, {tuple(self.data.shape[1:])}; "
                    f"it gave {tuple(made.shape[1:])}."
                )
            scores = self.discriminator(made)
        if scores.shape not in ((self.batch_size,), (self.batch_size, 1)):
            raise ValueError(
                f"the discriminator must give one score per outcome; it gave {tuple(scores.shape)} for "
                f"{self.batch_size} of them."
            )


def _check(
    generator: Any,
    discriminator: Any,
    numbers: dict[str, int],
    steps: int,
    rates: dict[str, float],
    loss: str,
) -> None:
    from torch import nn

    for name, network in (("generator", generator), ("discriminator", discriminator)):
        if not isinstance(network, nn.Module):
            raise ParameterError(f"{name} must be a torch.nn.Module; got {type(network).__name__}.")
    for name, value in numbers.items():
        integer(name, value)
    integer("steps", steps, least=0)
    for name, rate in rates.items():
        positive(name, rate)
    choice("generator_loss", loss, ("non-saturating", "minimax"))
