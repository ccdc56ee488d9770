"""Pairs of networks that stand for the given ones: their units paired, both made smaller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pindown.box import Box
from pindown.equivalence.comparison.matching import Matching, match
from pindown.equivalence.comparison.paired import align_exactly, layer_differences
from pindown.equivalence.comparison.run import Comparison
from pindown.equivalence.sensitivity.changes import gap_of_changes
from pindown.equivalence.shrinking import Shrunk, shrink_and_settle
from pindown.network import ReluNetwork
from pindown.rounding import add_up, norm_up, product_up

# Of the time left: for bounding the gap of paired networks, and for making each network smaller.
_PAIRED_SHARE = 0.35
_CORNERS_SHARE = 0.85  # if all that differs are a few biases of one layer
_SHRINK_SHARE = 0.25
# Of the tolerance: what reductions may cost. Symmetries and exports round, so that what is redundant is
# so only up to rounding.
_SHRINK_LOSS = 0.15
# Rows that differ by more are not the same unit any more: their bounds would say nothing.
_PAIRED_TOLERANCE = 0.3


@dataclass(frozen=True)
class Pair:
    """Two networks that stand for the given ones; ``slack`` is what that may add to their gap."""

    a: ReluNetwork
    b: ReluNetwork
    slack: float = 0.0
    tried: bool = False


def paired(run: Comparison, pair: Pair) -> Pair:
    """Pair the units and bound what still differs; put b's units in a's order, if they pair."""
    if pair.tried or pair.a.widths != pair.b.widths:
        return pair
    run.say("pairing units")
    try:
        matching = match(pair.a, pair.b, deadline=run.deadline)
    except TimeoutError:
        return replace(pair, tried=True)
    if matching.symmetry is not None:
        run.layers = layer_differences(matching, pair.a)
    if not _pairs(matching) or not run.left:
        return replace(pair, tried=True)
    target, budget = max(0.0, run.tol - pair.slack), _PAIRED_SHARE * run.left
    how = {"target": target, "budget": budget, "longest": _CORNERS_SHARE * run.left}
    bound = gap_of_changes(pair.a, matching.changes, box=run.box, **how)
    run.take(f"units paired: {bound.method}", upper=float(add_up(bound.value, pair.slack)))
    aligned = align_exactly(pair.b, matching) if run.goes_on else None
    return replace(pair, b=pair.b if aligned is None else aligned, tried=True)


def _pairs(matching: Matching) -> bool:
    """Return whether the pairing is good enough to say something about the gap."""
    if matching.symmetry is None or "opposite" in matching.reason:
        return False
    return max(matching.residuals) <= _PAIRED_TOLERANCE


def smaller(run: Comparison, pair: Pair, box: Box | None) -> tuple[Pair, Callable[[], Pair]]:
    """Shrink both by what holds on the box (None: everywhere); on demand also by their kinks alone."""
    run.say("looking for smaller networks")
    growth = _growth(box, run.box)
    loss = _SHRINK_LOSS * run.tol / growth
    found = [
        shrink_and_settle(net, box=box, tol=loss, budget=_SHRINK_SHARE * run.left)
        for net in (pair.a, pair.b)
    ]

    def settled() -> Pair:
        return _standing_for(run, pair, [settle() for _, settle in found], growth)

    small = [shrunk for shrunk, _ in found]
    return _standing_for(run, pair, small, growth, record=True), settled


def _standing_for(
    run: Comparison, pair: Pair, found: list[Shrunk], growth: float, *, record: bool = False
) -> Pair:
    """Return the pair of reduced networks, with what the reduction may have cost."""
    if not any(shrunk.steps for shrunk in found):
        return pair
    slack = pair.slack
    for name, shrunk in zip(("first", "second"), found, strict=True):
        slack = float(add_up(slack, product_up([shrunk.gap_upper, growth])))
        run.by_programs |= shrunk.by_programs
        if record:
            run.steps += tuple(f"{name} network: {step}" for step in shrunk.steps)
    return Pair(found[0].network, found[1].network, slack)


def _growth(proved_on: Box | None, wanted: Box | None) -> float:
    """Return what a gap is multiplied by where it is wanted: one relative to 1 + |x| grows on a box."""
    if wanted is None or proved_on is not None:
        return 1.0
    return float(add_up(1.0, norm_up(np.maximum(np.abs(wanted.lower), np.abs(wanted.upper)))))
