"""Rows on their way to the network: the short way gives the same and lets nothing bad in."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from pindown.learn import MultiExitClassifier
from pindown.learn.multi_exit import _inputs as inputs

DIGITS = load_digits()


@pytest.fixture(scope="module")
def table():
    return MultiExitClassifier(max_epochs=3, random_state=0).fit(DIGITS.data[:300], DIGITS.target[:300])


@pytest.fixture(scope="module")
def images():
    return MultiExitClassifier(max_epochs=1, random_state=0).fit(
        DIGITS.images[:200], DIGITS.target[:200]
    )


@pytest.mark.parametrize("form", [np.asarray, np.float32, np.asfortranarray, lambda a: a[::2]])
def test_the_short_way_gives_what_all_checks_give(table, images, form, monkeypatch):
    whole = DIGITS.images[300:320] / 3.0
    for model, X in (
        (table, form(whole.reshape(20, 64))),
        (images, form(whole)),
        (images, form(whole[:, None])),
    ):
        assert inputs._is_plain(model, X)
        short = inputs.checked_rows(model, X)
        with monkeypatch.context() as patch:
            patch.setattr(inputs, "_is_plain", lambda *_: False)
            long = inputs.checked_rows(model, X)
        assert short.dtype == long.dtype == np.float64
        np.testing.assert_array_equal(short, long)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_on_every_way(table, images, bad):
    one = DIGITS.data[:1].copy()
    one[0, 5] = bad
    for model, X in ((table, one), (table, one.astype(np.float32)), (images, one.reshape(1, 8, 8))):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            model.predict(X, budget=0.9)


@pytest.mark.parametrize("shape", [(3, 63), (3, 65), (0, 64), (64,), (3, 8, 9), (3, 2, 8, 8), ()])
def test_other_shapes_go_through_all_checks_and_are_refused(table, images, shape):
    X = np.zeros(shape)
    for model in (table, images):
        assert not inputs._is_plain(model, X)
        with pytest.raises((ValueError, TypeError)):
            model.predict(X)


def test_names_of_features_and_unfitted_models_take_the_long_way(table):
    with pytest.raises(NotFittedError):
        MultiExitClassifier().predict(DIGITS.data[:2])
    table.feature_names_in_ = np.array([f"x{i}" for i in range(64)], dtype=object)
    try:
        assert not inputs._is_plain(table, DIGITS.data[:2])
    finally:
        del table.feature_names_in_


def test_a_policy_is_chosen_once_until_something_changes(table, monkeypatch):
    from pindown.learn.multi_exit import calibration

    chosen = []
    real = calibration.confidence_policy
    monkeypatch.setattr(
        calibration, "confidence_policy", lambda *a, **k: chosen.append(1) or real(*a, **k)
    )
    table.calibration_ = table.calibration_.with_costs(table.costs_)
    one = DIGITS.data[400:401]
    for _ in range(3):
        table.predict(one, budget=0.9)
    assert len(chosen) == 1
    table.predict(one, budget=0.95)
    table.calibrate(DIGITS.data[300:400], DIGITS.target[300:400])
    table.predict(one, budget=0.9)
    table.set_params(ensemble=True).predict(one, budget=0.9)
    table.set_params(ensemble=False)
    assert len(chosen) == 4
