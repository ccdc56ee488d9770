"""Certificates: what is proved can be checked by a stranger, and nothing else is."""

import json
import re
from functools import partial

import numpy as np
import onnx
import pytest

import pindown as pn
from pindown.errors import CertificateError
from pindown.io.onnx_operations import operations_of
from pindown.model.builder import Builder
from pindown.model.operations.smooth import Sigmoid
from pindown.verification import UnsafeSet, portfolio, proof_files
from tests.cli.test_main import run  # noqa: F401
from tests.verification.checking import certified, load_checker, problems

checker = load_checker()


def verdict_of(data, models, text=None):
    """Return what the checker says, and the claim that it prints."""
    lines = []
    with np.errstate(all="ignore"):
        try:
            return f"accepted: {checker.check(data, models, text, write=lines.append)}", lines
        except checker.Rejected as reason:
            return f"rejected: {reason}", lines


@pytest.mark.parametrize("name", [name for name in problems() if not name.startswith("many")])
def test_every_kind_of_proof_is_accepted(name, tmp_path):
    problem = problems()[name]
    answer, models, data = certified(problem, tmp_path)
    assert answer.verdict == problem.verdict and answer.certificate == str(tmp_path / "proof")
    said, lines = verdict_of(data, models)
    assert said.startswith(f"accepted: {problem.verdict}")
    assert len([line for line in lines if line.startswith("unsafe set")]) == len(problem.prop.unsafe)
    if problem.way:
        ways = checker.Certificate(data).arrays["proof"]
        assert set(ways.tolist()) == {problem.way}
    if name == "signs":
        kinds = checker.Certificate(data).arrays["sign_kinds"]
        assert (kinds == checker.CUT).any()


def test_models_without_a_file_have_no_certificate(tmp_path):
    problem = problems()["boxes"]
    with pytest.raises(ValueError, match="give paths"):
        pn.verify(problem.models[0], problem.prop, certificate=tmp_path / "proof")


@pytest.mark.parametrize("name", ["boxes", "signs"])
def test_a_search_goes_on_from_what_is_open(name, tmp_path, monkeypatch):
    """Stopped after every few parts, it ends like one run, and the checker accepts what it ends with."""
    monkeypatch.setattr(portfolio, "SPLIT_FIRST_PARTS", 1)
    monkeypatch.setattr(portfolio, "BOX_FIRST_PARTS", 4)
    problem = problems()[f"many {name}"]
    whole = pn.verify(problem.models[0], problem.prop, n_jobs=1)
    assert whole.verdict == "holds"
    runs, known = 0, 0
    monkeypatch.setattr(portfolio, "Run", partial(portfolio.Run, turns=1))
    while True:
        answer, models, data = certified(problem, tmp_path)
        runs += 1
        if answer.verdict != "undecided":
            break
        assert verdict_of(data, models)[0] == "rejected: the proof is not finished."
        n_nodes = sum(len(checker.Certificate(data).arrays[f"{way}_kinds"]) for way in ("box", "sign"))
        assert n_nodes > known and runs < 200
        known = n_nodes
    assert answer.verdict == "holds" and runs > 2 and "went on" in answer.certificate_note
    assert answer.method.endswith("if what the earlier file calls proved is")  # nobody bounded it again
    assert verdict_of(data, models)[0].startswith("accepted: holds")


def test_a_file_of_something_else_is_not_touched(tmp_path):
    first, second = problems()["boxes"], problems()["witness"]
    _, _, data = certified(first, tmp_path)
    with pytest.raises(CertificateError, match=r"^\S*proof: this certificate is of another claim"):
        certified(second, tmp_path)
    (tmp_path / "proof").write_bytes(b"notes")
    with pytest.raises(CertificateError, match="no certificate"):
        certified(first, tmp_path)
    assert (tmp_path / "proof").read_bytes() == b"notes" and data


def test_operations_that_the_checker_does_not_know_leave_the_verdict(tmp_path):
    graph = Builder((1, 2))
    model = graph.model(graph.add(Sigmoid(), graph.input), input_shape=(2,))
    model.save(tmp_path / "smooth.onnx")
    prop = pn.Property.box([-1, -1], [1, 1], [[1.0, 1.0]], [1.9])
    answer = pn.verify(tmp_path / "smooth.onnx", prop, certificate=tmp_path / "proof")
    assert answer.verdict == "holds" and not answer.certificate and not (tmp_path / "proof").exists()
    assert answer.certificate_note == (
        "no certificate was written: the checker does not know the operation Sigmoid"
    )
    reached = pn.Property.box([-1, -1], [1, 1], [[1.0, 1.0]], [1.0])
    answer = pn.verify(tmp_path / "smooth.onnx", reached, certificate=tmp_path / "proof")
    assert answer.verdict == "violated" and "Sigmoid" in answer.certificate_note
    assert not answer.certificate and not (tmp_path / "proof").exists()


