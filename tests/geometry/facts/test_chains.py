"""Segments joined to lines: every segment once, ends where lines end or meet."""

from itertools import pairwise

import numpy as np
import pytest

from pindown.geometry.facts.polylines import join_segments


def test_chains_stop_where_three_lines_meet():
    chains = join_segments(np.array([[0, 1], [1, 2], [1, 3], [3, 4], [7, 8], [8, 7]]))
    assert sorted(map(list, (c.tolist() for c in chains))) == [[0, 1], [1, 2], [1, 3, 4], [7, 8, 7]]
    assert join_segments(np.zeros((0, 2), int)) == []


@pytest.mark.parametrize("seed", range(10))
def test_every_segment_is_in_one_chain(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 12, (25, 2))
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    steps = [tuple(sorted(s)) for c in join_segments(pairs) for s in pairwise(c)]
    assert sorted(steps) == sorted(map(tuple, pairs.tolist()))


@pytest.mark.parametrize("seed", range(5))
def test_rings_and_lines_keep_their_direction(seed):
    ring, line = np.arange(6), np.arange(10, 15)
    pairs = np.vstack([np.stack([ring, np.roll(ring, -1)], 1), np.stack([line[:-1], line[1:]], 1)])
    shuffled = pairs[np.random.default_rng(seed).permutation(len(pairs))]
    first, second = join_segments(shuffled)
    assert first.tolist() == line.tolist()
    assert np.all(np.diff(second) % 6 == 1) and second[0] == second[-1]
