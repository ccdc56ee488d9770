"""What people or programs could read in two ways is refused or said: models, claims, properties."""

import gzip
import hashlib
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pindown as pn
from pindown.verification import proof_files
from tests.verification.checking import CHECKER, Problem, certified, load_checker, problems
from tests.verification.test_checker_bounds import graph_of

checker = load_checker()
NONE = np.zeros(0, np.int32)


def said(data, models, text=None):
    """Return whether the checker accepts, its last words and the claim that it prints."""
    lines = []
    with np.errstate(all="ignore"):
        try:
            return True, checker.check(data, models, text, lines.append), lines
        except checker.Rejected as reason:
            return False, str(reason), lines
        except Exception as fault:  # the main program says "cannot be read"
            return False, type(fault).__name__, lines


def chain(*steps, shape=(1, 1), **more):
    """Return an ONNX file of operations one after the other: (name, constants..., attributes)."""
    nodes, stored, name = [], [], "x"
    for i, (operation, *given) in enumerate(steps):
        attributes = given.pop() if given and isinstance(given[-1], dict) else {}
        names = [f"c{i}_{j}" for j in range(len(given))]
        stored += map(numpy_helper.from_array, map(np.asarray, given), names)
        made = "y" if i == len(steps) - 1 else f"t{i}"
        nodes.append(helper.make_node(operation, [name, *names], [made], **attributes))
        name = made
    ends = [helper.make_tensor_value_info("x", more.pop("kind", TensorProto.DOUBLE), shape)]
    ends.append(helper.make_tensor_value_info("y", TensorProto.DOUBLE, None))
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], **more)


def read(model, n=1):
    """Return why the checker does not read a model; empty if it does."""
    with np.errstate(all="ignore"):
        try:
            checker.Reader(checker.Network(n), model.SerializeToString(), np.arange(n))
        except checker.Rejected as reason:
            return str(reason)
        except Exception as fault:
            return type(fault).__name__
    return ""


# ---------------------------------------------------------------------- models


def test_attributes_and_inputs_of_other_operations_are_not_read():
    """Programs that do not refuse them read them as they please."""
    assert read(chain(("Relu",))) == ""
    for node in (
        ("Relu", {"alpha": 0.1}),
        ("Relu", np.ones(1)),
        ("Neg", {"axis": 0}),
        ("Transpose", {"axes": [0, 1]}),
        ("Flatten", {"perm": [0, 1]}),
        ("MatMul", np.eye(1), {"transB": 1}),
        ("Squeeze", {"axes": [0]}),  # an attribute of older versions
    ):
        assert read(chain(node)) == "ValidationError", node


def test_convolutions_say_one_thing():
    image, kernel = (1, 1, 3, 3), np.ones((1, 1, 2, 2))
    for attributes, good in (
        ({}, True),
        ({"kernel_shape": [2, 2]}, True),
        ({"kernel_shape": [1, 1]}, False),
        ({"auto_pad": "VALID"}, True),
        ({"auto_pad": "VALID", "pads": [1, 1, 1, 1]}, False),
        ({"auto_pad": "SAME_UPPER"}, False),
        ({"pads": [-1, 0, 0, 0]}, False),
    ):
        assert (read(chain(("Conv", kernel, attributes), shape=image), 9) == "") == good, attributes
    for bias in (np.ones(2), np.ones((1, 1)), np.ones((2, 1, 1, 1))):
        assert read(chain(("Conv", kernel, bias), shape=image), 9)


def test_a_bias_does_not_make_more_rows():
    weight = np.eye(2)
    for bias, good in ((np.ones(2), True), (np.ones((1, 2)), True), (np.ones((5, 2)), False)):
        assert (read(chain(("Gemm", weight, bias), shape=(1, 2)), 2) == "") == good


def test_a_slice_has_an_end_for_every_begin():
    one, two = np.array([0]), np.array([0, 0])
    assert read(chain(("Slice", one, one + 2), shape=(2, 2)), 4) == ""
    assert read(chain(("Slice", two, one + 2), shape=(2, 2)), 4)
    assert read(chain(("Slice", two, two + 1, one), shape=(2, 2)), 4)


def test_a_constant_without_a_name_is_no_optional_input():
    """ONNX says that an input of no name is left out; a constant of that name would be read instead."""
    model = chain(("Slice", np.array([0]), np.array([1]), np.array([1])), shape=(2, 2))
    assert read(model, 4) == ""
    model.graph.node[0].input[3] = ""
    model.graph.initializer[2].name = ""
    assert read(model, 4)


