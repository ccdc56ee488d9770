"""Do the networks learn at all? Measured without the density part, which would hide that they do not."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from pindown.datasets.tables_one_class import ADBENCH, load_adbench, one_class_split
from pindown.learn.one_class import LocalMaximaDetector
from pindown.learn.one_class.presets import INGREDIENTS
from pindown.learn.one_class.training import Member

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared")) / "data"
NETWORKS_ALONE = [name for name in INGREDIENTS if name != "density"]
SEEDS = range(5)
# What an untrained network scores is luck, with a standard deviation of up to 0.2: only a mean of many
# can be compared with.
UNTRAINED_SEEDS = range(40)


def aucs(train, test, anomaly, seeds=SEEDS, **parameters):
    """Of the networks alone, one for each seed."""
    return np.array(
        [
            roc_auc_score(
                anomaly,
                -LocalMaximaDetector(ingredients=NETWORKS_ALONE, random_state=seed, **parameters)
                .fit(train)
                .score_samples(test),
            )
            for seed in seeds
        ]
    )


@pytest.mark.parametrize(
    ("load", "members"), [(load_breast_cancer, 1), (load_wine, 0), (load_digits, 3)]
)
def test_trained_networks_beat_untrained_copies_of_themselves(load, members):
    X, y = load(return_X_y=True)
    split = one_class_split(X, y != members)
    trained = aucs(split.train, split.test, split.anomaly, n_estimators=1)
    untrained = aucs(split.train, split.test, split.anomaly, n_estimators=1, max_epochs=0)
    assert trained.mean() > untrained.mean() + 0.2
    # Not even if every untrained network could be turned to its lucky side.
    assert trained.mean() > np.maximum(untrained, 1 - untrained).mean() + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ADBENCH)
def test_trained_networks_beat_untrained_copies_on_every_benchmark_set(name):
    if not (SHARED / "adbench").is_dir():
        pytest.skip("the folder adbench is not in the shared data")
    split = one_class_split(*load_adbench(name, SHARED))
    data = (split.train, split.test, split.anomaly)
    trained = aucs(*data, n_estimators=1)
    untrained = aucs(*data, UNTRAINED_SEEDS, n_estimators=1, max_epochs=0)
    assert trained.mean() > untrained.mean()


@pytest.mark.parametrize("shape", [(40, 3), (40, 8, 8)])
def test_networks_that_learn_nothing_are_reported(shape):
    X = np.random.default_rng(0).normal(size=shape)
    model = LocalMaximaDetector(n_estimators=1, learning_rate=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="learned nothing in") as caught:
        model.fit(X)
    assert caught[0].filename == __file__  # it points at the call of fit
    assert model.prices_.trained == pytest.approx(model.prices_.untrained)
    assert model.report().prices.learned_nothing


@pytest.mark.parametrize(
    "X",
    [
        np.random.default_rng(0).normal(size=(60, 1)),  # hardly anything to learn
        np.ones((30, 3)),
        np.random.default_rng(0).normal(size=(20, 300)),  # learned with too much confidence
        np.random.default_rng(0).normal(size=(2, 1)),
    ],
)
def test_networks_that_learn_what_there_is_are_not(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LocalMaximaDetector(n_estimators=2, random_state=0).fit(X)
    assert "untrained" in str(model.report())


def test_few_steps_were_asked_for():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LocalMaximaDetector(max_epochs=0, random_state=0).fit(X)
    assert model.prices_.trained == model.prices_.untrained


@pytest.mark.parametrize(
    "parameters",
    [{"preset": "paper"}, {"ablation": "h"}, {"ingredients": ["density", "generators"]}],
)
def test_there_is_no_price_where_c_sees_no_made_up_rows(parameters):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = LocalMaximaDetector(max_epochs=1, n_estimators=1, random_state=0, **parameters).fit(X)
    assert model.prices_ is None and "untrained" not in str(model.report())


def test_untrained_copies_are_those_that_training_began_with(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 3))
    first = []
    original = Member.train

    def train(self, *arguments):
        first.append({key: value.clone() for key, value in self.c.state_dict().items()})
        return original(self, *arguments)

    monkeypatch.setattr(Member, "train", train)
    model = LocalMaximaDetector(max_epochs=3, n_estimators=1, random_state=0).fit(X)
    from pindown.learn.one_class.evidence import _untrained

    again = _untrained(model.plan_, model.ensemble_.trainers[0].random).float().state_dict()
    assert all(torch.equal(again[key], value) for key, value in first[0].items())


def test_prices_are_kept_in_the_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = LocalMaximaDetector(max_epochs=3, n_estimators=1, random_state=0).fit(X)
    model.save(tmp_path / "m.safetensors")
    assert LocalMaximaDetector.load(tmp_path / "m.safetensors").prices_ == model.prices_
