"""Commands that write several files: all of them or none, whatever happens while they are written."""

import json
import os
import signal

import numpy as np
import pytest

from tests.cli.test_main import run  # noqa: F401
from tests.test_network import random_network

COMMANDS = {
    "audit": "audit old.onnx --only ARC --json a.json --markdown a.md --html a.html",
    "diff": "diff old.onnx new.onnx --box 0,1 --witness w.npy --json d.json --html d.html",
    "verify": "verify old.onnx prop.vnnlib --witness w.txt --json v.json --html v.html",
    "shrink": "shrink old.onnx -o small.onnx --json s.json",
    "canonical": "canonical old.onnx -o form.onnx --json c.json",
    "detect fit": "detect fit rows.csv -o m.safetensors --epochs 1 --html f.html --json f.json",
    "detect score": "detect score fitted.safetensors rows.csv -o p.csv --html p.html --json p.json",
}
GIVEN = ("old.onnx", "new.onnx", "rows.csv", "fitted.safetensors", "prop.vnnlib")
BROKEN = "".join(f"(declare-const {name} Real)" for name in ("X_0", "X_1", "Y_0", "Y_1"))
BROKEN += "(assert (<= 0 X_0 1)) (assert (<= 0 X_1 1)) (assert (or (<= Y_0 0) (>= Y_0 0)))"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Models and rows that the commands read."""
    from pindown.learn.one_class import LocalMaximaDetector

    folder = tmp_path_factory.mktemp("given")
    random_network((2, 4, 2)).save(folder / "old.onnx")
    random_network((2, 4, 2), seed=1).save(folder / "new.onnx")
    (folder / "prop.vnnlib").write_text(BROKEN)
    X = np.random.default_rng(0).normal(size=(30, 2))
    np.savetxt(folder / "rows.csv", X, delimiter=",")
    detector = LocalMaximaDetector(max_epochs=1, n_estimators=1, random_state=0)
    detector.fit(X).save(folder / "fitted.safetensors")
    return folder


@pytest.fixture
def place(given, tmp_path, monkeypatch):
    for name in GIVEN:
        (tmp_path / name).write_bytes((given / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def outputs(arguments):
    return {word for word in arguments[2:] if "." in word} - set(GIVEN)


def made(folder):
    return {path.name for path in folder.iterdir()} - set(GIVEN)


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_files_are_written_leaves_all_or_none(run, place, monkeypatch, command, times):  # noqa: F811
    """Once: they are finished first. Twice: none."""
    arguments, sync, calls = COMMANDS[command].split(), os.fsync, []

    def interrupted(descriptor):
        calls.append(descriptor)
        if len(calls) == 1:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        return sync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    code, _, err = run(*arguments)
    assert code == 130 and "interrupted." in err
    assert made(place) == (outputs(arguments) if times == 1 else set())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_fills_up_leaves_none_but_what_was_learned(run, place, monkeypatch, command):  # noqa: F811
    arguments, sync, calls = COMMANDS[command].split(), os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = run(*arguments)
    assert code == 3 and out and "No space left" in err.splitlines()[-1]
    assert made(place) == ({"m.safetensors"} if command == "detect fit" else set())


def test_without_accident_all_are_written(run, place):  # noqa: F811
    arguments = COMMANDS["detect fit"].split()
    code, _, err = run(*arguments)
    assert code == 0 and made(place) == outputs(arguments) and err.count("wrote") == 3
    json.loads((place / "f.json").read_text())
