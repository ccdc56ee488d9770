r"""Threshold gates, circuits of them, and the ReLU networks that compute the same.

A threshold gate is +1 where :math:`\langle a, x \rangle + b \ge 0` and -1 elsewhere. On a finite set
its argument avoids an interval :math:`(-p, 0)`, so a ramp over that interval, two ReLUs, does the same.

Mukherjee 2020, section 2.5 and Claim 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pindown.circuits.boolean.cube import LinearForm, Number, Signs, sign_rows
from pindown.rational import RationalNetwork


@dataclass(frozen=True)
class ThresholdGate(LinearForm):
    r"""The gate :math:`x \mapsto 2 \cdot 1[\langle a, x \rangle + b \ge 0] - 1`.

    Example:
        The majority of three signs:

        >>> majority = ThresholdGate.of([1, 1, 1])
        >>> majority([1, 1, -1])
        1
    """

    def __call__(self, X: ArrayLike) -> Any:
        """Evaluate without rounding: (N, n) -> (N,), (n,) -> a number."""
        rows, single = sign_rows(X)
        _require_inputs(rows, self.n_inputs)
        signs = np.where(self.values(rows) >= 0, 1, -1).astype(np.int8)
        return int(signs[0]) if single else signs

    @property
    def constant(self) -> int | None:
        """The gate's only value on the cube, or None if it has two."""
        low, high = self.range()
        return 1 if low >= 0 else -1 if high < 0 else None


@dataclass(frozen=True, repr=False)
class ThresholdCircuit:
    r"""Layers of threshold gates on the cube, each reading all gates of the layer before.

    Attributes:
        layers: The gates, from the inputs to the outputs.

    Example:
        Exclusive or as "not both, but at least one" (true is -1):

        >>> circuit = ThresholdCircuit.from_layers([
        ...     ([[1, 1], [-1, -1]], [-1, -1]),  # both +1; both -1
        ...     ([[1, 1]], [1]),
        ... ])
        >>> circuit([[1, 1], [1, -1], [-1, 1], [-1, -1]]).ravel().tolist()
        [1, -1, -1, 1]
        >>> circuit
        ThresholdCircuit(2 -> 2 -> 1: depth 2, 3 gates)
    """

    layers: tuple[tuple[ThresholdGate, ...], ...]

    def __post_init__(self) -> None:
        if not self.layers or not all(self.layers):
            raise ValueError("a circuit needs at least one layer, and every layer at least one gate.")
        takes = self.n_inputs
        if takes < 1:
            raise ValueError("a circuit needs at least one input.")
        for i, layer in enumerate(self.layers, 1):
            if any(gate.n_inputs != takes for gate in layer):
                got = sorted({gate.n_inputs for gate in layer})
                raise ValueError(f"the gates of layer {i} must read {takes} values each; got {got}.")
            takes = len(layer)

    @classmethod
    def from_layers(
        cls, layers: Iterable[tuple[Iterable[Iterable[Number]], Iterable[Number]]]
    ) -> ThresholdCircuit:
        """Build from ``[(A1, b1), ...]``, one row of ``A`` for each gate."""
        gates = []
        for A, b in layers:
            rows, biases = list(A), list(b)
            if len(rows) != len(biases):
                raise ValueError(f"one bias for each gate is needed; got {len(rows)} and {len(biases)}.")
            gates.append(tuple(ThresholdGate.of(a, c) for a, c in zip(rows, biases, strict=True)))
        return cls(tuple(gates))

    @property
    def n_inputs(self) -> int:
        """Number of input bits."""
        return self.layers[0][0].n_inputs

    @property
    def n_outputs(self) -> int:
        """Number of gates in the last layer."""
        return len(self.layers[-1])

    @property
    def depth(self) -> int:
        """Length of the longest path from an input to an output: the number of layers."""
        return len(self.layers)

    @property
    def gate_count(self) -> int:
        """Number of gates, the output gates included."""
        return sum(map(len, self.layers))

    def __call__(self, X: ArrayLike) -> Signs:
        """Evaluate without rounding: (N, n) -> (N, k), (n,) -> (k,)."""
        values, single = sign_rows(X)
        _require_inputs(values, self.n_inputs)
        for layer in self.layers:
            values = np.column_stack([gate(values) for gate in layer])
        return values[0] if single else values

    def __repr__(self) -> str:
        widths = " -> ".join(map(str, (self.n_inputs, *map(len, self.layers))))
        return f"ThresholdCircuit({widths}: depth {self.depth}, {self.gate_count:,} gates)"


