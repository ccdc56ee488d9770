"""The printed algorithm, turn by turn, with nothing added.

One epoch each of: the generator of c, c, the generator of h, h. The generators raise the losses that the
networks lower. Real and generated points are in batches of their own, so each has its own batch
statistics.

Wolf et al. 2019, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from pindown.learn.one_class import losses
from pindown.learn.one_class.networks import build, initialise
from pindown.learn.one_class.presets import Plan
from pindown.learn.torch_isolation import PROCESSOR

_BETAS = (0.5, 0.999)  # of Adam, as usual for these networks; the source does not say
_PULL = 1.0  # lambda of the source

Turn = tuple[str, nn.Module, Callable[[Tensor], Tensor]]  # whose turn, and the loss it lowers


@dataclass
class PrintedMember:
    """The four networks of the source.

    Attributes:
        plan: What is trained.
        random: Where all randomness comes from.
        history: Losses of each epoch.
        device: Where the networks are.
    """

    plan: Plan
    random: torch.Generator
    history: list[dict[str, float]] = field(default_factory=list)
    device: torch.device = PROCESSOR

    def __post_init__(self) -> None:
        self.beginning = self.random.initial_seed()  # of the weights, c drawn first
        descriptions = (self.plan.membership, self.plan.comparator, *2 * (self.plan.generator,))
        self.c, self.h, self.g_c, self.g_h = (
            initialise(build(d), self.random).to(self.device) for d in descriptions
        )
        self.learners = {
            name: torch.optim.Adam(net.parameters(), lr=self.plan.learning_rate, betas=_BETAS)
            for name, net, _ in self._every_turn()
        }

    def adopt(self, plan: Plan) -> None:
        """Train by this plan from now on."""
        self.plan = plan
        for learner in self.learners.values():
            learner.param_groups[0]["lr"] = plan.learning_rate

    @property
    def means(self) -> list[nn.Module]:
        """Both networks as they are: the source averages nothing."""
        return [self.c, self.h]

    def at_c(self, x: Tensor) -> Tensor | None:
        """Return log-odds of c, or None if the ablation has no c."""
        return None if self.plan.ablation == "h" else self.c(x)[:, 0]

    def at_h(self, first: Tensor, second: Tensor) -> Tensor | None:
        """Return log-odds of h, or None if the ablation has no h."""
        return None if self.plan.ablation == "c" else self.h(torch.cat([first, second], 1))[:, 0]

    def loss_c(self, x: Tensor) -> Tensor:
        """Return L_C on a batch."""
        fake = (self.g_h if self.plan.ablation == "only_g_h" else self.g_c)(x)
        return losses.membership_loss(self.c(x)[:, 0], self.c(fake)[:, 0], self.at_h(fake, x))

    def loss_h(self, x: Tensor) -> Tensor:
        """Return L_H on a batch."""
        fake = (self.g_c if self.plan.ablation == "only_g_c" else self.g_h)(x)
        same, apart = (self.h(torch.cat([first, x], 1))[:, 0] for first in (x, fake))
        back = self.at_h(x, fake) if self.plan.symmetric else None
        return losses.comparator_loss(same, apart, self.at_c(fake), back)

    def loss_g_c(self, x: Tensor) -> Tensor:
        """Return what the generator of c minimises."""
        fake = self.g_c(x)
        return losses.membership_generator_loss(self.c(fake)[:, 0], self.at_h(fake, x))

    def loss_g_h(self, x: Tensor) -> Tensor:
        """Return what the generator of h minimises."""
        fake = self.g_h(x)
        at = self.h(torch.cat([fake, x], 1))[:, 0]
        back = self.at_h(x, fake) if self.plan.symmetric else None
        return losses.comparator_generator_loss(x, fake, at, self.at_c(fake), back, _PULL)

    def _every_turn(self) -> list[Turn]:
        return [
            ("membership_generator", self.g_c, self.loss_g_c),
            ("membership", self.c, self.loss_c),
            ("comparator_generator", self.g_h, self.loss_g_h),
            ("comparator", self.h, self.loss_h),
        ]

    def turns(self) -> list[Turn]:
        """Return whose turn it is, in order, with the loss each lowers."""
        left_out = {
            "c": {2, 3},  # c alone with its generator
            "h": {0, 1},
            "only_g_c": {2},
            "only_g_h": {0},
        }.get(self.plan.ablation or "", set())
        return [turn for number, turn in enumerate(self._every_turn()) if number not in left_out]

    def epoch(self, inputs: Tensor) -> dict[str, float]:
        """Make one epoch of each turn and record the mean losses."""
        record = {}
        for name, net, loss_of in self.turns():
            learner = self.learners[name]
            parameters = list(net.parameters())
            total, count = 0.0, 0
            order = torch.randperm(len(inputs), generator=self.random)
            for batch in torch.split(order, self.plan.batch_size):
                if len(batch) == 1 and len(inputs) > 1:
                    continue  # batch statistics of one row do not exist
                loss = loss_of(inputs[batch].to(self.device))
                for parameter, gradient in zip(
                    parameters, torch.autograd.grad(loss, parameters), strict=True
                ):
                    parameter.grad = gradient
                learner.step()
                total, count = total + float(loss.detach()), count + 1
            record[name] = total / max(count, 1)
        return record

    def train(self, inputs: Tensor, held_out: Tensor, tick: Callable[[], Any]) -> None:
        """Train for the planned epochs."""
        for net in (self.c, self.h, self.g_c, self.g_h):
            net.train()
        for number in range(1, self.plan.epochs + 1):
            tick()
            self.history.append({"epoch": float(number), **self.epoch(inputs)})
