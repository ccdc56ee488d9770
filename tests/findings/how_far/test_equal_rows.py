"""Equal rows are found among many, whatever the digests say."""

from __future__ import annotations

import numpy as np
import pytest

from pindown.deadline import Deadline, OutOfTime
from pindown.findings.how_far import rows_and_labels
from pindown.findings.how_far.rows_and_labels import are_among, first_equal


def rows_of(seed, n=300):
    """Small whole numbers, so that many rows are equal, with zeros of both signs."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (n, 4)).astype(float)
    return np.where((X == 0) & (rng.random(X.shape) < 0.5), -0.0, X)


def by_looking_at_all(X):
    return [next(j for j, other in enumerate(X) if (other == row).all()) for row in X]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("digests_differ", [True, False])
def test_first_equal_row_and_membership(seed, digests_differ, monkeypatch):
    if not digests_differ:  # the worst accident: all rows look alike
        monkeypatch.setattr(
            rows_and_labels, "_digests", lambda X, check: np.zeros(len(X), dtype=np.uint64)
        )
    X, others = rows_of(seed), rows_of(seed + 10, 100)
    assert first_equal(X).tolist() == by_looking_at_all(X)
    expected = [bool((row == X).all(axis=1).any()) for row in others]
    assert 0 < sum(expected) < len(expected)
    assert are_among(others, X).tolist() == expected


def test_rows_that_differ_in_the_last_bit_differ():
    X = np.tile(np.random.default_rng(0).normal(size=50), (40, 1))
    X[7, 13] = np.nextafter(X[7, 13], 9.0)
    assert np.flatnonzero(first_equal(X)).tolist() == [7]
    # Digests tell them apart by themselves: nothing has to be sorted.
    assert len(np.unique(rows_and_labels._digests(X, lambda: None))) == 2


def test_work_ends_when_it_is_told_to():
    with pytest.raises(OutOfTime):
        first_equal(rows_of(0), Deadline.after(0.0).check)
