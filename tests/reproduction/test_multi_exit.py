"""Experiments on networks with exits: published tables, the text about them, rules that can fail."""

import numpy as np
import pytest
import torch

from pindown_reproduction import EXPERIMENTS
from pindown_reproduction.underspecification_thesis import _multi_exit as multi_exit_common
from pindown_reproduction.underspecification_thesis import _multi_exit as multi_exit_data
from pindown_reproduction.underspecification_thesis import multi_exit_anytime, multi_exit_budget
from pindown_reproduction.underspecification_thesis._multi_exit import BUDGET, IMAGENET, published_gains


def test_printed_gain_on_imagenet_is_above_what_its_table_shows():
    gains = [gain for table in IMAGENET.values() for gain in published_gains(table)]
    assert max(gains) == 3.7  # the text says up to 3.8
    assert min(gains) == -0.6  # late exits of the full data set lose


def test_printed_uniform_gain_on_cifar_has_ties():
    full = published_gains(BUDGET[500])
    assert [i for i, gain in enumerate(full, 1) if gain == 0.0] == [9, 10, 11]  # the text says uniformly
    for n in (150, 250, 350):
        gain = np.array(published_gains(BUDGET[n]))
        assert (gain > 0).all() and gain.argmax() == 0


def test_first_exit_is_the_same_in_both_published_modes():
    for loss, values in multi_exit_anytime.ANYTIME.items():
        assert values[0] == BUDGET[150][loss][0] and len(values) == 11


def results(gain, n_exits=4, seeds=3):
    rng = np.random.default_rng(0)
    found = []
    for seed in range(seeds):
        base = 70 + np.arange(n_exits) + rng.normal(size=n_exits)
        for loss in multi_exit_common.LOSSES:
            values = (base + (0 if loss == "exit-wise" else np.asarray(gain))).tolist()
            cell = {"loss": loss, "seed": seed, "labels": 20}
            found.append((cell, {"data": "made up", "budget": values, "ensembles": sorted(values)}))
    return found


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        ([3, 1, 0, 0], "reproduced"),
        ([-1, 5, 0, 0], "not reproduced"),  # the first exit loses
        ([1, -3, 0, 0], "not reproduced"),  # the early half loses
        ([3, 1, 0, -2], "reproduced"),  # the claim is about early exits; the loss is told
    ],
)
def test_the_rule_of_budget_mode(gain, verdict):
    outcome = multi_exit_budget.compare(results(gain))
    assert outcome.verdict == verdict and len(outcome.rows) == 4
    assert f"the last exit changes by {gain[-1]:+.2f}" in outcome.words
    assert outcome.rows[0][3] == "+6.3" and outcome.rows[-1][-1] == 11  # exit 4 of 4 is exit 11 of 11


def test_the_rule_of_teachers_and_few_labels():
    def outcome(name, found):
        return EXPERIMENTS[name].compare(found).verdict

    def cells(**values):
        made = []
        for seed in range(3):
            for key, exits in values.items():
                loss, teachers = key.split("__")
                cell = {"loss": loss.replace("_", "-"), "teachers": teachers, "seed": seed, "labels": 5}
                made.append((cell, {"exits": exits}))
        return made

    base = [70.0, 71.0]
    good = cells(exit_wise__last=base, distillation__last=[72.0, 71.0], distillation__later=[71.5, 71.0])
    bad = cells(exit_wise__last=base, distillation__last=[72.0, 71.0], distillation__later=[69.0, 71.0])
    assert outcome("multi-exit-teachers", good) == "reproduced"
    assert outcome("multi-exit-teachers", bad) == "not reproduced"
    little = cells(distillation__last=base, semi_supervised__last=[70.5, 71.5])
    much = cells(distillation__last=base, semi_supervised__last=[75.0, 76.0])
    assert outcome("multi-exit-few-labels", little) == "reproduced"
    assert outcome("multi-exit-few-labels", much) == "not reproduced"


def test_the_rule_of_the_temperature():
    def made(confidence, rising):
        cells = []
        for temperature, exits in ((None, rising), (1.0, [70.0, 71.0])):
            cell = {"loss": "distillation", "temperature": temperature, "seed": 0, "mu": 0.5}
            end = 2.0 if temperature is None else 1.0
            values = {"exits": exits, "temperature": [1.0, end], "confidence": [0.9, confidence]}
            cells.append((cell, values))
        return cells

    compare = EXPERIMENTS["multi-exit-temperature"].compare
    assert compare(made(0.48, [70.0, 71.0])).verdict == "reproduced"
    assert compare(made(0.30, [70.0, 71.0])).verdict == "not reproduced"
    assert compare(made(0.48, [68.0, 70.0])).verdict == "not reproduced"


def test_data_are_drawn_apart_and_labels_of_the_pool_are_left_out(monkeypatch):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)
    multi_exit_data._images.cache_clear()
    data = multi_exit_common.few_labels({**multi_exit_common.QUICK, "seed": 1})
    assert data.name == "scikit-learn's digits" and data.labelled.shape[1:] == (1, 8, 8)
    assert np.bincount(data.labels.numpy()).tolist() == [20] * 10
    rows = [
        {tuple(image.flatten().tolist()) for image in part}
        for part in (data.labelled, data.held, data.pool)
    ]
    assert not rows[0] & rows[1] and not rows[0] & rows[2] and not rows[1] & rows[2]
    assert not hasattr(data, "pool_labels")
    multi_exit_data._images.cache_clear()
    with pytest.raises(FileNotFoundError, match=r"cifar100/\*\.npz"):
        multi_exit_common.few_labels({**multi_exit_common.PAPER, "seed": 0})


@pytest.mark.parametrize("name", ["budget", "anytime", "few-labels", "teachers", "temperature"])
def test_experiments_run_in_small(name, monkeypatch, tmp_path):
    monkeypatch.delenv("PINDOWN_DATA", raising=False)
    multi_exit_data._images.cache_clear()
    experiment = EXPERIMENTS[f"multi-exit-{name}"]
    settings = {**experiment.settings["quick"], "labels": 5, "pool": 5, "epochs": 2, "seeds": 2}
    cells = experiment.cells(settings)
    assert sorted({cell["seed"] for cell in cells}) == [10, 11]
    found = [(cell, experiment.run(cell)) for cell in cells]
    outcome = experiment.compare(found)
    assert outcome.rows and len(outcome.rows[0]) == len(outcome.columns)
    experiment.draw(found).savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1_000
    multi_exit_data._images.cache_clear()


def test_intervals_are_students():
    gains = np.array([[1.0], [2.0], [3.0]])
    assert multi_exit_common.half_width(gains)[0] == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)


def test_shares_of_work_are_counted_by_exit():
    from pindown.learn.multi_exit.networks import MSDNet, seeded
    from pindown_reproduction.underspecification_thesis.multi_exit_times import shares_of_work

    found = shares_of_work(seeded(MSDNet.cifar, 0).eval(), torch.zeros(1, 3, 32, 32))
    assert all(len(part) == 11 and part[-1] == 1 and sorted(part) == part for part in found.values())
    # a machine on which time goes by the layer is slower at the first exit than one that counts products
    assert found["operations"][0] < 0.2 and found["layers"][0] > 0.25
