"""Findings on generalisation: test data, training data, copies of the function."""

import numpy as np

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.findings.wording import percent
from pindown.guarantees import bound_table
from pindown.guarantees.bounds import held_out_bound

CODES = ["BND-01", "BND-02", "BND-03"]


def separable(rng, m):
    x = np.where(rng.random(m) < 0.5, 1.0, -1.0) * rng.uniform(0.8, 1, m)
    return x[:, None], (x > 0).astype(int)


def identity(scale=1.0):
    W = scale * np.array([[1.0], [-1.0]])
    return ReluNetwork.from_layers([(W, [0, 0]), (np.array([[1.0, -1.0]]) / scale, [0])])


def test_numbers_agree_with_the_bounds():
    rng = np.random.default_rng(0)
    X, y = separable(rng, 600)
    X_test, y_test = separable(rng, 200)
    y_test[:10] = 1 - y_test[:10]
    report = audit(identity(100.0), X, y, test=(X_test, y_test), only=CODES, budget=60.0)
    assert report["BND-01"].number.value == held_out_bound(10, 200).value
    assert report["BND-01"].number.kind == "probability"
    table = report["BND-02"].table
    assert [row[1] for row in table.rows] == sorted(row[1] for row in table.rows)
    assert all((row[2] == "vacuous") == (row[1] >= 1) for row in table.rows)
    alone = bound_table(identity(100.0), X, y, delta=0.05)
    assert [row[1] for row in table.rows] == [bound.formula_value for bound in alone.bounds]
    copies = dict(report["BND-03"].table.rows)
    gain = 1 - min(copies.values()) / copies["as given"]
    assert report["BND-03"].verdict.startswith(f"{percent(gain)} smaller")
    assert min(copies.values()) == report["BND-03"].number.value < copies["as given"]


def test_not_applicable_says_why():
    rng = np.random.default_rng(1)
    X, y = separable(rng, 30)
    plain = audit(identity(), X, y, only=CODES)
    assert any("too hopeful" in h.text for h in plain["BND-01"].hypotheses)
    values = audit(identity(), X, X[:, 0] * 0.3, only=CODES)
    assert all("real values" in values[code].verdict for code in CODES)
    none = audit(identity(), only=CODES)
    assert all(not none[code].answered for code in CODES)


def test_a_bound_on_noisy_networks_is_not_said_of_the_network():
    # Ties are mistakes: a network of zeros is always wrong, and its noisy copies are half the time.
    layers = [(np.zeros((5, 3)), np.zeros(5)), (np.zeros((2, 5)), np.zeros(2))]
    X = np.random.default_rng(0).normal(size=(400, 3))
    report = audit(
        ReluNetwork.from_layers(layers), X, (X[:, 0] > 0).astype(int), only=CODES, budget=60.0
    )
    assert report["BND-01"].number.value == held_out_bound(400, 400).value == 1.0
    found = report["BND-02"]
    assert found.number.value < 1.0 and "100%" in found.scale
    assert found.verdict.startswith("expected risk under weight noise at most")
