r"""Convolutions and transposed convolutions, in any number of spatial dimensions.

Tensors are (batch, channels, \*spatial). What frameworks call a convolution is a correlation: the kernel
is not reversed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.model._expression import Expression, per_channel
from pindown.model._lowering import Lowering
from pindown.model.limits import MAX_TENSOR_ENTRIES, check_entries
from pindown.model.operations._images import Slide, correlate, correlate_back
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.operation import Numbers, Shape, Writer, frozen, matched
from pindown.model.operations.windows import Window, convolution_matrix


@dataclass(frozen=True, eq=False)
class _Kernel(AffineOperation):
    """What a convolution and its transpose share.

    Attributes:
        kernel: Kernels of shape ``(channels, other channels / groups, *points)``.
        bias: One number for each output channel, or None.
        groups: Groups of channels that do not mix.
    """

    kernel: Array
    bias: Array | None = None
    groups: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", frozen(self.kernel))
        if self.rank < 1 or self.groups < 1 or len(self.kernel) % self.groups:
            raise ValueError(f"a kernel {self.kernel.shape} cannot be cut into {self.groups} groups.")
        if self.bias is not None:
            object.__setattr__(self, "bias", frozen(self.bias))
            if self.bias.shape != (self.out_channels,):
                raise ValueError(f"a bias {self.bias.shape} does not fit {self.out_channels} channels.")

    @property
    def rank(self) -> int:
        """Spatial dimensions."""
        return self.kernel.ndim - 2

    @property
    def out_channels(self) -> int:
        """Channels of the output."""
        return len(self.kernel)

    @property
    def offset(self) -> Array | None:
        """The bias, along the channels."""
        return None if self.bias is None else per_channel(self.bias, 2 + self.rank)

    def signed(self) -> tuple[AffineOperation, AffineOperation]:
        """Split the kernel."""
        positive, negative = np.maximum(self.kernel, 0.0), np.maximum(-self.kernel, 0.0)
        return replace(self, kernel=positive, bias=None), replace(self, kernel=negative, bias=None)

    @property
    def n_parameters(self) -> int:
        """Kernel and bias."""
        return self.kernel.size + (0 if self.bias is None else self.bias.size)

    def _require_image(self, shape: Shape, channels: int) -> None:
        if len(shape) != 2 + self.rank or shape[1] != channels:
            raise ValueError(
                f"a kernel {self.kernel.shape} with {self.groups} groups takes (batch, {channels} "
                f"channels, {self.rank} spatial axes); got a tensor of shape {shape}."
            )

    def _write(self, writer: Writer, kind: str, x: str, window: Window, **more: Any) -> str:
        bias = [] if self.bias is None else [writer.weight(self.bias, "bias")]
        return writer.node(
            kind,
            [x, writer.weight(self.kernel), *bias],
            kernel_shape=window.kernel,
            strides=window.strides,
            pads=(*window.before, *window.after),
            dilations=window.dilations,
            group=self.groups,
            **more,
        )


@dataclass(frozen=True, eq=False)
class Convolution(_Kernel):
    r"""A kernel that slides over an image, :math:`y_{jo} = \sum_{cm} K_{jcm} x_{c,os+md-p} + b_j`.

    Attributes:
        kernel: K, of shape ``(out channels, in channels / groups, *points)``.
        bias: b, of shape (out channels,), or None.
        window: How the kernel slides: strides s, dilations d, zeros p before and after the image.
        groups: Groups of channels that do not mix.

    Example:
        >>> window = Window(kernel=(2,), strides=(1,), before=(0,), after=(1,), dilations=(1,))
        >>> Convolution([[[1.0, 10.0]]], [0.5], window=window)(np.array([[[[1.0, 2.0, 3.0]]]]))
        array([[[[21.5, 32.5,  3.5]]]])
    """

    window: Window = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window.kernel != self.kernel.shape[2:] or self.window.ceil_mode:
            raise ValueError(f"a convolution kernel {self.kernel.shape} does not fit {self.window}.")

    @property
    def name(self) -> str:
        """What torch calls it."""
        return f"Conv{self.rank}d"

    def shape(self, *shapes: Shape) -> Shape:
        """Count the windows."""
        (shape,) = shapes
        self._require_image(shape, self.kernel.shape[1] * self.groups)
        axes = zip(shape[2:], self.window.before, self.window.after, strict=True)
        padded = [size + before + after for size, before, after in axes]
        check_entries(shape[1], *padded, what="a padded image", limit=MAX_TENSOR_ENTRIES)
        return (shape[0], self.out_channels, *self._slide(shape).lengths)

    def _slide(self, shape: Shape) -> Slide:
        lengths = tuple(self.window.output_size(size, i) for i, size in enumerate(shape[2:]))
        return Slide(self.window.strides, self.window.dilations, self.window.before, lengths)

    def linear(self, x: Numbers) -> Numbers:
        """Correlate with the kernel."""
        images = x.reshape(-1, *x.shape[2:])
        y = correlate(images, matched(self.kernel, x), self._slide(x.shape[1:]), self.groups)
        return y.reshape(*x.shape[:2], *y.shape[1:])

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Spread the coefficients by the kernel."""
        images = form.reshape(-1, *form.shape[2:])
        x = correlate_back(images, self.kernel, self._slide(shape), shape[2:], self.groups)
        return x.reshape(len(form), *shape)

    def n_terms(self, shape: Shape) -> int:
        """One product for each number of a kernel; of the transpose: for each number of a channel's."""
        return max(self.kernel[0].size, self.kernel.size // self.kernel.shape[1] // self.groups)

    def multiply_adds(self, *shapes: Shape) -> int:
        """One for each number of the kernel and each window."""
        return shapes[0][0] * self.kernel.size * math.prod(self._slide(shapes[0]).lengths)

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Write the kernel as a sparse matrix."""
        return inputs[0].convolve(self.kernel, self.bias, self.window, self.groups)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write Conv."""
        return self._write(writer, "Conv", inputs[0], self.window)


@dataclass(frozen=True, eq=False)
class TransposedConvolution(_Kernel):
    r"""The transpose of a convolution, :math:`y_{ci} = \sum_{jom: os+md-p=i} K_{jcm} x_{jo} + b_c`.

    The length n of an axis becomes :math:`(n - 1) s + (\text{points} - 1) d + 1` less what is cut off.

    Attributes:
        kernel: K, of shape ``(in channels, out channels / groups, *points)``.
        bias: b, of shape (out channels,), or None.
        strides: Steps s between the places where the kernel is put.
        before: What is cut off before each axis, p.
        after: What is cut off after each axis.
        dilations: Steps d between the points of the kernel.
        output_padding: What is left on, or added, after each axis.
        groups: Groups of channels that do not mix.

    Example:
        >>> pads = {"before": (0,), "after": (0,), "output_padding": (0,)}
        >>> twice = TransposedConvolution([[[1.0, 10.0]]], strides=(2,), dilations=(1,), **pads)
        >>> twice(np.array([[[[1.0, 2.0]]]]))
        array([[[[ 1., 10.,  2., 20.]]]])
    """

    strides: Shape = field(kw_only=True)
    before: Shape = field(kw_only=True)
    after: Shape = field(kw_only=True)
    dilations: Shape = field(kw_only=True)
    output_padding: Shape = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.output_padding) != self.rank or min(self.output_padding) < 0:
            raise ValueError(
                f"a kernel {self.kernel.shape} does not fit output padding {self.output_padding}."
            )

    @cached_property
    def window(self) -> Window:
        """The window of the convolution whose transpose it is."""
        return Window(self.kernel.shape[2:], self.strides, self.before, self.after, self.dilations)

    @property
    def name(self) -> str:
        """What torch calls it."""
        return f"ConvTranspose{self.rank}d"

    @property
    def out_channels(self) -> int:
        """Channels of the output."""
        return self.kernel.shape[1] * self.groups

    def shape(self, *shapes: Shape) -> Shape:
        """Put the kernel down once for every pixel."""
        (shape,) = shapes
        self._require_image(shape, len(self.kernel))
        axes = enumerate(zip(shape[2:], self.strides, self.output_padding, strict=True))
        whole = [(n - 1) * s + self.window.reach(i) + added for i, (n, s, added) in axes]
        channels = max(len(self.kernel), self.out_channels)
        check_entries(channels, *whole, what="an image before it is cut", limit=MAX_TENSOR_ENTRIES)
        made = tuple(n - a - b for n, a, b in zip(whole, self.before, self.after, strict=True))
        if min(made) < 1:
            raise ValueError(f"{self.name} cuts off all of an image {shape[2:]}: {self.window}.")
        return (shape[0], self.out_channels, *made)

    def _slide(self, shape: Shape) -> Slide:
        return Slide(self.strides, self.dilations, self.before, shape[2:])

    def linear(self, x: Numbers) -> Numbers:
        """Spread the pixels by the kernel."""
        shape = x.shape[1:]
        made = self.shape(shape)
        images = x.reshape(-1, *x.shape[2:])
        y = correlate_back(images, matched(self.kernel, x), self._slide(shape), made[2:], self.groups)
        return y.reshape(len(x), *made)

    def transposed(self, form: Array, shape: Shape) -> Array:
        """Correlate with the kernel."""
        images = form.reshape(-1, *form.shape[2:])
        return correlate(images, self.kernel, self._slide(shape), self.groups).reshape(len(form), *shape)

    def n_terms(self, shape: Shape) -> int:
        """At most one product for each number of a kernel, of the map and of its transpose."""
        return max(self.kernel[0].size, self.kernel.size // self.kernel.shape[1] // self.groups)

    def multiply_adds(self, *shapes: Shape) -> int:
        """One for each number of the kernel and each pixel."""
        return shapes[0][0] * self.kernel.size * math.prod(shapes[0][2:])

    def lower(self, lowering: Lowering, *inputs: Expression) -> Expression:
        """Transpose the sparse matrix of the convolution."""
        (x,) = inputs
        spatial = x._image(self.name)[1:]
        made = self.shape(x.shape)
        rows, matrix = convolution_matrix(self.kernel, made[1:], self.window, self.groups)
        # Where a whole stride is added after the output, the convolution has more windows than x pixels.
        kept = np.arange(math.prod(rows)).reshape(rows)[(slice(None), *(slice(n) for n in spatial))]
        result = x._map_images(matrix[kept.ravel()].T.tocsr(), made[1:])
        return result if self.offset is None else result.shift(self.offset)

    def write(self, writer: Writer, *inputs: str) -> str:
        """Write ConvTranspose."""
        return self._write(
            writer, "ConvTranspose", inputs[0], self.window, output_padding=self.output_padding
        )
