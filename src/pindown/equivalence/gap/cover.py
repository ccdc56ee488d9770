"""The boxes of a branch and bound search: all of the domain, each with what is proved about it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array


@dataclass
class Cover:
    """Boxes that cover the domain, each with its bound and the coordinate to cut next.

    A bound that is not a number, as where infinities cancelled, is none: it is kept as infinity.
    """

    lower: Array
    upper: Array
    bound: Array
    cut: Array

    def __post_init__(self) -> None:
        self.bound = _known(self.bound)

    def pop(self, n: int) -> Cover:
        """Remove the n boxes with the largest bounds and return them."""
        n = min(n, len(self.bound))
        chosen = np.argpartition(-self.bound, n - 1)[:n]
        taken = self[chosen]
        keep = np.ones(len(self.bound), bool)
        keep[chosen] = False
        self.lower, self.upper = self.lower[keep], self.upper[keep]
        self.bound, self.cut = self.bound[keep], self.cut[keep]
        return taken

    def __getitem__(self, rows: NDArray[np.intp]) -> Cover:
        return Cover(self.lower[rows], self.upper[rows], self.bound[rows], self.cut[rows])

    @classmethod
    def empty(cls, dim: int) -> Cover:
        """Return a cover without boxes."""
        return cls(np.zeros((0, dim)), np.zeros((0, dim)), np.zeros(0), np.zeros(0, np.intp))

    @property
    def top(self) -> float:
        """The largest bound, 0 if there are no boxes."""
        return float(np.max(self.bound, initial=0.0))

    def put(self, lower: Array, upper: Array, bound: Array, cut: Array) -> None:
        """Add boxes."""
        self.lower = np.concatenate([self.lower, lower])
        self.upper = np.concatenate([self.upper, upper])
        self.bound = np.concatenate([self.bound, _known(bound)])
        self.cut = np.concatenate([self.cut, cut])


def _known(bound: Array) -> Array:
    return np.where(np.isnan(bound), inf, bound)
