r"""Sixteen narrow Gaussians on a 4 x 4 grid in the plane: has a detector found all modes?

The centres are :math:`\{-1.5, -0.5, 0.5, 1.5\}^2`. The source prints -1.5, 0.5, 0.5, 1.5 for the
coordinates, which would make nine distinct centres, not the sixteen it speaks of and draws.

Wolf et al. 2019, Figure 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.validation import integer, is_number

COORDINATES = (-1.5, -0.5, 0.5, 1.5)
STANDARD_DEVIATION = 0.01


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
    if not is_number(sd, 0):
        raise ValueError(f"sd must be a number, zero or positive; got {sd!r}.")
    rng = np.random.default_rng(random_state)
    mode = rng.integers(16, size=n_samples)
    return grid_modes()[mode] + sd * rng.standard_normal((n_samples, 2)), mode
