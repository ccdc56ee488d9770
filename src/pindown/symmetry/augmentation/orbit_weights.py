"""Weights that are whole orbits of a group, and how far others are from it."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group
from pindown.symmetry.measure.families import Family
from pindown.validation import is_integer


def orbit_init(
    group: Group, n_templates: int, d: int, random_state: int | np.random.Generator = 0
) -> NDArray[np.float64]:
    r"""Return weights whose rows are the orbits of random templates, ``(n_templates * order, d)``.

    With equal output weights along each orbit, full-batch gradient descent on the augmented loss keeps
    them orbits: rows :math:`g w` move as :math:`g` moves the first of them.

    Args:
        group: The group with its action on rows of length d.
        n_templates: How many orbits.
        d: Length of a row; templates are Gaussian of variance 1 / d.
        random_state: Seed or generator.

    >>> from pindown.symmetry import cyclic
    >>> orbit_init(cyclic(3), 2, 3).shape
    (6, 3)

    Lecture course, slides on gradient equivariance.
    """
    for name, value in (("n_templates", n_templates), ("d", d)):
        if not is_integer(value):
            raise ValueError(f"{name} is a whole number from 1; got {value!r}.")
    rng = np.random.default_rng(random_state)
    templates = rng.standard_normal((n_templates, d)) / np.sqrt(d)
    return np.concatenate([group.orbit(template) for template in templates])


def orbit_deviation(W: ArrayLike, group: Family, how: Literal["worst", "mean"] = "worst") -> float:
    r"""Return how far rows are from being whole orbits, relative to their typical length.

    .. math:: \max_{g, i} \min_j \|g w_i - w_j\| \Big/ \sqrt{\textstyle\frac1k \sum_j \|w_j\|^2}

    Args:
        W: Rows ``(k, d)``.
        group: The group with its action on rows.
        how: ``"worst"`` as above, or the ``"mean"`` over g and i other than the identity.

    Returns:
        0 exactly if the group carries every row to a row, whatever their multiplicities; also for W = 0.

    >>> from pindown.symmetry import cyclic
    >>> orbit_deviation([[1.0, 0.0], [0.0, 1.0]], cyclic(2))
    0.0
    >>> round(orbit_deviation([[1.0, 0.0]], cyclic(2)), 6)
    1.414214

    Lecture course, slides on gradient equivariance.
    """
    rows = np.asarray(W, dtype=float)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise ValueError(f"W holds finite rows (k, d); got shape {rows.shape}.")
    if how not in ("worst", "mean"):
        raise ValueError(f"how must be 'worst' or 'mean'; got {how!r}.")
    size = float(np.sqrt((rows**2).sum(axis=1).mean()))
    if size == 0.0:
        return 0.0
    from scipy.spatial.distance import cdist

    first = 1 if isinstance(group, Group) and group.order > 1 else 0
    gaps = [cdist(group.act(i, rows), rows).min(axis=1) for i in range(first, group.order)]
    return float((np.max if how == "worst" else np.mean)(gaps)) / size
