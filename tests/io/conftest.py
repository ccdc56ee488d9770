"""Fixtures that several readers' tests share."""

import numpy as np
import pytest

from tests.io.onnx_models import make_model


@pytest.fixture
def tiny_model():
    """A 3-4-2 network as a ModelProto."""
    rng = np.random.default_rng(0)
    weights = {
        "W1": rng.normal(size=(4, 3)).astype("f4"),
        "b1": rng.normal(size=4).astype("f4"),
        "W2": rng.normal(size=(2, 4)).astype("f4"),
        "b2": rng.normal(size=2).astype("f4"),
    }
    nodes = [
        ("Gemm", ["x", "W1", "b1"], ["z"], {"transB": 1}),
        ("Relu", ["z"], ["a"], {}),
        ("Gemm", ["a", "W2", "b2"], ["y"], {"transB": 1}),
    ]
    return make_model(nodes, weights, ["n", 3], ["n", 2])


@pytest.fixture
def write_model(tmp_path):
    """Return a function that writes a ModelProto and returns its path."""

    def write(model, name="model.onnx"):
        path = tmp_path / name
        path.write_bytes(model.SerializeToString())
        return path

    return write
