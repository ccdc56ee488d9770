"""Do two classifiers ever choose different classes?"""

from __future__ import annotations

import time

from pindown.box import Box
from pindown.equivalence.comparison.result import LabelDiff, verdict_of
from pindown.equivalence.gap import GapState
from pindown.equivalence.gap.labels import narrow_labels, proved_label_gap, search_labels
from pindown.network import ReluNetwork

_SEARCH_SECONDS = 1.0


def unsearched(margin: float, gap: GapState) -> LabelDiff:
    """Return what the gap of the values alone says about labels."""
    return LabelDiff(verdict_of(0.0, gap.upper, margin), margin, 0.0, gap.upper, None, None)


def compare_labels(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None,
    margin: float,
    gap: GapState,
    deadline: float,
    seed: int,
    n_jobs: int | None = None,
) -> LabelDiff:
    r"""Bound the largest disagreement of two classifiers.

    With :math:`g = \max_k |a_k - b_k|` a disagreement is at most g, because
    :math:`\min(a_i - a_j, b_j - b_i) \le \tfrac12 (a_i - b_i + b_j - a_j) \le g`, so what is proved
    about the gap of the values is used first.

    Args:
        a: A network with two or more outputs.
        b: Another.
        box: The inputs, or None for all of them, in the relative sense.
        margin: The disagreement asked about.
        gap: What is proved about the gap of the values.
        deadline: When to stop, as ``time.monotonic()`` counts.
        seed: Chooses the points of the search.
        n_jobs: Workers for branch and bound.
    """
    upper = gap.upper
    left = max(0.0, deadline - time.monotonic())
    if upper <= margin:
        lower, witness = 0.0, None
    elif box is None:
        found = search_labels(a, b, None, margin=margin, budget=min(_SEARCH_SECONDS, left), seed=seed)
        lower, witness = found.gap, found.point
    else:
        state = narrow_labels(a, b, box, margin=margin, deadline=deadline, seed=seed, n_jobs=n_jobs)
        lower, witness, upper = state.lower, state.witness, min(upper, state.upper)
    labels = None
    if witness is not None and lower > 0:
        there = proved_label_gap(a, b, witness, relative=box is None)
        labels = (there.first, there.second)
    return LabelDiff(verdict_of(lower, upper, margin), margin, lower, upper, witness, labels)
