"""What the questions answer about networks whose facts are known."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm
from sklearn.metrics import r2_score

from pindown import ReluNetwork
from pindown._audit import audit
from pindown.findings.how_far.accuracy import wilson_interval
from pindown.geometry import Box


def test_units_on_the_data(handmade, unit_interval):
    finding = audit(handmade, unit_interval, only=["UNIT-01"])["UNIT-01"]
    assert finding.table.rows == ((1, 6, 1, 1, 1, 3),)
    assert finding.number.value == pytest.approx(1 / 6) and finding.number.kind == "exact"
    assert finding.verdict == "1 dead, 1 constant, 1 always on, 3 switching of 6 units"


def test_units_on_the_box_are_proved_and_shrink_with_it(handmade):
    wide = audit(handmade, box=(0, 1), only=["UNIT-02"])["UNIT-02"]
    assert wide.table.rows == ((1, 6, 1, 2, 3),)
    narrow = audit(handmade, box=Box([0.8], [0.9]), only=["UNIT-02"])["UNIT-02"]
    assert narrow.table.rows == ((1, 6, 2, 4, 0),) and narrow.number.value == 1.0


def test_what_is_proved_on_the_box_holds_on_the_data():
    rng = np.random.default_rng(0)
    widths = (4, 30, 30, 3)
    pairs = itertools.pairwise(widths)
    net = ReluNetwork.from_layers(
        [(rng.standard_normal((m, n)), rng.standard_normal(m)) for n, m in pairs]
    )
    X = 0.2 * rng.standard_normal((100, 4))
    result = audit(net, X, only=["UNIT"])
    for data, box in zip(result["UNIT-01"].table.rows, result["UNIT-02"].table.rows, strict=True):
        assert box[2] <= data[2] and box[3] <= data[3] + data[4]
    assert result["UNIT-02"].number.value > 0
    assert "the bounding box of the data" in result["UNIT-02"].reading


def test_weight_symmetry(handmade):
    finding = audit(handmade, only=["SYM-01"])["SYM-01"]
    assert finding.verdict == "units: 1 without incoming weights, 1 duplicate, 2 opposite"
    assert finding.number.value == 2
    quiet = ReluNetwork.from_layers([([[1.0], [2.0]], [0.5, 3]), ([[1.0, 1.0]], [0])])
    assert (
        audit(quiet, only=["SYM-01"])["SYM-01"].verdict
        == "no zero, duplicate, proportional or opposite units"
    )


def test_permuting_and_rescaling_units_leaves_the_facts(handmade, unit_interval):
    (W, b), (V, c) = handmade.layers
    order, scale = np.array([3, 5, 0, 2, 4, 1]), np.array([2.0, 4.0, 0.5, 1.0, 8.0, 2.0])
    other = ReluNetwork.from_layers(
        [(W[order] * scale[:, None], b[order] * scale), (V[:, order] / scale, c)]
    )
    codes = ["UNIT", "SYM-01", "LIP-01"]
    ours, theirs = (audit(net, unit_interval, only=codes) for net in (handmade, other))
    assert ours["UNIT-01"] == theirs["UNIT-01"] and ours["UNIT-02"] == theirs["UNIT-02"]
    assert ours["SYM-01"].number == theirs["SYM-01"].number
    assert ours["LIP-01"].number.value == pytest.approx(theirs["LIP-01"].number.value, rel=1e-6)


def test_architecture_counts_and_notes():
    net = ReluNetwork.from_layers(
        [(np.ones((3, 2)), np.zeros(3)), (np.ones((2, 3)), np.zeros(2))],
        output_activation="softmax",
        notes=("Dropout was removed",),
    )
    finding = audit(net, only=["ARC-01"])["ARC-01"]
    assert finding.number.value == 17 and "12 multiply-adds" in finding.reading
    assert "softmax" in finding.reading and "Dropout was removed" in finding.reading


def test_accuracy_and_its_interval():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])  # class 0 iff x >= 0
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]]), [0, 0, 1, 0]
    finding = audit(net, X, y, only=["ACC-01"])["ACC-01"]
    assert finding.number.value == 0.75 and finding.number.n == 4
    assert finding.number.standard_error == pytest.approx(np.sqrt(0.75 * 0.25 / 4))
    assert finding.table.rows == ((0, 3, 2, 2 / 3, 1), (1, 1, 1, 1.0, None))
    margins = audit(net, X, y, only=["ACC-02"])["ACC-02"]
    assert margins.table.rows[0] == (3, 0, 1, -4.0)
    assert margins.number.value == 2.0


def test_wilson_interval_covers_at_its_confidence():
    rng = np.random.default_rng(0)
    for p in (0.05, 0.5, 0.97):
        hits = [
            low <= p <= high
            for low, high in (wilson_interval(k, 100) for k in rng.binomial(100, p, 2000))
        ]
        assert 0.92 <= np.mean(hits) <= 0.98


def test_wilson_interval_ends_where_the_share_is_a_quantile_away():
    """Its ends p solve (share - p)^2 = z^2 p (1 - p) / n."""
    z = norm.ppf(0.975)
    for k, n in ((1, 7), (40, 50), (3, 400)):
        for p in wilson_interval(k, n):
            assert (k / n - p) ** 2 == pytest.approx(z**2 * p * (1 - p) / n)


def test_errors_of_values_beside_other_libraries(absolute_value):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1))
    y = np.abs(X[:, 0]) + 0.3 * rng.standard_normal(60)
    finding = audit(absolute_value, X, y, only=["ACC-01"])["ACC-01"]
    assert f"R² {r2_score(y, np.abs(X[:, 0])):.3f}" in finding.verdict
    squares = (y - np.abs(X[:, 0])) ** 2
    # The root of a mean: half the error of the mean, over the root.
    wanted = squares.std(ddof=1) / np.sqrt(60) / (2 * np.sqrt(squares.mean()))
    assert finding.number.standard_error == pytest.approx(wanted)


def test_margins_and_norms_beside_numpy():
    rng = np.random.default_rng(1)
    net = ReluNetwork.from_layers([(np.eye(2), [0.0, 0.0])])
    X = rng.standard_normal((101, 2))
    found = audit(net, X, [0] * 101, only=["ACC-02"])["ACC-02"]
    low, median = np.quantile(X[:, 0] - X[:, 1], [0.05, 0.5])
    assert f"5% quantile {low:.3g}".replace("-", "−") in found.verdict.replace("-", "−")
    assert found.number.value == pytest.approx(median)
    W, V = rng.standard_normal((5, 3)), rng.standard_normal((2, 5))
    deep = ReluNetwork.from_layers([(W, np.zeros(5)), (V, np.zeros(2))])
    for (_, _, spectral, frobenius, rank), M in zip(
        audit(deep, only=["NORM-01"])["NORM-01"].table.rows, (W, V), strict=True
    ):
        s = np.linalg.svd(M, compute_uv=False)
        assert spectral == pytest.approx(s[0]) and frobenius == pytest.approx(np.sqrt((s**2).sum()))
        assert rank == pytest.approx((s**2).sum() / s[0] ** 2)


def test_regression(absolute_value):
    X = np.array([[-2.0], [1.0], [3.0]])
    finding = audit(absolute_value, X, [2.0, 1.0, 4.5], only=["ACC-01"])["ACC-01"]
    assert finding.number.value == pytest.approx(np.sqrt(1.5**2 / 3))
    assert "R²" in finding.verdict
    assert (
        audit(absolute_value, X, [2.0, 1.0, 4.5], only=["ACC-02"])["ACC-02"].status == "not applicable"
    )
    assert "undefined" in audit(absolute_value, X, [7.0, 7.0, 7.0], only=["ACC-01"])["ACC-01"].verdict


def test_test_data_are_judged_and_training_data_stand_beside():
    net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
    result = audit(net, [[1.0], [-1.0]], [0, 1], test=([[1.0], [2.0]], [0, 1]), only=["ACC-01"])
    finding = result["ACC-01"]
    assert finding.number.value == 0.5 and "100% on the data" in finding.verdict
    assert "2 rows of the test data" in finding.verdict
    unlabelled = audit(net, [[1.0], [-1.0]], [0, 1], test=([[1.0]], None), only=["ACC-01"])["ACC-01"]
    assert unlabelled.number.value == 1.0


def test_certified_radius_holds():
    # No point closer than the stated radius changes the class of a row at the median margin.
    rng = np.random.default_rng(0)
    net = ReluNetwork.from_layers(
        [
            (rng.standard_normal((12, 3)), rng.standard_normal(12)),
            (rng.standard_normal((3, 12)), np.zeros(3)),
        ]
    )
    X = rng.standard_normal((201, 3))
    outputs = net(X)
    labels = outputs.argmax(axis=1)
    margin = np.sort(outputs, axis=1)[:, -1] - np.sort(outputs, axis=1)[:, -2]
    bounds = audit(net, X, labels, only=["LIP-01"])["LIP-01"].table.rows
    upper = min(row[2] for row in bounds if row[0] in ("averaged", "product", "absolute"))
    radius = np.median(margin) / (np.sqrt(2) * upper)
    firm = X[margin >= np.median(margin)]
    for _ in range(200):
        step = rng.standard_normal(firm.shape)
        step *= radius / np.linalg.norm(step, axis=1, keepdims=True)
        assert (net(firm + step).argmax(axis=1) == net(firm).argmax(axis=1)).all()


def test_layer_norms():
    net = ReluNetwork.from_layers([(np.diag([3.0, 4.0]), [0, 0]), (np.eye(2), [0, 0])])
    finding = audit(net, only=["NORM-01"])["NORM-01"]
    (_, _, spectral, frobenius, rank), (*_, full_rank) = finding.table.rows
    assert spectral == pytest.approx(4) and frobenius == pytest.approx(5)
    assert rank == pytest.approx(25 / 16) and full_rank == pytest.approx(2)


@pytest.mark.parametrize("n", [1, 3, 6, 10, 1000])
def test_wilson_interval_of_all_or_nothing_touches_the_end(n):
    assert wilson_interval(0, n)[0] == 0.0 and wilson_interval(n, n)[1] == 1.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200, 1e300])
def test_regression_at_any_scale(scale):
    net = ReluNetwork.from_layers([([[scale]], [0])])
    X, noise = np.linspace(-1, 1, 50)[:, None], np.random.default_rng(0).standard_normal(50)
    finding = audit(net, X, scale * (X[:, 0] + 0.1 * noise), only=["ACC-01"])["ACC-01"]
    assert finding.number.value / scale == pytest.approx(0.1 * np.sqrt(np.mean(noise**2)))
    assert "R² 0.9" in finding.verdict


def test_targets_of_another_kind_are_not_compared():
    net = ReluNetwork.from_layers([(np.eye(2), [0, 0])])
    X = np.random.default_rng(0).standard_normal((20, 2))
    result = audit(net, X, X + 1, test=(X, X.argmax(axis=1)), only=["ACC-01"])
    assert result["ACC-01"].number.value == 1.0 and "on the data" not in result["ACC-01"].verdict


def test_the_radius_sentence_reads_well_without_lengths_and_bounds():
    net = ReluNetwork.from_layers([(np.eye(2), [1, 0])])
    finding = audit(net, np.zeros((2, 2)), [0, 0], only=["LIP-01"])["LIP-01"]
    assert "no input change shorter than 0.707 can change the class" in finding.sentence
    steep = ReluNetwork.from_layers([(10 * np.eye(2), [5, 0])])  # margin 5, slope 10
    finding = audit(steep, np.zeros((2, 2)), [0, 0], only=["LIP-01"])["LIP-01"]
    assert "no input change shorter than 0.353 can change the class" in finding.sentence
    huge = ReluNetwork.from_layers([([[1e200]], [0]), ([[1e200]], [0])])
    assert "fits into float64" in audit(huge, only=["LIP-01"])["LIP-01"].sentence


def test_bounds_in_the_table_are_rounded_outwards():
    net = ReluNetwork.from_layers([([[2.3456, 0.0], [0.0, 1.0]], [0, 0])])
    text = audit(net, only=["LIP-01"]).to_markdown()
    assert "| attained | 2.34 | – |" in text and "| product | – | 2.35 |" in text


def test_norms_that_are_only_bounded_say_so(monkeypatch):
    monkeypatch.setattr("pindown.relaxation.operator_norms.MAX_GRAM_SIZE", 1)
    net = ReluNetwork.from_layers([(np.array([[1.0, -1.0], [1.0, 1.0]]), [0, 0])])
    assert "spectral norms at most 2" in audit(net, only=["NORM-01"])["NORM-01"].verdict


def test_no_relation_found_is_not_said_to_be_no_redundancy():
    # The second unit of layer 2 is never on, whatever the input: no relation between weights shows it.
    layers = [([[1.0], [-1.0]], [1, 2]), ([[1.0, 2.0], [-1.0, -3.0]], [0, -1]), ([[1.0, 1.0]], [0])]
    finding = audit(ReluNetwork.from_layers(layers), only=["SYM-01"])["SYM-01"]
    assert finding.sentence == "No unit is unconnected or repeats another, by the weights alone."


def test_lossless_size_counts_what_is_left_exactly():
    """A count of more than a thousand is not rounded, and an exact reduction says so."""
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((1_234, 2)), rng.standard_normal(1_234)
    W[7], b[7] = 0.0, -1.0  # dead
    net = ReluNetwork.from_layers([(W, b), (rng.standard_normal((1, 1_234)), [0.0])])
    finding = audit(net, only=["EQV-01"])["EQV-01"]
    assert finding.number.text == "1,233 ReLUs"
    assert finding.verdict == "1 ReLU of 1,234 can go for every input: 2 → 1,233 → 1 is enough"
    assert "exactly the same outputs for every input" in finding.reading


def test_flat_directions_are_counted_and_refusals_read_well():
    net = ReluNetwork.from_layers([([[2.0]], [0.5]), ([[3.0]], [1.0])])
    finding = audit(net, box=(-1, 1), only=["EQV-02"])["EQV-02"]
    assert finding.verdict == "3 of 4 directions change the function; 1 rescales units, none is hidden"
    assert audit(net, only=["EQV-02"])["EQV-02"].verdict == finding.verdict  # on the reference box
    big = ReluNetwork.from_layers([(np.ones((100, 60)), np.ones(100)), (np.ones((1, 100)), [0.0])])
    large = audit(big, box=(-1, 1), only=["EQV-02"])["EQV-02"]
    assert large.status == "not applicable" and "because it has 6,201 parameters" in large.verdict


def test_a_search_that_was_stopped_says_at_least(monkeypatch):
    from pindown import equivalence

    def stopped(*arguments, **how):
        return replace(shrink(*arguments, **how), complete=False)

    shrink = equivalence.shrink
    W, b = np.array([[1.0, 2.0], [2.0, 4.0], [1.0, -1.0]]), np.array([1.0, 2.0, 0.0])
    net = ReluNetwork.from_layers([(W, b), (np.ones((1, 3)), [0.0])])
    ended = audit(net, box=(-1, 1), only=["EQV-01"])["EQV-01"]
    monkeypatch.setattr(equivalence, "shrink", stopped)
    result = audit(net, box=(-1, 1), only=["EQV-01"])
    finding = result["EQV-01"]
    assert finding.verdict == f"at least {ended.verdict}" and "at least" not in ended.verdict
    assert finding.sentence == f"At least {ended.sentence}" and finding.sentence in result.description
    assert finding.hypotheses[1].status == "violated" and ended.hypotheses[1].status == "assumed"


def test_parameters_are_counted_once_and_zeros_are_named():
    """A sparse layer counts its non-zero weights; whoever counts more says what."""
    W = sp.random_array((200, 300), density=0.01, rng=np.random.default_rng(0), format="csr")
    net = ReluNetwork.from_layers([(W, np.ones(200)), (np.ones((1, 200)), [0.0])])
    result = audit(net, box=(-1, 1), only=["ARC-01", "EQV-02"])
    counted, everything = W.nnz + 200 + 201, 300 * 200 + 200 + 201
    assert result["ARC-01"].number.value == net.n_parameters == counted
    assert f"With them there would be {everything:,}." in result["ARC-01"].reading
    told = f"it has {everything:,} parameters with the zeros of sparse layers ({counted:,} without)"
    assert told in result["EQV-02"].verdict
