"""Boxes: the sets of inputs that questions are asked about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.rounding import add_up


@dataclass(frozen=True, eq=False, repr=False)
class Box:
    r"""The set :math:`\{x : l_i \le x_i \le u_i\}`, possibly flat in some coordinates.

    Attributes:
        lower: The corner :math:`l`, shape (d,), read-only.
        upper: The corner :math:`u`, shape (d,), read-only.

    Example:
        >>> box = Box([0, -1], [2, 1])
        >>> box
        Box(2 dimensions, 0 <= x_1 <= 2, -1 <= x_2 <= 1)
        >>> box.contains([[1, 0], [3, 0]])
        array([ True, False])
    """

    lower: Array
    upper: Array

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low, high = _corner(lower, "lower"), _corner(upper, "upper")
        if low.shape != high.shape:
            raise ValueError(f"a box needs corners of equal length; got {low.size} and {high.size}.")
        if np.any(low > high):
            i = int(np.argmax(low > high))
            raise ValueError(
                f"a box needs lower <= upper; coordinate {i} has lower {low[i]:g} > upper {high[i]:g}."
            )
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)

    @classmethod
    def around(cls, X: ArrayLike) -> Box:
        """Return the smallest box that holds all rows of X.

        >>> Box.around([[0, 5], [1, 3]])
        Box(2 dimensions, 0 <= x_1 <= 1, 3 <= x_2 <= 5)
        """
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or len(rows) == 0:
            raise ValueError(f"a bounding box needs rows of shape (n, d) with n >= 1; got {rows.shape}.")
        return cls(rows.min(axis=0), rows.max(axis=0))

    @classmethod
    def cube(cls, d: int, low: float, high: float) -> Box:
        """Return the cube ``[low, high]^d``."""
        return cls(np.full(d, low), np.full(d, high))

    @property
    def dim(self) -> int:
        """Number of coordinates d."""
        return int(self.lower.size)

    @property
    def center(self) -> Array:
        """The midpoint, to rounding."""
        return self.lower / 2 + self.upper / 2  # halves first: the sum may overflow

    @property
    def radius(self) -> Array:
        """Half the side lengths, rounded up: ``center - radius .. center + radius`` covers the box."""
        center = self.center
        return np.maximum(add_up(self.upper, -center), add_up(center, -self.lower))

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return for each row (n, d), or for one point (d,), whether it lies in the box."""
        points = np.asarray(X, dtype=np.float64)
        if points.shape[-1:] != (self.dim,):
            raise ValueError(f"the box has {self.dim} dimensions; got points of shape {points.shape}.")
        return np.all((points >= self.lower) & (points <= self.upper), axis=-1)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points uniformly: (n, d)."""
        mix = rng.random((n, self.dim))
        points = self.lower * (1 - mix) + self.upper * mix
        return np.clip(points, self.lower, self.upper)  # rounding may step outside

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    def __repr__(self) -> str:
        shown = [
            f"{low:g} <= x_{i} <= {high:g}"
            for i, (low, high) in enumerate(zip(self.lower[:3], self.upper[:3], strict=True), 1)
        ]
        more = [f"and {self.dim - 3} more"] if self.dim > 3 else []
        dims = "1 dimension" if self.dim == 1 else f"{self.dim} dimensions"
        return f"Box({', '.join([dims, *shown, *more])})"


def as_box(box: Box | tuple[ArrayLike, ArrayLike] | Any, dim: int) -> Box:
    """Return a box of ``dim`` dimensions from a Box or a pair ``(lower, upper)``.

    Numbers in the pair stand for all coordinates.

    >>> as_box((0, [1, 2]), dim=2)
    Box(2 dimensions, 0 <= x_1 <= 1, 0 <= x_2 <= 2)
    """
    if not isinstance(box, Box):
        try:
            lower, upper = (np.asarray(corner, dtype=np.float64) for corner in box)
        except (TypeError, ValueError):
            raise ValueError(
                f"a box is a Box or a pair (lower, upper) of numbers or arrays; got {box!r}."
            ) from None
        lower, upper = (np.full(dim, c) if c.ndim == 0 else c.reshape(-1) for c in (lower, upper))
        box = Box(lower, upper)
    if box.dim != dim:
        raise ValueError(f"the box has {box.dim} dimensions; the network takes {dim} inputs.")
    return box


def _corner(values: ArrayLike, name: str) -> Array:
    corner = np.array(values, dtype=np.float64)
    if corner.ndim != 1 or corner.size == 0:
        raise ValueError(f"{name} must have shape (d,) with d >= 1; got {corner.shape}.")
    if not np.isfinite(corner).all():
        raise ValueError(f"{name} must be finite; got {corner[~np.isfinite(corner)][0]}.")
    corner.flags.writeable = False
    return corner
