"""What moves samples: groups, windows (parts) of a group, and transformations that form none."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.symmetry.groups import Group

Pointwise = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Move = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class Family(Protocol):
    """What can be measured: a group, a window of one, or transformations that form none."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def order(self) -> int:
        """How many elements there are."""

    @property
    def elements(self) -> tuple[Hashable, ...]:
        """Their labels."""

    def act(self, index: int, X: ArrayLike, /) -> NDArray[np.float64]:
        """Move samples by one of them."""


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


def finite_samples(X: Any) -> Array:
    """Return samples ``(n, ...)`` as finite numbers, or say what is wrong."""
    raw = np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)
    if raw.dtype.kind not in "biuf":
        raise TypeError(f"samples are real numbers; got dtype {raw.dtype}.")
    if raw.ndim < 2 or len(raw) == 0:
        raise ValueError(f"X holds samples (n, ...), n at least 1; got shape {raw.shape}.")
    samples = raw.astype(float)
    if not np.isfinite(samples).all():
        raise ValueError("samples must be finite; some hold NaN or infinity.")
    return samples


def require_family(group: Any) -> None:
    """Refuse what has no elements that act."""
    if not all(hasattr(group, name) for name in ("order", "elements", "act")):
        raise TypeError(
            f"a group or a family of transformations is needed, such as cyclic(6); got "
            f"{type(group).__name__}."
        )


def without_identity(moved: Family) -> NDArray[np.int64]:
    """Return the elements other than the identity, or all if there are no others."""
    every = np.arange(moved.order)
    if isinstance(moved, Window):
        kept = np.flatnonzero(moved.members)
    else:
        kept = every[1:] if isinstance(moved, Group) else every
    return kept if len(kept) else every


def _as_rows(
    family: Group | Transformations, shape: tuple[int, ...], index: int, X: NDArray[np.float64]
) -> NDArray[np.float64]:
    size = math.prod(shape)
    if X.ndim != 2 or X.shape[1] != size:
        raise ValueError(f"rows of {size} numbers are samples of shape {shape}; got {X.shape}.")
    return family.act(index, X.reshape(len(X), *shape)).reshape(X.shape)
