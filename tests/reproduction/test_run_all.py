"""All experiments in one go: failures do not stop the rest, and the command says what came of each."""

import dataclasses
import json

import pytest

from pindown.cli.main import main
from pindown_reproduction import DECLARED, EXPERIMENTS, Experiment, Outcome, reproduce_all
from pindown_reproduction.experiment import SourceData
from pindown_reproduction.ledger import ERROR, MARK


def run_cell(cell):
    if cell["n"] == 13:
        raise RuntimeError("thirteen\nis too many")
    return {"n": cell["n"], "data": "digits"}


def numbered(name, n, data=None):
    return Experiment(
        id=name, title=name, source="A test", published="", rule="", settings={"quick": {}, "paper": {}},
        cells=lambda _: [{"n": n}], run=run_cell, data=data,
        compare=lambda results: Outcome("reproduced", "Yes.", ("n",), ((results[0][1]["n"],),)),
    )  # fmt: skip


@pytest.fixture
def three():
    return [numbered("one", 1), numbered("bad", 13), numbered("two", 2, SourceData("MNIST"))]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_failure_does_not_stop_the_rest(three, tmp_path, n_jobs):
    seen = []
    finished = reproduce_all(three, out=tmp_path, n_jobs=n_jobs, report=seen.append)
    assert list(finished) == seen and [one.done for one in seen] == [1, 2, 3]
    verdicts = {one.id: one.verdict for one in finished}
    assert verdicts == {"one": "reproduced", "bad": "stopped", "two": f"reproduced {MARK}"}
    assert "is too many" in (tmp_path / "bad" / ERROR).read_text()
    assert (tmp_path / "two" / "results.json").is_file() and finished[-1].left == 0


def test_a_run_that_succeeds_forgets_its_earlier_failure(three, tmp_path):
    reproduce_all(three, out=tmp_path)
    reproduce_all([numbered("bad", 1)], out=tmp_path, scale="paper", resume=True)
    assert not (tmp_path / "bad" / ERROR).exists()


def test_those_that_lack_a_scale_are_left_out(three, tmp_path):
    larger = dataclasses.replace(three[0], settings={**three[0].settings, "decisive": {}})
    finished = reproduce_all([larger, three[2]], out=tmp_path, scale="decisive")
    assert [one.id for one in finished] == ["one"] and not finished[0].failed


@pytest.fixture
def command(monkeypatch, capsys, three):
    for module in ("pindown_reproduction", "pindown_reproduction.ledger_page"):
        monkeypatch.setattr(f"{module}.EXPERIMENTS", {one.id: one for one in three})

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["reproduce", *map(str, arguments)])
        return ended.value.code, *capsys.readouterr()

    return run


def test_all_of_them_from_the_command_line(command, tmp_path):
    code, out, err = command("--all", "--out", tmp_path / "runs", "--ledger", tmp_path / "page.md")
    assert code == 1  # one of them stopped
    assert "3 experiments: " in out and "1 stopped" in out and "stopped: bad: RuntimeError" in out
    assert "[3/3]" in err and "min left" in err
    page = (tmp_path / "page.md").read_text()
    assert "### two" in page and "**stopped**: is too many" in page


def test_a_single_run_tells_of_stand_ins(command, tmp_path):
    code, out, _ = command("two", "--out", tmp_path)
    assert code == 0 and f"{MARK} on stand-in data: digits in place of MNIST." in out


def test_a_single_run_as_json(command, tmp_path):
    code, out, _ = command("one", "--out", tmp_path, "--json")
    assert code == 0 and json.loads(out)["experiment"] == "one"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--all", "one"], "leave out"),
        (["tow"], "did you mean two"),
        (["--ledger", "page.md", "--out", "nowhere"], "there is no folder"),
        (["--list", "zebra"], "no experiment speaks of 'zebra'"),
        (["one", "--jobs", "-2"], "--jobs takes"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(command, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = command(*arguments)
    assert code == 3 and said in err and err.count("\n") == 1


def test_a_declared_result_says_why_and_what_is_needed(command):
    code, _, err = command("multi-exit-imagenet")
    assert code == 3 and err.count("\n") == 1
    assert "declared, not run: ImageNet" in err and "Needed:" in err


def test_the_list_has_everything_and_can_be_searched(monkeypatch, capsys, tmp_path):
    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["reproduce", *map(str, arguments)])
        assert ended.value.code == 0
        return capsys.readouterr().out

    listed = json.loads(run("--list", "--json"))
    assert [one["id"] for one in listed] == [*EXPERIMENTS, *DECLARED]
    assert {one["status"] for one in listed} == {"run", "declared"}
    run("--list", "--json", tmp_path / "list.json")
    assert json.loads((tmp_path / "list.json").read_text()) == listed
    table = run("--list", "wolf declared").splitlines()
    assert len(table) == 3 and table[1].startswith("local-maxima-patients")
    assert table[1].rstrip().endswith("declared")
    assert "1 declared" in table[2]
    header = run().splitlines()[0].split()
    # What a scale takes is shown, and the smallest that can say no.
    assert header == ["id", "title", "source", "quick", "decisive", "paper", "decides", "status"]
