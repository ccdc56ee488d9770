"""Proposition 2.5.3 of Mukherjee 2020: one ReLU against n thresholds."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.circuits.boolean import (
    SumOfThresholds,
    ThresholdGate,
    binary_value,
    binary_value_network,
    binary_value_thresholds,
    gate_count,
    min_threshold_gates,
    table_of,
    value_count,
    vertices,
)


@pytest.mark.parametrize("n", range(1, 9))
def test_one_and_two_relus_and_n_thresholds(n):
    X = vertices(n)
    expected = [sum(2 ** (i + 1) for i, s in enumerate(x) if s == 1) for x in X.tolist()]
    assert binary_value(X).tolist() == expected
    for gates in (1, 2):
        net = binary_value_network(n, gates=gates)
        assert [net(x)[0] for x in X.tolist()] == expected and gate_count(net) == gates
    thresholds = binary_value_thresholds(n)
    assert thresholds(X).tolist() == expected and thresholds.gate_count == n
    assert value_count(expected) == 2**n
    assert min_threshold_gates(expected) == n == thresholds.gate_count  # so the bound is sharp


def test_two_gates_are_linear_everywhere_and_one_is_not():
    far = [-5, 0, 0]
    linear = sum(2 ** (i + 1) * Fraction(1 + x, 2) for i, x in enumerate(far))
    assert binary_value_network(3, gates=2)(far) == [linear]
    assert binary_value_network(3, gates=1)([-5, -5, -5]) == [0]


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_thresholds_take_few_values(seed):
    rng = np.random.default_rng(seed)
    n, w = 6, int(rng.integers(1, 5))
    gates = tuple(
        ThresholdGate.of(rng.standard_normal(n).tolist(), rng.standard_normal()) for _ in range(w)
    )
    total = SumOfThresholds(
        gates, tuple(Fraction(int(c)) for c in rng.integers(-99, 99, w)), Fraction(0)
    )
    table = table_of(total, n)
    assert value_count(table) <= 2**w
    assert min_threshold_gates(table) <= w


def test_bad_input():
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        binary_value_network(0)
    with pytest.raises(ValueError, match="at most 2"):
        binary_value_network(3, gates=3)
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        binary_value_thresholds(0)
    with pytest.raises(ValueError, match=r"2\^n values"):
        min_threshold_gates([])
    with pytest.raises(ValueError, match="as many coefficients"):
        SumOfThresholds((), (), Fraction(0))
