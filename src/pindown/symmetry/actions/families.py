"""Families of transformations that need not form a group, and actions on flattened samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group

Move = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Transformations:
    """Labelled transformations of samples: scalings, lighting, warps, or a part of a group.

    Anything that measures a symmetry takes them where it takes a group.

    Attributes:
        name: What they are called.
        elements: One label each.
        moves: One function of samples each.

    >>> double = Transformations("doubling", (2,), (lambda X: 2 * X,))
    >>> double.order, double.act(0, [[1.0, 3.0]]).tolist()
    (1, [[2.0, 6.0]])
    """

    name: str
    elements: tuple[Hashable, ...]
    moves: tuple[Move, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.moves or len(self.elements) != len(self.moves):
            raise ValueError(
                f"transformations need one label each and at least one; got {len(self.elements)} labels "
                f"for {len(self.moves)} functions."
            )

    @property
    def order(self) -> int:
        """How many there are."""
        return len(self.moves)

    def act(self, index: int, X: ArrayLike) -> NDArray[np.float64]:
        """Move every sample by one of them."""
        return np.asarray(self.moves[index](np.asarray(X, dtype=float)), dtype=float)


@overload
def flattened(family: Group, shape: Sequence[int]) -> Group: ...
@overload
def flattened(family: Transformations, shape: Sequence[int]) -> Transformations: ...
def flattened(family: Group | Transformations, shape: Sequence[int]) -> Group | Transformations:
    """Return the same group or family, acting on rows that are samples of a shape, flattened.

    >>> from pindown.symmetry.actions import image_reflection
    >>> flattened(image_reflection(), (2, 2)).act(1, [[1.0, 2.0, 3.0, 4.0]]).tolist()
    [[2.0, 1.0, 4.0, 3.0]]
    """
    move = partial(_as_rows, family, tuple(int(n) for n in shape))
    if isinstance(family, Group):
        return family.acting_by(move)
    moves = tuple(partial(move, i) for i in range(family.order))
    return Transformations(family.name, family.elements, moves)


def _as_rows(
    family: Group | Transformations, shape: tuple[int, ...], index: int, X: NDArray[np.float64]
) -> NDArray[np.float64]:
    size = math.prod(shape)
    if X.ndim != 2 or X.shape[1] != size:
        raise ValueError(f"rows of {size} numbers are samples of shape {shape}; got {X.shape}.")
    return family.act(index, X.reshape(len(X), *shape)).reshape(X.shape)
