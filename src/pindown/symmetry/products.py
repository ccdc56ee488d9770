"""Direct products of groups, and what they act on."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.groups import LARGEST_ORDER, Group

Acting = Literal["regular", "sum", "tensor", "together"]


def direct_product(first: Group, second: Group, acting: Acting = "regular") -> Group:
    r"""Return the pairs (g, h) with :math:`(g, h)(g', h') = (g g', h h')`.

    Args:
        first: One group.
        second: The other; the pair (i, j) is element ``i * second.order + j``.
        acting: On what the product acts: ``"regular"`` on functions on itself, ``"sum"`` on a vector of
            the first followed by one of the second, ``"tensor"`` on matrices of both flattened,
            ``"together"`` on the same samples, the second first. The last needs actions that commute;
            :func:`commute_on` checks it.

    Raises:
        ValueError: If the product is too large or has no such action.

    >>> from pindown.symmetry import cyclic
    >>> product = direct_product(cyclic(2), cyclic(3))
    >>> product.order, product.elements[4]
    (6, (1, 1))

    Lecture course, slides on groups.
    """
    order = first.order * second.order
    if order > LARGEST_ORDER:
        raise ValueError(
            f"{first.name} x {second.name} has {order} elements; at most {LARGEST_ORDER} are allowed."
        )
    elements = tuple((g, h) for g in first.elements for h in second.elements)
    m = second.order
    table = first.table[:, None, :, None] * m + second.table[None, :, None, :]
    generators = dict.fromkeys([*(i * m for i in first.generators), *second.generators])
    product = Group(
        f"{first.name}x{second.name}",
        elements,
        table.reshape(order, order),
        tuple(generators),
        points=_points(first, second),
    )
    if acting == "regular":
        return product
    if acting == "together":
        return product.acting_by(partial(_together, first, second))
    if acting in ("sum", "tensor"):
        join = _block if acting == "sum" else np.kron
        return product.acting_by([join(A, B) for A in first.matrices for B in second.matrices])
    raise ValueError(f"acting must be 'regular', 'sum', 'tensor' or 'together'; got {acting!r}.")


def commute_on(first: Group, second: Group, X: ArrayLike) -> float:
    """Return the largest difference that the order of two actions makes on some samples.

    >>> from pindown.symmetry import cyclic, dihedral
    >>> commute_on(cyclic(3), cyclic(3), [[1.0, 2.0, 4.0]])
    0.0
    >>> commute_on(cyclic(3), dihedral(3).permuting(), [[1.0, 2.0, 4.0]])
    3.0
    """
    worst = 0.0
    for i in first.generators:
        for j in second.generators:
            gap = first.act(i, second.act(j, X)) - second.act(j, first.act(i, X))
            worst = max(worst, float(np.abs(gap).max(initial=0.0)))
    return worst


def _together(first: Group, second: Group, index: int, X: NDArray[np.float64]) -> NDArray[np.float64]:
    i, j = divmod(index, second.order)
    return first.act(i, second.act(j, X))


def _block(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    joined = np.zeros((len(A) + len(B),) * 2)
    joined[: len(A), : len(A)], joined[len(A) :, len(A) :] = A, B
    return joined


def _points(first: Group, second: Group) -> NDArray[np.int64] | None:
    """Let the product move the points of both, side by side."""
    if first.points is None or second.points is None:
        return None
    ours = np.repeat(first.points, second.order, axis=0)
    theirs = np.tile(second.points, (first.order, 1))
    return np.concatenate([ours, theirs + ours.shape[1]], axis=1)
