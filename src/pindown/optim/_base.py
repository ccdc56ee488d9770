"""What the optimisers share: which parameters move, what gradient they see, what they refuse.

Steps take one pass over memory where torch's fused loops apply.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.optim import Optimizer

from pindown.errors import ParameterError
from pindown.validation import number

State: TypeAlias = dict[str, Any]
# A group, its parameters that have gradients, the gradients, and the states.
Work: TypeAlias = tuple[dict[str, Any], list[Tensor], list[Tensor], list[State]]


class ForeachOptimizer(Optimizer):  # type: ignore[misc]
    """A first-order method that updates all parameters of a group with one call per operation.

    Subclasses say how a list of parameters moves, given a list of gradients and their state.

    Args:
        params: Parameters or parameter groups, as for every torch optimiser.
        defaults: Settings of a group, with ``weight_decay`` and ``maximize`` among them.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self._check(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own settings, checked like those of the optimiser.

        Raises:
            ValueError: If a setting is out of range.
        """
        given = {name: value for name, value in param_group.items() if name in self.defaults}
        self._check(given)
        super().add_param_group({**param_group, **given})

    def _check(self, settings: dict[str, Any]) -> None:
        """Refuse settings out of range; numbers become plain ones, which state files can hold."""
        for name in ("lr", "weight_decay"):
            if name in settings:
                settings[name] = plain_number(name, settings[name])

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move the parameters once.

        Args:
            closure: Evaluates the loss with gradients; called once, before the step.

        Returns:
            What the closure returned, or None without one.

        Raises:
            ValueError: If a gradient is sparse or a parameter complex.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gathered = [(group, *self._gather(group)) for group in self.param_groups]
        self._move([work for work in gathered if work[1]])
        return loss

    def _move(self, work: list[Work]) -> None:
        for group, params, grads, states in work:
            self._update(group, params, grads, states)

    @abstractmethod
    def _update(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        """Move one group."""

    def _gather(self, group: dict[str, Any]) -> tuple[list[Tensor], list[Tensor], list[State]]:
        """Return the parameters that have a gradient, the gradients to follow, and the states."""
        params = [p for p in group["params"] if p.grad is not None]
        grads = [p.grad for p in params]
        for p, g in zip(params, grads, strict=True):
            if g.is_sparse or g.layout is not torch.strided:
                raise ValueError(
                    f"{type(self).__name__} needs dense gradients; a parameter of shape "
                    f"{tuple(p.shape)} has a sparse one: use sparse=False in its embedding."
                )
            if p.is_complex():
                raise ValueError(
                    f"{type(self).__name__} needs real parameters; one of shape {tuple(p.shape)} "
                    "is complex: give torch.view_as_real of it."
                )
        if group["maximize"]:
            grads = list(torch._foreach_neg(grads))
        if group["weight_decay"]:
            grads = list(torch._foreach_add(grads, params, alpha=group["weight_decay"]))
        states = [self.state[p] for p in params]
        return params, grads, states


def moments(states: list[State], params: list[Tensor], name: str, start: float = 0.0) -> list[Tensor]:
    """Return one running average per parameter, made at the first step."""
    for state, p in zip(states, params, strict=True):
        if name not in state:
            state[name] = torch.full_like(p, start, memory_format=torch.preserve_format)
    return [state[name] for state in states]


def count_steps(states: list[State]) -> list[int]:
    """Count a step for every parameter and return how many each has had."""
    for state in states:
        state["step"] = state.get("step", 0) + 1
    return [state["step"] for state in states]


def plain_number(name: str, value: Any, below: float = math.inf) -> float:
    """Return a setting as a plain number, which state files can hold; refuse it outside of [0, below).

    >>> plain_number("lr", -1.0)
    Traceback (most recent call last):
    pindown.errors.ParameterError: lr must be a finite number of at least 0; got -1.0.
    """
    if isinstance(value, Tensor):
        raise ParameterError(f"{name} must be a plain number; got a tensor: pass {name}.item().")
    return number(name, value, 0.0, below, below=True)


def adaptive_step(
    params: list[Tensor],
    grads: list[Tensor],
    first: list[Tensor],
    second: list[Tensor],
    betas: tuple[float, float],
    shift: float,
    sizes: list[float],
) -> None:
    r"""Update both averages and move each x by :math:`-\alpha\, m / (\sqrt v + \xi)`, in place."""
    if not _one_pass(params, grads):
        torch._foreach_lerp_(first, grads, 1 - betas[0])
        torch._foreach_mul_(second, betas[1])
        torch._foreach_addcmul_(second, grads, grads, 1 - betas[1])
        roots = torch._foreach_sqrt(second)
        torch._foreach_add_(roots, shift)
        torch._foreach_addcdiv_(params, first, roots, [-size for size in sizes])
        return
    # After infinitely many steps torch corrects neither average.
    forever = torch.tensor(math.inf)
    alike: dict[str, list[int]] = {}
    for i, size in enumerate(sizes):
        alike.setdefault(size.hex(), []).append(i)  # as text NaN equals itself
    for of_size in alike.values():
        x, g, m, v = ([values[i] for i in of_size] for values in (params, grads, first, second))
        torch._fused_adam_(
            x, g, m, v, [], [forever] * len(x), lr=sizes[of_size[0]], beta1=betas[0], beta2=betas[1],
            weight_decay=0.0, eps=shift, amsgrad=False, maximize=False,
        )  # fmt: skip


def nesterov_step(
    params: list[Tensor], grads: list[Tensor], velocity: list[Tensor], momentum: float, lr: float
) -> None:
    r"""Set :math:`v` to :math:`\mu v + g` and move each x by :math:`-\alpha (g + \mu v)`, in place."""
    if momentum > 0 and _one_pass(params, grads):
        torch._fused_sgd_(
            params, grads, velocity, weight_decay=0.0, momentum=momentum, lr=lr, dampening=0.0,
            nesterov=True, maximize=False, is_first_step=False,
        )  # fmt: skip
        return
    torch._foreach_mul_(velocity, momentum)
    torch._foreach_add_(velocity, grads)
    torch._foreach_add_(params, grads, alpha=-lr)
    torch._foreach_add_(params, velocity, alpha=-lr * momentum)


def _one_pass(params: list[Tensor], grads: list[Tensor]) -> bool:
    """Return whether the fused loops apply: numbers side by side, on the processor, in one precision."""
    return all(
        p.device.type == "cpu"
        and p.is_floating_point()
        and p.dtype == g.dtype == params[0].dtype
        and p.is_contiguous()
        and g.is_contiguous()
        for p, g in zip(params, grads, strict=True)
    )
