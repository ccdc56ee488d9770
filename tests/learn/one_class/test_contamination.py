"""Training rows of which some are outliers."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pindown.learn import LocalMaximaDetector
from pindown.learn.one_class._density import NeighbourDensity

QUICK = {"max_epochs": 5, "n_estimators": 1, "random_state": 0}


def with_a_group(share, n=200):
    rng = np.random.default_rng(0)
    outliers = np.arange(n) >= n - round(share * n)
    X = rng.normal(size=(n, 3))
    X[outliers] = 4 + 0.05 * rng.normal(size=(outliers.sum(), 3))
    return X, outliers


def test_outliers_in_a_group_are_found_where_they_are_expected(tmp_path):
    X, outliers = with_a_group(0.06)
    usual = LocalMaximaDetector(calibration=None, **QUICK).fit(X)
    model = LocalMaximaDetector(expects=0.12, **QUICK).fit(X)
    assert roc_auc_score(outliers, -usual.score_samples(X)) < 0.9
    assert roc_auc_score(outliers, -model.score_samples(X)) > 0.99
    assert (model.predict(X) == -1).mean() == pytest.approx(0.12, abs=0.01)
    assert (model.predict(X)[outliers] == -1).all()
    model.save(tmp_path / "m.safetensors")
    loaded = LocalMaximaDetector.load(tmp_path / "m.safetensors")
    np.testing.assert_allclose(loaded.score_samples(X), model.score_samples(X), rtol=1e-6, atol=1e-6)
    assert loaded.density_.neighbours == model.density_.neighbours == (24,)


def test_networks_learn_without_the_rows_that_are_farthest_away(monkeypatch):
    from pindown.learn.one_class import _learning

    seen = []
    train = _learning.trained

    def spy(plan, inputs, *rest):
        seen.append(inputs)
        return train(plan, inputs, *rest)

    monkeypatch.setattr(_learning, "trained", spy)
    X, outliers = with_a_group(0.06)
    model = LocalMaximaDetector(expects=0.12, calibration=None, **QUICK).fit(X)
    inputs = model.scaling_.inputs(X).numpy()
    known = {row.tobytes() for row in seen[0].numpy()}
    assert len(known) == 176
    assert not any(row.tobytes() in known for row in inputs[outliers])


def test_distances_are_means_to_so_many_others():
    points = np.random.default_rng(1).normal(size=(30, 2)).astype(np.float32).astype(float)
    density = NeighbourDensity.of(points, weights=np.ones(1), neighbours=(7,))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    by_hand = np.sort(apart, axis=1)[:, 1:8].mean(axis=1)
    np.testing.assert_allclose(density.distances(points)[:, 0], by_hand, rtol=1e-9)


@pytest.mark.parametrize("share", [0, 0.6, "some"])
def test_shares_that_mean_nothing_are_refused(share):
    with pytest.raises(ValueError, match=r"expects must be a number above 0 and at most 0\.5"):
        LocalMaximaDetector(expects=share).fit(np.zeros((5, 2)))
