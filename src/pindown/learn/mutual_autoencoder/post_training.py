r"""What is done to a trained model: the last hundredths of a nat, and codes that do not pay.

Training ends with noise: step sizes have fallen before the dial saw everything. Where the information
is computed by quadrature, the decoder is projected along its gradient onto the constraint,

.. math:: \theta \leftarrow \theta - \frac{I(\theta) - M}{\|\nabla I\|^2} \nabla I ,

the shortest way to first order. At a constrained optimum the gradients of evidence and information are
parallel, so that a small correction costs the multiplier times its size and no more. A large miss is
left as it is: it says that training failed.

A plain autoencoder of normal data has the same evidence at every information
(:func:`linear_gaussian_optimum`), so that training wanders along a valley and stops anywhere in it; on a
finite sample the valley tilts towards whatever skewness the sample has by accident. Of models that the
rows cannot tell apart, the one with the least information is taken. The best model without a code is
known: a normal, or the frequencies of the symbols. With n rows, the code is dropped if all rows together
gain at most

.. math:: \sum_i \mathrm{ELBO}(x_i) - \log p_0(x_i) \le \log n ,

the price of two further numbers, one in the mean and one in the deviation, by Schwarz's criterion. So
dropping costs at most :math:`\log n / n` nats of evidence per row. If the sum is below :math:`-\log n`,
nothing is done: it says that training has not come far enough.

Schwarz 1978; Phuong 2021, section 4.6.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from pindown.learn.mutual_autoencoder.evaluation import evidence
from pindown.learn.mutual_autoencoder.information import differentiable_information, quick_information
from pindown.learn.mutual_autoencoder.networks import LEAST_LOG, normal_log_density
from pindown.learn.mutual_autoencoder.tuning import CORRECTED, MAX_CORRECTION, MAX_CORRECTIONS


def project_onto_target(decoder: Any, target: float) -> None:
    """Move a decoder with a one-dimensional code and one column onto its target, if it is close.

    Args:
        decoder: p(x | z), changed in place; as it was if that brings it no closer.
        target: M, in nats.
    """
    parameters = list(decoder.parameters())
    first = last = None
    for _ in range(MAX_CORRECTIONS):
        value = differentiable_information(decoder)
        miss = float(value.detach()) - target
        if first is None:
            first, last = miss, [p.detach().clone() for p in parameters]
            if abs(miss) > MAX_CORRECTION:
                return
        if abs(miss) < CORRECTED:
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


def drop_idle_code(networks: Any, rows: Tensor, proposals: int | None) -> tuple[float, bool]:
    """Make a model with one column ignore its code, if the code does not pay.

    Args:
        networks: Encoder, decoder and guess in float64, changed in place.
        rows: The training rows.
        proposals: Of the resampling encoder; None for the plain one.

    Returns:
        The nats of evidence that the code gains over all rows, and whether it was dropped.
    """
    outputs, without = _best_without(networks.decoder, rows)
    gain = float(evidence(networks.encoder, networks.decoder, rows, proposals).sum()) - without
    dropped = abs(gain) <= math.log(len(rows))
    if dropped:
        _make_constant(networks.decoder, outputs)
        for net in (networks.encoder, networks.guess):  # mean 0 and log deviation 0: the prior
            _make_constant(net, torch.zeros(()))
    return gain, dropped


def _best_without(decoder: Any, rows: Tensor) -> tuple[Tensor, float]:
    """Return the constant outputs of the best decoder without a code, and its evidence on all rows."""
    if hasattr(decoder, "sizes"):
        counts = torch.bincount(rows[:, 0], minlength=decoder.sizes[0]).double()
        outputs = (counts / counts.sum()).log()
        return outputs, float(counts @ outputs)
    mean = rows.mean(0)
    log_std = (rows - mean).square().mean(0).log().mul(0.5).clamp(min=LEAST_LOG)
    return torch.cat([mean, log_std]), float(normal_log_density(rows, mean, log_std).sum())


def _make_constant(net: Any, outputs: Tensor) -> None:
    with torch.no_grad():
        net.body[-1].weight.zero_()
        net.body[-1].bias.copy_(outputs.expand_as(net.body[-1].bias))
