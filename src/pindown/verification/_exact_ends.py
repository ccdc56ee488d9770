"""Strict rows whose limit is attained: intervals that end exactly there prove them, in rational numbers.

``y >= 0`` behind a ReLU, ``y <= 6`` behind a clip: the outputs reach the limit and never cross it.
Bounds that are rounded outwards end beyond it, so that no search would ever decide such a property.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from pindown.affine import Array
from pindown.model.graph import Model
from pindown.model.operations.operation import Interval
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification.properties import UnsafeSet
from pindown.verification.tuning import SPLIT_MAX_GROUPS


def never_below(model: Model, sets: Mapping[int, UnsafeSet]) -> set[int]:
    """Return the sets of which intervals show that a strict row is never below its limit.

    Args:
        model: The model.
        sets: Unsafe sets by number.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0.0])])  # relu(x), and an affine map
    >>> low, strict = np.full(1, -9.0), np.array([True])
    >>> below = {0: UnsafeSet(low, -low, np.eye(1), np.zeros(1), strict=strict)}
    >>> never_below(model_of_network(net), below)
    {0}
    """
    groups: dict[bytes, list[int]] = {}
    for s, unsafe in sets.items():
        if unsafe.strict is not None and unsafe.strict.any():
            groups.setdefault(unsafe.lower.tobytes() + unsafe.upper.tobytes(), []).append(s)
    found = set()
    for group in list(groups.values())[:SPLIT_MAX_GROUPS]:
        first = sets[group[0]]
        with np.errstate(all="ignore"):
            *_, last = RelaxedModel.by_intervals(
                model, Interval(first.lower[None], first.upper[None])
            ).values
        ends = Interval(*(end.ravel() for end in last))
        found |= {s for s in group if _reached_at_most(sets[s], ends)}
    return found


def _reached_at_most(unsafe: UnsafeSet, ends: Interval) -> bool:
    """Return whether a strict row is at its limit or above everywhere."""
    assert unsafe.strict is not None
    for i in np.flatnonzero(unsafe.strict):
        row, limit = unsafe.rows[i], unsafe.limits[i]
        total = _least(row, ends)
        if total is not None and unsafe.input_rows is not None:
            own = _least(unsafe.input_rows[i], Interval(unsafe.lower, unsafe.upper))
            total = None if own is None else total + own
        if total is not None and np.isfinite(limit) and total >= Fraction(float(limit)):
            return True
    return False


def _least(row: Array, ends: Interval) -> Fraction | None:
    """Return the least value of a form on a box, None if it has none."""
    used = np.flatnonzero(row)
    worst = np.where(row > 0, ends.lower, ends.upper)[used]
    if not np.isfinite(worst).all():
        return None
    terms = zip(row[used].tolist(), worst.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(v) for a, v in terms), Fraction(0))
