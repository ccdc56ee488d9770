r"""Points drawn for a theorem: orthogonally separable, with one telling pattern, and on a grid of modes.

*Orthogonally separable* points lie in two opposite orthants, cut by one hyperplane. A Gaussian point is
kept with label 1 if all its coordinates are positive, with label -1 if all are negative, and in both
cases only if :math:`\langle x, z\rangle \ge 0` for :math:`z = (1, -1, \dots, 1, -1)`. The cut makes the
two max-margin directions differ by more than a sign. Waiting for such a point would take :math:`2^d`
draws; here the signs are set and the cut alone is waited for, which gives the same distribution (Phuong
2021, section 3.4).

In *pattern detection* one patch tells the class: the data that max pooling is made for. A point is a
list of n patches, each one of the patterns :math:`o_1, \dots, o_d`, orthonormal. A positive point holds
:math:`o_1` and never :math:`o_2`, a negative one :math:`o_2` and never :math:`o_1`; all other patches
come from :math:`o_3, \dots, o_d` (Brutzkus and Globerson 2021, section 5, read off the proofs of the
supplement).

The *Gaussian grid* is sixteen narrow Gaussians on a 4 x 4 grid in the plane: has a detector found all
modes? The centres are :math:`\{-1.5, -0.5, 0.5, 1.5\}^2`. The source prints -1.5, 0.5, 0.5, 1.5 for the
coordinates, which would make nine distinct centres, not the sixteen it speaks of and draws (Wolf et al.
2019, Figure 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.validation import integer, is_integer, positive, refuse, share

COORDINATES = (-1.5, -0.5, 0.5, 1.5)
STANDARD_DEVIATION = 0.01


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
        refuse("n_features", "even, for coordinates come in pairs", d)
    rng = np.random.default_rng(random_state)
    y = np.where(np.arange(n) < (n + 1) // 2, 1, -1) if balanced else rng.choice([1, -1], n)
    z = np.tile([1.0, -1.0], d // 2)
    X = np.empty((n, d))
    left = np.arange(n)
    while len(left):  # each draw is kept with probability one half
        X[left] = y[left, None] * np.abs(rng.standard_normal((len(left), d)))
        left = left[X[left] @ z < 0]
    return SeparableData(X, y)


def grid_modes() -> Array:
    """Return the sixteen centres.

    >>> grid_modes().shape, grid_modes()[0].tolist(), grid_modes()[-1].tolist()
    ((16, 2), [-1.5, -1.5], [1.5, 1.5])
    """
    return np.array([(x, y) for x in COORDINATES for y in COORDINATES])


def gaussian_grid(
    n_samples: int = 1600, *, sd: float = STANDARD_DEVIATION, random_state: Any = 0
) -> tuple[Array, NDArray[np.int64]]:
    """Draw points of the sixteen Gaussians, each as likely as the others.

    Args:
        n_samples: Number of points.
        sd: Standard deviation of each coordinate.
        random_state: Seed or generator.

    Returns:
        The points (n, 2), and of each the number of its centre in :func:`grid_modes`.

    Example:
        >>> X, mode = gaussian_grid(100, sd=0.0)
        >>> bool((X == grid_modes()[mode]).all())
        True
    """
    integer("n_samples", n_samples)
    positive("sd", sd, zero=True)
    rng = np.random.default_rng(random_state)
    mode = rng.integers(16, size=n_samples)
    return grid_modes()[mode] + sd * rng.standard_normal((n_samples, 2)), mode


class PatternData(NamedTuple):
    """Points, labels and patterns; unpacks as ``X, y, patterns = ...``.

    Attributes:
        X: Points, (n_samples, n_patches, patch_dim).
        y: Labels 1 and -1.
        patterns: One pattern per row: first that of the positive class, then that of the negative one.
    """

    X: Array
    y: NDArray[np.int64]
    patterns: Array


def pattern_detection(
    n_samples: int = 400,
    *,
    n_patterns: int = 6,
    n_patches: int = 5,
    repeat: float = 0.0,
    patterns: ArrayLike | None = None,
    random_state: Any = 0,
) -> PatternData:
    """Draw balanced points from the pattern-detection distribution.

    Args:
        n_samples: Number of points m.
        n_patterns: Number of patterns d, at least 3.
        n_patches: Patches n in each point.
        repeat: Probability with which each other patch holds the pattern of the class once more.
        patterns: One pattern per row, in place of a random orthonormal basis of d vectors.
        random_state: Seed or generator; labels are fair coins.

    Returns:
        The points with their labels and patterns.

    Raises:
        ValueError: If a number is out of range or there are fewer than three patterns.

    Example:
        >>> X, y, patterns = pattern_detection(4, n_patterns=3, n_patches=2, random_state=0)
        >>> X.shape, sorted(set(y.tolist()))
        ((4, 2, 3), [-1, 1])
        >>> seen = (X @ patterns.T > 0.5).any(axis=1)  # which patterns each point holds
        >>> bool((seen[:, 0] == (y == 1)).all() and (seen[:, 1] == (y == -1)).all())
        True

    Brutzkus and Globerson 2021, section 5.
    """
    integer("n_samples", n_samples)
    integer("n_patches", n_patches)
    share("repeat", repeat)
    rng = np.random.default_rng(random_state)
    if patterns is None:
        integer("n_patterns", n_patterns, least=3)
        basis = np.linalg.qr(rng.standard_normal((n_patterns, n_patterns)))[0].T
    else:
        basis = np.array(patterns, dtype=np.float64)
        if basis.ndim != 2 or len(basis) < 3 or not basis.size or not np.isfinite(basis).all():
            raise ValueError(f"patterns must be 3 or more finite rows; got shape {basis.shape}.")
    y, which = _chosen(rng, n_samples, n_patches, len(basis), float(repeat))
    return PatternData(basis[which], y, basis)


def digit_patterns(
    n_samples: int = 400,
    *,
    positive: int = 3,
    negative: int = 8,
    n_patches: int = 5,
    random_state: Any = 0,
) -> PatternData:
    """Draw points whose patches are pictures of digits: patterns vary and are not orthogonal.

    Every patch is a picture of scikit-learn's digits, scaled to norm one. One patch shows the digit of
    the class, the others digits other than the two. This leaves the theory's assumptions.

    Args:
        n_samples: Number of points.
        positive: Digit that positive points hold.
        negative: Digit that negative points hold.
        n_patches: Pictures in each point.
        random_state: Seed or generator.

    Returns:
        The points; ``patterns`` are the mean pictures, scaled to norm one.

    Example:
        >>> digit_patterns(10).X.shape
        (10, 5, 64)
    """
    from sklearn.datasets import load_digits

    digits = (positive, negative)
    if not all(is_integer(v, 0) and v <= 9 for v in digits) or positive == negative:
        raise ValueError(f"positive and negative must be two different digits 0 to 9; got {digits}.")
    integer("n_samples", n_samples)
    integer("n_patches", n_patches)
    rng = np.random.default_rng(random_state)
    order = [positive, negative, *(v for v in range(10) if v not in digits)]
    images, labels = load_digits(return_X_y=True)
    images = images / np.linalg.norm(images, axis=1, keepdims=True)
    pools = [images[labels == v] for v in order]
    y, which = _chosen(rng, n_samples, n_patches, 10, 0.0)
    picked = [pools[p][rng.integers(len(pools[p]))] for p in which.ravel()]
    means = np.array([pool.mean(axis=0) for pool in pools])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return PatternData(np.array(picked).reshape(n_samples, n_patches, -1), y, means)


def _chosen(
    rng: np.random.Generator, m: int, n: int, d: int, repeat: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return labels and the pattern of every patch."""
    y = np.where(rng.random(m) < 0.5, 1, -1)
    own = np.where(y == 1, 0, 1)
    which = rng.integers(2, d, size=(m, n))
    which = np.where(rng.random((m, n)) < repeat, own[:, None], which)
    which[np.arange(m), rng.integers(n, size=m)] = own
    return y, which
