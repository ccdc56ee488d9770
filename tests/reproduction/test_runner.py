"""Experiments: cells are saved as they finish, a rerun takes them up, the table says what came out."""

import json
import time

import pytest

from pindown.cli import reproduce as cli_experiments
from pindown_reproduction import EXPERIMENTS, Experiment, Outcome, reproduce

RUNS = []
LONG = {"digits-margin", "fourier-masks"}  # a single cell takes a quarter of a minute
LONG |= {f"multi-exit-{name}" for name in ("budget", "anytime", "few-labels", "teachers", "temperature")}
LONG |= {f"local-maxima-{name}" for name in ("grid", "noise", "one-class", "signs")}
LONG |= {"mutual-autoencoder-categorical", "mutual-autoencoder-text", "ntk-versus-network"}
ENOUGH = 0.5  # CPU seconds of one cell after which the second is left out


def run_square(cell):
    RUNS.append(cell["n"])
    if cell["n"] == 3 and len(RUNS) < 4:
        raise KeyboardInterrupt
    return {"square": cell["n"] ** 2}


def squares():
    return Experiment(
        id="squares",
        title="Squares",
        source="A test",
        published="1, 4, 9",
        rule="All equal.",
        settings={"quick": {"numbers": [1, 2, 3]}},
        cells=lambda settings: [{"n": n} for n in settings["numbers"]],
        run=run_square,
        compare=lambda results: Outcome(
            "reproduced", "All.", ("n", "n^2"), tuple((c["n"], r["square"]) for c, r in results)
        ),
    )


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path):
    RUNS.clear()
    with pytest.raises(KeyboardInterrupt):
        reproduce(squares(), out=tmp_path)
    assert len(list((tmp_path / "squares" / "cells").glob("*.json"))) == 2
    done = reproduce(squares(), out=tmp_path, resume=True)
    assert RUNS == [1, 2, 3, 3] and done.outcome.rows == ((1, 1), (2, 4), (3, 9))
    content = json.loads((tmp_path / "squares" / "results.json").read_text())
    assert content["verdict"] == "reproduced" and content["cells"][2]["result"] == {"square": 9}
    assert "| 3 | 9 |" in (tmp_path / "squares" / "table.md").read_text()


def test_a_damaged_cell_is_run_again(tmp_path):
    RUNS[:] = [0, 0, 0, 0]
    reproduce(squares(), out=tmp_path)
    damaged = sorted((tmp_path / "squares" / "cells").glob("*.json"))[0]
    damaged.write_text("{")
    reproduce(squares(), out=tmp_path, resume=True)
    assert len(RUNS) == 8


def test_an_unknown_scale_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has the scales quick; got 'huge'"):
        reproduce(squares(), out=tmp_path, scale="huge")


def part_of(name):
    return pytest.param(name, marks=pytest.mark.slow) if name in LONG else name


@pytest.mark.parametrize("name", [part_of(name) for name in EXPERIMENTS])
def test_every_experiment_runs_on_a_small_part_of_itself(name, tmp_path):
    experiment = EXPERIMENTS[name]
    assert {"quick", "paper"} <= set(experiment.settings) and experiment.rule and experiment.source
    cells = experiment.cells(experiment.settings["quick"])
    results = []
    start = time.process_time()
    for cell in cells[:2]:
        if not results or time.process_time() - start < ENOUGH:
            # As the runner hands it on, and as a resumed run reads it.
            results.append((cell, json.loads(json.dumps(experiment.run(cell)))))
    outcome = experiment.compare(results)
    assert outcome.rows and len(outcome.rows[0]) == len(outcome.columns)
    if experiment.draw is not None:
        experiment.draw(results).savefig(tmp_path / "figure.svg")
        assert (tmp_path / "figure.svg").stat().st_size > 1_000


def test_stopping_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stopped(*_args, **_settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("pindown_reproduction.reproduce", stopped)
    with pytest.raises(KeyboardInterrupt):
        cli_experiments.reproduce("inverse-stability", out=tmp_path)
    assert "--resume goes on" in capsys.readouterr().err
