"""Pairs of networks that stand for the given ones: their units paired, both made smaller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pindown.box import Box
from pindown.deadline import Deadline, OutOfTime
from pindown.equivalence.comparison._run import Pair, Run
from pindown.equivalence.comparison.matching import Matching, align_exactly, layer_differences, match
from pindown.equivalence.sensitivity.changes import gap_of_changes
from pindown.equivalence.shrinking import Shrunk, shrink_and_settle
from pindown.equivalence.tuning import FEW_BIASES_SHARE, MAX_PAIRED_RESIDUAL, REDUCTION_LOSS
from pindown.evidence import Bracket
from pindown.rounding import add_up, norm_up, product_up


def paired(run: Run, turn: Callable[[], Deadline]) -> None:
    """Pair the units and bound what still differs; put b's units in a's order, if they pair."""
    pair = run.pair
    if pair.matched or pair.a.widths != pair.b.widths:
        return
    run.say("pairing units")
    run.work_on(replace(pair, matched=True))
    try:
        matching = match(pair.a, pair.b, deadline=run.deadline)
    except OutOfTime:
        return
    if matching.symmetry is not None:
        run.layers = layer_differences(matching, pair.a)
    if not _is_close(matching) or run.deadline.passed:
        return
    longest = FEW_BIASES_SHARE * run.slot.left  # if all that differs are a few biases of one layer
    bound = gap_of_changes(
        pair.a,
        matching.changes,
        box=run.box,
        target=run.tol_of_pair or 0.0,
        budget=turn().left,
        longest=longest,
    )
    run.take(f"units paired: {bound.method}", Bracket(0.0, bound.value))
    aligned = None if run.over else align_exactly(pair.b, matching)
    if aligned is not None:
        run.work_on(replace(pair, b=aligned, matched=True))


def _is_close(matching: Matching) -> bool:
    """Return whether the pairing is good enough to say something about the gap."""
    if matching.symmetry is None or "opposite" in matching.reason:
        return False
    return max(matching.residuals) <= MAX_PAIRED_RESIDUAL


def reduced(run: Run, turn: Callable[[], Deadline], *, on_box: bool) -> None:
    """Shrink both by what holds on the box, or for every input; offer them by their kinks alone."""
    run.say("looking for smaller networks")
    pair, box = run.pair, run.box if on_box else None
    growth = _growth(box, run.box)
    loss = REDUCTION_LOSS * (run.tol or 0.0) / growth
    found = [shrink_and_settle(net, box=box, tol=loss, budget=turn().left) for net in (pair.a, pair.b)]

    def by_kinks() -> Pair:
        return _standing_for(run, pair, [settle() for _, settle in found], growth)

    small = [shrunk for shrunk, _ in found]
    for name, shrunk in zip(("first", "second"), small, strict=True):
        run.steps += tuple(f"{name} network: {step}" for step in shrunk.steps)
    run.work_on(_standing_for(run, pair, small, growth))
    run.by_kinks = by_kinks


def paired_by_kinks(run: Run, turn: Callable[[], Deadline]) -> None:
    """Pair the units of both networks written by their kinks alone, and go back to the smaller ones."""
    if run.by_kinks is None:
        return
    smaller = run.pair
    run.work_on(run.by_kinks())
    paired(run, turn)
    run.work_on(smaller)


def _standing_for(run: Run, pair: Pair, found: list[Shrunk], growth: float) -> Pair:
    """Return the pair of reduced networks, with what the reduction may have cost."""
    if not any(shrunk.steps for shrunk in found):
        return pair
    slack = pair.slack
    for shrunk in found:
        slack = float(add_up(slack, product_up([shrunk.gap_upper, growth])))
        run.by_programs |= shrunk.by_programs
    return Pair(found[0].network, found[1].network, slack)


def _growth(proved_on: Box | None, wanted: Box | None) -> float:
    """Return what a gap is multiplied by where it is wanted: one relative to 1 + |x| grows on a box."""
    if wanted is None or proved_on is not None:
        return 1.0
    return float(add_up(1.0, norm_up(np.maximum(np.abs(wanted.lower), np.abs(wanted.upper)))))
