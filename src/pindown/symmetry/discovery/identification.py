"""Which known group has a given multiplication table."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.symmetry.axioms import check_table, element_orders
from pindown.symmetry.groups import Group, cyclic, dihedral

Table = NDArray[np.int64]


def isomorphism(first: ArrayLike, second: ArrayLike) -> NDArray[np.int64] | None:
    """Return a one-to-one map between two groups that respects products, or None if there is none.

    Images are tried for a few generators only, among elements that are as alike as counting can tell,
    and extended to all products.

    Args:
        first: A multiplication table with the identity first, ``(n, n)``.
        second: Another table.

    Returns:
        ``image`` with ``image[first[a, b]] == second[image[a], image[b]]``, or None.

    >>> from pindown.symmetry.groups import cyclic, dihedral, symmetric
    >>> isomorphism(dihedral(3).table, symmetric(3).table) is not None
    True
    >>> isomorphism(dihedral(3).table, cyclic(6).table) is None
    True
    """
    a, b = check_table(np.asarray(first)), check_table(np.asarray(second))
    if len(a) != len(b):
        return None
    kinds_a, kinds_b = _kinds(a), _kinds(b)
    if sorted(kinds_a) != sorted(kinds_b):
        return None
    words = _words(a)
    generators = [element for element, left, _ in words if left == -1]
    choices = [[image for image in range(len(b)) if kinds_b[image] == kinds_a[g]] for g in generators]
    for images in itertools.product(*choices):
        mapped = _extend(words, dict(zip(generators, images, strict=True)), b)
        if mapped is not None and (mapped[a] == b[np.ix_(mapped, mapped)]).all():
            return mapped
    return None


def _kinds(table: Table) -> list[tuple[int, ...]]:
    """Return numbers that an isomorphism keeps, for every element: orders, square roots, centraliser."""
    orders = element_orders(table)
    squares = table[np.arange(len(table)), np.arange(len(table))]
    roots = np.bincount(squares, minlength=len(table))
    commuting = (table == table.T).sum(axis=1)
    return list(
        zip(orders.tolist(), roots.tolist(), commuting.tolist(), orders[squares].tolist(), strict=True)
    )


def _words(table: Table) -> list[tuple[int, int, int]]:
    """Return every element as a product of two earlier ones, or of itself if it is a generator."""
    order = np.argsort(-element_orders(table), kind="stable")  # few generators: take large orders first
    known, words = [0], [(0, 0, 0)]
    for new in order:
        if new in known:
            continue
        words.append((int(new), -1, -1))
        known.append(int(new))
        for element in known:  # the list grows while it is read
            for other in tuple(known):
                for left, right in ((element, other), (other, element)):
                    product = int(table[left, right])
                    if product not in known:
                        known.append(product)
                        words.append((product, left, right))
    return words


def _extend(
    words: list[tuple[int, int, int]], images: dict[int, int], table: Table
) -> NDArray[np.int64] | None:
    mapped = np.full(len(table), -1, dtype=np.int64)
    used: set[int] = set()
    for element, left, right in words:
        if element == 0:
            image = 0
        else:
            image = images[element] if left < 0 else int(table[mapped[left], mapped[right]])
        if image in used:
            return None
        used.add(image)
        mapped[element] = image
    return mapped


def product_table(first: ArrayLike, second: ArrayLike) -> Table:
    """Return the table of the direct product: element (i, j) is number i times the second order plus j.

    >>> from pindown.symmetry.groups import cyclic
    >>> product_table(cyclic(2).table, cyclic(2).table).tolist()
    [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    """
    a, b = np.asarray(first, dtype=np.int64), np.asarray(second, dtype=np.int64)
    blocks = a[:, None, :, None] * len(b) + b[None, :, None, :]
    return blocks.reshape(len(a) * len(b), -1)


def known_groups(order: int) -> tuple[Group, ...]:
    """Return the named groups of one order: cyclic, products of cyclic, dihedral, polyhedral and more.

    All groups of orders up to 15 are here; of larger orders only some.

    >>> [group.name for group in known_groups(12)]
    ['C12', 'D6', 'C6xC2', 'T', 'Q12']
    """
    return _known(int(order))


@cache
def _known(order: int) -> tuple[Group, ...]:
    found = [cyclic(order)]
    if order % 2 == 0 and order > 4:
        found.append(dihedral(order // 2))
    found += [_product(sizes) for sizes in _divisor_chains(order) if len(sizes) > 1]
    found += list(_polyhedral(order))
    if order % 4 == 0 and order >= 8:
        found.append(_named(f"Q{order}", _dicyclic(order // 4)))
    # Products of a dihedral group with a cyclic one, not C2 x D(odd).
    for small in range(3, order // 4 + 1):
        rest, twist = divmod(order, 2 * small)
        if twist == 0 and rest > 1 and not (rest % 2 == 0 and rest // 2 % 2 and small % 2):
            found.append(
                _named(f"D{small}xC{rest}", product_table(dihedral(small).table, cyclic(rest).table))
            )
    return tuple(found)


def _polyhedral(order: int) -> Iterator[Group]:
    from pindown.symmetry.constructions import alternating, quaternion
    from pindown.symmetry.groups import symmetric

    if order == 12:
        yield _named("T", alternating(4).table)
    if order == 24:
        yield _named("Th", product_table(alternating(4).table, cyclic(2).table))
        yield symmetric(4)
        yield _named("Q8xC3", product_table(quaternion().table, cyclic(3).table))
    if order == 48:
        yield _named("Oh", product_table(symmetric(4).table, cyclic(2).table))
    if order == 60:
        yield alternating(5)
    if order == 120:
        yield symmetric(5)


def _named(name: str, table: Table) -> Group:
    generators = tuple(element for element, left, _ in _words(table) if left == -1)
    return Group(name, tuple(range(len(table))), table, generators or (0,))


def _product(sizes: tuple[int, ...]) -> Group:
    table = cyclic(sizes[0]).table
    for size in sizes[1:]:
        table = product_table(table, cyclic(size).table)
    return _named("x".join(f"C{size}" for size in sizes), table)


def _divisor_chains(order: int, largest: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the abelian groups of an order: sizes that multiply to it, each dividing the one before."""
    if order == 1 and largest is not None:
        yield ()
        return
    for size in range(min(order, largest or order), 1, -1):
        if order % size == 0 and (largest is None or largest % size == 0):
            for rest in _divisor_chains(order // size, size):
                yield (size, *rest)


def _dicyclic(n: int) -> Table:
    """Return the table of a^i b^s with a^2n = 1, b^2 = a^n and b a = a^-1 b."""
    turn, flip = np.divmod(np.arange(4 * n), 2)
    sign = 1 - 2 * flip[:, None]
    turns = turn[:, None] + sign * turn + n * (flip[:, None] & flip)
    return np.asarray(2 * (turns % (2 * n)) + (flip[:, None] ^ flip), dtype=np.int64)


def identify(table: ArrayLike) -> tuple[Group, NDArray[np.int64]] | None:
    """Return a known group that is isomorphic to a table, and the map from it to the table.

    >>> from pindown.symmetry.groups import dihedral
    >>> from pindown.symmetry.constructions import tetrahedral
    >>> identify(dihedral(3).table)[0].name, identify(tetrahedral().table)[0].name
    ('D3', 'T')
    """
    found = check_table(np.asarray(table))
    for group in known_groups(len(found)):
        image = isomorphism(group.table, found)
        if image is not None:
            return group, image
    return None
