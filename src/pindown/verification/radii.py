"""How far each input may move before its class is no longer proved: certified radii, by bisection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.network import ReluNetwork
from pindown.verification.certificates import certified
from pindown.verification.classes import as_classes, classifier, predicted
from pindown.verification.inputs import BoxLike, as_inputs, as_radii


def certified_radii(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    box: BoxLike = None,
    largest: float = 1.0,
    steps: int = 8,
    deadline: float = inf,
) -> Array:
    """Return for each input a radius within which its class is proved not to change, (n,).

    Found by bisection between 0 and ``largest``; 0 for inputs that are wrong already. A larger radius
    may be safe, too.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])
    >>> certified_radii(net, [[0.75], [3.0]], largest=1.0)
    array([0.74609375, 1.        ])

    Zhang et al. 2018, section 4.
    """
    deep = classifier(net)
    inputs, limits = as_inputs(deep, X, box)
    labels = predicted(deep, inputs) if y is None else as_classes(y, len(inputs), deep.out_features)
    top = float(as_radii(largest, 1)[0])
    proved, failed = np.zeros(len(inputs)), np.full(len(inputs), np.nan)
    for radii in _guesses(proved, failed, top, steps):
        if time.monotonic() > deadline:
            break
        ok = certified(deep, inputs, labels, radius=radii, norm=norm, box=limits, deadline=deadline)
        proved[:] = np.where(ok, np.maximum(proved, radii), proved)
        failed[:] = np.where(ok, failed, np.fmin(failed, radii))
    return proved


def _guesses(proved: Array, failed: Array, top: float, steps: int) -> Iterator[Array]:
    """Yield radii to try: the largest, then the middle between what was proved and what was not."""
    yield np.full(len(proved), top)
    for _ in range(steps):
        yield np.where(np.isnan(failed), top, 0.5 * (proved + np.nan_to_num(failed)))
