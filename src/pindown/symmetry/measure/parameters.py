"""Symmetries of parameters: weights that move while the function stays.

Layers are pairs (W, b), W of shape (out, in), with one activation between them. For ReLU networks
:mod:`pindown.equivalence` does more: canonical forms, matching up to rescaling, and proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

Layers = list[tuple[Array, Array]]
_MIN_SCALE = np.finfo(float).tiny  # below it dividing overflows


def forward(
    layers: Sequence[Any], X: ArrayLike, activation: Callable[[Array], Array] = np.tanh
) -> Array:
    """Return the outputs (n, k) of a fully connected network.

    >>> forward([([[1.0]], [0.0]), ([[2.0]], [1.0])], [[0.0]]).tolist()
    [[1.0]]
    """
    values, pairs = np.asarray(X, dtype=float), _layers(layers)
    for W, b in pairs[:-1]:
        values = activation(values @ W.T + b)
    return np.asarray(values @ pairs[-1][0].T + pairs[-1][1])


def permute_hidden(layers: Sequence[Any], hidden: int, order: Sequence[int]) -> Layers:
    """Renumber the units of one hidden layer: unit ``order[i]`` becomes unit i.

    Args:
        layers: Pairs (W, b).
        hidden: Which hidden layer, from 0.
        order: A permutation of its units.

    >>> permute_hidden([([[1.0], [2.0]], [0, 0]), ([[3.0, 4.0]], [0])], 0, [1, 0])[1][0].tolist()
    [[4.0, 3.0]]

    Lecture course, slides on symmetries of parameters.
    """
    pairs = _layers(layers)
    width = _width(pairs, hidden)
    chosen = np.asarray(order)
    if sorted(chosen.tolist()) != list(range(width)):
        raise ValueError(f"order must be a permutation of 0, ..., {width - 1}; got {list(order)}.")
    (W, b), (V, c) = pairs[hidden], pairs[hidden + 1]
    pairs[hidden], pairs[hidden + 1] = (W[chosen], b[chosen]), (V[:, chosen], c)
    return pairs


def rescale_hidden(layers: Sequence[Any], hidden: int, scales: ArrayLike) -> Layers:
    """Multiply units by positive numbers and divide what leaves them: ReLU networks do not notice.

    >>> rescale_hidden([([[1.0]], [1.0]), ([[4.0]], [0])], 0, [2.0])[1][0].tolist()
    [[2.0]]
    """
    factors = np.asarray(scales, dtype=float)
    if not (np.isfinite(factors).all() and (factors > _MIN_SCALE).all()):
        raise ValueError("scales are positive finite numbers, one per unit.")
    return _scaled(layers, hidden, factors)


def flip_hidden(layers: Sequence[Any], hidden: int, signs: ArrayLike) -> Layers:
    """Turn the signs of units on both sides: the function of a network with an odd activation stays.

    >>> flip_hidden([([[1.0]], [1.0]), ([[4.0]], [0])], 0, [-1])[1][0].tolist()
    [[-4.0]]
    """
    factors = np.asarray(signs, dtype=float)
    if not (np.abs(factors) == 1.0).all():
        raise ValueError("signs are 1 or -1, one per unit.")
    return _scaled(layers, hidden, factors)


def canonical_units(layers: Sequence[Any]) -> Layers:
    """Sort the units of every hidden layer by norm, then weights: renumbered copies become equal.

    >>> canonical_units([([[1.0], [2.0]], [0, 0]), ([[3.0, 4.0]], [0])])[0][0].tolist()
    [[2.0], [1.0]]
    """
    pairs = _layers(layers)
    for hidden in range(len(pairs) - 1):
        W, b = pairs[hidden]
        # Earlier layers are sorted by now, but sums over their columns may round differently in
        # copies: the norm is taken of sorted squares.
        squares = np.sort(np.column_stack([W, b]) ** 2, axis=1).sum(axis=1)
        keys = (*np.column_stack([W, b]).T[::-1], -squares)
        pairs = permute_hidden(pairs, hidden, np.lexsort(keys).tolist())
    return pairs


def match_units(first: Sequence[Any], second: Sequence[Any]) -> tuple[list[int], ...]:
    """Return, layer by layer, the order that brings the second network's units nearest to the first's.

    Layers are matched one after the other, by the distances of incoming weights and biases
    (a linear assignment), so ``permute_hidden(second, 0, orders[0])`` and so on aligns the networks.

    >>> a = [([[1.0], [2.0]], [0, 0]), ([[3.0, 4.0]], [0])]
    >>> match_units(a, permute_hidden(a, 0, [1, 0]))
    ([1, 0],)
    """
    from scipy.optimize import linear_sum_assignment

    ours, theirs = _layers(first), _layers(second)
    if [W.shape for W, _ in ours] != [W.shape for W, _ in theirs]:
        raise ValueError("units are matched between networks of the same widths; these differ.")
    orders = []
    for hidden in range(len(ours) - 1):
        a, b = (np.column_stack(pairs[hidden]) for pairs in (ours, theirs))
        distances = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2.0 * a @ b.T
        order = linear_sum_assignment(distances)[1].tolist()
        theirs = permute_hidden(theirs, hidden, order)
        orders.append(order)
    return tuple(orders)


def _scaled(layers: Sequence[Any], hidden: int, factors: Array) -> Layers:
    pairs = _layers(layers)
    width = _width(pairs, hidden)
    if factors.shape != (width,):
        raise ValueError(f"one number per unit is needed, ({width},); got shape {factors.shape}.")
    (W, b), (V, c) = pairs[hidden], pairs[hidden + 1]
    pairs[hidden], pairs[hidden + 1] = (factors[:, None] * W, factors * b), (V / factors, c)
    return pairs


def _layers(layers: Sequence[Any]) -> Layers:
    pairs = [(np.asarray(W, dtype=float), np.asarray(b, dtype=float)) for W, b in layers]
    chained = all(a[0].shape[0] == b[0].shape[1] for a, b in pairwise(pairs))
    if not pairs or not chained or any(W.shape[:1] != b.shape for W, b in pairs):
        raise ValueError("layers are pairs (W, b) with W (out, in) and b (out,) whose shapes chain.")
    return pairs


def _width(pairs: Layers, hidden: int) -> int:
    if not 0 <= hidden < len(pairs) - 1:
        raise ValueError(f"hidden layers are 0 to {len(pairs) - 2}; got {hidden!r}.")
    return len(pairs[hidden][1])
