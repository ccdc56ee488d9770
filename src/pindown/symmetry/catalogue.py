"""Groups with a name beyond the cyclic, dihedral and symmetric ones."""

from __future__ import annotations

import numpy as np

from pindown.symmetry.closure import generate
from pindown.symmetry.groups import Group, cyclic, dihedral, symmetric
from pindown.validation import is_integer

_THIRD = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # a third of a turn about the diagonal (1, 1, 1)
_HALF = np.diag([-1, -1, 1])  # half a turn about an axis
_QUARTER = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # a quarter turn about an axis


def tetrahedral() -> Group:
    """The 12 rotations of a regular tetrahedron, as matrices of three dimensions.

    >>> tetrahedral().order
    12

    Lecture course, slides on learning symmetries.
    """
    return generate(np.array([_THIRD, _HALF], dtype=float), "T")


def pyritohedral() -> Group:
    """The 24 rotations and reflections of a volleyball: the tetrahedral rotations and their negatives.

    The source gives this group 12 elements; those are the rotations alone.

    >>> pyritohedral().order
    24

    Lecture course, slides on learning symmetries, with the order corrected.
    """
    return generate(np.array([_THIRD, _HALF, -np.eye(3)], dtype=float), "Th")


def octahedral() -> Group:
    """The 24 rotations of a cube.

    >>> octahedral().order
    24
    """
    return generate(np.array([_THIRD, _QUARTER], dtype=float), "O")


def quaternion() -> Group:
    """The 8 unit quaternions 1, i, j, k and their negatives, acting on four dimensions.

    >>> quaternion().order
    8
    """
    i = [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 0, -1], [0, 0, 1, 0]]
    j = [[0, 0, -1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, -1, 0, 0]]
    return generate(np.array([i, j], dtype=float), "Q8")


def alternating(n: int) -> Group:
    """The n!/2 even permutations of n things, 3 to 7.

    >>> alternating(4).order
    12
    """
    if not is_integer(n, 3) or n > 7:
        raise ValueError(f"n must be a whole number from 3 to 7; got {n!r}.")
    cycles = np.tile(np.arange(n), (n - 2, 1))
    for row, last in zip(cycles, range(2, n), strict=True):
        row[[0, 1, last]] = 1, last, 0
    return generate(cycles, f"A{n}")


def named_groups(largest: int = 24) -> tuple[Group, ...]:
    """Return the groups known here of at most so many elements, each once up to its name.

    >>> [group.name for group in named_groups(6)]
    ['C1', 'C2', 'C3', 'C4', 'D2', 'C5', 'C6', 'D3']
    """
    if not is_integer(largest):
        raise ValueError(f"largest must be a whole number from 1; got {largest!r}.")
    rotations = [cyclic(n) for n in range(1, min(int(largest), 48) + 1)]
    turns = [dihedral(n) for n in range(2, min(int(largest), 48) // 2 + 1)]
    others = [quaternion(), alternating(4), pyritohedral(), symmetric(4)]
    kept = [group for group in (*rotations, *turns, *others) if group.order <= largest]
    return tuple(sorted(kept, key=lambda group: group.order))
