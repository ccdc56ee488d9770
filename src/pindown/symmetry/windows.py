"""Partial groups: pooling over a part of a group, and where that breaks invariance."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import Group

Pointwise = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Window:
    """Some elements of a group, with the group's action.

    Attributes:
        group: The whole group.
        members: Indices of the elements in the window, ascending, each once.

    >>> from pindown.symmetry import cyclic
    >>> shifts = Window.of(cyclic(8), [0, 1, 2])
    >>> print(shifts)
    3 of 8 elements of C8
    >>> shifts.boundary(1)  # moved by one step the window loses 2 and gains -1
    (2, 7)
    """

    group: Group
    members: tuple[int, ...]

    @classmethod
    def of(cls, group: Group, members: Iterable[int]) -> Window:
        """Take the elements with these indices."""
        kept = tuple(sorted({operator.index(i) for i in members}))
        if not kept or kept[0] < 0 or kept[-1] >= group.order:
            raise ValueError(
                f"a window holds elements from 0 to {group.order - 1} of {group.name}; got {kept}."
            )
        return cls(group, kept)

    @property
    def name(self) -> str:
        """The group's name, marked as a part."""
        return f"part of {self.group.name}"

    @property
    def order(self) -> int:
        """How many elements are in the window."""
        return len(self.members)

    @property
    def elements(self) -> tuple[Hashable, ...]:
        """Their labels."""
        return tuple(self.group.elements[i] for i in self.members)

    def __str__(self) -> str:
        return f"{self.order} of {self.group.order} elements of {self.group.name}"

    def act(self, index: int, X: ArrayLike) -> NDArray[np.float64]:
        """Move samples by the element at this place of the window."""
        return self.group.act(self.members[index], X)

    def boundary(self, index: int) -> tuple[int, ...]:
        r"""Return :math:`\bar g^{-1} G_0 \,\triangle\, G_0`: where pooling over the window can change.

        Args:
            index: The element :math:`\bar g`, by its index in the group.
        """
        inverse = int(self.group.inverses[index])
        moved = {int(self.group.table[inverse, i]) for i in self.members}
        return tuple(sorted(moved.symmetric_difference(self.members)))

    def pool(self, x: ArrayLike, template: ArrayLike, nonlinearity: Pointwise = np.abs) -> float:
        r"""Return the sum over the window of :math:`\eta\langle x, g t\rangle`.

        For an orthogonal action it changes under :math:`\bar g` only by the terms on
        :meth:`boundary`: with :math:`\eta(0) = 0` it is exactly invariant wherever the responses
        vanish there.

        Lecture course, slides on partial groups.
        """
        return float(np.sum(nonlinearity(self.responses(x, template, self.members))))

    def responses(
        self, x: ArrayLike, template: ArrayLike, members: Iterable[int] | None = None
    ) -> NDArray[np.float64]:
        r"""Return :math:`\langle x, g t\rangle` for some elements of the group, by default all."""
        sample, pattern = np.asarray(x, dtype=float), np.asarray(template, dtype=float)
        if sample.shape != pattern.shape:
            raise ValueError(f"x and the template have one shape; got {sample.shape}, {pattern.shape}.")
        chosen = range(self.group.order) if members is None else members
        images = np.array([self.group.act(i, pattern[None])[0] for i in chosen])
        return images.reshape(len(images), -1) @ sample.ravel()

    def error_bound(
        self,
        x: ArrayLike,
        template: ArrayLike,
        index: int,
        nonlinearity: Pointwise = np.abs,
    ) -> float:
        r"""Bound :math:`|\mu(\bar g x) - \mu(x)|` by the responses on the boundary alone."""
        edge = self.boundary(index)
        return float(np.abs(nonlinearity(self.responses(x, template, edge))).sum()) if edge else 0.0
