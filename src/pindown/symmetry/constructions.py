"""Groups made of others or of a few elements: generated, direct products, and those with a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.axioms import check_representation, check_table, spread_rows
from pindown.symmetry.groups import Group, cyclic, dihedral, from_permutations, symmetric
from pindown.symmetry.tuning import MAX_ORDER
from pindown.validation import integer

# Products of matrices drift by rounding; elements of a finite group stay much farther apart than this.
SAME_MATRIX = 1e-7
# Entries are rounded to a grid that is shifted by an odd amount, so that none sits on an edge.
_OFFSET = 0.31830988618
Acting = Literal["regular", "sum", "tensor", "together"]
_THIRD = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]  # a third of a turn about the diagonal (1, 1, 1)
_HALF = np.diag([-1, -1, 1])  # half a turn about an axis
_QUARTER = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]  # a quarter turn about an axis


def generate(generators: ArrayLike, name: str = "G", *, largest: int = MAX_ORDER) -> Group:
    """Return all products of some permutations or some matrices, as a group.

    Args:
        generators: Permutations ``(k, n)`` of 0, ..., n - 1, or matrices ``(k, d, d)`` of finite order.
        name: What to call it.
        largest: Stop with an error beyond this many elements.

    Returns:
        The group, the identity first. Permutations become its points, matrices its action.

    Raises:
        ValueError: If there are more than ``largest`` products, as for a rotation by one radian.

    >>> generate([(1, 2, 0, 3), (1, 0, 2, 3)]).order  # moves the first three of four things
    6
    >>> quarter = [[0.0, -1.0], [1.0, 0.0]]
    >>> generate([quarter]).order
    4

    Lecture course, slides on groups.
    """
    given = np.asarray(generators)
    limit = integer("largest", largest, most=MAX_ORDER)
    if given.ndim == 2 and given.dtype.kind in "iu":
        return _permutations(given.astype(np.int64), name, limit)
    if given.ndim == 3 and given.dtype.kind in "iuf":
        return _matrices(check_representation(given), name, limit)
    raise ValueError(
        f"generators are permutations of integers (k, n) or matrices (k, d, d); got "
        f"{given.dtype} of shape {given.shape}."
    )


def _permutations(generators: NDArray[np.int64], name: str, largest: int) -> Group:
    n = generators.shape[1]
    if n == 0 or not (np.sort(generators, axis=1) == np.arange(n)).all():
        raise ValueError("each generator must be a permutation of 0, ..., n - 1.")
    elements, _ = _closure(np.arange(n), generators, lambda g, h: g[h], lambda g: g.tobytes(), largest)
    chosen = [_position(elements, g) for g in generators]
    return from_permutations(np.array(elements).tolist(), name, generators=tuple(dict.fromkeys(chosen)))


def _matrices(generators: NDArray[np.float64], name: str, largest: int) -> Group:
    size = 1.0 + float(np.abs(generators).max())
    elements, keys = _closure(
        np.eye(generators.shape[1]), generators, np.matmul, lambda g: _key(g, size), largest
    )
    matrices = np.array(elements)
    chosen = tuple(dict.fromkeys(keys[_key(g, size)] for g in generators))
    table = np.zeros((len(matrices), len(matrices)), dtype=np.int64)
    table[0], known = np.arange(len(matrices)), np.arange(len(matrices)) == 0
    for generator in chosen:
        products = [keys.get(_key(product, size), -1) for product in matrices[generator] @ matrices]
        if min(products) < 0:
            raise ValueError("products drift apart by rounding; give the matrices to full precision.")
        table[generator], known[generator] = products, True
    spread_rows(table, known, chosen)
    return Group(name, tuple(range(len(matrices))), check_table(table, chosen), chosen, matrices)


def _closure(
    identity: NDArray[Any],
    generators: NDArray[Any],
    multiply: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]],
    key: Callable[[NDArray[Any]], bytes],
    largest: int,
) -> tuple[list[NDArray[Any]], dict[bytes, int]]:
    elements, keys = [identity], {key(identity): 0}
    for element in elements:  # the list grows while it is read
        for generator in generators:
            product = multiply(element, generator)
            code = key(product)
            if code not in keys:
                if len(elements) == largest:
                    raise ValueError(
                        f"the products are more than {largest} elements: the group is larger, or "
                        f"infinite as that of a rotation by an irrational angle."
                    )
                keys[code] = len(elements)
                elements.append(product)
    return elements, keys


def _key(matrix: NDArray[np.float64], size: float) -> bytes:
    return np.floor(matrix / (size * SAME_MATRIX) + _OFFSET).astype(np.int64).tobytes()


def _position(elements: Sequence[NDArray[np.int64]], wanted: NDArray[np.int64]) -> int:
    return next(i for i, g in enumerate(elements) if (g == wanted).all())


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
    if order > MAX_ORDER:
        raise ValueError(
            f"{first.name} x {second.name} has {order} elements; at most {MAX_ORDER} are allowed."
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
    integer("n", n, least=3, most=7)
    cycles = np.tile(np.arange(n), (n - 2, 1))
    for row, last in zip(cycles, range(2, n), strict=True):
        row[[0, 1, last]] = 1, last, 0
    return generate(cycles, f"A{n}")


def named_groups(largest: int = 24) -> tuple[Group, ...]:
    """Return the groups known here of at most so many elements, each once up to its name.

    >>> [group.name for group in named_groups(6)]
    ['C1', 'C2', 'C3', 'C4', 'D2', 'C5', 'C6', 'D3']
    """
    limit = min(integer("largest", largest), 48)
    rotations = [cyclic(n) for n in range(1, limit + 1)]
    turns = [dihedral(n) for n in range(2, limit // 2 + 1)]
    others = [quaternion(), alternating(4), pyritohedral(), symmetric(4)]
    kept = [group for group in (*rotations, *turns, *others) if group.order <= largest]
    return tuple(sorted(kept, key=lambda group: group.order))
