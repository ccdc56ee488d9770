"""What a run may say: the rule's answer, if the run had what it takes to give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pindown_reproduction.experiment import Experiment, Outcome, Results
from pindown_reproduction.not_run import DECLARED

_RESAMPLES = 40
_STABLE = 0.9  # share of resamples that have to agree: of ten runs with other seeds nine should, too


def judge(experiment: Experiment, results: Results) -> Outcome:
    """Return the outcome, *underpowered* where the run cannot decide.

    Three things keep a run from deciding: too few draws; for a no, a size below the smallest at which
    the effect should show, or other data than the source's; and draws that do not agree, so that the
    same run with other seeds might say the opposite.

    Args:
        experiment: Its rule, and what the rule needs.
        results: All cells with what they gave.
    """
    outcome = experiment.compare(results)
    if outcome.verdict not in ("reproduced", "not reproduced"):
        return outcome
    reasons = _reasons(experiment, outcome, results) or _unstable(experiment, outcome, results)
    if not reasons:
        return outcome
    words = f"{outcome.words} Underpowered ({outcome.verdict} by the rule alone): {'; '.join(reasons)}."
    return replace(outcome, verdict="underpowered", words=words)


def remedy(experiment: Experiment, ran: str = "") -> str:
    """Return what would decide, after a run at some scale has not.

    Args:
        experiment: Which one.
        ran: The scale that was run.
    """
    scale = experiment.decides_at()
    if not scale:
        declared = [one.id for one in DECLARED.values() if experiment.id in one.instead.split(", ")]
        return f"the source's data ({', '.join(declared)})" if declared else "no scale here"
    if scale == ran:  # it had what it takes, and its seeds did not agree
        return f"more seeds: `pindown reproduce {experiment.id} --scale {scale} --seed 1`"
    return f"`pindown reproduce {experiment.id} --scale {scale}`"


def _reasons(experiment: Experiment, outcome: Outcome, results: Results) -> list[str]:
    cells, power = [cell for cell, _ in results], experiment.power
    reasons = power.too_few(cells)
    if outcome.verdict == "not reproduced":
        reasons += power.too_small(cells)
        reasons += power.unfit(results) if power.unfit is not None else []
        if other := experiment.data.foreign(results) if experiment.data is not None else "":
            reasons.append(f"{other}, which cannot refute it")
    return reasons


def _unstable(experiment: Experiment, outcome: Outcome, results: Results) -> list[str]:
    """Return a reason if the rule often says otherwise on seeds drawn again from those there are."""
    share = agreement(experiment, outcome, results)
    if share >= _STABLE:
        return []
    return [f"drawn again from the same seeds, the rule says the same in {share:.0%} of cases only"]


def agreement(experiment: Experiment, outcome: Outcome, results: Results) -> float:
    """Return the share of bootstrap samples of the seeds in which the rule has the same verdict.

    One where there are no seeds to draw from: each cell then holds all its draws.
    """
    seeds = list(dict.fromkeys(cell["seed"] for cell, _ in results if "seed" in cell))
    if len(seeds) < 2 or not experiment.power.seeds:
        return 1.0
    rng = np.random.default_rng(0)
    same = 0
    for _ in range(_RESAMPLES):
        chosen = [seeds[i] for i in rng.integers(len(seeds), size=len(seeds))]
        same += experiment.compare(_of_seeds(results, chosen)).verdict == outcome.verdict
    return same / _RESAMPLES


def _of_seeds(results: Results, chosen: Sequence[int]) -> Results:
    """Return the cells of these seeds, in their old order, as often as the seeds occur; others stay."""
    return [
        pair
        for pair in results
        for _ in range(chosen.count(pair[0]["seed"]) if "seed" in pair[0] else 1)
    ]
