"""Small networks of whole numbers with unsafe sets that are just reached or just not."""

from itertools import pairwise

import numpy as np

from pindown import ReluNetwork
from pindown.verification import UnsafeSet
from tests.verification.brute_force import reaches


def whole_network(rng, d, k=2, depth=3, width=5):
    """Return a network whose weights are small whole numbers: ties are exact."""
    widths = [d, *rng.integers(1, width, rng.integers(1, depth + 1)), k]
    return ReluNetwork.from_layers(
        [
            (rng.integers(-2, 3, (m, n)).astype(float), rng.integers(-2, 3, m).astype(float))
            for n, m in pairwise(widths)
        ]
    )


def unsafe_set(rng, net, *, inputs=False, strict=False):
    """Return an unsafe set whose limits lie among values that the network has."""
    d, k, q = net.in_features, net.out_features, int(rng.integers(1, 4))
    rows = rng.integers(-1, 2, (q, k)).astype(float)
    input_rows = rng.integers(-1, 2, (q, d)).astype(float) if inputs else None
    X = rng.uniform(-2, 2, (100, d))
    values = net(X) @ rows.T + (0.0 if input_rows is None else X @ input_rows.T)
    limits = np.round(2 * np.quantile(values, rng.uniform(0, 0.4), axis=0)) / 2
    limits += 0.25 * rng.choice([0.0, 1.0, -1.0])
    low, high = np.full(d, -2.0), np.full(d, 2.0)
    return UnsafeSet(low, high, rows, limits, input_rows, rng.random(q) < 0.5 if strict else None)


def known(net, unsafe, room=0.01):
    """Return ``"reached"`` or ``"safe"``, or ``"tie"`` where limits moved by a little change that."""
    closed = UnsafeSet(unsafe.lower, unsafe.upper, unsafe.rows, unsafe.limits, unsafe.input_rows)
    answers = [reaches(net, closed, slack) for slack in (-room, room)]
    return "tie" if answers[0] != answers[1] else ("reached" if answers[0] else "safe")
