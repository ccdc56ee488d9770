"""One run of certify: its settings, its clock, and its three stages."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass, field

import torch
from torch import nn

from pindown.guarantees.bounds.pac_bayes import maurer_bound
from pindown.guarantees.certificate.clock import Stage
from pindown.guarantees.certificate.descent import Moves, Prior, descend
from pindown.guarantees.certificate.evaluation import Count, count_errors, evaluate, plan
from pindown.guarantees.certificate.examples import Examples
from pindown.guarantees.certificate.posterior import WeightPosterior
from pindown.guarantees.certificate.prior import around, train

_MONTE_CARLO_SHARE = 0.1  # of delta; draws are cheap, so they get little of it
_LEAST_EPOCHS, _MOST_EPOCHS, _ENOUGH_STEPS = 20, 100, 2000
_LEAST_BATCH, _MOST_BATCH, _BATCHES = 16, 128, 30
_LOOKS = 8  # at the bound while it falls
_LOOK_TRIALS, _LOOK_ROWS = 20_000, 200  # predictions per look; rows per draw where layers are not linear
# Shares of the budget at which the prior's training and the posterior's end; counting gets the rest.
_PRIOR_UNTIL, _POSTERIOR_UNTIL = 0.5, 0.8
_LITTLE_NOISE = 0.03  # of the size of weights: most networks bear it
_HURRY = 10  # so many times fewer draws after an interrupt


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
    budget: float | None
    verbose: int
    interrupted: bool = False
    late: bool = False
    start: float = field(default_factory=time.monotonic)

    @property
    def monte_carlo_delta(self) -> float:
        """Part of delta for the count of errors."""
        return self.delta * _MONTE_CARLO_SHARE

    @property
    def sample_delta(self) -> float:
        """The rest, for the draw of the examples; rounded down so that both sum to delta at most."""
        return math.nextafter(self.delta - self.monte_carlo_delta, 0.0)

    def train(self, network: nn.Module, examples: Examples, generator: torch.Generator) -> None:
        """Train the prior's mean, in place."""
        size = self.batch_size
        if size is None:
            size = min(max(examples.n // _BATCHES, _LEAST_BATCH), _MOST_BATCH)
        per_epoch = max(1, examples.n // min(size, examples.n))
        epochs = self.epochs
        if epochs is None:
            epochs = min(max(_ENOUGH_STEPS // per_epoch, _LEAST_EPOCHS), _MOST_EPOCHS)
        stage = self._stage("training the prior", epochs * per_epoch, _PRIOR_UNTIL)
        self.interrupted |= train(
            network, examples, stage, size, self.learning_rate, self.dropout, generator
        )
        self.late |= stage.late

    def surround(
        self, network: nn.Module, examples: Examples, local: bool, generator: torch.Generator
    ) -> tuple[Prior, float]:
        """Return the prior and its noise, chosen on its part; little noise after an interrupt."""
        try:
            return around(network, examples, local, self.noise, generator)
        except KeyboardInterrupt:
            warnings.warn("interrupted: the prior has little noise", stacklevel=3)
            self.interrupted = True
            return around(network, examples, local, _LITTLE_NOISE, generator)

    def move(self, prior: Prior, examples: Examples, generator: torch.Generator) -> WeightPosterior:
        """Return the posterior with the lowest bound on the way, the prior included."""
        best = Moves.none(prior.means())
        if not self.steps or self.interrupted:
            return prior.moved(best)
        seed = int(torch.randint(2**31, (), generator=generator))
        lowest = math.inf

        def watch(moves: Moves) -> None:
            nonlocal best, lowest
            value = self._look(prior.moved(moves), examples, seed)
            if value < lowest:
                best, lowest = moves.copy(), value

        stage = self._stage("lowering the bound", self.steps, _POSTERIOR_UNTIL)
        every = max(1, self.steps // _LOOKS)
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
            passes = math.ceil(passes / _HURRY)
        stage = self._stage("counting errors", passes, 1.0)
        counted, stopped = evaluate(posterior, examples, rows, stage, generator)
        self.interrupted |= stopped
        self.late |= counted.passes < passes
        return counted

    def _stage(self, what: str, total: int, until: float) -> Stage:
        deadline = None if self.budget is None else self.start + until * self.budget
        return Stage(what, total, deadline, self.verbose)

    def _look(self, posterior: WeightPosterior, examples: Examples, seed: int) -> float:
        """Return about what the bound is; equal seeds make posteriors comparable."""
        generator = torch.Generator().manual_seed(seed)
        trials = _LOOK_TRIALS if self.draws is None else min(self.draws, _LOOK_TRIALS)
        passes = math.ceil(trials / examples.n)
        errors = count_errors(posterior, examples, _LOOK_ROWS, generator, passes)
        kl = posterior.kl()
        if not math.isfinite(kl):
            return math.inf
        return maurer_bound(errors / (passes * examples.n), kl, examples.n, self.sample_delta).value