@pytest.mark.parametrize("name", ["Conv", "MaxPool", "Softmax"])
def test_models_with_other_operations_get_a_verdict_and_no_file(tmp_path, name):
    """A convolution in groups is a use that the checker does not know."""
    node, floats = onnx.helper.make_node, onnx.TensorProto.FLOAT
    kernel = onnx.numpy_helper.from_array(np.ones((2, 1, 1, 1), np.float32), "k")
    made = {
        "Conv": node("Conv", ["x", "k"], ["a"], group=2),
        "MaxPool": node("MaxPool", ["x"], ["a"], kernel_shape=[1, 1]),
        "Softmax": node("Softmax", ["x"], ["a"], axis=1),
    }
    ends = [
        onnx.helper.make_tensor_value_info(end, floats, shape)
        for end, shape in (("x", [1, 2, 2, 2]), ("y", [1, 8]))
    ]
    nodes, stored = [made[name], node("Flatten", ["a"], ["y"])], [kernel] if name == "Conv" else []
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8),
        tmp_path / "model.onnx",
    )
    rows = np.eye(8)[:1]
    for limit, verdict in ((-5.0, "holds"), (5.0, "violated")):
        prop = pn.Property((UnsafeSet(-np.ones(8), np.ones(8), rows, np.array([limit])),), (8,), (8,))
        answer = pn.verify(tmp_path / "model.onnx", prop, certificate=tmp_path / "proof")
        assert answer.verdict == verdict and not (tmp_path / "proof").exists()
        assert re.fullmatch(rf"no certificate was written: .* operation {name}", answer.certificate_note)


ROW = np.array([[1.0, 2.0, 3.0]])
COLUMN = ROW.T


@pytest.mark.parametrize(
    ("steps", "constants", "reason"),
    [
        ([("Add", "xc")], [COLUMN], ""),
        ([("Mul", "xc")], [COLUMN], ""),
        ([("Gather", "xc"), ("Sub", "xa")], [np.zeros((1, 1), int)], ""),
        ([("Slice", "xcdef")], [np.array([n]) for n in (-1, -9, 1, -1)], ""),
        ([("Transpose", "c"), ("MatMul", "xa")], [ROW], ""),
        ([("Squeeze", "x")], [], "Squeeze"),
        ([("Add", "cd"), ("Add", "xa")], [ROW, ROW], "operation Add"),
        ([("Neg", "c"), ("Add", "xa")], [ROW], "operation Neg"),
        ([("Mul", "xc")], [1e-200 * ROW], "weights of sizes"),
        ([("Div", "xc")], [1e200 * ROW], "weights of sizes"),
    ],
)
def test_uses_of_operations_are_checked_or_have_no_file(tmp_path, steps, constants, reason):
    """What is written is accepted: broadcasting and going backwards, yes; sums of constants, no."""
    nodes, made = [], dict(zip("cdef", constants, strict=False))
    for i, (name, inputs) in enumerate(steps):
        options = {"axis": 0} if name == "Gather" else {}
        out = "y" if i == len(steps) - 1 else "a"
        nodes.append(onnx.helper.make_node(name, list(inputs), [out], **options))
    double = onnx.TensorProto.DOUBLE
    ends = [onnx.helper.make_tensor_value_info("x", double, [1, 3])]
    ends.append(onnx.helper.make_tensor_value_info("y", double, None))
    stored = [onnx.numpy_helper.from_array(v, key) for key, v in made.items()]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    opsets = [onnx.helper.make_opsetid("", 13)]
    path, proof = tmp_path / "model.onnx", tmp_path / "proof"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    k = len(np.ravel(pn.load(path)(np.zeros(3))))
    for limit, verdict in ((-1e9, "holds"), (1e9, "violated")):
        proof.unlink(missing_ok=True)
        unsafe = UnsafeSet(-np.ones(3), np.ones(3), np.eye(k)[:1], np.array([limit]))
        answer = pn.verify(path, pn.Property((unsafe,), (3,), (k,)), certificate=proof)
        assert answer.verdict == verdict and reason in answer.certificate_note
        assert bool(answer.certificate) == (not reason)
        if not reason:
            said, _ = verdict_of(proof.read_bytes(), [path.read_bytes()])
            assert said.startswith(f"accepted: {verdict}")


