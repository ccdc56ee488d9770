r"""One step of a model, and everything that is asked of it.

A tensor is an array (n, \*shape): n inputs side by side, each with the literal shape that the model's
author wrote, which mostly begins with a batch axis of length one. An operation maps such tensors to one
such tensor, every one of the n alone. It knows

- its value (``__call__``), also in rational arithmetic where it is piecewise linear;
- what its value can be when its inputs lie in boxes (:meth:`Operation.interval`), rounded outwards;
- linear functions of its inputs between which it stays on those boxes (:meth:`Operation.relaxation`);
- how a linear form of its output looks in its inputs, to first order (:meth:`Operation.pull_back`);
- how many numbers it holds and multiplies, how it is written with ReLUs, and how as ONNX.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, is_finite
from pindown.errors import UnsupportedModelError
from pindown.rounding import TINY, add_up, gamma

if TYPE_CHECKING:
    from pindown.model._expression import Expression
    from pindown.model._lowering import Lowering

Numbers: TypeAlias = NDArray[Any]  # float64, or objects of type Fraction
Shape: TypeAlias = tuple[int, ...]


class Interval(NamedTuple):
    """Entry-wise bounds ``lower <= z <= upper``; infinite where float64 cannot hold them."""

    lower: Array
    upper: Array

    @property
    def reach(self) -> Array:
        """The largest absolute value that each entry can have."""
        return np.maximum(np.abs(self.lower), np.abs(self.upper))


class NotPiecewiseLinearError(UnsupportedModelError):
    """An operation cannot be written with ReLUs."""


class Writer(ABC):
    """Where operations write themselves as ONNX."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The file's float type: ``"float16"``, ``"float32"`` or ``"float64"``."""

    @abstractmethod
    def node(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        domain: str = "",
        makes: str = "",
        part: tuple[int, int] = (0, 1),
        since: int = 0,
        **attributes: Any,
    ) -> str:
        """Add a node, and return its output's name.

        Args:
            kind: ONNX's name of the operation.
            inputs: Names of tensors.
            domain: Domain of the operation.
            makes: The type of what it makes, such as ``"int8"``; that of its first input if left out.
            part: Which output to return, and how many there are; such a node is added once.
            since: The operator set that has it for these types, if that is later than for others.
            attributes: Attributes of the node.
        """

    @abstractmethod
    def weight(self, values: Array, name: str = "weight") -> str:
        """Add numbers in the file's float type, and return their name."""

    @abstractmethod
    def integers(self, values: ArrayLike, kind: str = "int64") -> str:
        """Add integers of a type such as ``"int8"``, and return their name."""

    @abstractmethod
    def shape(self, shape: Sequence[int]) -> str:
        """Add a literal shape, as Reshape takes it; an open batch axis stays open."""

    @abstractmethod
    def shape_of(self, tensor: str) -> Shape:
        """Return the literal shape of a tensor that was written."""

    @abstractmethod
    def kind_of(self, tensor: str) -> str:
        """Return the type of a tensor that was written: ``"float32"``, ``"uint8"``, ..."""


class Operation(ABC):
    """A function of one or more tensors, applied to n inputs side by side."""

    @property
    def name(self) -> str:
        """What users call it."""
        return type(self).__name__

    @abstractmethod
    def shape(self, *shapes: Shape) -> Shape:
        """Return the literal shape of the result, or raise ValueError if the inputs' do not fit."""

    @abstractmethod
    def __call__(self, *inputs: Numbers) -> Numbers:
        """Return the value at n inputs, each tensor ``(n, *shape)``."""

    @abstractmethod
    def interval(self, *boxes: Interval) -> Interval:
        """Return proved bounds on the value where the inputs lie in these boxes."""

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Return linear functions that bound the value on these boxes, at worst constant ones."""
        return ConstantBounds(self.interval(*boxes), tuple(box.lower.shape[1:] for box in boxes))

    def narrowed(self, value: Interval, *boxes: Interval) -> tuple[Interval, ...]:
        """Return where in these boxes the inputs can lie if the value lies in ``value``.

        Rounded outwards, so no input is lost that has such a value; a lower end above its upper one
        says that there is none. The boxes themselves if nothing is concluded.
        """
        return boxes

    @abstractmethod
    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Return the forms ``form . D_i f(inputs)``, one ``(n, *shape)`` for each input.

        At a kink the derivative is one of those beside it; of a step it is zero.
        """

    @property
    def n_parameters(self) -> int:
        """Trained numbers, as frameworks count them."""
        return 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that its numbers take."""
        return sum(v.nbytes for v in vars(self).values() if isinstance(v, np.ndarray))

    def multiply_adds(self, *shapes: Shape) -> int:
        """Multiplications with weights, and of matrices, that one input costs, as frameworks count.

        Norms, scalings, activations and products entry by entry count nothing.
        """
        return 0

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Write the operation with affine maps and ReLUs."""
        raise NotPiecewiseLinearError(f"{self.name} is not piecewise linear")

    def as_output_activation(self, shape: Shape) -> str | None:
        """Return ``"softmax"``, ``"log_softmax"`` or ``"sigmoid"`` if it is that, over a tensor."""
        return None

    @abstractmethod
    def write(self, writer: Writer, *inputs: str) -> str:
        """Write the operation as ONNX, and return the name of its output."""


