r"""How often a random classifier errs on a sample: counted over draws of weights, then bounded.

A draw of weights classifies b rows of the n; a pass makes C = ceil(n / b) draws. R passes make N = C R
independent draws, whose shares of errors :math:`X_i = e_i / b` lie in [0, 1] and have the mean
:math:`n \hat L / (C b)`. So with probability at least :math:`1 - \delta'` over the draws

.. math::
    \hat L \le \frac{C b}{n} \,
        \mathrm{kl}^{-1}\Big(\frac1N \sum_i X_i, \; \frac{\log(1/\delta')}{N}\Big).

Where noise is drawn at the outputs of linear layers, b = 1 comes at the cost of a matrix product.

Hoeffding 1963, Theorem 1: independent, not necessarily identical; Langford and Caruana 2001.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from pindown.guarantees.bounds.bound import outward
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse
from pindown.guarantees.certificate._stages import Stage
from pindown.guarantees.certificate.modules import Examples
from pindown.guarantees.certificate.posterior import WeightPosterior
from pindown.guarantees.tuning import COUNTING_DRAWS, COUNTING_ROWS, MIN_COUNTING_PASSES
from pindown.validation import integer, probability


class Count(NamedTuple):
    """Errors over passes through a sample of n rows, with b rows per draw of weights."""

    errors: int
    n: int
    passes: int
    rows_per_draw: int

    @property
    def share(self) -> float:
        """Share of errors, an estimate of the risk on the sample."""
        return self.errors / (self.n * self.passes)

    @property
    def draws(self) -> int:
        """Independent draws of weights."""
        return math.ceil(self.n / self.rows_per_draw) * self.passes

    def risk_above(self, delta: float) -> float:
        """Return what the risk on the sample exceeds with probability at most delta over the draws.

        >>> round(Count(0, 1000, 1, 1).risk_above(0.05), 6) == round(1 - 0.05 ** (1 / 1000), 6)
        True
        """
        delta = probability("delta", delta)
        room = self.draws * self.rows_per_draw
        level = outward(-math.log(delta) / self.draws)
        inverse = float(small_kl_inverse(min(1.0, outward(self.errors / room)), level))
        return max(min(1.0, outward(inverse * room / (self.n * self.passes))), self.share)


def wrong(scores: Tensor, classes: Tensor) -> Tensor:
    """Return which rows are wrong: where the right class is not strictly ahead, or is NaN.

    >>> wrong(torch.tensor([[1.0, 2.0], [1.0, 1.0], [2.0, 1.0]]), torch.tensor([0, 0, 0]))
    tensor([ True,  True, False])
    """
    right = scores.gather(1, classes[:, None])
    others = scores.scatter(1, classes[:, None], -math.inf)
    return ~(right > others.max(1, keepdim=True).values)[:, 0]


def count_errors(
    posterior: WeightPosterior,
    examples: Examples,
    rows_per_draw: int,
    generator: torch.Generator,
    passes: int = 1,
) -> int:
    """Return the errors in so many passes; with noise at outputs, short ones are made together."""
    if not posterior.local:
        parts = batches(examples, rows_per_draw) * passes
    else:
        together = max(1, min(passes, COUNTING_ROWS // examples.n))
        stacked = examples.at(torch.arange(examples.n).repeat(together))
        rest = examples.at(torch.arange(examples.n).repeat(passes % together))
        parts = batches(stacked, COUNTING_ROWS) * (passes // together)
        parts += batches(rest, COUNTING_ROWS) if rest.n else []
    return sum(
        int(wrong(posterior.scores(batch.inputs, generator), batch.classes).sum()) for batch in parts
    )


def batches(examples: Examples, size: int) -> list[Examples]:
    """Return the examples in order, so many at a time."""
    parts = zip(examples.inputs.split(size), examples.classes.split(size), strict=True)
    return [Examples(inputs, classes) for inputs, classes in parts]


def module_errors(module: torch.nn.Module, examples: Examples) -> int:
    """Return the errors of a network without noise."""
    from pindown.guarantees.certificate.modules import class_scores

    with torch.no_grad():
        return sum(
            int(wrong(class_scores(module(batch.inputs)), batch.classes).sum())
            for batch in batches(examples, COUNTING_ROWS)
        )


def plan(n: int, local: bool, draws: int | None) -> tuple[int, int]:
    """Return passes and rows per draw for so many draws, or a default.

    >>> plan(30_000, True, None), plan(30_000, False, 20_000), plan(100, False, 20_000)
    ((34, 1), (4, 6), (200, 1))
    """
    wanted = COUNTING_DRAWS[local] if draws is None else integer("draws", draws)
    rows = 1 if local else max(1, MIN_COUNTING_PASSES * n // wanted)
    return max(1, math.ceil(wanted / math.ceil(n / rows))), rows


def evaluate(
    posterior: WeightPosterior,
    examples: Examples,
    rows_per_draw: int,
    stage: Stage,
    generator: torch.Generator,
) -> tuple[Count, bool]:
    """Count errors over the stage's passes; an interrupt keeps the complete ones.

    The number of passes must not depend on the errors: time and interrupts do not look at them.

    Returns:
        The count, and whether it was interrupted.
    """
    errors = passes = 0
    stopped = False
    together = max(1, min(stage.total, COUNTING_ROWS // examples.n)) if posterior.local else 1
    try:
        for step in stage.steps(together):
            more = min(together, stage.total - step)
            errors += count_errors(posterior, examples, rows_per_draw, generator, more)
            passes += more
    except KeyboardInterrupt:
        if not passes:
            raise
        warnings.warn("interrupted: the certificate rests on fewer draws", stacklevel=3)
        stopped = True
    return Count(errors, examples.n, passes, rows_per_draw), stopped
