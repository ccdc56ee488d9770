"""Joining segments that share end points into lines."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def join_segments(segments: Ids) -> list[Ids]:
    """Join segments into chains as long as possible, each segment in one of them.

    A chain ends where a line ends, and where three or more segments meet. Rings come last. Chains run in
    the direction of their segments, if these agree on one.

    Args:
        segments: Pairs of point numbers, (m, 2).

    Returns:
        Point numbers along each chain; a closed one ends with its first.

    >>> [chain.tolist() for chain in join_segments(np.array([[5, 6], [1, 2], [2, 3], [3, 1], [4, 5]]))]
    [[4, 5, 6], [1, 2, 3, 1]]
    """
    at: dict[int, list[int]] = defaultdict(list)
    for i, ends in enumerate(segments.tolist()):
        for end in ends:
            at[end].append(i)
    used = np.zeros(len(segments), bool)
    chains = []
    # From ends and branchings first: what is left then are rings. Starts of segments before their ends.
    firsts = [int(a) for a, _ in segments] + [int(b) for _, b in segments]
    for ends_only in (True, False):
        for point in firsts:
            if ends_only and len(at[point]) == 2:
                continue
            for segment in sorted(at[point], key=lambda i: segments[i, 0] != point):
                if not used[segment]:
                    chains.append(_walk(segments, at, used, point, segment))
    return chains


def _walk(
    segments: Ids, at: dict[int, list[int]], used: NDArray[np.bool_], point: int, segment: int
) -> Ids:
    """Follow unused segments from a point as long as there is one way on."""
    chain = [point]
    while True:
        used[segment] = True
        a, b = (int(end) for end in segments[segment])
        point = b if point == a else a
        chain.append(point)
        onward = [i for i in at[point] if not used[i]]
        if len(at[point]) != 2 or not onward:
            return np.array(chain, dtype=np.int64)
        segment = onward[0]
