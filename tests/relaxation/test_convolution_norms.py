"""The norm of a convolution from its kernel: never below that of its matrix, and near it."""

import math

import numpy as np
import pytest

from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.windows import Window
from pindown.relaxation import convolution_norm
from pindown.relaxation.operator_norms import NormBound


def norm_of(operation, shape):
    """The norm of the matrix that a convolution is on images of a shape."""
    eye = np.eye(math.prod(shape)).reshape(-1, 1, *shape)
    return np.linalg.norm(operation.linear(eye).reshape(len(eye), -1), 2)


def convolution(rng, kernel, stride=1, pad=1, dilation=1, groups=1):
    rank = len(kernel) - 2
    window = Window(kernel[2:], *((n,) * rank for n in (stride, pad, pad, dilation)))
    return Convolution(rng.normal(size=kernel), window=window, groups=groups)


@pytest.mark.parametrize(
    ("kernel", "shape", "how"),
    [
        ((4, 3, 3, 3), (3, 9, 9), {}),
        ((3, 2, 2, 3), (2, 9, 8), {"stride": 2}),
        ((2, 2, 3), (2, 40), {"dilation": 2, "pad": 2}),
        ((6, 1, 3, 3), (3, 8, 8), {"groups": 3}),
        ((5, 4, 1, 1), (4, 3, 3), {"pad": 0}),
        ((1, 1, 25), (1, 60), {"pad": 12}),
    ],
)
def test_no_image_is_stretched_more(kernel, shape, how):
    for seed in range(3):
        operation = convolution(np.random.default_rng(seed), kernel, **how)
        true = norm_of(operation, shape)
        tight, rough = convolution_norm(operation), convolution_norm(operation, budget=0.0)
        assert true <= tight.value * (1 + 1e-12) and tight.value <= rough.value
        assert (tight.method, rough.method) == ("symbol", "absolute weights")
        assert (
            "stride" in how or tight.value < 1.35 * true
        )  # what is missing at the border, and the grid


def test_the_symbol_is_attained_far_from_the_border():
    operation = convolution(np.random.default_rng(0), (2, 2, 3))
    assert convolution_norm(operation).value <= 1.02 * norm_of(operation, (2, 200))


def test_a_symbol_that_peaks_between_the_points_of_the_grid():
    window = Window((6,), (1,), (5,), (5,), (1,))
    operation = Convolution(np.array([[[-0.856, 0.467, 0.348, 0.21, 0.212, -1.0]]]), window=window)
    assert norm_of(operation, (1, 300)) <= convolution_norm(operation).value


def test_a_transposed_convolution_has_the_norm_of_its_transpose():
    K = np.random.default_rng(0).normal(size=(3, 2, 3, 3))
    zero, one = (0, 0), (1, 1)
    how = {"strides": (2, 2), "before": zero, "after": zero, "dilations": one, "output_padding": zero}
    operation = TransposedConvolution(K, **how)
    assert norm_of(operation, (3, 4, 4)) <= convolution_norm(operation).value


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_sizes_near_the_ends_of_float64(size):
    window = Window((3,), (1,), (1,), (1,), (1,))
    value = convolution_norm(Convolution(size * np.array([[[1.0, -2.0, 1.0]]]), window=window)).value
    assert 4.0 <= value / size < 4.1
    assert convolution_norm(Convolution(np.zeros((1, 1, 3)), window=window)) == NormBound(
        0.0, "absolute weights"
    )
