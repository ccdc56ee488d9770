"""Sliding windows over images, as index arrays and sparse matrices.

Convolution and pooling, in any number of spatial dimensions, only need to know which input
positions each output position looks at. :func:`window_positions` answers that once for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.model.limits import MAX_SPARSE_ENTRIES, MAX_SPATIAL, MAX_UNITS, check_entries, check_shape


@dataclass(frozen=True)
class Window:
    """How a kernel slides along each spatial axis; all tuples have one entry per axis.

    Attributes:
        kernel: Kernel sizes.
        strides: Steps between windows.
        before: Padding before each axis.
        after: Padding after each axis.
        dilations: Gaps between kernel points.
        ceil_mode: Keep a last window that starts inside but ends outside.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        rank = len(self.kernel)
        fields = (self.kernel, self.strides, self.before, self.after, self.dilations)
        smallest = (1, 1, 0, 0, 1)
        for values, low in zip(fields, smallest, strict=True):
            if len(values) != rank or any(not low <= v <= MAX_SPATIAL for v in values):
                raise UnsupportedModelError(
                    f"window sizes must be sensible and of rank {rank}; got kernel {self.kernel}, "
                    f"strides {self.strides}, pads {self.before} and {self.after}, "
                    f"dilations {self.dilations}."
                )

    def axis(self, i: int) -> Window:
        """Return the window along axis ``i`` alone."""
        fields = (self.kernel, self.strides, self.before, self.after, self.dilations)
        kernel, strides, before, after, dilations = ((values[i],) for values in fields)
        return Window(kernel, strides, before, after, dilations, self.ceil_mode)

    def reach(self, i: int) -> int:
        """Return how many input positions the dilated kernel spans along axis ``i``."""
        return self.dilations[i] * (self.kernel[i] - 1) + 1

    def output_size(self, size: int, i: int) -> int:
        """Return the number of windows along axis ``i`` of the given length."""
        room = size + self.before[i] + self.after[i] - self.reach(i)
        steps = -(-room // self.strides[i]) if self.ceil_mode else room // self.strides[i]
        if self.ceil_mode and steps * self.strides[i] >= size + self.before[i]:
            steps -= 1  # the last window must start inside the image or its left padding
        if room < 0:
            raise UnsupportedModelError(
                f"a kernel that spans {self.reach(i)} does not fit an axis of length {size}."
            )
        return steps + 1


def window_positions(
    spatial: Sequence[int], window: Window
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Return the output shape and, per output position, the flat input positions it sees.

    The index array has shape (outputs, kernel points); -1 marks padding.

    >>> w = Window(kernel=(2,), strides=(2,), before=(1,), after=(0,), dilations=(1,))
    >>> window_positions((3,), w)[1].tolist()
    [[-1, 0], [1, 2]]
    """
    if len(spatial) != len(window.kernel):
        raise UnsupportedModelError(
            f"a kernel of rank {len(window.kernel)} needs an image of that many spatial axes; "
            f"got an image of {tuple(spatial)}."
        )
    out_shape = tuple(window.output_size(size, i) for i, size in enumerate(spatial))
    what = "a sliding window's index table"
    check_entries(*out_shape, *window.kernel, what=what, limit=4 * MAX_UNITS)
    rank = len(spatial)
    flat = np.zeros(out_shape + window.kernel, dtype=np.int64)
    inside = np.ones(out_shape + window.kernel, dtype=bool)
    for i, size in enumerate(spatial):
        starts = np.arange(out_shape[i]) * window.strides[i] - window.before[i]
        points = np.arange(window.kernel[i]) * window.dilations[i]
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = out_shape[i], window.kernel[i]
        position = (starts[:, None] + points).reshape(shape)
        flat = flat * size + position
        inside &= (position >= 0) & (position < size)
    table = np.where(inside, flat, -1).reshape(math.prod(out_shape), math.prod(window.kernel))
    return out_shape, table


def convolution_matrix(
    kernel: Array, image_shape: Sequence[int], window: Window, groups: int
) -> tuple[tuple[int, ...], sp.csr_array]:
    """Return the output shape (channels, *spatial) and the matrix of a convolution.

    Args:
        kernel: (out channels, in channels / groups, *window.kernel).
        image_shape: (in channels, *spatial).
        window: How the kernel slides.
        groups: Number of channel groups that do not mix.
    """
    channels, spatial = image_shape[0], tuple(image_shape[1:])
    out_channels, in_group = kernel.shape[:2]
    fits = groups >= 1 and out_channels % groups == 0 and channels == groups * in_group
    if not fits:
        raise UnsupportedModelError(
            f"a convolution kernel {kernel.shape} with {groups} groups does not fit "
            f"an image with {channels} channels."
        )
    out_spatial, table = window_positions(spatial, window)
    n_out, points = table.shape
    check_shape((out_channels, *out_spatial), "a convolution's output")
    check_entries(n_out, in_group, points, what="a convolution's windows", limit=MAX_SPARSE_ENTRIES)
    inside = np.repeat((table >= 0)[:, None, :], in_group, axis=1).ravel()  # (n_out, in_group, points)
    stored = int(np.count_nonzero(inside))  # for one output channel
    size = check_entries(
        out_channels, stored, what="a convolution written as a matrix", limit=MAX_SPARSE_ENTRIES
    )
    n_in = math.prod(spatial)
    within = (np.arange(in_group)[:, None] * n_in + table[:, None, :]).ravel()[inside]

    # Filled channel by channel: a table of all entries at once would need several times the memory.
    data = np.empty(size)
    columns = np.empty(size, dtype=np.int32 if channels * n_in < 2**31 else np.int64)
    for channel in range(out_channels):
        part = slice(channel * stored, (channel + 1) * stored)
        weights = kernel[channel].reshape(1, in_group, points)
        data[part] = np.broadcast_to(weights, (n_out, in_group, points)).ravel()[inside]
        columns[part] = within + channel // (out_channels // groups) * in_group * n_in
    counts = np.tile((table >= 0).sum(axis=1) * in_group, out_channels)
    starts = np.concatenate([[0], np.cumsum(counts)])
    matrix = sp.csr_array((data, columns, starts), shape=(out_channels * n_out, channels * n_in))
    return (out_channels, *out_spatial), matrix


def averaging_matrix(
    image_shape: Sequence[int], window: Window, count_padding: bool
) -> tuple[tuple[int, ...], sp.csr_array]:
    """Return the output shape and the matrix of average pooling of each channel."""
    channels, spatial = image_shape[0], tuple(image_shape[1:])
    out_spatial, table = window_positions(spatial, window)
    check_shape((channels, *out_spatial), "average pooling's output")
    inside = table >= 0
    divisor = _padded_counts(spatial, window) if count_padding else inside.sum(axis=1)
    if not divisor.all():
        raise UnsupportedModelError("average pooling has a window that lies wholly in the padding.")
    rows, points = np.nonzero(inside)
    one = sp.csr_array(
        (1.0 / divisor[rows], (rows, table[rows, points])),
        shape=(len(table), math.prod(spatial)),
    )
    what = "average pooling written as a matrix"
    check_entries(channels, one.nnz, what=what, limit=MAX_SPARSE_ENTRIES)
    matrix = sp.kron(sp.eye_array(channels), one, format="csr")
    return (channels, *out_spatial), matrix


def _padded_counts(spatial: Sequence[int], window: Window) -> NDArray[np.int64]:
    """Return, per window, how many of its points lie in the image or its declared padding."""
    padded = tuple(
        size + low + high for size, low, high in zip(spatial, window.before, window.after, strict=True)
    )
    zero = (0,) * len(padded)
    bare = Window(window.kernel, window.strides, zero, zero, window.dilations, window.ceil_mode)
    out_shape, table = window_positions(padded, bare)
    wanted = tuple(window.output_size(size, i) for i, size in enumerate(spatial))
    counts = (table >= 0).sum(axis=1).reshape(out_shape)
    return counts[tuple(slice(n) for n in wanted)].ravel()
