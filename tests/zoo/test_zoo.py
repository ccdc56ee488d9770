"""Every model of the zoo is read, says what onnxruntime or torch says, and is counted as they count.

A core runs with every commit; the rest, with all pictures of 224 x 224, is slow.
"""

import gzip
import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import pindown as pn
from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.model import Model
from tests.zoo.comparing import (
    IntegerGap,
    compare,
    cost_of_evaluating,
    cost_of_reading,
    fresh,
    gap,
    integer_gap,
    node_gaps,
)
from tests.zoo.exports import INTEGERS, KINDS, OPSETS, SMALL_SHAPE, run
from tests.zoo.keras_files import KERAS, write_refused
from tests.zoo.models import NORMS, ZOO, inputs_of, module_of, multiply_adds, plain_attention
from tests.zoo.sklearn_models import EXPORTED, FEATURES, PIPELINES, scores

SHARED = Path(os.environ.get("PINDOWN_SHARED", Path(__file__).parents[3] / "shared"))
ROWS = 200
FLOAT_GAP = 1e-5
FEW_PRODUCTS = 20_000_000  # of a public file that is run at all inputs, and not at a tenth of them
# What halves rounded the other way do later on. Files that dequantise before every operation meet halves
# all the time (a mean of four integers, 1 + an integer), and float32 decides about them as it likes: two
# ways in which onnxruntime runs such a file differ as much, by 0.6 to 0.8 of the effect.
MOST_EFFECT, MOST_STEPS = {"qdq": 0.9, "qoperator": 0.4, "dynamic": 0.4}, 16
FEW_HALVES = [
    *product(("mlp_norm", "mlp_tanh", "mlp_sigmoid", "lstm", "gru"), INTEGERS),
    *(("lenet", "qoperator"), ("lenet", "dynamic"), ("vgg", "qoperator"), ("resnet_20", "qoperator")),
    *(("transformer", "qdq"), ("unet", "qoperator")),
]
LEAST_EQUAL = 0.9
MOST_TIES, NEAR_HALF = 0.03, 1e-4
CORE = {
    *((name, "old") for name in ("mlp_tanh", "mobilenet", "unet", "lstm")),
    *(("mlp_norm", kind) for kind in ("old", *INTEGERS)),
    *(("lenet", kind) for kind in ("old", "optimised", "float16", *INTEGERS)),
    *(("transformer", kind) for kind in ("old", "optimised")),
    ("lstm", "dynamic"),
}
CORE_OPSETS = (9, 13, 20)
SECONDS = ("vgg", "resnet_18", "resnet_20", "resnet_50")  # what evaluating them in float64 takes
slow = pytest.mark.slow


def marked(params, core):
    """Return pytest's parameters, slow where they do not belong to the core."""
    params = [param if isinstance(param, tuple) else (param,) for param in params]
    return [
        pytest.param(*param, marks=() if core(*param) else slow, id="-".join(map(str, param)))
        for param in params
    ]


NAMES = marked(ZOO, lambda name: not ZOO[name].large)
FILES = marked([(name, kind) for name in ZOO for kind in KINDS], lambda *file: file in CORE)


# ---------------------------------------------------------------------- files and modules


@pytest.mark.parametrize(("name", "kind"), FILES)
@pytest.mark.timeout(1200)
def test_files_agree_with_onnxruntime(shelf, name, kind, record_property):
    model = pn.load(shelf.file(name, kind))
    assert isinstance(model, Model)
    assert model.input_shape == ZOO[name].shape
    found = compare(model, shelf, name, kind, ROWS)
    record_property("gap", str(found))
    if isinstance(found, IntegerGap):
        assert found.effect < MOST_EFFECT[kind], found
        assert found.steps is None or found.steps < MOST_STEPS, found
        assert found.equal > LEAST_EQUAL or (name, kind) not in FEW_HALVES, found
    else:
        assert found < FLOAT_GAP


def test_the_integer_comparison_tells_a_float_model_apart(shelf):
    model = pn.load(shelf.file("lenet", "old"))
    path = shelf.file("lenet", "qoperator")
    found = integer_gap(model, path, shelf.file("lenet", "old"), inputs_of((1, 28, 28), ROWS))
    assert found.effect > 0.99 and found.equal < 0.5


STATIC = marked(
    [(name, kind) for name in ZOO for kind in ("qdq", "qoperator")],
    lambda *file: file in CORE,
)


