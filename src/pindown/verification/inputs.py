"""What attacks and certificates are given: inputs, and the box that changed inputs must stay in."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.network import ReluNetwork

BoxLike = Box | tuple[ArrayLike, ArrayLike] | None


def as_inputs(net: ReluNetwork, X: ArrayLike, box: BoxLike) -> tuple[Array, Box | None]:
    """Return inputs as rows and the box, if there is one; the rows must lie in it.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])
    >>> as_inputs(net, [0.5], (0, 1))
    (array([[0.5]]), Box(1 dimension, 0 <= x_1 <= 1))
    """
    rows, _ = net.as_rows(X)
    if box is None:
        return rows, None
    limits = as_box(box, net.in_features)
    inside = limits.contains(rows)
    if not inside.all():
        raise ValueError(
            f"{int(np.count_nonzero(~inside))} of {len(rows)} inputs lie outside the box; "
            f"changes are measured from inputs inside it."
        )
    return rows, limits


def one_input(net: ReluNetwork, x: ArrayLike, box: BoxLike) -> tuple[Array, Box | None]:
    """Return the single input (d,) that x is, and the box."""
    rows, limits = as_inputs(net, x, box)
    if len(rows) != 1:
        raise ValueError(f"x must be one input of {net.in_features} numbers; got {len(rows)} inputs.")
    return rows[0], limits


def as_seconds(budget: float) -> float:
    """Return how long a search may take, or refuse it.

    >>> as_seconds(2)
    2.0
    """
    if not (isinstance(budget, (int, float, np.integer, np.floating)) and budget >= 0):
        raise ValueError(f"budget must be a number of seconds >= 0; got {budget!r}.")
    return float(budget)


def as_radii(radius: ArrayLike, n: int) -> Array:
    """Return one radius >= 0 for each of n inputs.

    >>> as_radii(0.5, 2)
    array([0.5, 0.5])
    """
    radii = np.asarray(radius, dtype=np.float64)
    if radii.ndim > 1 or (radii.ndim == 1 and radii.shape != (n,)):
        raise ValueError(f"radius must be a number or one for each of {n} inputs; got {radii.shape}.")
    if not (np.isfinite(radii).all() and np.all(radii >= 0)):
        raise ValueError(f"a radius must be a finite number >= 0; got {radius!r}.")
    return np.broadcast_to(radii, (n,)).astype(np.float64)
