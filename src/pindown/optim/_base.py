"""What the optimisers share: which parameters move, what gradient they see, what they refuse."""

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