class Pulled(NamedTuple):
    """Linear forms of an operation's inputs that bound a form of its output from above.

    Attributes:
        forms: One for each input, ``(n, q, *shape)``.
        offset: (n, q), with what rounding can do; infinite where nothing is known.
    """

    forms: tuple[Array, ...]
    offset: Array


class Relaxation(ABC):
    """An operation between linear functions of its inputs, on n boxes, or on one for all forms."""

    @abstractmethod
    def upper(self, form: Array) -> Pulled:
        """Bound ``form . y`` from above, for a form ``(n, q, *shape)``.

        On the boxes it is at most the sum of ``forms[i] . x_i`` and ``offset``, for the real-number
        operation and the forms as they stand.
        """

    def estimate(self, form: Array) -> Pulled:
        """Return what :meth:`upper` does but for rounding: quicker, to search with."""
        return self.upper(form)

    def single(self) -> Relaxation:
        """Return a copy that estimates in float32, about twice as quick, or itself if it has none."""
        return self

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Return the linear functions that :meth:`upper` takes for a form, at points ``(n, q, *shape)``.

        None where they are not known one by one.
        """
        return None


class Adjustable(Relaxation):
    """Linear functions with numbers that may be chosen anew for every form: any in [0, 1] will do."""

    @abstractmethod
    def slopes(self, n: int, q: int) -> Array | None:
        """Return the numbers that :meth:`upper` takes, ``(n, q, ...)``; None if there is no choice."""

    @abstractmethod
    def with_slopes(self, slopes: Array) -> Relaxation:
        """Return the same with other numbers, cut to [0, 1]."""

    @abstractmethod
    def slope_gradient(self, form: Array, *points: Array) -> Array:
        """Return how fast the bound of a form grows in each number, at points ``(n, q, *shape)``."""


@dataclass(frozen=True, eq=False)
class ConstantBounds(Relaxation):
    """The interval of an operation, as functions with slope zero."""

    values: Interval
    shapes: tuple[Shape, ...]

    def upper(self, form: Array) -> Pulled:
        """Put every entry at its worse end."""
        n, q = form.shape[:2]
        forms = tuple(np.zeros((n, q, *shape)) for shape in self.shapes)
        return Pulled(forms, dot_up(form, self.values))

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Return the worse ends."""
        return np.where(form > 0, self.values.upper[:, None], self.values.lower[:, None])


