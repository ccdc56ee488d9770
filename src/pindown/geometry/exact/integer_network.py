"""A network with integer weights and the same signs.

Scaling a unit by a positive number changes no sign, and every float64 is an integer times a power of
two: so each network has an equivalent one whose weights are integers, and exact code needs no fraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Affine, dense
from pindown.geometry.exact.polytope import homogeneous
from pindown.network import ReluNetwork

Integers = Any  # an object array of Python integers; NumPy's types know no such thing


@dataclass(frozen=True, eq=False)
class IntegerNetwork:
    """A network with integer weights whose units are positive multiples of another network's.

    Attributes:
        weights: For each affine map the (out, in) object array of integers.
        biases: For each affine map the (out,) object array of integers.
        scales: What the outputs of the last map have been multiplied with.
        widths: Widths of the hidden layers.
    """

    weights: tuple[Integers, ...]
    biases: tuple[Integers, ...]
    scales: tuple[Fraction, ...]
    widths: tuple[int, ...]

    @property
    def first_units(self) -> list[int]:
        """Label of each hidden layer's first unit, and the number of units."""
        return [sum(self.widths[:layer]) for layer in range(len(self.widths) + 1)]


@lru_cache(maxsize=8)  # the arbiter of a certified run comes back with one network many times
def integer_network(net: ReluNetwork) -> IntegerNetwork:
    """Scale every unit of a network by a positive rational such that all weights are integers.

    >>> quarters = ReluNetwork.from_layers([([[0.75, -0.25]], [0.5]), ([[1.5]], [0])])
    >>> integer_network(quarters).weights[0].tolist(), integer_network(quarters).biases[0].tolist()
    ([[3, -1]], [2])
    """
    scales: list[Fraction] = [Fraction(1)] * net.in_features
    weights, biases = [], []
    for layer in net.layers:
        W, b, scales = _integer_layer(layer, scales)
        weights.append(W)
        biases.append(b)
    return IntegerNetwork(tuple(weights), tuple(biases), tuple(scales), net.hidden_widths)


def _integer_layer(layer: Affine, inputs: list[Fraction]) -> tuple[Integers, Integers, list[Fraction]]:
    """Return integer weights for inputs that are scaled already, and the scales of the outputs."""
    rows, scales = [], []
    for weights, bias in zip(dense(layer.weight).tolist(), layer.bias.tolist(), strict=True):
        exact = [Fraction(w) / s if w else Fraction(0) for w, s in zip(weights, inputs, strict=True)]
        exact.append(Fraction(bias))
        up = lcm(*(c.denominator for c in exact))
        whole = [c.numerator * (up // c.denominator) for c in exact]
        down = gcd(*whole) or 1
        rows.append([c // down for c in whole])
        scales.append(Fraction(up, down))
    table: Integers = np.array(rows, dtype=object)
    return table[:, :-1], table[:, -1], scales


def affine_map(
    net: IntegerNetwork, pattern: Sequence[NDArray[np.bool_]]
) -> tuple[tuple[Fraction, ...], ...]:
    """Return the map of a cell, one row ``(a_1, ..., a_d, c)`` for each output."""
    dim = net.weights[0].shape[1]
    forms = np.array([[int(i == j) for j in range(dim + 1)] for i in range(dim)], dtype=object)
    for layer, (W, b) in enumerate(zip(net.weights, net.biases, strict=True)):
        if layer:
            forms = forms * pattern[layer - 1].astype(int).astype(object)[:, None]
        forms = W.dot(forms)
        forms[:, -1] += b
    return tuple(
        tuple(Fraction(value) / scale for value in row)
        for row, scale in zip(forms.tolist(), net.scales, strict=True)
    )


def exact_signs(net: ReluNetwork, x: ArrayLike) -> NDArray[np.int8]:
    """Return the exact signs -1, 0, 1 of all units at one point of floats or fractions.

    >>> net = ReluNetwork.from_layers([([[10.0]], [-1]), ([[1]], [0])])
    >>> exact_signs(net, [0.1])  # the float 0.1 lies a little above one tenth
    array([1], dtype=int8)
    """
    point = [Fraction(value) for value in np.asarray(x, dtype=object).tolist()]
    if len(point) != net.in_features:
        raise ValueError(f"the network takes {net.in_features} inputs; got a point of {len(point)}.")
    *numerators, denominator = homogeneous(point)
    integers = integer_network(net)
    values: Any = np.array(numerators, dtype=object)
    found = [np.zeros(0, np.int8)]
    for W, b in zip(integers.weights[:-1], integers.biases[:-1], strict=True):
        values = W.dot(values) + b * denominator
        found.append((values > 0).astype(np.int8) - (values < 0).astype(np.int8))
        values = values * (values > 0)
    return np.concatenate(found)
