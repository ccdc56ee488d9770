r"""Sums, compositions and products of ReLU networks, as ReLU networks.

The functions that ReLU networks compute are closed under composition and linear combination, and
the networks here have the sizes the theory counts: :math:`s_f + s_g` for both, plus
:math:`2 k` ReLUs for every layer by which the shallower one must be padded.

Mukherjee 2020, Lemmas 2.A.2, 2.A.3 and 2.A.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, block_diagonal, blocks, compact
from pindown.network import ReluNetwork


def compose(outer: ReluNetwork, inner: ReluNetwork) -> ReluNetwork:
    """Return ``x -> outer(inner(x))`` with depth ``L_outer + L_inner - 1``, sizes added.

    >>> double = ReluNetwork.from_layers([([[2.0]], [1.0])])
    >>> (double @ double)([1.0])
    array([7.])
    """
    if outer.in_features != inner.out_features:
        raise ValueError(
            f"to compose, the outer network must take what the inner one gives; "
            f"it takes {outer.in_features}, the inner gives {inner.out_features}."
        )
    joint = outer.layers[0].after(inner.layers[-1])
    layers = (*inner.layers[:-1], joint, *outer.layers[1:])
    return ReluNetwork(layers, inner.input_shape, outer.output_activation)


def linear_combination(coefficients: Sequence[float], networks: Sequence[ReluNetwork]) -> ReluNetwork:
    r"""Return :math:`x \mapsto \sum_i c_i f_i(x)`.

    Args:
        coefficients: The numbers :math:`c_i`.
        networks: The :math:`f_i`, with equal input and output sizes and any depths.

    >>> relu = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    >>> flip = ReluNetwork.from_layers([([[-1.0]], [0]), ([[1.0]], [0])])
    >>> (relu - flip)([[-2.0], [5.0]]).ravel()
    array([-2.,  5.])
    """
    if len(coefficients) != len(networks):
        raise ValueError(f"{len(coefficients)} coefficients for {len(networks)} networks.")
    if len({net.out_features for net in networks}) > 1:
        sizes = [net.out_features for net in networks]
        raise ValueError(f"networks to add need equal output sizes; got {sizes}.")
    side_by_side = stack(networks)
    eye = sp.eye_array(networks[0].out_features, format="csr")
    total = Affine.of(
        blocks([[c * eye for c in coefficients]]),
        np.zeros(networks[0].out_features),
    )
    return compose(ReluNetwork((total,)), side_by_side)


def stack(networks: Sequence[ReluNetwork]) -> ReluNetwork:
    r"""Return :math:`x \mapsto (f_1(x), \dots, f_m(x))`, all reading the same input."""
    if not networks:
        raise ValueError("stack needs at least one network.")
    if len({net.in_features for net in networks}) > 1:
        sizes = [net.in_features for net in networks]
        raise ValueError(f"networks that share an input need equal input sizes; got {sizes}.")
    padded = _equal_depth(networks)
    first = Affine.of(
        blocks([[net.layers[0].weight] for net in padded]),
        np.concatenate([net.layers[0].bias for net in padded]),
    )
    return ReluNetwork((first, *_diagonal_layers(padded, start=1)), networks[0].input_shape)


def direct_sum(networks: Sequence[ReluNetwork]) -> ReluNetwork:
    r"""Return :math:`(x_1, \dots, x_m) \mapsto (f_1(x_1), \dots, f_m(x_m))`."""
    if not networks:
        raise ValueError("direct_sum needs at least one network.")
    return ReluNetwork(_diagonal_layers(_equal_depth(networks), start=0))


def pad_depth(net: ReluNetwork, depth: int) -> ReluNetwork:
    r"""Return the same function with ``depth`` affine maps, :math:`2k` ReLUs per added layer.

    Uses :math:`t = \rho(t) - \rho(-t)` on the k outputs; both parts then pass unchanged through
    any number of ReLUs.
    """
    extra = depth - net.depth
    if extra < 0:
        raise ValueError(f"cannot pad a network of depth {net.depth} down to {depth}.")
    if extra == 0:
        return net
    weight, bias = net.layers[-1]
    k = net.out_features
    eye, pass_on = sp.eye_array(k, format="csr"), sp.eye_array(2 * k, format="csr")
    split = Affine.of(blocks([[weight], [-weight]]), np.concatenate([bias, -bias]))
    middle = Affine.of(compact(pass_on), np.zeros(2 * k))
    join = Affine.of(blocks([[eye, -eye]]), np.zeros(k))
    layers = (*net.layers[:-1], split, *[middle] * (extra - 1), join)
    return ReluNetwork(layers, net.input_shape, net.output_activation)


def _equal_depth(networks: Sequence[ReluNetwork]) -> list[ReluNetwork]:
    depth = reduce(max, (net.depth for net in networks))
    return [pad_depth(net, depth) for net in networks]


def _diagonal_layers(networks: Sequence[ReluNetwork], start: int) -> tuple[Affine, ...]:
    return tuple(
        Affine.of(
            block_diagonal([net.layers[i].weight for net in networks]),
            np.concatenate([net.layers[i].bias for net in networks]),
        )
        for i in range(start, networks[0].depth)
    )
