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


def test_fixed_columns_keep_their_values():
    from pandas import DataFrame

    from pindown.learn import LocalMaximaDetector

    X = np.random.default_rng(0).normal(size=(60, 3))
    settings = {"max_epochs": 20, "n_estimators": 1, "calibration": None, "random_state": 0}
    model = LocalMaximaDetector(**settings).fit(DataFrame(X, columns=["a", "b", "c"]))
    start = [1.5, 0.7, -1.2]
    path = model.improve(start, steps=4, fixed=["a", 2])
    assert len(path.points) > 1
    assert path.points[:, [0, 2]].tolist() == [[1.5, -1.2]] * len(path.points)
    assert model.improve(start, fixed=range(3)).reason == "the comparator is flat here"
    for wrong in (["d"], [3], [-1], [0.5]):
        with pytest.raises(ValueError, match="fixed must be names or numbers of the 3 columns"):
            model.improve(start, fixed=wrong)
    images = np.random.default_rng(1).uniform(size=(30, 6, 6, 2))
    model = LocalMaximaDetector(**settings | {"max_epochs": 2}).fit(images)
    path = model.improve(images[0], steps=3, fixed=range(36))
    moved = path.points.reshape(len(path.points), -1) - images[0].ravel()
    assert not moved[:, :36].any() and (len(moved) == 1 or moved[-1, 36:].any())
