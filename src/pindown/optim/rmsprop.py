"""RMSProp with the shift inside the root, averaged like the squared gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from pindown.optim._base import (
    ForeachOptimizer,
    State,
    count_steps,
    moments,
    plain_number,
)
from pindown.validation import choice

STYLES = ("thesis", "torch", "tf1")


class RMSProp(ForeachOptimizer):
    r"""Gradient descent, each coordinate divided by a running root mean square of its gradients.

    .. math::
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) (g_t^2 + \xi), \qquad
        x_{t+1} = x_t - \alpha\, g_t / \sqrt{v_t}, \qquad v_0 = 0.

    Where :math:`v_t` is zero (no shift, and no gradient yet) a coordinate stays. Kept is
    :math:`w_t = v_t - \xi (1 - \beta_2^t)`, the average of the squares alone, from which
    :math:`v_t` follows without a pass over memory for the shift.

    Args:
        params: Parameters or parameter groups.
        lr: :math:`\alpha`.
        decay: :math:`\beta_2`, in [0, 1).
        shift: :math:`\xi`.
        style: ``"thesis"`` as above; ``"torch"`` divides by :math:`\sqrt{w_t} + \xi`; ``"tf1"`` divides
            by :math:`\sqrt{w_t + \xi}` with :math:`w_0 = 1`.
        weight_decay: Adds this multiple of the parameters to the gradients.
        maximize: Climb instead of descend.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        One step of one coordinate: v = 0.1 (3 * 3 + 1) = 1, so x moves by 0.5 * 3.

        >>> x = torch.nn.Parameter(torch.tensor([2.0]))
        >>> x.grad = torch.tensor([3.0])
        >>> RMSProp([x], lr=0.5, decay=0.9, shift=1.0).step()
        >>> round(x.item(), 6)
        0.5

    Mukherjee 2020, Algorithm 6 and Definition 17.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        decay: float = 0.9,
        shift: float = 1e-10,
        *,
        style: str = "thesis",
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "decay": decay, "shift": shift, "style": style}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "maximize": maximize})

    def _check(self, settings: dict[str, Any]) -> None:
        for name, below in (("decay", 1.0), ("shift", math.inf)):
            if name in settings:
                settings[name] = plain_number(name, settings[name], below)
        choice("style", settings.get("style", "thesis"), STYLES)
        super()._check(settings)

    def _update(
        self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]
    ) -> None:
        decay, shift, style = group["decay"], group["shift"], group["style"]
        steps = count_steps(states)
        squares = moments(states, params, "squares", 1.0 if style == "tf1" else 0.0)
        torch._foreach_mul_(squares, decay)
        torch._foreach_addcmul_(squares, grads, grads, 1 - decay)
        if style == "torch":
            roots = torch._foreach_sqrt(squares)
            torch._foreach_add_(roots, shift)
        else:
            averaged = [shift if style == "tf1" else shift * (1 - decay**t) for t in steps]
            roots = torch._foreach_add(squares, averaged)
            torch._foreach_sqrt_(roots)
        # 0 / 0 becomes 0 / least: a coordinate without gradients stays. A shift can be zero in half
        # precision and not in double.
        least = [torch.finfo(r.dtype).tiny for r in roots]
        if shift * (1 - decay) < max(least):
            torch._foreach_clamp_min_(roots, [math.sqrt(tiny) for tiny in least])
        torch._foreach_addcdiv_(params, grads, roots, -group["lr"])
