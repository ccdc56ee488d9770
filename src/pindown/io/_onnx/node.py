"""One node of an ONNX graph, as the rules see it: attributes, the inputs' values, where results go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from pindown.affine import Array, is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.tensors import decode_tensor
from pindown.model.builder import Builder, Tensor
from pindown.model.limits import MAX_TENSOR_ENTRIES, check_entries, check_multiplications
from pindown.model.operations.integers import Dequantize
from pindown.model.operations.moves import Concat, Constant, Move
from pindown.model.operations.operation import Operation, frozen

Value: TypeAlias = Tensor | NDArray[Any]  # what depends on the input, and what is constant

_KINDS = {"f": 1, "i": 2, "s": 3, "t": 4, "g": 5, "floats": 6, "ints": 7, "strings": 8}
# What minus infinity in a mask is read as: behind a softmax the two cannot be told apart.
MASKED = -1e30
_HIDDEN = -1e4  # what exporters write for it, or less
_MASK_NOTE = f"Minus infinity in a mask was read as {MASKED:.0e}; behind a softmax that is the same."
_JUMP_NOTE = (
    "Comparisons, signs and rounding jump: where a number is about at the step, a runtime that computes "
    "in float32 may choose otherwise."
)


@dataclass(eq=False)
class Reading:
    """What the nodes of one graph share while it is read.

    Attributes:
        builder: Where operations go.
        opsets: Version of the operator set of each domain.
        types: Name of a tensor -> its element type, such as ``"tensor(float)"``, where it is known.
        folder: Where tensors stored outside the model may lie.
        notes: What had to be assumed.
        uses: How often each tensor is read.
        roots: Constants that are an initialiser with more than one entry, or made of one -> its name and
            size.
        grids: Constants that were integers in the file -> what those stand for, by their array's number.
        counted: Initialisers whose numbers some operation counts as parameters.
        expand: Carries out the nodes of a definition or a branch; see :meth:`Node.expand`.
    """

    builder: Builder
    opsets: dict[str, int]
    types: dict[str, str]
    folder: Path | None
    notes: list[str] = field(default_factory=list)
    uses: Counter[str] = field(default_factory=Counter)
    roots: dict[str, tuple[str, int]] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    grids: dict[int, tuple[NDArray[Any], Dequantize]] = field(default_factory=dict)
    shared: dict[Any, tuple[Operation, Any]] = field(default_factory=dict)
    expand: Callable[..., list[Value]] | None = None


class Node:
    """A node with its inputs' values.

    Attributes:
        op: The operation's name.
        opset: The version of the operator set the model was written for.
        inputs: The values, None where an optional input is left out.
        reading: What all nodes share.
    """

    def __init__(
        self,
        proto: Any,
        inputs: list[Value | None],
        reading: Reading,
        label: str = "",
        scope: Mapping[str, Value] | None = None,
    ) -> None:
        self.proto = proto
        self.scope = {} if scope is None else scope
        self.op = proto.op_type
        self.opset = reading.opsets.get("" if proto.domain == "ai.onnx" else proto.domain, 1)
        self.inputs = inputs
        self.reading = reading
        self.builder = reading.builder
        self.notes = reading.notes
        self.label = label
        self.n_outputs = len(proto.output)
        self._input_names = list(proto.input)
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}

    # ------------------------------------------------------------------ results

    def apply(self, operation: Operation, *values: Value) -> Value:
        """Add an operation to the graph, or carry it out at once where all its inputs are constant."""
        if any(isinstance(value, Tensor) for value in values):
            return self.builder.add(operation, *(self.as_tensor(value) for value in values))
        constants = [np.asarray(value) for value in values]
        shapes = [value.shape for value in constants]
        shape = operation.shape(*shapes)
        largest = max(value.size for value in constants)
        check_entries(*shape, what="the result", limit=max(largest, MAX_TENSOR_ENTRIES))
        if isinstance(operation, Move):
            return operation.move(constants[0], 0)
        if isinstance(operation, Concat):
            return np.concatenate(constants, operation.axis)
        check_multiplications(operation.multiply_adds(*shapes))
        made = operation(*(np.asarray(value, dtype=np.float64)[None] for value in constants))
        whole = all(value.dtype.kind in "iu" for value in constants)  # ONNX keeps integers integers
        return np.asarray(made[0]).reshape(shape).astype(np.int64 if whole else np.float64)

    def chain(self, value: Value, *operations: Operation) -> Value:
        """Apply operations of one tensor one after the other."""
        for operation in operations:
            value = self.apply(operation, value)
        return value

    def as_tensor(self, value: Value, trained: int = 0) -> Tensor:
        """Return a value as a tensor of the graph, also when it is constant."""
        if isinstance(value, Tensor):
            return value
        operation = Constant(np.asarray(value, dtype=np.float64), trained)
        return self.builder.add(operation, self.builder.input)

    def jumps(self) -> None:
        """Say that a step decides something."""
        if _JUMP_NOTE not in self.notes:
            self.notes.append(_JUMP_NOTE)

    def named(self, word: str) -> None:
        """Call what is added next by a word of the user's, not by the node's operation."""
        self.builder.place = f"{self.label.rpartition(' (')[0]} ({word})"

    def expand(
        self,
        nodes: Sequence[Any],
        values: dict[str, Value],
        wanted: Sequence[str],
        opsets: dict[str, int] | None,
    ) -> list[Value]:
        """Carry out other nodes in the place of this one, and return what they make.

        Args:
            nodes: The nodes, in an order in which they can be carried out.
            values: What they find there.
            wanted: The names of the results.
            opsets: Their operator sets, for a definition that is closed in itself; None for a branch,
                which also sees what is around it.
        """
        assert self.reading.expand is not None
        return self.reading.expand(self, nodes, values, wanted, opsets)

    def once(self, make: Callable[[], Operation], *facts: Any) -> Operation:
        """Return an operation that was made before from the same arrays and facts, or make it now.

        What two nodes share stays one operation, and its numbers are counted once.
        """
        key = tuple(id(fact) if isinstance(fact, np.ndarray) else fact for fact in facts)
        if key not in self.reading.shared:
            # The facts are kept, so that no other array gets the number of one.
            self.reading.shared[key] = make(), facts
        return self.reading.shared[key][0]

    def grid(self, values: NDArray[Any] | None, axis: int | None = None) -> Dequantize | None:
        """Return what the integers stand for that a constant was in the file, or None if it was none.

        Args:
            values: The constant.
            axis: Where the axis of its scales lies in the operation's weight.
        """
        found = self.reading.grids.get(id(values))
        if found is None or axis is None or found[1].axis is None:
            return None if found is None else found[1]
        return replace(found[1], axis=axis)

    def trained(self, i: int) -> int:
        """Return how many parameters come with constant ``i``: all of its initialiser, the first time.

        An initialiser of the file with more than one entry counts as trained: the file does not say
        which numbers were, and single ones mostly scale or shift.
        """
        root = self.reading.roots.get(self._input_names[i]) if i < len(self._input_names) else None
        value = self.inputs[i] if i < len(self.inputs) else None
        if root is None or root[0] in self.reading.counted or _is_mask(value):
            return 0
        self.reading.counted.add(root[0])
        return root[1]

    def used_once(self, i: int) -> bool:
        """Return whether this node alone reads input ``i``."""
        return self.reading.uses[self._input_names[i]] == 1

    # ------------------------------------------------------------------ inputs

    def given(self, i: int) -> bool:
        """Return whether input ``i`` is there."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def value(self, i: int) -> Value:
        """Return input ``i``, constant or not."""
        value = self.inputs[i] if i < len(self.inputs) else None
        if value is None:
            raise ModelFileError(f"{self.op} lacks its input {i + 1}.")
        return value

    def operand(self, i: int) -> Value:
        """Return input ``i`` for a calculation: a tensor, or finite constant numbers."""
        value = self.value(i)
        return value if isinstance(value, Tensor) else self._finite(i, value)

    def operands(self) -> list[Value]:
        """Return all inputs of an operation that takes any number of them."""
        values = [self.operand(i) for i in range(max(1, len(self.inputs)))]
        if (
            self.op in ("Max", "Min", "Sum", "Mean")
            and self.opset < 8
            and len({v.shape for v in values}) > 1
        ):
            raise ModelFileError(f"{self.op} repeats no entries before operator set 8.")
        return values

    def constant(self, i: int) -> NDArray[Any]:
        """Return input ``i``, which must not depend on the model's input."""
        value = self.value(i)
        if isinstance(value, Tensor):
            raise UnsupportedModelError(
                f"{self.op} needs a constant as its input {i + 1}; here it depends on the model's input."
            )
        return value

    def constants(self) -> list[NDArray[Any]]:
        """Return all inputs, which must not depend on the model's input."""
        return [self.constant(i) for i in range(len(self.inputs))]

    def weight(self, i: int) -> Array:
        """Return input ``i`` as finite constant numbers, read-only float64."""
        value = self.constant(i)
        return self._finite(i, value if value.dtype == np.float64 else frozen(value))

    def _finite(self, i: int, numbers: NDArray[Any]) -> NDArray[Any]:
        if is_finite(numbers):
            return numbers
        lowest = np.isneginf(numbers)
        if numbers.ndim > 1 and ((numbers == 0) | lowest).all():
            if _MASK_NOTE not in self.notes:
                self.notes.append(_MASK_NOTE)
            return np.where(lowest, MASKED, 0.0)
        bad = int(np.count_nonzero(~np.isfinite(numbers)))
        raise ModelFileError(
            f"tensor '{self._input_names[i]}' holds {bad:,} NaN or infinite numbers among "
            f"{numbers.size:,}; pindown reads finite weights only."
        )

    def type(self, i: int) -> str:
        """Return the element type of input ``i``, such as ``"uint8"``, or nothing if it is not known."""
        name = self._input_names[i] if i < len(self._input_names) else ""
        return self.reading.types.get(name, "").removeprefix("tensor(").removesuffix(")")

    def numbers(self, i: int, attribute: str) -> tuple[int, ...] | None:
        """Return integers that are an input in new operator sets and an attribute in old ones."""
        if not self.given(i):
            return self.integers(attribute)
        array = self.constant(i)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise ModelFileError(f"{self.op} needs a list of integers as its input {i + 1}.")
        return tuple(int(n) for n in array.ravel())

    def scalar(self, i: int, attribute: str, default: float) -> float:
        """Return one number that is an input in new operator sets and an attribute in old ones."""
        if not self.given(i):
            return self.real(attribute, default)
        array = self.constant(i)
        return float((array if array.shape == (1,) else self.single(i)).item())

    def single(self, i: int) -> NDArray[Any]:
        """Return input ``i``, a constant number without axes."""
        array = self.constant(i)
        if array.shape != ():
            raise ModelFileError(f"{self.op} needs one number as its input {i + 1}; got {array.shape}.")
        return array

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front."""
        if not -rank <= axis < rank:
            raise ModelFileError(f"axis {axis} does not exist in a tensor of rank {rank}.")
        return axis % rank

    # ------------------------------------------------------------------ attributes

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return int(self._attribute(name, "i", default))

    def flag(self, name: str, default: bool) -> bool:
        """Return an attribute that is 0 or 1; runtimes disagree on what else would mean."""
        number = self.integer(name, int(default))
        if number not in (0, 1):
            raise ModelFileError(f"the attribute '{name}' of {self.op} is 0 or 1; got {number}.")
        return bool(number)

    def real(self, name: str, default: float) -> float:
        """Return a float attribute."""
        return float(self._attribute(name, "f", default))

    def finite(self, name: str, default: float) -> float:
        """Return a float attribute that is a number."""
        found = self.real(name, default)
        if not np.isfinite(found):
            raise ModelFileError(f"the attribute '{name}' of {self.op} must be finite; got {found}.")
        return found

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        return _plain(self._attribute(name, "s", default))

    def texts(self, name: str) -> tuple[str, ...] | None:
        """Return an attribute that lists strings, or None."""
        found = self._attribute(name, "strings", None)
        return None if found is None else tuple(_plain(text) for text in found)

    @overload
    def integers(self, name: str) -> tuple[int, ...] | None: ...
    @overload
    def integers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]: ...
    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
        """Return an attribute that lists integers."""
        found = self._attribute(name, "ints", default)
        return None if found is None else tuple(found)

    def reals(self, name: str) -> tuple[float, ...] | None:
        """Return an attribute that lists floats, or None."""
        found = self._attribute(name, "floats", None)
        return None if found is None else tuple(found)

    def array(self, name: str) -> NDArray[Any] | None:
        """Return a tensor attribute, or None."""
        found = self._attribute(name, "t", None)
        return None if found is None else decode_tensor(found, self.reading.folder)

    def graph(self, name: str) -> Any:
        """Return a graph attribute."""
        return self._attribute(name, "g", None)

    def attributes(self) -> dict[str, Any]:
        """Return all attributes as they stand in the file."""
        return {name: helper.get_attribute_value(found) for name, found in self._attributes.items()}

    def has(self, name: str) -> bool:
        """Return whether the attribute is there, of whatever type."""
        return name in self._attributes

    def _attribute(self, name: str, field: str, default: Any) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        if attribute.type != _KINDS[field]:
            raise ModelFileError(f"attribute '{name}' of {self.op} has the wrong type.")
        return getattr(attribute, field)


def _is_mask(value: Value | None) -> bool:
    """Return whether numbers are zero or about minus infinity: they hide entries from a softmax."""
    return isinstance(value, np.ndarray) and bool(
        ((value == 0) | (value <= _HIDDEN)).all() and value.any()
    )


def _plain(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


Rule: TypeAlias = Callable[[Node], Value | Sequence[Value | None]]
