r"""The printed algorithm, loss by loss and turn by turn, with nothing added.

With :math:`p = \sigma(z)` the two halves of the binary cross entropy are
:math:`-\log p = \mathrm{softplus}(-z)` and :math:`-\log(1 - p) = \mathrm{softplus}(z)`: nothing is
rounded to zero or one on the way. All losses take the log-odds of whole batches.

One epoch each of: the generator of c, c, the generator of h, h. The generators raise the losses that the
networks lower. Real and generated points are in batches of their own, so each has its own batch
statistics; those that the networks are evaluated with are taken from real points alone, after training.

Wolf et al. 2019, section 2 and Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from pindown.learn.one_class._networks import PROCESSOR, Description, build, initialise
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class.tuning import MAX_LOG_ODDS, PRINTED_BETAS, PRINTED_DEVIATION, PULL

Turn = tuple[str, nn.Module, Callable[[Tensor], Tensor]]  # whose turn, and the loss it lowers


def accepted(logit: Tensor) -> Tensor:
    r"""Return :math:`-\log\sigma(z)`, the price of a point that should be accepted.

    Example:
        >>> round(accepted(torch.tensor(0.0)).item(), 4)  # log 2
        0.6931
    """
    return softplus(-logit)


def rejected(logit: Tensor) -> Tensor:
    r"""Return :math:`-\log(1 - \sigma(z))`, the price of a point that should be rejected.

    Example:
        >>> bool(torch.isclose(rejected(torch.tensor(100.0)), torch.tensor(100.0)))
        True
    """
    return softplus(logit)


def weighted_rejection(logit: Tensor, weight_logit: Tensor | None) -> Tensor:
    r"""Return the mean over the batch of :math:`(-\log(1-\sigma(z))) \, (-\log(1-\sigma(w)))`.

    Args:
        logit: z, of the function that learns.
        weight_logit: w, of the other function, a constant weight for this step; None for weight one
            (the ablations with one function only).
    """
    price = rejected(logit)
    if weight_logit is None:
        return price.mean()
    return (price * rejected(weight_logit.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS))).mean()


def membership_loss(c_real: Tensor, c_fake: Tensor, h_fake: Tensor | None) -> Tensor:
    r"""Return :math:`L_C = E_x[-\log c(x)] + E_x[\log(1 - c(G_c(x))) \log(1 - h(G_c(x), x))]`.

    Args:
        c_real: Log-odds of c at x.
        c_fake: Log-odds of c at :math:`G_c(x)`.
        h_fake: Log-odds of h at :math:`(G_c(x), x)`; None where there is no h.

    Example:
        At log-odds zero every log is log 2, so the loss is log 2 + (log 2)^2:

        >>> zero = torch.zeros(4)
        >>> round(membership_loss(zero, zero, zero).item(), 4)
        1.1736

    Wolf et al. 2019, equation for L_C.
    """
    return accepted(c_real).mean() + weighted_rejection(c_fake, h_fake)


def comparator_loss(
    h_same: Tensor, h_fake: Tensor, c_fake: Tensor | None, h_reverse: Tensor | None = None
) -> Tensor:
    r"""Return :math:`L_H = E_x[-\log h(x, x)] + E_x[\log(1 - c(G_h(x))) \log(1 - h(G_h(x), x))]`.

    Args:
        h_same: Log-odds of h at (x, x).
        h_fake: Log-odds of h at :math:`(G_h(x), x)`.
        c_fake: Log-odds of c at :math:`G_h(x)`; None where there is no c.
        h_reverse: Log-odds of h at :math:`(x, G_h(x))`: adds the symmetric term, that x is at least as
            good as :math:`G_h(x)`, with the same weight.

    Example:
        >>> zero = torch.zeros(4)
        >>> round(comparator_loss(zero, zero, None).item(), 4)  # 2 log 2
        1.3863

    Wolf et al. 2019, equation for L_H, and its symmetric variant.
    """
    loss = accepted(h_same).mean() + weighted_rejection(h_fake, c_fake)
    if h_reverse is not None:
        weight = 1.0 if c_fake is None else rejected(c_fake.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS))
        loss = loss + (weight * accepted(h_reverse)).mean()
    return loss


def displacement(real: Tensor, fake: Tensor) -> Tensor:
    r"""Return :math:`E_x \lVert x - G_h(x) \rVert`, the plain Euclidean norm of each sample.

    Example:
        >>> displacement(torch.zeros(2, 2), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).item()
        3.0
    """
    return torch.linalg.vector_norm((real - fake).flatten(1), dim=1).mean()


def membership_generator_loss(c_fake: Tensor, h_fake: Tensor | None) -> Tensor:
    """Return what the generator of c minimises: minus the part of L_C that it can change."""
    return -weighted_rejection(c_fake, h_fake)


def comparator_generator_loss(
    real: Tensor,
    fake: Tensor,
    h_fake: Tensor,
    c_fake: Tensor | None,
    h_reverse: Tensor | None = None,
    pull: float = 1.0,
) -> Tensor:
    r"""Return what the generator of h minimises, :math:`\lambda E_x\lVert x - G_h(x)\rVert - L_H`.

    Args:
        real: x.
        fake: :math:`G_h(x)`.
        h_fake: Log-odds of h at :math:`(G_h(x), x)`.
        c_fake: Log-odds of c at :math:`G_h(x)`, or None.
        h_reverse: Log-odds of h at :math:`(x, G_h(x))` for the symmetric loss, or None.
        pull: :math:`\lambda`.
    """
    loss = pull * displacement(real, fake) - weighted_rejection(h_fake, c_fake)
    if h_reverse is not None:
        weight = 1.0 if c_fake is None else rejected(c_fake.clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS))
        loss = loss - (weight * accepted(h_reverse)).mean()
    return loss


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
            initialise(build(d), self.random, _deviation(d)).to(self.device) for d in descriptions
        )
        self.learners = {
            name: torch.optim.Adam(net.parameters(), lr=self.plan.learning_rate, betas=PRINTED_BETAS)
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
        return membership_loss(self.c(x)[:, 0], self.c(fake)[:, 0], self.at_h(fake, x))

    def loss_h(self, x: Tensor) -> Tensor:
        """Return L_H on a batch."""
        fake = (self.g_c if self.plan.ablation == "only_g_c" else self.g_h)(x)
        same, apart = (self.h(torch.cat([first, x], 1))[:, 0] for first in (x, fake))
        back = self.at_h(x, fake) if self.plan.symmetric else None
        return comparator_loss(same, apart, self.at_c(fake), back)

    def loss_g_c(self, x: Tensor) -> Tensor:
        """Return what the generator of c minimises."""
        fake = self.g_c(x)
        return membership_generator_loss(self.c(fake)[:, 0], self.at_h(fake, x))

    def loss_g_h(self, x: Tensor) -> Tensor:
        """Return what the generator of h minimises."""
        fake = self.g_h(x)
        at = self.h(torch.cat([fake, x], 1))[:, 0]
        back = self.at_h(x, fake) if self.plan.symmetric else None
        return comparator_generator_loss(x, fake, at, self.at_c(fake), back, PULL)

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
        if self.history:
            settle(self.c, inputs, self.plan.batch_size)
            settle(self.h, torch.cat([inputs, inputs], 1), self.plan.batch_size)


def _deviation(description: Description) -> float | None:
    """Return the deviation of the first weights: the architecture for images names one."""
    return PRINTED_DEVIATION if description["kind"] in ("paper critic", "paper generator") else None


def settle(net: nn.Module, inputs: Tensor, batch_size: int) -> None:
    """Take the statistics of batch norm from real inputs alone, the mean over their batches.

    During training they run over real and generated batches in turn, and belong to neither.
    """
    norms = [part for part in net.modules() if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d)]
    batches = [batch for batch in torch.split(inputs, batch_size) if len(batch) > 1]
    if not norms or not batches:
        return
    usual = [part.momentum for part in norms]
    for part in norms:
        part.reset_running_stats()
        part.momentum = None  # a plain mean
    place = next(net.parameters()).device
    with torch.no_grad():
        for batch in batches:
            net(batch.to(place))
    for part, momentum in zip(norms, usual, strict=True):
        part.momentum = momentum
