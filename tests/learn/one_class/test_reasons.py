"""Which columns made a score."""

import numpy as np
import pytest

from pindown.learn import LocalMaximaDetector
from pindown.learn.one_class._density import NeighbourDensity

QUICK = {"max_epochs": 20, "n_estimators": 1, "calibration": None, "random_state": 0}


def test_columns_that_are_wrong_are_the_reasons():
    """Also where no value is unusual by itself: two features that go together, one of which does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=200)
    model = LocalMaximaDetector(**QUICK).fit(X)
    gains = model.reasons([[0.0, 0.0, 9.0, 0.0], [1.2, -1.2, 0.1, 0.0]])
    assert gains.shape == (2, 4) and gains[0].argmax() == 2 and gains[0, 2] > 1
    assert set(np.argsort(-gains[1])[:2]) == {0, 1}
    together = model.reasons([[1.2, -1.2, 0.1, 0.0]], [[0, 1], [2], [3]])
    assert together.shape == (1, 3) and together.argmax() == 0


def test_near_rows_are_other_rows():
    points = np.random.default_rng(1).normal(size=(20, 2)).astype(np.float32).astype(float)
    near = NeighbourDensity.of(points).neighbouring(points[:3])
    apart = np.linalg.norm(points[:, None] - points[:3], axis=2)
    for i in range(3):
        order = np.argsort(apart[:, i])[1:6]
        np.testing.assert_allclose(near[i], points[order])


def test_pixels_are_no_columns():
    images = np.random.default_rng(2).uniform(size=(12, 6, 6))
    model = LocalMaximaDetector(**QUICK | {"max_epochs": 1}).fit(images)
    with pytest.raises(ValueError, match="these are images"):
        model.reasons(images)
