"""Random templates, and how many it takes to see every direction."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.symmetry.groups import Group
from pindown.symmetry.signatures.projections import shifts_features

_FEWEST = 20  # templates by default
_LARGEST_CHECKED = 512  # features up to which the span of template orbits is computed at fitting
# Squared singular values below this share of the largest count as zero.
_RANK_TOLERANCE = 1e-10


def unit_templates(n_templates: int, n_features: int, rng: np.random.Generator) -> Array:
    """Draw templates uniformly from the unit sphere of the features, (K, d)."""
    draws = rng.standard_normal((n_templates, n_features))
    return draws / np.linalg.norm(draws, axis=1, keepdims=True)


def enough_templates(group: Group, d: int, rng: np.random.Generator) -> Array:
    """Draw templates whose orbits span all directions, as far as that is cheap to check.

    A template's orbit holds at most m copies of an irreducible part of dimension m: where the group
    moves little, d / |G| templates are too few, and d always suffice.
    """
    if shifts_features(group) or group.action is not None:
        return unit_templates(max(_FEWEST, -(-d // group.order) + 1), d, rng)
    fixed = round(float(np.trace(group.matrices, axis1=1, axis2=2).mean()))
    templates = unit_templates(max(_FEWEST, -(-d // group.order) + 1, fixed), d, rng)
    while d <= _LARGEST_CHECKED and len(templates) < d and span_of_orbits(templates, group) < d:
        more = min(len(templates), d - len(templates))
        templates = np.concatenate([templates, unit_templates(more, d, rng)])
    return templates


def span_of_orbits(templates: Array, group: Group) -> int:
    r"""The dimension of the span of all :math:`g^\top t`: a sample orthogonal to it has no projection.

    >>> from pindown.symmetry.groups import cyclic
    >>> span_of_orbits(np.array([[1.0, 1.0, 1.0]]), cyclic(3))
    1
    """
    d = templates.shape[1]
    if shifts_features(group):
        # Shifts of a signal span a wave of every frequency that it holds.
        power = (np.abs(np.fft.fft(templates, axis=1)) ** 2).max(axis=0)
        return int((power > _RANK_TOLERANCE * power.max()).sum())
    orbits = (templates @ group.matrices).reshape(-1, d)
    gram = orbits.T @ orbits if len(orbits) > d else orbits @ orbits.T
    values = np.linalg.eigvalsh(gram)
    return int((values > _RANK_TOLERANCE * values[-1]).sum()) if values[-1] > 0 else 0
