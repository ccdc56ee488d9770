"""What pindown writes is what it reads, and what onnxruntime computes."""

import gzip
from itertools import pairwise

import numpy as np
import onnx
import pytest
import scipy.sparse as sp

from pindown import ReluNetwork
from pindown.affine import dense
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io import load, save
from pindown.io._onnx.writer import onnx_bytes
from pindown.model.builder import Builder
from pindown.model.operations.softmax import Softmax
from tests.io.onnx_models import DATA, random_inputs, relative_gap, run_onnxruntime

ENDINGS = (".onnx", ".onnx.gz", ".safetensors")


def random_net(widths, seed=0, **facts):
    rng = np.random.default_rng(seed)
    pairs = pairwise(widths)
    return ReluNetwork.from_layers(
        [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in pairs], **facts
    )


def sparse_net():
    rng = np.random.default_rng(0)
    W = sp.random_array((300, 400), density=0.01, rng=rng, format="csr")
    return ReluNetwork.from_layers([(W, rng.normal(size=300)), (rng.normal(size=(2, 300)), np.zeros(2))])


def assert_same(a, b):
    assert a.widths == b.widths
    for (W, c), (V, d) in zip(a.layers, b.layers, strict=True):
        assert (dense(W) == dense(V)).all() and (c == d).all()
    assert (a.input_shape, a.output_activation) == (b.input_shape, b.output_activation)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("activation", [None, "softmax", "log_softmax", "sigmoid"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("single", [True, False])
def test_round_trip(tmp_path, ending, activation, shape, single):
    net = random_net((6, 5, 4, 3), input_shape=shape, output_activation=activation)
    if single:  # weights that float32 holds exactly
        net = ReluNetwork.from_layers(
            [(W.astype("f4"), b.astype("f4")) for W, b in net.layers],
            input_shape=shape,
            output_activation=activation,
        )
    path = tmp_path / f"net{ending}"
    save(net, path)
    assert load(path).relu_network() == net
    assert_same(load(path).relu_network(), net)


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip_of_a_sparse_network(tmp_path, ending):
    save(sparse_net(), tmp_path / f"net{ending}")
    assert_same(load(tmp_path / f"net{ending}").relu_network(), sparse_net())


def test_round_trip_of_one_affine_map_and_extreme_numbers(tmp_path):
    net = ReluNetwork.from_layers([([[1e300, -5e-324, 0.0]], [1 / 3])])
    save(net, tmp_path / "net.onnx")
    assert load(tmp_path / "net.onnx").relu_network() == net


def test_safetensors_keeps_notes_and_sparsity(tmp_path):
    net = ReluNetwork.from_layers(sparse_net().layers, notes=("one", "tw\u00f6"))
    save(net, tmp_path / "net.safetensors")
    back = load(tmp_path / "net.safetensors").relu_network()
    assert back == net and back.notes == net.notes and sp.issparse(back.layers[0].weight)


@pytest.mark.parametrize("activation", [None, "softmax", "log_softmax", "sigmoid"])
def test_onnxruntime_agrees_and_the_checker_accepts(tmp_path, activation):
    net = random_net((6, 8, 4), input_shape=(2, 3), output_activation=activation)
    save(net, tmp_path / "net.onnx", dtype="float32")
    data = (tmp_path / "net.onnx").read_bytes()
    onnx.checker.check_model(onnx.load_model_from_string(data), full_check=True)
    rows = random_inputs(net, 50)
    z = net(rows)
    share = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    ours = {None: z, "softmax": share, "log_softmax": np.log(share), "sigmoid": 1 / (1 + np.exp(-z))}
    assert relative_gap(ours[activation], run_onnxruntime(data, rows, net.input_shape)) < 1e-5


def test_file_declares_what_it_holds(tmp_path):
    save(random_net((6, 4, 2), input_shape=(2, 3)), tmp_path / "net.onnx")
    model = onnx.load(tmp_path / "net.onnx")
    entry = model.graph.input[0].type.tensor_type
    assert [d.dim_param or d.dim_value for d in entry.shape.dim] == ["batch", 2, 3]
    assert entry.elem_type == onnx.TensorProto.DOUBLE  # random float64 numbers do not fit float32
    assert [node.op_type for node in model.graph.node] == ["Reshape", "Gemm", "Relu", "Gemm"]
    assert (model.producer_name, model.ir_version, model.opset_import[0].version) == ("pindown", 8, 13)


@pytest.mark.parametrize("ending", ENDINGS)
def test_dtype_is_respected(tmp_path, ending):
    net = random_net((3, 4, 2))
    for dtype, rounded in (("auto", False), ("float64", False), ("float32", True)):
        save(net, tmp_path / f"net{ending}", dtype=dtype)
        expected = net.layers[0].weight.astype("f4") if rounded else net.layers[0].weight
        assert (load(tmp_path / f"net{ending}").relu_network().layers[0].weight == expected).all()
    with pytest.raises(ValueError, match="'auto', 'float32', 'float64'"):
        save(net, tmp_path / f"net{ending}", dtype="float16")


@pytest.mark.parametrize("ending", ENDINGS)
def test_overflow_of_float32_is_refused(tmp_path, ending):
    net = ReluNetwork.from_layers([([[1e39]], [0.0])])
    with pytest.raises(ModelFileError, match="float64"):
        save(net, tmp_path / f"net{ending}", dtype="float32")
    save(net, tmp_path / f"net{ending}")
    assert load(tmp_path / f"net{ending}").relu_network() == net


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_network_gives_the_same_bytes(tmp_path, ending):
    paths = [tmp_path / f"{k}{ending}" for k in "ab"]
    for path in paths:
        save(random_net((3, 4, 2)), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_real_network_survives(tmp_path):
    net = load(DATA / "tll_2d_n16_0.onnx.gz").relu_network()
    save(net, tmp_path / "net.onnx.gz")
    assert_same(load(tmp_path / "net.onnx.gz").relu_network(), net)
    assert gzip.decompress((tmp_path / "net.onnx.gz").read_bytes())


def test_more_than_two_gigabytes_are_refused_at_once(tmp_path):
    wide = sp.csr_array(([1.0], ([0], [0])), shape=(50_000, 50_000))
    net = ReluNetwork.from_layers([(wide, np.zeros(50_000))])
    with pytest.raises(ModelFileError, match="safetensors"):
        save(net, tmp_path / "net.onnx")
    save(net, tmp_path / "net.safetensors")
    assert load(tmp_path / "net.safetensors").relu_network() == net


def test_failed_writes_leave_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pindown.atomic_files.os.fsync", fail)
    with pytest.raises(ModelFileError, match="disk full"):
        save(random_net((3, 2)), path)
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["net.onnx"]


def test_paths_that_cannot_be_written(tmp_path):
    net = random_net((3, 2))
    nowhere = tmp_path / "missing" / "net.onnx"
    with pytest.raises(
        ModelFileError, match=f"^{nowhere} cannot be written: No such file or directory.$"
    ):
        save(net, nowhere)
    with pytest.raises(ModelFileError, match="endings"):
        save(net, tmp_path / "net.pt")
    odd = ReluNetwork.from_layers([([[1.0]], [0.0])], output_activation="tanh")
    with pytest.raises(UnsupportedModelError, match="tanh"):
        save(odd, tmp_path / "net.onnx")


@pytest.mark.parametrize(("axis", "length"), [(0, 1), (1, "batch")])
def test_models_that_mix_rows_keep_a_batch_of_one(axis, length):
    """Softmax along the batch is one everywhere for a row alone, and not for two together."""
    graph = Builder((1, 3))
    model = graph.model(graph.add(Softmax(axis), graph.input), input_shape=(3,))
    written = onnx.load_from_string(onnx_bytes(model))
    for entry in (*written.graph.input, *written.graph.output):
        first = entry.type.tensor_type.shape.dim[0]
        assert (first.dim_param or first.dim_value) == length
