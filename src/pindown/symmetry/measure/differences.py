"""How far outputs move with their inputs, and how far apart they are to begin with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pindown.symmetry.measure.families import Family
from pindown.symmetry.measure.models import Array


def squared_differences(
    function: Callable[[Array], Array],
    moved: Family,
    answer: Family | None,
    X: Array,
    chosen: NDArray[np.int64] | None = None,
) -> tuple[Array, Array]:
    """Return squared differences (elements, samples), and the outputs of the samples as they are."""
    outputs = function(X)
    rows = []
    for index in range(moved.order) if chosen is None else chosen.tolist():
        images = moved.act(index, X)
        if len(images) != len(X):
            raise ValueError(
                f"{moved.name} must keep the number of samples; {len(X)} became {len(images)}."
            )
        wanted = outputs if answer is None else answer.act(index, outputs)
        found = function(images)
        if found.shape != wanted.shape:
            raise ValueError(
                f"outputs must keep their shape; {wanted.shape} became {found.shape} under {moved.name}."
            )
        rows.append(np.sum((found - wanted).reshape(len(X), -1) ** 2, axis=1))
    return np.array(rows), outputs


def output_spread(outputs: Array) -> float:
    r"""Return the root mean square distance of two samples' outputs, :math:`\sqrt{2\,\mathrm{tr}\,C}`.

    One sample has no spread: the length of its output stands in.

    >>> output_spread(np.array([[0.0], [3.0]]))
    3.0
    """
    rows = outputs.reshape(len(outputs), -1)
    if len(rows) == 1:
        return float(np.linalg.norm(rows))
    return float(np.sqrt(2.0 * rows.var(axis=0, ddof=1).sum()))
