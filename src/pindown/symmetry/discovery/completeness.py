"""Whether data hold the whole of every orbit: a part of one has no symmetry of its own."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.symmetry.discovery.maps import nearest_elements

LEAST_PER_ELEMENT = 3.0  # pairs for each element, on average, before evenness can be judged


def closure(matrices: Array, held: list[Array], limit: float) -> float:
    """Return the share of images of members that are members, over orbits of three or more."""
    shares = []
    for members in held:
        if len(members) < 3 and len(matrices) > 2:
            continue
        shares.append(_closure_of(matrices, members, limit))
    return float(np.mean(shares)) if shares else float("nan")


def _closure_of(matrices: Array, members: Array, limit: float) -> float:
    """Return the share of images of the members of one orbit that are members."""
    from scipy.spatial import cKDTree

    tree = cKDTree(members)
    hits = [np.isfinite(tree.query(members @ g.T, distance_upper_bound=limit)[0]) for g in matrices]
    return float(np.mean(hits))


def evenness(matrices: Array, orbits: list[Array], limit: float) -> float:
    """Return the chance of elements other than the identity being used as unevenly by pairs.

    Zero if one of them is never used: a part of a group would pass for the whole if pairs are few. Pairs
    that are whole orbits by themselves, of samples that many elements leave alone, say nothing here.
    """
    from scipy.stats import chi2

    pairs = [members for members in orbits if len(members) == 2]
    if not pairs or len(matrices) < 3:
        return float("nan")
    first, second = np.array(pairs).transpose(1, 0, 2)
    whole = np.ones(len(first), dtype=bool)
    for g in matrices:
        for start in (first, second):
            gaps = [np.linalg.norm(start @ g.T - end, axis=1) for end in (first, second)]
            whole &= np.minimum(*gaps) <= limit
    if whole.all():
        return float("nan")
    distance, element = nearest_elements(matrices, first[~whole], second[~whole])
    used = np.bincount(element[distance <= limit], minlength=len(matrices))[1:]
    if used.sum() < LEAST_PER_ELEMENT * len(used) or not used.all():
        return 0.0
    mean = used.mean()
    return float(chi2.sf(((used - mean) ** 2).sum() / mean, len(used) - 1))
