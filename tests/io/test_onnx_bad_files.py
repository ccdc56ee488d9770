"""Damaged, hostile and unsupported ONNX files: each is refused in one clear line."""

import gzip
import os
import threading

import numpy as np
import pytest

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io import files, load
from pindown.io._onnx.reader import model_from_onnx
from tests.io.onnx_models import dense_model, i64, make_model, read, refusal


def test_missing_empty_directory(tmp_path):
    for name in ("missing.onnx", "missing.onnx.gz", "missing.safetensors", "missing.pt"):
        with pytest.raises(ModelFileError, match="no such file"):
            load(tmp_path / name)
    for name in ("empty.onnx", "empty.onnx.gz", "empty.safetensors", "empty.pth"):
        (tmp_path / name).touch()
        with pytest.raises(ModelFileError, match="empty"):
            load(tmp_path / name)
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ModelFileError, match="directory"):
        load(tmp_path / "folder.onnx")


def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(ModelFileError, match="regular file"):
        load(tmp_path / "pipe.onnx")


@pytest.mark.parametrize("name", ["model.npz", "model", "model.gz", "model.onnx.bak"])
def test_unknown_endings(tmp_path, name):
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(ModelFileError, match=r"\.safetensors"):
        load(tmp_path / name)


def test_every_truncation_is_refused(tiny_model):
    data = tiny_model.SerializeToString()
    for n in range(len(data)):
        with pytest.raises((ModelFileError, UnsupportedModelError)):
            model_from_onnx(data[:n])


@pytest.mark.parametrize(
    "content", [b"not a model", b"\x80\x04\x95", b"PK\x03\x04", b"\x1f\x8b\x08", b"\0" * 100]
)
def test_other_files_are_not_onnx(content):
    with pytest.raises(ModelFileError):
        model_from_onnx(content)


def test_gzip_that_is_damaged(tiny_model, tmp_path):
    packed = gzip.compress(tiny_model.SerializeToString())
    path = tmp_path / "model.onnx.gz"
    for broken in (
        packed[:-20],
        packed[:10],
        packed[:-8] + bytes(8),
        b"plain",
        packed[:30] + b"x" + packed[31:],
    ):
        path.write_bytes(broken)
        with pytest.raises(ModelFileError, match="gzip"):
            load(path)
    path.write_bytes(packed)
    assert load(path) == read(tiny_model)


def test_gzip_bomb_stops_at_the_limit(tmp_path):
    path = tmp_path / "bomb.onnx.gz"
    path.write_bytes(gzip.compress(bytes(2**26)))
    assert path.stat().st_size < 2**17
    with pytest.raises(ModelFileError, match="unpacks to more than 1 MB"):
        files.read_gzip(path, limit=2**20)


def test_a_tensor_that_claims_ten_gigabytes(tiny_model):
    tiny_model.graph.initializer[0].dims[:] = [50_000, 50_000]
    assert "W1" in refusal(tiny_model)
    tiny_model.graph.initializer[0].dims[:] = [12_000, 12_000]
    assert "W1" in refusal(tiny_model, ModelFileError)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("op", ["Gemm", "MatMul", "Add", "Conv", "BatchNormalization", "Concat"])
def test_weights_that_are_not_finite_are_named(op, bad):
    shapes = {
        "Gemm": [(3, 2)],
        "MatMul": [(3, 2)],
        "Add": [(3,)],
        "Conv": [(1, 3, 2)],
        "Concat": [(1, 3)],
    }
    weights = {f"w{i}": np.ones(s, "f4") for i, s in enumerate(shapes.get(op, [(3,)] * 4))}
    weights["w0"].flat[1] = bad
    attributes = {"axis": 1} if op == "Concat" else {}
    in_shape = [1, 3, 4] if op == "Conv" else [1, 3]
    message = refusal(
        make_model([(op, ["x", *weights], ["y"], attributes)], weights, in_shape), ModelFileError
    )
    assert "'w0'" in message and "NaN or infinite" in message


