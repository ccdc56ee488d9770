"""The prior: a network trained on the part that does not certify, and how much noise it bears there."""

from __future__ import annotations

import math
import warnings

import torch
from torch import nn

from pindown.guarantees.certificate.clock import Stage
from pindown.guarantees.certificate.descent import Moves, Prior
from pindown.guarantees.certificate.evaluation import count_errors, module_errors
from pindown.guarantees.certificate.examples import Examples
from pindown.guarantees.certificate.modules import class_scores, dropped_inputs

_WARM_UP = 0.05  # share of the steps in which the rate rises
# Noise relative to the size of a tensor's weights, from none to speak of to as large as they are.
_NOISE_LEVELS = tuple(2.0 ** (-k / 2) for k in range(21))
# Noise may cost so much, over the root of the number of examples: little beside what chance does anyway.
_NOISE_COST = 0.02
_LEAST_TRIALS = 20_000  # predictions from which the cost is read
_FEW_PASSES, _ROWS = 4, 200  # where a draw serves several rows


def train(
    module: nn.Module,
    examples: Examples,
    stage: Stage,
    batch_size: int,
    rate: float,
    dropout: float,
    generator: torch.Generator,
) -> bool:
    """Train by cross entropy, in place; leave the module in evaluation mode.

    Args:
        module: Starts where its parameters are.
        examples: The part of the prior.
        stage: Counts the steps; its progress lets the rate rise, then fall to zero.
        batch_size: Examples per step.
        rate: Largest rate of Adam.
        dropout: Share of inputs dropped before every layer, half of it before the first.
        generator: Of batches.

    Returns:
        Whether it was interrupted.

    Raises:
        ValueError: If a weight is not finite in the end.
    """
    moving = [p for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(moving, lr=rate)
    size, stopped = min(batch_size, examples.n), False
    module.train()
    order = torch.empty(0, dtype=torch.int64)
    try:
        with dropped_inputs(module, dropout):
            for _ in stage.steps():
                if len(order) < size:
                    order = torch.randperm(examples.n, generator=generator)
                batch, order = examples.at(order[:size]), order[size:]
                for group in optimiser.param_groups:
                    group["lr"] = rate * _schedule(stage.progress)
                optimiser.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(class_scores(module(batch.inputs)), batch.classes).backward()
                optimiser.step()
    except KeyboardInterrupt:
        warnings.warn("interrupted: the prior is the network so far", stacklevel=3)
        stopped = True
    module.eval()
    if not all(bool(torch.isfinite(p).all()) for p in moving):
        raise ValueError(
            f"training diverged with learning_rate={rate:g}; scale X to unit size, or lower the rate."
        )
    return stopped


def _schedule(progress: float) -> float:
    """Return a share of the rate: up in a line, down in half a cosine.

    >>> _schedule(0.05), round(_schedule(1.0), 9)
    (1.0, 0.0)
    """
    if progress < _WARM_UP:
        return max(progress / _WARM_UP, _WARM_UP)
    return 0.5 * (1.0 + math.cos(math.pi * (progress - _WARM_UP) / (1.0 - _WARM_UP)))


def around(
    module: nn.Module, examples: Examples, local: bool, noise: float | None, generator: torch.Generator
) -> tuple[Prior, float]:
    """Put the largest Gaussian around a network under which it still gets the prior's part right.

    Args:
        module: Its parameters are the means.
        examples: The part of the prior: what is chosen here costs nothing.
        local: Whether noise is drawn at the outputs of layers.
        noise: Deviation relative to the root mean square of a tensor's weights; None chooses it.
        generator: Of the noise.

    Returns:
        The prior and its noise.
    """
    if noise is not None:
        return Prior(module, _scales(module, noise), local), noise
    few = examples.at(torch.randperm(examples.n, generator=generator)[:_LEAST_TRIALS])
    passes = math.ceil(_LEAST_TRIALS / few.n) if local else _FEW_PASSES
    allowed = module_errors(module, few) / few.n + _NOISE_COST / math.sqrt(examples.n)
    for level in _NOISE_LEVELS:
        prior = Prior(module, _scales(module, level), local)
        posterior = prior.moved(Moves.none(prior.means()))
        errors = count_errors(posterior, few, _ROWS, generator, passes)
        if errors <= allowed * few.n * passes:
            break
    return prior, level


def _scales(module: nn.Module, noise: float) -> dict[str, float]:
    """Return a deviation for each tensor that learns, in proportion to the size of its numbers."""
    scales = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            size = float(parameter.detach().double().square().mean().sqrt())
            # A tensor of zeros, such as biases that never moved, gets the size weights start with.
            scales[name] = noise * (size or 1.0 / math.sqrt(parameter.numel()))
    return scales