def test_constants_that_are_given_twice_in_one_tensor_are_not_read():
    model = chain(("Mul", np.ones((1, 1), np.float32)))
    assert read(model) == ""
    model.graph.initializer[0].float_data.append(2.0)
    assert "twice" in read(model)


def test_inputs_that_are_no_floats_are_not_read():
    for kind in (TensorProto.INT64, TensorProto.INT8, TensorProto.BOOL, TensorProto.UNDEFINED):
        assert "another type" in read(chain(("Relu",), kind=kind))


def test_a_model_does_not_speak_for_the_checker(tmp_path, capsys):
    """What a file names is not printed as it stands: a last line "accepted" is the checker's."""
    norm = problems()["boxes"]
    _, _, data = certified(norm, tmp_path)
    model = onnx.load(tmp_path / "model0.onnx")
    model.graph.node[0].op_type = "Relu\naccepted: holds"
    forged = model.SerializeToString()
    (tmp_path / "model0.onnx").write_bytes(forged)
    claim, arrays = proof_files.unpacked(data)
    claim["models"][0]["sha256"] = hashlib.sha256(forged).hexdigest()
    (tmp_path / "proof").write_bytes(proof_files.packed(claim, arrays))
    assert checker.main([str(tmp_path / "proof"), str(tmp_path / "model0.onnx")]) == 1
    assert not any(line.startswith("accepted") for line in capsys.readouterr().out.splitlines())


OPERATIONS = [*checker.MOVES, "Add", "Concat", "Constant", "Conv", "Div", "Gemm", "MatMul", "Mul"]
OPERATIONS += ["Neg", "Relu", "Sub", "Softmax", "MaxPool", "Sigmoid"]


def edited(rng, model):
    """Change something in a graph: operations, inputs, attributes, shapes of constants, the version."""
    graph, kind = model.graph, int(rng.integers(8))
    node = graph.node[int(rng.integers(len(graph.node)))]
    if kind == 0:
        node.op_type = str(rng.choice(OPERATIONS))
    elif kind == 1:
        order = [node.input[i] for i in rng.permutation(len(node.input))]
        del node.input[:]
        node.input.extend(order)
    elif kind == 2:
        node.input[-1] = ""
    elif kind == 3:
        node.input.append(str(rng.choice(["x", *(each.name for each in graph.initializer)])))
    elif kind == 4 and node.attribute:
        del node.attribute[int(rng.integers(len(node.attribute)))]
    elif kind == 5:
        name = str(
            rng.choice(["axis", "perm", "axes", "group", "transA", "transB", "pads", "allowzero"])
        )
        value = [1, 0] if rng.random() < 0.5 else int(rng.integers(3))
        node.attribute.append(helper.make_attribute(name, value))
    elif kind == 6 and graph.initializer:
        dims = graph.initializer[int(rng.integers(len(graph.initializer)))].dims
        turned = [1, *dims] if len(dims) < 2 else list(dims)[::-1]
        del dims[:]
        dims.extend(turned)
    elif kind == 7:
        model.opset_import[0].version = int(rng.integers(5, 20))


@np.errstate(all="ignore")
def test_models_that_onnxruntime_reads_too_are_the_same_for_both():
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    rng, both = np.random.default_rng(5), 0
    for _ in range(250):
        model, d = graph_of(rng, hostile=False)
        for each in model.graph.initializer:  # of one type, as the runtime wants it
            if each.data_type == TensorProto.DOUBLE:
                values = numpy_helper.to_array(each).astype(np.float32)
                each.CopyFrom(numpy_helper.from_array(values, each.name))
        model.graph.output[0].type.tensor_type.ClearField("shape")
        model.ir_version = 8
        for _ in range(int(rng.integers(0, 3))):
            edited(rng, model)
        x, network = rng.standard_normal(d).astype(np.float32), checker.Network(d)
        try:
            output = checker.Reader(network, model.SerializeToString(), np.arange(d)).output
            session = runtime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
            (values,) = session.run(None, {"x": x[None]})
        except Exception:  # one of them does not read it
            continue
        bounds = checker.Bounds(network, x[None].astype(float), x[None].astype(float))
        bounds.complete()
        (low,), (high,) = bounds.values[output]
        error = 1e-3 * (1.0 + np.abs(values).max())
        assert len(low) == values.size and (np.abs(low / 2 + high / 2 - values.ravel()) <= error).all()
        both += 1
    assert both > 80


