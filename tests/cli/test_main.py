"""The command line as a user meets it: output, files, exit codes, one line for bad input."""

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from pindown import load
from pindown.cli.demo import write_demo_files
from pindown.cli.main import _in_words, main
from pindown.cli.options import parse_box
from tests.test_network import random_network


@pytest.fixture
def run(capsys):
    """Run the command line; return (exit code, stdout, stderr)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return call


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    random_network((3, 8, 2)).save(path)
    return path


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", X=rng.normal(size=(20, 3)), y=rng.integers(0, 2, 20))
    return tmp_path / "data.npz"


def test_an_audit_prints_its_findings(run, model, data):
    code, out, _ = run("audit", model, "--data", data)
    assert code == 0
    for word in (
        "model.onnx",
        "ARC-01",
        "UNIT-01",
        "UNIT-02",
        "ACC-01",
        "ACC-02",
        "LIP-01",
        "NORM-01",
        "SYM-01",
    ):
        assert word in out


def test_every_kind_of_output(run, model, data, tmp_path):
    page, document, text = tmp_path / "a.html", tmp_path / "a.json", tmp_path / "a.md"
    code, _, err = run(
        "audit", model, "--data", data, "--html", page, "--json", document, "--markdown", text
    )
    assert code == 0
    assert page.read_text().lower().startswith("<!doctype html>")
    assert {f["code"] for f in json.loads(document.read_text())["findings"]} >= {"ARC-01", "ACC-01"}
    assert "ARC-01" in text.read_text()
    assert str(page) in err


def test_json_alone_goes_to_stdout_and_nothing_else_does(run, model):
    code, out, _ = run("audit", model, "--json")
    assert code == 0
    assert json.loads(out)["schema"] == 2
    code, out, _ = run("audit", "--json", "-", "--only", "ARC-01", model)
    assert [f["code"] for f in json.loads(out)["findings"]] == ["ARC-01"]


def test_only_and_ignore(run, model):
    _, out, _ = run("audit", model, "--only", "ARC-01, SYM-01", "--ignore", "SYM-01")
    assert "ARC-01" in out
    assert "SYM-01" not in out


def test_box_as_numbers_and_as_a_file(run, model, tmp_path):
    code, out, _ = run("audit", model, "--box", "-0.5,0.5", "--only", "UNIT-02")
    assert code == 0
    assert "undecided" in out
    np.savez(tmp_path / "box.npz", lower=-np.ones(3), upper=np.ones(3))
    assert run("audit", model, "--box", tmp_path / "box.npz", "--only", "UNIT-02")[0] == 0
    rows = np.random.default_rng(0).random((9, 3))
    np.savez(tmp_path / "rows.npz", X=rows, y=np.zeros(9))
    np.save(tmp_path / "rows.npy", rows)
    for name in ("rows.npz", "rows.npy"):
        box = parse_box(str(tmp_path / name), 3)
        assert np.array_equal(box.lower, rows.min(axis=0))
        assert np.array_equal(box.upper, rows.max(axis=0))
    np.savez(tmp_path / "half.npz", lower=-np.ones(3), X=rows)
    code, _, err = run("audit", model, "--box", tmp_path / "half.npz", "--only", "UNIT-02")
    assert code == 3 and "no array 'upper'" in err


def test_help_shows_an_example(run):
    assert "pindown audit model.onnx" in run("audit", "--help")[1]
    assert "pindown demo" in run("demo", "--help")[1]
    assert "audit" in run("--help")[1]
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "pindown")


class Hostile:
    def __reduce__(self):
        return (os.mkdir, (os.environ["PINDOWN_TEST_TRAP"],))


def bad_models(folder: Path, good: Path):
    """Yield file names with a word that the complaint must hold."""
    whole = good.read_bytes()
    contents = {
        "empty.onnx": (b"", "empty"),
        "truncated.onnx": (whole[: len(whole) // 2], "truncated.onnx"),
        "noise.onnx": (np.random.default_rng(0).bytes(1000), "noise.onnx"),
        "claims.safetensors": ((10 * 2**30).to_bytes(8, "little") + b"{", "claims.safetensors"),
        "hostile.pkl": (pickle.dumps(Hostile()), "pickle"),
        "hostile.pt": (pickle.dumps(Hostile()), "pickle"),
        "model.h5": (b"\x89HDF", "model.h5"),
    }
    for name, (content, word) in contents.items():
        (folder / name).write_bytes(content)
        yield name, word
    flat = onnx.load(good)
    flat.graph.initializer[0].raw_data = b"\x00\x00\xc0\x7f" * (
        len(flat.graph.initializer[0].raw_data) // 4
    )
    onnx.save(flat, folder / "nan.onnx")
    yield "nan.onnx", "finite"
    (folder / "folder.onnx").mkdir()
    yield "folder.onnx", "folder.onnx"
    yield "missing.onnx", "missing.onnx"


def test_bad_models_get_one_line_and_code_3(run, tmp_path, monkeypatch):
    trap = tmp_path / "executed"
    monkeypatch.setenv("PINDOWN_TEST_TRAP", str(trap))
    good = tmp_path / "good.onnx"
    random_network((3, 4, 2)).save(good, dtype="float32")
    for name, word in bad_models(tmp_path, good):
        code, out, err = run("audit", tmp_path / name)
        assert (code, out) == (3, ""), name
        assert err.startswith("pindown: "), name
        assert err.count("\n") == 1, err
        assert word in err, err
        assert not trap.exists(), f"{name} was executed"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--data", "missing.npz"], "no data file"),
        (["--box", "1,0"], "lower"),
        (["--box", "a,b"], "--box takes"),
        (["--box", "nan,1"], "finite"),
        (["--budget", "0"], "budget"),
        (["--budget", "soon"], "budget"),
        (["--only", "XYZ-99"], "ARC-01"),
        (["--json", "model.onnx"], ".json"),
        (["--html", "none/there.html"], "folder"),
        (["--nonsense"], "nonsense"),
    ],
)
def test_bad_arguments_get_one_line_and_code_3(run, model, monkeypatch, arguments, word):
    monkeypatch.chdir(model.parent)
    before = model.read_bytes()
    code, _, err = run("audit", model, *arguments)
    assert code == 3
    assert word in err
    assert err.count("\n") == 1
    assert model.read_bytes() == before


def test_data_that_do_not_fit(run, model, tmp_path):
    for X, y, word in [
        (np.zeros((5, 4)), np.zeros(5, int), r"(n, 3)"),
        (np.full((5, 3), np.nan), np.zeros(5, int), "NaN"),
        (np.zeros((5, 3)), np.array([0, 1, 2, 0, 1]), "0"),
        (np.zeros((0, 3)), np.zeros(0, int), "no inputs"),
    ]:
        np.savez(tmp_path / "bad.npz", X=X, y=y)
        code, _, err = run("audit", model, "--data", tmp_path / "bad.npz")
        assert code == 3, word
        assert word in err
        assert err.count("\n") == 1


def test_no_command_and_missing_argument(run):
    assert run("audit")[0] == 3
    assert run("frobnicate")[0] == 3


def test_demo_writes_and_names_the_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("demo")
    assert code == 0
    assert "pindown-demo/audit.html" in out + err
    page = tmp_path / "pindown-demo" / "audit.html"
    assert 10_000 < page.stat().st_size < 500_000
    assert "train" in out
    opening = page.read_text().partition("In short")[2][:3000]  # a concern, and what to do
    assert "One concern" in opening and "Take the 30 rows out of the test data" in opening
    assert "30 training images were put among the test images" in out


def test_the_demo_as_json_leaves_stdout_to_the_document(run, tmp_path):
    code, out, err = run("demo", "--out", tmp_path / "here", "--budget", "1", "--json")
    assert code == 0 and json.loads(out)["findings"][0]["code"] == "ARC-01"
    assert "by hand" in err


def test_the_demo_network_survives_the_file(tmp_path):
    files = write_demo_files(tmp_path)
    net = load(files.model).relu_network()
    assert (net.widths, net.output_activation) == ((64, 32, 32, 10), "softmax")
    test = np.load(files.test)
    assert np.mean(net(test["X"]).argmax(axis=1) == test["y"]) > 0.94
    again = write_demo_files(tmp_path / "again")
    assert load(again.model).relu_network() == net  # same seed, same network


# An audit whose third question takes long, and says when it has begun.
SLOW_AUDIT = """
import signal, sys, time
from pindown.findings.questions import Question
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start background jobs without it
answer, asked = Question.answer, []
def slow(question, subject):
    asked.append(question)
    if len(asked) == 3:
        print("asked", flush=True)
        time.sleep(60)
    return answer(question, subject)
