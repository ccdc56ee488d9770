"""One node of an ONNX graph, as the operations see it: its attributes and its inputs' values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._expression import Expression, constant
from pindown.io._lowering import Lowering
from pindown.io._onnx_tensors import decode_tensor

Value: TypeAlias = Expression | NDArray[Any]  # what depends on the input, and what is constant

_KINDS = {"f": 1, "i": 2, "s": 3, "t": 4, "floats": 6, "ints": 7}  # AttributeProto.AttributeType


class Node:
    """A node with its inputs' values.

    Attributes:
        op: The operation's name.
        opset: The version of the operator set the model was written for.
        inputs: The values, None where an optional input is left out.
        lowering: Where operations make ReLUs.
        notes: Where operations say what they assumed.
    """

    def __init__(
        self,
        proto: Any,
        inputs: list[Value | None],
        *,
        opset: int,
        lowering: Lowering,
        notes: list[str],
        folder: Path | None,
    ) -> None:
        self.op = proto.op_type
        self.opset = opset
        self.inputs = inputs
        self.lowering = lowering
        self.notes = notes
        self.n_outputs = len(proto.output)
        self._input_names = list(proto.input)
        self._attributes = {attribute.name: attribute for attribute in proto.attribute}
        self._folder = folder

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
        if not isinstance(value, Expression):
            self._require_finite(i, value)
        return value

    def operands(self) -> list[Value]:
        """Return all inputs of an operation that takes any number of them."""
        values = [self.operand(i) for i in range(max(1, len(self.inputs)))]
        if self.op in ("Max", "Min", "Sum") and self.opset < 8 and len({v.shape for v in values}) > 1:
            raise ModelFileError(f"{self.op} repeats no entries before operator set 8.")
        return values

    def tensor(self, i: int) -> Expression:
        """Return input ``i`` as an expression, also when it is constant."""
        value = self.value(i)
        return value if isinstance(value, Expression) else constant(self.weight(i))

    def constant(self, i: int) -> NDArray[Any]:
        """Return input ``i``, which must not depend on the network's input."""
        value = self.value(i)
        if isinstance(value, Expression):
            raise UnsupportedModelError(
                f"{self.op} needs a constant as its input {i + 1}; here it depends on the model's input."
            )
        return value

    def weight(self, i: int) -> Array:
        """Return input ``i`` as finite constant numbers."""
        numbers = np.asarray(self.constant(i), dtype=np.float64)
        self._require_finite(i, numbers)
        return numbers

    def _require_finite(self, i: int, numbers: NDArray[Any]) -> None:
        if not is_finite(numbers):
            bad = int(np.count_nonzero(~np.isfinite(numbers)))
            raise ModelFileError(
                f"tensor '{self._input_names[i]}' holds {bad:,} NaN or infinite numbers among "
                f"{numbers.size:,}; pindown reads finite weights only."
            )

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

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        found = self._attribute(name, "s", default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

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
        return None if found is None else decode_tensor(found, self._folder)

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