ROW = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
KERNEL = np.random.default_rng(0).standard_normal((3, 2, 2, 3)).astype(np.float32)
IMAGE = (1, 2, 5, 6)
FLAT = np.ones(3, np.float32)
# Steps whose meaning depends on a version, an attribute or a shape: (step, shape of the input).
TRAPS = [
    (("Gemm", ROW.T, FLAT[:2], {"alpha": 2.0}), (1, 3)),
    (("Gemm", ROW, FLAT[:2], {"transB": 1, "beta": 0.0}), (1, 3)),
    (("Gemm", ROW, FLAT[:2, None], {"transB": 1}), (2, 3)),
    (("Gemm", ROW, FLAT[:2, None], {"transB": 1}), (1, 3)),
    (("Flatten", {"axis": 0}), (2, 3)),
    (("Flatten", {"axis": -1}), (2, 3, 2)),
    (("Dropout", {"ratio": 0.9}), (2, 3)),
    (("Dropout", np.float32(0.5)), (2, 3)),
    (("Dropout", np.float32(0.5), np.array(True)), (2, 3)),
    (("Squeeze", {"axes": [0]}), (1, 3, 1)),
    (("Squeeze", np.array([-1])), (1, 3, 1)),
    (("Unsqueeze", np.array([2, 0])), (1, 3)),
    (("Slice", *map(np.array, ([-1], [-100], [1], [-2]))), (2, 5)),
    (("Slice", *map(np.array, ([100], [-6], [-1], [-1]))), (2, 5)),
    (("Slice", *map(np.array, ([4], [-1], [1], [-1]))), (2, 5)),
    (("Slice", *map(np.array, ([1, 0], [5, 1], [1, -1]))), (2, 5)),
    (("Slice", {"starts": [0], "ends": [1]}), (2, 5)),
    (("Reshape", np.array([0, -1, 2])), (2, 3, 4)),
    (("Reshape", np.array([2, -1]), {"allowzero": 1}), (2, 3)),
    (("Gather", np.array([[0, -1], [2, 1]]), {"axis": -1}), (2, 3)),
    (("Gather", np.array([2**64 - 1], np.uint64)), (2, 3)),
    *(
        (("Conv", KERNEL, FLAT, {"auto_pad": way, "strides": [2, 1]}), IMAGE)
        for way in ("VALID", "SAME_UPPER")
    ),
    (("Conv", KERNEL, {"pads": [1, 0, 2, 3], "dilations": [2, 1], "strides": [1, 2]}), IMAGE),
    (("Conv", KERNEL[:2, :1], {"group": 2}), IMAGE),
    (("Conv", KERNEL), (2, 2, 3, 3)),
    (("MatMul", ROW.T), (3,)),
    (("MatMul", FLAT), (2, 3)),
    (("MatMul", np.ones((2, 3, 4), np.float32)), (1, 3)),
    (("Sub", np.arange(8, dtype=np.float32).reshape(4, 2, 1)), (2, 3)),
    (("Div", np.float32([[1.0], [3.0]])), (2, 3)),
]


@pytest.mark.parametrize("version", [7, 11, 13, 21])
@np.errstate(all="ignore")
def test_traps_are_refused_or_read_as_onnxruntime_reads_them(version):
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    rng, both = np.random.default_rng(version), 0
    for step, shape in TRAPS:
        model = chain(step, shape=shape, kind=TensorProto.FLOAT)
        model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
        model.opset_import[0].version, model.ir_version = version, 8
        data, x = model.SerializeToString(), rng.standard_normal(shape).astype(np.float32)
        network = checker.Network(x.size)
        try:
            output = checker.Reader(network, data, np.arange(x.size)).output
            session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
        except Exception:  # one of them does not read it
            continue
        (values,) = session.run(None, {"x": x})
        point = x.reshape(1, -1).astype(float)
        (low,), (high,) = checker.Bounds(network, point, point).complete()[:2]
        assert output == len(network.nodes) or not network.nodes
        assert len(low) == values.size, step
        assert (np.abs(low / 2 + high / 2 - values.ravel()) < 1e-4).all(), step
        both += 1
    assert both > 8


# ---------------------------------------------------------------------- claims


