"""Networks as training begins with, and after some training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pindown.box import Box
from pindown.experiments.fitting import fit_student
from pindown.network import ReluNetwork


def random_network(widths: Sequence[int], seed: int) -> ReluNetwork:
    r"""Draw :math:`W \sim N(0, 2 / n)` and biases uniform in :math:`\pm 1/\sqrt{n}`, n the fan-in.

    >>> random_network((2, 3, 1), 0).widths
    (2, 3, 1)
    """
    rng = np.random.default_rng([seed, *widths])
    return ReluNetwork.from_layers(
        (
            rng.normal(0.0, np.sqrt(2.0 / n), (m, n)),
            rng.uniform(-1.0 / np.sqrt(n), 1.0 / np.sqrt(n), m),
        )
        for n, m in pairwise(widths)
    )


def trained_network(widths: Sequence[int], seed: int, *, evaluations: int = 60) -> ReluNetwork:
    """Fit a random network to a smooth function on [-1, 1]^d."""
    start = random_network(widths, seed)
    rng = np.random.default_rng([seed, 1, *widths])
    X = Box.cube(widths[0], -1, 1).sample(1_000, rng)
    frequencies = rng.normal(0.0, 1.5, (widths[0], widths[-1]))
    return fit_student(start, X, np.sin(X @ frequencies), evaluations=evaluations)