def threshold_to_relu(
    circuit: ThresholdCircuit | ThresholdGate,
    *,
    gap: Literal["exact", "whole"] = "exact",
    keep_output_gates: bool = False,
) -> RationalNetwork:
    r"""Return a ReLU network with the circuit's values on the cube: two ReLUs for each gate.

    .. math:: 2 \cdot 1[z \ge 0] - 1 = -1 + \tfrac{2}{p} \bigl(\rho(z + p) - \rho(z)\bigr)
        \qquad \text{wherever } z \notin (-p, 0) .

    The -1 and the factor fold into the next affine map, so layers stay layers. A gate that is constant
    on the cube of its inputs takes no ReLU.

    Args:
        circuit: A circuit, or a single gate.
        gap: How p is found. ``"exact"``: the largest possible, over all signs of the gate's inputs (at
            most 40 with a weight). ``"whole"``: the smallest step of the gate's values, which needs no
            search and takes any number of inputs, but makes steeper ramps.
        keep_output_gates: Return the arguments of the last threshold gates instead of their values:
            then the network under a threshold is a circuit of thresholds over ReLUs.

    Returns:
        The exact network; its depth is the circuit's plus one, or equal if output gates are kept.

    Raises:
        ValueError: If a gate has more than 40 weights and the gap is to be exact.

    Example:
        >>> majority = threshold_to_relu(ThresholdGate.of([1, 1, 1]))
        >>> majority([1, 1, -1]), majority([1, -1, -1])
        ([Fraction(1, 1)], [Fraction(-1, 1)])

    Mukherjee 2020, Claim 4.
    """
    if gap not in ("exact", "whole"):
        raise ValueError(f"gap must be 'exact' or 'whole'; got {gap!r}.")
    layers = circuit.layers if isinstance(circuit, ThresholdCircuit) else ((circuit,),)
    outputs: Sequence[LinearForm] = layers[-1]
    if keep_output_gates:
        layers = layers[:-1]
    else:
        outputs = [_unit_form(i, len(outputs)) for i in range(len(outputs))]
    affine, below = [], None
    for layer in layers:
        forms, ramps = _ramp_layer(layer, gap)
        affine.append(_through(forms, below))
        below = ramps
    return RationalNetwork.from_layers([*affine, _through(outputs, below)])


@dataclass(frozen=True)
class _Ramps:
    """How the signs of a layer follow from its ReLUs: each is its start plus slopes times its own ReLUs.

    Attributes:
        owners: The gate that each ReLU belongs to.
        slopes: The factor of each ReLU.
        start: The sign where all ReLUs are zero.
    """

    owners: list[int]
    slopes: list[Fraction]
    start: list[Fraction]


def _ramp_layer(layer: Sequence[ThresholdGate], gap: str) -> tuple[list[LinearForm], _Ramps]:
    """Return the arguments of the ReLUs of one layer, and the way from them to signs."""
    forms: list[LinearForm] = []
    ramps = _Ramps([], [], [Fraction(gate.constant or -1) for gate in layer])
    for i, gate in enumerate(layer):
        if gate.constant is not None:
            continue
        p = gate.gap() if gap == "exact" else Fraction(1, gate.scale())
        assert p is not None  # a gate that is not constant is negative somewhere
        forms += [LinearForm(gate.weights, gate.bias + p), LinearForm(gate.weights, gate.bias)]
        ramps.owners.extend([i, i])
        ramps.slopes.extend([2 / p, -2 / p])
    if not forms:  # all constant: one idle ReLU keeps the layer
        forms = [LinearForm((Fraction(0),) * layer[0].n_inputs, Fraction(0))]
        ramps.owners.append(0)
        ramps.slopes.append(Fraction(0))
    return forms, ramps


def _through(forms: Sequence[LinearForm], below: _Ramps | None) -> tuple[Any, Any]:
    """Return weights and biases of forms in signs, as functions of the ReLUs that make the signs."""
    if below is None:  # the inputs are their own signs
        return [form.weights for form in forms], [form.bias for form in forms]
    ramps = list(zip(below.owners, below.slopes, strict=True))
    weights = [[form.weights[owner] * slope for owner, slope in ramps] for form in forms]
    starts = [
        sum((w * s for w, s in zip(form.weights, below.start, strict=True) if w), form.bias)
        for form in forms
    ]
    return weights, starts


def _unit_form(i: int, n: int) -> LinearForm:
    return LinearForm(tuple(Fraction(int(i == j)) for j in range(n)), Fraction(0))


def _require_inputs(rows: Signs, n: int) -> None:
    if rows.shape[1] != n:
        raise ValueError(f"inputs must have {n} signs each; got {rows.shape[1]}.")
