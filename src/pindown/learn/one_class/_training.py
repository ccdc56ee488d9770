r"""Training one member: c and h side by side, each against its generator and a floor of fixed negatives.

The membership network learns :math:`c(x) = 1` on members and 0 on generic negatives and on
:math:`G_c(x)`; the comparator has the form

.. math:: \mathrm{logit}\, h(x_1, x_2) = q(x_1) + q(x_1) - q(x_2)

with one potential q, so that its sign cannot flip between points, and learns :math:`h(x, x) = 1` and
that a damaged copy is worse than its original. The generators make the losses of the networks large
without saturating: they *lower* the price of being accepted instead of raising the price of being
rejected, whose gradient dies when the network rejects surely.

After Wolf et al. 2019, Algorithm 1; what was changed is said in ``docs/local-maxima.md``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pindown.learn.one_class._negatives import generic_negatives, graded_pair
from pindown.learn.one_class._networks import PROCESSOR, build, initialise
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class._printed_algorithm import accepted, displacement, rejected
from pindown.learn.one_class.tuning import (
    GENERATOR_WEIGHT,
    LOOK_PATIENCE,
    MIN_PROGRESS,
    PULL,
    STEPS_BETWEEN_LOOKS,
    STEPS_PER_GENERATOR_STEP,
    WEIGHT_MEMORY,
)


def membership_log_odds(outputs: Tensor) -> Tensor:
    r"""Return the log-odds of the first of the classes, :math:`z_0 - \log\sum_{k>0} e^{z_k}`.

    With one output this is the output itself.

    Example:
        >>> membership_log_odds(torch.tensor([[2.0, 0.0], [1.5, -9.0]])).tolist()
        [2.0, 10.5]
    """
    if outputs.shape[1] == 1:
        return outputs[:, 0]
    return outputs[:, 0] - torch.logsumexp(outputs[:, 1:], 1)


def pair_log_odds(potential: Callable[[Tensor], Tensor], first: Tensor, second: Tensor) -> Tensor:
    """Return the log-odds of h at pairs: 2 q(first) - q(second)."""
    return 2 * potential(first)[:, 0] - potential(second)[:, 0]


@dataclass
class Member:
    """Two networks, their generators, and the running means that are kept in the end.

    Attributes:
        plan: What is trained.
        c: Membership network.
        q: Potential of the comparator.
        g_c: Generator of c.
        g_h: Generator of h.
        random: Where all randomness comes from.
        spacing: Typical distance of neighbours: changes smaller than it are no negatives.
        history: Losses of each epoch.
        device: Where the networks are; rows and all that is drawn at random stay on the processor.
    """

    plan: Plan
    random: torch.Generator
    spacing: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    device: torch.device = PROCESSOR

    def __post_init__(self) -> None:
        self.beginning = self.random.initial_seed()  # of the weights, c drawn first
        descriptions = (self.plan.membership, self.plan.comparator, *2 * (self.plan.generator,))
        self.c, self.q, self.g_c, self.g_h = (
            initialise(build(d), self.random).to(self.device) for d in descriptions
        )
        nets = (self.c, self.q, self.g_c, self.g_h)
        self.weights = [list(net.parameters()) for net in nets]
        rate = self.plan.learning_rate
        self.learners = [torch.optim.Adam(own, lr=rate, fused=True) for own in self.weights]
        self.means = [copy.deepcopy(net).requires_grad_(False) for net in nets[:2]]
        self.mean_weights = [list(net.parameters()) for net in self.means]
        self.steps = 0

    def adopt(self, plan: Plan) -> None:
        """Train by this plan from now on."""
        self.plan = plan
        for learner in self.learners:
            learner.param_groups[0]["lr"] = plan.learning_rate

    # ------------------------------------------------------------------ losses

    def _fakes(self, x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Return what c and what h learn to reject: by which generator is the ablations' choice."""
        if not self.plan.has("generators"):
            return None, None
        only = self.plan.ablation
        for_c = self.g_h if only == "only_g_h" else self.g_c
        for_h = self.g_c if only == "only_g_c" else self.g_h
        x = x.to(self.device)
        with torch.no_grad():
            return for_c(x), for_h(x)

    def _novelty(self, x: Tensor, fake: Tensor) -> Tensor:
        """Return how far a fake is from its original, in typical distances, at most 1."""
        distance = torch.linalg.vector_norm((fake - x).flatten(1), dim=1)
        return (distance / max(self.spacing, 1e-6)).clamp(max=1.0)

    def membership_loss(self, x: Tensor, fake: Tensor | None) -> Tensor:
        """Return the loss of c on a batch."""
        parts, kinds = [x], None
        if self.plan.has("negatives"):
            negatives, kinds = generic_negatives(x, self.random, self.spacing)
            parts.append(negatives)
        outputs = list(torch.split(self.c(self._together(parts, fake)), len(x)))
        loss = accepted(membership_log_odds(outputs.pop(0))).mean()
        if kinds is not None:
            of_negatives = outputs.pop(0)
            loss = loss + rejected(membership_log_odds(of_negatives)).mean()
            if of_negatives.shape[1] > 1:
                loss = loss + cross_entropy(of_negatives[:, 1:-1], kinds.to(self.device))
        if fake is not None:
            share = 1.0 if kinds is None else GENERATOR_WEIGHT
            price = self._weight(x.to(self.device), fake) * rejected(membership_log_odds(outputs.pop(0)))
            loss = loss + share * price.mean()
        return loss

    def _together(self, drawn: list[Tensor], fake: Tensor | None) -> Tensor:
        """Return what was drawn on the processor and what a generator made as one batch of a network."""
        return torch.cat([part.to(self.device) for part in drawn] + ([] if fake is None else [fake]))

    def _weight(self, x: Tensor, fake: Tensor) -> Tensor:
        """Return the weight of learned negatives of c: more where h takes them for better than x."""
        weight = self._novelty(x, fake)
        if not self.plan.has("comparator") or self.plan.ablation == "c":
            return weight
        with torch.no_grad():
            doubt = rejected(pair_log_odds(self.q, fake, x)).clamp(max=1.0)
        return weight * (0.5 + 0.5 * doubt)

    def comparator_loss(self, x: Tensor, fake: Tensor | None) -> Tensor:
        """Return the loss of h on a batch."""
        parts = [x, *(graded_pair(x, self.random) if self.plan.has("negatives") else ())]
        at_x, *others = torch.split(self.q(self._together(parts, fake))[:, 0], len(x))
        better, worse = [at_x] * len(others), others
        if self.plan.has("negatives"):
            better, worse = [*better, others[0]], [*others, others[1]]  # less damage against more
        weights = torch.ones(len(worse), len(x), device=self.device)
        if fake is not None:
            share = GENERATOR_WEIGHT if self.plan.has("negatives") else 1.0
            weights[len(others) - 1] = share * self._novelty(x.to(self.device), fake)
        loss = accepted(at_x).mean()
        if not worse:
            return loss
        high, low = torch.stack(better), torch.stack(worse)
        price = rejected(2 * low - high)
        if self.plan.symmetric:
            price = price + accepted(2 * high - low)
        return loss + (weights * price).mean(1).sum()

    def generator_loss(self, x: Tensor, of_h: bool) -> Tensor:
        """Return the loss of a generator: be accepted, and stay near."""
        x = x.to(self.device)
        fake = (self.g_h if of_h else self.g_c)(x)
        pull = PULL * displacement(x, fake) / max(self.spacing, 1e-6)
        if of_h:
            return accepted(pair_log_odds(self.q, fake, x)).mean() + pull
        short = (1.0 - self._novelty(x, fake)).mean()  # a copy of x itself would teach nothing
        return accepted(membership_log_odds(self.c(fake))).mean() + short + 0.1 * pull

    # ------------------------------------------------------------------ steps

    def step(self, x: Tensor) -> list[float]:
        """Make one step of every network; return the four losses."""
        plan = self.plan
        learns_c, learns_h = plan.ablation != "h", plan.has("comparator") and plan.ablation != "c"
        losses = [0.0] * 4
        if plan.has("generators") and self.steps % STEPS_PER_GENERATOR_STEP == 0:
            if learns_c and plan.ablation != "only_g_h":
                losses[2] = self._descend(2, self.generator_loss(x, of_h=False))
            if learns_h and plan.ablation != "only_g_c":
                losses[3] = self._descend(3, self.generator_loss(x, of_h=True))
        for_c, for_h = self._fakes(x)
        if learns_c:
            losses[0] = self._descend(0, self.membership_loss(x, for_c))
        if learns_h:
            losses[1] = self._descend(1, self.comparator_loss(x, for_h))
        self.steps += 1
        self._average()
        return losses

    def _descend(self, which: int, loss: Tensor) -> float:
        gradients = torch.autograd.grad(loss, self.weights[which])
        for weight, gradient in zip(self.weights[which], gradients, strict=True):
            weight.grad = gradient
        self.learners[which].step()
        return float(loss.detach())

    def _average(self) -> None:
        decay = min(WEIGHT_MEMORY, self.steps / (self.steps + 10)) if self.plan.has("averaging") else 0.0
        with torch.no_grad():
            for means, weights in zip(self.mean_weights, self.weights[:2], strict=True):
                torch._foreach_lerp_(means, weights, 1 - decay)

    def epoch(self, inputs: Tensor) -> dict[str, float]:
        """Go through the rows once, in random order, and record the mean losses."""
        order = torch.randperm(len(inputs), generator=self.random)
        batches = torch.split(order, self.plan.batch_size)
        sums = torch.tensor([self.step(inputs[batch]) for batch in batches]).mean(0).tolist()
        names = ("membership", "comparator", "membership_generator", "comparator_generator")
        return dict(zip(names, sums, strict=True))

    def held_out_loss(self, inputs: Tensor, seed: int) -> float:
        """Return the averaged networks' loss on unseen rows, always with the same negatives."""
        aside = copy.copy(self)
        aside.c, aside.q = self.means
        aside.random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            total = aside.membership_loss(inputs, None) + aside.comparator_loss(inputs, None)
        return float(total)

    def train(self, inputs: Tensor, held_out: Tensor, tick: Callable[[], Any]) -> None:
        """Train for the planned epochs, or until held-out rows show no more progress."""
        steps = -(-len(inputs) // self.plan.batch_size)  # of an epoch
        every = max(1, STEPS_BETWEEN_LOOKS // steps)  # epochs between two looks at held-out rows
        best, since = float("inf"), 0
        for number in range(1, self.plan.epochs + 1):
            tick()
            record = self.epoch(inputs)
            if len(held_out) and self.plan.has("negatives") and number % every == 0:
                record["held_out"] = self.held_out_loss(held_out, seed=0)
                since = 0 if record["held_out"] < best - MIN_PROGRESS else since + 1
                best = min(best, record["held_out"])
            self.history.append({"epoch": float(number), **record})
            if since >= LOOK_PATIENCE:
                break
