"""What a pooled template tells, by thresholds or rectified units, and the samples it still confuses."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Kind
from pindown.symmetry.groups import Group
from pindown.symmetry.measure.orbit_distances import orbit_distance
from pindown.symmetry.signatures.projections import as_samples, as_vectors, orbit_projections
from pindown.symmetry.signatures.readouts import projection_error
from pindown.symmetry.tuning import MAX_CONDITION, PERMUTATIONS_TRIED

_APART = 1e-6  # share of the sample's length by which orbits count as different
# Orbits nearer than this share of the sample's length are the same orbit, up to rounding.
_SAME_ORBIT = 1e-9


@dataclass(frozen=True)
class Confusion:
    """A sample of another orbit that one template cannot tell, whatever the thresholds.

    Attributes:
        sample: The other sample, (d,).
        signature_difference: Largest difference of the sorted projections: rounding.
        orbit_distance: How far the two orbits are apart.
        reason: ``"permuted projections"`` or ``"orthogonal to the orbit"``.
        kind: ``"exact"``: the two samples are a counterexample.
    """

    sample: Array = field(repr=False)
    signature_difference: float
    orbit_distance: float
    reason: str
    kind: Kind = "exact"

    def __str__(self) -> str:
        return (
            f"{self.reason}: signatures differ by {self.signature_difference:.2g} and orbits by "
            f"{self.orbit_distance:.3g}."
        )


def threshold_signature(
    X: ArrayLike, templates: ArrayLike, group: Group, thresholds: ArrayLike | str = "exact"
) -> Array:
    r"""Count projections above every threshold, or give what all thresholds together hold.

    .. math:: c_z(x) = \sum_g H(\langle x, g w \rangle - z)

    All z together hold as much as the sorted projections, which ``"exact"`` returns. Given one template
    this is not selective: see :func:`find_confusable`. Given a few generic templates it is, for almost
    every sample; given all templates, for every sample.

    Args:
        X: Samples, (n, d).
        templates: (K, d); :math:`\lceil d/|G| \rceil + 1` generic ones, at least two, are a good start.
        group: The group.
        thresholds: ``"exact"``, or values z, (B,).

    Returns:
        (n, K * order) sorted projections, or (n, K * B) counts.

    >>> from pindown.symmetry.groups import cyclic
    >>> threshold_signature([[3.0, 1.0, 2.0]], [[1.0, 0.0, 0.0]], cyclic(3))
    array([[1., 2., 3.]])
    >>> threshold_signature([[3.0, 1.0, 2.0]], [[1.0, 0.0, 0.0]], cyclic(3), [0.0, 1.5])
    array([[3., 2.]])

    Lecture course, theorem on the selectivity of complex cells (repaired).
    """
    samples, chosen = as_samples(X), as_samples(templates, "templates")
    ordered = np.sort(orbit_projections(samples, chosen, group), axis=2)
    if isinstance(thresholds, str):
        if thresholds != "exact":
            raise ValueError(f'thresholds must be "exact" or numbers; got {thresholds!r}.')
        return ordered.reshape(len(ordered), -1)
    levels = np.atleast_1d(np.asarray(thresholds, dtype=float))
    if levels.ndim != 1 or levels.size == 0 or np.isnan(levels).any():
        raise ValueError(f"thresholds must be numbers, (B,); got shape {levels.shape}.")
    ordered -= projection_error(samples, chosen)[:, :, None]  # what equals a threshold is not above it
    counts = np.stack([(ordered > z).sum(axis=2) for z in levels], axis=2)
    return counts.reshape(len(ordered), -1).astype(float)


def find_confusable(
    x: ArrayLike, w: ArrayLike, group: Group, *, random_state: int | None = 0
) -> Confusion:
    r"""Build a sample of another orbit with the same projections on the orbit of one template.

    With fewer elements than features, add something orthogonal to the orbit of w. With equally many and
    :math:`W = (g w)_g` invertible, permute the projections by some :math:`\Pi` that is not in the group:
    :math:`x' = W^{-\top} \Pi W^\top x`.

    Args:
        x: A sample, (d,).
        w: The template.
        group: A linear action with at most d elements.
        random_state: Seed of the permutations to try.

    Returns:
        The other sample, with both distances.

    Raises:
        ValueError: If the group has more elements than features (confusions are then not generic), or
            none was found.

    >>> from pindown.symmetry.groups import cyclic
    >>> found = find_confusable([1.0, 2.0, 4.0, 0.0], [1.0, 0.5, 0.0, 0.0], cyclic(4))
    >>> found.reason, found.signature_difference < 1e-12, found.orbit_distance > 0.1
    ('permuted projections', True, True)

    Lecture course, theorem on the selectivity of complex cells (counterexample).
    """
    sample, template = as_vectors(group, x, w)
    rng = np.random.default_rng(random_state)
    # Columns g^T w, the orbit of w if the action is orthogonal: W^T x are the projections <g x, w>.
    W = orbit_projections(np.eye(len(sample)), template, group)[:, 0]
    d, order = W.shape
    if order > d:
        raise ValueError(
            f"{group.name} has {order} elements on {d} features: permuted projections belong to no "
            "sample in general; use a group of at most as many elements."
        )
    basis, values, _ = np.linalg.svd(W)
    rank = int((values > values[0] / MAX_CONDITION).sum()) if values[0] > 0 else 0
    size = max(float(np.linalg.norm(sample)), 1.0)
    if rank < d:
        hidden = basis[:, rank:] @ rng.standard_normal(d - rank)
        other = sample + hidden * (size / float(np.linalg.norm(hidden)))
        return _confusion(sample, other, template, group, "orthogonal to the orbit")
    wanted = W.T @ sample
    for _ in range(PERMUTATIONS_TRIED):
        other = np.asarray(np.linalg.solve(W.T, wanted[rng.permutation(order)]), dtype=float)
        if orbit_distance(sample, other, group) > _APART * size:
            return _confusion(sample, other, template, group, "permuted projections")
    raise ValueError(
        f"no permutation of the {order} projections gave another orbit; this sample and template are "
        "special (for instance all projections are equal, or the group has two elements)."
    )


def _confusion(x: Array, other: Array, w: Array, group: Group, reason: str) -> Confusion:
    first, second = threshold_signature(np.stack([x, other]), w[None], group)
    return Confusion(other, float(np.abs(first - second).max()), orbit_distance(x, other, group), reason)


@dataclass(frozen=True)
class SignAmbiguity:
    """Whether rectified units without bias confuse a sample with its negative.

    Attributes:
        confused: True if the mean over the group vanishes and -x lies in another orbit.
        mean_norm: Length of the mean of the orbit: what tells x from -x.
        orbit_distance: How far the orbits of x and -x are apart.
        kind: ``"exact"``: it holds for all weights.
    """

    confused: bool
    mean_norm: float
    orbit_distance: float
    kind: Kind = "exact"

    def __str__(self) -> str:
        verdict = "confused" if self.confused else "told apart, or of one orbit"
        return (
            f"x and -x are {verdict}: mean over the group {self.mean_norm:.3g}, orbits "
            f"{self.orbit_distance:.3g} apart."
        )


def relu_pool_signature(
    X: ArrayLike, templates: ArrayLike, group: Group, *, biases: ArrayLike | None = None
) -> Array:
    r"""Sum rectified projections over the group, with a family of biases.

    .. math:: \Phi_{wb}(x) = \sum_g \max(\langle x, g w \rangle - b, 0)

    It is invariant. Without biases it is *not* selective, even with all weights: since
    :math:`\max(u, 0) = (u + |u|)/2`, it holds the mean of the orbit and its even part,

    .. math:: \Phi_w(x) - \Phi_w(-x) = \Big\langle \sum_g g x, w \Big\rangle,

    so x and -x agree for every w when the mean over the group is zero.

    Args:
        X: Samples, (n, d).
        templates: Weights w, (K, d).
        group: The group.
        biases: b, (B,); None is a single zero, with a warning.

    Returns:
        (n, K * B).

    >>> from pindown.symmetry.groups import cyclic
    >>> relu_pool_signature([[1.0, -1.0, 0.5]], [[1.0, 0.0, 0.0]], cyclic(3), biases=[0.0, 0.75])
    array([[1.5 , 0.25]])

    Lecture course, theorem on networks with group convolutions (selectivity repaired).
    """
    if biases is None:
        warnings.warn(
            "rectified units without biases confuse x and -x when the mean over the group is zero; "
            "give biases=[...].",
            UserWarning,
            stacklevel=2,
        )
    levels = np.zeros(1) if biases is None else np.atleast_1d(np.asarray(biases, dtype=float))
    if levels.ndim != 1 or levels.size == 0 or not np.isfinite(levels).all():
        raise ValueError(f"biases must be finite numbers, (B,); got shape {levels.shape}.")
    u = orbit_projections(X, templates, group)
    sums = [np.maximum(u - b, 0.0).sum(axis=2) for b in levels]
    return np.stack(sums, axis=2).reshape(len(as_samples(X)), -1)


def relu_pool_ambiguity(x: ArrayLike, group: Group) -> SignAmbiguity:
    """Ask whether pooled rectified units without bias confuse a sample with its negative.

    Args:
        x: A sample, (d,).
        group: The group.

    >>> from pindown.symmetry.groups import cyclic
    >>> relu_pool_ambiguity([2.0, -1.0, -1.0], cyclic(3)).confused
    True
    >>> relu_pool_ambiguity([1.0, -1.0], cyclic(2)).confused  # -x is x shifted by one
    False

    Lecture course, theorem on networks with group convolutions (counterexample).
    """
    (sample,) = as_vectors(group, x)
    length = float(np.linalg.norm(sample))
    mean = float(np.linalg.norm(group.orbit(sample).mean(axis=0)))
    apart = orbit_distance(sample, -sample, group)
    same, centred = apart <= _SAME_ORBIT * length, mean <= _SAME_ORBIT * length
    return SignAmbiguity(bool(centred and not same), mean, apart)
