"""The affine maps of a rational network with one input, and where on the line they change.

Mukherjee 2020, proof of Lemma 2.A.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from pindown.rational import RationalNetwork, Rationals


def sweep(net: RationalNetwork) -> tuple[list[Fraction], list[tuple[Rationals, Rationals]]]:
    """Carry breakpoints and the affine maps between them through all layers, on the whole line.

    Returns:
        The places where some unit changes its sign, ascending, and for each interval between them,
        the outer ones included, slopes and offsets of all outputs.

    >>> cuts, maps = sweep(RationalNetwork.from_layers([([[1]], [-2]), ([[3]], [0])]))
    >>> cuts, [(int(slope[0]), int(offset[0])) for slope, offset in maps]
    ([Fraction(2, 1)], [(0, 0), (3, -6)])
    """
    W, b = net.layers[0]
    cuts: list[Fraction] = []
    maps: list[tuple[Rationals, Rationals]] = [(W[:, 0], b)]
    for W, b in net.layers[1:]:
        cuts, maps = _rectified(cuts, maps)
        maps = [(W @ slope, W @ offset + b) for slope, offset in maps]
    return cuts, maps


def _rectified(
    cuts: Sequence[Fraction], maps: Sequence[tuple[Rationals, Rationals]]
) -> tuple[list[Fraction], list[tuple[Rationals, Rationals]]]:
    """Apply ReLU to functions that are affine between cuts; add a cut wherever one changes its sign."""
    ends = [None, *cuts, None]
    new_cuts: list[Fraction] = []
    new_maps: list[tuple[Rationals, Rationals]] = []
    for (low, high), (slope, offset) in zip(pairwise(ends), maps, strict=True):
        if low is not None:
            new_cuts.append(low)
        zeros = {-c / s for s, c in zip(slope, offset, strict=True) if s}
        inside = sorted(z for z in zeros if (low is None or z > low) and (high is None or z < high))
        new_cuts.extend(inside)
        for left, right in pairwise([low, *inside, high]):
            middle = _between(left, right)
            on = (slope * middle + offset) > 0
            new_maps.append((slope * on, offset * on))
    return new_cuts, new_maps


def _between(low: Fraction | None, high: Fraction | None) -> Fraction:
    if low is None:
        return high - 1 if high is not None else Fraction(0)
    return (low + high) / 2 if high is not None else low + 1
