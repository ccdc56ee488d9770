"""Evidence of distances and of networks, added on one scale."""

import numpy as np
import pytest

from pindown.learn.one_class.scoring import Mixture, tempered

LOG19 = np.log(19)


def on_scale(scores, at=None):
    """Affine: zero at the twentieth part of the scores, log 19 at their median."""
    edge, middle = np.quantile(scores, [0.05, 0.5])
    return ((scores if at is None else at) - edge) / (middle - edge) * LOG19


@pytest.mark.parametrize("weight", [0.0, 0.4, 2.0])
def test_weighted_evidence_is_added_and_brought_to_the_scale_of_log_odds(weight):
    rng = np.random.default_rng(0)
    density, held = rng.normal(size=80), rng.exponential(size=80) * 7 - 3
    mix = Mixture.of(density, held, np.zeros(80), weight)
    added = density + weight * LOG19 * np.arcsinh(on_scale(held) / LOG19)
    assert mix(density, held) == pytest.approx(on_scale(added))
    alone = Mixture.of(None, held, np.zeros(80), weight)
    assert alone(None, held) == pytest.approx(on_scale(LOG19 * np.arcsinh(on_scale(held) / LOG19)))


def test_rows_without_a_held_out_score_do_not_set_the_scale():
    rng = np.random.default_rng(1)
    density, held, seen = rng.normal(size=60), rng.normal(size=60), rng.normal(size=60) + 50
    held[::3] = np.nan
    known = np.isfinite(held)
    some = Mixture.of(density[known], held[known], seen[known], 0.5)
    assert Mixture.of(density, held, seen, 0.5)(density, seen) == pytest.approx(some(density, seen))
    none = Mixture.of(density, np.full(60, np.nan), seen, 0.5)
    assert none(density, seen) == pytest.approx(Mixture.of(density, seen, held, 0.5)(density, seen))


def test_large_evidence_counts_by_its_logarithm():
    assert tempered(np.array([1e-6])) == pytest.approx(1e-6)
    assert tempered(np.array([-50.0])) == -tempered(np.array([50.0]))
    steps = tempered(np.array([1e6, 1e7, 1e8]))
    assert np.diff(steps) == pytest.approx(LOG19 * np.log(10))
