"""Networks that several tests of equivalence draw."""

import itertools

import numpy as np
import scipy.sparse as sp

from pindown import ReluNetwork


def random_net(rng, widths=None, *, sparse=False):
    """Return a network with normal weights, of random small widths unless they are given."""
    if widths is None:
        widths = [*rng.integers(2, 9, size=rng.integers(2, 6)), int(rng.integers(1, 4))]
    layers = []
    for n, m in itertools.pairwise(widths):
        W = rng.standard_normal((m, n)) / np.sqrt(n)
        if sparse:
            W *= rng.random((m, n)) < 0.5
            W[np.arange(m), rng.integers(0, n, m)] = 1.0
            W = sp.csr_array(W)
        layers.append((W, 0.3 * rng.standard_normal(m)))
    return ReluNetwork.from_layers(layers)


def changed(net, rng, size, *, layers=None):
    """Return the network with every number of some layers multiplied by ``1 + size * g``."""
    pairs = []
    for i, (W, b) in enumerate(net.layers):
        if layers is not None and i not in layers:
            pairs.append((W, b))
            continue
        entries = W.data if sp.issparse(W) else W
        moved = entries * (1.0 + size * rng.standard_normal(entries.shape))
        weight = sp.csr_array((moved, W.indices, W.indptr), W.shape) if sp.issparse(W) else moved
        pairs.append((weight, b * (1.0 + size * rng.standard_normal(b.shape))))
    return ReluNetwork.from_layers(pairs)
