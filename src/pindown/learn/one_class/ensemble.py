r"""Trained members as one value, evaluated and averaged; and whether they learned anything.

Networks that failed to train would hide behind the density part: scores stay good, and nothing is said.
So the loss of telling rows from generic negatives that training has not drawn is measured afterwards,

.. math:: E_x[-\log c(x)] + E_x[-\log(1 - c(\tilde x))] ,

for the networks and for their copies with the weights that they began with; and the share of pairs of a
row and a negative that they put in the right order, because a loss also rises with too much confidence.
Networks that learned nothing have no vote beside the density: what they prefer is luck.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from pindown.affine import Array
from pindown.learn.one_class._inputs import InputScaling, paper_inputs
from pindown.learn.one_class._negatives import generic_negatives
from pindown.learn.one_class._networks import PROCESSOR, build, initialise
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class._printed_algorithm import PrintedMember
from pindown.learn.one_class._training import Member, membership_log_odds
from pindown.learn.one_class.tuning import (
    BETTER_ORDER,
    FOLDS,
    INPUT_CHUNK,
    LEARNED_LOSS_SHARE,
    MAX_JUDGED_ROWS,
    MIN_JUDGED_ROWS,
    MIN_ROWS_TO_HOLD_OUT,
    STEPS_TO_LEARN,
)
from pindown.parallel import each, n_workers
from pindown.torch_modules import own_torch

_SEED = 0  # always the same negatives, and none of the numbers that training draws


@dataclass
class Ensemble:
    """Averaged networks c and h.

    Attributes:
        printed: Whether h is a network of pairs, as printed, and not a potential.
        members: Networks c, in the precision of evaluation.
        comparators: Networks h, or their potentials.
        history: Losses of each member's epochs.
        trainers: What training can go on from; None after loading.
        beginnings: Seeds of the weights that the members began with, as far as they are known.
        interrupted: Whether training was stopped early.
    """

    printed: bool
    members: list[nn.Module]
    comparators: list[nn.Module]
    history: list[dict[str, float]] = field(default_factory=list)
    trainers: list[Any] | None = None
    beginnings: list[int] = field(default_factory=list)
    interrupted: bool = False

    def trainers_for(
        self, plan: Plan, spacing: float, rng: np.random.Generator, device: torch.device
    ) -> list[Any]:
        """Return members to go on training: those that made the networks, or new ones around them."""
        if self.trainers is not None and all(member.device == device for member in self.trainers):
            return list(self.trainers)
        made = []
        for number, (c, h) in enumerate(zip(self.members, self.comparators, strict=True)):
            member = _new_member(plan, spacing, rng, device)
            member.history = [dict(record) for record in self.history if record.get("member") == number]
            if self.beginnings:
                member.beginning = self.beginnings[number]
            kept = zip(member.means, (c, h), strict=True)
            for net, stored in (*kept, *(() if self.printed else ((member.c, c), (member.q, h)))):
                net.load_state_dict({key: value.clone() for key, value in stored.state_dict().items()})
            made.append(member)
        return made

    def membership(self, inputs: Tensor) -> Array:
        """Return log-odds of c of every member, (members, n)."""
        return np.stack([_evaluated(c, membership_log_odds, inputs) for c in self.members])

    def quality(self, inputs: Tensor) -> Array:
        """Return the mean log-odds of h(x, x)."""
        return self.compared(inputs, inputs)

    def compared(self, first: Tensor, second: Tensor) -> Array:
        """Return the mean log-odds of h(first, second)."""
        if self.printed:
            pairs = torch.cat([first, second], 1)
            return np.mean([_evaluated(h, _only, pairs) for h in self.comparators], axis=0)
        at_first = np.mean([_evaluated(q, _only, first) for q in self.comparators], axis=0)
        if first is second:
            return at_first
        at_second = np.mean([_evaluated(q, _only, second) for q in self.comparators], axis=0)
        return 2 * at_first - at_second

    def compared_log_odds(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the same with gradients."""
        kind = _precision(self.comparators[0])
        first, second = first.to(kind), second.to(kind)
        if self.printed:
            pairs = torch.cat([first, second], 1)
            return torch.stack([h(pairs)[:, 0] for h in self.comparators]).mean(0)
        nets = self.comparators
        return torch.stack([2 * q(first)[:, 0] - q(second)[:, 0] for q in nets]).mean(0)


def evaluation_copy(net: nn.Module) -> nn.Module:
    """Return a copy for evaluation on the processor: in double precision, in single with convolutions.

    Sums of vectors in single precision depend on the size of the batch; convolutions in double
    precision take ten times as long.
    """
    slow = any(isinstance(part, nn.Conv2d) for part in net.modules())
    kept = copy.deepcopy(net).cpu().eval().requires_grad_(False)
    return kept.float() if slow else kept.double()


