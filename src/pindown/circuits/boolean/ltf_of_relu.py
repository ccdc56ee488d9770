r"""A threshold gate over ReLU gates, with wires from the inputs to the output: what restrictions act on.

.. math:: C(x) = \operatorname{sign}\Bigl(\sum_j c_j\, \rho(\langle a_j, x \rangle + b_j)
    + \langle d, x \rangle + c\Bigr), \qquad \operatorname{sign}(0) = 1 .

Mukherjee 2020, section 2.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import LinearForm, sign_rows
from pindown.circuits.boolean.restrictions import Restriction, gate_fate, restrict_form
from pindown.network import ReluNetwork
from pindown.rational import RationalNetwork


@dataclass(frozen=True, repr=False)
class LtfOfRelu:
    """A circuit of depth two: ReLU gates and direct wires under one threshold gate.

    Attributes:
        gates: Arguments of the ReLU gates.
        coefficients: Their weights in the argument of the threshold gate.
        direct: The rest of that argument, a form in the inputs.

    Example:
        >>> circuit = LtfOfRelu((LinearForm.of([1, 1]),), (Fraction(1),), LinearForm.of([0, 0], -1))
        >>> [circuit(x) for x in ([1, 1], [1, -1])]
        [1, -1]
        >>> circuit
        LtfOfRelu(2 inputs, depth 2, 2 gates)
    """

    gates: tuple[LinearForm, ...]
    coefficients: tuple[Fraction, ...]
    direct: LinearForm

    def __post_init__(self) -> None:
        if len(self.gates) != len(self.coefficients):
            raise ValueError(f"{len(self.gates)} gates but {len(self.coefficients)} coefficients.")
        if any(gate.n_inputs != self.n_inputs for gate in self.gates):
            raise ValueError(f"all gates must read the {self.n_inputs} inputs.")

    @classmethod
    def from_network(cls, net: ReluNetwork | RationalNetwork) -> LtfOfRelu:
        """Put a threshold gate on a network with one hidden layer and one output."""
        exact = net.as_fractions() if isinstance(net, ReluNetwork) else net
        if len(exact.layers) != 2 or len(exact.layers[1][1]) != 1:
            raise ValueError("the network must have one hidden layer and one output.")
        (W, b), (c, offset) = exact.layers
        gates = tuple(LinearForm(tuple(row), bias) for row, bias in zip(W, b, strict=True))
        wires = LinearForm((Fraction(0),) * W.shape[1], offset[0])
        return cls(gates, tuple(c[0]), wires)

    @property
    def n_inputs(self) -> int:
        """Number of input bits."""
        return self.direct.n_inputs

    @property
    def depth(self) -> int:
        """Length of the longest path from an input to the output."""
        return 2 if self.gates else 1

    @property
    def gate_count(self) -> int:
        """Number of gates, the output gate included."""
        return len(self.gates) + 1

    def argument(self, X: ArrayLike) -> Any:
        """Return what enters the threshold gate, as fractions: (N, n) -> (N,), (n,) -> a number."""
        rows, single = sign_rows(X)
        total = _exact_values(self.direct, rows)
        for gate, coefficient in zip(self.gates, self.coefficients, strict=True):
            z = _exact_values(gate, rows)
            total = total + coefficient * (z * (z > 0))
        return total[0] if single else total

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate without rounding: (N, n) -> (N,), (n,) -> a number."""
        z = self.argument(X)
        if isinstance(z, Fraction):
            return 1 if z >= 0 else -1
        return np.where(z >= 0, 1, -1).astype(np.int8)

    def network(self) -> RationalNetwork:
        r"""Return the argument of the threshold gate as a network, exact on the cube.

        The direct wires take one more ReLU: on the cube a form plus :math:`\|d\|_1` is not negative.
        """
        gates, coefficients, bias = list(self.gates), list(self.coefficients), self.direct.bias
        if any(self.direct.weights) or not gates:
            reach = sum((abs(w) for w in self.direct.weights), Fraction(0))
            gates.append(LinearForm(self.direct.weights, reach))
            coefficients.append(Fraction(1))
            bias -= reach
        hidden = [gate.weights for gate in gates], [gate.bias for gate in gates]
        return RationalNetwork.from_layers([hidden, ([coefficients], [bias])])

    def __repr__(self) -> str:
        return f"LtfOfRelu({self.n_inputs} inputs, depth {self.depth}, {self.gate_count:,} gates)"


def restrict_circuit(circuit: LtfOfRelu, restriction: Restriction) -> LtfOfRelu:
    """Return the circuit on the free inputs, without the gates that have become trivial.

    A gate that is zero on the cube goes; one that is linear there becomes direct wires.

    Args:
        circuit: A threshold gate over ReLU gates.
        restriction: Which inputs are fixed.

    Returns:
        A circuit with the same values on all inputs that agree with the restriction.

    Example:
        >>> circuit = LtfOfRelu((LinearForm.of([1, 1]),), (Fraction(1),), LinearForm.of([0, 0], -1))
        >>> restrict_circuit(circuit, Restriction.parse("+*"))
        LtfOfRelu(1 inputs, depth 1, 1 gates)

    Mukherjee 2020, section 2.6.
    """
    direct = restrict_form(circuit.direct, restriction)
    weights, bias = list(direct.weights), direct.bias
    kept: list[tuple[LinearForm, Fraction]] = []
    for gate, coefficient in zip(circuit.gates, circuit.coefficients, strict=True):
        form = restrict_form(gate, restriction)
        fate = gate_fate(form)
        if fate == "active":
            kept.append((form, coefficient))
        elif fate == "linear":
            weights = [w + coefficient * a for w, a in zip(weights, form.weights, strict=True)]
            bias += coefficient * form.bias
    return LtfOfRelu(
        tuple(form for form, _ in kept), tuple(c for _, c in kept), LinearForm(tuple(weights), bias)
    )


def _exact_values(form: LinearForm, rows: Any) -> Any:
    whole = form.values(rows)
    scale = form.scale()
    return np.array([Fraction(int(value), scale) for value in whole], dtype=object)
