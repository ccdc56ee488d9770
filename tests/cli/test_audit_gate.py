"""The gate of ``audit``: conditions, exit codes, baselines, reports for pipelines."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from pindown import ReluNetwork, audit
from pindown.cli.main import main
from pindown.errors import DataFileError
from pindown.findings.gates import (
    Reading,
    Readings,
    load_readings,
    outcomes,
    parse_condition,
    readings,
)
from tests.findings.test_planted_faults import bayes_network, three_classes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A network with dead units, another without, and a table of rows."""
    path = tmp_path_factory.mktemp("gate")
    bayes_network(extra=12).save(path / "dead.onnx")
    bayes_network().save(path / "fine.onnx")
    X, y = three_classes(200, 0)
    np.savez(path / "data.npz", X=X, y=y)
    return path


def run(folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        main(["audit", *words, "--data", "data.npz", "--only", "ACC-01,UNIT-01"])
    return ended.value.code


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("ACC-01<0.9", 0),
        ("ACC-01<1.1", 1),
        ("ACC-01>=97%", 1),
        ("ACC-01.guess>0.9", 0),
        ("UNIT-01.dead>0.5", 1),
        ("concern:dead-units", 1),
        ("concern:leak", 0),
        ("concern", 1),
        ("GEO-01>5", 1),  # has no answer here
        ("ACC-99>5", 3),
        ("ACC-01", 3),
        ("ACC-01<nan", 3),
        ("concern:deaf-units", 3),
    ],
)
def test_exit_codes(folder, monkeypatch, condition, code):
    assert run(folder, monkeypatch, "dead.onnx", "--fail-on", condition) == code


def test_a_baseline_lets_pass_what_was_so_before(folder, monkeypatch, capsys):
    files = ("--json", "dead.json", "--junit", "dead.xml", "--comment", "dead.md")
    assert run(folder, monkeypatch, "dead.onnx", *files) == 1  # --junit alone is about any concern
    suite = ElementTree.parse(folder / "dead.xml").getroot()
    assert suite.get("tests") == suite.get("failures") == "1"
    assert "60.0% of the units" in suite[0][0].get("message")
    assert "### ❌ dead.onnx: One concern" in (folder / "dead.md").read_text()
    document = json.loads((folder / "dead.json").read_text())
    assert document["concerns"][0]["name"] == "dead-units" and document["concerns"][0]["value"] == 0.6
    assert run(folder, monkeypatch, "dead.onnx", "--baseline", "dead.json") == 0  # against itself
    assert run(folder, monkeypatch, "fine.onnx", "--baseline", "dead.json") == 0
    assert run(folder, monkeypatch, "fine.onnx", "--json", "fine.json") == 0
    capsys.readouterr()
    assert run(folder, monkeypatch, "dead.onnx", "--baseline", "fine.json") == 1
    assert "failed: concern: 60.0% of the units (12 of 20) are dead" in capsys.readouterr().err


