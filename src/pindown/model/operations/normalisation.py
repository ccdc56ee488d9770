"""Layer, group, instance and RMS normalisation, vectors of length one; softmax stands in softmax.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.model._expression import per_channel
from pindown.model.operations.chain import Chain
from pindown.model.operations.dense import Scale
from pindown.model.operations.moves import Reshape, Transpose
from pindown.model.operations.operation import Operation, Shape, Writer, frozen
from pindown.model.operations.rescale import Rescale
from pindown.model.operations.softmax import LogSoftmax, Softmax

__all__ = ["GroupNorm", "LayerNorm", "LogSoftmax", "LpNormalize", "RmsNorm", "Softmax"]


class _Normalisation(Chain):
    """Rows of a tensor rescaled, then multiplied and shifted by trained numbers."""

    scale: Array | None
    shift: Array | None
    epsilon: float

    def __post_init__(self) -> None:
        for name in ("scale", "shift"):
            if getattr(self, name, None) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name)))
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be at least 0; got {self.epsilon}.")

    @property
    def n_parameters(self) -> int:
        """Scale and shift."""
        return sum(v.size for v in (self.scale, self.shift) if v is not None)

    def _scaled(self, rank: int | None = None) -> tuple[Operation, ...]:
        """Return the last step; with a rank the numbers are those of channels."""
        scale, shift = self.scale, self.shift
        if rank is not None:
            scale, shift = (None if v is None else per_channel(v, rank) for v in (scale, shift))
        return () if scale is None and shift is None else (Scale(scale, shift),)


@dataclass(frozen=True, eq=False)
class LayerNorm(_Normalisation):
    r""":math:`(x - \mu) / \sqrt{\sigma^2 + \epsilon}` over axes, times a scale, plus a shift.

    Attributes:
        axes: Where mean and variance are taken, counted from the front of the literal shape.
        scale: Factors of a shape that broadcasts with the tensor's, or None.
        shift: Likewise.
        epsilon: Added to the variance.

    >>> LayerNorm((1,), epsilon=0.0)(np.array([[[1.0, 3.0]]]))
    array([[[-1.,  1.]]])
    """

    axes: tuple[int, ...]
    scale: Array | None = None
    shift: Array | None = None
    epsilon: float = 1e-5

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Cut into rows, rescale, put together, scale."""
        return (*_along(shapes[0], self.axes, Rescale(epsilon=self.epsilon)), *self._scaled())

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write LayerNormalization where the axes are the last ones, else its parts."""
        (x,) = inputs
        shape = writer.shape_of(x)
        first = min(self.axes)
        own = shape[first:]
        fits = all(v is None or np.ndim(v) <= len(own) for v in (self.scale, self.shift))
        if sorted(self.axes) == list(range(first, len(shape))) and fits:
            numbers = [np.ones(own) if self.scale is None else np.broadcast_to(self.scale, own)]
            numbers += [] if self.shift is None else [np.broadcast_to(self.shift, own)]
            names = ("scale", "shift")
            weights = [writer.weight(v, name) for v, name in zip(numbers, names, strict=False)]
            return writer.node("LayerNormalization", [x, *weights], axis=first, epsilon=self.epsilon)
        mean = writer.node("ReduceMean", [x, writer.integers(self.axes)], keepdims=1)
        d = writer.node("Sub", [x, mean])
        divided = _write_divided(writer, d, self.axes, self.epsilon)
        return _write_scaled(writer, divided, self.scale, self.shift)


@dataclass(frozen=True, eq=False)
class RmsNorm(_Normalisation):
    r""":math:`x / \sqrt{\overline{x^2} + \epsilon}` over axes, times a scale.

    >>> RmsNorm((1,), epsilon=0.0)(np.array([[[1.0, 7.0]]]))
    array([[[0.2, 1.4]]])
    """

    axes: tuple[int, ...]
    scale: Array | None = None
    epsilon: float = 1e-5

    shift = None

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Cut into rows, rescale, put together, scale."""
        rescale = Rescale(centred=False, epsilon=self.epsilon)
        return (*_along(shapes[0], self.axes, rescale), *self._scaled())

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write its parts: the operation came with operator set 23."""
        divided = _write_divided(writer, inputs[0], self.axes, self.epsilon)
        return _write_scaled(writer, divided, self.scale, None)


@dataclass(frozen=True, eq=False)
class GroupNorm(_Normalisation):
    """Every group of channels less its mean, over its deviation; axis 1 holds the channels.

    With as many groups as channels it is instance normalisation.

    Attributes:
        groups: Number of groups.
        scale: One for each channel, or None.
        shift: Likewise.
        epsilon: Added to the variance.
    """

    groups: int
    scale: Array | None = None
    shift: Array | None = None
    epsilon: float = 1e-5

    @property
    def name(self) -> str:
        """What users call it."""
        return "GroupNorm"

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Cut into groups, rescale, put together, scale every channel."""
        (shape,) = shapes
        if len(shape) < 2 or self.groups < 1 or shape[1] % self.groups:
            raise ValueError(f"{self.groups} groups do not fit a tensor of shape {shape}.")
        rows = (shape[0], self.groups, math.prod(shape[1:]) // self.groups)
        return (Reshape(rows), Rescale(epsilon=self.epsilon), Reshape(shape), *self._scaled(len(shape)))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write InstanceNormalization or GroupNormalization."""
        channels = writer.shape_of(inputs[0])[1]
        scale = np.ones(channels) if self.scale is None else self.scale
        shift = np.zeros(channels) if self.shift is None else self.shift
        weights = [writer.weight(scale, "scale"), writer.weight(shift, "shift")]
        if channels == self.groups and len(writer.shape_of(inputs[0])) > 2:
            return writer.node("InstanceNormalization", [*inputs, *weights], epsilon=self.epsilon)
        exact: dict[str, Any] = {}
        if writer.dtype == "float64":
            exact["stash_type"] = 11  # else it computes in float32
        kind, groups = "GroupNormalization", self.groups
        return writer.node(kind, [*inputs, *weights], num_groups=groups, epsilon=self.epsilon, **exact)


@dataclass(frozen=True, eq=False)
class LpNormalize(Chain):
    """``x / |x|`` along an axis, with the sum of absolute values (p=1) or the Euclidean length (p=2).

    A vector of zeros stays one.

    >>> LpNormalize(1)(np.array([[[3.0, 4.0]]]))
    array([[[0.6, 0.8]]])
    """

    axis: int = -1
    p: int = 2

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2; got {self.p}.")

    @property
    def name(self) -> str:
        """What users call it."""
        return "Normalize"

    def steps(self, *shapes: Shape) -> tuple[Operation, ...]:
        """Cut into rows, rescale, put together."""
        axis = self.axis + len(shapes[0]) if self.axis < 0 else self.axis
        return _along(shapes[0], (axis,), Rescale(centred=False, power=self.p, mean=False))

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write LpNormalization."""
        return writer.node("LpNormalization", inputs, axis=self.axis, p=self.p)


def _along(shape: Shape, axes: tuple[int, ...], rescale: Rescale) -> tuple[Operation, ...]:
    """Return the steps that rescale over axes of a tensor."""
    if not axes or any(not 0 <= axis < len(shape) for axis in axes):
        raise ValueError(f"axes {axes} do not exist in a tensor of shape {shape}.")
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    order = (*kept, *sorted(axes))
    turned = tuple(shape[i] for i in order)
    rows = (*turned[: len(kept)], math.prod(turned[len(kept) :]))
    inner: tuple[Operation, ...] = (rescale,)
    if rows != turned:
        inner = (Reshape(rows), rescale, Reshape(turned))
    if order == tuple(range(len(shape))):
        return inner
    back = tuple(int(i) for i in np.argsort(order))
    return (Transpose(order), *inner, Transpose(back))


def _write_divided(writer: Writer, d: str, axes: tuple[int, ...], epsilon: float) -> str:
    """Write d over the root of its mean square plus epsilon."""
    squares = writer.node("Mul", [d, d])
    mean = writer.node("ReduceMean", [squares, writer.integers(axes)], keepdims=1)
    total = writer.node("Add", [mean, writer.weight(np.array(epsilon), "epsilon")])
    return writer.node("Div", [d, writer.node("Sqrt", [total])])


def _write_scaled(writer: Writer, x: str, scale: Array | None, shift: Array | None) -> str:
    if scale is not None:
        x = writer.node("Mul", [x, writer.weight(scale, "scale")])
    return x if shift is None else writer.node("Add", [x, writer.weight(shift, "shift")])
