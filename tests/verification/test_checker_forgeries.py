"""Certificates and models that somebody forged by hand: none is accepted, none stops the checker."""

import copy
import gzip
import hashlib
import json
import struct
import zlib
from fractions import Fraction
from functools import cache
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pindown as pn
from pindown.verification import proof_files
from tests.verification.checking import Problem, certified, load_checker, problems

checker = load_checker()


def said(data, models, text=None):
    """Return whether the checker's main program would accept, and its last words."""
    lines = []
    with np.errstate(all="ignore"):
        try:
            return True, checker.check(data, models, text, lines.append), lines
        except checker.Rejected as reason:
            return False, str(reason), lines
        except Exception as fault:  # the main program says "cannot be read"
            return False, type(fault).__name__, lines


@cache
def genuine(name):
    with TemporaryDirectory() as folder:
        _, models, data = certified(problems()[name], folder)
    assert said(data, models)[0]
    return *proof_files.unpacked(data), models


def rejected(name, changes, claims=None):
    """Forge arrays and entries of a certificate, and return why it is rejected."""
    claim, arrays, models = genuine(name)
    arrays = {k: v.copy() for k, v in arrays.items()}
    arrays |= {k: v(arrays[k]) if callable(v) else np.asarray(v) for k, v in changes.items()}
    claim = {**copy.deepcopy(claim), **(claims or {})}
    good, words, _ = said(proof_files.packed(claim, arrays), models)
    assert not good, words
    return words


def at(place, value):
    """Return what puts a number into an array."""

    def changed(values):
        made = values.copy()
        made.flat[place] = value
        return made

    return changed


# ---------------------------------------------------------------------- leaves


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_bounds_inside_are_proved_whatever_they_are(value):
    for name in ("root_lower", "root_upper"):
        claim, arrays, models = genuine("signs")
        arrays = {**arrays, name: at(0, value)(arrays[name])}
        good, _, _ = said(proof_files.packed(claim, arrays), models)
        wide = value == (-np.inf if name == "root_lower" else np.inf)
        assert not good or wide or (name == "root_upper" and value > 0)  # wider bounds are true


def test_bounds_inside_that_are_too_narrow_are_not_proved():
    _, arrays, _ = genuine("signs")
    middle = (arrays["root_lower"] + arrays["root_upper"]) / 2
    for name in ("root_lower", "root_upper"):
        assert rejected("signs", {name: middle}) == "a bound inside the model is not proved."
    crossed = {"root_lower": arrays["root_upper"], "root_upper": arrays["root_lower"]}
    assert rejected("signs", crossed) == "bounds inside the model are empty."


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_weights_and_multipliers_of_leaves(value):
    assert rejected("signs", {"sign_weights": lambda v: np.full_like(v, value)})
    signs = genuine("many signs")[1]["sign_multipliers"]
    used = np.flatnonzero(signs)
    assert len(used)
    forged = signs.copy()
    forged[used] = -signs[used] if value == -1.0 else value
    assert rejected("many signs", {"sign_multipliers": forged})
    for value_ in (1e38, -1e38):
        assert rejected("many signs", {"sign_multipliers": np.full_like(signs, value_)})


def test_trees_that_leave_parts_out():
    n = len(genuine("many boxes")[1]["box_kinds"])
    for kinds in ([0], [1], [3, 1], np.full(n, 1), np.full(n, 2), np.full(n, 4), np.full(n, 5)):
        words = rejected("many boxes", {"box_kinds": np.array(kinds, np.uint8)})
        assert "called proved" in words or "calls proved" in words or "open" in words or "early" in words
    assert "not there" in rejected("many boxes", {"box_places": lambda v: v + np.uint16(60000)})
    for unit in (-1, 10**6):
        assert "unknown unit" in rejected("many signs", {"sign_places": at(0, unit)})
    twice = np.zeros_like(genuine("many signs")[1]["sign_places"])
    assert "unknown unit" in rejected("many signs", {"sign_places": twice})
    assert "open" in rejected("many signs", {"sign_kinds": at(0, 3)})