def test_weights_that_overflow_when_merged_are_refused():
    big = np.full((2, 2), 1e300)
    nodes = [("MatMul", ["x", "W"], ["h"], {}), ("MatMul", ["h", "W"], ["y"], {})]
    model = read(make_model(nodes, {"W": big}, ["n", 2], kind=11))
    assert "float32" in model.notes[0]
    with pytest.raises(UnsupportedModelError, match="overflow"):
        model.relu_network()


@pytest.mark.parametrize(
    "op, words",
    [
        ("Loop", "control flow"),
        ("Scan", "control flow"),
        ("Bernoulli", "evaluation mode"),
        ("ai.onnx.ml:TreeEnsembleRegressor", "tree"),
        ("ai.onnx.ml:SVMRegressor", "kernel"),
        ("ai.onnx.ml:LabelEncoder", "output=NAME"),
        ("TopK", "output=NAME"),
        ("StringNormalizer", "text"),
        ("Det", "docs/models.md"),
        ("com.microsoft.nchwc:Conv", "extended"),
        ("org.pytorch.aten:ATen", "custom domain 'org.pytorch.aten'"),
    ],
)
def test_what_is_not_read_is_named_with_a_way_out(op, words):
    message = refusal(dense_model(["n", 3], op=op))
    name = op.rpartition(":")[2]
    assert f"node 1 '{name}_1' ({name})" in message and words in message


@pytest.mark.parametrize("op", ["Gelu", "Tanh", "Sin", "Softplus"])
def test_what_is_not_piecewise_linear_is_named_where_the_exact_form_is_asked_for(op):
    model = dense_model(["n", 3], op=op)
    model.opset_import[0].version, model.ir_version = 20, 9
    with pytest.raises(UnsupportedModelError, match=f"node 1 '{op}_1'"):
        read(model).relu_network()


def test_custom_domains_are_named(tiny_model):
    tiny_model.graph.node[1].domain = "com.example"
    assert "'com.example'" in refusal(tiny_model)


@pytest.mark.parametrize("version, kind", [(6, UnsupportedModelError), (1000, UnsupportedModelError)])
def test_operator_sets_out_of_range(tiny_model, version, kind):
    tiny_model.opset_import[0].version = version
    assert str(version) in refusal(tiny_model, kind)


def test_operator_set_missing(tiny_model):
    del tiny_model.opset_import[:]
    assert "operator set" in refusal(tiny_model, ModelFileError)


def test_cyclic_graph(tiny_model):
    tiny_model.graph.node[0].input[0] = "y"
    assert "circle" in refusal(tiny_model, ModelFileError)
    tiny_model.graph.node[0].input[0] = "z"
    assert "circle" in refusal(tiny_model, ModelFileError)


def test_tensor_made_twice_and_tensor_made_never(tiny_model):
    tiny_model.graph.node[0].output[0] = "y"
    assert "two nodes" in refusal(tiny_model, ModelFileError)
    tiny_model.graph.node[0].output[0] = "elsewhere"
    assert "'z'" in refusal(tiny_model, ModelFileError)


