"""One run of certify: its settings, its clock, and its three stages."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import torch
from torch import nn

from pindown.deadline import NEVER, Deadline
from pindown.guarantees.bounds.pac_bayes import maurer_bound
from pindown.guarantees.certificate._evaluation import Count, count_errors, evaluate, module_errors, plan
from pindown.guarantees.certificate._stages import Stage
from pindown.guarantees.certificate.modules import Examples, class_scores, dropped_inputs
from pindown.guarantees.certificate.posterior import Moves, Prior, WeightPosterior, descend
from pindown.guarantees.tuning import (
    BOUND_LOOKS,
    ENOUGH_PRIOR_STEPS,
    INTERRUPTED_FEWER_DRAWS,
    LITTLE_NOISE,
    LOOK_ROWS,
    LOOK_TRIALS,
    MAX_PRIOR_BATCH,
    MAX_PRIOR_EPOCHS,
    MIN_NOISE_PASSES,
    MIN_NOISE_TRIALS,
    MIN_PRIOR_BATCH,
    MIN_PRIOR_EPOCHS,
    MONTE_CARLO_DELTA_SHARE,
    NOISE_COST,
    NOISE_LEVELS,
    NOISE_ROWS,
    NOISE_UNTIL,
    POSTERIOR_UNTIL,
    PRIOR_BATCHES,
    WARM_UP_SHARE,
)


@dataclass
class Run:
    """Settings as :func:`certify` takes them, and whether something was cut short."""

    delta: float
    epochs: int | None
    learning_rate: float
    batch_size: int | None
    dropout: float
    noise: float | None
    steps: int
    draws: int | None
    deadline: Deadline
    verbose: int
    interrupted: bool = False
    late: bool = False

    @property
    def monte_carlo_delta(self) -> float:
        """Part of delta for the count of errors."""
        return self.delta * MONTE_CARLO_DELTA_SHARE

    @property
    def sample_delta(self) -> float:
        """The rest, for the draw of the examples; rounded down so that both sum to delta at most."""
        return math.nextafter(self.delta - self.monte_carlo_delta, 0.0)

    def train(
        self, network: nn.Module, examples: Examples, generator: torch.Generator, until: float
    ) -> None:
        """Train the prior's mean, in place, for this share of the time at most."""
        size = self.batch_size
        if size is None:
            size = min(max(examples.n // PRIOR_BATCHES, MIN_PRIOR_BATCH), MAX_PRIOR_BATCH)
        per_epoch = max(1, examples.n // min(size, examples.n))
        epochs = self.epochs
        if epochs is None:
            epochs = min(max(ENOUGH_PRIOR_STEPS // per_epoch, MIN_PRIOR_EPOCHS), MAX_PRIOR_EPOCHS)
        stage = self._stage("training the prior", epochs * per_epoch, until)
        self.interrupted |= train(
            network, examples, stage, size, self.learning_rate, self.dropout, generator
        )
        self.late |= stage.late

    def surround(
        self, network: nn.Module, examples: Examples, local: bool, generator: torch.Generator
    ) -> tuple[Prior, float]:
        """Return the prior and its noise, chosen on its part; little of it if there is no time."""
        try:
            end = self._until(NOISE_UNTIL)
            prior, level = around(network, examples, local, self.noise, generator, end)
            self.late |= end.passed
            return prior, level
        except KeyboardInterrupt:
            warnings.warn("interrupted: the prior has little noise", stacklevel=3)
            self.interrupted = True
            return around(network, examples, local, LITTLE_NOISE, generator)

    def move(self, prior: Prior, examples: Examples, generator: torch.Generator) -> WeightPosterior:
        """Return the posterior with the lowest bound on the way, the prior included."""
        best = Moves.none(prior.means())
        if not self.steps or self.interrupted or self._until(NOISE_UNTIL).passed:
            return prior.moved(best)
        seed = int(torch.randint(2**31, (), generator=generator))
        lowest = math.inf

        def watch(moves: Moves) -> None:
            nonlocal best, lowest
            value = self._look(prior.moved(moves), examples, seed)
            if value < lowest:
                best, lowest = moves.copy(), value

        stage = self._stage("lowering the bound", self.steps, POSTERIOR_UNTIL)
        every = max(1, self.steps // BOUND_LOOKS)
        try:
            watch(best)
            descend(prior, examples, self.sample_delta, stage, generator, watch, every)
        except KeyboardInterrupt:
            warnings.warn("interrupted: the best posterior so far is certified", stacklevel=3)
            self.interrupted = True
        self.late |= stage.late
        return prior.moved(best)

    def count(self, posterior: WeightPosterior, examples: Examples, generator: torch.Generator) -> Count:
        """Count errors over fresh draws, which neither the prior nor the posterior has seen."""
        passes, rows = plan(examples.n, posterior.local, self.draws)
        if self.interrupted:
            passes = math.ceil(passes / INTERRUPTED_FEWER_DRAWS)
        stage = self._stage("counting errors", passes, 1.0)
        counted, stopped = evaluate(posterior, examples, rows, stage, generator)
        self.interrupted |= stopped
        self.late |= counted.passes < passes
        return counted

    def _stage(self, what: str, total: int, until: float) -> Stage:
        return Stage(what, total, self._until(until), self.verbose)

    def _until(self, share: float) -> Deadline:
        start, end = self.deadline.start, self.deadline.end
        return Deadline(start + share * (end - start))

    def _look(self, posterior: WeightPosterior, examples: Examples, seed: int) -> float:
        """Return about what the bound is; equal seeds make posteriors comparable."""
        generator = torch.Generator().manual_seed(seed)
        trials = LOOK_TRIALS if self.draws is None else min(self.draws, LOOK_TRIALS)
        passes = math.ceil(trials / examples.n)
        errors = count_errors(posterior, examples, LOOK_ROWS, generator, passes)
        kl = posterior.kl()
        if not math.isfinite(kl):
            return math.inf
        return maurer_bound(errors / (passes * examples.n), kl, examples.n, self.sample_delta).value


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
        generator: Source of batches.

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
    module: nn.Module,
    examples: Examples,
    local: bool,
    noise: float | None,
    generator: torch.Generator,
    deadline: Deadline = NEVER,
) -> tuple[Prior, float]:
    """Put the largest Gaussian around a network under which it still gets the prior's part right.

    Args:
        module: Its parameters are the means.
        examples: The part of the prior: what is chosen here costs nothing.
        local: Whether noise is drawn at the outputs of layers.
        noise: Deviation relative to the root mean square of a tensor's weights; None chooses it.
        generator: Source of the noise.
        deadline: When to take a little noise instead of looking on.

    Returns:
        The prior and its noise.
    """
    if noise is not None:
        return Prior(module, _scales(module, noise), local), noise
    few = examples.at(torch.randperm(examples.n, generator=generator)[:MIN_NOISE_TRIALS])
    passes = math.ceil(MIN_NOISE_TRIALS / few.n) if local else MIN_NOISE_PASSES
    allowed = module_errors(module, few) / few.n + NOISE_COST / math.sqrt(examples.n)
    for level in NOISE_LEVELS:
        if deadline.passed:
            return around(module, examples, local, min(level, LITTLE_NOISE), generator)
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