def test_sets_that_no_proof_is_about():
    for way in (0, 1, 4, 255):
        assert "no proof of unsafe set 1" in rejected("boxes", {"proof": np.uint8([way])})
    assert "'sign_root' is missing, or not" in rejected("boxes", {"proof": np.uint8([3])})
    assert "'sign_root' is missing, or not" in rejected("signs", {"proof": np.full(2, 2, np.uint8)})
    assert "not as it must be" in rejected("boxes", {"proof": np.uint8([2, 2])})
    for root in (-1, 1, 10**9):
        assert "root on another box, or none" in rejected("signs", {"sign_root": at(0, root)})


def test_claims_are_not_wider_than_what_is_proved():
    for factor in (1.06, 2.0, 1e300):
        assert rejected("boxes", {"boxes": lambda v, factor=factor: v * factor})
    assert rejected("boxes", {"limits": lambda v: v + 0.2})
    assert rejected("ends", {"limits": lambda v: v + 1e-12})
    assert rejected("ends", {"strict": np.uint8([0])})  # it reaches 0
    assert rejected("witness", {"limits": lambda v: v - 1.0})
    for x in ([[2.0, 2.0]], [[np.nan, 0.0]], [[0.0, 0.0]], [[1e308, -1e308]]):
        assert rejected("witness", {"witness": np.array(x)})
    for name in ("boxes", "rows", "limits"):
        for value in (np.nan, np.inf):
            assert "bad" in rejected("boxes", {name: at(0, value)})


def test_claims_that_make_no_sense():
    strange = (None, -1, 10**30, 1.5, "x", [], [[]], {}, True, [True], [-1], [10**9])
    for key in ("models", "inputs", "networks", "verdict"):
        for value in strange:
            assert rejected("boxes", {}, {key: value})
    for value in (-1.0, float("nan"), 1, "0", None):
        claim, arrays, models = genuine("boxes")
        good, _, _ = said(proof_files.packed({**claim, "growth": value}, arrays), models)
        assert not good or value is None


def test_the_claim_says_which_model_is_meant(tmp_path):
    """Of two models the second one alone may be claimed about: that is printed."""
    claim, arrays, models = genuine("boxes")
    harmless = pn.ReluNetwork.from_layers([([[0.0, 0.0]], [0.0])])
    harmless.save(tmp_path / "other.onnx")
    both = [(tmp_path / "other.onnx").read_bytes(), models[0]]
    stated = [{"name": "", "sha256": hashlib.sha256(each).hexdigest()} for each in both]
    data = proof_files.packed(
        {**claim, "models": stated, "networks": [{"model": 1, "outputs": 1}]}, arrays
    )
    good, _, lines = said(data, both)
    assert good and "network 1: model 2, reads X_0, X_1; gives Y_0 to Y_0" in lines


# ---------------------------------------------------------------------- bytes


def sealed(text, body=b""):
    """Return a file with any JSON text and body, and a right checksum."""
    whole = text + body
    head = struct.pack(
        "<16sIIQ32s", checker.MAGIC, 3, len(text), len(whole), hashlib.sha256(whole).digest()
    )
    return head + zlib.compress(whole, 9)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[" * 100_000 + b"]" * 100_000,
        b'{"arrays": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"arrays": [["boxes", "|O", [1]]]}',
        b'{"arrays": [["boxes", "<f8", [1e99]]]}',
        b'{"arrays": [["boxes", "<f8", [-1]]]}',
        b'{"arrays": [["boxes", "<f8", [4294967296, 4294967296, 0]]]}',
        b'{"arrays": [["boxes", "<f8", [0]], ["boxes", "<f8", [0]]]}',
        b'{"arrays": 5}',
        b"\xff\xfe",
    ],
)
def test_texts_that_make_no_sense(text):
    assert not said(sealed(text), [b""])[0]


