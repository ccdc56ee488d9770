"""A detector with error rates, around detectors of others."""

import warnings

import numpy as np
import pytest
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import KernelDensity, LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pindown.learn import ConformalDetector
from pindown.learn.conformal import DriftWarning

TREES = IsolationForest(n_estimators=5, random_state=0)


@parametrize_with_checks(
    [ConformalDetector(TREES), ConformalDetector(TREES, calibration="cross", n_folds=2)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


class Distances:
    """As PyOD does it: higher is stranger, the constructor's arguments are attributes, no base class."""

    def __init__(self, k=3):
        self.k = k

    def fit(self, X):
        self.index = NearestNeighbors(n_neighbors=self.k).fit(X)
        return self

    def decision_function(self, X):
        return self.index.kneighbors(X)[0][:, -1]


DETECTORS = [
    IsolationForest(n_estimators=10, random_state=0),
    EllipticEnvelope(random_state=0),
    KernelDensity(),
    make_pipeline(StandardScaler(), LocalOutlierFactor(n_neighbors=5, novelty=True)),
    Distances(),
]


@pytest.mark.parametrize("calibration", ["split", "cross"])
@pytest.mark.parametrize("detector", DETECTORS, ids=lambda d: type(d).__name__)
def test_far_rows_have_the_least_p_value(detector, calibration):
    rng = np.random.default_rng(0)
    model = ConformalDetector(detector, calibration=calibration, random_state=0)
    model.fit(rng.normal(size=(200, 2)))
    n = model.n_calibration_
    assert n == (100 if calibration == "split" else 200)
    assert model.p_values([[30.0, -30.0]]) == 1 / (n + 1)
    near = model.p_values(rng.normal(size=(200, 2)))
    assert near.min() > 0 and near.max() <= 1 and 0.35 < near.mean() < 0.65
    batch = np.concatenate([rng.normal(size=(50, 2)), np.full((10, 2), 30.0)])
    assert (model.predict(batch, fdr=0.2)[50:] == -1).all()
    assert (model.predict(batch, fdr=0.2)[:50] == -1).mean() < 0.2


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_false_alarms_come_at_the_rate_that_ranks_have(alpha):
    """Over 400 draws of training and new rows: floor(alpha (n + 1)) / (n + 1), no more and no less."""
    rng, draws, m = np.random.default_rng(1), 400, 100
    model = ConformalDetector(KernelDensity(bandwidth=0.5), random_state=0)
    rates = [
        np.mean(model.fit(X[:240]).p_values(X[240:]) <= alpha)
        for X in rng.standard_t(4, size=(draws, 240 + m, 2))
    ]
    n = model.n_calibration_
    wanted = np.floor(alpha * (n + 1)) / (n + 1)
    assert n == 120
    assert abs(np.mean(rates) - wanted) <= 4 * np.std(rates) / np.sqrt(draws)


def test_false_discoveries_stay_below_the_rate_and_power_is_there():
    rng, q, found, power = np.random.default_rng(2), 0.1, [], []
    for _ in range(100):
        model = ConformalDetector(KernelDensity(), random_state=0).fit(rng.normal(size=(600, 2)))
        X = np.concatenate([rng.normal(size=(180, 2)), rng.normal(size=(20, 2)) + 5])
        called = model.predict(X, fdr=q) == -1
        found.append(called[:180].sum() / max(called.sum(), 1))
        power.append(called[180:].mean())
    assert np.mean(found) <= q + 3 * np.std(found) / 10 and np.mean(found) > q / 3
    assert np.mean(power) > 0.9


def test_predictions_are_those_of_the_p_values():
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(60, 2)), rng.normal(size=(300, 2)) * 1.5
    for calibration in ("split", "cross"):
        for rate in (0.01, 0.05, 1 / 31, 3 / 61, 0.3):
            model = ConformalDetector(
                TREES, calibration=calibration, false_alarms=rate, random_state=0
            ).fit(X)
            expected = np.where(model.p_values(new) <= rate, -1, 1)
            assert model.predict(new).tolist() == expected.tolist()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert model.predict(new, false_alarms=rate).tolist() == expected.tolist()


def test_rows_farther_out_have_lower_scores_where_p_values_are_the_same():
    rng = np.random.default_rng(4)
    model = ConformalDetector(KernelDensity(), calibration="cross", random_state=0)
    model.fit(rng.normal(size=(100, 1)))
    far = np.array([[6.0], [7.0], [8.0], [20.0]])
    assert len(set(model.p_values(far))) == 1 and (np.diff(model.score_samples(far)) < 0).all()


def test_a_fitted_detector_is_calibrated_on_rows_of_its_own():
    rng = np.random.default_rng(5)
    fitted = KernelDensity().fit(rng.normal(size=(50, 1)))
    held_out, new = rng.normal(size=(30, 1)), rng.normal(size=(20, 1))
    model = ConformalDetector(fitted, calibration="prefit").fit(held_out)
    s, t = fitted.score_samples(held_out), fitted.score_samples(new)
    by_hand = [(1 + sum(a <= b for a in s)) / 31 for b in t]
    assert model.p_values(new).tolist() == by_hand


def test_what_scores_no_new_rows_is_refused_and_signs_can_be_said():
    X = np.random.default_rng(6).normal(size=(40, 2))
    with pytest.raises(TypeError, match="novelty=True"):
        ConformalDetector(LocalOutlierFactor()).fit(X)
    wrong = ConformalDetector(Distances(), higher="normal", random_state=0).fit(X)
    assert wrong.p_values([[50.0, 50.0]]) == 1.0
    for setting in ({"share": 1.0}, {"calibration": "none"}, {"false_alarms": 0}, {"n_folds": 1}):
        with pytest.raises(ValueError, match=next(iter(setting))):
            ConformalDetector(TREES, **setting).fit(X)
    model = ConformalDetector(TREES).fit(X)
    with pytest.raises(ValueError, match="fdr or false_alarms"):
        model.predict(X, fdr=0.1, false_alarms=0.1)


def test_rates_that_no_calibration_of_this_size_tells_are_said():
    X = np.random.default_rng(7).normal(size=(40, 2))
    model = ConformalDetector(TREES, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="20 held-out rows tell rates from 0.048 on"):
        assert (model.predict(X + 100, false_alarms=0.01) == 1).all()


def test_drift_is_said_in_the_order_of_the_rows_and_of_a_batch():
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steady = ConformalDetector(KernelDensity(), random_state=0).fit(rows)
        steady.predict(rng.normal(size=(200, 2)), fdr=0.1)
        # A tenth of outliers is what a detector is for.
        steady.predict(np.r_[rng.normal(size=(180, 2)), np.full((20, 2), 9.0)], fdr=0.1)
    with pytest.warns(DriftWarning, match="change with the order"):
        ConformalDetector(KernelDensity(), random_state=0).fit(rows * np.linspace(0.5, 2, 400)[:, None])
    with pytest.warns(DriftWarning, match="stranger"):
        steady.predict(rng.normal(size=(200, 2)) + 2, fdr=0.1)
    with pytest.warns(DriftWarning, match="more typical"):
        steady.predict(rng.normal(size=(200, 2)) / 4, false_alarms=0.1)
