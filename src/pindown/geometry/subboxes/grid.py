"""A box cut into sub-boxes by planes across its sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.box import Box, as_box
from pindown.geometry.tuning import MAX_SUBBOXES
from pindown.validation import integer, refuse

# Cuts at round numbers would meet the folds of networks written by hand. So every cut is moved from its
# even place by a share of the spacing that is no simple fraction, another one for every coordinate.
_SHIFT = (5**0.5 - 1) / 20


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """A box and where it is cut: sub-boxes are numbered with the last coordinate fastest.

    Attributes:
        box: The whole box.
        cuts: For every coordinate the places of its cuts, strictly inside the box, ascending.

    >>> grid = Grid(Box([0, 0], [2, 1]), ((1.0,), ()))
    >>> grid
    Grid(2 sub-boxes, 2 x 1)
    >>> grid[1]
    Box(2 dimensions, 1 <= x_1 <= 2, 0 <= x_2 <= 1)
    """

    box: Box
    cuts: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if len(self.cuts) != self.box.dim:
            raise ValueError(
                f"a grid needs the cuts of {self.box.dim} coordinates; got {len(self.cuts)}. "
                "Give an empty list where there is none."
            )
        checked = tuple(tuple(float(place) for place in places) for places in self.cuts)
        for i, places in enumerate(checked):
            ends = [self.box.lower[i], *places, self.box.upper[i]]
            if not np.all(np.diff(ends) > 0):
                raise ValueError(
                    f"cuts of coordinate {i} must ascend strictly inside {ends[0]:g} to {ends[-1]:g}; "
                    f"got {list(places)[:4]}. Give fewer of them, or others."
                )
        if prod(len(places) + 1 for places in checked) > MAX_SUBBOXES:
            raise ValueError(f"a grid has at most {MAX_SUBBOXES:,} sub-boxes; give fewer cuts.")
        object.__setattr__(self, "cuts", checked)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of sub-boxes along each coordinate."""
        return tuple(len(places) + 1 for places in self.cuts)

    def __len__(self) -> int:
        return prod(self.shape)

    def __getitem__(self, i: int) -> Box:
        place = np.unravel_index(range(len(self))[i], self.shape)
        ends = [
            [low, *places, high]
            for low, places, high in zip(self.box.lower, self.cuts, self.box.upper, strict=True)
        ]
        corners = [[e[k + upper] for e, k in zip(ends, place, strict=True)] for upper in (0, 1)]
        return Box(*corners)

    def inner_sides(self, i: int) -> NDArray[np.int64]:
        """Return which sides of sub-box i are cuts: 2c below and 2c + 1 above in coordinate c."""
        place = np.unravel_index(range(len(self))[i], self.shape)
        sides = [
            2 * c + upper
            for (c, k), upper in product(enumerate(place), (0, 1))
            if (k + 1 < self.shape[c] if upper else k > 0)
        ]
        return np.array(sides, dtype=np.int64)

    def __repr__(self) -> str:
        return f"Grid({len(self):,} sub-boxes, {' x '.join(map(str, self.shape))})"


Splits = int | Sequence[int] | Grid


def split_box(box: Box | tuple[ArrayLike, ArrayLike], splits: int | Sequence[int]) -> Grid:
    """Cut a box into sub-boxes of about equal size.

    Args:
        box: The box, full-dimensional.
        splits: How many sub-boxes in all, or how many along each coordinate. Prime factors of a total
            are shared out, the largest first, so 64 becomes 4 x 4 x 4 in three dimensions.

    Raises:
        ValueError: If the box is flat, or too small for so many float64 cuts.

    >>> split_box(Box([0, 0, 0], [1, 1, 1]), 64)
    Grid(64 sub-boxes, 4 x 4 x 4)
    >>> split_box(Box([0, 0], [1, 1]), 6).shape, split_box(Box([0, 0], [1, 1]), (1, 5)).shape
    ((3, 2), (1, 5))
    """
    if not isinstance(box, Box):
        lower, upper = (np.atleast_1d(np.asarray(corner, dtype=np.float64)) for corner in box)
        box = Box(*np.broadcast_arrays(lower, upper))
    counts = _shared_out(splits, box.dim) if np.ndim(splits) == 0 else _counts(splits, box.dim)
    return Grid(box, tuple(_cuts(box, c, n) for c, n in enumerate(counts)))


def as_grid(box: Box | tuple[ArrayLike, ArrayLike], splits: Splits, dim: int) -> Grid:
    """Return the grid that ``splits`` asks for, or say why it does not fit the box."""
    whole = as_box(box, dim)
    if not isinstance(splits, Grid):
        return split_box(whole, splits)
    if splits.box != whole:
        raise ValueError(f"the grid cuts {splits.box}; the box given is {whole}.")
    return splits


def _shared_out(total: Any, dim: int) -> list[int]:
    whole = _checked(total)
    factors, p = [], 2
    while p * p <= whole:
        while whole % p == 0:
            factors.append(p)
            whole //= p
        p += 1
    counts = [1] * dim
    for factor in sorted([*factors, whole], reverse=True):
        counts[int(np.argmin(counts))] *= factor
    return counts


def _counts(splits: Any, dim: int) -> list[int]:
    counts = [_checked(n) for n in splits]
    if len(counts) != dim:
        refuse("splits", f"one number for each of {dim} coordinates", splits)
    return counts


def _checked(n: Any) -> int:
    return integer("splits", n, most=MAX_SUBBOXES)


def _cuts(box: Box, c: int, n: int) -> tuple[float, ...]:
    shift = _SHIFT / (1 + c)
    shares = (np.arange(1, n) + shift) / n
    return tuple((box.lower[c] * (1 - shares) + box.upper[c] * shares).tolist())