def test_bodies_that_grow_are_not_unpacked():
    claim, arrays, models = genuine("boxes")
    data = proof_files.packed(claim, arrays)
    bomb = data[:64] + zlib.compress(bytes(50_000_000), 9)  # 50 kB
    assert "too large" in said(bomb, models)[1]
    long = data[:24] + struct.pack("<Q", 2_000_000_000) + data[32:]
    assert "larger" in said(long, models)[1]
    for cut in (data[:64], data[:-1], data + b"more"):
        assert "cut off, or goes on" in said(cut, models)[1]
    text = b'{"arrays": [' + b"[]," * 4_000_000 + b"[]]}"  # 1 kB of it for 200 MB of lists
    assert "larger" in said(sealed(text), models)[1]


def test_trees_that_grow_end_before_memory_does(monkeypatch):
    for name in ("boxes", "many signs"):
        genuine(name)
    monkeypatch.setattr(checker, "MAX_LEVEL", 1000)
    kinds = np.full(2**12, checker.CUT, np.uint8)
    forged = {"box_kinds": kinds, "box_places": np.zeros(2**12, np.uint16)}
    assert rejected("boxes", forged) == "a tree of boxes is too wide."
    monkeypatch.setattr(checker, "MAX_LEVEL", 5)
    units = np.array([0, 1, 1], np.int32)
    forged = {"sign_kinds": np.full(7, checker.CUT, np.uint8), "sign_places": units}
    assert rejected("many signs", forged) == "a tree of signs is too wide."


# ---------------------------------------------------------------------- models


def file_of(nodes, constants, **more):
    """Return an ONNX file from x (1, 2) to y (1, 2)."""
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 2]) for n in "xy"]
    stored = [
        v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(v, n) for n, v in constants
    ]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    more.setdefault("opset_imports", [helper.make_opsetid("", 13)])
    return helper.make_model(graph, **more).SerializeToString()


def read(data):
    """Return why the checker does not read a model; empty if it does."""
    with np.errstate(all="ignore"):
        try:
            checker.Reader(checker.Network(2), data, np.arange(2))
        except checker.Rejected as reason:
            return str(reason)
        except Exception as fault:
            return type(fault).__name__
    return ""


RELU = helper.make_node("Relu", ["x"], ["y"])
TWO = np.ones((1, 2), np.float32)
ADD = helper.make_node("Add", ["x", "c"], ["y"])


def test_a_plain_model_is_read():
    assert read(file_of([RELU], [])) == read(file_of([ADD], [("c", TWO)])) == ""


