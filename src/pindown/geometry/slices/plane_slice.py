"""A network on a rectangle in a plane: its cells there, and the way back to its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.regions.region import Region
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False, repr=False)
class PlaneSlice:
    r"""A network on a rectangle in a plane, :math:`x = o + s u + t v`.

    Attributes:
        net: The network, with all its inputs.
        origin: The point :math:`o`, (d,).
        u: The direction of s, (d,).
        v: The direction of t, (d,).
        complex: Its cells on the plane, in the coordinates (s, t).
        marks: Points of interest in these coordinates, (m, 2); for :func:`through` the three points.

    Example:
        The plane :math:`x_3 = 1` cuts ``relu(x_1) + relu(x_3)`` into two cells:

        >>> net = ReluNetwork.from_layers([([[1.0, 0, 0], [0, 0, 1]], [0, 0]), ([[1.0, 1]], [0])])
        >>> from pindown.geometry.slices.plane import on_plane
        >>> part = on_plane(net, [0, 0, 1], [1, 0, 0], [0, 1, 0])
        >>> part
        PlaneSlice(2 cells, 2 pieces, complete; -1 <= s <= 1, -1 <= t <= 1)
        >>> part([0.5, 0.25]), part.lift([0.5, 0.25])
        (array([1.5]), array([0.5 , 0.25, 1.  ]))

    Phuong 2021, section A.2 (fold-sets), restricted to a plane.
    """

    net: ReluNetwork
    origin: Array
    u: Array
    v: Array
    complex: PolyhedralComplex
    marks: Array

    @property
    def restricted(self) -> ReluNetwork:
        """The network as a function of (s, t)."""
        return self.complex.net

    @property
    def box(self) -> Box:
        """The rectangle in (s, t)."""
        return self.complex.box

    @property
    def kind(self) -> Literal["exact", "estimate"]:
        """How the cells are known; as ``complex.kind`` says."""
        return self.complex.kind

    @property
    def complete(self) -> bool:
        """Whether these are all cells on the rectangle."""
        return self.complex.complete

    @property
    def n_regions(self) -> int:
        """Number of cells."""
        return self.complex.n_regions

    @property
    def n_pieces(self) -> int:
        """Number of pieces, the maximal connected unions of cells with one affine map of (s, t)."""
        return self.complex.n_pieces

    @property
    def regions(self) -> Sequence[Region]:
        """The cells, one object each, in (s, t)."""
        return self.complex.regions

    @property
    def patterns(self) -> NDArray[np.bool_]:
        """Which units are on in each cell, (n, size)."""
        return self.complex.patterns

    def lift(self, st: ArrayLike) -> Array:
        """Return the inputs at points of the plane: (n, 2) -> (n, d), (2,) -> (d,)."""
        points = np.asarray(st, dtype=np.float64)
        if points.shape[-1:] != (2,):
            raise ValueError(f"points of a plane have shape (n, 2) or (2,); got {points.shape}.")
        lifted = points @ np.stack([self.u, self.v])
        lifted += self.origin
        return lifted

    def project(self, X: ArrayLike) -> Array:
        """Return (s, t) of the points of the plane nearest to inputs: (n, d) -> (n, 2), (d,) -> (2,)."""
        rows, single = self.net.as_rows(X)
        directions = np.stack([self.u, self.v], axis=1)
        solved = np.linalg.lstsq(directions, (rows - self.origin).T, rcond=None)[0]
        st = solved.T.astype(np.float64)
        return st[0] if single else st

    def distance(self, X: ArrayLike) -> Array:
        """Return how far inputs (n, d), or one (d,), are from the plane, (n,)."""
        rows, _ = self.net.as_rows(X)
        return np.sqrt(np.sum((rows - self.lift(self.project(rows))) ** 2, axis=1))

    def __call__(self, st: ArrayLike) -> Array:
        """Return the outputs at points of the plane: (n, 2) -> (n, k), (2,) -> (k,)."""
        return self.net(self.lift(st))

    def input_map(self, i: int) -> tuple[Array, Array]:
        """Return ``(A, c)``, (k, d) and (k,), with ``A x + c`` what the network computes in cell i.

        It holds in the whole d-dimensional cell that the plane cuts there; ``complex.A`` and
        ``complex.c`` are the same in the coordinates (s, t).
        """
        return self.net.affine_of_pattern(self.patterns[i])

    def __repr__(self) -> str:
        (s, t), (s_end, t_end) = self.box.lower, self.box.upper
        cells = repr(self.complex).partition("(")[2].rstrip(")")
        return f"PlaneSlice({cells}; {s:g} <= s <= {s_end:g}, {t:g} <= t <= {t_end:g})"
