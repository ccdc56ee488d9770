r"""Training a generator against a discriminator, in the plain form of the source.

.. math::
    \text{discriminator, ascends: } \frac1m \sum_i \ln D(x_i) + \ln(1 - D(G(z_i))), \qquad
    \text{generator, descends: } \frac1m \sum_i \ln(1 - D(G(z_i)))

The second is nearly flat where the discriminator is sure, at the start; the non-saturating
:math:`-\ln D(G(z))` has the same fixed point and is not.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.functional import softplus

from pindown.affine import Array
from pindown.progress import watched
from pindown.validation import is_integer

_MOMENTA = (0.5, 0.999)  # of Adam; the usual 0.9 lets the two chase each other
_LAST = 0.1  # share of the steps whose mean is called the end


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
    kind: str = "estimate"

    @property
    def balance(self) -> float:
        """Mean of D over the last tenth of the steps, on data and on outcomes: 1/2 at the optimum."""
        last = max(1, int(_LAST * len(self.value)))
        return float(0.5 * (self.real[-last:].mean() + self.fake[-last:].mean()))

    def __str__(self) -> str:
        if not len(self.value):
            return f"GAN without a step ({self.stopped})"
        last = max(1, int(_LAST * len(self.value)))
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
    numbers = {"latent_features": latent_features, "inner_steps": inner_steps, "batch_size": batch_size}
    _check(
        generator, discriminator, numbers, steps, (generator_rate, discriminator_rate), generator_loss
    )
    first = next(iter(discriminator.parameters()), torch.zeros(1))
    values = torch.as_tensor(np.asarray(data) if not isinstance(data, Tensor) else data).to(first)
    if values.ndim < 1 or not len(values) or not bool(torch.isfinite(values).all()):
        raise ValueError(
            f"data must hold at least one finite example, (n, ...); got {tuple(values.shape)}."
        )
    source = torch.Generator().manual_seed(random_state)
    play = _Play(generator, discriminator, values, latent_features, batch_size, generator_loss, source)
    play.check_shapes()
    for_d = torch.optim.Adam(discriminator.parameters(), discriminator_rate, _MOMENTA)
    for_g = torch.optim.Adam(generator.parameters(), generator_rate, _MOMENTA)
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
        noise = torch.randn(self.batch_size, self.latent_features, generator=self.source)
        return self.generator(noise.to(self.data))

    def discriminator_step(self, optimiser: torch.optim.Optimizer) -> tuple[float, float, float]:
        """Ascend the value once; return it with the means of D, before the step."""
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
        scores = self.discriminator(self.made())
        loss = softplus(-scores).mean() if self.loss == "non-saturating" else -softplus(scores).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def check_shapes(self) -> None:
        """Refuse outcomes that are not like the data, and anything but one score for each."""
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
    rates: tuple[float, float],
    loss: str,
) -> None:
    for name, network in (("generator", generator), ("discriminator", discriminator)):
        if not isinstance(network, nn.Module):
            raise TypeError(f"{name} must be a torch.nn.Module; got {type(network).__name__}.")
    for name, number in numbers.items():
        if not is_integer(number):
            raise ValueError(f"{name} must be a whole number of at least 1; got {number!r}.")
    if not is_integer(steps, 0):
        raise ValueError(f"steps must be a whole number of at least 0; got {steps!r}.")
    if not all(math.isfinite(rate) and rate > 0 for rate in rates):
        raise ValueError(f"rates must be finite numbers above 0; got {rates}.")
    if loss not in ("non-saturating", "minimax"):
        raise ValueError(f"generator_loss must be 'non-saturating' or 'minimax'; got {loss!r}.")
