r"""Average and max pooling over sliding windows, in any number of spatial dimensions.

Tensors are (batch, channels, \*spatial). A sum or a maximum over a window is taken one axis after the
other. In ceil mode the last window may reach beyond the image and its padding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model._expression import Expression
from pindown.model._lowering import Lowering
from pindown.model.operations._images import overlap
from pindown.model.operations.affine_operation import AffineOperation, Nothing
from pindown.model.operations.operation import (
    Interval,
    Numbers,
    Operation,
    Pulled,
    Relaxation,
    Shape,
    Writer,
    charged,
    dot,
)
from pindown.model.operations.windows import Window

_State: TypeAlias = Sequence[Numbers]


@dataclass(frozen=True, eq=False)
class AveragePool(AffineOperation):
    """The mean over a sliding window.

    Attributes:
        window: How the window slides.
        count_padding: Whether the zeros around the image count; what lies beyond them never does.

    Example:
        >>> window = Window(kernel=(2,), strides=(2,), before=(1,), after=(0,), dilations=(1,))
        >>> AveragePool(window)(np.array([[[[4.0, 1.0, 3.0]]]]))
        array([[[[4., 2.]]]])
        >>> AveragePool(window, count_padding=True)(np.array([[[[4.0, 1.0, 3.0]]]]))
        array([[[[2., 2.]]]])
    """

    window: Window
    count_padding: bool = False

    @property
    def name(self) -> str:
        """What torch calls it."""
        return f"AvgPool{len(self.window.kernel)}d"

    def shape(self, *shapes: Shape) -> Shape:
        """Count the windows."""
        made = _pooled_shape(self.name, self.window, shapes[0])
        if not all(self._counts(axis, size).all() for axis, size in enumerate(shapes[0][2:])):
            raise UnsupportedModelError(f"{self.name} has a window that lies wholly in the padding.")
        return made

    def _counts(self, axis: int, size: int) -> NDArray[np.int64]:
        """Return by how many entries the sum of each window is divided, along one axis."""
        window = self.window.axis(axis)
        length = window.output_size(size, 0)
        if not self.count_padding:
            return _along(np.ones(size, dtype=np.int64), 0, window, length, np.add, 0)
        size += window.before[0] + window.after[0]
        bare = Window(window.kernel, window.strides, (0,), (0,), window.dilations)
        return _along(np.ones(size, dtype=np.int64), 0, bare, length, np.add, 0)

    def _divisor(self, spatial: Shape) -> NDArray[np.int64]:
        """Return by how many entries the sum of each window is divided."""
        total = np.ones((), dtype=np.int64)
        for axis, size in enumerate(spatial):
            total = total[..., None] * self._counts(axis, size)
        return total

    def linear(self, x: Numbers) -> Numbers:
        """Sum along each axis, and divide."""
        y = _along_axes(x, self.window, np.add, 0)
        divisor = self._divisor(x.shape[3:])
        if y.dtype == object:
            shares = [Fraction(1, n) for n in divisor.ravel().tolist()]
            return y * np.array(shares, dtype=object).reshape(divisor.shape)
        y /= divisor
        return y

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Hand every entry of a window its share."""
        back = form / self._divisor(shape[2:]).astype(form.dtype)
        for axis, size in enumerate(shape[2:]):
            back = _along_back(back, 3 + axis, self.window.axis(axis), size)
        return back

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """All weights are positive."""
        return self, Nothing(self)

    def n_terms(self, shape: Shape) -> int:
        """One for each entry of a window, and a division; back, one for each window of an entry."""
        return math.prod(self.window.kernel) + 2

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Write the means as a sparse matrix."""
        return inputs[0].average_pool(self.window, self.count_padding)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write AveragePool, whose windows learned to be dilated late."""
        more: dict[str, Any] = {"count_include_pad": int(self.count_padding)}
        if any(d != 1 for d in self.window.dilations):
            more |= {"dilations": self.window.dilations, "since": 19}
        return _written(writer, "AveragePool", inputs[0], self.window, **more)


