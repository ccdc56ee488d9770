r"""The difference of two networks as one network, and how far it may be from the true difference.

Depths may differ. On a box an output t of the shallower network is carried on by units that are always
on, :math:`t = \rho(t + M) - M` with :math:`t + M \ge 0`: one unit instead of the two of
:math:`\rho(t) - \rho(-t)`, and no fold that is not in one of the networks. The float64 offsets of the
result are rounded; by how much is known exactly and returned.

Mukherjee 2020, Lemma 2.A.3 (sums of networks), with the padding changed.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix, block_diagonal, blocks, compact
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.network import ReluNetwork
from pindown.relaxation.linear import linear_bounds
from pindown.relaxation.operator_norms import spectral_norm
from pindown.rounding import add_up, fraction_up, gamma, norm_up, product_up

_ROUNDED = 1.0 + 2.0**-50  # more than a difference of two float64 is off, as a factor


class Difference(NamedTuple):
    """A network d with ``|a_k(x) - b_k(x) - d_k(x)| <= error_k`` on the box."""

    net: ReluNetwork
    error: Array


class _Deep(NamedTuple):
    """A network padded to some depth: its outputs are those of ``layers`` minus ``shift``."""

    layers: tuple[Affine, ...]
    shift: Array
    error: Array


def difference(
    a: ReluNetwork, b: ReluNetwork, box: Box, *, deadline: Deadline = NEVER
) -> Difference | None:
    """Return a network for ``a - b`` on a box; None if its numbers leave float64.

    Past the deadline bounds are no longer tightened, so that a shallower network is carried on with
    larger offsets.

    >>> line = ReluNetwork.from_layers([([[2.0]], [1])])
    >>> relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> net, error = difference(line, relu, Box([-1], [1]))
    >>> net([[-1.0], [1.0]]).ravel(), net.widths, error
    (array([-1.,  2.]), (1, 2, 1), array([0.]))
    """
    depth = max(a.depth, b.depth, 2)
    first, second = (_deepened(net, depth, box, deadline) for net in (a, b))
    if first is None or second is None:
        return None
    exact = [
        Fraction(p) - Fraction(s) - Fraction(q) + Fraction(t)
        for p, s, q, t in zip(
            first.layers[-1].bias, first.shift, second.layers[-1].bias, second.shift, strict=True
        )
    ]
    try:
        bias = np.array([float(value) for value in exact])
    except OverflowError:
        return None
    rounding = np.array(
        [fraction_up(abs(Fraction(x) - y)) for x, y in zip(bias.tolist(), exact, strict=True)]
    )
    pairs = list(zip(first.layers, second.layers, strict=True))
    layers = [
        Affine.of(blocks([[p.weight], [q.weight]]), np.concatenate([p.bias, q.bias]))
        for p, q in pairs[:1]
    ]
    layers += [
        Affine.of(block_diagonal([p.weight, q.weight]), np.concatenate([p.bias, q.bias]))
        for p, q in pairs[1:-1]
    ]
    layers.append(Affine.of(blocks([[pairs[-1][0].weight, -pairs[-1][1].weight]]), bias))
    error = (rounding + first.error + second.error) * (1.0 + gamma(8))
    return Difference(ReluNetwork(tuple(layers), a.input_shape), error)


def _deepened(net: ReluNetwork, depth: int, box: Box, deadline: Deadline) -> _Deep | None:
    """Carry the outputs through further ReLUs that are always on."""
    k, extra = net.out_features, depth - net.depth
    if extra == 0:
        return _Deep(net.layers, np.zeros(k), np.zeros(k))
    lowest = linear_bounds(net, box, deadline=deadline)[-1].lower
    if not np.isfinite(lowest).all() or np.min(lowest) < -(2.0**1000):
        return None
    # Powers of two, so that adding them disturbs few digits.
    shift = np.where(lowest < 0, 2.0 ** np.ceil(np.log2(np.maximum(-lowest, 2.0**-1000)) + 0.01), 0.0)
    weight, bias = net.layers[-1]
    moved = bias + shift
    lost = [
        # Twice: it may also turn a unit off.
        fraction_up(2 * abs(Fraction(m) - Fraction(b) - Fraction(s)))
        for m, b, s in zip(moved.tolist(), bias.tolist(), shift.tolist(), strict=True)
    ]
    eye = Affine.of(compact(sp.eye_array(k, format="csr")), np.zeros(k))
    return _Deep((*net.layers[:-1], Affine.of(weight, moved), *[eye] * extra), shift, np.array(lost))


def norm_gap(a: ReluNetwork, b: ReluNetwork, *, budget: float = inf) -> float:
    r"""Bound :math:`\sup_x \max_k |a_k(x) - b_k(x)| / (1 + \|x\|_2)` over all inputs.

    Args:
        a: A network.
        b: One with as many inputs and outputs.
        budget: Seconds for tight norms of the layers; simpler bounds are used for the others.

    >>> nets = [ReluNetwork.from_layers([([[2.0]], [c]), ([[3.0]], [0])]) for c in (0.0, 0.5)]
    >>> round(norm_gap(*nets), 6)
    1.5
    """
    with np.errstate(over="ignore", invalid="ignore"):
        share = budget / (3 * max(a.depth, b.depth) + a.depth + b.depth)  # of each of the norms
        apart = [add_up(p, q) for p, q in zip(_growth(a, share), _growth(b, share), strict=True)]
        bounds = [max(map(float, apart))]
        if a.widths == b.widths:
            bounds.append(_tied(a, b, share))
    finite = [float(bound) for bound in bounds if np.isfinite(bound)]
    return min(finite, default=np.inf)


def _growth(net: ReluNetwork, share: float) -> tuple[float, float]:
    """Return p and q with ``|f_k(x)| <= p ||x|| + q`` for all outputs."""
    p, q = 1.0, 0.0
    for layer in net.layers[:-1]:
        size = spectral_norm(layer.weight, budget=share).value
        p, q = product_up([size, p]), _sum([size, q], [norm_up(layer.bias)])
    size = float(np.max(_row_norms(net.layers[-1].weight)))
    return product_up([size, p]), _sum([size, q], [float(np.max(np.abs(net.layers[-1].bias)))])


def _tied(a: ReluNetwork, b: ReluNetwork, share: float) -> float:
    p, q, slope, offset = 1.0, 0.0, 0.0, 0.0
    for i, (one, two) in enumerate(zip(a.layers, b.layers, strict=True)):
        change = Affine(one.weight - two.weight, one.bias - two.bias)
        last = i == a.depth - 1
        far, near, own = (_size(W, last, share) for W in (change.weight, two.weight, one.weight))
        shift = float(np.max(np.abs(change.bias))) if last else norm_up(change.bias)
        slope = _sum([_ROUNDED, far, p], [near, slope])
        offset = _sum([_ROUNDED, far, q], [near, offset], [_ROUNDED, shift])
        p, q = product_up([own, p]), _sum([own, q], [norm_up(one.bias)])
    return max(slope, offset)


def _sum(*products: list[float]) -> float:
    """Return at least a sum of products of numbers >= 0, also where a product underflows."""
    total = 0.0
    for factors in products:
        total = float(add_up(total, product_up(factors)))
    return total


def _size(weight: Matrix, last: bool, share: float) -> float:
    """Return the spectral norm, or for the output the largest length of a row."""
    return float(np.max(_row_norms(weight))) if last else spectral_norm(weight, budget=share).value


def _row_norms(weight: Matrix) -> Array:
    if not sp.issparse(weight):
        return np.array([norm_up(row) for row in weight])
    return np.array(
        [norm_up(weight.data[i:j]) for i, j in zip(weight.indptr, weight.indptr[1:], strict=False)]
    )
