"""The prior: a network trained on the part that does not certify, and how much noise it bears there."""

from __future__ import annotations

import math
import warnings

import torch
from torch import nn

from pindown.guarantees.certificate._evaluation import count_errors, module_errors
from pindown.guarantees.certificate._stages import Stage
from pindown.guarantees.certificate.modules import Examples, class_scores, dropped_inputs
from pindown.guarantees.certificate.posterior import Moves, Prior
from pindown.guarantees.tuning import (
    MIN_NOISE_PASSES,
    MIN_NOISE_TRIALS,
    NOISE_COST,
    NOISE_LEVELS,
    NOISE_ROWS,
    WARM_UP_SHARE,
)


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
    if progress < WARM_UP_SHARE:
        return max(progress / WARM_UP_SHARE, WARM_UP_SHARE)
    return 0.5 * (1.0 + math.cos(math.pi * (progress - WARM_UP_SHARE) / (1.0 - WARM_UP_SHARE)))


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
    few = examples.at(torch.randperm(examples.n, generator=generator)[:MIN_NOISE_TRIALS])
    passes = math.ceil(MIN_NOISE_TRIALS / few.n) if local else MIN_NOISE_PASSES
    allowed = module_errors(module, few) / few.n + NOISE_COST / math.sqrt(examples.n)
    for level in NOISE_LEVELS:
        prior = Prior(module, _scales(module, level), local)
        posterior = prior.moved(Moves.none(prior.means()))
        errors = count_errors(posterior, few, NOISE_ROWS, generator, passes)
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
