r"""Training: evidence up, information to its target, the guess r kept close to the posterior.

Per step: the gradient of the evidence bound on a batch of data; the gradient of the information on a
batch drawn from the model; the size of the push from estimates on *other* draws, so that gradient and
push are independent; then some steps of r on fresh draws.

Departures from the printed loop: the push of :mod:`.control`; step sizes that fall along half a cosine;
the estimate comes from the draws of the last steps of r, before they are used; and where the information
can be computed exactly, that is done now and then in the second half, and what r fell short of it is
added to the estimate.

Phuong 2021, Algorithm 4.1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pindown.guarantees.bounds.information import standard_normal_entropy
from pindown.learn.gates.progress import watched
from pindown.learn.mutual_autoencoder.control import Control, Dial
from pindown.learn.mutual_autoencoder.gradients import information_surrogate
from pindown.learn.mutual_autoencoder.objective import evidence_bound

_LAST_RATE = 0.01  # share of the step size left at the end
_FIRST_WEIGHT = 0.05  # of the divergence when a warm start begins: it holds the codes together
_LOOK = 25  # steps between two exact looks at the information
_KEPT = 0.7  # of the shortfall of r at each look: it changes slowly, and the estimates are noisy
_LONGEST_GRADIENT = 10.0  # norm beyond which a gradient is shortened: one bad draw must not throw


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        information: M, in nats.
        penalty: C; 0 trains a plain variational autoencoder.
        control: How the push follows the error.
        width: Of ``"clip"``.
        proposals: Of the resampling encoder; None for the plain one.
        steps: Number of updates of encoder and decoder.
        batch_size: Rows, and draws from the model, per step.
        learning_rate: First step size of Adam.
        guess_steps: Updates of r per step.
        draws: Samples per code in the score-function gradient of the information.
        warm_start: Share of the steps that train an autoencoder, without a push and with hardly any
            weight on the divergence; over as many more the weight rises to 1. 0 for none.
    """

    information: float
    penalty: float = 5.0
    control: Control = "integral"
    width: float = 0.02
    proposals: int | None = None
    steps: int = 1200
    batch_size: int = 256
    learning_rate: float = 5e-3
    guess_steps: int = 1
    draws: int = 1
    warm_start: float = 0.0


@dataclass
class Trace:
    """What was seen on the way: per step the evidence bound, the estimated information and the push."""

    evidence: list[float] = field(default_factory=list)
    information: list[float] = field(default_factory=list)
    push: list[float] = field(default_factory=list)


@dataclass
class Parts:
    """The networks that are trained together."""

    encoder: Any
    decoder: Any
    guess: Any

    @property
    def latent(self) -> int:
        """Dimension of the code."""
        return int(self.encoder.latent)

    def to(self, device: torch.device) -> Parts:
        """Move all networks in place; what is drawn at random is drawn on the processor."""
        for net in (self.encoder, self.decoder, self.guess):
            net.to(device)
        return self


def train(
    parts: Parts,
    rows: Tensor,
    recipe: Recipe,
    random: torch.Generator,
    *,
    exact: Callable[[], float] | None = None,
    verbose: int = 0,
) -> Trace:
    """Train in place; Ctrl-C keeps what was reached, with a warning.

    Args:
        parts: Encoder, decoder and guess.
        rows: Data, (n, ...).
        recipe: How.
        random: All randomness.
        exact: Information of the decoder as it is, where it can be computed quickly.
        verbose: Whether a bar appears after two seconds.
    """
    trace = Trace()
    loop = _Loop(parts, rows, recipe, random, trace)
    try:
        for step in watched(recipe.steps, verbose, "mutual autoencoder"):
            loop.step(step)
            late = (
                2 * step >= recipe.steps
            )  # r alone guides the first half, towards decoders it can read
            if exact is not None and recipe.penalty and late and step % _LOOK == _LOOK - 1:
                loop.look(exact())
    except KeyboardInterrupt:
        warnings.warn(
            f"training was interrupted after {len(trace.evidence)} of {recipe.steps} steps.",
            stacklevel=2,
        )
    return trace


