"""Experiments on local maxima: measures against independent routes, rules on made-up results."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, pearsonr

from pindown.datasets.public_data import small_digits
from pindown.datasets.synthetic import gaussian_grid, grid_modes
from pindown_reproduction.local_maxima import _detectors as common
from pindown_reproduction.local_maxima import local_maxima_ablations as ablations
from pindown_reproduction.local_maxima import local_maxima_grid as grid
from pindown_reproduction.local_maxima import local_maxima_noise as noise
from pindown_reproduction.local_maxima import local_maxima_one_class as one_class
from pindown_reproduction.local_maxima import local_maxima_signs as signs
from pindown_reproduction.local_maxima import local_maxima_survival as survival


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)


class Fake:
    """A detector with a known answer: c falls with the distance from given centres, h is alike."""

    def __init__(self, centres, h_sign=1.0):
        self.centres, self.h_sign = np.asarray(centres), h_sign

    def score_samples(self, X):
        return -np.linalg.norm(X[:, None] - self.centres[None], axis=2).min(axis=1)

    def quality(self, X):
        return self.h_sign * self.score_samples(X)

    def compare(self, first, second):
        return self.quality(first) - self.quality(second)


# ---------------------------------------------------------------------- measures


def test_auc_counts_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, 40), rng.integers(0, 5, 30)
    pairs = np.mean((a[:, None] > b) + 0.5 * (a[:, None] == b))
    assert common.auc(a, b) == pytest.approx(100 * pairs)


def test_log_density_is_the_mean_of_normal_densities():
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    direct = [
        np.log(np.mean([multivariate_normal.pdf(x, m, 0.49 * np.eye(3)) for m in train])) for x in test
    ]
    np.testing.assert_allclose(one_class.log_density(train, test, 0.7), direct, rtol=1e-12)


def test_log_density_keeps_the_order_where_trees_lose_it():
    """In many dimensions and with a small bandwidth the log density is that of the nearest point."""
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(150, 60)), 1.5 * rng.normal(size=(40, 60))
    ours = one_class.log_density(train, test, 0.3)
    nearest = np.linalg.norm(test[:, None] - train[None], axis=2).min(axis=1)
    assert np.corrcoef(ours, -(nearest**2))[0, 1] > 0.9999


def test_the_held_out_bandwidth_is_near_the_best_one():
    X = np.random.default_rng(0).normal(size=(400, 1))
    fresh = np.random.default_rng(1).normal(size=(4000, 1))
    width = one_class.held_out_bandwidth(X)
    found = {h: one_class.log_density(X, fresh, h).mean() for h in (0.02, width, 3.0)}
    assert max(found, key=found.get) == width


def test_local_correlation_pairs_each_row_with_its_nearest():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(30, 4)), rng.normal(size=30)
    near = [
        min((np.linalg.norm(x - z), j) for j, z in enumerate(X) if j != i)[1] for i, x in enumerate(X)
    ]
    assert survival.nearest(X).tolist() == near
    function = np.cumsum(X, axis=1)[:, -1]
    got = survival.correlations(X, target, lambda rows: rows.sum(axis=1))
    local = pearsonr(function - function[near], target - target[near])
    np.testing.assert_allclose(got, [*local, *pearsonr(function, target)])
    pair = survival.correlations(
        X, target, lambda rows: rows[:, 0], lambda a, b: np.tanh(a - b).sum(axis=1)
    )
    values = np.tanh(X - X[near]).sum(axis=1)
    assert pair[0] == pytest.approx(pearsonr(values, target - target[near]).statistic)


def test_a_constant_function_is_correlated_with_nothing():
    assert survival.correlations(np.eye(4), np.arange(4.0), lambda rows: np.ones(len(rows))) == [
        0,
        1,
        0,
        1,
    ]


@pytest.mark.parametrize("kept", [16, 13])
def test_coverage_counts_the_modes_a_detector_knows(kept, monkeypatch):
    monkeypatch.setattr(grid, "fitted", lambda cell, X, **_: Fake(grid_modes()[:kept]))
    cell = {"preset": "paper", "seed": 0, "ablation": None, "points": 50}
    found = grid.run(cell)
    assert found["modes"] == kept
    assert found["towards"] == 1.0 if kept == 16 else found["towards"] < 1.0


def test_arrows_that_point_away_are_not_counted(monkeypatch):
    monkeypatch.setattr(grid, "fitted", lambda cell, X, **_: Fake(grid_modes(), h_sign=-1.0))
    found = grid.run({"preset": "paper", "seed": 1, "ablation": "h", "points": 50})
    assert found["towards"] == 0.0 and found["modes"] is None


def test_the_background_keeps_away_from_all_modes():
    distances = np.linalg.norm(grid.background(0)[:, None] - grid_modes()[None], axis=2)
    assert distances.min() >= 0.2 and len(distances) > 1000
    assert gaussian_grid(10)[0].shape == (10, 2)


def test_noise_has_its_standard_deviation_and_the_same_seed_the_same_noise():
    X = np.zeros((200, 10, 10))
    assert abs(common.noisy(X, 0.2, 0).std() - 0.2) < 0.01
    np.testing.assert_array_equal(common.noisy(X, 0.2, 0), common.noisy(X, 0.2, 0))


def test_parts_of_the_test_images_keep_enough_of_the_class():
    cell = {"data": "gtsrb", "class": 14, "seed": 0, "train": 30, "test": 90}
    data, stand_in, train, test, inside = common.one_class_images(cell)
    assert stand_in and data.name == small_digits().name and len(train) == 30
    assert len(test) == 90 and inside.sum() == 30 and train.min() >= 0 and test.max() <= 1


# ---------------------------------------------------------------------- published numbers


def test_published_means_are_those_the_source_prints():
    for data, c, h in (("mnist", 94.9, 66.0), ("cifar10", 69.8, 58.8)):
        assert np.mean(one_class.PUBLISHED[data]["c"]) == pytest.approx(c, abs=0.06)
        assert np.mean(one_class.PUBLISHED[data]["h"]) == pytest.approx(h, abs=0.06)
    assert ablations.PUBLISHED[None]["c"] == one_class.PUBLISHED["cifar10"]["c"]
    assert all(len(values) == 10 for rows in ablations.PUBLISHED.values() for values in rows.values())


# ---------------------------------------------------------------------- rules


def of(data, stand_in=False, **numbers):
    return {"data": data, "stand_in": stand_in, **numbers}


def table_1(c, h=50.0, kde=60.0, *, train=None, stand_in=False):
    return [
        (
            {"data": data, "class": k, "preset": "paper", "seed": 0, "train": train},
            of(data, stand_in, c=c, h=h, kde=kde, knn=90.0),
        )
        for data in ("mnist", "cifar10")
        for k in (0, 8)
    ]


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        (table_1(95.0), "reproduced"),
        (table_1(93.3), "not reproduced"),  # more than 1.5 points below, on all images
        (table_1(80.0, train=250), "reproduced"),  # a part of the images: direction only
        (table_1(80.0, kde=85.0, train=250), "not reproduced"),
        (table_1(80.0, h=85.0, train=250), "not reproduced"),
        (table_1(95.0, stand_in=True), "no published number"),
    ],
)
def test_the_rule_of_table_1(results, verdict):
    outcome = one_class.compare(results)
    assert outcome.verdict == verdict and len(outcome.rows[0]) == len(outcome.columns)
    assert ("set PINDOWN_DATA" in outcome.words) == (verdict == "no published number")


@pytest.mark.parametrize(("whole", "verdict"), [(70.0, "reproduced"), (64.0, "not reproduced")])
def test_the_rule_of_table_2(whole, verdict):
    values = {None: whole, "c": 65.0, "only_g_c": 60.0, "only_g_h": 61.0, "h": None}
    results = [
        (
            {"preset": "paper", "ablation": key, "class": 0, "seed": 0},
            of("x", h=50.0) | ({} if c is None else {"c": c}),
        )
        for key, c in values.items()
    ]
    assert ablations.compare(results).verdict == verdict
    assert ablations.compare(results[:2]).verdict == "no published number"


@pytest.mark.parametrize(("last", "verdict"), [(80.0, "reproduced"), (55.0, "not reproduced")])
def test_the_rule_of_the_noise_curves_asks_for_every_level(last, verdict):
    result = of("MNIST") | {
        f"{key}, {place}": values
        for place in ("in class", "all")
        for key, values in (("c", [60.0, 60.0]), ("h", [70.0, last]))
    }
    cell = {"data": "mnist", "preset": "paper", "levels": [0.1, 0.2], "class": 0, "seed": 0}
    outcome = noise.compare([(cell, result)])
    assert outcome.verdict == verdict and len(outcome.rows) == 4


@pytest.mark.parametrize(("noise_h", "verdict"), [(90.0, "reproduced"), (50.0, "not reproduced")])
def test_the_rule_of_table_3(noise_h, verdict):
    result = of("GTSRB") | {"c, class": 80.0, "h, class": 70.0}
    for task in signs.TASKS[1:]:
        result |= {f"c, {task}": 60.0, f"h, {task}": noise_h}
    assert signs.compare([({"class": 1, "preset": "paper"}, result)]).verdict == verdict


@pytest.mark.parametrize(
    ("h", "other", "verdict"),
    [
        ([0.3, 0.32, 0.28], 0.1, "reproduced"),
        ([0.3, 0.32, 0.28], 0.4, "not reproduced"),  # another function is better
        ([0.9, -0.8, 0.5], 0.1, "not reproduced"),  # chance
    ],
)
def test_the_rule_of_table_4(h, other, verdict):
    results = []
    for fold, value in enumerate(h):
        found = {
            f"{name}, {kind}": [value if name == "h" else other + 0.01 * fold, 0.5, 0.0, 1.0]
            for name in survival.PUBLISHED
            for kind in ("all rows", "with event")
        }
        results.append(({"table": "t", "preset": "paper", "fold": fold}, of("t", **found)))
    assert survival.compare(results).verdict == verdict


@pytest.mark.parametrize(
    ("joint", "alone", "towards", "verdict"),
    [
        (16, 12, 0.9, "reproduced"),
        (15, 12, 0.9, "not reproduced"),
        (16, 16, 0.9, "not reproduced"),  # alone it is as good
        (16, 12, 0.4, "not reproduced"),
    ],
)
def test_the_rule_of_the_grid(joint, alone, towards, verdict):
    results = [
        ({"preset": "paper", "seed": 1, "ablation": None}, {"modes": joint, "towards": towards}),
        ({"preset": "paper", "seed": 1, "ablation": "c"}, {"modes": alone, "towards": None}),
        ({"preset": "paper", "seed": 1, "ablation": "h"}, {"modes": None, "towards": 0.5}),
    ]
    assert grid.compare(results).verdict == verdict
