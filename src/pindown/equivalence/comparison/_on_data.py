"""Two models on rows of data: what is asked for, and the answer made of what a run found."""

from __future__ import annotations

from os import PathLike
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.comparison._around_rows import RowRun
from pindown.equivalence.comparison._joint_bounds import Joint
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.rows import Known, RowDiff
from pindown.equivalence.tuning import SCALE_SAMPLES, SCALE_WORK
from pindown.model.graph import Model
from pindown.network import as_rows
from pindown.rounding import add_up, norm_up, product_up


def as_data(data: ArrayLike | str | PathLike[str], model: Model, box: Box | None) -> Array:
    """Return rows (n, d) of data, or of a file with them, that fit a model and a box.

    Raises:
        ValueError: If there are none, their shape does not fit, one is not finite, or outside the box.
        TypeError: If they are not real numbers.
    """
    if isinstance(data, (str, PathLike)):
        from pindown.datasets import load_table

        data = load_table(data).X
    raw = np.asarray(data)
    if raw.ndim > 0 and len(raw) == 0:
        raise ValueError("data is empty; give at least one row.")
    rows, _ = as_rows(raw, model.in_features, model.input_shape)
    X = rows.copy()  # what is returned is frozen; what was given stays the user's
    if box is not None:
        outside = np.flatnonzero(((box.lower > X) | (box.upper < X)).any(axis=1))
        if len(outside):
            raise ValueError(
                f"data must lie in the box; row {outside[0]} does not"
                + (f", nor do {len(outside) - 1} others." if len(outside) > 1 else ".")
            )
    return X


def scale_of(joint: Joint, data: Array | None, box: Box | None, seed: int) -> float:
    """Return the largest absolute output of both models on the data, else on samples of the box, else 0.

    Raises:
        ValueError: If an output on the data is not finite.
    """
    if data is not None:
        return float(max(np.abs(model(data)).max() for model in (joint.first, joint.second)))
    if box is None:
        return 0.0
    work = max(1, joint.first.multiply_adds + joint.second.multiply_adds)
    n = int(np.clip(SCALE_WORK // work, 1, SCALE_SAMPLES))
    points = box.sample(n, np.random.default_rng(seed))
    found = np.abs(np.concatenate(joint.values(points)))
    return float(np.max(found, where=np.isfinite(found), initial=0.0))


def tighten_rows(run: RowRun, state: GapState, box: Box | None) -> None:
    """Use what is proved for the box, or for all inputs, around the rows."""
    if not np.isfinite(state.upper):
        return
    every = np.arange(len(run.X))
    if box is not None:
        run.take_gap(every, np.full(len(run.X), state.upper))
        return
    reach = np.maximum(np.abs(run.balls.lower), np.abs(run.balls.upper))
    sizes = [float(add_up(1.0, norm_up(row))) for row in reach]
    run.take_gap(every, np.array([product_up([state.upper, size]) for size in sizes]))


def answer_of(run: RowRun) -> RowDiff:
    """Return what a run found."""
    proved = run.proved
    same: list[Known] = ["proved" if known else "open" for known in proved.tolist()]
    for row in run.shown:
        if proved[row]:
            raise RuntimeError(
                "two proofs about a row contradict each other; this is a defect of pindown: please "
                "report it with both models."
            )
        same[row] = "refuted"
    if (run.gap_lower > run.gap_upper).any():
        raise RuntimeError(
            "two proofs about the gap around a row contradict each other; this is a defect of "
            "pindown: please report it with both models."
        )
    for array in (run.X, *run.values, run.gap_lower, run.gap_upper, run.farthest, *run.shown.values()):
        array.flags.writeable = False
    return RowDiff(
        X=run.X,
        outputs=run.values,
        radius=run.radius,
        margin=run.margin,
        gap_lower=run.gap_lower,
        gap_upper=run.gap_upper,
        same_label=tuple(same),
        witnesses=MappingProxyType(dict(sorted(run.shown.items()))),
        farthest=run.farthest,
        seconds=run.seconds,
    )
