r"""Orthogonally separable points: two opposite orthants, cut by one hyperplane.

A Gaussian point is kept with label 1 if all its coordinates are positive, with label -1 if all are
negative, and in both cases only if :math:`\langle x, z\rangle \ge 0` for :math:`z = (1, -1, \dots, 1,
-1)`. The cut makes the two max-margin directions differ by more than a sign. Waiting for such a point
would take :math:`2^d` draws; here the signs are set and the cut alone is waited for, which gives the
same distribution.

Phuong 2021, section 3.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.validation import integer


class SeparableData(NamedTuple):
    """Points and labels; unpacks as ``X, y = ...``.

    Attributes:
        X: Points (n_samples, n_features).
        y: Labels 1 and -1.
    """

    X: Array
    y: NDArray[np.int64]


def orthogonally_separable(
    n_samples: int = 500, *, n_features: int = 20, balanced: bool = False, random_state: Any = 0
) -> SeparableData:
    """Draw orthogonally separable points.

    Args:
        n_samples: Number of points, at least 1.
        n_features: Their dimension d, even.
        balanced: Exactly half of the points (rounded up) are positive; otherwise labels are fair coins.
        random_state: Seed or generator.

    Returns:
        The points with their labels.

    Raises:
        ValueError: If a number is out of range, or d is odd.

    Example:
        >>> X, y = orthogonally_separable(100, n_features=4)
        >>> bool(((X * y[:, None]) > 0).all()), bool((X @ [1, -1, 1, -1] >= 0).all())
        (True, True)

    Phuong 2021, section 3.4.
    """
    n = integer("n_samples", n_samples)
    d = integer("n_features", n_features, least=2)
    if d % 2:
        raise ValueError(f"n_features must be even, for coordinates come in pairs, got {d}")
    rng = np.random.default_rng(random_state)
    y = np.where(np.arange(n) < (n + 1) // 2, 1, -1) if balanced else rng.choice([1, -1], n)
    z = np.tile([1.0, -1.0], d // 2)
    X = np.empty((n, d))
    left = np.arange(n)
    while len(left):  # each draw is kept with probability one half
        X[left] = y[left, None] * np.abs(rng.standard_normal((len(left), d)))
        left = left[X[left] @ z < 0]
    return SeparableData(X, y)