@pytest.mark.parametrize(("name", "kind"), STATIC)
def test_integers_are_equal_apart_from_halves(shelf, name, kind):
    path = shelf.file(name, kind)
    gaps = node_gaps(pn.load(path), path, inputs_of(ZOO[name].shape, 2 if ZOO[name].large else 20))
    assert gaps
    for found in gaps:
        assert found.largest <= 1, found
        assert found.share < MOST_TIES if found.from_half is None else found.from_half < NEAR_HALF, found


@pytest.mark.parametrize("name", marked(ZOO, lambda name: name not in SECONDS))
def test_modules_agree_with_torch(name):
    """Against torch in float64: nothing but the order of sums may differ."""
    shape, module = ZOO[name].shape, module_of(name)
    X = inputs_of(shape, ROWS // 4 if ZOO[name].large else ROWS)
    model = Model.from_torch(module, shape)
    with torch.no_grad():
        theirs = module.double()(torch.from_numpy(X).double()).flatten(1).numpy()
    assert gap(model(X), theirs) < 1e-9


@pytest.mark.parametrize("opset", marked(OPSETS, lambda opset: opset in CORE_OPSETS))
def test_operator_sets(shelf, opset):
    path, X = shelf.opset(opset), inputs_of(SMALL_SHAPE, ROWS)
    (written,) = (entry.version for entry in onnx.load(path).opset_import if entry.domain == "")
    assert written == opset
    assert gap(pn.load(path)(X), run(path, X)) < FLOAT_GAP


def test_weights_beside_the_file(shelf, tmp_path):
    path = tmp_path / "lenet.onnx"
    model = onnx.load(shelf.file("lenet", "old"))
    beside = {"save_as_external_data": True, "location": "lenet.onnx.data", "size_threshold": 0}
    onnx.save_model(model, path, **beside)
    assert pn.load(path) == pn.load(shelf.file("lenet", "old"))


# ---------------------------------------------------------------------- Keras, TensorFlow, scikit-learn


@pytest.mark.parametrize("name", KERAS)
def test_keras_and_tf2onnx(shelf, name):
    path, shape = shelf.keras(name), KERAS[name][1]
    model, X = pn.load(path), inputs_of(shape, ROWS)
    assert model.input_shape == shape
    assert gap(model(X), run(path, X)) < FLOAT_GAP


@pytest.mark.parametrize("ending", [".keras", ".h5"])
def test_files_of_keras_itself_are_refused_with_the_way_out(tmp_path, ending):
    path = tmp_path / f"model{ending}"
    write_refused(path)
    with pytest.raises((ModelFileError, UnsupportedModelError), match=r"ONNX.*tf2onnx") as refusal:
        pn.load(path)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(name):
    pipeline, X = PIPELINES[name](), 3 * inputs_of((FEATURES,), ROWS).astype(np.float64)
    ours = Model.from_sklearn(pipeline)(X)
    single = name in ("scaler_mlp", "pca_logistic")  # fitted to float32: parts of them compute in it
    assert gap(ours, scores(pipeline, X).reshape(ours.shape)) < (1e-6 if single else 1e-12)


@pytest.mark.parametrize("name", EXPORTED)
def test_sklearn_exports(shelf, name):
    path, X = shelf.sklearn(name), inputs_of((FEATURES,), ROWS)
    output = onnx.load(path).graph.output[-1].name  # a classifier's label comes first, its scores last
    assert gap(pn.load(path, output=output)(X), run(path, X, output)) < FLOAT_GAP


def test_several_outputs_are_named_when_none_is_chosen(shelf):
    path = shelf.sklearn("scaler_mlp")
    try:
        assert pn.load(path) == pn.load(path, output="probabilities")  # the only output made of floats
    except UnsupportedModelError as error:
        assert re.search("label.*probabilities", str(error)) and "\n" not in str(error)


# ---------------------------------------------------------------------- counts


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_modules(name):
    entry, module = ZOO[name], module_of(name)
    assert sum(weight.numel() for weight in module.parameters()) == entry.parameters
    model = Model.from_torch(module, entry.shape)
    assert model.n_parameters == entry.parameters
    assert model.multiply_adds == multiply_adds(module, entry.shape)


@pytest.mark.parametrize("name", NAMES)
def test_counts_of_files(shelf, name):
    """An exporter puts a batch norm into the convolution before it: one number less per channel."""
    entry, module = ZOO[name], module_of(name)
    model = pn.load(shelf.file(name, "old"))
    folded = sum(norm.num_features for norm in module.modules() if isinstance(norm, nn.BatchNorm2d))
    assert model.n_parameters == entry.parameters - folded
    assert model.multiply_adds == multiply_adds(module, entry.shape)


@pytest.mark.parametrize("name", [name for name in NAMES if name.id not in ("lstm", "gru")])
def test_our_count_is_that_of_torch(name):
    """torch counts operations of convolutions and matrix products, two for each multiplication."""
    from torch.utils.flop_counter import FlopCounterMode

    shape, module = ZOO[name].shape, module_of(name)
    with plain_attention(), torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(torch.zeros(1, *shape))
    assert counter.get_total_flops() == 2 * multiply_adds(module, shape)


def test_nothing_in_batch_norms_is_trivial():
    for norm in filter(lambda layer: isinstance(layer, NORMS), module_of("resnet_20").modules()):
        for numbers in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            assert numbers.std() > 1e-3


# ---------------------------------------------------------------------- cost and size


@pytest.mark.parametrize(
    ("name", "seconds", "megabytes"),
    [("resnet_20", 0.5, 300), pytest.param("resnet_50", 5.0, 1500, marks=slow)],
)
def test_cost_of_reading(shelf, name, seconds, megabytes):
    time, memory = cost_of_reading(shelf.file(name, "old"))
    assert time < seconds and memory < megabytes, f"{time:.2f} s, {memory:.0f} MB"


@slow
@pytest.mark.parametrize("name", ["resnet_20", "resnet_50"])
def test_cost_of_evaluating(shelf, name):
    path = shelf.file(name, "old")
    ours, theirs = cost_of_evaluating(name, path)
    assert ours < 1.5 * theirs, f"{ours:.2f} s, torch {theirs:.2f} s"


def test_files_are_read_and_evaluated_where_torch_is_missing(shelf):
    script = """
import sys
sys.modules["torch"] = None  # importing it fails
import numpy as np, pindown
for path in sys.argv[1:]:
    model = pindown.load(path)
    print(model(np.ones((1, model.in_features))).sum())
"""
    paths = [shelf.file(name, "old") for name in ("lenet", "transformer")]
    found = fresh(script, *map(str, paths))
    for path, total in zip(paths, found, strict=True):
        model = pn.load(path)
        assert total == pytest.approx(model(np.ones((1, model.in_features))).sum(), rel=1e-9)


SAVED = marked(
    [(name, kind) for name in ZOO for kind in ("old", "float16", *INTEGERS)],
    lambda *file: file in CORE and file[0] in ("mlp_norm", "lenet"),
)
SMALL_FILE = 4000  # bytes that names and shapes may take beside the numbers of a small file


@pytest.mark.parametrize(("name", "kind"), SAVED)
def test_written_as_it_was_read(shelf, name, kind, tmp_path):
    path, copy = shelf.file(name, kind), tmp_path / "copy.onnx"
    model = pn.load(path)
    model.save(copy)
    read, written = path.stat().st_size, copy.stat().st_size
    assert written < max(1.1 * read, read + SMALL_FILE)
    X = inputs_of(ZOO[name].shape, 5)
    again = pn.load(copy)
    np.testing.assert_array_equal(again(X), model(X))
    assert again.n_parameters == model.n_parameters
    run(copy, X)


# ---------------------------------------------------------------------- public files


def files_in(folder):
    return sorted((SHARED / folder).rglob("*.onnx*"))


def first_of_family(path):
    return path == min(path.parent.glob("*.onnx*"))


@pytest.mark.parametrize("folder", ["models", "vnncomp"])
def test_public_files_are_there(folder):
    if not files_in(folder):
        pytest.skip(f"{folder} is not here; set PINDOWN_SHARED to the folder that holds {folder}/")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path, marks=() if first_of_family(path) else slow, id=f"{path.parent.name}-{path.name}"
        )
        for path in (*files_in("models"), *files_in("vnncomp"))
    ],
)
def test_public_files(path, tmp_path):
    model = pn.load(path)
    assert isinstance(model, Model)
    plain = tmp_path / "plain.onnx"
    plain.write_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    n = ROWS if model.multiply_adds < FEW_PRODUCTS else ROWS // 10
    rows = np.random.default_rng(0).uniform(0.0, 1.0, (n, *model.literal_shape))
    theirs = run_as_written(plain, rows.astype(np.float32))
    assert gap(model(rows.astype(np.float32).reshape(len(rows), -1)), theirs) < 1e-4


def run_as_written(path, rows):
    """Return what onnxruntime says of inputs that have the file's own shape, batch and all."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    return np.stack([session.run(None, {given.name: row})[0].ravel() for row in rows]).astype(np.float64)
