"""Thresholds over ReLUs: restricted circuits agree with the whole and lose the gates that collapse."""

from fractions import Fraction

import numpy as np
import pytest

from pindown.circuits.boolean import (
    LinearForm,
    LtfOfRelu,
    gate_count,
    random_restriction,
    restrict_circuit,
    vertices,
)
from pindown.network import ReluNetwork
from tests.geometry.fold_nets import gaussian


def random_circuit(rng, n, w):
    def form():
        return LinearForm.of(rng.integers(-4, 5, n).tolist(), int(rng.integers(-6, 7)))

    gates = tuple(form() for _ in range(w))
    return LtfOfRelu(gates, tuple(Fraction(int(c), 3) for c in rng.integers(-5, 6, w)), form())


def naive(circuit, x):
    def value(form):
        return sum((w * s for w, s in zip(form.weights, x, strict=True)), form.bias)

    pairs = zip(circuit.coefficients, circuit.gates, strict=True)
    return sum((c * max(Fraction(0), value(gate)) for c, gate in pairs), value(circuit.direct))


@pytest.mark.parametrize("seed", range(6))
def test_restricted_circuit_equals_the_original_on_consistent_inputs(seed):
    rng = np.random.default_rng(seed)
    for n, parts, w in ((6, 2, 5), (8, 4, 7), (9, 3, 4)):
        circuit, rho = random_circuit(rng, n, w), random_restriction(n, parts, rng)
        small = restrict_circuit(circuit, rho)
        Y = vertices(parts)
        X = rho.complete(Y)
        assert small.argument(Y).tolist() == circuit.argument(X).tolist()
        assert circuit.argument(X).tolist() == [naive(circuit, x) for x in X.tolist()]
        assert small(Y).tolist() == circuit(X).tolist()
        assert small.gate_count <= circuit.gate_count


def test_gates_do_collapse():
    rng = np.random.default_rng(0)
    circuit = LtfOfRelu.from_network(gaussian(rng, (256, 50, 1)))
    kept = [restrict_circuit(circuit, random_restriction(256, 2, rng)).gate_count for _ in range(5)]
    # 2 / sqrt(256) times about 0.65 of the gates survive: 4 out of 50.
    assert circuit.gate_count == 51 and 1 < np.mean(kept) < 12


@pytest.mark.parametrize("direct", [False, True])
def test_network_of_a_circuit_is_exact_on_the_cube(direct):
    rng = np.random.default_rng(3)
    circuit = random_circuit(rng, 5, 4)
    if not direct:
        circuit = LtfOfRelu(circuit.gates, circuit.coefficients, LinearForm.of([0] * 5, 2))
    net = circuit.network()
    assert [net(x)[0] for x in vertices(5).tolist()] == circuit.argument(vertices(5)).tolist()
    assert gate_count(net) == 4 + direct
    again = LtfOfRelu.from_network(net)
    assert again(vertices(5)).tolist() == circuit(vertices(5)).tolist()


def test_no_gates_left():
    circuit = LtfOfRelu((), (), LinearForm.of([1, -1], 0))
    assert circuit.depth == 1 and circuit.gate_count == 1
    assert circuit([1, 1]) == 1 and circuit([-1, 1]) == -1
    assert circuit.network()([-1, 1]) == [-2]


def test_bad_input():
    with pytest.raises(ValueError, match="one hidden layer"):
        LtfOfRelu.from_network(ReluNetwork.from_layers([([[1.0]], [0])]))
    with pytest.raises(ValueError, match="coefficients"):
        LtfOfRelu((LinearForm.of([1]),), (), LinearForm.of([1]))
    with pytest.raises(ValueError, match="read the 1 inputs"):
        LtfOfRelu((LinearForm.of([1, 2]),), (Fraction(1),), LinearForm.of([1]))