Question.answer = slow
from pindown.cli.main import main
main(["audit", sys.argv[1], "--json", "out.json"])
"""


def test_ctrl_c_delivers_what_was_finished(model, tmp_path):
    command = [sys.executable, "-c", SLOW_AUDIT, str(model)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **pipes) as process:
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    findings = json.loads((tmp_path / "out.json").read_text())["findings"]
    assert findings[0]["status"] == "answered"
    assert any("interrupted" in f["verdict"] for f in findings)


def test_import_is_light():
    code = (
        "import sys, pindown\n"
        "heavy = ('torch', 'numba', 'matplotlib', 'sklearn', 'jinja2', 'rich')\n"
        "print(*[name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_words_for_classes_are_numbered_aloud(run, model, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,label\n1,2,3,dog\n4,5,6,cat\n")
    code, _, err = run("audit", model, "--data", tmp_path / "a.csv", "--only", "ACC-01")
    assert code == 0 and "0 cat, 1 dog" in err
    (tmp_path / "b.csv").write_text("a,b,c,label\n1,2,3,dog\n")
    code, _, err = run("audit", model, "--data", tmp_path / "b.csv")
    assert code == 3 and err.count("\n") == 1 and "as numbers 0 to 1" in err


def piped(model, reader, *options, **environment):
    # Few questions: what is tried is the pipe, not the audit.
    asked = f"audit {model} --only ARC,UNIT,SYM-01 {' '.join(options)}"
    command = f"{sys.executable} -m pindown.cli.main {asked} | {reader}"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_reader_that_stops_early_is_no_error(model):
    for reader, options in (("true", ()), ("head -1", ()), ("true", ("--json",))):
        done = piped(model, reader, *options)
        assert (done.returncode, done.stderr) == (0, "")


def test_an_exit_code_that_is_the_answer_outlives_the_reader(model, tmp_path):
    other = tmp_path / "other.onnx"
    random_network((3, 8, 2), seed=1).save(other)
    for reader, options in (("true", ""), ("head -1", ""), ("true", "--json")):
        command = (
            f"{sys.executable} -m pindown.cli.main diff {model} {other} --box 0,1 {options} | {reader}"
        )
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (1, "")


def test_a_terminal_without_arrows_still_gets_the_audit(model):
    done = piped(model, "cat", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "3 ? 8 ? 2" in done.stdout


def test_a_closed_stdout_is_no_traceback(model):
    done = piped(model, "cat", "--html", str(model.with_suffix(".html")), ">&-")
    assert "Traceback" not in done.stderr and model.with_suffix(".html").exists()


def test_files_are_written_although_the_reader_of_stdout_stops_early(model):
    page = model.with_suffix(".html")
    piped(model, "true", "--html", str(page))
    assert page.stat().st_size > 10_000


def test_the_model_before_training_tells_lazy_from_rich(run, model, data, tmp_path):
    before = tmp_path / "before.onnx"
    random_network((3, 8, 2), seed=1).save(before)
    code, out, _ = run("audit", model, "--data", data, "--initial", model, "--only", "BIAS-05")
    assert code == 0 and "lazy: the kernel moved by 0%" in out
    code, out, _ = run("audit", model, "--data", data, "--initial", before, "--only", "BIAS-05")
    assert code == 0 and "rich: the kernel moved by" in out
    random_network((3, 5, 2)).save(before)
    code, _, err = run("audit", model, "--data", data, "--initial", before)
    assert code == 3 and "initial must be the same network before training" in err


COMMANDS = ["audit", "diff", "shrink", "canonical", "theorem", "reproduce", "doctor", "demo", "detect"]


@pytest.mark.parametrize(
    "words", [[], *([name] for name in COMMANDS), ["detect", "fit"], ["detect", "score"]]
)
def test_help_everywhere_shows_an_example_that_begins_with_the_command(run, words):
    code, out, err = run(*words, "--help")
    flat = " ".join(out.split())
    assert code == 0 and not err and f"Example: {' '.join(['pindown', *words])}" in flat
    assert run(*words, "-h")[1] == out


def test_a_bare_command_shows_help_and_no_complaint(run):
    for words in ([], ["detect"]):
        code, out, err = run(*words)
        assert code == 3 and "Usage: pindown" in out + err and "pindown: " not in err


def test_an_error_of_our_own_is_one_line_with_a_code_of_its_own(run, model, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("two proofs\ncontradict")

    monkeypatch.delenv("PINDOWN_DEBUG", raising=False)
    monkeypatch.setattr("pindown.equivalence.comparison.diff", broken)
    code, out, err = run("diff", model, model)
    assert (code, out) == (4, "") and err.count("\n") == 1
    assert "an error in pindown itself, RuntimeError: two proofs contradict" in err
    monkeypatch.setenv("PINDOWN_DEBUG", "1")
    with pytest.raises(RuntimeError, match="two proofs"):
        main(["diff", str(model), str(model)])


def test_a_column_of_labels_with_another_name_is_guessed_aloud(run, model, tmp_path):
    (tmp_path / "a.csv").write_text("a,b,c,species\n1,2,3,0\n4,5,6,1\n")
    code, _, err = run("audit", model, "--data", tmp_path / "a.csv")
    assert code == 3 and err.count("\n") == 1 and "name it with --target" in err
    code, out, _ = run(
        "audit", model, "--data", tmp_path / "a.csv", "--target", "species", "--only", "ACC-01"
    )
    assert code == 0 and "[ACC-01]" in out


def test_places_that_cannot_be_written_are_refused_before_the_work(run, model, tmp_path):
    (tmp_path / "folder.html").mkdir()
    code, out, err = run("audit", model, "--html", tmp_path / "folder.html")
    assert code == 3 and not out and "it is a folder" in err
    code, out, err = run("demo", "--out", model)
    assert code == 3 and not out and "--out names a folder" in err
    missing = OSError(2, "No such file or directory", "/proc/x")
    assert _in_words(missing) == "/proc/x: No such file or directory."
