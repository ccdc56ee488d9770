"""Distances within and between orbits: how well a signature separates what it should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from pindown.symmetry.groups import Group

if TYPE_CHECKING:
    from pindown.symmetry.measure.orbit_distances import OrbitReport


def orbit_benchmark(
    X: ArrayLike,
    group: Group,
    n_thresholds: Sequence[int] = (1, 2, 4, 8, 16),
    *,
    n_templates: int = 1,
    nonlinearity: str = "step",
    random_state: int | None = 0,
) -> dict[int, OrbitReport]:
    """Measure separation as thresholds are added.

    Args:
        X: One sample per orbit, (Q, d).
        group: The group.
        n_thresholds: Numbers of thresholds to try.
        n_templates: K, the same templates for all.
        nonlinearity: Of :class:`OrbitSignature`.
        random_state: Seed of the templates.

    Returns:
        Number of thresholds to a report of distances within and between orbits.

    >>> from pindown.symmetry.groups import cyclic
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((10, 16))
    >>> table = orbit_benchmark(X, cyclic(16), (1, 16), n_templates=2)
    >>> table[1].auc < table[16].auc == 1.0
    True

    Lecture course, section on simulations.
    """
    from pindown.symmetry import orbit_report
    from pindown.symmetry.signatures.estimator import OrbitSignature

    out = {}
    for count in n_thresholds:
        signature = OrbitSignature(
            group,
            n_templates=n_templates,
            thresholds=count,
            nonlinearity=nonlinearity,
            random_state=random_state,
        ).fit(X)
        out[count] = orbit_report(signature.transform, group=group, X=X)
    return out
