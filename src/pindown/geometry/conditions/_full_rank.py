r"""Condition G2: products of masked weight matrices have the largest rank they can have.

For all layers :math:`k \le l` and all 0/1 diagonal matrices,

.. math::
    \operatorname{rank}(I_l W_l I_{l-1} \cdots I_k W_k)
    = \min\{d_{k-1}, \operatorname{rank} I_k, \dots, \operatorname{rank} I_l\}.

The rank modulo a prime is a proof where it reaches the right-hand side; integers decide the rest. The
output layer has no ReLU, so :math:`I_L` is the identity.

Phuong 2021, condition (2.6) and Lemma A.10.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.geometry.conditions._generality_report import Violation, say_pattern
from pindown.geometry.exact.linear_algebra import (
    Integers,
    Residues,
    as_integers,
    integer_rank,
    multiply,
    ranks,
    residues,
)
from pindown.geometry.tuning import (
    MAX_INTEGER_MULTIPLICATIONS,
    PATTERNS_PER_CHUNK,
    RANK_STACK_RESIDUES,
    RANK_TESTS_AFTER_FIRST,
    RANK_VIOLATIONS_KEPT,
    SEEN_RANK_MULTIPLICATIONS,
)
from pindown.network import ReluNetwork

Active: TypeAlias = list[list[int]]  # the units that are on, layer by layer
Mask: TypeAlias = NDArray[np.bool_]


def rank_violations(net: ReluNetwork) -> list[Violation]:
    """Check G2 on all patterns (2 to the number of units), exactly.

    >>> net = ReluNetwork.from_layers([(np.eye(2), [0, 0]), ([[1.0, 0.0]], [0])])
    >>> for violation in rank_violations(net):
    ...     print(violation)
    G2, layer 2, unit 0: rank 0 instead of 1 with these units on: layer 1: 1
    """
    ring = _Ranks(net)
    for k, last in ring.spans():
        ring.record(k, last, _short_subsets(ring.modular[k : last + 1], is_output=last == net.depth - 1))
    return ring.found


def seen_rank_violations(
    net: ReluNetwork, patterns: Mask, deadline: Deadline = NEVER
) -> list[Violation]:
    """Check G2 on given patterns (n, size), as many of them as there is time for.

    Weights that are exactly zero are found in any case: if ``W_l[i, j] = 0`` for a layer after the
    first, the product has rank 0 where only j is on in layer l - 1, and only i in layer l.

    Args:
        net: The network.
        patterns: Which units are on.
        deadline: When to stop.
    """
    ring = _Ranks(net)
    for layer, (weight, _) in enumerate(net.layers):
        W = dense(weight)
        empty = np.logical_not(np.any(W, axis=1))
        ring.record(layer, layer, ([[int(i)]] for i in np.flatnonzero(empty)))
        zeros = np.argwhere((W == 0) & ~empty[:, None])[: RANK_VIOLATIONS_KEPT if layer else 0]
        ring.record(layer - 1, layer, ([[int(j)], [int(i)]] for i, j in zeros))
    masks = net.by_layer(patterns)
    for k, last in ring.spans():
        if deadline.passed:
            break
        span = ring.modular[k : last + 1]
        ring.record(k, last, _short_seen(span, masks[k : last + 1], deadline))
    return ring.found


class _Ranks:
    """The weights as residues and integers, and the violations found so far."""

    def __init__(self, net: ReluNetwork) -> None:
        self.depth = net.depth
        self.modular = [residues(dense(W)) for W, _ in net.layers]
        self.found: list[Violation] = []
        self._weights = [dense(W) for W, _ in net.layers]
        self._integers: dict[int, Integers] = {}

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield all (k, l) from 0, short products first: they explain the long ones."""
        for length in range(self.depth):
            for k in range(self.depth - length):
                yield k, k + length

    def record(self, k: int, last: int, suspects: Iterable[Active]) -> None:
        """Confirm suspects, those with few units first, and keep what is new."""
        here: list[Violation] = []
        ordered = sorted(suspects, key=lambda active: sum(map(len, active)))
        for tests, active in enumerate(ordered):
            enough = tests >= RANK_TESTS_AFTER_FIRST and (here or self.found)
            if enough or len(here) == RANK_VIOLATIONS_KEPT:
                break
            if any(set(other.units) <= set(active[-1]) for other in here):
                continue
            violation = self._confirm(k, last, active)
            if violation is not None and violation not in self.found:
                here.append(violation)
        self.found += here

    def _confirm(self, k: int, last: int, active: Active) -> Violation | None:
        rank, expected, exact = self._rank(k, active)
        inner = [(k, active[:-1]), (k + 1, active[1:])] if len(active) > 1 else []
        known_already = any(self._rank(j, part)[0] < self._rank(j, part)[1] for j, part in inner)
        if rank == expected or known_already:
            return None
        detail = f"rank {rank} instead of {expected}"
        shown = say_pattern(active[:-1], k + 1)
        detail += f" with these units on: {shown}" if shown else " of their weights"
        return Violation("G2", last + 1, tuple(active[-1]), detail, exact)

    def _rank(self, k: int, active: Active) -> tuple[int, int, bool]:
        """Return the rank of a product from layer k on, what it should be, and whether it is exact."""
        columns = self._weights[k].shape[1]
        expected = min(columns, *map(len, active))
        work = columns * sum(len(units) ** 2 for units in active)
        if work > MAX_INTEGER_MULTIPLICATIONS:
            span = self.modular[k : k + len(active)]
            masks = [_mask(units, len(W)) for units, W in zip(active[:-1], span, strict=False)]
            product = masked_product(span, masks, _identity(columns))
            return int(ranks(product[:, active[-1]])[0]), expected, False
        product = self._integer(k)[active[0]]
        for j in range(1, len(active)):
            product = self._integer(k + j)[np.ix_(active[j], active[j - 1])] @ product
        return integer_rank(product), expected, True

    def _integer(self, layer: int) -> Integers:
        if layer not in self._integers:
            self._integers[layer] = as_integers(self._weights[layer])[0]
        return self._integers[layer]


