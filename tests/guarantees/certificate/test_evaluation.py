"""Counting errors over draws: the correction holds as often as it says, also for unequal rows."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.special import rel_entr
from scipy.stats import beta, binom
from torch import nn

from pindown.guarantees.certificate._evaluation import Count, count_errors, evaluate, plan, wrong
from pindown.guarantees.certificate._stages import Stage
from pindown.guarantees.certificate.modules import Examples
from pindown.guarantees.certificate.posterior import WeightPosterior


@pytest.mark.parametrize("rows", [1, 4, 7])
def test_risk_above_fails_at_most_as_often_as_delta(rows):
    # Rows of different difficulty; the rows of one draw err together, which is the worst case.
    rng = np.random.default_rng(rows)
    n, passes, delta, trials = 50, 2, 0.1, 3000
    chunks = -(-n // rows)
    chances = rng.random(chunks) * 0.3
    sizes = np.full(chunks, rows)
    sizes[-1] = n - rows * (chunks - 1)
    truth = float(chances @ sizes / n)
    errors = ((rng.random((trials, passes, chunks)) < chances) * sizes).sum(axis=(1, 2))
    above = {e: Count(int(e), n, passes, rows).risk_above(delta) for e in np.unique(errors)}
    found = np.array([above[e] for e in errors])
    assert binom.cdf((found < truth).sum() - 1, trials, delta) < 0.999
    plain = np.mean(errors / (n * passes) < truth)
    assert plain > 2 * delta  # the count without correction is below the truth about every other time


def test_close_to_the_exact_binomial_limit_and_above_it():
    for errors in (0, 3, 40, 500, 1000):
        limit = beta.ppf(0.95, errors + 1, 1000 - errors) if errors < 1000 else 1.0
        found = Count(errors, 100, 10, 1).risk_above(0.05)
        assert limit - 1e-12 <= found <= limit + 0.02


@pytest.mark.parametrize(("n", "passes", "rows"), [(50, 3, 7), (40, 5, 1), (9, 4, 9)])
def test_risk_above_from_its_formula(n, passes, rows):
    """Draws that serve several rows count once, and the last one of a pass serves fewer."""
    chunks, delta = -(-n // rows), 0.07
    assert Count(0, n, passes, rows).draws == chunks * passes
    none = Count(0, n, passes, rows).risk_above(delta)
    assert none == pytest.approx(chunks * rows / n * (1 - delta ** (1 / (chunks * passes))))
    errors = n * passes // 5
    p = Count(errors, n, passes, rows).risk_above(delta) * n / (chunks * rows)
    q = errors / (chunks * rows * passes)
    assert rel_entr(q, p) + rel_entr(1 - q, 1 - p) == pytest.approx(-np.log(delta) / (chunks * passes))


def sure_posterior(local):
    """Weights that are 1 and 0 up to 1e-9: rows with a negative input are wrong, always."""
    network = nn.Linear(1, 1).eval()
    means = {"weight": torch.ones(1, 1), "bias": torch.zeros(1)}
    scales = {name: torch.full_like(mean, 1e-9) for name, mean in means.items()}
    return WeightPosterior(network, dict.fromkeys(means, 1.0), means, scales, local)


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("passes", [1, 4, 6, 11])
def test_every_pass_counts_every_row(local, passes):
    """Passes over short samples are made four at a time, and two or three are left over."""
    x = torch.linspace(-1, 1, 1001)[:, None]
    examples = Examples(x, torch.ones(1001, dtype=torch.int64))
    stage, generator = Stage("counting", passes), torch.Generator().manual_seed(0)
    counted, stopped = evaluate(sure_posterior(local), examples, 100, stage, generator)
    assert counted in [Count(e * passes, 1001, passes, 100) for e in (500, 501)] and not stopped
    errors = [count_errors(sure_posterior(local), examples, 100, generator, k) for k in (1, passes)]
    assert errors[1] == pytest.approx(passes * 500.5, abs=passes)


def test_bounded_risk_grows_with_errors_and_falls_with_passes():
    values = [Count(e, 100, 1, 8).risk_above(0.05) for e in range(101)]
    assert all(a <= b for a, b in pairwise(values)) and values[-1] == 1.0
    assert all(value >= e / 100 for e, value in enumerate(values))
    assert Count(100, 100, 10, 1).risk_above(0.05) < Count(10, 100, 1, 1).risk_above(0.05)


def test_ties_and_nan_are_errors():
    scores = torch.tensor([[0.0, 0.0], [np.nan, 1.0], [1.0, np.nan], [1.0, 0.0], [np.inf, np.inf]])
    assert wrong(scores, torch.zeros(5, dtype=torch.int64)).tolist() == [True, True, True, False, True]


@pytest.mark.parametrize("n", [1, 3, 100, 5000, 30_000])
@pytest.mark.parametrize("local", [True, False])
def test_plan_makes_the_draws_that_were_asked_for(n, local):
    passes, rows = plan(n, local, 2000)
    assert Count(0, n, passes, rows).draws >= 2000
    assert rows == 1 or not local
