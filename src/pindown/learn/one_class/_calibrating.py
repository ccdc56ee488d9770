"""How p-values of a detector come about: companions that have not seen a part of the rows.

The detector itself learns from all rows, so none is left that could tell how strange a new member may
look. A companion, one network and a density part learned in the same way from a part of the rows, scores
the others; new rows are compared with those by the same companion. What is proved about such p-values
(``learn.conformal``) holds for companions as for anything else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from pindown.affine import Array
from pindown.learn.conformal import HeldOutScores
from pindown.learn.conformal.p_values import held_out_parts
from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class._learning import learned
from pindown.learn.one_class._plan import Plan
from pindown.learn.one_class.scoring import Scorer
from pindown.learn.one_class.tuning import (
    CALIBRATION_FOLDS,
    CALIBRATION_SHARE,
    MAX_CALIBRATION_ROWS,
    MAX_COMPANION_ROWS,
    MIN_ROWS_TO_CALIBRATE,
)


@dataclass(frozen=True, eq=False)
class Companions:
    """Companions and their scores of the rows that they have not seen; none where rows are too few.

    Attributes:
        scorers: What each has learned.
        held_out: Its scores of the rows that were held out of it.
    """

    scorers: tuple[Scorer, ...]
    held_out: HeldOutScores

    def p_values(self, rows: Array) -> Array:
        """Return the p-values of checked rows, (n,); without companions all are 1, which is one too."""
        if not self.scorers:
            return np.ones(len(rows))
        return self.held_out.p_values([scorer.log_odds(rows) for scorer in self.scorers])


def companions(
    rows: Array,
    like: InputScaling,
    plan_for: Callable[[InputScaling, int], Plan],
    method: str,
    rng: np.random.Generator,
    *,
    device: torch.device,
    verbose: int,
) -> Companions | None:
    """Learn companions of a detector; None if that is interrupted, which a warning says.

    Args:
        rows: The rows of the detector, (n, d).
        like: How its rows become inputs: companions learn their own scales, of the same kind.
        plan_for: The plan of a detector with some scales, of so many rows.
        method: ``"split"`` or ``"cross"``.
        rng: Where randomness comes from.
        device: Where to train.
        verbose: Nothing is shown if it is zero.
    """
    n = len(rows)
    if n < MIN_ROWS_TO_CALIBRATE:
        return Companions((), HeldOutScores(()))
    share = min(CALIBRATION_SHARE, MAX_CALIBRATION_ROWS / n)
    parts = held_out_parts(n, method, share, CALIBRATION_FOLDS, rng)
    scorers = []
    for part in parts:
        seen = rng.permutation(np.setdiff1d(np.arange(n), part))[:MAX_COMPANION_ROWS]
        own = rows[np.sort(seen)]
        bent = like.bending is not None
        scaling = InputScaling.of(own, like.image_shape, like.channels_first, bent)
        plan = replace(plan_for(scaling, len(own)), n_members=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an interrupt is told once, below
            try:
                scorer, _ = learned(
                    own, scaling, plan, rng, device=device, verbose=verbose, what="calibrating"
                )
            except KeyboardInterrupt:
                scorer = None
        if scorer is None or scorer.ensemble.interrupted:
            warnings.warn("interrupted: the detector is trained, but gives no p-values", stacklevel=4)
            return None
        scorers.append(scorer)
    scores = tuple(scorer.log_odds(rows[part]) for scorer, part in zip(scorers, parts, strict=True))
    return Companions(tuple(scorers), HeldOutScores(scores, tuple(parts)))
