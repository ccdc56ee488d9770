"""Does training teach a detector anything, and are failures to learn seen?"""

import os
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from pindown.datasets.public_data import ADBENCH, load_adbench, one_class_split
from pindown.learn.one_class import LocalMaximaDetector
from pindown.learn.one_class._plan import INGREDIENTS
from pindown.learn.one_class._training import Member

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[4] / "shared")) / "data"
NETWORKS_ALONE = [name for name in INGREDIENTS if name != "density"]
SEEDS = range(5)
# What an untrained network scores is luck, with a standard deviation of up to 0.2: only a mean of many
# can be compared with.
UNTRAINED_SEEDS = range(40)


def benchmark(name):
    if not (SHARED / "adbench").is_dir():
        pytest.skip("the folder adbench is not in the shared data")
    return one_class_split(*load_adbench(name, SHARED))


def aucs(split, seeds=SEEDS, **parameters):
    """One for each seed."""
    return np.array(
        [
            roc_auc_score(
                split.anomaly,
                -LocalMaximaDetector(random_state=seed, **parameters)
                .fit(split.train)
                .score_samples(split.test),
            )
            for seed in seeds
        ]
    )


@pytest.mark.parametrize(
    ("load", "members"), [(load_breast_cancer, 1), (load_wine, 0), (load_digits, 3)]
)
def test_training_teaches_the_detector_and_its_networks(load, members):
    X, y = load(return_X_y=True)
    split = one_class_split(X, y != members)
    assert (aucs(split, n_estimators=1, max_epochs=0) == 0.5).all()
    assert (aucs(split, n_estimators=1) > 0.85).all()
    alone = {"ingredients": NETWORKS_ALONE, "n_estimators": 1}
    trained, untrained = aucs(split, **alone), aucs(split, **alone, max_epochs=0)
    assert trained.mean() > untrained.mean() + 0.2
    # Not even if every untrained network could be turned to its lucky side.
    assert trained.mean() > np.maximum(untrained, 1 - untrained).mean() + 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", ADBENCH)
def test_a_trained_detector_beats_an_untrained_copy_on_every_benchmark_set(name):
    split = benchmark(name)
    assert (aucs(split) > aucs(split, max_epochs=0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ADBENCH)
def test_trained_networks_beat_untrained_copies_on_every_benchmark_set(name):
    split = benchmark(name)
    alone = {"ingredients": NETWORKS_ALONE, "n_estimators": 1}
    assert aucs(split, **alone).mean() > aucs(split, UNTRAINED_SEEDS, **alone, max_epochs=0).mean()


@pytest.mark.parametrize("shape", [(40, 3), (40, 8, 8)])
def test_an_untrained_detector_says_the_same_of_everything(shape):
    X = np.random.default_rng(0).normal(size=shape)
    model = LocalMaximaDetector(max_epochs=0, random_state=0).fit(X)
    assert (model.score_samples(np.concatenate([X, 9 * X])) == 0).all()
    taught = LocalMaximaDetector(max_epochs=1, random_state=0).fit(X)
    assert taught.score_samples(X).mean() > taught.score_samples(9 * X).mean() + 1
    # Going on without a step forgets nothing.
    scores = taught.score_samples(X)
    assert taught.set_params(max_epochs=0).partial_fit(X).score_samples(X).std() > scores.std() / 2


@pytest.mark.parametrize("shape", [(40, 3), (40, 8, 8)])
def test_networks_that_learn_nothing_are_reported(shape):
    X = np.random.default_rng(0).normal(size=shape)
    model = LocalMaximaDetector(n_estimators=1, learning_rate=1e-12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="learned nothing in") as caught:
        model.fit(X)
    assert caught[0].filename == __file__  # it points at the call of fit
    assert model.held_out_losses_.trained == pytest.approx(model.held_out_losses_.untrained)
    assert model.report().held_out_losses.learned_nothing
    # They have no vote, whatever weight they were given.
    alone = LocalMaximaDetector(n_estimators=1, learned_weight=0, random_state=0).fit(X)
    assert model.score_samples(X) == pytest.approx(alone.score_samples(X))


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
    assert model.held_out_losses_.trained == model.held_out_losses_.untrained


@pytest.mark.parametrize(
    "parameters",
    [{"preset": "paper"}, {"ablation": "h"}, {"ingredients": ["density", "generators"]}],
)
def test_there_is_no_price_where_c_sees_no_made_up_rows(parameters):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = LocalMaximaDetector(max_epochs=1, n_estimators=1, random_state=0, **parameters).fit(X)
    assert model.held_out_losses_ is None and "untrained" not in str(model.report())


def test_untrained_copies_are_those_that_training_began_with(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 3))
    first = []
    original = Member.train

    def train(self, *arguments):
        first.append({key: value.clone() for key, value in self.c.state_dict().items()})
        return original(self, *arguments)

    monkeypatch.setattr(Member, "train", train)
    model = LocalMaximaDetector(max_epochs=3, n_estimators=1, random_state=0).fit(X)
    from pindown.learn.one_class.ensemble import _untrained

    again = _untrained(model.plan_, model.ensemble_.beginnings[0]).float().state_dict()
    assert all(torch.equal(again[key], value) for key, value in first[0].items())


