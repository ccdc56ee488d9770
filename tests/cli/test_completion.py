"""What Tab offers, in the words the shells get."""

import shutil
import subprocess
import sys

import pytest

from pindown.cli.completion import complete_codes, complete_experiment, complete_model, files
from pindown.cli.main import main
from pindown.findings import CATALOGUE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("a.onnx", "b.ONNX.gz", "c.pt", "d.csv", "notes.txt", ".hidden.onnx"):
        (tmp_path / name).touch()
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "deep.safetensors").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_models_are_folders_and_files_that_can_be_read(folder):
    assert complete_model("") == ["a.onnx", "b.ONNX.gz", "c.pt", "models/"]
    assert complete_model("mod") == ["models/"]
    assert complete_model("models/") == ["models/deep.safetensors"]
    assert complete_model(f"{folder}/a") == [f"{folder}/a.onnx"]
    assert complete_model(".h") == [".hidden.onnx"]
    assert files(".csv")("") == ["d.csv", "models/"]


def test_a_folder_that_is_not_there_offers_nothing():
    assert complete_model("no/such/folder/x") == []


def test_codes_are_completed_after_the_last_comma():
    codes = [question.code for question in CATALOGUE]
    assert [code for code, _ in complete_codes("")] == codes
    assert ("ARC-01", CATALOGUE[codes.index("ARC-01")].title) in complete_codes("arc")
    offered = [code for code, _ in complete_codes("ARC-01,UNIT-0")]
    assert "ARC-01,UNIT-01" in offered and "ARC-01,ARC-01" not in offered
    assert complete_codes("ARC-01,A") == [
        (f"ARC-01,{code}", title) for code, title in complete_codes("A") if code != "ARC-01"
    ]


def test_experiments_are_completed_by_name():
    assert "identifiability" in dict(complete_experiment("ident"))
    assert complete_experiment("no such") == []


@pytest.fixture
def ask(monkeypatch, capsys):
    """Return what the shell's own script would get from the program."""

    def answer(action: str, words: str = "") -> str:
        for name, value in {
            "_PINDOWN_COMPLETE": action,
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().out

    return answer


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_three_shells_get_answers(shell, folder, ask):
    assert "doctor" in ask(f"complete_{shell}", "pindown do")
    models = ask(f"complete_{shell}", "pindown audit ")
    assert "a.onnx" in models and "notes.txt" not in models
    assert "LIP-01" in ask(f"complete_{shell}", "pindown audit a.onnx --only LIP")
    script = ask(f"source_{shell}")
    assert f"_PINDOWN_COMPLETE=complete_{shell}" in script and "pindown" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_itself_completes(folder):
    program = folder / "pindown"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pindown "$@"\n')
    program.chmod(0o755)
    script = """
        eval "$(_PINDOWN_COMPLETE=source_bash ./pindown)"
        COMP_WORDS=(pindown diff a); COMP_CWORD=2
        _pindown_completion ./pindown; echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["a.onnx"]