def test_uses_that_the_files_version_does_not_have_and_rare_types_have_no_file(tmp_path):
    """An attribute that became an input in opset 13; weights of bfloat16."""
    node, tensors = onnx.helper.make_node, onnx.TensorProto
    ends = [onnx.helper.make_tensor_value_info(n, tensors.FLOAT, [1, 2]) for n in "xy"]
    nodes = [node("Unsqueeze", ["x"], ["u"], axes=[0]), node("Squeeze", ["u"], ["s"], axes=[0])]
    nodes.append(node("Mul", ["s", "c"], ["y"]))
    for version, kind in ((11, tensors.FLOAT), (13, tensors.FLOAT), (11, tensors.BFLOAT16)):
        stored = [onnx.helper.make_tensor("c", kind, [1, 2], [1.0, 2.0])]
        graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
        opsets = [onnx.helper.make_opsetid("", version)]
        path = tmp_path / "model.onnx"
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        found = operations_of(path)
        assert found.unusual == (() if version == 11 else ("Unsqueeze", "Squeeze"))
        assert found.plain == (kind == tensors.FLOAT)
        network, reads = checker.Network(2), np.arange(2)
        if not found.unusual and found.plain:
            checker.Reader(network, path.read_bytes(), reads)
        else:
            with pytest.raises((checker.Rejected, onnx.checker.ValidationError)):
                checker.Reader(network, path.read_bytes(), reads)


def test_certificates_that_are_too_large_are_not_written(tmp_path, monkeypatch):
    for name, reason in (("MAX_FILE", "it would have 0 MB, and 0 MB are allowed"), ("MAX_TEXT", "text")):
        with monkeypatch.context() as patch:
            patch.setattr(proof_files, name, 100)
            answer, _, data = certified(problems()["boxes"], tmp_path)
        assert answer.verdict == "holds" and not answer.certificate and not data
        assert answer.certificate_note.startswith("no certificate was written: it")
        assert reason in answer.certificate_note


@pytest.mark.parametrize("way", ["own", "elsewhere"])
def test_files_that_the_checker_does_not_read_leave_the_verdict(tmp_path, way):
    path = tmp_path / "norm.onnx"
    problems()["boxes"].models[0].save(path)
    model = onnx.load(path)
    if way == "own":
        end = [onnx.helper.make_node("Neg", ["a"], ["b"])]
        model.functions.append(
            onnx.helper.make_function("mine", "Minus", ["a"], ["b"], end, model.opset_import)
        )
    onnx.save(model, path, save_as_external_data=way == "elsewhere", size_threshold=0)
    for name, verdict in (("boxes", "holds"), ("witness", "violated")):
        answer = pn.verify(path, problems()[name].prop, certificate=tmp_path / "proof")
        assert answer.verdict == verdict and not answer.certificate
        assert "keeps weights elsewhere, has operations of its own" in answer.certificate_note


def test_a_certificate_by_the_command_line(run, tmp_path, capsys):  # noqa: F811
    """The command writes it, the page and the JSON name it, the checker's program accepts it."""
    problems()["boxes"].models[0].save(tmp_path / "norm.onnx")
    text = "(declare-const X_0 Real) (declare-const X_1 Real) (declare-const Y_0 Real)"
    text += (
        "".join(f"(assert (>= X_{i} -1)) (assert (<= X_{i} 1))" for i in (0, 1))
        + "(assert (>= Y_0 2.125))"
    )
    (tmp_path / "reach.vnnlib").write_text(text)
    (tmp_path / "other.vnnlib").write_text(text.replace("2.125", "2.0625"))
    model, proof = str(tmp_path / "norm.onnx"), str(tmp_path / "proof")
    options = ["--certificate", proof, "--html", str(tmp_path / "page.html"), "--json", "-"]
    code, out, _ = run("verify", model, str(tmp_path / "reach.vnnlib"), *options)
    said = json.loads(out)["certificate"]
    assert code == 0
    assert said == {"file": proof, "check": f"python pindown_check.py {proof} norm.onnx", "note": ""}
    assert "pindown_check.py" in (tmp_path / "page.html").read_text()
    assert checker.main([proof, model, "--property", str(tmp_path / "reach.vnnlib")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1].startswith("accepted: holds") and "unsafe set 1: box 1 and -1.0 Y_0 <= -2.125" in out
    assert checker.main([proof, model, "--property", str(tmp_path / "other.vnnlib")]) == 1
    assert "rejected: the certificate is about another property" in capsys.readouterr().out
    assert run("verify", model, str(tmp_path / "other.vnnlib"), "--certificate", proof)[0] == 3
    assert checker.main([proof, str(tmp_path / "missing.onnx")]) == 1
