"""Convolutions and transposed convolutions, beside torch and onnxruntime."""

import tracemalloc

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model.operations import _images
from pindown.model.operations.convolution import Convolution, TransposedConvolution
from pindown.model.operations.operation import Interval, as_fractions
from pindown.model.operations.windows import Window
from tests.model.properties import check_operation, model_of
from tests.model.runtime import run_written

torch = pytest.importorskip("torch")
functional = torch.nn.functional

CONVOLVE = (functional.conv1d, functional.conv2d, functional.conv3d)
TRANSPOSE = (functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d)


def random_convolution(rng):
    """Return a convolution with groups, strides, dilations and pads, and the shape of its input."""
    rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
    inside, made = rng.integers(1, 4, 2)
    if rng.uniform() < 0.3:
        inside = 1  # every channel on its own, or few of them
    kernel, strides, dilations = (rng.integers(1, most, rank) for most in (4, 5, 4))
    before, after = rng.integers(0, 4, (2, rank))
    spare = dilations * (kernel - 1) + 1 - before - after + rng.integers(0, 6, rank)
    window = Window(*(tuple(v.tolist()) for v in (kernel, strides, before, after, dilations)))
    bias = rng.normal(size=groups * made) if rng.uniform() < 0.7 else None
    weights = rng.normal(size=(groups * made, inside, *kernel))
    shape = (1, int(groups * inside), *np.maximum(1, spare).tolist())
    return Convolution(weights, bias, window=window, groups=groups), shape


def random_transpose(rng):
    """Return a transposed convolution that leaves something, and the shape of its input."""
    while True:
        rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 1, 2, 3]))
        inside, made = rng.integers(1, 4, 2)
        kernel, strides, dilations = (rng.integers(1, most, rank) for most in (4, 4, 3))
        pads = rng.integers(0, 3, (2, rank))
        added = [int(rng.integers(0, max(s, d))) for s, d in zip(strides, dilations, strict=True)]
        operation = TransposedConvolution(
            rng.normal(size=(groups * inside, made, *kernel)),
            rng.normal(size=groups * made) if rng.uniform() < 0.7 else None,
            strides=tuple(strides.tolist()),
            before=tuple(pads[0].tolist()),
            after=tuple(pads[1].tolist()),
            dilations=tuple(dilations.tolist()),
            output_padding=tuple(added),
            groups=groups,
        )
        shape = (1, int(groups * inside), *rng.integers(1, 6, rank).tolist())
        try:
            operation.shape(shape)
        except ValueError:
            continue
        return operation, shape


def around(before, after):
    """Return pads as torch takes them: from the last axis, before and after."""
    return [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]


def in_torch(operation, x):
    """Evaluate a convolution with torch; its pads are put on apart, since they need not be symmetric."""
    window = operation.window
    padded = functional.pad(torch.tensor(x[:, 0]), around(window.before, window.after))
    steps = {"stride": window.strides, "dilation": window.dilations, "groups": operation.groups}
    return CONVOLVE[operation.rank - 1](padded, *weights(operation), **steps)[:, None].numpy()


def transposed_in_torch(operation, x):
    """Evaluate a transposed convolution with torch, and cut its edges off apart."""
    steps = {"stride": operation.strides, "dilation": operation.dilations, "groups": operation.groups}
    steps["output_padding"] = operation.output_padding
    whole = TRANSPOSE[operation.rank - 1](torch.tensor(x[:, 0]), *weights(operation), **steps).numpy()
    axes = zip(whole.shape[2:], operation.before, operation.after, strict=True)
    return whole[(slice(None), slice(None), *(slice(a, n - b) for n, a, b in axes))][:, None]


def weights(operation):
    bias = operation.bias
    return torch.tensor(operation.kernel), None if bias is None else torch.tensor(bias)


