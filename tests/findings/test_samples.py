"""Labels are read as what they are, or refused in one sentence."""

import numpy as np
import pytest

from pindown.findings.samples import Sample, Targets, margins, predicted_classes, read_targets


@pytest.mark.parametrize(
    ("y", "k", "task", "values"),
    [
        ([0, 2, 1], 3, "classes", [0, 2, 1]),
        ([0.0, 2.0, 1.0], 3, "classes", [0, 2, 1]),
        ([[0], [2], [1]], 3, "classes", [0, 2, 1]),
        ([[1, 0, 0], [0, 0, 1], [0, 1, 0]], 3, "classes", [0, 2, 1]),
        ([1, 1, 1], 3, "classes", [1, 1, 1]),
        ([0, 1, 1], 1, "binary", [0, 1, 1]),
        ([-1, 1, 1], 1, "binary", [0, 1, 1]),
        ([True, False, True], 1, "binary", [1, 0, 1]),
        ([1, 1, 1], 1, "binary", [1, 1, 1]),
        ([0.5, 1, 2], 1, "regression", [[0.5], [1], [2]]),
        ([[0.5], [1], [2]], 1, "regression", [[0.5], [1], [2]]),
        ([[0.5, 1], [1, 0], [2, 2]], 2, "regression", [[0.5, 1], [1, 0], [2, 2]]),
    ],
)
def test_targets_are_read(y, k, task, values):
    targets = read_targets(y, 3, k)
    assert targets.task == task and targets.values.tolist() == values


@pytest.mark.parametrize(
    ("y", "k", "message"),
    [
        ([0, 1], 3, "got 2 rows for 3 inputs"),
        (5, 3, "a single number"),
        ([0, 1, 3], 3, "classes 0 to 2 for 3 outputs; got 3"),
        ([0, -1, 1], 3, "got -1"),
        ([0, 0.5, 1], 3, "holds fractions"),
        ([0, np.nan, 1], 3, "1 of 3 entries are NaN"),
        ([0, np.inf, 1], 1, "NaN or infinite"),
        (["a", "b", "c"], 3, "got dtype"),
        (np.zeros((3, 2)), 3, r"shape \(n,\) or \(n, 3\)"),
        (np.zeros((3, 2)), 1, "one output"),
        (np.zeros((3, 2, 2)), 3, "shape"),
    ],
)
def test_what_is_no_target_is_refused(y, k, message):
    with pytest.raises(ValueError, match=message):
        read_targets(y, 3, k)


def test_margins_by_brute_force():
    rng = np.random.default_rng(0)
    outputs, labels = rng.standard_normal((50, 4)), rng.integers(0, 4, 50)
    brute = [
        row[t] - max(v for j, v in enumerate(row) if j != t)
        for row, t in zip(outputs, labels, strict=True)
    ]
    np.testing.assert_allclose(margins(outputs, Targets("classes", labels)), brute)
    right = predicted_classes(outputs) == labels
    np.testing.assert_array_equal(right, np.array(brute) > 0)


def test_one_output_is_judged_by_its_sign():
    outputs = np.array([[2.0], [-1.0], [0.0]])
    assert predicted_classes(outputs).tolist() == [1, 0, 0]
    assert margins(outputs, Targets("binary", np.array([1, 1, 0]))).tolist() == [2.0, -1.0, 0.0]


def test_spread_is_that_of_the_columns_and_zero_exactly_for_constants():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(1e3, 2.0, (20_000, 3)), np.full((20_000, 1), 0.1)])
    sample = Sample("data", X, None)
    np.testing.assert_allclose(sample.spread[:3], X[:, :3].std(axis=0), rtol=1e-10)
    assert sample.spread[3] == 0.0 and X[:, 3].std() > 0.0  # rounding of the mean is no spread
