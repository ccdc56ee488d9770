r"""Whether a row is a unit: its whole zero set must be a fold, wherever the output is not constant.

A fold of a deeper layer, continued straight, stops being a fold where it truly bends. So points are
drawn from ``w . a(y) + b = 0`` all over the cube, and second differences across it are measured at two
scales: a kink through the point shrinks them by the ratio of the scales, another one nearby does not.
Where another fold is nearer than that, both are measured again closer to the point.

Phuong 2021, Lemma 2.1: the fold-set of a transparent network is the union of its units' zero sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.lower import Lower
from pindown.equivalence.recovery.oracle import Oracle

_SAFETY = 16.0
_FINER = 4.0
_CLOSER = 16.0  # how much closer the next look is
_LOOKS = 3
_LEAST = 4  # kinks that must be seen
_SHARE = 0.9  # of points that are not in a constant place


@dataclass(frozen=True)
class Verdict:
    """What was seen on the zero set of a row.

    Attributes:
        kinks: Points with a kink.
        smooth: Points without one, although the function is not constant there.
        constant: Points around which the function is constant, where folds cannot be seen.
    """

    kinks: int
    smooth: int
    constant: int

    @property
    def share(self) -> float:
        """Share of kinks among the points that can tell."""
        return self.kinks / max(self.kinks + self.smooth, 1)

    @property
    def is_unit(self) -> bool:
        """Whether the whole zero set is a fold."""
        return self.kinks >= _LEAST and self.share >= _SHARE


def verify(oracle: Oracle, lower: Lower, row: Array, n: int, rng: np.random.Generator) -> Verdict:
    """Look for kinks at n points of the zero set of ``w . a(y) + b``."""
    points = lower.zeros(row[:-1], float(row[-1]), n, rng)
    _, J = lower.jacobian(points)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.linalg.norm(slope, axis=1)
    fine = size > 0.0
    points, across = points[fine], slope[fine] / size[fine, None]
    if not len(points):
        return Verdict(0, 0, 0)
    near = np.min(lower.distances(points), axis=1, initial=1.0)
    h = np.minimum(np.clip(4.0 * np.sqrt(oracle.noise), 2.0**-14, 2.0**-6), near / 2)
    kink, constant = _kinks(oracle, points, across, h)
    for _ in range(1, _LOOKS):
        again = np.flatnonzero(~kink & ~constant)
        kink[again], _ = _kinks(oracle, points[again], across[again], h[again] / _CLOSER)
        h[again] /= _CLOSER
    # Nearer to another fold than the noise allows to look, a point says nothing.
    silent = ~constant & ~kink & (near < 2.0**-13)
    smooth = ~constant & ~kink & ~silent
    return Verdict(int(kink.sum()), int(smooth.sum()), int(constant.sum()))


def _kinks(
    oracle: Oracle, points: Array, across: Array, h: Array
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return at which points there is a kink, and around which the function is constant."""
    steps = np.stack([-h, -h / _FINER, 0.0 * h, h / _FINER, h], axis=1)
    where = np.clip(points[:, None] + steps[..., None] * across[:, None], -1.0, 1.0)
    value = oracle(where)
    coarse = np.abs(value[:, 0] - 2.0 * value[:, 2] + value[:, 4]).max(axis=1)
    fine = np.abs(value[:, 1] - 2.0 * value[:, 2] + value[:, 3]).max(axis=1)
    allowed = _SAFETY * oracle.noise
    constant = np.asarray((np.ptp(value, axis=1) <= allowed).all(axis=1))
    return ~constant & (fine > allowed) & (fine > 0.5 / _FINER * coarse), constant
