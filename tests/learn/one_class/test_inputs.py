"""Bent features: increasing, invertible, normal in shape, and still one exact ReLU network."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save
from scipy.stats import skew

from pindown.errors import ModelFileError
from pindown.learn.one_class import LocalMaximaDetector
from pindown.learn.one_class._inputs import Bending
from pindown.learn.one_class._storage import sealed

QUICK = {"max_epochs": 3, "n_estimators": 2, "hidden": 8, "random_state": 0}


def skewed(n=400):
    rng = np.random.default_rng(0)
    return np.column_stack(
        [np.exp(rng.normal(size=n)), -(rng.exponential(size=n) ** 2), rng.normal(size=n)]
    )


def test_skewed_features_become_nearly_normal():
    rows = (skewed() - skewed().mean(0)) / skewed().std(0)
    bent = Bending.of(rows)(rows)
    assert np.allclose(bent.mean(0), 0) and np.allclose(bent.std(0), 1)
    assert (np.abs(skew(rows)) > [2, 2, -1]).all() and (np.abs(skew(bent)) < 0.4).all()


def test_maps_increase_and_have_an_inverse_also_far_outside():
    bending = Bending.of(skewed())
    rows = np.linspace(-500, 500, 3001)[:, None] * np.ones(3)
    bent = bending(rows)
    assert (np.diff(bent, axis=0) > 0).all()
    assert np.allclose(bending.back(bent), rows, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "column",
    [np.zeros(50), np.arange(50) % 2, np.arange(50) % 9, np.r_[np.zeros(49), 1.0]],
    ids=["constant", "two values", "nine values", "one other"],
)
def test_codes_stay_as_they_are(column):
    rows = np.array([[-3.0], [0.2], [7.0]])
    assert np.allclose(Bending.of(column[:, None].astype(float))(rows), rows)


def test_many_equal_values_and_a_tail_are_no_trouble():
    column = np.r_[np.zeros(900), np.linspace(1, 50, 100)][:, None]
    bent = Bending.of(column)(column)
    assert np.isfinite(bent).all() and (np.diff(bent[900:, 0]) > 0).all() and np.isclose(bent.std(), 1)


def test_the_networks_of_bent_features_are_one_relu_network():
    model = LocalMaximaDetector(**QUICK).fit(skewed())
    rows = skewed() * 3 - 1
    learned = model.scorer_.learned(rows)
    assert np.allclose(
        model.learned_network_(rows)[:, 0], learned, atol=1e-8 * (1 + np.abs(learned).max())
    )


def test_without_the_ingredient_nothing_is_bent():
    parts = ["density", "negatives", "generators", "comparator", "averaging"]
    straight = LocalMaximaDetector(ingredients=parts, **QUICK).fit(skewed())
    assert straight.scaling_.bending is None
    assert LocalMaximaDetector("paper", max_epochs=1).fit(skewed()[:40]).scaling_.bending is None
    assert LocalMaximaDetector(**QUICK).fit(skewed()).scaling_.bending is not None


def test_a_bent_detector_is_read_as_it_was_written_and_damage_is_refused(tmp_path):
    model = LocalMaximaDetector(**QUICK).fit(skewed())
    model.save(tmp_path / "a.safetensors")
    assert np.array_equal(
        LocalMaximaDetector.load(tmp_path / "a.safetensors").score_samples(skewed()),
        model.score_samples(skewed()),
    )
    from safetensors import safe_open

    with safe_open(tmp_path / "a.safetensors", "numpy") as file:
        facts = file.metadata()
    for change in (lambda k: k[:, ::-1], lambda k: k[:, :1], lambda k: k[:2]):
        tensors = load_file(tmp_path / "a.safetensors")
        tensors["frame.knots"] = np.ascontiguousarray(change(tensors["frame.knots"]))
        (tmp_path / "b.safetensors").write_bytes(sealed(save(tensors, metadata=facts)))
        with pytest.raises(ModelFileError, match="features"):
            LocalMaximaDetector.load(tmp_path / "b.safetensors")


def test_improvement_walks_in_the_units_of_the_rows():
    model = LocalMaximaDetector(max_epochs=20, random_state=0).fit(skewed())
    path = model.improve(skewed()[3], steps=3)
    assert path.points.shape[1:] == (3,) and (np.diff(path.quality) > 0).all()
