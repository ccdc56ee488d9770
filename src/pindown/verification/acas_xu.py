r"""The first four properties of the ACAS Xu networks, in the units of their statements.

The networks advise an aircraft on how to avoid another one. Inputs are the distance to the intruder
(feet), the angle to it and its heading (radians), and both speeds (feet per second); outputs are the
scores of five advisories, the first of which is clear of conflict (COC). The *smallest* score is the
advice.

====  =============================================================  ==================================
1     the intruder is distant and significantly slower than we       the score of COC is at most 1500
2     the same                                                       COC has not the largest score
3     the intruder is directly ahead and moves towards us            COC has not the smallest score
4     the intruder is directly ahead, moves away, and is slower      COC has not the smallest score
====  =============================================================  ==================================

Katz et al. 2017, "Reluplex: an efficient SMT solver for verifying deep neural networks", appendix.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.box import Box

# The networks take (value - mean) / range and give (score - mean) / range.
INPUT_MEANS = np.array([19791.091, 0.0, 0.0, 650.0, 600.0])
INPUT_RANGES = np.array([60261.0, 6.28318530718, 6.28318530718, 1100.0, 1200.0])
OUTPUT_MEAN, OUTPUT_RANGE = 7.5188840201005975, 373.94992
_INPUT_LOWER = np.array([0.0, -pi, -pi, 100.0, 0.0])
_INPUT_UPPER = np.array([60760.0, pi, pi, 1200.0, 1200.0])


class Property(NamedTuple):
    """A box of inputs, and the rows ``rows @ f <= limits`` that violate the property there."""

    box: Box
    rows: Array
    limits: Array
    statement: str


def acas_xu_property(number: int) -> Property:
    """Return property 1, 2, 3 or 4 for a network with normalised inputs and outputs.

    >>> acas_xu_property(1).box
    Box(5 dimensions, 0.6 <= x_1 <= 0.679858, -0.5 <= x_2 <= 0.5, -0.5 <= x_3 <= 0.5, and 2 more)

    Katz et al. 2017, appendix (properties 1 to 4).
    """
    smallest = np.hstack([np.ones((4, 1)), -np.eye(4)])  # COC minus each other score
    zeros = np.zeros(4)
    if number in (1, 2):
        box = _box({0: (55947.691, None), 3: (1145.0, None), 4: (None, 60.0)})
        if number == 2:
            return Property(box, -smallest, zeros, "COC has not the largest score")
        limit = (1500.0 - OUTPUT_MEAN) / OUTPUT_RANGE
        return Property(box, -np.eye(1, 5), np.array([-limit]), "the score of COC is at most 1500")
    ahead = {0: (1500.0, 1800.0), 1: (-0.06, 0.06)}
    if number == 3:
        box = _box({**ahead, 2: (3.10, None), 3: (980.0, None), 4: (960.0, None)})
        return Property(box, smallest, zeros, "COC has not the smallest score")
    if number == 4:
        box = _box({**ahead, 2: (0.0, 0.0), 3: (1000.0, None), 4: (700.0, 800.0)})
        return Property(box, smallest, zeros, "COC has not the smallest score")
    raise ValueError(f"number must be 1, 2, 3 or 4; got {number}.")


def _box(limits: dict[int, tuple[float | None, float | None]]) -> Box:
    low, high = _INPUT_LOWER.copy(), _INPUT_UPPER.copy()
    for i, (lower, upper) in limits.items():
        low[i] = low[i] if lower is None else lower
        high[i] = high[i] if upper is None else upper
    return Box((low - INPUT_MEANS) / INPUT_RANGES, (high - INPUT_MEANS) / INPUT_RANGES)
