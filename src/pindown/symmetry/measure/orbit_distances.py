"""Distances of orbits (nearest points, MMD, sliced Wasserstein), and of features within and between.

Features that are the same within orbits are invariant, those that differ between them selective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.families import Family, finite_samples, require_family
from pindown.symmetry.groups import Group
from pindown.symmetry.measure.models import as_function
from pindown.symmetry.orbits import orbit_partition
from pindown.symmetry.signatures.projections import as_vectors, orbit_projections
from pindown.symmetry.tuning import MAX_FEATURES
from pindown.validation import positive

# Distances below this share of the largest feature are rounding.
_ROUNDING = 1e-12
Kernel = Callable[[Array, Array], Any]


@dataclass(frozen=True, eq=False)
class OrbitReport:
    """How well features tell orbits apart, and only orbits.

    Attributes:
        max_intra: Largest distance of two features of one orbit; 0 for invariant features.
        min_inter: Smallest distance of features of two orbits; above ``max_intra`` for selective ones.
        mean_intra: Mean distance within orbits.
        mean_inter: Mean distance between orbits.
        auc: Probability that a pair of one orbit is closer than a pair of two, ties counted half.
        selectivity: Share of pairs of orbits that stay farther apart than any orbit is wide, beyond
            rounding.
        n_orbits: How many different orbits.
        n_features: How many samples were compared.
        family: Name of the group.
        kind: Always ``"estimate"``: other samples may show more.
    """

    max_intra: float
    min_inter: float
    mean_intra: float
    mean_inter: float
    auc: float
    selectivity: float
    n_orbits: int
    n_features: int
    family: str
    kind: Kind = "estimate"

    @property
    def ratio(self) -> float:
        """Mean distance within orbits divided by that between them: smaller is better."""
        if self.mean_intra == 0.0:
            return 0.0
        return self.mean_intra / self.mean_inter if self.mean_inter else np.inf

    def __str__(self) -> str:
        return (
            f"{self.n_orbits} orbits of {self.family}: within at most {self.max_intra:.3g}, between at "
            f"least {self.min_inter:.3g}, AUC {self.auc:.3g}, {self.selectivity:.1%} of pairs apart "
            f"({self.kind}, n = {self.n_features:,})"
        )


def orbit_report(model: Any, group: Any, X: Any, *, tol: float = 1e-9, seed: int = 0) -> OrbitReport:
    """Compare features of moved samples within and between orbits.

    A constant function is invariant and not selective; the identity is selective and not invariant.

    Args:
        model: Gives the features: anything that :func:`~pindown.symmetry.invariance` takes.
        group: The group; samples of one orbit are recognised and counted as one orbit. Samples first
            and then the group, as the source writes it, is taken as well.
        X: Samples ``(n, ...)``, of at least two different orbits.
        tol: Largest relative difference of samples of one orbit.
        seed: Seed of the elements drawn where all would be too many.

    >>> from pindown.symmetry import cyclic
    >>> X = np.array([[1.0, 2.0, 4.0], [0.0, 5.0, 1.0]])
    >>> found = orbit_report(np.sort, cyclic(3), X)
    >>> found.max_intra, round(found.min_inter, 3), found.auc, found.selectivity
    (0.0, 1.732, 1.0, 1.0)
    >>> orbit_report(lambda X: 0 * X, cyclic(3), X).auc
    0.5

    Lecture course, slides on invariance and selectivity.
    """
    from scipy.spatial.distance import pdist
    from scipy.stats import rankdata

    if hasattr(X, "act"):
        group, X = X, group
    samples = finite_samples(X)
    require_family(group)
    labels = (
        orbit_partition(group, samples, tol).labels
        if isinstance(group, Group)
        else np.arange(len(samples))
    )
    n_orbits = int(labels.max()) + 1
    if n_orbits < 2:
        raise ValueError("selectivity needs samples of at least two orbits; all of these are of one.")
    features, owners = _features(model, group, samples, labels, seed)
    distances = pdist(features)
    i, j = np.triu_indices(len(owners), 1)
    within = owners[i] == owners[j]
    inside, outside = distances[within], distances[~within]
    if not len(inside):
        raise ValueError("no two samples are of one orbit; the group needs at least two elements.")
    widest = float(inside.max())
    rank = float(rankdata(distances)[~within].sum())
    size = _ROUNDING * float(np.abs(features).max(initial=0.0))
    nearest = np.full((n_orbits, n_orbits), np.inf)
    np.minimum.at(nearest, (owners[i], owners[j]), distances)
    pairs = np.minimum(nearest, nearest.T)[np.triu_indices(n_orbits, 1)]
    return OrbitReport(
        max_intra=widest,
        min_inter=float(outside.min()),
        mean_intra=float(inside.mean()),
        mean_inter=float(outside.mean()),
        auc=(rank - len(outside) * (len(outside) + 1) / 2) / (len(outside) * len(inside)),
        selectivity=float((pairs > widest + size).mean()),
        n_orbits=n_orbits,
        n_features=len(owners),
        family=group.name,
    )


def _features(
    model: Any, group: Family, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if len(X) > MAX_FEATURES // 2:
        raise ValueError(f"at most {MAX_FEATURES // 2} samples are compared; got {len(X)}.")
    elements = np.arange(group.order)
    most = max(2, MAX_FEATURES // len(X))
    if len(elements) > most:
        elements = np.sort(np.random.default_rng(seed).choice(elements, most, replace=False))
    function = as_function(model)
    moved = [function(group.act(int(index), X)).reshape(len(X), -1) for index in elements]
    return np.concatenate(moved), np.tile(labels, len(elements))


def orbit_distance(x: ArrayLike, other: ArrayLike, group: Group) -> float:
    r"""The distance from a sample to the orbit of another, :math:`\min_g \lVert x - g x' \rVert`.

    For an orthogonal action it is the distance of the two orbits.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_distance([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], cyclic(3))
    0.0
    """
    a, b = as_vectors(group, x, other)
    return float(np.linalg.norm(group.orbit(b) - a, axis=1).min())


def orbit_mmd(
    x: ArrayLike,
    other: ArrayLike,
    group: Group,
    *,
    kernel: Kernel | None = None,
    gamma: float | None = None,
) -> float:
    r"""The distance of the mean embeddings of two orbits.

    .. math:: \mathrm{MMD}^2 = \operatorname{mean}_{g,h} \left[
              k(g x, h x) + k(g x', h x') - 2 k(g x, h x') \right]

    For a characteristic kernel, such as the Gaussian one, it is zero exactly when x and x' lie in one
    orbit. Features that are not universal, such as rectified units without bias, have no such promise.

    Args:
        x: A sample, (d,).
        other: Another sample, (d,).
        group: The group.
        kernel: A function of (n, d) and (m, d) to (n, m); None is Gaussian.
        gamma: Factor in the Gaussian kernel :math:`e^{-\gamma \lVert x - y \rVert^2}`; None is two over
            the sum of the squared lengths.

    Returns:
        The distance, not its square; about 1e-8 and less is rounding.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_mmd([1.0, 2.0, 4.0], [4.0, 1.0, 2.0], cyclic(3)) < 1e-7
    True
    >>> orbit_mmd([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3)) > 0.01
    True

    Lecture course, section on orbits and probability distributions.
    """
    a, b = as_vectors(group, x, other)
    if kernel is None and gamma is None:
        # The width follows the samples, so their unit does not matter; this one cannot overflow.
        largest = float(max(np.abs(a).max(), np.abs(b).max()))
        a, b = (a / largest, b / largest) if largest > 0 else (a, b)
    first, second = group.orbit(a), group.orbit(b)
    if kernel is None:
        size = float(a @ a + b @ b)
        width = gamma if gamma is not None else 2.0 / (size if size > 0 else 1.0)
        kernel = _gaussian(positive("gamma", width))
    both = [np.asarray(kernel(p, q), dtype=float).mean() for p, q in ((first, first), (second, second))]
    across = np.asarray(kernel(first, second), dtype=float).mean()
    return float(np.sqrt(max(sum(both) - 2 * across, 0.0)))


def orbit_sliced_distance(x: ArrayLike, other: ArrayLike, group: Group, templates: ArrayLike) -> float:
    r"""The mean distance of the laws of projections of two orbits on some directions.

    .. math:: \frac{1}{K} \sum_k W_1\left(\langle g x, t_k \rangle, \langle g x', t_k \rangle\right)

    Laws of equally many points differ in :math:`W_1` by the mean difference of their sorted values.
    With all directions of the unit sphere it is zero exactly when the orbits are one (Cramér and Wold);
    with finitely many generic ones, for almost all samples.

    Args:
        x: A sample, (d,).
        other: Another sample, (d,).
        group: The group.
        templates: Directions, (K, d), normalised here.

    >>> from pindown.symmetry.groups import cyclic
    >>> orbit_sliced_distance([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3), [[1.0, 0.0, 0.0]])
    0.0
    >>> orbit_sliced_distance([1.0, 2.0, 4.0], [2.0, 1.0, 4.0], cyclic(3), [[1.0, 2.0, 0.0]]) > 0.1
    True

    Lecture course, section on orbits and probability distributions.
    """
    a, b = as_vectors(group, x, other)
    directions = np.atleast_2d(np.asarray(templates, dtype=float))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ValueError("a template of zeros is no direction; give templates of positive length.")
    values = np.sort(orbit_projections(np.stack([a, b]), directions / lengths, group), axis=2)
    return float(np.abs(values[0] - values[1]).mean())


def _gaussian(gamma: float) -> Kernel:
    def kernel(p: Array, q: Array) -> Array:
        squares = (p**2).sum(axis=1)[:, None] + (q**2).sum(axis=1) - 2 * p @ q.T
        return np.exp(-gamma * np.maximum(squares, 0.0))

    return kernel
