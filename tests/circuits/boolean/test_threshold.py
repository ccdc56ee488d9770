"""Two ReLUs make a threshold gate on the cube (Mukherjee 2020, Claim 4), and circuits of them follow."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from pindown.circuits.boolean import (
    LinearForm,
    ThresholdCircuit,
    ThresholdGate,
    gate_count,
    threshold_to_relu,
    vertices,
)


def random_gate(rng, n, *, kind=ThresholdGate):
    a = [Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 5))) for _ in range(n)]
    return kind.of(a, Fraction(int(rng.integers(-9, 10)), int(rng.integers(1, 5))))


def random_circuit(rng, widths):
    return ThresholdCircuit(
        tuple(tuple(random_gate(rng, n) for _ in range(w)) for n, w in pairwise(widths))
    )


def naive_values(form, X):
    return [sum((w * s for w, s in zip(form.weights, x, strict=True)), form.bias) for x in X.tolist()]


def naive_circuit(circuit, x):
    for layer in circuit.layers:
        x = [
            1 if sum((w * s for w, s in zip(g.weights, x, strict=True)), g.bias) >= 0 else -1
            for g in layer
        ]
    return x


@pytest.mark.parametrize("n", range(1, 9))
def test_every_vertex_in_rational_arithmetic(n):
    rng, X = np.random.default_rng(n), vertices(n)
    for _ in range(6):
        gate = random_gate(rng, n)
        signs = [1 if z >= 0 else -1 for z in naive_values(gate, X)]
        assert gate(X).tolist() == signs
        for gap in ("exact", "whole"):
            net = threshold_to_relu(gate, gap=gap)
            assert [net(x)[0] for x in X.tolist()] == signs
            assert gate_count(net) <= 2 and len(net.layers) == 2


@pytest.mark.parametrize("n", [9, 10])
def test_larger_gates_rounded_to_float(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        gate = ThresholdGate.of(rng.integers(-20, 21, n).tolist(), int(rng.integers(-5, 6)))
        net = threshold_to_relu(gate).to_network()
        np.testing.assert_allclose(net(vertices(n)).ravel(), gate(vertices(n)), atol=1e-12)


@pytest.mark.parametrize("n", range(1, 10))
def test_gap_and_range_agree_with_enumeration(n):
    rng = np.random.default_rng(n)
    for _ in range(10):
        form = random_gate(rng, n, kind=LinearForm)
        values = naive_values(form, vertices(n))
        negative = [-z for z in values if z < 0]
        assert form.gap() == (min(negative) if negative else None)
        assert form.range() == (min(values), max(values))


def test_gap_of_many_inputs():
    # 2^30 vertices: the values are the odd numbers, shifted by one half.
    assert LinearForm.of([2**i for i in range(30)], Fraction(1, 2)).gap() == Fraction(1, 2)
    assert LinearForm.of([2**i for i in range(62, 82)], 1).gap() == 2**62 - 1  # beyond int64
    assert LinearForm.of([0] * 1000 + [3], 1).gap() == 2


@pytest.mark.parametrize("widths", [(3, 2, 1), (5, 4, 1), (4, 3, 3, 2), (6, 1, 1), (2, 5, 4, 3, 1)])
def test_circuits_keep_their_values_depth_and_twice_their_gates(widths):
    rng = np.random.default_rng(sum(widths))
    X = vertices(widths[0]).tolist()
    for _ in range(4):
        circuit = random_circuit(rng, widths)
        assert circuit.depth == len(widths) - 1 and circuit.gate_count == sum(widths[1:])
        expected = [naive_circuit(circuit, x) for x in X]
        assert circuit(X).tolist() == expected
        net = threshold_to_relu(circuit)
        assert [net(x) for x in X] == expected
        assert len(net.layers) == circuit.depth + 1 and gate_count(net) <= 2 * circuit.gate_count
        under = threshold_to_relu(circuit, gap="whole", keep_output_gates=True)
        assert [[1 if z >= 0 else -1 for z in under(x)] for x in X] == expected
        assert len(under.layers) == circuit.depth
        assert gate_count(under) <= 2 * (circuit.gate_count - circuit.n_outputs)


def test_two_relus_for_every_gate_that_is_not_constant():
    majority = ThresholdGate.of([1, 1, 1])
    assert gate_count(threshold_to_relu(majority)) == 2
    always, never = ThresholdGate.of([1, 1, 1], 3), ThresholdGate.of([1, 1, 1], -4)
    assert (always.constant, never.constant, majority.constant) == (1, -1, None)
    net = threshold_to_relu(ThresholdCircuit(((always, majority, never),)))
    assert gate_count(net) == 2 and net([-1, -1, -1]) == [1, -1, -1]
    constant = threshold_to_relu(ThresholdCircuit(((always, never), (ThresholdGate.of([1, 2]),))))
    assert constant([1, 1, -1]) == [-1] and len(constant.layers) == 3


def test_zero_counts_as_positive():
    gate = ThresholdGate.of([1, -1])
    assert gate([1, 1]) == 1 and threshold_to_relu(gate)([1, 1]) == [1]
    conjunction = ThresholdGate.of([1, 1], -2)  # zero at its largest, and so not constant
    assert conjunction.constant is None
    for x in product((-1, 1), repeat=2):
        assert threshold_to_relu(conjunction)(x) == [conjunction(x)] == [1 if x == (1, 1) else -1]


def test_a_ramp_that_is_too_wide_is_wrong():
    """So that p matters: doubling it spoils the vertex next to the threshold."""
    gate = ThresholdGate.of([1, 1, 1])
    p = 2 * gate.gap()
    z = -1
    assert -1 + Fraction(2) / p * (max(0, z + p) - max(0, z)) == 0 != gate([1, -1, -1])


def test_floats_are_taken_exactly():
    # 0.1 + 0.2 - 0.3 is zero in rationals only if the floats are: they are not.
    gate = ThresholdGate.of([0.1, 0.2, -0.3])
    exact = Fraction(0.1) + Fraction(0.2) - Fraction(0.3)
    assert gate([1, 1, 1]) == (1 if exact >= 0 else -1)
    assert ThresholdGate.of([1e300, 1e-300], -1e300)([1, -1]) == -1


def test_bad_input():
    with pytest.raises(ValueError, match="at most 40"):
        threshold_to_relu(ThresholdGate.of([1] * 41))
    assert gate_count(threshold_to_relu(ThresholdGate.of([1] * 41), gap="whole")) == 2
    with pytest.raises(ValueError, match="to_pm"):
        ThresholdGate.of([1, 1])([0, 1])
    with pytest.raises(ValueError, match="2 signs"):
        ThresholdGate.of([1, 1])([1, 1, 1])
    with pytest.raises(ValueError, match="at least one"):
        ThresholdCircuit(())
    with pytest.raises(ValueError, match="one bias for each"):
        ThresholdCircuit.from_layers([([[1, 1]], [0, 0])])
    with pytest.raises(ValueError, match="at least one input"):
        ThresholdCircuit(((ThresholdGate.of([]),),))
    with pytest.raises(ValueError, match="layer 2 must read 1"):
        ThresholdCircuit.from_layers([([[1, 1]], [0]), ([[1, 1]], [0])])
    with pytest.raises(ValueError, match="gap"):
        threshold_to_relu(ThresholdGate.of([1]), gap="half")
    with pytest.raises(ValueError, match="finite"):
        ThresholdGate.of([float("nan")])
    with pytest.raises(TypeError, match="real numbers"):
        ThresholdGate.of([1j])
