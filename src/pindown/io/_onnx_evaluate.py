"""An ONNX graph, evaluated node by node with :data:`pindown.io._onnx_numpy.EVALUATE`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto, helper

from pindown.io._onnx_numpy import EVALUATE, INTEGERS, Call, Numbers, as_fractions
from pindown.io._onnx_tensors import decode_tensor

Noise = Callable[[Numbers], Numbers]


class _Step(NamedTuple):
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class GraphEvaluator:
    """The function of a graph, without a single ReLU of ours.

    Args:
        nodes: The nodes that the output rests on, in an order in which they can be carried out.
        weights: Name -> array of the initialisers in use.
        source: Name of the graph's input.
        opset: Version of the operator set.
        folder: Where tensors stored outside the model may lie.
    """

    def __init__(
        self,
        nodes: Sequence[Any],
        weights: dict[str, Numbers],
        *,
        source: str,
        opset: int,
        folder: Path | None = None,
    ) -> None:
        self._opset, self._source = opset, source
        self._constants = dict(weights)
        self._steps: list[_Step] = []
        dependent = {source}
        for node in nodes:
            step = _Step(node.op_type, tuple(node.input), tuple(node.output), _attributes(node, folder))
            if dependent.isdisjoint(step.inputs):
                made = self._carry_out(step, self._constants, None)
                self._constants.update(zip(step.outputs, made, strict=False))
            else:
                dependent.update(step.outputs)
                self._steps.append(step)

    @property
    def n_constants(self) -> int:
        """How many numbers the graph's constants hold."""
        return sum(value.size for value in self._constants.values())

    def exactly(self) -> GraphEvaluator:
        """Return the same function on rational numbers."""
        other = object.__new__(GraphEvaluator)
        other._opset, other._source, other._steps = self._opset, self._source, self._steps
        other._constants = {
            name: as_fractions(value) if value.dtype.kind == "f" else value
            for name, value in self._constants.items()
        }
        return other

    def __call__(self, x: Numbers, noise: Noise | None = None) -> dict[str, Numbers]:
        """Return every tensor that depends on the input.

        Args:
            x: The input, of the graph's literal shape.
            noise: What to do to every number on its way, to see how much that matters.
        """
        change = noise or (lambda value: value)
        values = {self._source: change(x)}
        for step in self._steps:
            made = self._carry_out(step, values, change)
            for name, value in zip(step.outputs, made, strict=False):
                values[name] = change(value)
        return values

    def output(self, name: str, x: Numbers, noise: Noise | None = None) -> Numbers:
        """Return one tensor, which may also be constant."""
        return self(x, noise).get(name, self._constants.get(name))  # type: ignore[return-value]

    def largest(self, x: Numbers) -> float:
        """Return the largest absolute constant, factor or number on the way from an input."""
        divisors = [self._constants.get(step.inputs[1]) for step in self._steps if step.op == "Div"]
        factors = [1.0 / value for value in divisors if value is not None]
        numbers = (*factors, *self._constants.values(), *self(x).values())
        return max(float(np.abs(v).max(initial=0.0)) for v in numbers if v.dtype.kind == "f")

    def _carry_out(
        self, step: _Step, values: dict[str, Numbers], change: Noise | None
    ) -> tuple[Numbers, ...]:
        inputs: list[Numbers | None] = []
        for name in step.inputs:
            if not name or name in values:
                inputs.append(values.get(name))
            else:
                constant = self._constants[name]
                inputs.append(change(constant) if change else constant)
        call = Call(inputs, step.attributes, self._opset, len(step.outputs), change is None)
        made = EVALUATE[step.op](call)
        # A function of an array without axes may give a bare number, also a rational one.
        return tuple(np.asarray(value) for value in (made if isinstance(made, tuple) else (made,)))


def typed(values: Numbers, element_type: int) -> Numbers:
    """Return decoded numbers as evaluation takes them: integers in their own type, floats in float64."""
    return values.astype(INTEGERS[element_type]) if element_type in INTEGERS else values


def _attributes(node: Any, folder: Path | None) -> dict[str, Any]:
    return {a.name: _plain(helper.get_attribute_value(a), folder) for a in node.attribute}


def _plain(value: Any, folder: Path | None) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, TensorProto):
        return typed(decode_tensor(value, folder), value.data_type)
    return list(value) if isinstance(value, (list, tuple)) else value
