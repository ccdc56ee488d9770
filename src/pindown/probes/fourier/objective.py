r"""What a mask is trained for: the loss of every image stays what it was, and few frequencies pass.

.. math:: \frac1n\sum_x\Bigl(e^{[L(\Phi(\bar x), y) - L(\Phi(x), y)]^2} - 1\Bigr)
          + \lambda\lVert M\rVert_p

The source prints the sum without the mean and the 1, which has the number of images as its floor and
leaves float32 at a change of 9.4 in the loss. Here the
exponential continues as its tangent where the square
exceeds 4: minimisers lie far below, and first steps from far away do not spoil the memory of Adam.

Lecture course, section on essential frequencies; Karantzas et al. 2022.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

STRAIGHT_ABOVE = 4.0  # of the squared change of the loss


def data_term(change: Tensor, *, one_sided: bool = False) -> Tensor:
    r"""Return :math:`e^{c^2} - 1`, continued as a tangent above :math:`c^2 = 4`.

    Args:
        change: c, the change of each loss.
        one_sided: Let improvements of the loss cost nothing.

    >>> [round(v, 4) for v in data_term(torch.tensor([0.0, 1.0, -1.0])).tolist()]
    [0.0, 1.7183, 1.7183]
    >>> bool(data_term(torch.tensor([100.0])).isfinite())
    True
    """
    worse = torch.relu(change) if one_sided else change
    square = worse * worse
    curved = torch.clamp(square, max=STRAIGHT_ABOVE)
    return torch.expm1(curved) + math.exp(STRAIGHT_ABOVE) * (square - curved)


def symmetric_mask(logits: Tensor, axes: tuple[int, ...]) -> Tensor:
    r"""Return :math:`(S(k) + S(-k)) / 2`, S the sigmoid of the logits: real images stay real."""
    weights = torch.sigmoid(logits)
    opposite = torch.roll(torch.flip(weights, axes), [1] * len(axes), axes)
    return 0.5 * (weights + opposite)


def behind(spectra: Tensor, masks: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return images from their spectra (n, [C,] ...) behind masks (n or 1, ...)."""
    if masks.ndim < spectra.ndim:
        masks = masks[:, None]  # one mask for all channels
    return torch.fft.ifftn(spectra * masks, dim=axes).real


def size_penalty(masks: Tensor, exponent: float) -> Tensor:
    r"""Return :math:`\lVert M\rVert_p` of each mask."""
    total = (masks.flatten(1) ** exponent).sum(1)
    return total if exponent == 1.0 else total ** (1.0 / exponent)
