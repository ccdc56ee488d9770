"""Gradient descent with momentum: Nesterov's accelerated gradient and the heavy ball."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pindown.optim._base import ForeachOptimizer, State, moments, nesterov_step, plain_number


def check_momentum(settings: dict[str, Any]) -> None:
    """Refuse a momentum outside of [0, 1)."""
    if "momentum" in settings:
        settings["momentum"] = plain_number("momentum", settings["momentum"], 1.0)


class NAG(ForeachOptimizer):
    r"""Nesterov's accelerated gradient.

    .. math::
        v_{t+1} = \mu v_t + g_t, \qquad x_{t+1} = x_t - \alpha (g_t + \mu v_{t+1}), \qquad v_1 = 0.

    This is the form with gradients at the iterates. Written for :math:`y_t = x_t + \alpha \mu v_t` and
    :math:`u_t = -\alpha v_t` it is the look-ahead form :math:`u_{t+1} = \mu u_t - \alpha \nabla f(y_t +
    \mu u_t)`, :math:`y_{t+1} = y_t + u_{t+1}`.

    Args:
        params: Parameters or parameter groups.
        lr: :math:`\alpha`.
        momentum: :math:`\mu`, in [0, 1).
        weight_decay: Adds this multiple of the parameters to the gradients.
        maximize: Climb instead of descend.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        The gradient of half a square is the point itself: 1 - 0.5 (1 + 0.5 * 1) = 0.25.

        >>> x = torch.nn.Parameter(torch.tensor([1.0]))
        >>> x.grad = x.detach().clone()
        >>> NAG([x], lr=0.5, momentum=0.5).step()
        >>> x.item()
        0.25

    Mukherjee 2020, Algorithm 5.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.9,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def _check(self, settings: dict[str, Any]) -> None:
        check_momentum(settings)
        super()._check(settings)

    def _update(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        velocity = moments(states, params, "velocity")
        nesterov_step(params, grads, velocity, group["momentum"], group["lr"])


class HeavyBall(ForeachOptimizer):
    r"""Gradient descent with classical momentum.

    .. math:: v_{t+1} = \mu v_t - \alpha g_t, \qquad x_{t+1} = x_t + v_{t+1}, \qquad v_1 = 0.

    The step size is inside the velocity: when it changes, steps already made keep theirs.

    Args:
        params: Parameters or parameter groups.
        lr: :math:`\alpha`.
        momentum: :math:`\mu`, in [0, 1).
        weight_decay: Adds this multiple of the parameters to the gradients.
        maximize: Climb instead of descend.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        >>> x = torch.nn.Parameter(torch.tensor([1.0]))
        >>> descent = HeavyBall([x], lr=0.5, momentum=0.5)
        >>> for _ in range(2):  # 1 - 0.5 * 1, then 0.5 - (0.5 * 0.5 + 0.5 * 0.5)
        ...     x.grad = x.detach().clone()
        ...     descent.step()
        >>> x.item()
        0.0

    Mukherjee 2020, section 5.1.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.9,
        *,
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, settings)

    def _check(self, settings: dict[str, Any]) -> None:
        check_momentum(settings)
        super()._check(settings)

    def _update(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        velocity = moments(states, params, "velocity")
        torch._foreach_mul_(velocity, group["momentum"])
        torch._foreach_add_(velocity, grads, alpha=-group["lr"])
        torch._foreach_add_(params, velocity)
