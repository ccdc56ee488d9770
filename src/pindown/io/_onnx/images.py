"""ONNX operations on images: convolution, pooling, resizing, batch norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.data_movement import with_shape
from pindown.io._onnx.node import Node, Rule, Value
from pindown.model.limits import MAX_SPATIAL
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.dense import BatchNorm, Reduce, Scale
from pindown.model.operations.elementary import Power
from pindown.model.operations.integer_weights import IntegerWeights
from pindown.model.operations.maxima import ReduceMax
from pindown.model.operations.operation import Operation, frozen
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.products import Multiply, Square
from pindown.model.operations.resize import Resize
from pindown.model.operations.steps import Round
from pindown.model.operations.windows import Window

# ---------------------------------------------------------------------- sliding windows


def window_of(node: Node, kernel: Sequence[int], image: Sequence[int]) -> Window:
    """Read strides, pads and dilations of a window that slides over an image (1, channels, ...)."""
    rank, spatial = len(kernel), image[2:]
    if len(spatial) != rank or rank == 0:
        raise ModelFileError(f"a kernel {tuple(kernel)} does not fit a tensor of shape {tuple(image)}.")
    strides = node.integers("strides", (1,) * rank)
    dilations = node.integers("dilations", (1,) * rank)
    pads = node.integers("pads", (0,) * (2 * rank))
    auto = node.text("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        if any(n != 1 for n in dilations):
            raise UnsupportedModelError(
                f"auto_pad '{auto}' with dilations is not read, because runtimes disagree on it; "
                "export the model with explicit pads."
            )
        pads = _same_pads(spatial, kernel, strides, upper=auto == "SAME_UPPER", pools="Pool" in node.op)
    elif auto == "VALID":
        pads = (0,) * (2 * rank)
    elif auto != "NOTSET":
        raise ModelFileError(f"auto_pad '{auto}' does not exist in ONNX.")
    if len(pads) != 2 * rank:
        raise ModelFileError(f"{node.op} needs {2 * rank} pads; got {len(pads)}.")
    ceil_mode = node.flag("ceil_mode", False)
    return Window(tuple(kernel), strides, pads[:rank], pads[rank:], dilations, ceil_mode)


def _same_pads(
    spatial: Sequence[int], kernel: Sequence[int], strides: Sequence[int], *, upper: bool, pools: bool
) -> tuple[int, ...]:
    """Return the pads that make the output ``ceil(size / stride)`` long."""
    few, many = [], []
    for size, k, stride in zip(spatial, kernel, strides, strict=True):
        total = (-(-size // stride) - 1) * stride + k - size
        if total < 0 and pools:
            raise ModelFileError(
                f"automatic padding with a stride of {stride} beyond a kernel of {k} is not read, "
                "because runtimes disagree on it; export the model with explicit pads."
            )
        total = max(0, total)
        few.append(total // 2)
        many.append(total - total // 2)
    return (*few, *many) if upper else (*many, *few)


def pool_window(node: Node, image: Sequence[int]) -> Window:
    """Read the window of a pooling operation."""
    kernel = node.integers("kernel_shape")
    if kernel is None:
        raise ModelFileError(f"{node.op} lacks its kernel_shape.")
    window = window_of(node, kernel, image)
    if any(p >= k for p, k in zip(window.before + window.after, window.kernel * 2, strict=True)):
        raise ModelFileError(f"{node.op} pads by a whole kernel {kernel} or more.")
    return window


def kernel_window(node: Node, kernel: Sequence[int], image: Sequence[int]) -> tuple[Window, int]:
    """Read the window and the groups of a convolution with a kernel of this shape, checked."""
    declared = node.integers("kernel_shape")
    if len(kernel) < 3 or (declared is not None and declared != tuple(kernel[2:])):
        raise ModelFileError(
            f"a convolution kernel {tuple(kernel)} cannot have kernel_shape {declared}."
        )
    if node.has("pads") and node.text("auto_pad", "NOTSET") != "NOTSET":
        raise ModelFileError("it has both pads and automatic padding.")
    groups = node.integer("group", 1)
    fits = groups >= 1 and kernel[0] % groups == 0 and len(image) > 1 and image[1] == groups * kernel[1]
    if not fits:
        raise ModelFileError(
            f"a convolution kernel {tuple(kernel)} with {groups} groups does not fit a tensor of "
            f"shape {tuple(image)}."
        )
    return window_of(node, kernel[2:], image), groups


def convolution(node: Node, image: Sequence[int]) -> Operation:
    """Return the convolution that a node asks for; nodes with the same numbers share it."""
    kernel = node.weight(1)
    bias = node.weight(2) if node.given(2) else None
    if bias is not None and bias.shape != kernel.shape[:1]:
        raise ModelFileError(f"a bias {bias.shape} does not fit a convolution kernel {kernel.shape}.")
    window, groups = kernel_window(node, kernel.shape, image)

    def make() -> Operation:
        plain = Convolution(kernel, bias, window=window, groups=groups)
        grid = node.grid(kernel)
        return plain if grid is None else IntegerWeights(plain, grid, node.grid(bias))

    return node.once(make, "conv", kernel, bias, window, groups)


def _conv(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(convolution(node, x.shape), x)


def _conv_transpose(node: Node) -> Value:
    x, kernel = node.operand(0), node.weight(1)
    rank = kernel.ndim - 2
    if rank < 1 or len(x.shape) != kernel.ndim:
        raise ModelFileError(f"a kernel {kernel.shape} does not fit a tensor of shape {x.shape}.")
    declared = node.integers("kernel_shape")
    if declared is not None and declared != kernel.shape[2:]:
        raise ModelFileError(f"a convolution kernel {kernel.shape} cannot have kernel_shape {declared}.")
    groups = node.integer("group", 1)
    if groups < 1 or x.shape[1] != len(kernel) or len(kernel) % groups:
        raise ModelFileError(
            f"a kernel {kernel.shape} with {groups} groups does not fit a tensor {x.shape}."
        )
    bias = node.weight(2) if node.given(2) else None
    if bias is not None and bias.shape != (kernel.shape[1] * groups,):
        raise ModelFileError(f"a bias {bias.shape} does not fit a convolution kernel {kernel.shape}.")
    if node.has("pads") and node.text("auto_pad", "NOTSET") != "NOTSET":
        raise ModelFileError("it has both pads and automatic padding.")
    ones = (1,) * rank
    strides, dilations = node.integers("strides", ones), node.integers("dilations", ones)
    extra = node.integers("output_padding", (0,) * rank)
    if len(strides) != rank or len(dilations) != rank or len(extra) != rank:
        raise ModelFileError(f"ConvTranspose needs {rank} strides, dilations and output paddings.")
    if any(not 0 <= e < max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
        raise ModelFileError(f"an output padding {extra} must stay below the stride or the dilation.")
    before, after, extra = _transposed_pads(
        node, x.shape[2:], kernel.shape[2:], strides, dilations, extra
    )
    operation = TransposedConvolution(
        kernel,
        bias,
        strides=strides,
        before=before,
        after=after,
        dilations=dilations,
        output_padding=extra,
        groups=groups,
    )
    return node.apply(operation, x)


def _transposed_pads(
    node: Node,
    spatial: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    extra: tuple[int, ...],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the pads before and after, and the output padding."""
    rank = len(kernel)
    auto, wanted = node.text("auto_pad", "NOTSET"), node.integers("output_shape")
    sizes = zip(spatial, strides, kernel, dilations, extra, strict=True)
    whole = [s * (n - 1) + e + (k - 1) * d + 1 for n, s, k, d, e in sizes]
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = tuple(n * s for n, s in zip(spatial, strides, strict=True))
    if wanted is not None:
        wanted = wanted[-rank:]
        total = [max(0, w - n) for w, n in zip(whole, wanted, strict=True)]
        if any(n > w for w, n in zip(whole, wanted, strict=True)):
            raise UnsupportedModelError(
                f"ConvTranspose with an output of {wanted} beyond {whole} is not read."
            )
        few, many = [t // 2 for t in total], [t - t // 2 for t in total]
        before, after = (few, many) if auto == "SAME_UPPER" else (many, few)
        return tuple(before), tuple(after), extra
    if auto not in ("NOTSET", "VALID"):
        raise ModelFileError(f"auto_pad '{auto}' does not exist in ONNX.")
    pads = (0,) * (2 * rank) if auto == "VALID" else node.integers("pads", (0,) * (2 * rank))
    if len(pads) != 2 * rank or min(pads) < 0:
        raise ModelFileError(f"ConvTranspose needs {2 * rank} pads of at least 0; got {pads}.")
    return pads[:rank], pads[rank:], extra


# ---------------------------------------------------------------------- pooling


def _average_pool(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(AveragePool(pool_window(node, x.shape), node.flag("count_include_pad", False)), x)


def _max_pool(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(MaxPool(pool_window(node, x.shape)), x)


def _lp_pool(node: Node) -> Value:
    """Take roots of sums of squares, or sums of absolute values, over windows."""
    x, p = node.operand(0), node.integer("p", 2)
    window = pool_window(node, x.shape)
    if p != 2 or any((*window.before, *window.after)) or window.ceil_mode:
        raise UnsupportedModelError("LpPool is read with p = 2 and without padding.")
    squares = node.chain(
        x, Square(), AveragePool(window, False), Scale(np.array(float(math.prod(window.kernel))))
    )
    return node.apply(Power(0.5), squares)


def spatial_axes(x: Value) -> tuple[int, ...]:
    """Return the axes of an image behind its channels."""
    if len(x.shape) < 3:
        raise ModelFileError(f"a tensor of shape {x.shape} is no image.")
    return tuple(range(2, len(x.shape)))


def _global_average_pool(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(Reduce(spatial_axes(x), mean=True), x)


def _global_max_pool(node: Node) -> Value:
    x = node.operand(0)
    return node.apply(ReduceMax(spatial_axes(x)), x)


# ---------------------------------------------------------------------- channels


def _batch_normalization(node: Node) -> Value:
    # Before operator set 14, listing the outputs of training was how to ask for it.
    if node.flag("training_mode", False) or node.n_outputs > 1:
        raise UnsupportedModelError("it is in training mode; export the model in evaluation mode.")
    if not node.flag("spatial", True):
        raise UnsupportedModelError(
            "it normalises every pixel on its own (spatial=0), which is not read."
        )
    x = node.operand(0)
    numbers = [node.weight(i) for i in range(1, 5)]
    channels = x.shape[1:2] or (1,)
    if any(part.shape != channels for part in numbers):
        raise ModelFileError(f"its parameters do not fit a tensor of shape {x.shape}.")
    epsilon = node.finite("epsilon", 1e-5)
    if (numbers[3] + epsilon <= 0).any():
        raise ModelFileError("it holds a variance that is not positive.")
    # Not shared: exporters store equal numbers once, and norms begin with the same ones.
    scale, shift, mean, variance = numbers
    return node.apply(BatchNorm(scale, shift, mean, variance, epsilon), x)


def _local_response(node: Node) -> Value:
    r"""Divide by :math:`(k + \alpha\,\overline{x^2})^\beta`, the mean over neighbouring channels."""
    x, size = node.operand(0), node.integer("size", 1)
    alpha, beta, bias = node.finite("alpha", 1e-4), node.finite("beta", 0.75), node.finite("bias", 1.0)
    if len(x.shape) != 4 or size < 1 or size % 2 == 0 or bias <= 0 or alpha < 0:
        raise UnsupportedModelError(f"LRN over {size} channels of a tensor {x.shape} is not read.")
    rows = with_shape(node, x, (x.shape[0], 1, x.shape[1], math.prod(x.shape[2:])))
    few = (size - 1) // 2
    window = Window((size, 1), (1, 1), (few, 0), (size - 1 - few, 0), (1, 1))
    line = Scale(np.array(alpha), np.array(bias))
    divisor = node.chain(rows, Square(), AveragePool(window, True), line, Power(-beta))
    return with_shape(node, node.apply(Multiply(), rows, divisor), x.shape)


# ---------------------------------------------------------------------- resizing


def _resize(node: Node) -> Value:
    x = node.value(0)
    if node.opset < 11:
        return _upsample(node)
    mode = node.text("mode", "nearest")
    coordinate = node.text("coordinate_transformation_mode", "half_pixel")
    nearest = node.text("nearest_mode", "round_prefer_floor")
    if node.flag("antialias", False):
        raise UnsupportedModelError("Resize with antialias is not read; export the model without.")
    if (
        coordinate == "tf_crop_and_resize"
        or node.text("keep_aspect_ratio_policy", "stretch") != "stretch"
    ):
        raise UnsupportedModelError("Resize that crops or keeps the aspect ratio is not read.")
    axes = [node.axis(a, len(x.shape)) for a in node.integers("axes", tuple(range(len(x.shape))))]
    scales = (
        [float(s) for s in node.weight(2).ravel()] if node.given(2) and node.constant(2).size else None
    )
    sizes = (
        [int(n) for n in node.constant(3).ravel()] if node.given(3) and node.constant(3).size else None
    )
    if (scales is None) == (sizes is None) or len(scales or sizes or ()) != len(axes):
        raise ModelFileError("Resize needs either scales or sizes, one for each axis.")
    return _resized(
        node,
        x,
        scales=scales,
        sizes=sizes,
        axes=axes,
        mode=mode,
        coordinate=coordinate,
        nearest=nearest,
        cubic=node.finite("cubic_coeff_a", -0.75),
        exclude_outside=node.flag("exclude_outside", False),
    )


def _resized(node: Node, x: Value, **words: Any) -> Value:
    given = words.get("scales") or words.get("sizes") or ()
    if not all(0 < v <= MAX_SPATIAL for v in given):
        raise ModelFileError(f"Resize needs positive scales or sizes; got {tuple(given)}.")
    made = node.apply(Resize.of(x.shape, **words), x)
    if words["mode"] == "nearest" or "int" not in node.type(0):
        return made
    node.notes.append(
        "Whole numbers that are resized are cut off towards zero, as onnxruntime does; the ONNX "
        "definition leaves it open."
    )
    return node.apply(Round("trunc"), made)


def _upsample(node: Node) -> Value:
    x = node.value(0)
    scales = list(frozen(node.weight(1)).ravel()) if node.given(1) else list(node.reals("scales") or ())
    if len(scales) != len(x.shape):
        raise ModelFileError(f"{node.op} needs a scale for every axis; got {len(scales)}.")
    mode = node.text("mode", "nearest")
    return _resized(
        node, x, scales=[float(s) for s in scales], mode=mode, coordinate="asymmetric", nearest="floor"
    )


IMAGES: dict[str, Rule] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "LRN": _local_response,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "Resize": _resize,
    "Upsample": _upsample,
}