class _Loop:
    """One run: optimisers, dial and the last estimate."""

    def __init__(
        self, parts: Parts, rows: Tensor, recipe: Recipe, random: torch.Generator, trace: Trace
    ) -> None:
        self.parts, self.rows, self.recipe, self.random, self.trace = parts, rows, recipe, random, trace
        self.model = [*parts.encoder.parameters(), *parts.decoder.parameters()]
        self.learner = torch.optim.Adam(self.model, lr=recipe.learning_rate, fused=True)
        own = list(parts.guess.parameters())
        self.guesser = torch.optim.Adam(own, lr=recipe.learning_rate, fused=True)
        self.dial = Dial(recipe.information, recipe.penalty, recipe.control, recipe.width)
        self.entropy = standard_normal_entropy(parts.latent)
        self.estimate = self.shortfall = 0.0
        self.warm = recipe.warm_start * recipe.steps

    def step(self, t: int) -> None:
        """Update the model once and r some times."""
        self._set_rates(t)
        push = self.dial.push(self.estimate + self.shortfall) if t >= self.warm else 0.0
        chosen = torch.randint(len(self.rows), (self.recipe.batch_size,), generator=self.random)
        x, k = self.rows[chosen], self.recipe.proposals
        encoder, decoder = self.parts.encoder, self.parts.decoder
        evidence = evidence_bound(encoder, decoder, x, self.random, k, self._weight(t)).mean()
        loss = -evidence
        if push:
            draws = self.recipe.draws
            z = self._codes(max(1, self.recipe.batch_size // draws))
            surrogate = information_surrogate(decoder, self.parts.guess, z, self.random, draws=draws)
            loss = loss + push * surrogate
        gradients = torch.autograd.grad(loss, self.model, allow_unused=True)
        for parameter, gradient in zip(self.model, gradients, strict=True):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(self.model, _LONGEST_GRADIENT)
        self.learner.step()
        if self.recipe.penalty and 2 * t >= self.warm:  # r would chase a decoder that changes quickly
            self.estimate = self._guess()
        self.trace.evidence.append(float(evidence.detach()))
        self.trace.information.append(self.estimate)
        self.trace.push.append(push)

    def look(self, truth: float) -> None:
        """Compare the estimates of the last steps with the exact information."""
        seen = self.trace.information[-_LOOK:]
        missing = truth - sum(seen) / len(seen)
        self.shortfall = _KEPT * self.shortfall + (1.0 - _KEPT) * missing

    def _guess(self) -> float:
        """Improve r on fresh draws; return the information they showed before they were used."""
        seen = 0.0
        for _ in range(self.recipe.guess_steps):
            z = self._codes(self.recipe.batch_size)
            with torch.no_grad():
                x = self.parts.decoder.sample(z, self.random)
            self.guesser.zero_grad()
            mean = self.parts.guess.log_prob(z, x).mean()
            (-mean).backward()
            self.guesser.step()
            seen += float(mean.detach())
        return self.entropy + seen / self.recipe.guess_steps

    def _codes(self, n: int) -> Tensor:
        return torch.randn((n, self.parts.latent), generator=self.random).to(self.rows.device)

    def _weight(self, t: int) -> float:
        """Return the weight of the divergence from the prior."""
        if t >= 2 * self.warm:
            return 1.0
        return _FIRST_WEIGHT + (1.0 - _FIRST_WEIGHT) * max(0.0, t / self.warm - 1.0)

    def _set_rates(self, t: int) -> None:
        share = 0.5 * (1.0 + math.cos(math.pi * t / self.recipe.steps))
        rate = self.recipe.learning_rate * (_LAST_RATE + (1.0 - _LAST_RATE) * share)
        for learner in (self.learner, self.guesser):
            learner.param_groups[0]["lr"] = rate
