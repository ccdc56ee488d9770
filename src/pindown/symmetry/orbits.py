"""Which samples a group carries into each other: orbits, stabilisers, and the partition of data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group
from pindown.symmetry.tuning import DISTANCES_AT_ONCE
from pindown.validation import positive

# Actions by matrices round; two samples farther apart than this, in units of their size, are different.
SAME_SAMPLE = 1e-9


@dataclass(frozen=True, eq=False)
class OrbitPartition:
    """Samples sorted into orbits.

    Attributes:
        labels: The number of the orbit of each sample, from 0, in order of appearance.
        representatives: The first sample of each orbit, by its row.
        group: Name of the group.
    """

    labels: NDArray[np.int64]
    representatives: NDArray[np.int64]
    group: str

    @property
    def n_orbits(self) -> int:
        """How many orbits there are."""
        return len(self.representatives)

    def __str__(self) -> str:
        return f"{len(self.labels):,} samples in {self.n_orbits:,} orbits of {self.group}"


def action_error(group: Group, X: ArrayLike) -> float:
    r"""Return the largest :math:`|g(hx) - (gh)x|` over samples, generators g and all h.

    It is zero for an action; a function given to ``acting_by`` may be none, or, by interpolation,
    nearly one.

    >>> from pindown.symmetry import cyclic
    >>> action_error(cyclic(3), [[1.0, 2.0, 4.0]])
    0.0
    >>> action_error(cyclic(3).acting_by(lambda k, X: X + k), [[1.0, 2.0, 4.0]])
    3.0
    """
    samples = np.asarray(X, dtype=float)
    moved = [group.act(h, samples) for h in range(group.order)]
    worst = float(np.abs(moved[0] - samples).max(initial=0.0))
    for g in group.generators:
        for h, image in enumerate(moved):
            gap = np.abs(group.act(g, image) - moved[group.table[g, h]]).max(initial=0.0)
            worst = max(worst, float(gap))
    return worst


def stabiliser(group: Group, x: ArrayLike, tol: float = SAME_SAMPLE) -> tuple[int, ...]:
    r"""Return the elements that leave a sample as it is, :math:`\{g : g x = x\}`.

    Their number times the number of different images is the order of the group.

    >>> from pindown.symmetry import cyclic
    >>> stabiliser(cyclic(4), [1.0, 2.0, 1.0, 2.0])
    (0, 2)

    Lecture course, slides on orbits.
    """
    sample = _sample(x)
    images = group.orbit(sample)
    return tuple(np.flatnonzero(_distances(images, sample) <= _reach(sample, tol)).tolist())


def distinct_images(group: Group, x: ArrayLike, tol: float = SAME_SAMPLE) -> NDArray[np.float64]:
    """Return the different images of a sample, each once, in the order of the elements.

    >>> from pindown.symmetry import cyclic
    >>> distinct_images(cyclic(4), [1.0, 2.0, 1.0, 2.0]).tolist()
    [[1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0]]
    """
    sample = _sample(x)
    images, reach = group.orbit(sample), _reach(sample, tol)
    kept: list[int] = []
    for i, image in enumerate(images):
        if not kept or _distances(images[kept], image).min() > reach:
            kept.append(i)
    return images[kept]


def same_orbit(group: Group, x: ArrayLike, other: ArrayLike, tol: float = SAME_SAMPLE) -> int | None:
    """Return an element that carries x to the other sample, or None if there is none.

    Args:
        group: The group with its action.
        x: One sample.
        other: Another, of the same shape.
        tol: Largest difference that counts as equal, relative to the length of the other sample.

    Returns:
        The index of the element with the smallest difference; beware that 0, the identity, is false.

    >>> from pindown.symmetry import cyclic
    >>> same_orbit(cyclic(3), [1.0, 2.0, 3.0], [2.0, 3.0, 1.0])
    2
    >>> same_orbit(cyclic(3), [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]) is None
    True

    Lecture course, slides on orbits.
    """
    sample, wanted = _sample(x), _sample(other)
    if sample.shape != wanted.shape:
        raise ValueError(f"samples of one orbit have one shape; got {sample.shape} and {wanted.shape}.")
    gaps = _distances(group.orbit(sample), wanted)
    best = int(gaps.argmin())
    return best if gaps[best] <= _reach(wanted, tol) else None


def orbit_partition(group: Group, X: ArrayLike, tol: float = SAME_SAMPLE) -> OrbitPartition:
    """Sort samples into orbits: two are together exactly if an element carries one to the other.

    >>> from pindown.symmetry import cyclic
    >>> orbit_partition(cyclic(2), [[1, 2], [3, 3], [2, 1]]).labels.tolist()
    [0, 1, 0]

    Lecture course, slides on orbits.
    """
    samples = np.asarray(X, dtype=float)
    if samples.ndim < 2 or len(samples) == 0 or not np.isfinite(samples).all():
        raise ValueError(f"X holds finite samples, (n, ...), n at least 1; got shape {samples.shape}.")
    labels = np.full(len(samples), -1, dtype=np.int64)
    representatives: list[int] = []
    for i, sample in enumerate(samples):
        if labels[i] >= 0:
            continue
        left = np.flatnonzero(labels < 0)
        nearest = _nearest(group.orbit(sample), samples[left])
        labels[left[nearest <= _reach(sample, tol)]] = len(representatives)
        representatives.append(i)
    return OrbitPartition(labels, np.array(representatives), group.name)


def _nearest(images: NDArray[np.float64], samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each sample to the nearest image."""
    from scipy.spatial.distance import cdist

    rows, nearest = samples.reshape(len(samples), -1), np.full(len(samples), np.inf)
    step = max(1, DISTANCES_AT_ONCE // len(rows))
    for start in range(0, len(images), step):
        block = images[start : start + step]
        np.minimum(nearest, cdist(block.reshape(len(block), -1), rows).min(axis=0), out=nearest)
    return nearest


def _sample(x: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(x, dtype=float)
    if sample.ndim == 0 or sample.size == 0 or not np.isfinite(sample).all():
        raise ValueError(f"a sample is an array of finite numbers; got shape {sample.shape}.")
    return sample


def _distances(many: NDArray[np.float64], one: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm((many - one).reshape(len(many), -1), axis=1))


def _reach(sample: NDArray[np.float64], tol: float) -> float:
    return positive("tol", tol, zero=True, infinite=True) * (1.0 + float(np.linalg.norm(sample)))
