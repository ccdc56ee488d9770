"""The networks that a VNN-LIB file declares: their inputs and outputs, by number.

Version 1.0 declares single variables, ``X_0, X_1, ...`` and ``Y_0, Y_1, ...``; version 2.0 declares
networks with an input and an output tensor each. Input i of all networks together is the variable i,
output j is ``~j``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple, NoReturn

from pindown.errors import PropertyFileError
from pindown.text import printable

_VARIABLE = re.compile(r"([XY])_([0-9]{1,9})")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WITH_INDICES = re.compile(r"([^\s\[]+)\s*((?:\[[^\[\]]*\]\s*)*)")
_INDEX = re.compile(r"\s*([0-9]{1,9})\s*")
_VERSION = re.compile(r"<?([0-9]+)\.[0-9]+>?")
_TYPES = ("real", "float", "double", "float16", "float32", "float64", "bfloat16")

MAX_FEATURES = 1_000_000  # inputs or outputs of one network
_MAX_NETWORKS = 100
_SHOWN = 40  # characters of what a message quotes


class Tensor(NamedTuple):
    """A declared tensor.

    Attributes:
        start: The number of its first entry, among all inputs or all outputs.
        shape: Its shape.
        is_output: Whether it is an output.
    """

    start: int
    shape: tuple[int, ...]
    is_output: bool

    @property
    def size(self) -> int:
        """How many entries it has."""
        return prod(self.shape)


class Network(NamedTuple):
    """A declared network.

    Attributes:
        name: What the file calls it.
        inputs: Its input.
        outputs: Its output.
        model: Which of the models it is that the property is about.
        follows: Whether it is declared equal or isomorphic to another one.
    """

    name: str
    inputs: Tensor
    outputs: Tensor
    model: int
    follows: bool


class Networks:
    """What is declared so far.

    Attributes:
        declared: The networks.

    Example:
        >>> networks = Networks()
        >>> for name in ("X_0", "X_1", "Y_0"):
        ...     networks.declare_variable(name, "Real")
        >>> networks.variable("X_1"), networks.variable("Y_0")
        (1, -1)
        >>> networks.finished()[0].inputs.shape
        (2,)
    """

    def __init__(self) -> None:
        self.declared: list[Network] = []
        self._variables: dict[str, int] = {}
        self._tensors: dict[str, Tensor] = {}

    def declare_version(self, operands: Sequence[Any]) -> None:
        """Check the version of the format."""
        text = operands[0] if len(operands) == 1 and isinstance(operands[0], str) else ""
        found = _VERSION.fullmatch(text)
        if found is None or found[1] not in ("1", "2"):
            _refuse(f"the version must be 1.x or 2.x, written as <2.0>; got {quoted(text)}.")

    def declare_variable(self, name: str, kind: str) -> None:
        """Declare a variable of version 1.0."""
        if self.declared:
            _refuse("single variables and networks are not declared in one file.")
        if _VARIABLE.fullmatch(name) is None:
            _refuse(f"a variable is called X_0, X_1, ... or Y_0, Y_1, ...; got {quoted(name)}.")
        if kind.lower() not in _TYPES:
            _refuse(f"{quoted(name)} must be Real; got {quoted(kind)}.")
        letter, digits = name.split("_")
        number = int(digits) if letter == "X" else ~int(digits)
        if name in self._variables or f"{letter}_{int(digits)}" != name:
            _refuse(f"{quoted(name)} is declared twice, or with a number that begins with 0.")
        self._variables[name] = number

    def declare_network(self, operands: Sequence[Any]) -> None:
        """Declare a network of version 2.0: its name, and ``(keyword, ...)`` for each of its parts."""
        if self._variables:
            _refuse("single variables and networks are not declared in one file.")
        if not operands or not isinstance(operands[0], str) or not _NAME.fullmatch(operands[0]):
            _refuse("declare-network takes the name of the network first.")
        name, parts = operands[0], operands[1:]
        if name in self._tensors or any(name == each.name for each in self.declared):
            _refuse(f"the name {quoted(name)} is taken.")
        if len(self.declared) >= _MAX_NETWORKS:
            _refuse(f"a property is about {_MAX_NETWORKS} networks at most.")
        found: dict[str, tuple[Any, ...]] = {}
        for part in parts:
            if not isinstance(part, tuple) or not part:
                _refuse(f"network {quoted(name)} takes declare-input and declare-output.")
            if part[0] == "declare-hidden":
                _refuse(
                    f"network {quoted(name)} declares a hidden tensor; only inputs and outputs are read."
                )
            kind = "follows" if part[0] in ("isomorphic-to", "equal-to") else part[0]
            if kind in found:
                _refuse(f"network {quoted(name)} has {part[0]} twice; it may have one.")
            found[kind] = part
        if not {"declare-input", "declare-output"} <= found.keys():
            _refuse(f"network {quoted(name)} must declare one input and one output.")
        inputs, outputs = (self._tensor(found[kind]) for kind in ("declare-input", "declare-output"))
        model = 1 + max((each.model for each in self.declared), default=-1)
        if "follows" in found:
            model = self._followed(name, found["follows"], inputs, outputs, model)
        self.declared.append(Network(name, inputs, outputs, model, "follows" in found))

    def _tensor(self, part: tuple[Any, ...]) -> Tensor:
        """Return the tensor of ``(declare-input, name, "type [shape]")``."""
        if len(part) != 3 or not all(isinstance(each, str) for each in part):
            _refuse(
                f"{part[0]} takes a name, a type and a shape, such as (declare-input X real [1, 5])."
            )
        keyword, name, kind = part
        taken = name in self._tensors or any(name == each.name for each in self.declared)
        if _NAME.fullmatch(name) is None or taken:
            _refuse(f"the name {quoted(name)} is taken, or is none.")
        element, shape = _with_indices(kind)
        if element.lower() not in _TYPES or shape is None:
            _refuse(f"{quoted(name)} needs a type of real numbers and a shape; got {quoted(kind)}.")
        size = prod(shape)
        if not 1 <= size <= MAX_FEATURES:
            _refuse(f"{quoted(name)} has {size:,} entries; the limits are 1 and {MAX_FEATURES:,}.")
        is_output = keyword == "declare-output"
        before = (each.outputs.size if is_output else each.inputs.size for each in self.declared)
        self._tensors[name] = Tensor(sum(before), shape, is_output)
        return self._tensors[name]

    def _followed(
        self, name: str, part: tuple[Any, ...], inputs: Tensor, outputs: Tensor, model: int
    ) -> int:
        """Return which model a network is that is equal or isomorphic to another one."""
        others = [each for each in self.declared if part[1:] == (each.name,)]
        if not others or others[0].follows:
            _refuse(f"{part[0]} of network {quoted(name)} must name an earlier network that has none.")
        if (others[0].inputs.shape, others[0].outputs.shape) != (inputs.shape, outputs.shape):
            _refuse(f"networks {quoted(others[0].name)} and {quoted(name)} must have the same shapes.")
        return others[0].model if part[0] == "equal-to" else model

    def variable(self, token: str) -> int:
        """Return the number of a variable, such as ``X_3`` or ``X_f[0, 3]``."""
        if token in self._variables:
            return self._variables[token]
        name, index = _with_indices(token)
        tensor = self._tensors.get(name)
        if tensor is None:
            _refuse(f"{quoted(token)} is no number and no variable that was declared.")
        index = index or ()
        if len(index) != len(tensor.shape):
            _refuse(f"{quoted(token)} has {len(index)} indices; {name} has {len(tensor.shape)}.")
        flat = 0
        for i, n in zip(index, tensor.shape, strict=True):
            if i >= n:
                _refuse(f"{quoted(token)} is outside of the shape {list(tensor.shape)}.")
            flat = flat * n + i
        return ~(tensor.start + flat) if tensor.is_output else tensor.start + flat

    def finished(self) -> list[Network]:
        """Return the networks, when everything is declared; single variables are one network.

        Raises:
            PropertyFileError: If there is none, or a number is left out.
        """
        if self._variables:
            sizes = []
            for letter in "XY":
                numbers = {int(name[2:]) for name in self._variables if name[0] == letter}
                missing = next((i for i in range(len(numbers)) if i not in numbers), None)
                if missing is not None or not numbers:
                    _refuse(f"{letter}_{missing or 0} is not declared.")
                sizes.append(len(numbers))
            inputs, outputs = Tensor(0, (sizes[0],), False), Tensor(0, (sizes[1],), True)
            return [Network("", inputs, outputs, 0, False)]
        if not self.declared:
            _refuse("the file declares no network and no variables.")
        return self.declared

    def input_name(self, number: int) -> str:
        """Return what the file calls an input."""
        for name, tensor in self._tensors.items():
            place = number - tensor.start
            if not tensor.is_output and 0 <= place < tensor.size:
                index = []
                for n in reversed(tensor.shape):
                    place, i = divmod(place, n)
                    index.append(str(i))
                return f"{name}[{','.join(reversed(index))}]"
        return f"X_{number}"


def quoted(text: str) -> str:
    """Return a word of the file as a message quotes it."""
    shown = printable(text)
    return repr(shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}...")


def _with_indices(token: str) -> tuple[str, tuple[int, ...] | None]:
    """Return a word and its indices, ``X[0, 3]`` or ``X[0][3]``; None if it has no brackets."""
    found = _WITH_INDICES.fullmatch(token)
    if found is None:
        _refuse(f"{quoted(token)} cannot be read.")
    if not found[2]:
        return found[1], None
    inside = ",".join(part for part in re.findall(r"\[([^\[\]]*)\]", found[2]) if part.strip())
    index = [_INDEX.fullmatch(part) for part in inside.split(",")] if inside else []
    if len(index) > 32 or not all(index):
        _refuse(f"the indices of {quoted(token)} must be numbers, such as [0, 3].")
    return found[1], tuple(int(part[1]) for part in index if part)


def _refuse(message: str) -> NoReturn:
    raise PropertyFileError(message)
