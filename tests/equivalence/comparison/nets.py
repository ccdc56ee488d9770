"""Networks and exact gaps that the tests of this folder share."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from pindown.affine import dense
from pindown.box import Box
from pindown.network import ReluNetwork


def random_net(widths, rng, scale=1.0):
    return ReluNetwork.from_layers(
        [
            (scale * rng.normal(size=(m, n)) / np.sqrt(n), 0.3 * scale * rng.normal(size=m))
            for n, m in pairwise(widths)
        ]
    )


def perturbed(net, size, rng):
    return ReluNetwork.from_layers(
        [
            (dense(W) * (1 + size * rng.normal(size=W.shape)), b * (1 + size * rng.normal(size=b.shape)))
            for W, b in net.layers
        ]
    )


def exact_gap(a, b, x):
    """The gap at a point, as a rational number."""
    f, g = (net.as_fractions()([Fraction(float(v)) for v in x]) for net in (a, b))
    return max(abs(p - q) for p, q in zip(f, g, strict=True))


def unit_box(d):
    return Box.cube(d, -1.0, 1.0)