@dataclass(frozen=True, eq=False)
class EntrywiseLines(Relaxation):
    """Entry by entry ``sum_i a_i x_i + b <= y <= sum_i s_i x_i + t``, inputs broadcast to the output.

    Attributes:
        lower: The slopes ``a_i``, each ``(n, *output shape)``.
        below: The offset ``b``.
        upper_slopes: The slopes ``s_i``.
        above: The offset ``t``.
        boxes: Where the inputs lie.
    """

    lower: tuple[Array, ...]
    below: Array
    upper_slopes: tuple[Array, ...]
    above: Array
    boxes: tuple[Interval, ...]

    def upper(self, form: Array) -> Pulled:
        """Take the upper line where the coefficient is positive, the lower one where it is negative."""
        positive, negative = np.maximum(form, 0.0), np.minimum(form, 0.0)
        rank = form.ndim - 2
        forms, slack = [], np.zeros(form.shape[:2])
        with np.errstate(over="ignore", invalid="ignore"):
            for a, s, box in zip(self.lower, self.upper_slopes, self.boxes, strict=True):
                entries = positive * s[:, None] + negative * a[:, None]
                shape = box.lower.shape[1:]
                forms.append(_summed(entries, shape))
                reach = np.broadcast_to(
                    box.reach.reshape(-1, *(1,) * (rank - len(shape)), *shape), s.shape
                )
                slack += dot(np.abs(entries), reach)
                # What underflow can take: TINY of each.
                finite = np.where(np.isfinite(reach), reach, 0.0)
                slack += (2.0**60 * TINY * finite.reshape(len(finite), -1).sum(axis=1))[:, None]
            offset = dot(positive, self.above) + dot(negative, self.below)
            slack += dot(positive, np.abs(self.above)) - dot(negative, np.abs(self.below))
        return Pulled(tuple(forms), charged(offset, slack, form[0, 0].size))

    def estimate(self, form: Array) -> Pulled:
        """Take the same lines, without what rounding can do."""
        positive, negative = np.maximum(form, 0.0), np.minimum(form, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            forms = tuple(
                _summed(positive * s[:, None] + negative * a[:, None], box.lower.shape[1:])
                for a, s, box in zip(self.lower, self.upper_slopes, self.boxes, strict=True)
            )
            return Pulled(forms, dot(positive, self.above) + dot(negative, self.below))

    def forward(self, form: Array, *points: Array) -> Array | None:
        """Evaluate the upper line where the coefficient is positive, else the lower one."""
        up, total = form > 0, np.where(form > 0, self.above[:, None], self.below[:, None])
        for a, s, x in zip(self.lower, self.upper_slopes, points, strict=True):
            wide = x.reshape(*x.shape[:2], *(1,) * (form.ndim - x.ndim), *x.shape[2:])
            total = total + np.where(up, s[:, None], a[:, None]) * wide
        return total

    def single(self) -> EntrywiseLines:
        """Round the lines to float32."""
        lower, upper = (tuple(map(in_float32, s)) for s in (self.lower, self.upper_slopes))
        return EntrywiseLines(lower, in_float32(self.below), upper, in_float32(self.above), self.boxes)


def in_float32(values: Array) -> Array:
    """Return numbers rounded to float32, to estimate with; views that repeat a number stay views."""
    with np.errstate(all="ignore"):
        if values.size and not any(values.strides):
            return np.broadcast_to(values.ravel()[0].astype(np.float32), values.shape)
        return values.astype(np.float32)


def charged(offset: Array, terms: Array, n: int) -> Array:
    """Add to an offset what rounding can do to sums of n products of absolute sum ``terms``."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = add_up(offset, 2.0 * gamma(n + 16) * terms + TINY * (n + 16))
    return np.where(np.isfinite(total), total, np.inf)


def dot_up(form: Array, box: Interval) -> Array:
    """Return an upper bound on ``form . y`` over a box, (n, q) for a form ``(n, q, *shape)``.

    >>> box = Interval(np.array([[1.0, -2.0]]), np.array([[3.0, 5.0]]))
    >>> dot_up(np.array([[[1.0, -1.0]]]), box).round(9)
    array([[5.]])
    """
    positive, negative = np.maximum(form, 0.0), np.minimum(form, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        value = dot(positive, box.upper) + dot(negative, box.lower)
        terms = dot(positive, np.abs(box.upper)) - dot(negative, np.abs(box.lower))
    return charged(value, terms, form[0, 0].size)


def dot(form: Array, values: Array) -> Array:
    """Return ``form[i, r] . values[i]``, (n, q), values of one tensor stand for all i.

    Zero times infinity is zero.
    """
    n, q = form.shape[:2]
    if not is_finite(values):
        values = np.where(np.isfinite(values), values, 0.0) if not form.any() else values
        return np.asarray(np.where(form == 0, 0.0, form * values[:, None]).reshape(n, q, -1).sum(axis=2))
    return np.asarray(np.matmul(form.reshape(n, q, -1), values.reshape(len(values), -1, 1))[:, :, 0])


def _summed(entries: Array, shape: Shape) -> Array:
    """Sum ``(n, q, *broadcast shape)`` over the axes along which a tensor of ``shape`` was repeated."""
    while entries.ndim - 2 > len(shape):
        entries = entries.sum(axis=2)
    for axis, length in enumerate(shape, 2):
        if length == 1 and entries.shape[axis] != 1:
            entries = entries.sum(axis=axis, keepdims=True)
    return entries


def applied(operation: Operation, *points: Array) -> Array:
    """Return the value of an operation at points ``(n, q, *shape)``."""
    n, q = points[0].shape[:2]
    value = operation(*(x.reshape(n * q, *x.shape[2:]) for x in points))
    return np.asarray(value).reshape(n, q, *value.shape[1:])


def unbroadcast(form: Array, shape: Shape) -> Array:
    """Sum a form ``(n, *broadcast shape)`` over the axes along which a tensor of ``shape`` was repeated.

    >>> unbroadcast(np.ones((1, 2, 3)), (3,))
    array([[2., 2., 2.]])
    """
    return np.asarray(_summed(form[:, None], shape)[:, 0])


def aligned(values: Numbers, rank: int) -> Numbers:
    """Insert axes after the first, so that a tensor of lower rank broadcasts against one of ``rank``."""
    missing = rank - (values.ndim - 1)
    return values.reshape(len(values), *(1,) * missing, *values.shape[1:]) if missing > 0 else values


def as_fractions(values: Numbers) -> Numbers:
    """Return float numbers as an object array of the rationals they are."""
    flat = [Fraction(float(v)) for v in values.ravel()]
    made = np.empty(len(flat), dtype=object)
    made[:] = flat
    return made.reshape(values.shape)


def matched(weight: Array, x: Numbers) -> Numbers:
    """Return an operation's numbers as x has them: rational where x is, else as they are."""
    return as_fractions(weight) if x.dtype == object else weight


def frozen(values: ArrayLike) -> Array:
    """Return numbers as a read-only float64 array."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and not values.flags.writeable:
        return values
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
