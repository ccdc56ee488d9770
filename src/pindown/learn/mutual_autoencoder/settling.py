r"""The last hundredths of a nat, where the information has an exact derivative.

Training ends with noise: step sizes have fallen before the dial saw everything. Where the information
is computed by quadrature, the decoder is moved along its gradient onto the constraint,

.. math:: \theta \leftarrow \theta - \frac{I(\theta) - M}{\|\nabla I\|^2} \nabla I ,

the shortest way to first order. At a constrained optimum the gradients of evidence and information are
parallel, so that a small correction costs the multiplier times its size and no more. A large miss is
left as it is: it says that training failed.
"""

from __future__ import annotations

from typing import Any

import torch

from pindown.learn.mutual_autoencoder.quadrature import differentiable_information, quick_information

_FARTHEST = 0.15  # nats that may be corrected
_SETTLED = 1e-3  # nats; about what the quick grid is good to
_TRIES = 12


def settle(decoder: Any, target: float) -> None:
    """Move a decoder with a one-dimensional code and one column onto its target, if it is close.

    Args:
        decoder: p(x | z), changed in place; as it was if that brings it no closer.
        target: M, in nats.
    """
    parameters = list(decoder.parameters())
    first = last = None
    for _ in range(_TRIES):
        value = differentiable_information(decoder)
        miss = float(value.detach()) - target
        if first is None:
            first, last = miss, [p.detach().clone() for p in parameters]
            if abs(miss) > _FARTHEST:
                return
        if abs(miss) < _SETTLED:
            return
        gradient = torch.autograd.grad(value, parameters, allow_unused=True)
        size = sum(float((g * g).sum()) for g in gradient if g is not None)
        if not size > 0.0:
            break
        with torch.no_grad():
            for parameter, g in zip(parameters, gradient, strict=True):
                if g is not None:
                    parameter.sub_(miss / size * g)
    end = abs(quick_information(decoder) - target)
    if last is not None and first is not None and not end < abs(first):
        with torch.no_grad():
            for parameter, before in zip(parameters, last, strict=True):
                parameter.copy_(before)