def packed(models, networks, arrays, outputs=None, **more):
    """Return a certificate of models with one input and one output each."""
    n = len(networks)
    claim = {
        "verdict": "holds",
        "models": [{"sha256": hashlib.sha256(data).hexdigest()} for data in models],
        "inputs": 1,
        "networks": [
            {"model": i, "outputs": k} for i, k in zip(networks, outputs or [1] * n, strict=True)
        ],
        **more,
    }
    return proof_files.packed(claim, arrays)


def one_set(row, limit, strict=0, box=(1.0, 1.0)):
    """Return the arrays of one unsafe set with one row."""
    return {
        "boxes": np.array(box).reshape(1, 2, 1),
        "set_box": np.int32([0]),
        "set_rows": np.int32([1]),
        "rows": np.array([row], float),
        "limits": np.array([limit], float),
        "strict": np.uint8([strict]),
    }


def test_a_witness_of_tied_networks_is_of_the_files_weights():
    """1e-20 - 1 is -1 in float64: f + (g - f) is then 0 at 1, where g is 1e-20."""
    models = [chain(("Mul", [[w]])).SerializeToString() for w in (1.0, 1e-20)]
    arrays = one_set([0.0, 1.0], 0.0) | {"witness": np.ones((1, 1)), "witness_sets": np.int32([0])}
    tied = arrays | {"tie_places": NONE, "tie_scales": np.zeros(0)}
    for given in (arrays, tied):
        assert not said(packed(models, [0, 1], given, verdict="violated"), models)[0]
    true = tied | {"limits": np.array([1e-20])}
    assert said(packed(models, [0, 1], true, verdict="violated"), models)[0]


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0, 1e200])
def test_ties_that_are_no_pairs(value):
    steps = [("Mul", [[1.0]]), ("Relu",)]
    models = [chain(*steps).SerializeToString()] * 2
    arrays = {"boxes": np.zeros((0, 2, 1)), "set_box": NONE, "set_rows": NONE, "limits": np.zeros(0)}
    arrays |= {"rows": np.zeros((0, 2)), "strict": np.zeros(0, np.uint8)}
    for places, scales, good in (([0], [1.0], True), ([0], [value], False), ([1], [1.0], False)):
        tie = {"tie_places": np.int32(places), "tie_scales": np.array(scales)}
        data = packed(models, [0, 1], arrays | tie, growth=0.0)
        assert said(data, models)[0] == good


def test_models_that_no_claim_is_about_are_told_apart():
    """Who gives two models has to see that the claim is about one of them."""
    models = [chain(("Mul", [[w]])).SerializeToString() for w in (1.0, 5.0)]
    data = packed(models, [0], one_set([1.0], 0.5, strict=1) | {"proof": np.uint8([1])} | trees())
    good, _, lines = said(data, models)
    assert good and "network 1: model 1, reads X_0; gives Y_0 to Y_0" in lines
    assert not any("model 2, reads" in line for line in lines)


def trees():
    """Return arrays of no trees."""
    return {"sign_root": NONE}


def test_a_claim_of_two_networks_says_which_outputs_are_whose(tmp_path):
    nets = [pn.ReluNetwork.from_layers([(np.ones((k, 1)), np.zeros(k))]) for k in (2, 3)]
    for net, name in zip(nets, "ab", strict=True):
        net.save(tmp_path / f"{name}.onnx", dtype="float64")
    models = [(tmp_path / f"{name}.onnx").read_bytes() for name in "ab"]
    arrays = one_set([0.0, 0.0, 0.0, 0.0, 1.0], 0.5, strict=1) | {"proof": np.uint8([1])} | trees()
    data = packed(models, [0, 1], arrays, outputs=[2, 3])
    good, _, lines = said(data, models)
    assert good and [line.split("; ")[1] for line in lines if line.startswith("network")] == [
        "gives Y_0 to Y_1",
        "gives Y_2 to Y_4",
    ]
    claim, arrays = proof_files.unpacked(data)
    for reads, good in (([0], True), ([1], False), ([0, 0], False), ([], False), ([-1], False)):
        claim["networks"][1]["reads"] = reads
        assert said(proof_files.packed(claim, arrays), models)[0] == good


