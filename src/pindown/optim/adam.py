"""ADAM with the shift outside of the root, and the step sizes of its theorem."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.optim._base import (
    ForeachOptimizer,
    Work,
    adaptive_step,
    count_steps,
    moments,
    plain_number,
)
from pindown.validation import choice, positive

SCHEDULES = ("bias_corrected", "constant", "theorem", "optimal")


class Adam(ForeachOptimizer):
    r"""Momentum, each coordinate divided by a running root mean square of its gradients.

    .. math::
        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \quad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, \quad
        x_{t+1} = x_t - \alpha_t\, \frac{m_t}{\sqrt{v_t} + \xi}, \quad m_0 = v_0 = 0.

    The averages are not corrected for their start; the step sizes may be:

    * ``"bias_corrected"``: :math:`\alpha_t = \alpha \sqrt{1 - \beta_2^t} / (1 - \beta_1^t)`,
    * ``"constant"``: :math:`\alpha_t = \alpha`,
    * ``"theorem"``: :math:`\alpha_t = \alpha \|g_t\|^2 / (1 - \beta_1^t)^2`, with the
      :math:`\alpha` that :func:`pindown.optim.adam_plan` returns,
    * ``"optimal"``: :math:`\alpha_t = \alpha \max(0, \langle g_t, d_t \rangle) / \|d_t\|^2` with
      :math:`d_t` the direction of the step; :math:`\alpha = 1/L` minimises the quadratic that bounds an
      L-smooth function.

    The last two take norms over the parameters of all groups that use them.
    ``torch.optim.Adam`` divides by :math:`\sqrt{v_t} + \xi \sqrt{1 - \beta_2^t}` instead.

    Args:
        params: Parameters or parameter groups.
        lr: :math:`\alpha`.
        betas: :math:`\beta_1` and :math:`\beta_2`, both in [0, 1).
        shift: :math:`\xi`, positive.
        schedule: How :math:`\alpha_t` follows from :math:`\alpha`.
        weight_decay: Adds this multiple of the parameters to the gradients.
        maximize: Climb instead of descend.

    Raises:
        ValueError: If a setting is out of range.

    Example:
        With both betas zero the direction is 3 / (3 + 1), whatever the size of the gradient before.

        >>> x = torch.nn.Parameter(torch.tensor([2.0]))
        >>> x.grad = torch.tensor([3.0])
        >>> Adam([x], lr=1.0, betas=(0.0, 0.0), shift=1.0).step()
        >>> x.item()
        1.25

    Mukherjee 2020, Algorithm 7, Theorem 5.4.3 and section 5.D.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        shift: float = 1e-8,
        *,
        schedule: str = "bias_corrected",
        weight_decay: float = 0.0,
        maximize: bool = False,
    ) -> None:
        settings = {"lr": lr, "betas": betas, "shift": shift, "schedule": schedule}
        super().__init__(params, {**settings, "weight_decay": weight_decay, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own settings, checked like those of the optimiser.

        Raises:
            ValueError: If a setting is out of range, or the shift is zero in a parameter's precision.
        """
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for p in group["params"]:
            if p.is_floating_point() and not float(torch.tensor(group["shift"], dtype=p.dtype)) > 0:
                self.param_groups.pop()
                raise ValueError(
                    f"shift {group['shift']:g} is zero in {p.dtype}: give a larger one, or parameters "
                    "in float32."
                )

    def _check(self, settings: dict[str, Any]) -> None:
        if "betas" in settings:
            betas = settings["betas"]
            if not isinstance(betas, Sequence | np.ndarray) or len(betas) != 2:
                raise ValueError(f"betas must be two numbers in [0, 1); got {betas!r}.")
            settings["betas"] = tuple(plain_number("each of betas", beta, 1.0) for beta in betas)
        if "shift" in settings:
            # A first gradient of zero is divided by it.
            settings["shift"] = positive("shift", plain_number("shift", settings["shift"]))
        choice("schedule", settings.get("schedule", "constant"), SCHEDULES)
        super()._check(settings)

    def _move(self, work: list[Work]) -> None:
        by_norm = [g for group, _, grads, _ in work if group["schedule"] == "theorem" for g in grads]
        square = _inner(by_norm, by_norm)
        waiting = []
        along = length = 0.0
        for group, params, grads, states in work:
            steps = count_steps(states)
            first, second = moments(states, params, "first"), moments(states, params, "squares")
            if group["schedule"] == "optimal":  # every direction is known before the size is
                moved = [torch.zeros_like(p, memory_format=torch.preserve_format) for p in params]
                sizes = [-1.0] * len(params)
                waiting.append((group, params, moved))
            else:
                moved, sizes = params, [group["lr"] * _factor(group, t, square) for t in steps]
            adaptive_step(moved, grads, first, second, group["betas"], group["shift"], sizes)
            if group["schedule"] == "optimal":
                along, length = along + _inner(grads, moved), length + _inner(moved, moved)
        # A gradient that is no number shows in every parameter, and does not just stop the method.
        best = 0.0 if along <= 0 or length == 0 else along / length
        for group, params, moved in waiting:
            torch._foreach_add_(params, moved, alpha=-group["lr"] * best)


def _factor(group: dict[str, Any], t: int, square: float) -> float:
    """Return step size t over the group's own."""
    beta1, beta2 = group["betas"]
    if group["schedule"] == "bias_corrected":
        return math.sqrt(1 - beta2**t) / (1 - beta1**t)
    if group["schedule"] == "theorem":
        return square / (1 - beta1**t) ** 2
    return 1.0


def _inner(a: list[Tensor], b: list[Tensor]) -> float:
    return math.fsum(float(torch.dot(u.reshape(-1), v.reshape(-1))) for u, v in zip(a, b, strict=True))
