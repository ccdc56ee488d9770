"""The data of the comparison of bounds, its protocol and its verdict."""

import numpy as np
import pytest
from scipy.stats import kstest, truncnorm

from pindown_reproduction.relu_thesis import pac_bayes_clusters, pac_bayes_images
from pindown_reproduction.relu_thesis._pac_bayes import FORMS, compare, glorot, nice_margin, trained


def test_clusters_are_truncated_normals_within_their_boxes():
    X, y = pac_bayes_clusters.two_clusters(1000, 20, 6.0, np.random.default_rng(0))
    centres = np.where(y, 6.0, 1.0)[:, None]
    assert (np.abs(X - centres) <= 1).all() and (y == 1).sum() == 500
    assert kstest((X - centres).ravel(), truncnorm(-1, 1).cdf).pvalue > 1e-3
    assert np.linalg.norm(X, axis=1).max() <= 50
    assert X[y == 0].sum(axis=1).max() < X[y == 1].sum(axis=1).min()  # linearly separable


def test_start_has_the_variance_of_glorot():
    net = glorot((300, 200, 10), np.random.default_rng(0))
    for W in net.matrices:
        assert W.std() == pytest.approx(np.sqrt(2 / sum(W.shape)), rel=0.05)


def test_one_small_cell_has_both_bounds_in_all_forms():
    cell = {
        "separation": 6,
        "depth": 2,
        "seed": 0,
        "dimension": 20,
        "points": 200,
        "width": 10,
        "cluster": 2,
    }
    found = pac_bayes_clusters.run(cell)
    assert set(found["ours"]) == set(found["theirs"]) == set(FORMS)
    assert found["theirs"]["sharp"] <= found["as given"]
    assert found["theirs"]["sharp"] < found["theirs"]["corrected"]
    assert found["margin"] == pytest.approx(nice_margin(found["margin"] / 8 / 1.05), rel=0.11)


def test_training_learns():
    task = pac_bayes_images.protocol.Task(*pac_bayes_images._images(300)[:2], 8.0, batch=50, epochs=15)
    start = glorot((task.X.shape[1], 20, 10), np.random.default_rng(1))
    before, after = (np.mean(n(task.X).argmax(1) == task.y) for n in (start, trained(start, task, 0)))
    assert after > before + 0.2


@pytest.mark.parametrize(("ours", "verdict"), [(1.5, "reproduced"), (9.0, "not reproduced")])
def test_verdict_is_about_the_corrected_forms(ours, verdict):
    both = dict.fromkeys(FORMS, 5.0)
    result = {
        "accuracy": 1.0,
        "ours": both | {"corrected": ours},
        "theirs": both,
        "ours risk": both,
        "printed at beta": 1.0,
        "vacuous": True,
        "as given": 5.0,
    }
    outcome = compare([({"width": 5, "depth": 2}, result)], ("width", "depth"))
    assert outcome.verdict == verdict
    assert len(outcome.columns) == len(outcome.rows[0])
