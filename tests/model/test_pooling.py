"""Average and max pooling, beside torch and onnxruntime."""

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model.operations.operation import Interval
from pindown.model.operations.pooling import AveragePool, MaxPool
from pindown.model.operations.windows import Window, window_positions
from tests.model.properties import check_in_rationals, check_operation, model_of
from tests.model.runtime import run_written

torch = pytest.importorskip("torch")
functional = torch.nn.functional

AVERAGE = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)
MAXIMUM = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)


def random_window(rng, *, dilated, symmetric):
    """Return a window and the shape of a tensor it fits; at most half a kernel is padding."""
    rank = int(rng.integers(1, 4))
    kernel, strides = (rng.integers(1, 5, rank) for _ in range(2))
    dilations = rng.integers(1, 3 if dilated else 2, rank)
    before, after = (rng.integers(0, kernel // 2 + 1) for _ in range(2))
    after = before if symmetric else after
    spare = dilations * (kernel - 1) + 1 - before - after + rng.integers(0, 6, rank)
    numbers = (tuple(v.tolist()) for v in (kernel, strides, before, after, dilations))
    window = Window(*numbers, ceil_mode=bool(rng.integers(2)))
    return window, (1, 2, *np.maximum(1, spare).tolist())


def usable(operation, shape):
    try:
        operation.shape(shape)
    except UnsupportedModelError:  # a window that lies wholly in the padding
        return False
    return True


def test_values_are_those_of_torch():
    rng = np.random.default_rng(0)
    tried = 0
    for _ in range(160):
        window, shape = random_window(rng, dilated=True, symmetric=True)
        x = rng.normal(size=(2, *shape)) - 2.0
        places = (window.kernel, window.strides, window.before)
        given, rank = torch.tensor(x[:, 0]), len(window.kernel)
        if usable(MaxPool(window), shape):
            expected = MAXIMUM[rank - 1](given, *places, window.dilations, window.ceil_mode)
            np.testing.assert_array_equal(MaxPool(window)(x)[:, 0], expected.numpy())
            tried += 1
        if any(d != 1 for d in window.dilations):
            continue  # torch's averages have no dilation
        for counted in (False, True):
            expected = AVERAGE[rank - 1](given, *places, window.ceil_mode, counted)
            made = AveragePool(window, counted)(x)[:, 0]
            np.testing.assert_allclose(made, expected.numpy(), rtol=0, atol=1e-12)
            tried += 1
    assert tried > 150


@pytest.mark.parametrize("kind", ["max", "average", "counted"])
def test_files_compute_the_same_in_onnxruntime(kind):
    rng = np.random.default_rng(1)
    tried = 0
    while tried < 60:
        window, shape = random_window(rng, dilated=True, symmetric=False)
        operation = MaxPool(window) if kind == "max" else AveragePool(window, kind == "counted")
        if not usable(operation, shape):
            continue
        tried += 1
        rows = rng.normal(size=(1, int(np.prod(shape)))).astype(np.float32).astype(np.float64)
        expected = operation(rows.reshape(1, *shape)).ravel()
        made = run_written(model_of(operation, shape), rows, "float32").ravel()
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["max", "average", "counted"])
def test_all_that_is_asked_of_an_operation(kind, seed):
    rng = np.random.default_rng(seed)
    while True:
        window, shape = random_window(rng, dilated=True, symmetric=False)
        operation = MaxPool(window) if kind == "max" else AveragePool(window, kind == "counted")
        if usable(operation, shape) and np.prod(shape) < 400:
            break
    check_operation(operation, shape, lowers=True, written=False)


@pytest.mark.parametrize("counted", [False, True])
def test_averages_and_their_transposes_are_adjoint(counted):
    rng = np.random.default_rng(2)
    for kernel in ((3, 3), (7, 2), (11, 12)):  # also fewer windows than points
        window = Window(kernel, (2, 3), (1, 0), (0, 1), (1, 1), ceil_mode=True)
        x = rng.normal(size=(2, 1, 3, 11, 12))
        operation = AveragePool(window, counted)
        form = rng.normal(size=(2, *operation.shape(x.shape[1:])))
        back = operation.transposed(form, x.shape[1:])
        np.testing.assert_allclose((back * x).sum(), (form * operation(x)).sum(), rtol=1e-12)


def test_the_form_goes_to_the_largest_entry():
    window = Window((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))
    x = np.array([[1.0, 2.0, 5.0, 5.0], [3.0, 0.0, 5.0, 4.0]]).reshape(1, 1, 1, 2, 4)
    (back,) = MaxPool(window).pull_back(np.array([[[[[7.0, 9.0]]]]]), x)
    assert back.reshape(2, 4).tolist() == [[0, 0, 9, 0], [7, 0, 0, 0]]  # the first of equal ones


def test_a_dominating_entry_is_exact():
    window = Window((3,), (3,), (0,), (0,), (1,))
    low = np.array([4.0, 0.0, 1.0, 0.0, 1.0, -1.0]).reshape(1, 1, 1, 6)
    high = np.array([5.0, 4.0, 2.0, 3.0, 2.0, 0.0]).reshape(1, 1, 1, 6)
    relaxation = MaxPool(window).relaxation(Interval(low, high))
    forms, offset = relaxation.upper(np.eye(2).reshape(1, 2, 1, 1, 2))
    assert forms[0].reshape(2, 6).tolist() == [[1, 0, 0, 0, 0, 0], [0] * 6]
    assert offset[0, 0] < 1e-12 and 3.0 <= offset[0, 1] < 3.0 + 1e-12  # the largest upper end
    forms, offset = relaxation.upper(-np.eye(2).reshape(1, 2, 1, 1, 2))
    assert forms[0].reshape(2, 6).tolist() == [[-1, 0, 0, 0, 0, 0], [0, 0, 0, 0, -1, 0]]
    assert (offset < 1e-12).all()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_equal_lower_ends_the_larger_upper_one_counts(order):
    ends = np.array([[1.0, 1.0], [1.0, 3.0]])[:, order].reshape(2, 1, 1, 1, 2)
    relaxation = MaxPool(Window((2,), (2,), (0,), (0,), (1,))).relaxation(Interval(*ends))
    assert relaxation.exact.all() and relaxation.entry.item() == order.index(1)


def test_relaxations_choose_as_a_search_of_all_windows_does():
    rng = np.random.default_rng(3)
    window = Window((3, 2), (2, 1), (1, 1), (1, 0), (1, 2))
    low = np.round(rng.normal(size=(1, 1, 1, 7, 8)), 1)  # with ties
    high = low + np.round(rng.uniform(0, 0.8, size=low.shape), 1)
    relaxation = MaxPool(window).relaxation(Interval(low, high))
    _, table = window_positions((7, 8), window)
    seen = [row[row >= 0] for row in table]
    for i, (entry, exact, above) in enumerate(
        zip(relaxation.entry.ravel(), relaxation.exact.ravel(), relaxation.above.ravel(), strict=True)
    ):
        lows, highs = low.ravel()[seen[i]], high.ravel()[seen[i]]
        assert entry in seen[i] and low.ravel()[entry] == lows.max() and above == highs.max()
        dominates = [all(a >= b for j, b in enumerate(highs) if j != k) for k, a in enumerate(lows)]
        assert exact == any(dominates)
    assert 0 < relaxation.exact.mean() < 1


def test_forms_of_maxima_hold_in_rationals():
    check_in_rationals(MaxPool(Window((3,), (1,), (1,), (0,), (1,))), (1, 2, 5))


def test_unbounded_boxes_say_nothing_false():
    window = Window((2,), (2,), (0,), (0,), (1,))
    low = np.array([-np.inf, 0.0, 1.0, 2.0]).reshape(1, 1, 1, 4)
    high = np.array([np.inf, 1.0, 2.0, 3.0]).reshape(1, 1, 1, 4)
    bounds = MaxPool(window).interval(Interval(low, high))
    assert bounds.lower.ravel().tolist() == [0, 2] and bounds.upper.ravel().tolist() == [np.inf, 3]
    pulled = MaxPool(window).relaxation(Interval(low, high)).upper(np.ones((1, 1, 1, 1, 2)))
    assert pulled.offset[0, 0] == np.inf


def test_names_and_counts():
    window = Window((2, 2), (2, 2), (0, 0), (0, 0), (1, 1))
    for operation, name in ((MaxPool(window), "MaxPool2d"), (AveragePool(window), "AvgPool2d")):
        assert operation.name == name
        assert operation.n_parameters == operation.multiply_adds((1, 2, 4, 4)) == 0


@pytest.mark.parametrize("kind", [MaxPool, AveragePool])
def test_what_does_not_fit_is_refused(kind):
    padded = Window((2,), (1,), (2,), (0,), (1,))
    with pytest.raises(UnsupportedModelError, match="wholly in the padding"):
        kind(padded).shape((1, 1, 4))
    with pytest.raises(ValueError, match="1 spatial axes"):
        kind(padded).shape((1, 1, 4, 4))
    assert AveragePool(padded, count_padding=True)(np.ones((1, 1, 1, 2))).ravel().tolist() == [0, 0.5, 1]
