"""Activation patterns, by the thousand: all of them for a few units, or those that inputs show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.geometry.exact.modular import Residues, multiply
from pindown.network import ReluNetwork

Mask: TypeAlias = NDArray[np.bool_]
_CHUNK = 4096  # patterns at once: keeps the stacks of products in memory


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
    for start in range(0, prod(shape), _CHUNK):
        index = np.unravel_index(np.arange(start, min(start + _CHUNK, prod(shape))), shape)
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
