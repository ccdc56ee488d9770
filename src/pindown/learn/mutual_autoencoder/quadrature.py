r"""Exact information of a model with a one-dimensional code, by quadrature.

.. math:: I(z; x) = H(x) - E_z[H(x \mid z)]

The prior is integrated by the trapezoid rule on [-9, 9], whose tails carry less than :math:`10^{-18}`;
grids are doubled until the answer stands still.

Phuong 2021, sections 4.5 and 4.6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array

_EDGE = 9.0  # of the grid of codes
_REACH = 9.0  # standard deviations of x covered beyond the outermost mean
_FIRST, _LAST = 501, 8001  # nodes
_STILL = 1e-5  # nats; the rule is spectrally accurate, so a change this small is its last
_BLOCK = 4_000_000  # entries of a table held at once


def prior_grid(nodes: int) -> tuple[Array, Array]:
    """Return nodes and weights for expectations under N(0, 1).

    >>> z, w = prior_grid(501)
    >>> round(float(w @ z**2), 12)
    1.0
    """
    z = np.linspace(-_EDGE, _EDGE, nodes)
    w = np.exp(-0.5 * z * z)
    return z, w / w.sum()


def exact_information(decoder: Any) -> tuple[float, float]:
    """Return I(z; x) in nats and the last change when the grid was refined.

    Args:
        decoder: With a one-dimensional code; one real feature, or one column of symbols.
    """
    nodes, value, change = _FIRST, math.inf, math.inf
    while nodes <= _LAST:
        before = value
        with torch.no_grad():
            value = float(differentiable_information(decoder, nodes))
        change = abs(value - before)
        if change < _STILL:
            break
        nodes = 2 * nodes - 1
    return max(value, 0.0), change


def quick_information(decoder: Any) -> float:
    """Return I(z; x) on the first grid only: good to a thousandth of a nat below three nats."""
    with torch.no_grad():
        return float(differentiable_information(decoder))


def differentiable_information(decoder: Any, nodes: int = _FIRST) -> Tensor:
    """Return I(z; x) on one grid, with its derivative in the decoder."""
    return (_categorical if hasattr(decoder, "sizes") else _gaussian)(decoder, nodes)


def can_be_exact(decoder: Any) -> bool:
    """Return whether the code has one dimension and the data one column."""
    columns = len(decoder.sizes) if hasattr(decoder, "sizes") else int(getattr(decoder, "width", 0))
    return int(decoder.latent) == 1 and columns == 1


def codes_of(z: Array, decoder: Any) -> Tensor:
    """Return one-dimensional codes as the decoder takes them."""
    kind = next(decoder.parameters()).dtype
    return torch.as_tensor(z, dtype=kind)[:, None]


def _categorical(decoder: Any, nodes: int) -> Tensor:
    z, weights = prior_grid(nodes)
    w = torch.as_tensor(weights)
    log_p = decoder(codes_of(z, decoder))[0].double()
    p = log_p.exp()
    whole = w @ p
    return w @ (p * log_p).sum(1) - torch.special.xlogy(whole, whole).sum()


def _gaussian(decoder: Any, nodes: int) -> Tensor:
    z, weights = prior_grid(nodes)
    w = torch.as_tensor(weights)
    mean, log_std = (part.double()[:, 0] for part in decoder(codes_of(z, decoder)))
    std = log_std.exp()
    low = float((mean - _REACH * std).detach().min())
    high = float((mean + _REACH * std).detach().max())
    x = torch.linspace(low, high, nodes, dtype=torch.float64)
    scale = w / std / math.sqrt(2.0 * math.pi)
    density = torch.cat(
        [
            torch.exp(-0.5 * ((block[:, None] - mean) / std) ** 2) @ scale
            for block in x.split(max(1, _BLOCK // nodes))
        ]
    )
    # Where no density is left its logarithm has no derivative; such places count nothing.
    positive = density[density > torch.finfo(torch.float64).tiny]
    outer = -(positive * positive.log()).sum() * ((high - low) / (nodes - 1))
    return outer - w @ log_std - 0.5 * math.log(2.0 * math.pi * math.e)
