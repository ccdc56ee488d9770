"""P-values and false discoveries, against what they are by definition."""

import numpy as np
import pytest

from pindown.learn import benjamini_hochberg, conformal_p_values
from pindown.learn.conformal import HeldOutScores


def test_ties_count_as_at_least_as_strange():
    assert conformal_p_values([1, 1, 2], [1, 0.5, 2, 3]).tolist() == [0.75, 0.25, 1.0, 1.0]
    assert conformal_p_values([-np.inf, 0.0], [-np.inf, -1.0]).tolist() == [2 / 3, 2 / 3]
    with pytest.raises(ValueError, match="NaN"):
        conformal_p_values([np.nan], [0.0])


def test_false_discoveries_are_those_of_the_step_up_rule():
    rng = np.random.default_rng(0)
    for m in (1, 2, 7, 40):
        for _ in range(50):
            p, q = rng.integers(1, 30, m) / 30 * rng.choice([0.05, 1]), rng.choice([0.05, 0.1, 0.31])
            largest = max((k for k in range(1, m + 1) if np.sort(p)[k - 1] <= q * k / m), default=0)
            expected = p <= (np.sort(p)[largest - 1] if largest else -1)
            assert benjamini_hochberg(p, q).tolist() == expected.tolist()
    assert benjamini_hochberg([], 0.1).tolist() == []
    with pytest.raises(ValueError, match="fdr must be a number above 0 and below 1"):
        benjamini_hochberg([0.1], 1.0)


@pytest.mark.parametrize("parts", [1, 3])
def test_ranks_keep_the_order_of_p_values_and_thresholds_part_them(parts):
    rng = np.random.default_rng(1)
    held_out = HeldOutScores(tuple(rng.normal(size=9) for _ in range(parts)))
    scores = [np.sort(rng.normal(size=60) * 3) for _ in range(parts)]
    p, ranks = held_out.p_values(scores), held_out.ranks(scores)
    assert (np.diff(ranks) >= 0).all() and (ranks <= p).all()
    for rate in (0.05, 0.1, 1 / (9 * parts + 1), 0.5, 1.0):
        assert ((ranks < held_out.threshold(rate)) == (p <= rate)).all()


def test_twice_the_rate_is_what_is_proved_of_cross_conformal_p_values():
    """The identity behind the bound: (n + 1) p + K - 1 is the sum of (n_k + 1) p_k."""
    rng = np.random.default_rng(2)
    parts = tuple(rng.normal(size=n) for n in (5, 6, 9))
    new = [rng.normal(size=30) for _ in parts]
    together = HeldOutScores(parts).p_values(new)
    each = [(len(s) + 1) * conformal_p_values(s, t) for s, t in zip(parts, new, strict=True)]
    np.testing.assert_allclose(21 * together + 2, np.sum(each, axis=0))
    assert HeldOutScores(parts).kind == "estimate" and HeldOutScores(parts[:1]).kind == "probability"
