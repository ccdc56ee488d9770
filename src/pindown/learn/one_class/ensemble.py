"""Trained members as one value: evaluated and averaged."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pindown.affine import Array
from pindown.learn.one_class.frame import Frame, paper_inputs
from pindown.learn.one_class.presets import Plan
from pindown.learn.one_class.printed import PrintedMember
from pindown.learn.one_class.training import Member, membership_log_odds
from pindown.learn.torch_isolation import PROCESSOR, own_torch
from pindown.parallel import each, n_workers

_CHUNK = 512  # inputs evaluated at once
_FOLDS = 5  # each member leaves out one fifth of the rows
_LEAST_TO_HOLD_OUT = 20


@dataclass
class Ensemble:
    """Averaged networks c and h.

    Attributes:
        printed: Whether h is a network of pairs, as printed, and not a potential.
        members: Networks c, settled for evaluation.
        comparators: Networks h, or their potentials.
        history: Losses of each member's epochs.
        trainers: What training can go on from; None after loading.
        beginnings: Seeds of the weights that the members began with, as far as they are known.
    """

    printed: bool
    members: list[nn.Module]
    comparators: list[nn.Module]
    history: list[dict[str, float]] = field(default_factory=list)
    trainers: list[Any] | None = None
    beginnings: list[int] = field(default_factory=list)

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


def settled(net: nn.Module) -> nn.Module:
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
        parts = [read(net(chunk.to(kind))).double().numpy() for chunk in torch.split(inputs, _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0)


def network_inputs(frame: Frame, rows: Array, printed: bool, dtype: torch.dtype) -> Tensor:
    """Return what the networks take."""
    inputs = frame.inputs(rows, dtype)
    return paper_inputs(inputs) if printed and frame.is_image else inputs


def folds(n: int, n_members: int, rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Return the rows that each member leaves out; none where rows or members are few."""
    if n_members == 1 or n < _LEAST_TO_HOLD_OUT:
        return [np.zeros(0, dtype=np.int64)] * n_members
    parts = np.array_split(rng.permutation(n), _FOLDS)
    return [parts[number % _FOLDS] for number in range(n_members)]


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
        warnings.warn("interrupted: the networks are kept as far as they are trained", stacklevel=4)
    ensemble = Ensemble(plan.printed, [], [], history, made)
    for number, member in enumerate(made):
        c, h = (_finite(settled(net), plan) for net in member.means)
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
