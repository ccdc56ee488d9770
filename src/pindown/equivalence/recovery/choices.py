"""Which of the folds found are the units of a layer, and what to say if they are not enough."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from pindown.affine import Array
from pindown.equivalence.recovery.verify import Verdict

_MOST_CHOICES = 24  # sets of units tried where more folds are whole than there are units


class PeelError(Exception):
    """A layer could not be peeled: a status and a reason."""

    def __init__(self, status: tuple[str | int, ...], reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def too_few(found: int, wanted: int, layer: int) -> PeelError:
    """Return the failure to see enough units of a layer."""
    return PeelError(
        ("few", layer),
        f"only {found} of {wanted} units of hidden layer {layer} were seen as whole folds: a unit may "
        "never switch on the box, or switch only where it cannot be followed",
    )


def choices_of(
    found: list[tuple[Array, Verdict, int]], wanted: int | None, width: int, tried: set[bytes]
) -> Iterator[Array]:
    """Yield sets of rows to go on with, the likeliest first, none of them twice."""
    found = sorted(found, key=lambda item: (-item[1].share, -item[2]))
    sets = combinations(range(len(found)), len(found) if wanted is None else wanted)
    for chosen in islice(sets, _MOST_CHOICES):
        rows = np.array([found[i][0] for i in chosen]).reshape(-1, width + 1)
        key = np.sort(np.abs(rows).sum(axis=1)).round(4).tobytes()
        if key not in tried:
            tried.add(key)
            yield rows