def _precision(net: nn.Module) -> torch.dtype:
    return next(net.parameters()).dtype


def _only(outputs: Tensor) -> Tensor:
    return outputs[:, 0]


def _evaluated(net: nn.Module, read: Callable[[Tensor], Tensor], inputs: Tensor) -> Array:
    kind = _precision(net)
    with torch.no_grad():
        parts = [
            read(net(chunk.to(kind))).double().numpy() for chunk in torch.split(inputs, INPUT_CHUNK)
        ]
    return np.concatenate(parts) if parts else np.zeros(0)


def network_inputs(scaling: InputScaling, rows: Array, printed: bool, dtype: torch.dtype) -> Tensor:
    """Return what the networks take."""
    inputs = scaling.inputs(rows, dtype)
    return paper_inputs(inputs) if printed and scaling.is_image else inputs


def folds(n: int, n_members: int, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Return the rows that each member leaves out; none where rows or members are few."""
    if n_members == 1 or n < MIN_ROWS_TO_HOLD_OUT:
        return [np.zeros(0, dtype=np.int64)] * n_members
    parts = np.array_split(rng.permutation(n), FOLDS)
    return [parts[number % FOLDS] for number in range(n_members)]


def trained(
    plan: Plan,
    inputs: Tensor,
    spacing: float,
    rng: np.random.Generator,
    tick: Callable[[], Any],
    earlier: Ensemble | None = None,
    device: torch.device = PROCESSOR,
) -> tuple[Ensemble, Array]:
    """Train the members; return them and each row's held-out log-odds of c (NaN where held by none).

    Members are trained side by side where ``pindown.parallel.workers`` says so; an interrupt then keeps
    those that are done.

    Args:
        plan: What to train.
        inputs: Training inputs in single precision.
        spacing: Typical distance of neighbouring inputs.
        rng: Where seeds come from.
        tick: Called once before every epoch.
        earlier: What to go on with, or None.
        device: Where to train.

    Raises:
        KeyboardInterrupt: If it comes before the first epoch is done; later, what is trained is kept.
        ValueError: If the weights are no longer finite.
    """
    made = [] if earlier is None else earlier.trainers_for(plan, spacing, rng, device)
    n_earlier, epochs_before = len(made), sum(len(member.history) for member in made)
    kept, held_scores = folds(len(inputs), plan.n_members, rng), np.full(len(inputs), np.nan)
    history: list[dict[str, float]] = []
    interrupted = False
    try:
        if plan.n_members > 1 and device == PROCESSOR and n_workers(None) > 1:
            made += [_new_member(plan, spacing, rng, device) for _ in kept[len(made) :]]
            _train_apart(made, plan, inputs, kept, tick)
        else:
            for number, left_out in enumerate(kept):
                if number == len(made):
                    made.append(_new_member(plan, spacing, rng, device))
                made[number].adopt(plan)
                _train(made[number], inputs, left_out, tick)
    except KeyboardInterrupt:
        if sum(len(member.history) for member in made) == epochs_before:
            raise
        # A member without one epoch knows nothing and would spoil the mean.
        made = made[:n_earlier] + [member for member in made[n_earlier:] if member.history]
        warnings.warn("interrupted: the networks are kept as far as they are trained", stacklevel=5)
        interrupted = True
    ensemble = Ensemble(plan.printed, [], [], history, made, interrupted=interrupted)
    for number, member in enumerate(made):
        c, h = (_finite(evaluation_copy(net), plan) for net in member.means)
        ensemble.members.append(c)
        ensemble.comparators.append(h)
        ensemble.beginnings.append(member.beginning)
        history += [{**record, "member": float(number)} for record in member.history]
        if len(kept[number]):
            rows = inputs[torch.as_tensor(kept[number])].double()
            held_scores[kept[number]] = _evaluated(c, membership_log_odds, rows)
    return ensemble, held_scores


def _finite(net: nn.Module, plan: Plan) -> nn.Module:
    if not all(bool(value.isfinite().all()) for value in net.state_dict().values()):
        raise ValueError(
            f"training diverged, weights are not finite; lower learning_rate ({plan.learning_rate:g})."
        )
    return net


def _new_member(plan: Plan, spacing: float, rng: np.random.Generator, device: torch.device) -> Any:
    random = torch.Generator().manual_seed(int(rng.integers(2**31 - 1)))
    if plan.printed:
        return PrintedMember(plan, random, device=device)
    return Member(plan, random, spacing, device=device)


def _train(member: Any, inputs: Tensor, left_out: Any, tick: Callable[[], Any]) -> None:
    seen = np.ones(len(inputs), dtype=bool)
    seen[left_out] = False
    member.train(inputs[torch.as_tensor(seen)], inputs[torch.as_tensor(left_out)], tick)


def _train_apart(
    members: list[Any], plan: Plan, inputs: Tensor, kept: list[Any], tick: Callable[[], Any]
) -> None:
    """Train members in workers; each takes its place when it comes back."""
    tasks = list(zip(members, kept, strict=True))
    for number, member in each(partial(_trained_member, plan, inputs), tasks, batch=1):
        members[number] = member
        for _ in range(plan.epochs):
            tick()


def _trained_member(plan: Plan, inputs: Tensor, task: tuple[Any, Any]) -> Any:
    member, left_out = task
    with own_torch():
        member.adopt(plan)
        _train(member, inputs, left_out, lambda: None)
    return member


class HeldOutLosses(NamedTuple):
    """Losses of telling rows from made-up ones that were held out of training.

    Attributes:
        trained: Losses of the networks c.
        untrained: Losses of the same networks with the weights that they began with.
        trained_order: Share of pairs of a row and a made-up one that c puts in the right order.
        untrained_order: The same before training.
    """

    trained: float
    untrained: float
    trained_order: float
    untrained_order: float

    @property
    def learned_nothing(self) -> bool:
        """Whether training made neither the loss lower nor the order better.

        >>> learned = HeldOutLosses(0.9, 1.4, 0.8, 0.5)
        >>> HeldOutLosses(1.4, 1.4, 0.5, 0.5).learned_nothing, learned.learned_nothing
        (True, False)
        """
        same_loss = self.trained >= LEARNED_LOSS_SHARE * self.untrained
        return same_loss and self.trained_order < self.untrained_order + BETTER_ORDER


def held_out_losses(
    ensemble: Ensemble, plan: Plan, inputs: Tensor, spacing: float
) -> HeldOutLosses | None:
    """Return the losses, or None where c was not trained against generic negatives.

    Rows are those of the training, made-up ones are new: always the same, and none that training drew.

    Args:
        ensemble: The networks, with what trained them.
        plan: What was trained.
        inputs: Training inputs.
        spacing: Typical distance of neighbouring inputs.
    """
    if plan.printed or plan.ablation == "h" or not plan.has("negatives"):
        return None
    rows = inputs[:: math.ceil(len(inputs) / MAX_JUDGED_ROWS)]
    negatives, _ = generic_negatives(rows, torch.Generator().manual_seed(_SEED), spacing)
    begun = [_untrained(plan, seed) for seed in ensemble.beginnings]
    (loss, order), (loss_before, order_before) = (
        _judged(nets, rows, negatives) for nets in (ensemble.members, begun)
    )
    return HeldOutLosses(loss, loss_before, order, order_before)


def _untrained(plan: Plan, seed: int) -> nn.Module:
    """Return c as a member had it before its first step: the first network drawn from its seed."""
    return evaluation_copy(initialise(build(plan.membership), torch.Generator().manual_seed(seed)))


def _judged(nets: Sequence[nn.Module], rows: Tensor, negatives: Tensor) -> tuple[float, float]:
    """Return the loss of the mean of some networks, and the share of pairs in the right order."""
    together = Ensemble(False, list(nets), [])
    inside, outside = (together.membership(x.double()).mean(axis=0) for x in (rows, negatives))
    loss = np.logaddexp(0, -inside).mean() + np.logaddexp(0, outside).mean()
    difference = inside[:, None] - outside
    return float(loss), float((difference > 0).mean() + (difference == 0).mean() / 2)


def may_vote(found: HeldOutLosses | None, ensemble: Ensemble) -> bool:
    """Whether the networks were trained and, as far as losses tell, learned something."""
    return bool(ensemble.history) and (found is None or not found.learned_nothing)


def warn_of_nothing_learned(found: HeldOutLosses | None, ensemble: Ensemble, n: int) -> None:
    """Say it if the networks had time to learn and are no better on n rows than untrained ones."""
    steps = 0 if found is None else max(member.steps for member in ensemble.trainers or ())
    if found is None or n < MIN_JUDGED_ROWS or steps < STEPS_TO_LEARN or not found.learned_nothing:
        return
    warnings.warn(
        f"the networks learned nothing in {steps} steps: telling rows from made-up ones costs them "
        f"{found.trained:.2f}, their untrained copies {found.untrained:.2f}; where distances take part, "
        "they alone make the score. Change learning_rate or hidden.",
        ConvergenceWarning,
        stacklevel=4,
    )