@pytest.mark.parametrize("corner", [0.0, -0.0, 5e-324, 1e308])
def test_boxes_of_no_width_and_of_nearly_all_of_float64(corner):
    """|x| >= 0 everywhere, and x is at the corner where the box is a point."""
    model = chain(("MatMul", [[1.0, -1.0]]), ("Relu",), ("MatMul", [[1.0], [1.0]])).SerializeToString()
    for box in ((corner, corner), (-corner, corner)):
        at_zero = one_set([1.0], 0.0, strict=1, box=box) | {"proof": np.uint8([1])} | trees()
        assert said(packed([model], [0], at_zero), [model])[0]  # |x| < 0 nowhere
        reached = one_set([1.0], 0.0, box=box) | {"proof": np.uint8([1])} | trees()
        assert not said(packed([model], [0], reached), [model])[0]
        above = one_set([-1.0], -1e300, box=box)  # |x| >= 1e300
        tree = {"proof": np.uint8([2]), "sign_root": NONE}
        tree |= {"box_kinds": np.uint8([1]), "box_places": np.zeros(0, np.uint16)}
        assert said(packed([model], [0], above | tree), [model])[0] == (corner < 1e300)


@pytest.mark.parametrize("slope", [np.nan, np.inf, -np.inf, 1e300, -1e-300])
def test_slopes_that_are_no_slopes(slope):
    """They count as the nearest one, or prove nothing."""
    network = checker.Network(1)
    network.add(checker.Relu(network.add(checker.Affine([network.pick(0)], np.zeros(1)))))
    bounds = checker.Bounds(network, -np.ones((1, 1)), np.ones((1, 1)))
    bounds.complete()
    bounds.slopes[1] = np.full((1, 1, 1), slope)
    (most, least), *_ = bounds.ends(2, np.array([0, 1]))
    assert most >= 1.0 and -least <= 0.0
    assert np.isinf(least) == np.isnan(slope)


def test_numbers_of_rows_are_not_negative():
    model = chain(("Mul", [[1.0]])).SerializeToString()
    arrays = one_set([1.0], 0.5, strict=1) | {"proof": np.uint8([1, 1])} | trees()
    arrays |= {"set_box": np.int32([0, 0]), "set_rows": np.int32([2, -1])}
    assert not said(packed([model], [0], arrays), [model])[0]


# ---------------------------------------------------------------------- leaves


def test_a_choice_of_signs_that_is_accepted_holds_no_unsafe_point():
    """Slopes, multipliers and weights at random: what is accepted is true of samples of the part."""
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(300):
        sizes = [2, 4, 3, 2]
        network, j = checker.Network(2), 0
        for i, (n, m) in enumerate(pairwise(sizes)):
            weight = checker.Linear(n, np.arange(n)[None], rng.standard_normal((n, m)))
            j = network.add(checker.Affine([(weight, j)], rng.standard_normal(m)))
            j = network.add(checker.Relu(j)) if i < 2 else j
        low = rng.uniform(-1, 0, 2)
        high = low + rng.uniform(0.1, 1, 2)
        points = [rng.uniform(low, high, (500, 2))]
        for node in network.nodes:
            (first, *_) = node.inputs
            relu = isinstance(node, checker.Relu)
            made = np.maximum(points[first], 0) if relu else node.sums(points, lambda w: w) + node.bias
            points.append(made)
        bounds = checker.Bounds(network, low[None], high[None])
        bounds.complete()
        stated = {"root_lower": [], "root_upper": [], "root_counts": [0, 0]}
        for i in (1, 3):
            stated["root_lower"] += bounds.values[i][0].ravel().tolist()
            stated["root_upper"] += bounds.values[i][1].ravel().tolist()
        taken = {name: iter(values) for name, values in stated.items()}

        def take(name, n, taken=taken):
            return np.array([next(taken[name]) for _ in range(n)], np.float64 if n else np.int64)

        root = checker.Root(network, low, high, take)
        n_units = len(root.units)
        if not n_units:
            continue
        units = rng.permutation(n_units)[: rng.integers(0, 4)]
        signs = rng.choice([-1, 1], len(units))
        inside = np.ones(500, bool)
        for unit, sign in zip(units, signs, strict=True):
            i, entry = root.units[unit]
            inside &= sign * points[i][:, entry] >= 0
        rows, weights = rng.standard_normal((2, 2)), rng.uniform(0, 1, 2)
        values = points[-1] @ rows.T
        limits = np.median(values, axis=0) - rng.uniform(0, 2, 2)
        leaf = units, signs, rng.uniform(0, 15, n_units), signs * rng.exponential(0.3, len(units))
        try:
            root.check_leaves([(*leaf, weights)], rows, limits, np.zeros(2, bool))
        except checker.Rejected:
            continue
        accepted += 1
        assert not (inside & (values <= limits).all(axis=1)).any()
    assert accepted > 20


