r"""The difference of two networks as one network, and how far it may be from the true difference.

Depths may differ. On a box an output t of the shallower network is carried on by units that are always
on, :math:`t = \rho(t + M) - M` with :math:`t + M \ge 0`: one unit instead of the two of
:math:`\rho(t) - \rho(-t)`, and no fold that is not in one of the networks. The float64 offsets of the
result are rounded; by how much is known exactly and returned.

Mukherjee 2020, Lemma 2.A.3 (sums of networks), with the padding changed.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, block_diagonal, blocks, compact
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.network import ReluNetwork
from pindown.relaxation.linear import linear_bounds
from pindown.rounding import fraction_up, gamma


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
