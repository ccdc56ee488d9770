r"""The ten properties of the ACAS Xu networks, in the units of their statements.

The networks advise an aircraft on how to avoid another one. Inputs are the distance to the intruder
(feet), the angle to it and its heading (radians), and both speeds (feet per second); outputs are the
scores of five advisories: clear of conflict (COC), weak left, weak right, strong left, strong right. The
*smallest* score is the advice.

====  =============================================================  ==================================
1     the intruder is distant and significantly slower than we       the score of COC is below 1500
2     the same                                                       COC has not the largest score
3     the intruder is directly ahead and moves towards us            COC has not the smallest score
4     the intruder is directly ahead, moves away, and is slower      COC has not the smallest score
5     the intruder is near and approaches from the left              strong right is advised
6     the intruder is sufficiently far away                          COC is advised
7     vertical separation is large                                   nothing strong is advised
8     the same, and the last advice was weak left                    COC or weak left is advised
9     the intruder is near, and the last advice was weak left        strong left is advised
10    the intruder is far away                                       COC is advised
====  =============================================================  ==================================

Katz et al. 2017, "Reluplex: an efficient SMT solver for verifying deep neural networks", appendix. As in
the files of the competitions a tie counts as a violation, and from property 5 on :math:`\pi` is cut to
3.141592.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pindown.affine import Array
from pindown.validation import integer
from pindown.verification._vnnlib.rounded_sets import rounded_interval, straddling
from pindown.verification.properties import Property, UnsafeSet

# The networks take (value - mean) / range and give (score - mean) / range.
_INPUT_MEANS = [Fraction(text) for text in ("19791.091", "0", "0", "650", "600")]
_INPUT_RANGES = [Fraction(text) for text in ("60261", "6.28318530718", "6.28318530718", "1100", "1200")]
_SCORE_LIMIT = (1500 - Fraction("7.5188840201005975")) / Fraction("373.94992")

_DISTANT = (
    "55947.691 60760, -3.141592653589793 3.141592653589793, -3.141592653589793 3.141592653589793, "
)
_COC, _WEAK_LEFT, _WEAK_RIGHT, _STRONG_LEFT, _STRONG_RIGHT = range(5)


class _Statement(NamedTuple):
    """What a property says, its boxes, and its ways to be violated: (a, b) for y_a <= y_b."""

    words: str
    boxes: list[str]
    unsafe: list[list[tuple[int, int]]]


def _others_below(best: int) -> list[list[tuple[int, int]]]:
    """Return the ways in which a score is not the smallest."""
    return [[(j, best)] for j in range(5) if j != best]


_STATEMENTS = {
    1: _Statement("the score of COC is below 1500", [_DISTANT + "1145 1200, 0 60"], []),
    2: _Statement(
        "COC has not the largest score",
        [_DISTANT + "1145 1200, 0 60"],
        [[(j, _COC) for j in range(1, 5)]],
    ),
    3: _Statement(
        "COC has not the smallest score",
        ["1500 1800, -0.06 0.06, 3.1 3.141592653589793, 980 1200, 960 1200"],
        [[(_COC, j) for j in range(1, 5)]],
    ),
    4: _Statement(
        "COC has not the smallest score",
        ["1500 1800, -0.06 0.06, 0 0, 1000 1200, 700 800"],
        [[(_COC, j) for j in range(1, 5)]],
    ),
    5: _Statement(
        "strong right is advised",
        ["250 400, 0.2 0.4, -3.141592 -3.136592, 100 400, 0 400"],
        _others_below(_STRONG_RIGHT),
    ),
    6: _Statement(
        "COC is advised",
        [
            "12000 62000, 0.7 3.141592, -3.141592 -3.136592, 100 1200, 0 1200",
            "12000 62000, -3.141592 -0.7, -3.141592 -3.136592, 100 1200, 0 1200",
        ],
        _others_below(_COC),
    ),
    7: _Statement(
        "neither strong left nor strong right is advised",
        ["0 60760, -3.141592 3.141592, -3.141592 3.141592, 100 1200, 0 1200"],
        [
            [(j, other) for other in (_COC, _WEAK_LEFT, _WEAK_RIGHT)]
            for j in (_STRONG_LEFT, _STRONG_RIGHT)
        ],
    ),
    8: _Statement(
        "COC or weak left is advised",
        ["0 60760, -3.141592 -2.356194, -0.1 0.1, 600 1200, 600 1200"],
        [
            [(j, other) for other in (_COC, _WEAK_LEFT)]
            for j in (_WEAK_RIGHT, _STRONG_LEFT, _STRONG_RIGHT)
        ],
    ),
    9: _Statement(
        "strong left is advised",
        ["2000 7000, -0.4 -0.14, -3.141592 -3.131592, 100 150, 0 150"],
        _others_below(_STRONG_LEFT),
    ),
    10: _Statement(
        "COC is advised",
        ["36000 60760, 0.7 3.141592, -3.141592 -3.131592, 900 1200, 600 1200"],
        _others_below(_COC),
    ),
}


def acas_xu(number: int) -> Property:
    """Return property 1 to 10 for a network with normalised inputs and outputs.

    >>> [len(acas_xu(number).unsafe) for number in range(1, 11)]
    [1, 1, 1, 1, 4, 8, 2, 3, 4, 4]
    """
    words, boxes, ways = _STATEMENTS[integer("number", number, least=1, most=10)]
    unsafe = []
    for low, high, inner_low, inner_high in map(_corners, boxes):
        if number == 1:
            row = -np.eye(1, 5)
            down, up = (np.array([end]) for end in straddling(-_SCORE_LIMIT))
            unsafe.append(
                UnsafeSet(low, high, row, up, inner=UnsafeSet(inner_low, inner_high, row, down))
            )
        for pairs in ways:
            rows, limits = np.zeros((len(pairs), 5)), np.zeros(len(pairs))
            for row, (smaller, larger) in zip(rows, pairs, strict=True):
                row[smaller], row[larger] = 1.0, -1.0
            inner = UnsafeSet(inner_low, inner_high, rows, limits)
            unsafe.append(UnsafeSet(low, high, rows, limits, inner=inner))
    return Property(tuple(unsafe), (5,), (5,), text=f"{words} (ACAS Xu {number})")


def _corners(box: str) -> Array:
    """Return the normalised corners, rounded outwards and inwards: (4, 5)."""
    columns = []
    for ends, mean, span in zip(box.split(","), _INPUT_MEANS, _INPUT_RANGES, strict=True):
        low, high = ((Fraction(end) - mean) / span for end in ends.split())
        columns.append(rounded_interval(low, high, (False, False)))
    return np.array(columns).T
