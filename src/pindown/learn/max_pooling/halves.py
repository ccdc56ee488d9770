"""Two halves of the data, one for each layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pindown.affine import Array


def independent_halves(
    y: Array, rng: np.random.Generator
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], bool]:
    """Return two random halves and whether they are independent: chosen without a look at the labels.

    A half without one of the classes is no use; then each class is split by itself, and a class of one
    point is in both halves.
    """
    order = rng.permutation(len(y))
    halves = order[: len(y) // 2], order[len(y) // 2 :]
    independent = all(len(np.unique(y[half])) == 2 for half in halves)
    if not independent:
        classes = [order[y[order] == side] for side in (1.0, -1.0)]
        halves = (
            np.concatenate([mine[: max(1, len(mine) // 2)] for mine in classes]),
            np.concatenate([mine[len(mine) // 2 :] for mine in classes]),
        )
    return np.sort(halves[0]), np.sort(halves[1]), independent
