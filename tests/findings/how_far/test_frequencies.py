"""The finding on frequencies: planted ones are found, other inputs refused, time kept."""

import time

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.findings.how_far import frequencies as fourier
from pindown.findings.question_budget import Turn
from pindown.findings.subject import Subject

SIDE = 8


def wave(a, b):
    rows, columns = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    return np.cos(2 * np.pi * (a * rows + b * columns) / SIDE)


def planted(outputs=1):
    w = wave(2, 1).reshape(1, -1) / 4
    W = w if outputs == 1 else np.vstack([-w, w]) / 2
    return ReluNetwork.from_layers([(W, np.zeros(outputs))], input_shape=(SIDE, SIDE))


def images(n=300, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, SIDE, SIDE))
    return X, (np.tensordot(X, wave(2, 1), 2) > 0).astype(int)


def ask(net, *data, **settings):
    return audit(net, *data, only=["FRQ-01"], **settings)["FRQ-01"]


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_planted_frequency_is_found(outputs):
    X, y = images()
    finding = ask(planted(outputs), X, y, budget=300.0)
    assert finding.answered and finding.verdict.startswith("2 frequencies of 64"), finding
    rows = {name: (many, share) for name, many, share in finding.table.rows}
    assert rows["kept by the mask"] == (2, 1.0) and rows["all others"][1] < 0.7
    assert finding.number.kind == "estimate" and finding.number.n == 128
    assert finding.hypotheses[0].status == "checked"
    assert finding.figure.x[0] == 0 and len(finding.figure.values) == 2


def test_labels_are_not_needed_but_decisions_are():
    X, _ = images(100)
    assert "decisions kept" in ask(planted(2), X, budget=300.0).verdict
    assert "may be no decision" in ask(planted(1), X).verdict
    assert "real values" in ask(planted(1), X, X[:, 0, 0] * 0.37).verdict


def test_the_same_seed_gives_the_same_finding():
    X, y = images(60)
    first, second = (ask(planted(2), X, y, seed=3, budget=300.0) for _ in range(2))
    assert first == second


def test_inputs_that_are_no_images_are_refused():
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    assert "no images" in ask(net, [[1.0, 0.0]], [0]).verdict
    assert ask(planted(2)).status == "not applicable"


def test_few_images_are_judged_by_themselves_and_said_so():
    X, y = images(3)
    y[0] = 1 - y[0]
    finding = ask(planted(2), X, y, budget=300.0)
    share = finding.number.value
    assert finding.answered and finding.hypotheses[0].status == "violated" and finding.number.n == 3
    assert 0 < share < 1
    assert finding.number.standard_error == pytest.approx(np.sqrt(share * (1 - share) / 3))


def test_time_is_kept():
    rng = np.random.default_rng(0)
    shape = (28, 28)
    net = ReluNetwork.from_layers(
        [
            (rng.standard_normal((2000, 784)), np.zeros(2000)),
            (rng.standard_normal((10, 2000)), np.zeros(10)),
        ],
        input_shape=shape,
    )
    X = rng.standard_normal((300, *shape))
    start = time.process_time()
    finding = ask(net, X, rng.integers(0, 10, 300), budget=0.5)
    assert finding.status == "not run" and time.process_time() - start < 20


def test_ctrl_c_ends_the_audit_and_not_only_the_question(monkeypatch):
    from pindown.probes.fourier import training as descent

    def stopped(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(descent, "_step", stopped)
    X, y = images(30)
    subject = Subject.of(planted(2), X, y, None, None, Turn.lasting(300.0), 0)
    with pytest.raises(KeyboardInterrupt):
        fourier.frequencies(subject)


def test_a_mask_that_was_cut_short_is_no_answer(monkeypatch):
    monkeypatch.setattr(fourier, "MASK_STEPS", 10**6)
    X, y = images(30)
    net = planted(2)
    monkeypatch.setattr(fourier, "MASK_PASSES", 0)
    assert ask(net, X, y, budget=2.0).status == "not run"
