"""The gap of two models that have no exact normal form: what linear bounds and a search can say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.equivalence.comparison._branching import branch
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.tuning import GRAPH_STARTS, MAX_BRANCH_INPUTS
from pindown.evidence import Bracket
from pindown.rounding import gamma, norm_up


def narrow_graphs(run: Run, joint: Joint, points: Array | None = None) -> None:
    """Bound the largest gap of two models of any operations; without a box only from below.

    Args:
        run: The comparison.
        joint: The two models.
        points: Where to look first, (n, d): rows of data.
    """
    if run.over:  # the graphs are equal
        return
    run.take("search", _found(joint, run.box, run.deadline, run.seed, points))
    if run.box is None or run.over:
        return
    box, deadline = run.box, run.deadline
    ends = box.lower[None], box.upper[None]
    steps: tuple[tuple[str, Callable[[], Array]], ...] = (
        ("differences carried along", lambda: joint.tied_gap(*ends, deadline=deadline)),
        (
            "linear bounds",
            lambda: joint.gap_upper(joint.relaxed(*ends, deadline=deadline), deadline=deadline),
        ),
    )
    for name, bound in steps:
        if not run.over:
            run.take(name, Bracket(0.0, float(bound()[0])))
    if not run.over and run.climb is not None and run.differ:
        run.take("search", run.climb.go_on(run.state, deadline))
    if run.over or box.dim > MAX_BRANCH_INPUTS:
        return

    def proved(point: Array) -> float:
        return float(joint.gaps_between(point[None])[0][0])

    bounder = partial(joint.gap_forms, deadline=deadline)
    for found in branch(
        bounder, joint.gaps, proved, box, tol=run.tol, precision=None, deadline=deadline
    ):
        run.take("branch and bound", found)
        if run.decided:
            return


def _found(
    joint: Joint, box: Box | None, deadline: Deadline, seed: int, points: Array | None
) -> Bracket:
    """Return the largest gap of some points, proved, and where it is."""
    rng, d = np.random.default_rng(seed), joint.first.in_features
    given = np.zeros((0, d)) if points is None else points
    n = max(1, GRAPH_STARTS)
    if box is None:
        starts = np.concatenate([given[:n], np.zeros((1, d)), rng.standard_normal((n, d))])
    else:
        inside = ((given >= box.lower) & (given <= box.upper)).all(axis=1)
        starts = np.concatenate([given[inside][:n], box.center[None], box.sample(n, rng)])
        lower, upper = (np.broadcast_to(end, starts.shape) for end in (box.lower, box.upper))
        starts = joint.ascended(starts, lower, upper, deadline)
    gaps, _ = joint.gaps_between(starts)
    if box is None:
        sizes = np.array([1.0 + norm_up(x) for x in starts])
        gaps = np.nextafter(gaps / sizes * (1.0 - gamma(8)), 0.0)
    best = int(np.argmax(gaps))
    if not gaps[best] > 0.0:
        return Bracket(0.0, inf)
    witness = starts[best].copy()
    witness.flags.writeable = False
    return Bracket(float(gaps[best]), inf, witness)
