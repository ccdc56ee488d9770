"""What an audit says about attacks and certificates."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.guarantees import minimum_distance
from pindown.probes import linear_distance
from pindown.verification import certified as certified_balls
from pindown.verification import certified_radii
from tests.verification.nets import random_network

CODES = ["ROB-01", "ROB-02"]


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    return random_network(rng, [2, 5, 3]), rng.standard_normal((30, 2))


def test_findings_of_a_small_network(small):
    net, X = small
    report = audit(net, X, budget=60.0, only=CODES)
    certified, nearest = (report[code] for code in CODES)
    assert certified.answered and certified.number.kind == "exact" and certified.number.value > 0
    assert nearest.answered and len(nearest.table.rows) == 5
    for row, label, low, high, other, _ in nearest.table.rows:
        exact = minimum_distance(net, X[row])
        assert label == exact.label and other != label
        assert low <= exact.upper and (high is None or high >= exact.lower)
    assert nearest.number.value == min(row[2] for row in nearest.table.rows)
    top = float(np.median(np.ptp(X, axis=0)))
    proved = certified_radii(net, X, largest=top, steps=7)
    # Two searches by halves of different lengths: what is said is proved, and no coarser.
    assert certified.number.value >= np.median(proved) - top / 2**7
    assert np.mean(certified_balls(net, X, radius=certified.number.value)) >= 0.5
    shown = {name: radius for name, radius, _ in certified.table.rows}
    assert (shown["smallest"], shown["largest"]) == pytest.approx(
        (proved.min(), proved.max()), abs=top / 2**7
    )


def test_certified_radii_are_below_exact_distances(small):
    net, X = small
    median = audit(net, X, budget=60.0, only=["ROB-01"])["ROB-01"].number.value
    exact = [minimum_distance(net, x, method="cells", budget=5.0).upper for x in X[:30:3]]
    assert median <= np.max(exact)


def test_finding_of_a_linear_network():
    rng = np.random.default_rng(1)
    W, b, X = rng.standard_normal((3, 4)), rng.standard_normal(3), rng.standard_normal((40, 4))
    report = audit(ReluNetwork.from_layers([(W, b)]), X, budget=30.0, only=CODES)
    assert report["ROB-02"].number.value == pytest.approx(
        np.median(linear_distance(W, b, X, norm="linf"))
    )
    assert "no ReLU" in report["ROB-01"].verdict


def test_values_are_no_classes(small):
    net, X = small
    report = audit(net, X, net(X) + 0.1, budget=10.0, only=CODES)
    assert all("no classes" in finding.verdict for finding in report.findings)
    one = ReluNetwork(net[:1].layers + ReluNetwork.from_layers([(np.ones((1, 5)), [0])]).layers)
    assert "one output" in audit(one, X, budget=10.0, only=["ROB-01"])["ROB-01"].verdict


def test_no_time_is_no_error(small):
    net, X = small
    for finding in audit(net, X, budget=1e-6, only=CODES).findings:
        assert finding.status in ("not run", "not applicable")


def test_wrong_rows_are_not_said_to_keep_their_class(small):
    net, X = small
    wrong = (np.argmax(net(X), axis=1) + 1) % 3
    found = audit(net, X, wrong, budget=30.0, only=["ROB-01"])["ROB-01"]
    assert found.number.value == 0 and "keep" not in found.verdict and not found.sentence


def test_one_class_everywhere_is_said_so():
    net = ReluNetwork.from_layers([(np.ones((2, 2)), [0, -1]), (np.zeros((2, 2)), [0, 1.0])])
    X = np.random.default_rng(0).standard_normal((10, 2))
    found = audit(net, X, budget=30.0, only=["ROB-02"])["ROB-02"]
    assert "no input has another class" in found.verdict
