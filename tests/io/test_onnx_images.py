"""Convolution, pooling and batch norm on random images, against onnxruntime."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pindown.errors import UnsupportedModelError
from tests.io.onnx_models import OPSETS, assert_exact, f32, many, one_op


@st.composite
def images(draw):
    """An image and a window that fits it: shape, kernel, attributes."""
    rank = draw(st.integers(1, 3))
    side = st.integers(3, {1: 9, 2: 7, 3: 4}[rank])
    spatial = draw(st.lists(side, min_size=rank, max_size=rank))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    attributes = {"strides": [draw(st.integers(1, 3)) for _ in range(rank)]}
    dilations = [
        draw(st.integers(1, 1 if n < 2 * k - 1 else 2)) for n, k in zip(spatial, kernel, strict=True)
    ]
    auto = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if auto == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
    else:
        attributes["auto_pad"] = auto
        # onnxruntime refuses SAME with a stride beyond the kernel, where the pads come out negative.
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], kernel, strict=True)]
        dilations = dilations if auto == "VALID" else [1] * rank
    return spatial, kernel, dilations, attributes


@many
@given(image=images(), groups=st.integers(1, 2), bias=st.booleans(), opset=st.sampled_from(OPSETS))
def test_convolution(image, groups, bias, opset):
    spatial, kernel, dilations, attributes = image
    rng = np.random.default_rng(0)
    weights = {"K": f32(rng, 2 * groups, 2, *kernel)} | ({"b": f32(rng, 2 * groups)} if bias else {})
    model = one_op(
        "Conv",
        ["n", 2 * groups, *spatial],
        weights,
        opset,
        group=groups,
        dilations=dilations,
        **attributes,
    )
    assert_exact(model, n=5)


@many
@given(image=images(), ceil_mode=st.integers(0, 1), opset=st.sampled_from(OPSETS))
def test_max_pool(image, ceil_mode, opset):
    spatial, kernel, dilations, attributes = image
    if opset >= 10:
        attributes |= {"dilations": dilations, "ceil_mode": ceil_mode}
    model = one_op("MaxPool", ["n", 2, *spatial], opset=opset, kernel_shape=kernel, **attributes)
    try:
        assert_exact(model, n=5)
    except UnsupportedModelError as error:
        assert "padding" in str(error)  # a window that sees nothing has no maximum


@many
@given(
    image=images(), ceil_mode=st.integers(0, 1), padding=st.integers(0, 1), opset=st.sampled_from(OPSETS)
)
def test_average_pool(image, ceil_mode, padding, opset):
    spatial, kernel, dilations, attributes = image
    if opset >= 10:
        attributes["ceil_mode"] = ceil_mode
    if opset >= 19:
        attributes["dilations"] = dilations
    attributes["count_include_pad"] = padding
    model = one_op("AveragePool", ["n", 2, *spatial], opset=opset, kernel_shape=kernel, **attributes)
    try:
        assert_exact(model, n=5)
    except UnsupportedModelError as error:
        assert "padding" in str(error)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("spatial", [(5,), (3, 4), (2, 3, 2)])
def test_global_pools(op, spatial, opset):
    assert_exact(one_op(op, ["n", 3, *spatial], opset=opset))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 2, 2)])
def test_batch_normalization(shape, opset):
    rng = np.random.default_rng(0)
    weights = {"scale": f32(rng, 3), "shift": f32(rng, 3), "mean": f32(rng, 3)}
    weights["var"] = rng.uniform(0.1, 2.0, 3).astype("f4")
    assert_exact(one_op("BatchNormalization", ["n", *shape], weights, opset, epsilon=1e-3))