@dataclass(frozen=True, eq=False)
class MaxPool(Operation):
    """The maximum over a sliding window; padding does not take part.

    Example:
        >>> window = Window(kernel=(2,), strides=(1,), before=(1,), after=(0,), dilations=(1,))
        >>> MaxPool(window)(np.array([[[[-4.0, -1.0, -3.0]]]]))
        array([[[[-4., -1., -1.]]]])
    """

    window: Window

    @property
    def name(self) -> str:
        """What torch calls it."""
        return f"MaxPool{len(self.window.kernel)}d"

    def shape(self, *shapes: Shape) -> Shape:
        """Count the windows."""
        made = _pooled_shape(self.name, self.window, shapes[0])
        for axis, size in enumerate(shapes[0][2:]):
            window = self.window.axis(axis)
            if not _along(np.ones(size, dtype=bool), 0, window, made[2 + axis], np.maximum, False).all():
                raise UnsupportedModelError(f"{self.name} has a window that lies wholly in the padding.")
        return made

    def __call__(self, *inputs: Numbers) -> Numbers:
        """Take the maximum along each axis."""
        return _along_axes(inputs[0], self.window, np.maximum, -np.inf)

    def interval(self, *boxes: Interval) -> Interval:
        """Apply it to both ends: it is monotone, and nothing rounds."""
        return Interval(*(self(end) for end in boxes[0]))

    def relaxation(self, *boxes: Interval) -> Relaxation:
        """Bound a window by the entry with the largest lower end, and by the largest upper end.

        Where that entry is never below another, it is the maximum.
        """
        (box,) = boxes
        entries = _entries(box.lower)
        nothing = np.full(box.lower.shape, -np.inf)
        low, high, entry, others = self._folded(
            (box.lower, box.upper, entries, nothing), (-np.inf, -np.inf, -1, -np.inf), _larger_lower
        )
        return ChosenEntries(entry, others <= low, np.maximum(high, others), box)

    def pull_back(self, form: Array, *inputs: Array) -> tuple[Array, ...]:
        """Give the coefficient to the largest entry, the first of several."""
        (x,) = inputs
        _, entry = self._folded((x, _entries(x)), (-np.inf, -1), _larger)
        return (_scattered(form[:, None], entry, x.shape[1:])[:, 0],)

    def _folded(self, state: _State, empty: tuple[float, ...], merged: Callable[..., _State]) -> _State:
        """Merge what is known of single entries into what is known of windows, along each axis."""
        for axis in range(len(self.window.kernel)):
            window, shape = self.window.axis(axis), list(state[0].shape)
            size = shape[3 + axis]
            shape[3 + axis] = length = window.output_size(size, 0)
            made = tuple(np.full(shape, e, dtype=v.dtype) for e, v in zip(empty, state, strict=True))
            for point in _points(window, length):
                here, there = (_at(3 + axis, span) for span in overlap(size, *point))
                known = merged([v[here] for v in made], [v[there] for v in state])
                for old, new in zip(made, known, strict=True):
                    old[here] = new
            state = made
        return state

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Join pairs by maxima."""
        return lowering.max_pool(inputs[0], self.window)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write MaxPool."""
        return _written(writer, "MaxPool", inputs[0], self.window, dilations=self.window.dilations)


@dataclass(frozen=True, eq=False)
class ChosenEntries(Relaxation):
    """Maxima between one of their entries, from below, and a constant or that same entry, from above.

    Attributes:
        entry: The flat number of the entry, for each output.
        exact: Whether the maximum is that entry.
        above: The largest that the maximum can be.
        box: Where the input lies.
    """

    entry: NDArray[np.int64]
    exact: NDArray[np.bool_]
    above: Array
    box: Interval

    @cached_property
    def sizes(self) -> Array:
        """The largest absolute value of the chosen entries, for each output."""
        n = len(self.entry)
        flat = np.take_along_axis(self.box.reach.reshape(n, -1), self.entry.reshape(n, -1), axis=1)
        return flat.reshape(self.entry.shape)

    def upper(self, form: Array) -> Pulled:
        """Take the constant where the coefficient is positive and the maximum open, else the entry."""
        constant = np.where(self.exact[:, None] | (form < 0), 0.0, form)
        chosen = form - constant
        back = _scattered(chosen, self.entry, self.box.lower.shape[1:])
        with np.errstate(over="ignore", invalid="ignore"):
            offset = dot(constant, self.above)
            terms = dot(constant, np.abs(self.above)) + dot(np.abs(chosen), self.sizes)
        return Pulled((back,), charged(offset, terms, form[0, 0].size))


def _larger(ours: _State, theirs: _State) -> _State:
    """Merge (value, entry) of the largest of some entries with that of others."""
    (x, entry), (y, other) = ours, theirs
    first = (x >= y) & (entry >= 0)
    return np.where(first, x, y), np.where(first, entry, other)


