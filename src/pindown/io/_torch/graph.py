"""What the rules for torch operations work with: a graph in the making, constants, and trained numbers.

A value on the way is a :class:`~pindown.model.builder.Tensor` if it depends on the input, a
``torch.Tensor`` in float64 (or of integers) if it does not, or a plain Python value such as a size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model.builder import Builder, Tensor
from pindown.model.operations.moves import Constant, Reshape, Transpose
from pindown.model.operations.operation import Operation, Shape, frozen

Rule: TypeAlias = Callable[..., Any]

# What is added to an attention score where a mask says minus infinity: exp(-1e6) is zero in float64.
_MASKED = -1e6
_MASK_NOTE = (
    "Scores of -infinity, as attention masks hold them, are read as -1e6: the same to float64, as long "
    "as scores differ by less."
)


def array(tensor: Any) -> Array:
    """Return a constant as a read-only float64 array of its own."""
    if not isinstance(tensor, torch.Tensor):
        return frozen(tensor)
    if tensor.is_complex():
        raise UnsupportedModelError("it holds complex numbers; pindown reads real ones.")
    values: Array = tensor.detach().to("cpu", torch.float64, copy=True).contiguous().numpy()
    values.flags.writeable = False  # so that operations need no copy of their own
    return values


class Graph:
    """A model in the making.

    Args:
        input_shape: The shape of one input, without the batch.
        modules: A rule for every class of modules that is read.

    Attributes:
        notes: What had to be assumed.
        trained: How many trained numbers are among the constants of the operation that is read now and
            were not counted yet; an operation that does not count its own numbers takes them.
        counted: Trained tensors that some operation counts already, by identity.
    """

    def __init__(self, input_shape: Sequence[int], modules: dict[type, Rule]) -> None:
        self.builder = Builder((1, *input_shape))
        self.modules = modules
        self.notes: dict[str, None] = {}
        self.trained = 0
        self._path = ""
        self._made: dict[Any, tuple[Operation, Any]] = {}

    @property
    def input(self) -> Tensor:
        """The model's input."""
        return self.builder.input

    def add(self, operation: Operation, *inputs: Any) -> Tensor:
        """Add an operation; constants among its inputs become tensors."""
        return self.builder.add(operation, *map(self.tensor, inputs))

    def once(self, kind: str, make: Callable[[], Operation], *constants: Any) -> Operation:
        """Return the operation that was made of these constants before (it counts once), or make it."""
        parts = [(id(c), c._version) if isinstance(c, torch.Tensor) else c for c in constants]
        key = (kind, *parts)
        if key not in self._made:
            # The constants live on, so that no other gets their id.
            self._made[key] = make(), constants
        return self._made[key][0]

    def take_trained(self) -> int:
        """Return how many trained numbers the next operation counts."""
        count, self.trained = self.trained, 0
        return count

    def tensor(self, value: Any) -> Tensor:
        """Return a value as a tensor of the graph."""
        if isinstance(value, Tensor):
            return value
        return self.builder.add(Constant(self.finite(value), self.take_trained()), self.input)

    def finite(self, value: Any) -> Array:
        """Return a constant in which a mask's minus infinity is a large negative number."""
        values = array(value)
        masked = values == -math.inf
        if masked.any():
            self.notes[_MASK_NOTE] = None
            values = values.copy()
            values[masked] = _MASKED
        return values

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Give a tensor another shape of as many entries."""
        to = tuple(int(n) for n in shape)
        if math.prod(to) != math.prod(x.shape):
            raise UnsupportedModelError(f"a tensor of shape {x.shape} cannot take shape {to}.")
        return x if to == x.shape else self.add(Reshape(to), x)

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Put the axes in another order."""
        axes = tuple(axis_of(x.shape, axis) for axis in order)
        if sorted(axes) != list(range(len(x.shape))):
            raise UnsupportedModelError(f"{tuple(order)} is no order of the axes of shape {x.shape}.")
        return x if list(axes) == sorted(axes) else self.add(Transpose(axes), x)

    def call(self, part: Any, name: str, *inputs: Any, **options: Any) -> Any:
        """Apply the rule of a module that is part of the one that is read."""
        with self.inside(f"{self._path}.{name}" if self._path else name, part):
            return rule_of(self.modules, part)(self, part, *inputs, **options)

    @contextmanager
    def inside(self, path: str, part: Any) -> Iterator[None]:
        """Name the module that is read, in messages and in the model."""
        before = self._path, self.builder.place
        self._path, self.builder.place = path, describe_module(path, part)
        try:
            yield
        finally:
            self._path, self.builder.place = before


def describe_module(path: str, part: Any) -> str:
    """Return how a module is called in messages.

    >>> describe_module("features.3", torch.nn.SiLU())
    "module 'features.3' (SiLU)"
    """
    # The prefix is that of what attention projects with.
    name = kind_of(part).__name__.removeprefix("NonDynamicallyQuantizable")
    return f"module {path!r} ({name})" if path else f"the module ({name})"


def kind_of(part: Any) -> type:
    """Return the class of a module; a parametrised one (weight norm, ...) is what it was before."""
    if torch.nn.utils.parametrize.is_parametrized(part):
        return type(part).__mro__[1]
    return type(part)


def rule_of(rules: dict[type, Rule], part: Any) -> Rule:
    """Return the rule of a module, or refuse it."""
    kind = kind_of(part)
    if kind not in rules:
        raise UnsupportedModelError(no_rule(kind.__name__))
    return rules[kind]


def no_rule(name: str) -> str:
    """Say that something is not read, and what to do."""
    return (
        f"pindown has no rule for {name}; write it with more common operations, or read the part of the "
        "model without it."
    )


def axis_of(shape: Shape, axis: int) -> int:
    """Return an axis counted from the front.

    >>> axis_of((2, 3, 4), -1)
    2
    """
    rank = len(shape)
    if not -rank <= axis < rank:
        raise UnsupportedModelError(f"there is no axis {axis} in a tensor of shape {shape}.")
    return int(axis) % rank


def axes_of(shape: Shape, axes: Any) -> tuple[int, ...]:
    """Return one, several or (None) all axes, counted from the front."""
    if axes is None or axes in ((), []):
        return tuple(range(len(shape)))
    return tuple(axis_of(shape, axis) for axis in (axes if isinstance(axes, list | tuple) else [axes]))


def several(value: Any, rank: int) -> tuple[int, ...]:
    """Return one integer for each spatial axis."""
    if isinstance(value, int):
        return (value,) * rank
    values = tuple(int(v) for v in value)
    return values * rank if len(values) == 1 else values
