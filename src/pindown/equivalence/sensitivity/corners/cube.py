"""All corners of a cube, and a quadratic form at each of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from pindown.affine import Array

MOST_BITS = 20  # a million corners: 8 MB, and 10 ms for the form at all of them


class Cube:
    r"""The corners of :math:`\{0, 1\}^n`, as a grid: the first half of the bits by the second.

    >>> cube = Cube(2)
    >>> Q = np.diag([5.0, 1.0, 2.0])  # 5 + v_1 + 2 v_2 at corners, where squares do nothing
    >>> cube.values(Q)
    array([[5., 7.],
           [6., 8.]])
    >>> cube.corner((1, 0)), cube.place(np.array([1.0, 0.0]))
    (array([1., 0.]), (1, 0))
    """

    def __init__(self, n: int) -> None:
        if not 1 <= n <= MOST_BITS:
            raise ValueError(f"the corners of a cube are listed for 1 to {MOST_BITS} bits; got {n}.")
        self.n = n
        self.shape = (2 ** (n // 2), 2 ** (n - n // 2))

    @cached_property
    def _halves(self) -> tuple[Array, Array]:
        first, second = _bits(self.n // 2), _bits(self.n - self.n // 2)
        return np.hstack([np.ones((len(first), 1)), first]), second

    def values(self, Q: Array) -> Array:
        """Return ``u Q u`` with ``u = (1, v)`` at every corner v, on the grid."""
        first, second = self._halves
        k = first.shape[1]
        one = np.einsum("ij,ij->i", first @ Q[:k, :k], first)
        two = np.einsum("ij,ij->i", second @ Q[k:, k:], second)
        cross = (first @ (Q[:k, k:] + Q[k:, :k].T)) @ second.T
        return np.asarray(one[:, None] + two + cross)

    def corner(self, place: tuple[int, ...]) -> Array:
        """Return the corner at a place of the grid."""
        first, second = self._halves
        return np.concatenate([first[place[0], 1:], second[place[1]]])

    def place(self, corner: Array) -> tuple[int, int]:
        """Return where on the grid a corner is."""
        k = self.n // 2
        bits = corner.astype(int)
        return int(bits[:k] @ (1 << np.arange(k))), int(bits[k:] @ (1 << np.arange(self.n - k)))


def _bits(n: int) -> Array:
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)