def _larger_lower(ours: _State, theirs: _State) -> _State:
    """Merge (lower end, upper end, entry, largest upper end of the others), by the larger lower end."""
    (low, high, *_, others), (low2, high2, *_, others2) = ours, theirs
    first = (low > low2) | ((low == low2) & (high >= high2))
    kept = [np.where(first, a, b) for a, b in zip(ours[:3], theirs[:3], strict=True)]
    return *kept, np.maximum(np.maximum(others, others2), np.where(first, high2, high))


def _entries(x: Array) -> NDArray[np.int64]:
    """Return the flat number of every entry of an input, for n inputs."""
    return np.broadcast_to(np.arange(x[0].size).reshape(x.shape[1:]), x.shape)


def _scattered(form: Array, entry: NDArray[np.int64], shape: Shape) -> Array:
    """Add coefficients (n, q, *outputs) up at the entries (n, *outputs) of inputs of a shape."""
    n, q, size = *form.shape[:2], math.prod(shape)
    rows = np.arange(n * q).reshape(n, q, 1) * size
    at = (rows + entry.reshape(n, 1, -1)).ravel()
    total = np.bincount(at, weights=form.ravel(), minlength=n * q * size)
    return np.asarray(total, dtype=np.float64).reshape(n, q, *shape)


def _pooled_shape(name: str, window: Window, shape: Shape) -> Shape:
    if len(shape) != 2 + len(window.kernel):
        raise ValueError(
            f"{name} takes (batch, channels, {len(window.kernel)} spatial axes); "
            f"got a tensor of shape {shape}."
        )
    return (*shape[:2], *(window.output_size(size, i) for i, size in enumerate(shape[2:])))


def _points(window: Window, length: int) -> list[tuple[int, int, int]]:
    """Return, for every point of a kernel, the first entry it meets, the step, and how many it meets."""
    (points,), (stride,), (before,) = window.kernel, window.strides, window.before
    return [(m * window.dilations[0] - before, stride, length) for m in range(points)]


def _one_window(window: Window, j: int, size: int) -> slice:
    """Return the entries of window j along an axis."""
    start = j * window.strides[0] - window.before[0]
    return overlap(size, start, window.dilations[0], window.kernel[0])[1]


def _at(axis: int, span: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, span)


def _along_axes(x: Numbers, window: Window, combine: np.ufunc, empty: float) -> Numbers:
    """Combine the entries of every window of (n, batch, channels, *spatial)."""
    for axis in range(len(window.kernel)):
        one = window.axis(axis)
        x = _along(x, 3 + axis, one, one.output_size(x.shape[3 + axis], 0), combine, empty)
    return x


def _along(
    x: Numbers, axis: int, window: Window, length: int, combine: np.ufunc, empty: float
) -> Numbers:
    """Combine the entries of every window along one axis."""
    size = x.shape[axis]
    made = np.full((*x.shape[:axis], length, *x.shape[axis + 1 :]), empty, dtype=x.dtype)
    if window.kernel[0] > length:  # few windows with many entries
        for j in range(length):
            there = _one_window(window, j, size)
            if there.stop:
                one = combine.reduce(x[_at(axis, there)], axis, keepdims=True)
                made[_at(axis, slice(j, j + 1))] = one
        return made
    for point in _points(window, length):
        here, there = overlap(size, *point)
        target = made[_at(axis, here)]
        combine(target, x[_at(axis, there)], out=target)
    return made


def _along_back(form: Array, axis: int, window: Window, size: int) -> Array:
    """Add the coefficients of all windows of an entry, along one axis."""
    length = form.shape[axis]
    back = np.zeros((*form.shape[:axis], size, *form.shape[axis + 1 :]))
    if window.kernel[0] > length:
        for j in range(length):
            back[_at(axis, _one_window(window, j, size))] += form[_at(axis, slice(j, j + 1))]
        return back
    for point in _points(window, length):
        here, there = overlap(size, *point)
        back[_at(axis, there)] += form[_at(axis, here)]
    return back


def _written(writer: Writer, kind: str, x: str, window: Window, **more: Any) -> str:
    return writer.node(
        kind,
        [x],
        kernel_shape=window.kernel,
        strides=window.strides,
        pads=(*window.before, *window.after),
        ceil_mode=int(window.ceil_mode),
        **more,
    )
