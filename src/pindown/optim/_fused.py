"""One pass over memory for a step: torch's fused kernels, in the forms that this package steps in."""

from __future__ import annotations

import math

import torch
from torch import Tensor


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
    """Return whether the kernels apply: numbers side by side, on the processor, in one precision."""
    return all(
        p.device.type == "cpu"
        and p.is_floating_point()
        and p.dtype == g.dtype == params[0].dtype
        and p.is_contiguous()
        and g.is_contiguous()
        for p, g in zip(params, grads, strict=True)
    )
