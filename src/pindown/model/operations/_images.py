r"""Kernels that slide over images, in NumPy: the arithmetic under convolutions and pooling.

A correlation along one axis, with stride s, dilation d and p zeros before the image, is

.. math::
    y_o = \sum_m K_m \, x_{o s + m d - p} ,

where x is zero outside. Windows are copied into a matrix piece by piece, each piece small enough to stay
near the processor, and multiplied by BLAS; kernels that keep channels apart run over whole images
instead, point by point. That takes about as long as torch's convolutions in float64, so torch is not
asked, and what comes out does not depend on whether it is there. Every entry is a sum of products in
some order, as the error bounds of :mod:`pindown.rounding` need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pindown.model.operations.operation import Numbers, Shape

# Numbers in one piece of the matrix of windows: 16 MB. A tenth is as fast on one thread, but BLAS loses
# more time on two the more often it is called.
_PIECE = 2**21
# Numbers in one block of channels that are kept apart: 256 kB, so that three of them stay in a cache.
_BLOCK = 2**15
# With fewer pixels than this, the images of a batch share a matrix product.
_FEW_PIXELS = 32
# With more outputs than this for each channel, a matrix product is faster for channels kept apart, too.
_FEW_COPIES = 2


class Slide(NamedTuple):
    """How a kernel slides along each spatial axis.

    Attributes:
        strides: Steps between windows.
        dilations: Steps between the points of a kernel.
        before: Zeros before the image; negative: how much of the image is skipped.
        lengths: How many windows there are.
    """

    strides: Shape
    dilations: Shape
    before: Shape
    lengths: Shape


def overlap(size: int, start: int, step: int, count: int) -> tuple[slice, slice]:
    """Return which j < count have ``start + step * j`` in ``range(size)``, and those positions.

    >>> overlap(5, -3, 2, 10)
    (slice(2, 4, None), slice(1, 4, 2))
    """
    first = max(0, -(start // step))
    stop = min(count, (size - 1 - start) // step + 1)
    if stop <= first:
        return slice(0, 0), slice(0, 0)
    return slice(first, stop), slice(start + step * first, start + step * (stop - 1) + 1, step)


def correlate(x: Numbers, kernel: Numbers, slide: Slide, groups: int = 1) -> Numbers:
    """Correlate images (n, channels, *spatial) with a kernel (out, channels / groups, *points).

    >>> x = np.array([[[1.0, 2.0, 4.0, 8.0]]])
    >>> correlate(x, np.array([[[1.0, 10.0]]]), Slide((1,), (1,), (1,), (4,)))
    array([[[10., 21., 42., 84.]]])
    """
    out, points = len(kernel), kernel.shape[2:]
    pixels, rank = math.prod(slide.lengths), len(points)
    if kernel.shape[1] == 1 and math.prod(points) > 1 and out <= _FEW_COPIES * x.shape[1]:
        return _apart(x, kernel, slide)
    K = kernel.reshape(groups, out // groups, -1)
    if math.prod(points) == 1 and (pixels >= _FEW_PIXELS or len(x) == 1):
        seen = _framed(x, slide.before, slide.strides, slide.lengths)
        mixed = np.matmul(K, seen.reshape(len(x), groups, kernel.shape[1], pixels))
        return mixed.reshape(len(x), out, *slide.lengths)
    made = np.empty((len(x), out, *slide.lengths), dtype=np.result_type(x, kernel))
    rows = x.shape[1] * math.prod(points)
    tile, images = _tile(slide.lengths, len(x), _PIECE // rows)
    # From (n, channels, *tile, *points) to (channels, *points, n, *tile).
    order = (1, *range(2 + rank, 2 + 2 * rank), 0, *range(2, 2 + rank))
    for first in range(0, len(x), images):
        windows = _windows(x[first : first + images], points, slide)
        for place in _places(slide.lengths, tile):
            piece = windows[(slice(None), slice(None), *place)].transpose(order)
            values = np.matmul(K, piece.reshape(groups, rows // groups, -1))  # reshape copies
            values = values.reshape(out, *piece.shape[1 + rank :]).swapaxes(0, 1)
            made[(slice(first, first + images), slice(None), *place)] = values
    return made


def correlate_back(
    form: Numbers, kernel: Numbers, slide: Slide, spatial: Shape, groups: int = 1
) -> Numbers:
    """Apply the transpose of :func:`correlate`, from (n, out, *lengths) to (n, channels, *spatial).

    >>> kernel = np.array([[[1.0, 2.0, 3.0]]])
    >>> correlate_back(np.ones((1, 1, 2)), kernel, Slide((2,), (1,), (0,), (2,)), (5,))
    array([[[1., 2., 4., 2., 3.]]])
    """
    n, out, (inside, *points) = len(form), len(kernel), kernel.shape[1:]
    if inside == 1 and out == groups and all(s == 1 for s in slide.strides):
        # The transpose is a correlation with the points in reverse.
        reach = zip(points, slide.dilations, slide.before, strict=True)
        before = tuple((k - 1) * d - p for k, d, p in reach)
        reverse = np.flip(kernel, tuple(range(2, kernel.ndim)))
        return correlate(form, reverse, Slide(slide.strides, slide.dilations, before, spatial), groups)
    channels = groups * inside
    back = np.zeros((n, channels, *spatial), dtype=np.result_type(form, kernel))
    K = kernel.reshape(groups, out // groups, -1).swapaxes(1, 2)
    tile, images = _tile(slide.lengths, n, _PIECE // (channels * math.prod(points)))
    for first in range(0, n, images):
        for place in _places(slide.lengths, tile):
            piece = form[(slice(first, first + images), slice(None), *place)]
            columns = piece.swapaxes(0, 1).reshape(groups, out // groups, -1)
            values = np.matmul(K, columns).reshape(channels, *points, len(piece), *piece.shape[2:])
            for point in product(*map(range, points)):
                axes = zip(place, point, *slide[:3], strict=True)
                starts = [at.start * s + m * d - p for at, m, s, d, p in axes]
                spans = map(overlap, spatial, starts, slide.strides, piece.shape[2:])
                here, there = zip(*spans, strict=True)
                target = back[(slice(first, first + images), slice(None), *there)]
                target += values[(slice(None), *point, slice(None), *here)].swapaxes(0, 1)
    return back


def _framed(x: Numbers, before: Sequence[int], steps: Sequence[int], lengths: Sequence[int]) -> Numbers:
    """Return the pixels ``j * step - before``, j < length, of images; zero where there is none."""
    spans = map(overlap, x.shape[2:], [-p for p in before], steps, lengths)
    here, there = zip(*spans, strict=True)
    seen = x[(slice(None), slice(None), *there)]
    if seen.shape[2:] == tuple(lengths):
        return seen
    framed = np.zeros((*x.shape[:2], *lengths), dtype=x.dtype)
    framed[(slice(None), slice(None), *here)] = seen
    return framed


def _windows(x: Numbers, points: Shape, slide: Slide) -> Numbers:
    """Return a view (n, channels, *lengths, *points) of all windows."""
    strides, dilations, before, lengths = slide
    axes = zip(lengths, strides, points, dilations, strict=True)
    reach = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in axes]
    framed = _framed(x, before, (1,) * len(points), reach)
    between = [step * s for step, s in zip(framed.strides[2:], strides, strict=True)]
    within = [step * d for step, d in zip(framed.strides[2:], dilations, strict=True)]
    shape = (*framed.shape[:2], *lengths, *points)
    return as_strided(framed, shape, (*framed.strides[:2], *between, *within), writeable=False)


def _tile(lengths: Shape, n: int, pixels: int) -> tuple[list[int], int]:
    """Return how many windows along each axis, and of how many images, make at most so many pixels."""
    tile = [1] * len(lengths)
    for axis in reversed(range(len(lengths))):
        tile[axis] = max(1, min(lengths[axis], pixels))
        pixels //= lengths[axis]
    return tile, max(1, min(n, pixels))


def _places(lengths: Shape, tile: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    spans = [
        [slice(start, min(length, start + step)) for start in range(0, length, step)]
        for length, step in zip(lengths, tile, strict=True)
    ]
    return product(*spans)


def _apart(x: Numbers, kernel: Numbers, slide: Slide) -> Numbers:
    """Correlate every channel on its own: point by point, over whole images at once.

    Pixels with the same remainders by the strides lie side by side in a buffer. There the pixels that
    one point of the kernel meets are one run of neighbours; those that only lie between are cut off.
    """
    n, channels = x.shape[:2]
    strides, dilations, before, lengths = slide
    points, rank = kernel.shape[2:], len(lengths)
    weights = kernel.reshape(channels, -1, *points)
    copies = weights.shape[1]
    images = x.reshape(1, n * channels, *x.shape[2:])
    made = np.empty((n * channels, copies, *lengths), dtype=np.result_type(x, kernel))
    axes = zip(lengths, points, dilations, strides, strict=True)
    wide = tuple(length + (k - 1) * d // s for length, k, d, s in axes)
    runs = [math.prod(wide[i + 1 :]) for i in range(rank)]  # from one index to the next
    size = sum((length - 1) * run for length, run in zip(lengths, runs, strict=True)) + 1
    step = max(1, _BLOCK // (copies * math.prod(wide)))
    for first in range(0, n * channels, step):
        block = images[:, first : first + step]
        rows = block.shape[1]
        own = weights[np.arange(first, first + rows) % channels]
        total = np.zeros((rows, copies, lengths[0] * runs[0]), dtype=made.dtype)
        term = np.empty((rows, copies, size), dtype=made.dtype)
        buffers: dict[tuple[int, ...], Numbers] = {}
        for point in product(*map(range, points)):
            ahead = [divmod(m * d, s) for m, d, s in zip(point, dilations, strides, strict=True)]
            rest = tuple(r for _, r in ahead)
            if rest not in buffers:
                seen = _framed(block, [p - r for p, r in zip(before, rest, strict=True)], strides, wide)
                buffers[rest] = seen.reshape(rows, 1, -1)
            start = sum(q * run for (q, _), run in zip(ahead, runs, strict=True))
            met = buffers[rest][..., start : start + size]
            np.multiply(met, own[(..., *point)][..., None], out=term)
            np.add(total[..., :size], term, out=total[..., :size])
        crop = (slice(None), slice(None), *(slice(length) for length in lengths))
        made[first : first + rows] = total.reshape(rows, copies, lengths[0], *wide[1:])[crop]
    return made.reshape(n, channels * copies, *lengths)