HUGE = {
    "input": ([("Relu", ["x"], ["y"], {})], {}, [1, 10**9]),
    "many axes": ([("Reshape", ["x", "s"], ["y"], {})], {"s": np.full(10**5, 2**62, i64)}, [1, 4]),
    "expand": ([("Expand", ["x", "s"], ["y"], {})], {"s": np.array([10**6, 10**6], i64)}, [1, 1]),
    "tile": ([("Tile", ["x", "s"], ["y"], {})], {"s": np.array([10**9, 10**9], i64)}, [1, 1]),
    "pad": ([("Pad", ["x", "s"], ["y"], {})], {"s": np.array([0, 10**12, 0, 0], i64)}, [1, 4]),
    "pad that is cut again": ([("Pad", ["x", "s"], ["y"], {})],
                              {"s": np.array([0, -(2**63), 0, 2**63 - 1], i64)}, [1, 4]),
    "pad of what is cut off": ([("Pad", ["x", "s"], ["y"], {})],
                               {"s": np.array([0, 10**12, 0, -(10**12)], i64)}, [1, 4]),
    "constant": ([("ConstantOfShape", ["s"], ["c"], {}), ("Add", ["x", "c"], ["y"], {})],
                 {"s": np.array([2**40], i64)}, [1, 1]),
    "range": ([("Range", ["a", "b", "c"], ["r"], {}), ("Add", ["x", "r"], ["y"], {})],
              {"a": np.array(0, i64), "b": np.array(2**60, i64), "c": np.array(1, i64)}, [1, 1]),
    "broadcast": ([("Add", ["a", "b"], ["c"], {}), ("Add", ["x", "c"], ["y"], {})],
                  {"a": np.ones((10**5, 1), "f4"), "b": np.ones((1, 10**5), "f4")}, [1, 1]),
    "product": ([("MatMul", ["a", "b"], ["c"], {}), ("Add", ["x", "c"], ["y"], {})],
                {"a": np.ones((10**5, 1), "f4"), "b": np.ones((1, 10**5), "f4")}, [1, 1]),
    "pads of a convolution": ([("Conv", ["x", "K"], ["y"], {"pads": [10**6, 10**6, 10**6, 10**6]})],
                              {"K": np.ones((1, 1, 1, 1), "f4")}, [1, 1, 4, 4]),
    "kernel of a pool": ([("MaxPool", ["x"], ["y"], {"kernel_shape": [10**9]})], {}, [1, 1, 4]),
}  # fmt: skip
LARGE = {
    "windows": ([("AveragePool", ["x"], ["y"], {"kernel_shape": [1000, 1000]})], {}, [1, 1, 1999, 1999]),
    "channels": ([("Conv", ["x", "K"], ["y"], {})], {"K": np.ones((900, 900, 3, 3), "f4")},
                 [1, 900, 40, 40]),
    "gather": ([("Gather", ["x", "i"], ["y"], {"axis": 1})], {"i": np.zeros((3000, 3000), i64)}, [1, 2]),
}  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", HUGE)
def test_huge_claims_are_refused_before_memory_is_spent(case):
    nodes, weights, in_shape = HUGE[case]
    data = make_model(nodes, weights, in_shape).SerializeToString()
    with pytest.raises((UnsupportedModelError, ModelFileError)):
        model_from_onnx(data)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("case", LARGE)
def test_what_is_bearable_as_a_model_need_not_be_as_matrices(case):
    nodes, weights, in_shape = LARGE[case]
    model = read(make_model(nodes, weights, in_shape))
    with pytest.raises(UnsupportedModelError, match="limit"):
        model.relu_network()


@pytest.mark.timeout(120)
def test_doubling_again_and_again_is_refused():
    nodes = [("Concat", [f"t{k}", f"t{k}"], [f"t{k + 1}"], {"axis": 1}) for k in range(40)]
    nodes = [("Identity", ["x"], ["t0"], {}), *nodes, ("Relu", ["t40"], ["y"], {})]
    assert "limit" in refusal(make_model(nodes, {}, [1, 4]))


@pytest.mark.timeout(120)
def test_thousands_of_layers_are_read():
    nodes = [("Relu", [f"t{k}"], [f"t{k + 1}"], {}) for k in range(3_000)]
    nodes[0] = ("Relu", ["x"], ["t1"], {})
    nodes.append(("Identity", ["t3000"], ["y"], {}))
    assert len(read(make_model(nodes, {}, [1, 1])).nodes) == 3_000


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "broken.onnx"
    path.write_bytes(b"broken")
    with pytest.raises(ModelFileError, match=r"broken\.onnx: "):
        load(path)


def test_reading_from_several_threads(tiny_model):
    data = tiny_model.SerializeToString()
    nets = []
    threads = [threading.Thread(target=lambda: nets.append(model_from_onnx(data))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(nets)) == 1 and len(nets) == 8
