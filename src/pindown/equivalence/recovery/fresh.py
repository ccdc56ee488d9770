"""The check that ends every recovery: the network against the query on points never asked before."""

from __future__ import annotations

from math import expm1, inf, log, nextafter

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.lower import Lower
from pindown.equivalence.recovery.oracle import Oracle
from pindown.network import ReluNetwork

_EACH = 4_000  # points of each kind
_BESIDE = 40  # points beside every fold
_FAR = (0.003, 0.03, 0.3)  # how far beside, as shares of the cube
_DRAWS = 60_000  # points among which rare cells are looked for; they cost nothing


def fresh_error(oracle: Oracle, net: ReluNetwork, rng: np.random.Generator) -> tuple[float, int]:
    """Return the largest error of a network in cube coordinates, and how many of the points are uniform.

    The error is relative to the spread of the values. A network that is wrong is wrong on some of its
    cells, and those may be rare. So besides uniform points, points on faces and corners of the box, and
    points beside every fold, one point is taken from every cell that many draws hit.
    """
    uniform = rng.uniform(-1.0, 1.0, (_DRAWS, oracle.d))
    faces = rng.uniform(-1.0, 1.0, (_DRAWS, oracle.d))
    faces = np.where(rng.random(faces.shape) < rng.random((_DRAWS, 1)), np.sign(faces), faces)
    both = np.concatenate([uniform, faces])
    parts = [uniform[:_EACH], faces[:_EACH], both[_one_of_each_cell(net, both)]]
    parts += [_beside(net, i, rng) for i in range(net.depth - 1)]
    points = np.concatenate(parts)
    return float(np.max(np.abs(oracle(points) - net(points)))), _EACH


def excluded_share(n: int, delta: float) -> float:
    r"""Return the share of the box that n uniform points exclude from being worse than all of them.

    If the error exceeds the largest one seen on a share s of the box, n independent uniform points miss
    it with probability at most :math:`(1 - s)^n`, which is :math:`\delta` for

    .. math:: s = 1 - \delta^{1/n}.

    Clopper and Pearson 1934, for no failure in n trials; Wilks 1941, for a threshold that is the largest
    value seen.

    >>> round(excluded_share(1, 0.05), 12), excluded_share(4000, 0.05) < 3 / 4000
    (0.95, True)
    """
    return nextafter(-expm1(log(delta) / n), inf)


def _one_of_each_cell(net: ReluNetwork, points: Array) -> NDArray[np.int64]:
    """Return the numbers of points, one in each cell hit, the rarest cells first."""
    bits = np.packbits(net.pattern(points), axis=1)
    _, first, count = np.unique(bits, axis=0, return_index=True, return_counts=True)
    return np.asarray(first[np.argsort(count, kind="stable")][:_EACH], dtype=np.int64)


def _beside(net: ReluNetwork, i: int, rng: np.random.Generator) -> Array:
    """Return points near the zero sets of the units of one layer."""
    below = Lower(net.in_features, tuple((W, b) for W, b in net.layers[:i]))
    found = [np.empty((0, net.in_features))]
    for w, level in zip(*net.layers[i], strict=True):
        zeros = below.zeros(w, float(level), _BESIDE, rng)
        away = rng.choice(_FAR, (len(zeros), 1)) * rng.standard_normal(zeros.shape)
        found.append(np.clip(zeros + away, -1.0, 1.0))
    return np.concatenate(found)
