r"""A bound on the gap over all inputs, from norms of the layers alone.

If :math:`\|a^{l}(x)\| \le p_l \|x\| + q_l` after layer l, then the next layer gives
:math:`p_{l+1} = \|W\| p_l` and :math:`q_{l+1} = \|W\| q_l + \|b\|`. For networks of equal widths the
difference obeys the same with :math:`\delta' = (W_a - W_b) a + W_b \delta + (b_a - b_b)`. At the
output :math:`p \|x\| + q \le \max(p, q) (1 + \|x\|)`.

Szegedy et al. 2014, "Intriguing properties of neural networks", section 4.3 (products of norms).
"""

from __future__ import annotations

from math import inf

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.network import ReluNetwork
from pindown.relaxation.operator_norms import spectral_norm
from pindown.rounding import add_up, norm_up, product_up

_ROUNDED = 1.0 + 2.0**-50  # more than a difference of two float64 is off, as a factor


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
