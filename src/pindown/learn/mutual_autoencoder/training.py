r"""Training: evidence up, information to its target, the guess r kept close to the posterior.

Per step: the gradient of the evidence bound on a batch of data; the gradient of the information on a
batch drawn from the model; the size of the push from estimates on *other* draws, so that gradient and
push are independent; then some steps of r on fresh draws.

Departures from the printed loop: the push of :class:`Dial`; step sizes that fall along half a cosine;
the estimate comes from the draws of the last steps of r, before they are used; and where the information
can be computed exactly, that is done now and then in the second half, and what r fell short of it is
added to the estimate. After training a small miss of the target is corrected, and a code that does not
pay is dropped.

Phuong 2021, (4.11) and Algorithm 4.1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from pindown.guarantees.bounds.mutual_information import standard_normal_entropy
from pindown.learn.mutual_autoencoder._networks import MIN_LOG_DEVIATION, normal_log_density
from pindown.learn.mutual_autoencoder._objective import evidence_bound, information_surrogate
from pindown.learn.mutual_autoencoder.evaluation import evidence
from pindown.learn.mutual_autoencoder.information import differentiable_information, quick_information
from pindown.learn.mutual_autoencoder.tuning import (
    CORRECTED,
    ERROR_MEMORY,
    FIRST_DIVERGENCE_WEIGHT,
    INTEGRAL_GAIN,
    LAST_RATE,
    MAX_CORRECTION,
    MAX_CORRECTIONS,
    MAX_GRADIENT_NORM,
    MAX_SUMMED_ERROR,
    PROPORTIONAL_GAIN,
    SHORTFALL_MEMORY,
    STEPS_PER_LOOK,
)
from pindown.progress import watched

Control = Literal["integral", "clip", "sign"]


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        information: M, in nats.
        penalty: C; 0 trains a plain variational autoencoder.
        control: How the push follows the error.
        width: Width of the interval of ``"clip"``.
        proposals: Number of proposals of the resampling encoder; None for the plain one.
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
class Networks:
    """The networks that are trained together.

    Attributes:
        encoder: q(z | x).
        decoder: p(x | z).
        guess: r(z | x), which measures the information.
    """

    encoder: Any
    decoder: Any
    guess: Any

    @property
    def latent(self) -> int:
        """Dimension of the code."""
        return int(self.encoder.latent)

    def to(self, device: torch.device) -> Networks:
        """Move all networks in place; what is drawn at random is drawn on the processor."""
        for net in (self.encoder, self.decoder, self.guess):
            net.to(device)
        return self


def train(
    networks: Networks,
    rows: Tensor,
    recipe: Recipe,
    random: torch.Generator,
    *,
    exact: Callable[[], float] | None = None,
    verbose: int = 0,
) -> Trace:
    """Train in place; Ctrl-C keeps what was reached, with a warning.

    Args:
        networks: Encoder, decoder and guess.
        rows: Data, (n, ...).
        recipe: How.
        random: All randomness.
        exact: Information of the decoder as it is, where it can be computed quickly.
        verbose: Whether a bar appears after two seconds.
    """
    trace = Trace()
    loop = _Loop(networks, rows, recipe, random, trace)
    try:
        for step in watched(range(recipe.steps), "mutual autoencoder", verbose=verbose):
            loop.step(step)
            # r alone guides the first half, towards decoders it can read.
            looks = 2 * step >= recipe.steps and (step + 1) % STEPS_PER_LOOK == 0
            if exact is not None and recipe.penalty and looks:
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
        self, networks: Networks, rows: Tensor, recipe: Recipe, random: torch.Generator, trace: Trace
    ) -> None:
        self.networks, self.rows, self.recipe, self.random, self.trace = (
            networks,
            rows,
            recipe,
            random,
            trace,
        )
        self.model = [*networks.encoder.parameters(), *networks.decoder.parameters()]
        self.learner = torch.optim.Adam(self.model, lr=recipe.learning_rate, fused=True)
        own = list(networks.guess.parameters())
        self.guesser = torch.optim.Adam(own, lr=recipe.learning_rate, fused=True)
        self.dial = Dial(recipe.information, recipe.penalty, recipe.control, recipe.width)
        self.entropy = standard_normal_entropy(networks.latent)
        self.estimate = self.shortfall = 0.0
        self.warm = recipe.warm_start * recipe.steps

    def step(self, t: int) -> None:
        """Update the model once and r some times."""
        self._set_rates(t)
        push = self.dial.push(self.estimate + self.shortfall) if t >= self.warm else 0.0
        chosen = torch.randint(len(self.rows), (self.recipe.batch_size,), generator=self.random)
        x, k = self.rows[chosen], self.recipe.proposals
        encoder, decoder = self.networks.encoder, self.networks.decoder
        evidence = evidence_bound(encoder, decoder, x, self.random, k, self._weight(t)).mean()
        loss = -evidence
        if push:
            draws = self.recipe.draws
            z = self._codes(max(1, self.recipe.batch_size // draws))
            surrogate = information_surrogate(decoder, self.networks.guess, z, self.random, draws=draws)
            loss = loss + push * surrogate
        gradients = torch.autograd.grad(loss, self.model, allow_unused=True)
        for parameter, gradient in zip(self.model, gradients, strict=True):
            parameter.grad = gradient
        torch.nn.utils.clip_grad_norm_(self.model, MAX_GRADIENT_NORM)
        self.learner.step()
        if self.recipe.penalty and 2 * t >= self.warm:  # r would chase a decoder that changes quickly
            self.estimate = self._guess()
        self.trace.evidence.append(float(evidence.detach()))
        self.trace.information.append(self.estimate)
        self.trace.push.append(push)

    def look(self, truth: float) -> None:
        """Compare the estimates of the last steps with the exact information."""
        seen = self.trace.information[-STEPS_PER_LOOK:]
        missing = truth - sum(seen) / len(seen)
        self.shortfall = SHORTFALL_MEMORY * self.shortfall + (1.0 - SHORTFALL_MEMORY) * missing

    def _guess(self) -> float:
        """Improve r on fresh draws; return the information they showed before they were used."""
        seen = 0.0
        for _ in range(self.recipe.guess_steps):
            z = self._codes(self.recipe.batch_size)
            with torch.no_grad():
                x = self.networks.decoder.sample(z, self.random)
            self.guesser.zero_grad()
            mean = self.networks.guess.log_prob(z, x).mean()
            (-mean).backward()
            self.guesser.step()
            seen += float(mean.detach())
        return self.entropy + seen / self.recipe.guess_steps

    def _codes(self, n: int) -> Tensor:
        return torch.randn((n, self.networks.latent), generator=self.random).to(self.rows.device)

    def _weight(self, t: int) -> float:
        """Return the weight of the divergence from the prior."""
        if t >= 2 * self.warm:
            return 1.0
        return FIRST_DIVERGENCE_WEIGHT + (1.0 - FIRST_DIVERGENCE_WEIGHT) * max(0.0, t / self.warm - 1.0)

    def _set_rates(self, t: int) -> None:
        share = 0.5 * (1.0 + math.cos(math.pi * t / self.recipe.steps))
        rate = self.recipe.learning_rate * (LAST_RATE + (1.0 - LAST_RATE) * share)
        for learner in (self.learner, self.guesser):
            learner.param_groups[0]["lr"] = rate


@dataclass
class Dial:
    r"""Turns estimates of the information into multipliers of its gradient, one per step.

    The objective is :math:`\mathrm{ELBO} - C\,|\hat I - M|`, so the information gradient enters with
    :math:`-C\,\mathrm{sign}(\hat I - M)`. A sign from a noisy estimate chatters. Two calmer forms, both
    within the same limits :math:`\pm C`:

    * ``"clip"``: :math:`C\,\mathrm{clip}((\hat I - M) / w, -1, 1)`, which leaves an offset of w times
      the share of C that the constraint needs;
    * ``"integral"``: a proportional part plus the sum of past errors, which leaves none: the sum
      converges to the Lagrange multiplier of the constraint :math:`\hat I = M`.

    Attributes:
        target: M, in nats.
        penalty: C; 0 never pushes.
        control: One of ``"integral"``, ``"clip"``, ``"sign"``.
        width: w of ``"clip"``.

    Example:
        >>> dial = Dial(target=1.0, penalty=10.0, control="sign")
        >>> dial.push(0.4), dial.push(1.7)
        (-10.0, 10.0)
        >>> round(Dial(1.0, 10.0, "clip", width=0.5).push(1.1), 6)
        2.0
    """

    target: float
    penalty: float
    control: Control = "integral"
    width: float = 0.02
    total: float = 0.0
    mean: float | None = None

    def push(self, estimate: float) -> float:
        """Return the multiplier of the information gradient, to be subtracted: positive pushes down."""
        if self.penalty == 0.0:
            return 0.0
        # Information is never negative: below zero an estimate shows its own error only.
        error = max(estimate, 0.0) - self.target
        if self.control == "sign":
            return math.copysign(self.penalty, error) if error else 0.0
        if self.control == "clip":
            return self.penalty * min(max(error / self.width, -1.0), 1.0)
        self.mean = (
            error if self.mean is None else ERROR_MEMORY * self.mean + (1.0 - ERROR_MEMORY) * error
        )
        seen = min(max(self.mean, -MAX_SUMMED_ERROR), MAX_SUMMED_ERROR)
        self.total = self._within(self.total + INTEGRAL_GAIN * seen)
        return self._within(self.total + PROPORTIONAL_GAIN * self.mean)

    def _within(self, value: float) -> float:
        return min(max(value, -self.penalty), self.penalty)


def project_onto_target(decoder: Any, target: float) -> None:
    r"""Move a decoder with a one-dimensional code and one column onto its target, if it is close.

    Training ends with noise: step sizes have fallen before the dial saw everything. Where the
    information is computed by quadrature, the decoder is projected along its gradient onto the
    constraint,

    .. math:: \theta \leftarrow \theta - \frac{I(\theta) - M}{\|\nabla I\|^2} \nabla I ,

    the shortest way to first order. At a constrained optimum the gradients of evidence and information
    are parallel, so that a small correction costs the multiplier times its size and no more. A large
    miss is left as it is: it says that training failed.

    Args:
        decoder: p(x | z), changed in place; as it was if that brings it no closer.
        target: M, in nats.
    """
    parameters = list(decoder.parameters())
    first = last = None
    for _ in range(MAX_CORRECTIONS):
        value = differentiable_information(decoder)
        miss = float(value.detach()) - target
        if first is None:
            first, last = miss, [p.detach().clone() for p in parameters]
            if abs(miss) > MAX_CORRECTION:
                return
        if abs(miss) < CORRECTED:
            return
        gradient = torch.autograd.grad(value, parameters, allow_unused=True)
        size = sum(float((g * g).sum()) for g in gradient if g is not None)
        if not size > 0.0:
            break
        with torch.no_grad():
            for parameter, g in zip(parameters, gradient, strict=True):
                if g is not None:
                    parameter.sub_(miss / size * g)
    end = abs(quick_information(decoder) - target)
    if last is not None and first is not None and not end < abs(first):
        with torch.no_grad():
            for parameter, before in zip(parameters, last, strict=True):
                parameter.copy_(before)


def drop_idle_code(networks: Any, rows: Tensor, proposals: int | None) -> tuple[float, bool]:
    r"""Make a model with one column ignore its code, if the code does not pay.

    On normal data the evidence is the same at every information (:func:`linear_gaussian_optimum`), so
    that training wanders along a valley and stops anywhere in it; on a finite sample the valley tilts
    towards whatever skewness the sample has by accident. Of models that the rows cannot tell apart, the
    one with the least information is taken. The best model without a code is known: a normal, or the
    frequencies of the symbols. With n rows, the code is dropped if all rows together gain at most

    .. math:: \sum_i \mathrm{ELBO}(x_i) - \log p_0(x_i) \le \log n ,

    the price of two further numbers, one in the mean and one in the deviation, by Schwarz's criterion.
    So dropping costs at most :math:`\log n / n` nats of evidence per row. If the sum is below
    :math:`-\log n`, nothing is done: it says that training has not come far enough.

    Args:
        networks: Encoder, decoder and guess in float64, changed in place.
        rows: The training rows.
        proposals: Number of proposals of the resampling encoder; None for the plain one.

    Returns:
        The nats of evidence that the code gains over all rows, and whether it was dropped.

    Schwarz 1978; Phuong 2021, section 4.6.
    """
    outputs, without = _best_without(networks.decoder, rows)
    gain = float(evidence(networks.encoder, networks.decoder, rows, proposals).sum()) - without
    dropped = abs(gain) <= math.log(len(rows))
    if dropped:
        _make_constant(networks.decoder, outputs)
        for net in (networks.encoder, networks.guess):  # mean 0 and log deviation 0: the prior
            _make_constant(net, torch.zeros(()))
    return gain, dropped


def _best_without(decoder: Any, rows: Tensor) -> tuple[Tensor, float]:
    """Return the constant outputs of the best decoder without a code, and its evidence on all rows."""
    if hasattr(decoder, "sizes"):
        counts = torch.bincount(rows[:, 0], minlength=decoder.sizes[0]).double()
        outputs = (counts / counts.sum()).log()
        return outputs, float(counts @ outputs)
    mean = rows.mean(0)
    log_std = (rows - mean).square().mean(0).log().mul(0.5).clamp(min=MIN_LOG_DEVIATION)
    return torch.cat([mean, log_std]), float(normal_log_density(rows, mean, log_std).sum())


def _make_constant(net: Any, outputs: Tensor) -> None:
    with torch.no_grad():
        net.body[-1].weight.zero_()
        net.body[-1].bias.copy_(outputs.expand_as(net.body[-1].bias))
