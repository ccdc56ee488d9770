"""Small random networks, for tests."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from pindown import ReluNetwork

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared"))


def random_network(rng, widths):
    return ReluNetwork.from_layers(
        [
            (rng.standard_normal((out, into)) / np.sqrt(into), 0.3 * rng.standard_normal(out))
            for into, out in pairwise(widths)
        ]
    )


def random_changes(rng, n, d, norm):
    """Changes of length at most 1, most of them nearly 1."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    R = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.random((n, 1)) + 0.2)
    sizes = np.linalg.norm(R, ord=order, axis=1)
    return R / np.maximum(sizes, 1e-300)[:, None] * rng.random((n, 1)) ** (1 / d)