@pytest.mark.parametrize(
    ("draw", "reference"), [(random_convolution, in_torch), (random_transpose, transposed_in_torch)]
)
def test_values_and_transposes_are_those_of_torch(draw, reference):
    rng = np.random.default_rng(0)
    for _ in range(150):
        operation, shape = draw(rng)
        x = rng.normal(size=(2, *shape))
        y = operation(x)
        assert y.shape[1:] == operation.shape(shape)
        np.testing.assert_allclose(y, reference(operation, x), rtol=0, atol=1e-12)
        form = rng.normal(size=y.shape)
        back = operation.transposed(form, shape)
        assert back.shape == x.shape
        assert np.isclose((form * operation.linear(x)).sum(), (back * x).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("draw", [random_convolution, random_transpose])
def test_files_compute_the_same_in_onnxruntime(draw):
    rng = np.random.default_rng(1)
    for _ in range(110):
        operation, shape = draw(rng)
        if (
            draw is random_transpose
            and max(np.subtract(operation.output_padding, operation.strides)) >= 0
        ):
            continue  # onnxruntime refuses to add a whole stride
        rows = rng.normal(size=(1, int(np.prod(shape)))).astype(np.float32).astype(np.float64)
        expected = operation(rows.reshape(1, *shape)).ravel()
        made = run_written(model_of(operation, shape), rows, "float32").ravel()
        np.testing.assert_allclose(made, expected, rtol=0, atol=2e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("draw", [random_convolution, random_transpose])
def test_all_that_is_asked_of_an_operation(draw, seed):
    operation, shape = draw(np.random.default_rng(seed))
    check_operation(operation, shape, lowers=True, written=False)


def test_a_whole_stride_may_be_added_after_the_output():
    rng = np.random.default_rng(0)
    steps = {"strides": (1, 1), "before": (0, 1), "after": (0, 1), "dilations": (2, 3)}
    operation = TransposedConvolution(rng.normal(size=(2, 1, 2, 2)), **steps, output_padding=(1, 2))
    x = rng.normal(size=(1, 1, 2, 3, 4))
    np.testing.assert_allclose(operation(x), transposed_in_torch(operation, x), rtol=0, atol=1e-12)
    check_operation(operation, (1, 2, 3, 4), lowers=True, written=False)


def slide_of(x, kernel):
    lengths = tuple(n - k + 1 for n, k in zip(x.shape[2:], kernel.shape[2:], strict=True))
    return _images.Slide((1, 1), (1, 1), (0, 0), lengths)


@pytest.mark.parametrize(("channels", "inside"), [(6, 6), (6, 2), (6, 1)])
def test_pieces_of_any_size_make_the_same(monkeypatch, channels, inside):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(5, channels, 9, 8)), rng.normal(size=(6, inside, 3, 2))
    slide, groups = slide_of(x, kernel), channels // inside
    whole = _images.correlate(x, kernel, slide, groups)
    form = rng.normal(size=whole.shape)
    back = _images.correlate_back(form, kernel, slide, (9, 8), groups)
    for size in (1, 40, 200, 800, 5000):
        monkeypatch.setattr(_images, "_PIECE", size)
        monkeypatch.setattr(_images, "_BLOCK", size)
        np.testing.assert_allclose(_images.correlate(x, kernel, slide, groups), whole, atol=1e-12)
        spread = _images.correlate_back(form, kernel, slide, (9, 8), groups)
        np.testing.assert_allclose(spread, back, atol=1e-12)


def test_windows_are_not_all_in_memory_at_once():
    operation = Convolution(
        np.ones((4, 32, 5, 5)), window=Window((5, 5), (1, 1), (2, 2), (2, 2), (1, 1))
    )
    x = np.ones((4, 1, 32, 96, 96))  # all windows of one image: 59 MB
    tracemalloc.start()
    try:
        operation(x)
        operation.transposed(np.ones((4, 1, 4, 96, 96)), x.shape[1:])
        assert tracemalloc.get_traced_memory()[1] < 48e6
    finally:
        tracemalloc.stop()


def test_rational_values_are_exact():
    window = Window((2,), (1,), (1,), (0,), (1,))
    operation = Convolution([[[0.1, 0.2]]], [0.3], window=window)
    x = as_fractions(np.array([[[[0.7, 0.9]]]]))
    first, second = operation(x).ravel()
    a, b, c, p, q = as_fractions(np.array([0.1, 0.2, 0.3, 0.7, 0.9]))
    assert (first, second) == (b * p + c, a * p + b * q + c)


def test_counts_are_those_of_a_framework():
    layer = torch.nn.Conv2d(6, 8, 3, stride=2, padding=1, groups=2)
    window = Window((3, 3), (2, 2), (1, 1), (1, 1), (1, 1))
    operation = Convolution(
        layer.weight.detach().numpy(), layer.bias.detach().numpy(), window=window, groups=2
    )
    assert operation.name == "Conv2d"
    assert operation.n_parameters == sum(p.numel() for p in layer.parameters())
    assert operation.multiply_adds((1, 6, 9, 9)) == (8 * 5 * 5) * (3 * 3 * 3)  # outputs, points
    back = torch.nn.ConvTranspose2d(6, 8, 3, stride=2, padding=1, output_padding=1, groups=2)
    transposed = TransposedConvolution(
        back.weight.detach().numpy(),
        back.bias.detach().numpy(),
        strides=(2, 2),
        before=(1, 1),
        after=(1, 1),
        dilations=(1, 1),
        output_padding=(1, 1),
        groups=2,
    )
    assert transposed.name == "ConvTranspose2d"
    assert transposed.n_parameters == sum(p.numel() for p in back.parameters())
    assert transposed.multiply_adds((1, 6, 9, 9)) == (6 * 9 * 9) * (4 * 3 * 3)  # inputs, points


def test_bounds_hold_and_are_attained():
    rng = np.random.default_rng(0)
    window = Window((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    operation = Convolution(rng.normal(size=(1, 2, 3, 3)), window=window)
    box = Interval(np.full((1, 1, 2, 3, 3), -1.0), np.full((1, 1, 2, 3, 3), 2.0))
    low, high = operation.interval(box)
    worst = np.where(operation.kernel[0] > 0, 2.0, -1.0)[None, None]  # for the pixel in the middle
    value = operation(worst)[0, 0, 0, 1, 1]
    assert value <= high[0, 0, 0, 1, 1] <= value + 1e-12
    assert (low < high).all()


def test_bounds_hold_where_long_sums_round():
    """Ones that are added to 2**53 one by one are lost: by so many units the sum may be off."""
    n = 4000
    operation = Convolution(np.ones((1, 1, n)), window=Window((n,), (1,), (0,), (0,), (1,)))
    x = np.ones((1, 1, 1, n))
    x[..., 0] = 2.0**53
    low, high = (int(end.item()) for end in operation.interval(Interval(x, x)))
    assert low <= 2**53 + n - 1 <= high


WINDOW = Window((2, 2), (1, 1), (0, 0), (0, 0), (1, 1))
CUT = {"strides": (1,), "before": (2,), "after": (1,), "dilations": (1,), "output_padding": (0,)}


@pytest.mark.parametrize(
    ("make", "shape", "message"),
    [
        (lambda: Convolution(np.ones((2, 3, 2, 2)), window=WINDOW), (1, 2, 4, 4), "3 channels"),
        (lambda: Convolution(np.ones((2, 3, 2, 2)), window=WINDOW), (1, 3, 4), "2 spatial axes"),
        (
            lambda: Convolution(np.ones((2, 3, 2, 2)), window=WINDOW),
            (1, 3, 1, 4),
            "does not fit an axis",
        ),
        (lambda: Convolution(np.ones((3, 3, 2, 2)), window=WINDOW, groups=2), None, "cut into 2 groups"),
        (lambda: Convolution(np.ones((3, 3, 2, 2)), np.ones(2), window=WINDOW), None, "does not fit 3"),
        (lambda: Convolution(np.ones((3, 3, 3, 3)), window=WINDOW), None, "does not fit Window"),
        (lambda: TransposedConvolution(np.ones((1, 1, 2)), **CUT), (1, 1, 2), "cuts off all"),
        (lambda: TransposedConvolution(np.ones((1, 1, 2)), **CUT), (1, 2, 2), "1 channels"),
    ],
)
def test_what_does_not_fit_is_refused(make, shape, message):
    with pytest.raises(ValueError, match=message):
        make().shape(shape)


def test_claims_that_would_take_too_much_memory_are_refused():
    huge = (10**6,)
    window = Window((1, 1), huge * 2, huge * 2, huge * 2, (1, 1))
    with pytest.raises(UnsupportedModelError, match="padded image"):
        Convolution(np.ones((1, 1, 1, 1)), window=window).shape((1, 1, 2, 2))
    steps = {"strides": (1, 1), "dilations": huge * 2, "output_padding": (0, 0)}
    far = TransposedConvolution(
        np.ones((1, 1, 2, 2)), before=(500_000,) * 2, after=(500_000,) * 2, **steps
    )
    with pytest.raises(UnsupportedModelError, match="before it is cut"):
        far.shape((1, 1, 3, 3))
