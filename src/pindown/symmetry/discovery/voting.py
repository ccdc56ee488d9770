r"""Candidates for a map: pairs that agree with each other, without knowing which map they share.

Two pairs (x, gx) and (x', g'x') come from one map only if :math:`\langle x, x' \rangle = \langle gx,
g'x' \rangle`. Unrelated pairs pass that test by chance alone, so pairs that all pass it with each other
name a map.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.discovery.maps import procrustes
from pindown.symmetry.discovery.orbits import Pairs

# Two inner products count as equal within this many standard deviations of the noise.
_COMPATIBLE = 3.0
# Pairs that vote on one candidate, and that are asked; the cost grows with the square of the first.
_VOTERS = 300
_ASKED = 1600
_POWER_STEPS = 20


def voted_map(
    pairs: Pairs, explained: NDArray[np.bool_], noise: float, rng: np.random.Generator
) -> Array | None:
    """Return a map fitted to unexplained pairs that agree with a random one, and with each other.

    Args:
        pairs: Ordered pairs.
        explained: Those to leave out.
        noise: Standard deviation of the noise in a coordinate.
        rng: Chooses the first pair.
    """
    d = pairs.first.shape[1]
    free = np.flatnonzero(~explained)
    seed = int(rng.choice(free))
    # within an orbit <x, hx> = <x, h'x> holds by structure, for inverses: only other orbits may vote
    others = free[pairs.orbit[free] != pairs.orbit[seed]]
    if len(others) < d:
        return None
    if len(others) > _ASKED:
        others = rng.choice(others, _ASKED, replace=False)
    gap = _disagreement(pairs, np.array([seed]), others, noise)[0]
    voters = others[np.argsort(gap)][: min(_VOTERS, int((gap <= _COMPATIBLE).sum()))]
    if len(voters) < d:
        return None
    mutual = np.exp(-0.5 * _disagreement(pairs, voters, voters, noise) ** 2)
    weights = mutual.sum(axis=1)
    for _ in range(_POWER_STEPS):  # the leading eigenvector: the largest set that agrees with itself
        weights = mutual @ weights
        weights /= weights.max()
    chosen = _clique(mutual, np.argsort(-weights), 3 * d)
    if len(chosen) < d - 1:
        return None
    rows = np.r_[seed, voters[chosen]]
    return procrustes(pairs.first[rows], pairs.second[rows])


def _disagreement(
    pairs: Pairs, rows: NDArray[np.int64], columns: NDArray[np.int64], noise: float
) -> Array:
    """Return differences of inner products, in standard deviations of what noise would make them."""
    x, y = pairs.first, pairs.second
    gap = x[rows] @ x[columns].T - y[rows] @ y[columns].T
    size_rows = (x[rows] ** 2).sum(axis=1) + (y[rows] ** 2).sum(axis=1)
    size_columns = (x[columns] ** 2).sum(axis=1) + (y[columns] ** 2).sum(axis=1)
    deviation = noise * np.sqrt(size_rows[:, None] + size_columns)
    return np.asarray(np.abs(gap) / np.maximum(deviation, np.finfo(float).tiny))


def _clique(mutual: Array, order: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return voters taken in order, each if it agrees with all taken before it."""
    agree = float(np.exp(-0.5 * _COMPATIBLE**2))
    taken: list[int] = []
    for candidate in order:
        if (mutual[candidate, taken] >= agree).all():
            taken.append(int(candidate))
            if len(taken) == most:
                break
    return np.array(taken, dtype=np.int64)