# ---------------------------------------------------------------------- properties


DECLARED = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
BOX = "".join(f"(assert (>= X_{i} -1)) (assert (<= X_{i} 1))\n" for i in (0, 1))


def test_properties_are_read_as_others_read_them(tmp_path):
    """A comment ends where its line ends, for every program; digits are those of ASCII."""
    small = Problem(
        problems()["boxes"].models, pn.Property.box([-1, -1], [1, 1], [[1.0]], [2.1]), "holds"
    )
    _, models, data = certified(small, tmp_path)
    plain = DECLARED + BOX + "(assert (>= Y_0 2.125)) ; a comment\n"
    assert said(data, models, plain)[0] and said(data, models, plain.replace("\n", "\r\n"))[0]
    for end in ("\v", "\f", "\x1c", "\x85", "\u2028", "\r"):
        hidden = DECLARED + BOX + f"; a comment{end}(assert (>= Y_0 2.125))\n"
        assert "differently" in said(data, models, hidden)[1]
    assert "differently" in said(data, models, plain.replace("2.125", "\u0662.125"))[1]
    assert (
        "another property"
        in said(data, models, plain.replace("(assert (>= Y_0", "; (assert (>= Y_0"))[1]
    )
    for word in ('"X_0"', "X_\\u0030", "|X_0|"):
        assert not said(data, models, plain.replace("(>= X_0", f"(>= {word}"))[0]
    quoted = plain.replace("; a comment", '; a "comment" (of \\words')
    assert said(data, models, quoted)[0]
    for name in ("X_00", "x_0", "Y_1"):
        assert not said(data, models, plain.replace("X_0 Real", f"{name} Real"))[0]


def test_properties_are_about_the_only_model():
    models = [chain(("Mul", [[w]])).SerializeToString() for w in (1.0, 5.0)]
    arrays = one_set([1.0], 0.5, strict=1) | {"proof": np.uint8([1])} | trees()
    text = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (= X_0 1))(assert (< Y_0 0.5))"
    text = text.replace("(assert (= X_0 1))", "(assert (<= X_0 1))(assert (>= X_0 1))")
    assert said(packed(models[:1], [0], arrays), models[:1], text)[0]
    for networks in ([0], [1]):
        data = packed(models, networks, arrays)
        assert said(data, models)[0]
        assert "two networks" in said(data, models, text)[1]


def test_files_that_unpack_without_end(tmp_path, capsys, monkeypatch):
    """Of models and properties, too, no more is unpacked than they may have."""
    monkeypatch.setattr(checker, "MAX_MODEL", 100_000)
    monkeypatch.setattr(checker, "MAX_PROPERTY", 100_000)
    certified(problems()["boxes"], tmp_path)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(10_000_000)))
    proof, model, bomb = (str(tmp_path / name) for name in ("proof", "model0.onnx", "bomb.gz"))
    for words in ([proof, bomb], [proof, model, "--property", bomb], [bomb, model]):
        assert checker.main(words) == 1
        assert capsys.readouterr().out.splitlines()[-1].startswith("rejected: ")


def test_the_program_ends_when_its_time_is_over(tmp_path):
    """In whatever step it is: the clock is no part of the steps."""
    certified(problems()["boxes"], tmp_path)
    given = [str(tmp_path / "proof"), str(tmp_path / "model0.onnx"), "--seconds", "0.1"]
    lines = [
        "import itertools, runpy",
        f"names = runpy.run_path({str(CHECKER)!r}, run_name='checker')",
        "main = names['main']",
        "main.__globals__['check'] = lambda *given: all(i >= 0 for i in itertools.count())",
        f"main({given!r})",
    ]
    words = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and not done.stderr
    assert done.stdout == "rejected: checking takes longer than --seconds allows.\n"


def test_sums_in_rationals_are_the_rows_value():
    one = [Fraction(1)] * 3
    assert checker.highest(np.array([1e16, 1.0, -1e16]), one, one) == Fraction(1)
    assert checker.highest(np.array([1.0, 0.0]), [0.0, 0.0], [2.0, np.inf]) == Fraction(2)
    assert checker.highest(np.array([-1.0]), [-np.inf], [0.0]) == np.inf