def test_prices_are_kept_in_the_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = LocalMaximaDetector(max_epochs=3, n_estimators=1, random_state=0).fit(X)
    again = loaded(model, tmp_path)
    assert again.held_out_losses_ == model.held_out_losses_
    # Going on, the untrained copies are those of the first fit.
    again.partial_fit(X)
    assert again.held_out_losses_.untrained == pytest.approx(model.held_out_losses_.untrained, rel=1e-9)
    assert len(again.history_) == 6


def loaded(model, folder):
    model.save(folder / "m.safetensors")
    return LocalMaximaDetector.load(folder / "m.safetensors")


@pytest.mark.parametrize("seed", range(6))
def test_reading_a_file_is_no_training(seed, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LocalMaximaDetector(max_epochs=0, n_estimators=1, random_state=0).fit(X)
    again = loaded(model, tmp_path).set_params(random_state=seed).partial_fit(X)
    assert not again.score_samples(X).any()


@pytest.mark.parametrize("ingredients", [None, ["density", "generators", "averaging"]])
def test_reading_a_file_forgets_no_training(ingredients, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LocalMaximaDetector(max_epochs=20, ingredients=ingredients, random_state=0).fit(X)
    again = loaded(model, tmp_path).set_params(max_epochs=0).partial_fit(X)
    assert again.mixture_.weight == model.mixture_.weight == 0.25
    assert np.array_equal(again.density_.weights, model.density_.weights)


def test_prices_and_orders_by_hand():
    """Cross-entropy of the mean log-odds of the members, and the share of pairs in the right order."""
    from pindown.learn.one_class.ensemble import HeldOutLosses, _judged, may_vote

    torch.manual_seed(0)
    nets = [torch.nn.Linear(2, 1).double() for _ in range(3)]
    rows, negatives = torch.randn(30, 2), torch.randn(20, 2) + 0.7
    price, order = _judged(nets, rows, negatives)
    with torch.no_grad():
        inside, outside = (
            np.mean([net(x.double())[:, 0].numpy() for net in nets], axis=0) for x in (rows, negatives)
        )
    expected = np.log1p(np.exp(-inside)).mean() + np.log1p(np.exp(outside)).mean()
    assert price == pytest.approx(expected)
    labels = np.r_[np.ones(30), np.zeros(20)]
    assert order == pytest.approx(roc_auc_score(labels, np.r_[inside, outside]))
    for trained, better, nothing in ((0.98, 0.0, False), (1.0, 0.01, True), (1.0, 0.03, False)):
        found = HeldOutLosses(trained, 1.0, 0.5 + better, 0.5)
        assert found.learned_nothing is nothing
        assert may_vote(found, SimpleNamespace(history=[{}])) is not nothing
        assert not may_vote(found, SimpleNamespace(history=[]))
    assert may_vote(None, SimpleNamespace(history=[{}]))
