"""Rules for torch's layers of images: convolution, pooling, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from pindown.affine import Array
from pindown.errors import UnsupportedModelError
from pindown.io._torch.elementwise import scaled
from pindown.io._torch.graph import Graph, Rule, array, several
from pindown.io._torch.moves import narrow, pad, squeeze, unsqueeze
from pindown.io._torch.values import Unread
from pindown.model.builder import Tensor
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.dense import Reduce
from pindown.model.operations.moves import Concat, Gather
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import ReduceMax
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.resize import Resize
from pindown.model.operations.windows import Window, window_positions

# ---------------------------------------------------------------------- images


def with_batch(graph: Graph, x: Tensor, dims: int, rule: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a rule to an image with a batch axis; torch also takes images without one."""
    if len(x.shape) == dims + 2:
        return rule(x)
    if len(x.shape) != dims + 1:
        raise UnsupportedModelError(
            f"it takes a tensor with {dims + 2} axes (batch, channels, ...); got shape {x.shape}. "
            "Pass input_shape without the batch, as in input_shape=(3, 32, 32)."
        )
    return squeeze(graph, rule(unsqueeze(graph, x, 0)), 0)


def conv(
    graph: Graph,
    x: Tensor,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Return a convolution."""
    _require_constant(weight, bias)
    kernel = tuple(weight.shape[2:])
    dims = len(kernel)
    dilations, strides = several(dilation, dims), several(stride, dims)
    if padding == "same":  # torch puts the odd one after
        whole = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        before = tuple(t // 2 for t in whole)
        after = tuple(t - b for t, b in zip(whole, before, strict=True))
    else:
        before = after = several(0 if padding == "valid" else padding, dims)
    window = Window(kernel, strides, before, after, dilations)
    make = lambda: Convolution(array(weight), or_none(bias), window=window, groups=groups)  # noqa: E731
    operation = graph.once("Convolution", make, weight, bias, window, groups)
    return with_batch(graph, x, dims, partial(graph.add, operation))


def conv_transpose(
    graph: Graph,
    x: Tensor,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
) -> Tensor:
    """Return a transposed convolution."""
    _require_constant(weight, bias)
    dims = weight.ndim - 2
    pads = several(padding, dims)
    options = {
        "strides": several(stride, dims),
        "before": pads,
        "after": pads,
        "dilations": several(dilation, dims),
        "output_padding": several(output_padding, dims),
        "groups": groups,
    }
    make = lambda: TransposedConvolution(array(weight), or_none(bias), **options)  # type: ignore[arg-type] # noqa: E731
    operation = graph.once("TransposedConvolution", make, weight, bias, *options.values())
    return with_batch(graph, x, dims, partial(graph.add, operation))


def _require_constant(*weights: Any) -> None:
    if any(isinstance(w, Tensor) for w in weights):
        raise UnsupportedModelError(
            "a convolution with a kernel that is computed from the input is not read."
        )


def or_none(value: Any) -> Array | None:
    return None if value is None else array(value)


def conv_module(graph: Graph, m: Any, x: Tensor) -> Tensor:
    """Return a convolution, after the padding that it asks for."""
    padding = m.padding
    if m.padding_mode != "zeros":
        x, padding = pad(graph, x, m._reversed_padding_repeated_twice, m.padding_mode), 0
    return conv(graph, x, m.weight, m.bias, m.stride, padding, m.dilation, m.groups)


def conv_transpose_module(graph: Graph, m: Any, x: Tensor, output_size: Any = None) -> Tensor:
    """Return a transposed convolution."""
    extra = m.output_padding
    if output_size is not None:
        dims = len(m.kernel_size)
        spatial = x.shape[-dims:]
        wanted = [int(n) for n in output_size][-dims:]
        extra = tuple(
            w - ((n - 1) * s - 2 * p + d * (k - 1) + 1)
            for w, n, s, p, d, k in zip(
                wanted, spatial, m.stride, m.padding, m.dilation, m.kernel_size, strict=True
            )
        )
    return conv_transpose(graph, x, m.weight, m.bias, m.stride, m.padding, extra, m.groups, m.dilation)


def unfold(
    graph: Graph, x: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the windows of an image as columns."""
    n, channels, *spatial = x.shape
    dims = len(spatial)
    kernel, pads = several(kernel_size, dims), several(padding, dims)
    padded = pad(graph, x, [p for side in pads[::-1] for p in (side, side)])
    window = Window(kernel, several(stride, dims), (0,) * dims, (0,) * dims, several(dilation, dims))
    _, table = window_positions(padded.shape[2:], window)
    flat = graph.reshape(padded, (n, channels, math.prod(padded.shape[2:])))
    return graph.reshape(
        graph.add(Gather(table.T.copy(), 2), flat), (n, channels * len(table.T), len(table))
    )


# ---------------------------------------------------------------------- pooling


def _window(
    dims: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any = 1, ceil_mode: bool = False
) -> Window:
    kernel, pads = several(kernel_size, dims), several(padding, dims)
    strides = kernel if stride in (None, [], ()) else several(stride, dims)
    return Window(kernel, strides, pads, pads, several(dilation, dims), bool(ceil_mode))


def max_pool(dims: int) -> Rule:
    """Return the rule of max pooling over so many spatial axes."""

    def rule(
        graph: Graph,
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        window = _window(dims, kernel_size, stride, padding, dilation, ceil_mode)
        pooled = with_batch(graph, x, dims, partial(graph.add, MaxPool(window)))
        return (pooled, Unread()) if return_indices else pooled

    return rule


def avg_pool(dims: int) -> Rule:
    """Return the rule of average pooling over so many spatial axes."""

    def rule(
        graph: Graph,
        x: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        window = _window(dims, kernel_size, stride, padding, 1, ceil_mode)
        if divisor_override is not None and ceil_mode:
            raise UnsupportedModelError(
                "average pooling with divisor_override and ceil_mode is not read."
            )
        operation = AveragePool(window, count_padding=count_include_pad or divisor_override is not None)
        pooled = with_batch(graph, x, dims, partial(graph.add, operation))
        if divisor_override is None:
            return pooled
        return scaled(graph, pooled, math.prod(window.kernel) / divisor_override)

    return rule


def max_pool_module(dims: int) -> Rule:
    """Return the rule of a max pooling module."""
    return lambda graph, m, x: max_pool(dims)(
        graph, x, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices
    )


def avg_pool_module(dims: int) -> Rule:
    """Return the rule of an average pooling module."""
    return lambda graph, m, x: avg_pool(dims)(
        graph,
        x,
        m.kernel_size,
        m.stride,
        m.padding,
        m.ceil_mode,
        m.count_include_pad,
        getattr(m, "divisor_override", None),
    )


def adaptive_pool(dims: int, average: bool) -> Rule:
    """Return the rule of pooling to a wanted size, with windows of one length where that fits."""

    def rule(graph: Graph, x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        spatial = x.shape[-dims:]
        sizes = output_size if isinstance(output_size, list | tuple) else (output_size,) * dims
        wanted = tuple(n if w is None else int(w) for n, w in zip(spatial, sizes, strict=True))
        if min(wanted) < 1:
            raise UnsupportedModelError(f"adaptive pooling to the size {wanted} leaves nothing.")
        pooled = with_batch(graph, x, dims, partial(_adapted, graph, wanted, average))
        return (pooled, Unread()) if return_indices else pooled

    return rule


def _adapted(graph: Graph, wanted: tuple[int, ...], average: bool, x: Tensor) -> Tensor:
    spatial = x.shape[2:]
    if set(wanted) == {1}:
        return graph.add(_over(tuple(range(2, len(x.shape))), average), x)
    if any(n % w for n, w in zip(spatial, wanted, strict=True)):
        for axis, length in enumerate(wanted, 2):
            x = _uneven(graph, x, axis, length, average)
        return x
    window = _window(len(wanted), [n // w for n, w in zip(spatial, wanted, strict=True)], None, 0)
    return graph.add(AveragePool(window) if average else MaxPool(window), x)


def _uneven(graph: Graph, x: Tensor, axis: int, wanted: int, average: bool) -> Tensor:
    """Pool one axis over windows that differ in length, as torch lays them."""
    n = x.shape[axis]
    if n == wanted:
        return x
    starts = [i * n // wanted for i in range(wanted)]
    stops = [-(-(i + 1) * n // wanted) for i in range(wanted)]
    parts = [
        graph.add(_over((axis,), average), narrow(graph, x, axis, start, stop - start))
        for start, stop in zip(starts, stops, strict=True)
    ]
    return parts[0] if wanted == 1 else graph.add(Concat(axis), *parts)


def _over(axes: tuple[int, ...], average: bool) -> Operation:
    return Reduce(axes, mean=True) if average else ReduceMax(axes)


# ---------------------------------------------------------------------- resizing


def interpolate(
    graph: Graph,
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return an image of another size."""
    kinds = {
        "nearest": ("nearest", "asymmetric", "floor"),
        "nearest-exact": ("nearest", "half_pixel", "round_prefer_ceil"),
        **dict.fromkeys(("linear", "bilinear", "trilinear"), ("linear", "half_pixel", "floor")),
        "bicubic": ("cubic", "half_pixel", "floor"),
    }
    if mode not in kinds:
        raise UnsupportedModelError(
            f"resizing with mode {mode!r} is not read; pindown reads {', '.join(kinds)}."
        )
    spatial = x.shape[2:]
    dims = len(spatial)
    scales = None if scale_factor is None else [float(f) for f in _each(scale_factor, dims)]
    sizes = (
        several(size, dims)
        if scales is None
        else tuple(int(n * f) for n, f in zip(spatial, scales, strict=True))
    )
    interpolation, coordinate, nearest = kinds[mode]
    if align_corners or recompute_scale_factor:
        scales = None
    return graph.add(
        Resize.of(
            x.shape,
            sizes=sizes if scales is None else None,
            scales=scales,
            axes=range(2, len(x.shape)),
            mode=interpolation,
            coordinate="align_corners" if align_corners else coordinate,
            nearest=nearest,
            antialias=antialias,
        ),
        x,
    )


def _each(value: Any, dims: int) -> Any:
    return value if isinstance(value, list | tuple) else (value,) * dims


def upsample_module(graph: Graph, m: Any, x: Tensor) -> Tensor:
    """Return an image of another size."""
    return interpolate(
        graph, x, m.size, m.scale_factor, m.mode, m.align_corners, m.recompute_scale_factor
    )


LAYERS: dict[str, Rule] = {
    **{f"conv{d}d": conv for d in (1, 2, 3)},
    **{f"conv_transpose{d}d": conv_transpose for d in (1, 2, 3)},
    "unfold": unfold,
    **{f"max_pool{d}d": max_pool(d) for d in (1, 2, 3)},
    **{f"avg_pool{d}d": avg_pool(d) for d in (1, 2, 3)},
    **{f"adaptive_avg_pool{d}d": adaptive_pool(d, True) for d in (1, 2, 3)},
    **{f"adaptive_max_pool{d}d": adaptive_pool(d, False) for d in (1, 2, 3)},
    **dict.fromkeys(("interpolate", "upsample"), interpolate),
}
