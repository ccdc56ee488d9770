"""Pooled rectified units: always invariant, and when they cannot tell orbits apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.orbit_measures import orbit_distance
from pindown.symmetry.signatures.projections import as_samples, as_vectors, orbit_projections

# Orbits nearer than this share of the sample's length are the same orbit, up to rounding.
_SAME_ORBIT = 1e-9


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
    kind: str = "exact"

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
