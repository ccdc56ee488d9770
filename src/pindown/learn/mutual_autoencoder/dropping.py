r"""A plain autoencoder whose code does not pay: it is dropped.

On normal data the evidence is the same at every information (:func:`linear_gaussian_optimum`), so that
training wanders along a valley and stops anywhere in it; on a finite sample the valley tilts towards
whatever skewness the sample has by accident. Of models that the rows cannot tell apart, the one with the
least information is taken. The best model without a code is known: a normal, or the frequencies of the
symbols. With n rows, the code is dropped if all rows together gain at most

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

from pindown.learn.mutual_autoencoder import evaluation
from pindown.learn.mutual_autoencoder.networks import LEAST_LOG, normal_log_density


def drop_idle_code(parts: Any, rows: Tensor, proposals: int | None) -> tuple[float, bool]:
    """Make a model with one column ignore its code, if the code does not pay.

    Args:
        parts: Encoder, decoder and guess in float64, changed in place.
        rows: The training rows.
        proposals: Of the resampling encoder; None for the plain one.

    Returns:
        The nats of evidence that the code gains over all rows, and whether it was dropped.
    """
    outputs, without = _best_without(parts.decoder, rows)
    gain = float(evaluation.evidence(parts.encoder, parts.decoder, rows, proposals).sum()) - without
    dropped = abs(gain) <= math.log(len(rows))
    if dropped:
        _make_constant(parts.decoder, outputs)
        for net in (parts.encoder, parts.guess):  # mean 0 and log deviation 0: the prior
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
