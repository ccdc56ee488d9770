"""Data as orbits: which samples belong together, and the pairs that one unknown map relates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.symmetry.discovery.tuning import MAX_PAIRS

# Norms computed in float64 from vectors that an orthogonal map relates agree to rounding; data stored as
# float32 agree to this.
SAME_NORM = 1e-6
# Squares of numbers beyond this, or below its inverse, overflow or vanish.
_FAR = 1e100


@dataclass(frozen=True)
class Pairs:
    """Ordered pairs of one orbit: row i of ``second`` is some element times row i of ``first``.

    Attributes:
        first: Where the unknown map starts, (n, d).
        second: Where it ends, (n, d).
        orbit: The orbit's number, (n,).
        forward: Whether the pair stands in the order in which the data came.
    """

    first: Array
    second: Array
    orbit: NDArray[np.int64]
    forward: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: Any) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.first[rows], self.second[rows], self.orbit[rows], self.forward[rows])

    def along(self, basis: Array) -> Pairs:
        """Return the pairs in the coordinates of some orthonormal rows, (r, d)."""
        return Pairs(self.first @ basis.T, self.second @ basis.T, self.orbit, self.forward)


def orbits_by_label(X: Array, labels: NDArray[Any]) -> list[Array]:
    """Return the samples of every label that occurs at least twice.

    >>> [len(orbit) for orbit in orbits_by_label(np.zeros((5, 1)), np.array([7, 8, 7, 9, 8]))]
    [2, 2]
    """
    _, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = np.argsort(numbers.ravel(), kind="stable")
    groups = np.split(X[order], np.cumsum(counts)[:-1])
    return [members for members in groups if len(members) > 1]


def orbits_by_norm(X: Array, tol: float = SAME_NORM) -> list[Array]:
    """Return samples of equal norm as orbits: orthogonal maps keep norms, unrelated ones differ.

    Args:
        X: Samples, (n, d).
        tol: Largest gap between neighbouring norms of one orbit, as a share of the norm.

    >>> [len(orbit) for orbit in orbits_by_norm(np.array([[3.0, 4.0], [1.0, 1.0], [0.0, -5.0]]))]
    [2]
    """
    norms = np.linalg.norm(X / (np.abs(X).max(initial=0.0) or 1.0), axis=1)  # squares may overflow
    order = np.argsort(norms, kind="stable")
    steps = np.diff(norms[order])
    breaks = np.flatnonzero(steps > tol * norms[order][1:]) + 1
    groups = np.split(X[order], breaks)
    return [members for members in groups if len(members) > 1]


def checked_labels(given: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the labels of orbits, one for each sample of an array of some shape, or refuse them."""
    from sklearn.utils.validation import column_or_1d

    if not (given.ndim == 1 or (given.ndim == 2 and given.shape[1] == 1)) or len(given) != shape[0]:
        raise ValueError(
            f"y has shape {given.shape} for {shape[0]} samples; give the labels of orbits, one for "
            f"each, or a second member of each orbit as an array of shape {shape}."
        )
    labels = np.asarray(column_or_1d(given, warn=True))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError(
            f"y contains NaN: {int(np.isnan(labels).sum())} labels of orbits are missing; leave those "
            f"samples out."
        )
    return labels


def unit_of(orbits: list[Array]) -> float:
    """Return by what to divide the data before they are squared: one, unless they are huge or tiny.

    >>> unit_of([np.array([[1.0, -3.0]])]), unit_of([np.array([[1e-200]])])
    (1.0, 1e-200)
    """
    peak = max((float(np.abs(members).max()) for members in orbits), default=0.0)
    return 1.0 if peak == 0.0 or 1.0 / _FAR < peak < _FAR else peak


def pairs_of(orbits: list[Array], rng: np.random.Generator, most: int = MAX_PAIRS) -> Pairs:
    """Return the ordered pairs of different members of every orbit; a random share if they are many.

    >>> pairs = pairs_of([np.array([[1.0], [-1.0]])], np.random.default_rng(0))
    >>> pairs.first.tolist(), pairs.second.tolist()
    ([[1.0], [-1.0]], [[-1.0], [1.0]])
    """
    each = max(1, most // (2 * max(1, len(orbits))))
    first, second, orbit, forward = [], [], [], []
    for number, members in enumerate(orbits):
        a, b = _two_members(len(members), each, rng)
        first += [members[a], members[b]]
        second += [members[b], members[a]]
        orbit.append(np.full(2 * len(a), number))
        forward.append(np.arange(2 * len(a)) < len(a))
    d = orbits[0].shape[1] if orbits else 0
    return Pairs(
        np.concatenate(first) if first else np.zeros((0, d)),
        np.concatenate(second) if second else np.zeros((0, d)),
        np.concatenate(orbit).astype(np.int64) if orbit else np.zeros(0, dtype=np.int64),
        np.concatenate(forward) if forward else np.zeros(0, dtype=bool),
    )


def _two_members(
    n: int, most: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all a < b below n, or a random share of them, without listing them if they are many."""
    total = n * (n - 1) // 2
    if total <= max(most, MAX_PAIRS):
        a, b = np.triu_indices(n, 1)
        kept = np.sort(rng.choice(total, most, replace=False)) if total > most else slice(None)
        return a[kept], b[kept]
    drawn = rng.integers(n, size=(2 * most + 10, 2))
    ordered = np.unique(np.sort(drawn[drawn[:, 0] != drawn[:, 1]], axis=1), axis=0)
    kept = rng.permutation(len(ordered))[:most]
    return ordered[kept, 0], ordered[kept, 1]


def noise_level(pairs: Pairs) -> float:
    r"""Estimate the noise in each coordinate from norms, which an orthogonal map would keep.

    With noise of variance :math:`\sigma^2` in every coordinate of both samples, their norms differ by
    about a normal variable of variance :math:`2 \sigma^2`; its scale is taken from the median.

    >>> noise_level(Pairs(np.eye(2), np.eye(2)[::-1], np.arange(2), np.ones(2, dtype=bool)))
    0.0
    """
    gaps = np.linalg.norm(pairs.first, axis=1) - np.linalg.norm(pairs.second, axis=1)
    normal_median = 0.6745  # of the absolute value of a standard normal variable
    return float(np.median(np.abs(gaps)) / (normal_median * np.sqrt(2)))