def _short_subsets(span: Sequence[Residues], *, is_output: bool) -> Iterator[Active]:
    """Yield the patterns of a span of layers, out of all, that lose rank modulo the prime."""
    columns, height = span[0].shape[1], len(span[-1])
    for masks in all_patterns([len(W) for W in span[:-1]]):
        products = masked_product(span, masks, _identity(columns))
        expected = np.full(len(products), min(columns, height))
        for mask in masks:
            expected = np.minimum(expected, mask.sum(axis=1))
        for rank in np.unique(expected):
            members = np.flatnonzero(expected == rank)
            # Fewer rows than this are independent if these are, and more rows contain these.
            rows = np.array(list(combinations(range(height), height if is_output else int(rank))))
            step = max(1, RANK_STACK_RESIDUES // (len(rows) * rows.shape[1] * columns))
            for start in range(0, len(members), step):
                part = members[start : start + step]
                stack = products[part][:, rows].reshape(-1, rows.shape[1], columns)
                short = ranks(stack).reshape(len(part), len(rows)) < rank
                for i, j in np.argwhere(short):
                    yield [*on_units(masks, part[i]), rows[j].tolist()]


def _short_seen(span: Sequence[Residues], masks: Sequence[Mask], deadline: Deadline) -> Iterator[Active]:
    """Yield those of the given patterns that lose rank modulo the prime."""
    columns, widths = span[0].shape[1], [len(W) for W in span]
    if len(masks) < len(span):  # the output is always on
        masks = [*masks, np.ones((len(masks[0]) if masks else 1, widths[-1]), dtype=bool)]
    work = columns * sum(width * max(width, columns) for width in widths)
    n = int(np.clip(SEEN_RANK_MULTIPLICATIONS / work, 1, len(masks[0])))
    step = max(1, RANK_STACK_RESIDUES // (max(widths) * columns))
    for start in range(0, n, step):
        if deadline.passed:
            return
        part = [mask[start : min(start + step, n)] for mask in masks]
        products = masked_product(span, part[:-1], _identity(columns)) * part[-1][:, :, None]
        expected = np.min([np.full(len(part[0]), columns), *(mask.sum(axis=1) for mask in part)], axis=0)
        for row in np.flatnonzero(ranks(products) < expected):
            yield on_units(part, int(row))


def _mask(units: list[int], width: int) -> Mask:
    return np.isin(np.arange(width), units)[None]


def _identity(size: int) -> Residues:
    return np.eye(size, dtype=np.int64)


def all_patterns(widths: Sequence[int]) -> Iterator[list[Mask]]:
    """Yield, in chunks, all choices of a non-empty set of units from every layer.

    Args:
        widths: Numbers of units of the layers.

    Yields:
        One mask (n, width) for each layer; without layers there is one choice, the empty list.

    >>> [mask.astype(int).tolist() for mask in next(all_patterns([1, 2]))]
    [[[1], [1], [1]], [[1, 0], [0, 1], [1, 1]]]
    """
    if not widths:
        yield []
        return
    tables = [_non_empty_subsets(width) for width in widths]
    shape = tuple(len(table) for table in tables)
    for start in range(0, prod(shape), PATTERNS_PER_CHUNK):
        index = np.unravel_index(np.arange(start, min(start + PATTERNS_PER_CHUNK, prod(shape))), shape)
        yield [table[i] for table, i in zip(tables, index, strict=True)]


def seen_patterns(net: ReluNetwork, box: Box | None, samples: int, rng: np.random.Generator) -> Mask:
    """Return the distinct patterns (n, size) of random inputs, after the one with all units on.

    Without a box the inputs are Gaussian around the folds of the first layer: at the usual distance
    of these from the origin, as far as three times it, and near zero.
    """
    if box is None:
        weight, bias = net.layers[0]
        lengths = np.linalg.norm(dense(weight), axis=1)
        distances = np.abs(bias)[lengths > 0] / lengths[lengths > 0]
        scale = float(np.median(distances)) if distances.size else 0.0
        spread = (scale or 1.0) * rng.uniform(0.0, 3.0, size=(samples, 1))
        points = spread * rng.standard_normal((samples, net.in_features))
    else:
        points = box.sample(samples, rng)
    seen = np.unique(net.pattern(points), axis=0) if samples else np.zeros((0, net.size), dtype=bool)
    return np.concatenate([np.ones((1, net.size), dtype=bool), seen[~seen.all(axis=1)]])


def masked_product(weights: Sequence[Residues], masks: Sequence[Mask], start: Residues) -> Residues:
    r"""Multiply :math:`W_m I_{m-1} W_{m-1} \cdots I_1 W_1 S` for many patterns at once.

    Args:
        weights: The matrices :math:`W_1, \dots, W_m`.
        masks: The diagonals :math:`I_1, \dots, I_{m-1}`, each (n, width).
        start: The matrix S on the right.

    Returns:
        The products (n, rows, columns), or (1, rows, columns) if there are no masks.
    """
    product = multiply(weights[0], start)[None]
    for weight, mask in zip(weights[1:], masks, strict=True):
        product = multiply(weight, product * mask[:, :, None])
    return product


def on_units(masks: Sequence[Mask], row: int) -> list[list[int]]:
    """Return which units are on in one pattern, layer by layer."""
    return [np.flatnonzero(mask[row]).tolist() for mask in masks]


def homogeneous(weight: Array, bias: Array) -> Array:
    """Return the matrix that maps ``[a, 1]`` to ``[W a + b, 1]``."""
    last = np.zeros((1, weight.shape[1] + 1))
    last[0, -1] = 1.0
    return np.concatenate([np.column_stack([weight, bias]), last])


def _non_empty_subsets(width: int) -> Mask:
    numbers = np.arange(1, 2**width)
    return (numbers[:, None] >> np.arange(width)) % 2 == 1