def test_constants_in_other_files_are_not_read(tmp_path, monkeypatch):
    """No hash is of them, and whoever sends the certificate may have changed them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").write_bytes(TWO.tobytes())
    tensor = numpy_helper.from_array(TWO, "c")
    onnx.external_data_helper.set_external_data(tensor, "weights", 0, TWO.nbytes)
    tensor.ClearField("raw_data")
    assert "other files" in read(file_of([ADD], [("c", tensor)]))
    constant = helper.make_node("Constant", [], ["c"], value=tensor)
    assert "other files" in read(file_of([constant, ADD], []))


def test_what_programs_read_differently_is_not_read():
    """Attributes and versions that are given twice; constants that are kept in another way."""
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    which = [("i", np.array([1, 0], np.int64))]
    assert read(file_of([node], which)) == ""
    node.attribute.append(helper.make_attribute("axis", 0))
    assert "unknown way" in read(file_of([node], which))
    both = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx", 6)]
    assert "unknown kind" in read(file_of([RELU], [], opset_imports=both))
    model = onnx.load_from_string(file_of([RELU], []))
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), "x"))
    assert "unknown kind" in read(model.SerializeToString())
    tensor = numpy_helper.from_array(TWO, "c")
    tensor.data_location = TensorProto.EXTERNAL
    assert "other files" in read(file_of([ADD], [("c", tensor)]))


def test_compressed_models_are_one_stream(tmp_path, capsys):
    """A second part of a file would be read by others, and change the model: no hash would tell."""
    claim, arrays, models = genuine("boxes")
    whole = gzip.compress(models[0])
    more = onnx.ModelProto(graph=onnx.GraphProto(initializer=[numpy_helper.from_array(TWO, "c")]))
    (tmp_path / "proof").write_bytes(proof_files.packed(claim, arrays))
    for data, good in (
        (whole, True),
        (whole + gzip.compress(more.SerializeToString()), False),
        (whole[:-4], False),
        (whole + b"0", False),
    ):
        (tmp_path / "model.onnx.gz").write_bytes(data)
        assert checker.main([str(tmp_path / "proof"), str(tmp_path / "model.onnx.gz")]) == (not good)
        assert good or "cut off, or goes on" in capsys.readouterr().out


# ---------------------------------------------------------------------- two networks


def tied(steps, growth, places=(), scales=()):
    """Return what the checker says of a claim that two files differ by growth (1 + |x|) at most.

    Args:
        steps: Of each file, its operations from x (1, 1) on: name and constants.
        growth: The number.
        places: Units of the first file that the units of the second stand for.
        scales: And times which numbers.
    """
    models = []
    for own in steps:
        nodes, stored, name = [], [], "x"
        for i, (operation, *constants) in enumerate(own):
            names = [f"c{i}_{j}" for j in range(len(constants))]
            stored += map(numpy_helper.from_array, [np.array(c) for c in constants], names)
            made = "y" if i == len(own) - 1 else f"t{i}"
            nodes.append(helper.make_node(operation, [name, *names], [made]))
            name = made
        ends = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, [1, 1]) for n in "xy"]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
        opsets = [helper.make_opsetid("", 13)]
        models.append(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    claim = {
        "verdict": "holds",
        "models": [{"sha256": hashlib.sha256(data).hexdigest()} for data in models],
        "inputs": 1,
        "networks": [{"model": i, "outputs": 1} for i in (0, 1)],
        "growth": growth,
    }
    none = np.zeros(0, np.int32)
    arrays = {"boxes": np.zeros((0, 2, 1)), "set_box": none, "set_rows": none, "rows": np.zeros((0, 2))}
    arrays |= {"limits": np.zeros(0), "strict": np.zeros(0, np.uint8)}
    arrays |= {"tie_places": np.int32(places), "tie_scales": np.array(scales, float)}
    return said(proof_files.packed(claim, arrays), models)


def test_a_divisor_is_no_product_with_a_rounded_number():
    """x / 3 and x times the next number of float64 differ, though by little."""
    steps = [[("Div", [[3.0]])], [("Mul", [[1 / 3]])]]
    assert not tied(steps, 0.0)[0] and tied(steps, 1e-13)[0]
    assert tied([steps[1], steps[1]], 0.0)[0]


def test_sums_of_many_units_that_stand_for_one_round():
    """0.1 added 40,000 times is not the number that float64 makes of it."""
    n = 40_000
    summed = float(np.cumsum(np.full(n, 0.1))[-1])
    off = float(abs(Fraction(summed) - n * Fraction(0.1)))
    one = [("MatMul", [[1.0]]), ("Relu",), ("MatMul", [[summed]])]
    many = [("MatMul", np.ones((1, n))), ("Relu",), ("MatMul", np.full((n, 1), 0.1))]
    many_places = np.zeros(n, int), np.ones(n)
    assert not tied([one, many], 0.9 * off, *many_places)[0]
    assert tied([one, many], 1e4 * off, *many_places)[0]


def test_numbers_that_underflow_count():
    """1e-120 x, three times, is not zero: at 1e300 it is 1e-60."""
    steps = [[("Mul", [[1e-120]])] * 2 + [("Mul", [[w]])] for w in (1e-120, 2e-120)]
    assert not tied(steps, 0.0)[0] and tied(steps, 1e-200)[0]
    steps = [[("Mul", [[1.0]]), ("Add", [[c]]), ("Relu",)] for c in (1e-310, 0.0)]
    assert not tied(steps, 0.0, [0], [2.0**-99])[0]


def test_operations_that_a_model_defines_itself_are_not_read():
    """A model may say that its Relu is something else."""
    own = helper.make_function(
        "", "Relu", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], [helper.make_opsetid("", 13)]
    )
    assert "unknown kind" in read(file_of([RELU], [], functions=[own]))
    other = helper.make_node("Relu", ["x"], ["y"], domain="mine")
    assert "unknown way" in read(file_of([other], []))


def test_old_and_unknown_ways_are_not_read():
    for version in (1, 6):
        made = file_of([ADD], [("c", TWO)], opset_imports=[helper.make_opsetid("", version)])
        assert "unknown kind" in read(made)
    assert read(file_of([helper.make_node("Relu", ["x"], ["y"], slope=0.1)], [])) == "ValidationError"
    matrix = [("w", np.eye(2, dtype=np.float32))]
    for options in ({"alpha": 2.0}, {"transA": 1}, {"beta": np.nan}):
        node = helper.make_node("Gemm", ["x", "w"], ["y"], **options)
        assert "unknown way" in read(file_of([node], matrix))
    assert "twice" in read(file_of([ADD], [("c", TWO), ("c", 2 * TWO)]))
    assert "twice" in read(file_of([RELU, RELU], []))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-200])
def test_weights_that_are_no_numbers_are_not_read(value):
    forged = np.array([[1.0, value]])
    found = read(file_of([ADD], [("c", forged)]))
    assert found or value == 1e-200  # a tiny bias counts as it is
    assert read(file_of([helper.make_node("Mul", ["x", "c"], ["y"])], [("c", forged)]))
    twice = [helper.make_node("Div", ["x", "c"], ["y"])]
    assert read(file_of(twice, [("c", forged)])) or not np.isfinite(value) or value == 1e-200
    assert "divides by zero" in read(file_of(twice, [("c", 0 * TWO)]))


def test_models_that_grow_end_before_memory_does():
    zeros = np.zeros(10_000, np.int64)
    nodes, name = [], "x"
    for i in range(4):
        nodes.append(helper.make_node("Gather", [name, "i"], [f"t{i}"], axis=1))
        name = f"t{i}"
    assert read(file_of([*nodes, helper.make_node("Relu", [name], ["y"])], [("i", zeros)])) == ""
    for i in range(2):
        nodes += [
            helper.make_node("Reshape", [name, f"s{i}"], [f"r{i}"]),
            helper.make_node("Gather", [f"r{i}", "i"], [f"g{i}"], axis=1),
        ]
    shapes = [(f"s{i}", np.array(s, np.int64)) for i, s in enumerate(([10_000, 1], [1, 10_000]))]
    assert "too many" in read(file_of(nodes, [("i", zeros), *shapes]))
    wide = [("a", np.ones((2, 30_000), np.float32)), ("s", np.array([30_000, 1], np.int64))]
    wide.append(("b", np.ones((1, 30_000), np.float32)))
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["m"]),
        helper.make_node("Reshape", ["m", "s"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"]),
    ]
    assert "too large" in read(file_of(nodes, wide))
    image = [("s", np.array([1, 2, 1, 1], np.int64)), ("k", np.ones((1, 2, 1, 1), np.float32))]
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["i"]),
        helper.make_node("Conv", ["i", "k"], ["y"], pads=[1000] * 4, dilations=[10**9, 10**9]),
    ]
    assert read(file_of(nodes, image)) == ""  # a kernel of one entry
    nodes[1] = helper.make_node("Conv", ["i", "k"], ["y"], strides=[0, 1])
    assert "unknown way" in read(file_of(nodes, image))


def test_a_swapped_model_of_the_same_shape(tmp_path):
    """The right hash of a wrong model does not help: its own bounds are looked at."""
    for name in ("boxes", "signs", "ends"):
        claim, arrays, _ = genuine(name)
        net = problems()[name].models[0]
        layers = [(np.asarray(W), b) for W, b in net.layers]
        layers[-1] = 100.0 * layers[-1][0] * (-1.0 if name == "ends" else 1.0), layers[-1][1] + 1.0
        pn.ReluNetwork.from_layers(layers).save(tmp_path / "other.onnx")
        data = (tmp_path / "other.onnx").read_bytes()
        stated = [{"name": "", "sha256": hashlib.sha256(data).hexdigest()}]
        forged = proof_files.packed({**claim, "models": stated}, arrays)
        if name != "signs":  # there the classes may stay
            assert not said(forged, [data])[0]


def test_a_property_file_that_says_less_or_more(tmp_path):
    """Proofs of narrower claims are rejected for a file, and so are files that are none."""
    norm = problems()["boxes"].models[0]
    small = Problem((norm,), pn.Property.box([-0.5, -1], [1, 1], [[1.0]], [2.1]), "holds")
    _, models, data = certified(small, tmp_path)
    declared = "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)"

    def text(low="-0.5", limit="2.1"):
        box = f"(assert (>= X_0 {low}))(assert (<= X_0 1))(assert (>= X_1 -1))(assert (<= X_1 1))"
        return declared + box + f"(assert (>= Y_0 {limit}))"

    assert not said(data, models, text())[0]  # holds for > 2.1 only
    assert said(data, models, text(limit="2.11"))[0] and said(data, models, text("0", "2.11"))[0]
    assert not said(data, models, text(low="-0.6", limit="2.2"))[0]
    assert not said(data, models, text(limit="2.0"))[0]
    for strange in ("", "(", ")", "(assert", declared, "(" * 1000, "(assert (= Y_0 1))", text() + "(x)"):
        assert not said(data, models, strange)[0]
    many = "(assert (or (<= X_0 0) (<= X_0 1)))" * 40  # two to the power of 40 alternatives
    assert "too many" in said(data, models, text(limit="2.11") + many)[1]
    assert not said(data, models, text(limit="1e999999999"))[0]


def test_inputs_that_a_property_fixes_are_told_to_be_rounded(tmp_path):
    """0.1 is no number of float64: the witness is of the nearest one."""
    norm = problems()["boxes"].models[0]
    declared = "(declare-const X_0 Real)(declare-const X_1 Real)(declare-const Y_0 Real)"
    for fixed in ("0.1", "0.5"):
        x = float(fixed)
        found = Problem((norm,), pn.Property.box([x, -1], [x, 1], [[1.0]], [0.75]), "violated")
        _, models, data = certified(found, tmp_path)
        sides = (f"(<= X_0 {fixed})", f"(>= X_0 {fixed})", "(>= X_1 -1)", "(<= X_1 1)")
        box = "".join(f"(assert {side})" for side in sides)
        good, _, lines = said(data, models, f"{declared}{box}(assert (> Y_0 0.75))")
        assert good and any("nearest number" in line for line in lines) == (fixed == "0.1")
        (tmp_path / "proof").unlink()


def test_the_main_program_never_ends_in_a_traceback(tmp_path, capsys):
    claim, arrays, models = genuine("boxes")
    (tmp_path / "model.onnx").write_bytes(models[0])
    (tmp_path / "proof").write_bytes(proof_files.packed({**claim, "models": [5]}, arrays))
    (tmp_path / "cut.onnx.gz").write_bytes(b"\x1f\x8b\x08")
    for words in (
        ["proof", "model.onnx"],
        ["nothing", "model.onnx"],
        ["proof", "nothing.onnx"],
        ["proof", "cut.onnx.gz"],
        ["proof", "proof"],
        ["model.onnx", "proof"],
        ["proof", "model.onnx", "--property", "proof"],
        [".", "."],
    ):
        given = [word if word.startswith("--") else str(tmp_path / word) for word in words]
        assert checker.main(given) == 1
        assert capsys.readouterr().out.splitlines()[-1].startswith("rejected: ")
    (tmp_path / "proof").write_bytes(proof_files.packed(claim, arrays))
    assert checker.main([str(tmp_path / "proof"), str(tmp_path / "model.onnx")]) == 0
    assert json.loads(json.dumps(capsys.readouterr().out)).splitlines()[-1].startswith("accepted: ")
