"""Sliding windows and residual graphs, beside torch and by hand."""

import itertools

import numpy as np
import pytest

from pindown.model._lowering import Lowering
from pindown.model.operations.windows import (
    Window,
    averaging_matrix,
    convolution_matrix,
    window_positions,
)

torch = pytest.importorskip("torch")
functional = torch.nn.functional

WINDOWS = [
    Window((3, 2), (1, 2), (0, 0), (0, 0), (1, 1)),
    Window((2, 3), (2, 1), (1, 0), (0, 2), (1, 1)),
    Window((2, 2), (1, 3), (0, 1), (1, 1), (2, 3)),
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_are_those_of_torch(window, groups):
    rng = np.random.default_rng(0)
    image, kernel = rng.normal(size=(4, 6, 7)), rng.normal(size=(6, 4 // groups, *window.kernel))
    shape, matrix = convolution_matrix(kernel, image.shape, window, groups)
    (top, left), (bottom, right) = window.before, window.after
    padded = functional.pad(torch.tensor(image)[None], (left, right, top, bottom))
    steps = {"stride": window.strides, "dilation": window.dilations, "groups": groups}
    expected = functional.conv2d(padded, torch.tensor(kernel), **steps)[0].numpy()
    assert shape == expected.shape
    np.testing.assert_allclose((matrix @ image.ravel()).reshape(shape), expected, atol=1e-12)


SIZES = list(itertools.product((2, 3), (1, 2, 3), (0, 1), (5, 6)))


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_pooling_windows_are_those_of_torch(ceil_mode):
    rng = np.random.default_rng(1)
    for kernel, stride, pad, size in SIZES:
        window = Window((kernel,), (stride,), (pad,), (pad,), (1,), ceil_mode)
        image = rng.normal(size=(2, size))
        given = torch.tensor(image)[None]
        for counted in (True, False):
            shape, matrix = averaging_matrix(image.shape, window, counted)
            expected = functional.avg_pool1d(given, kernel, stride, pad, ceil_mode, counted)[0].numpy()
            assert shape == expected.shape
            np.testing.assert_allclose((matrix @ image.ravel()).reshape(shape), expected, atol=1e-12)
        _, table = window_positions((size,), window)
        largest = np.where(table >= 0, image[:, table], -np.inf).max(axis=2)
        expected = functional.max_pool1d(given, kernel, stride, pad, 1, ceil_mode)[0].numpy()
        np.testing.assert_array_equal(largest, expected)


def test_maxima_along_either_axis_are_those_of_torch():
    rng = np.random.default_rng(2)
    for window in WINDOWS[:2]:
        lowering = Lowering()
        x = lowering.input((1, 2, 5, 6))
        y = lowering.max_pool(x, window)
        net = lowering.network(y.reshape((y.constant.size,)))
        image = rng.normal(size=(2, 5, 6))
        (top, left), (bottom, right) = window.before, window.after
        padded = functional.pad(torch.tensor(image)[None], (left, right, top, bottom), value=-np.inf)
        expected = functional.max_pool2d(padded, window.kernel, window.strides).numpy()
        assert y.shape == expected.shape
        np.testing.assert_allclose(net(image.ravel()), expected.ravel(), atol=1e-12)


def test_an_input_that_is_read_late_and_then_early_stays():
    """The deep reader comes first; the shallow one, made later, must not let the input go."""
    lowering = Lowering()
    x = lowering.input((2,))
    deep = lowering.relu(lowering.relu(lowering.relu(x).shift(np.array(-1.0))).add(x))
    early = lowering.relu(x.shift(np.array(0.5)))
    net = lowering.network(deep.add(early))
    X = np.random.default_rng(3).normal(size=(50, 2)) * 3
    relu = lambda z: np.maximum(z, 0)  # noqa: E731
    np.testing.assert_allclose(net(X), relu(relu(relu(X) - 1) + X) + relu(X + 0.5), atol=1e-12)


def test_constants_of_sums_are_added():
    lowering = Lowering()
    x = lowering.input((2,))
    both = x.shift(np.array([1.0, 2.0])).add(x.shift(np.array(10.0)))
    assert both.at([np.array([0.5, -1.0])]).tolist() == [12.0, 10.0]