def test_of_one_model_nothing_got_worse_whatever_the_seed_and_the_time(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    conditions = ("ACC-01<1.1", "SEN-02>0", "ROB-03.turned>=0", "GEO-01>5", "concern:dead-units")
    asked = [word for condition in conditions for word in ("--fail-on", condition)]

    def code(model, *more):
        with pytest.raises(SystemExit) as ended:
            main(
                ["audit", model, "--data", "data.npz", "--only", "ACC,UNIT,SEN-02,ROB-03", *asked, *more]
            )
        return ended.value.code

    assert code("dead.onnx", "--json", "before.json") == 1
    capsys.readouterr()
    again = ("--baseline", "before.json", "--seed", "7", "--budget", "0.05")
    assert code("dead.onnx", *again) == 0  # hardly any question has time to be answered
    assert "model and data are those of the baseline" in capsys.readouterr().err
    np.savez("data.npz", X=three_classes(200, 0)[0] + 1e-9, y=three_classes(200, 0)[1])
    try:
        assert (
            code("dead.onnx", "--baseline", "before.json", "--seed", "7") == 0
        )  # within what seeds change
        assert "those of the baseline" not in capsys.readouterr().err
    finally:
        np.savez("data.npz", X=three_classes(200, 0)[0], y=three_classes(200, 0)[1])


def test_what_had_no_time_is_not_compared():
    number, condition = {"ROB-03": Reading(0.6, 0.05, 0.05)}, [parse_condition("ROB-03>0.5")]
    now, silent = Readings(number, {}), Readings({}, {})
    late = Readings({}, {}, frozenset({"ROB-03"}))
    assert outcomes(now, condition)[0].words and outcomes(late, condition)[0].words
    for pair in ((late, now), (now, late)):
        (found,) = outcomes(pair[0], condition, pair[1])
        assert not found.words and "not compared" in found.note
    assert outcomes(silent, condition, now)[0].words  # it had an answer, and time was not the reason
    assert outcomes(now, condition, silent)[0].words  # nobody asked before
    below = Readings({"ROB-03": Reading(0.48, 0.05, 0.05)}, {})
    assert not outcomes(now, condition, below)[0].words  # another draw of rows may do as much
    below = Readings({"ROB-03": Reading(0.48, 0.05, 0.0)}, {})
    exact = Readings({"ROB-03": Reading(0.6, 0.05, 0.0)}, {})
    assert outcomes(exact, condition, below)[0].words  # of the same rows: it crossed the limit


def test_a_concern_fails_only_where_it_surely_grew():
    def found(turned, error):
        numbers = {
            f"ROB-03.{name}": Reading(value, error, error)
            for name, value in (("turned", turned), ("turned_surely", turned - 3 * error))
        }
        title = {"robustness": (turned - 3 * error, "weak")} if turned - 3 * error > 0.25 else {}
        return Readings(numbers, title)

    any_concern = [parse_condition("concern")]
    assert not outcomes(found(0.45, 0.05), any_concern, found(0.38, 0.05))[0].words
    assert outcomes(found(0.9, 0.05), any_concern, found(0.38, 0.05))[0].words == "weak"
    late = Readings({}, {}, frozenset({"ROB-03"}))
    (outcome,) = outcomes(found(0.9, 0.05), any_concern, late)
    assert not outcome.words and "no time for ROB-03" in outcome.note


def test_limits_come_from_pindown_toml(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pindown.toml").write_text("[audit.concerns]\ndead-units = 0.7\n")
    words = ["audit", str(folder / "dead.onnx"), "--data", str(folder / "data.npz"), "--only", "UNIT-01"]

    def code(*more):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--fail-on", "concern", *more])
        return ended.value.code

    assert code() == 0
    (tmp_path / "other.toml").write_text("[audit.concerns]\ndead-units = 0.5\n")
    assert code("--config", "other.toml") == 1
    for wrong in (
        "[audit.concerns]\ndead = 1\n",
        "[audit]\nconcerns = 3\n",
        "not toml",
        "[audit.concerns]\nleak = 'x'\n",
    ):
        (tmp_path / "wrong.toml").write_text(wrong)
        assert code("--config", "wrong.toml") == 3
    assert code("--config", "missing.toml") == 3


def test_numbers_get_worse_beyond_noise_only():
    X, y = three_classes(200, 0, 1.4)
    result = audit(bayes_network(1.4), X, y, only=["ACC-01"])
    now = readings(result.findings, result.judgement)
    condition = [parse_condition("ACC-01<1.01")]
    assert outcomes(now, condition)[0].words and not outcomes(now, condition, now)[0].words
    value, error, draw = now.numbers["ACC-01"]
    assert draw == 0.0  # all rows were seen
    near = now._replace(numbers={"ACC-01": now.numbers["ACC-01"]._replace(value=value + 2 * error)})
    far = now._replace(numbers={"ACC-01": now.numbers["ACC-01"]._replace(value=value + 4 * error)})
    assert not outcomes(now, condition, near)[0].words and outcomes(now, condition, far)[0].words


def test_files_that_are_no_audit_are_refused(tmp_path):
    for text in ("", "[]", "{}", '{"findings": [1], "concerns": []}', "[" * 100_000):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(DataFileError, match="no audit"):
            load_readings(tmp_path / "x.json")
    with pytest.raises(DataFileError, match="No such file"):
        load_readings(tmp_path / "missing.json")


def test_operations_that_are_not_read_can_be_evaluated(tmp_path, monkeypatch, capsys):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper = onnx.helper
    node = helper.make_node("Bernoulli", ["x"], ["b"])  # random: nothing here reads it
    zero = helper.make_node("Mul", ["b", "zero"], ["z"])
    add = helper.make_node("Add", ["x", "z"], ["y"])
    number = onnx.numpy_helper.from_array(np.zeros(1, np.float32), "zero")
    ends = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    graph = helper.make_graph([node, zero, add], "g", ends[:1], ends[1:], [number])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "odd.onnx",
    )
    np.savez(tmp_path / "data.npz", X=np.eye(2), y=[0, 1])
    monkeypatch.chdir(tmp_path)
    words = ["audit", "odd.onnx", "--data", "data.npz", "--only", "ARC-01,ACC-01,GEO-01,ROB-01"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 3 and "--evaluate-only" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([*words, "--evaluate-only", "--json"])
    document = json.loads(capsys.readouterr().out)
    status = {finding["code"]: finding["status"] for finding in document["findings"]}
    assert ended.value.code == 0 and status["ACC-01"] == "answered"
    assert status["GEO-01"] == status["ROB-01"] == "not applicable"
    assert document["network"]["parameters"] is None and document["network"]["outputs"] == 2


def test_functions_are_asked_for_values():
    X, y = three_classes(200, 0)
    net = bayes_network()

    def probabilities(Z):
        p = np.exp(net(Z))
        return p / p.sum(axis=1, keepdims=True)

    ours, theirs = (
        audit(net, X, y, only=["ACC", "CAL"]),
        audit(probabilities, X, y, only=["ACC", "CAL", "GEO"]),
    )
    for code in ("ACC-01", "ACC-02", "ACC-03", "CAL-01"):
        assert theirs[code].number.value == pytest.approx(ours[code].number.value, abs=1e-9)
    assert theirs["GEO-01"].verdict.endswith("only its values are known")
    with pytest.raises(ValueError, match="needs X"):
        audit(probabilities)
    with pytest.raises(ValueError, match="the model failed on inputs"):
        audit(lambda Z: Z @ np.ones((7, 1)), X, y)
    with pytest.raises(ValueError, match="one output for each"):
        audit(lambda Z: Z.sum(), X, y)


def test_a_model_without_an_exact_form_gets_what_needs_only_gradients_and_bounds():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    X, y = three_classes(120, 0)
    result = audit(module, X, y, test=three_classes(120, 1), budget=8)
    answered = {finding.code for finding in result.findings if finding.answered}
    wanted = {
        "ARC-01",
        "ACC-01",
        "CAL-01",
        "DAT-01",
        "INP-01",
        "OUT-01",
        "ROB-01",
        "ROB-02",
        "ROB-03",
        "SEN-02",
    }
    assert wanted <= answered and len(answered) >= 12
    assert not result.failed and "GELU is not piecewise linear" in result["GEO-01"].verdict
    low, high = (result["OUT-01"].table.rows[0][i] for i in (1, 4))
    values = module(torch.tensor(X, dtype=torch.float32)).detach().numpy()[:, 0]
    assert low <= values.min() and values.max() <= high


def test_dead_units_of_a_graph_are_those_of_the_framework():
    torch = pytest.importorskip("torch")
    from pindown import Model

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        *(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten()),
        *(torch.nn.Linear(64, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2)),
    )
    module[0].bias.data[:2] = -5.0
    model = Model.from_torch(module, input_shape=(1, 6, 6))
    X = np.random.default_rng(0).uniform(0, 1, (50, 1, 6, 6))
    seen = []
    for layer in (module[1], module[4]):
        layer.register_forward_hook(lambda *a: seen.append(a[2].detach().flatten(1).amax(0) <= 0))
    module(torch.tensor(X, dtype=torch.float32))
    result = audit(model, X, only=["UNIT-01"])
    assert result["UNIT-01"].facts["dead_count"] == sum(int(s.sum()) for s in seen)
    assert result["UNIT-01"].facts["units"] == 64 + 5


def test_networks_and_models_of_them_are_told_the_same():
    net = bayes_network()
    assert isinstance(net, ReluNetwork)
    X, y = three_classes(100, 0)
    from pindown.model.from_network import model_of_network

    codes = ["ARC", "ACC", "UNIT", "OUT", "SEN"]
    ours, theirs = audit(net, X, y, only=codes), audit(model_of_network(net), X, y, only=codes)
    assert [f.verdict for f in ours.findings] == [f.verdict for f in theirs.findings]
