"""Resizing by interpolation, beside torch and onnxruntime."""

import numpy as np
import pytest

from pindown.errors import UnsupportedModelError
from pindown.model.operations.resize import Resize
from tests.model.properties import check_operation, model_of
from tests.model.runtime import run_written

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SCALES = np.array([0.5, 2.0, 3.0, 1.5, 0.7, 2.9, 1 / 3, 1.3, 0.9, 2.1], dtype=np.float32)


def random_resize(rng, mode, coordinate=None):
    """Return a resizing that changes a shape, and that shape."""
    while True:
        rank = 2 if mode == "cubic" else int(rng.integers(1, 4))  # onnxruntime's cubic has two axes
        spatial = rng.integers(1, 9 if rank > 1 else 40, rank)
        shape = (1, 2, *spatial.tolist())
        words = {
            "mode": mode,
            "coordinate": coordinate or str(rng.choice(COORDINATES)),
            "nearest": str(rng.choice(ROUNDINGS)),
            "cubic": float(rng.choice([-0.75, -0.5])),
            "exclude_outside": mode == "cubic" and bool(rng.integers(2)),
        }
        if rng.integers(2):
            sizes = rng.integers(1, 16 if rank > 1 else 90, rank)
            return Resize.of(shape, sizes=(1, 2, *sizes.tolist()), **words), shape
        try:
            return Resize.of(
                shape, scales=(1.0, 1.0, *rng.choice(SCALES, rank).tolist()), **words
            ), shape
        except UnsupportedModelError:  # nothing is left, or nothing changes
            continue


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_files_compute_the_same_in_onnxruntime(mode):
    rng = np.random.default_rng(0)
    for _ in range(100):
        operation, shape = random_resize(rng, mode)
        rows = rng.normal(size=(1, int(np.prod(shape)))).astype(np.float32).astype(np.float64)
        expected = operation(rows.reshape(1, *shape)).ravel()
        made = run_written(model_of(operation, shape), rows, "float32").ravel()
        np.testing.assert_allclose(made, expected, rtol=0, atol=0 if mode == "nearest" else 5e-5)


def test_ties_are_decided_as_in_onnxruntime():
    # 13.5 and 14.5 in real numbers, one digit beside them in float32.
    for rounding, n, size in (("round_prefer_floor", 28, 83), ("round_prefer_ceil", 60, 18)):
        operation = Resize.of((1, 1, n), sizes=(1, 1, size), nearest=rounding)
        rows = np.arange(float(n))[None]
        expected = run_written(model_of(operation, (1, 1, n)), rows, "float32")
        np.testing.assert_array_equal(operation(rows.reshape(1, 1, 1, n)).ravel(), expected.ravel())


@pytest.mark.parametrize(
    ("mode", "name", "words"),
    [
        ("nearest", "nearest", {"coordinate": "asymmetric", "nearest": "floor"}),
        ("nearest", "nearest-exact", {"coordinate": "half_pixel", "nearest": "round_prefer_ceil"}),
        ("linear", "bilinear", {}),
        ("linear", "bilinear", {"coordinate": "align_corners"}),
        ("cubic", "bicubic", {}),
        ("cubic", "bicubic", {"coordinate": "align_corners"}),
    ],
)
def test_values_are_those_of_torch(mode, name, words):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    corners = {} if mode == "nearest" else {"align_corners": words.get("coordinate") == "align_corners"}
    for _ in range(40):
        spatial, sizes = rng.integers(1, 9, 2), rng.integers(1, 20, 2)
        x = rng.normal(size=(2, 1, 2, *spatial))
        wanted = torch.nn.functional.interpolate(
            torch.tensor(x[:, 0]), size=sizes.tolist(), mode=name, **corners
        )
        made = Resize.of(x.shape[1:], sizes=sizes.tolist(), axes=(-2, -1), mode=mode, **words)(x)
        np.testing.assert_allclose(made[:, 0], wanted.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("coordinate", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_all_that_is_asked_of_an_operation(mode, coordinate):
    operation, shape = random_resize(np.random.default_rng(2), mode, coordinate)
    check_operation(operation, shape, lowers=True, written=False)


def test_form_and_value_are_adjoint():
    rng = np.random.default_rng(3)
    for _ in range(60):
        operation, shape = random_resize(rng, str(rng.choice(["nearest", "linear", "cubic"])))
        x, form = rng.normal(size=(2, *shape)), rng.normal(size=(2, *operation.shape(shape)))
        back = operation.transposed(form, shape)
        assert back.shape == x.shape
        assert np.isclose((back * x).sum(), (form * operation(x)).sum(), rtol=1e-10, atol=1e-10)


def test_signed_parts_of_cubic_weights():
    operation = Resize.of((1, 1, 4, 5), sizes=(1, 1, 7, 9), mode="cubic")
    matrix = operation.linear(np.eye(20).reshape(20, 1, 1, 4, 5)).reshape(20, -1)
    positive, negative = (
        part.linear(np.eye(20).reshape(20, 1, 1, 4, 5)).reshape(20, -1) for part in operation.signed()
    )
    np.testing.assert_allclose(positive - negative, matrix, atol=1e-14)
    assert positive.min() >= 0 and negative.min() >= 0
    # Beyond the edge several weights fall on one entry and may cancel; inside, the parts are the parts.
    inside = 3 * 9 + 4
    np.testing.assert_allclose(positive[:, inside], np.maximum(matrix[:, inside], 0), atol=1e-14)


def test_an_old_word_is_written_by_positions():
    operation = Resize.of((1, 1, 4), sizes=(1, 1, 7), coordinate="tf_half_pixel_for_nn", nearest="floor")
    x = np.arange(4.0).reshape(1, 1, 1, 4)
    assert operation(x).ravel().tolist() == [0, 0, 1, 2, 2, 3, 3]
    check_operation(operation, (1, 1, 4), lowers=True)


def test_lengths_of_scales_are_those_of_float32():
    seven_tenths = float(np.float32(0.7))
    assert Resize.of((1, 1, 10), scales=(1, 1, seven_tenths)).sizes == (7,)  # not 6.99999988
    assert Resize.of((1, 1, 10), scales=(1, 1, 0.75)).sizes == (7,)


def test_nothing_to_do():
    operation = Resize.of((1, 2, 3), sizes=(1, 2, 3), mode="linear")
    assert operation.axes == ()
    check_operation(operation, (1, 2, 3), lowers=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"sizes": (1, 1, 8), "mode": "area"}, "'area' is not read, only with nearest, linear, cubic"),
        ({"sizes": (1, 1, 8), "coordinate": "tf_crop_and_resize"}, "'tf_crop_and_resize' is not read"),
        ({"sizes": (1, 1, 8), "nearest": "up"}, "'up' is not read"),
        ({"sizes": (1, 1, 8), "mode": "linear", "coordinate": "tf_half_pixel_for_nn"}, "mode nearest"),
        ({"sizes": (1, 1, 8), "antialias": True}, "antialias"),
        ({"sizes": (1, 1, 8), "scales": (1, 1, 2)}, "sizes or scales of 3 axes"),
        ({"sizes": (8,)}, "sizes or scales of 3 axes"),
        ({"scales": (1, 1, 0.0)}, "positive"),
        ({"scales": (1, 1, 0.1)}, "impossible or empty shape"),
        ({"scales": (1, 1, 1.1)}, "runtimes disagree"),
        ({"sizes": (1, 1, 10**9)}, "limit"),
    ],
)
def test_what_cannot_be_read_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        Resize.of((1, 1, 4), **words)
