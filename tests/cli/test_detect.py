"""detect fit and detect score as a user types them."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from pindown.cli.main import _with_default_values
from pindown.learn.one_class import LocalMaximaDetector
from tests.cli.test_main import run  # noqa: F401

QUICK = ("--epochs", "3", "--members", "1")


def write_rows(path, X, names=("a", "b", "c"), labels=None):
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        if names:
            writer.writerow([*names, *(["y"] if labels is not None else [])])
        for i, row in enumerate(X.tolist()):
            writer.writerow([*row, *([labels[i]] if labels is not None else [])])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with training rows, new rows and a fitted model."""
    place = tmp_path_factory.mktemp("detect")
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=(150, 3)), rng.normal(size=(40, 3))
    new[:4] += 9
    write_rows(place / "train.csv", train)
    write_rows(place / "new.csv", new, labels=[1] * 4 + [0] * 36)
    write_rows(place / "swapped.csv", new[:, ::-1], names=("c", "b", "a"))
    write_rows(place / "bare.csv", new, names=())
    write_rows(place / "two.csv", new[:, :2], names=("a", "b"))
    np.savez(place / "new.npz", X=new, y=np.zeros(40))
    np.save(place / "wide.npy", np.zeros((3, 5)))
    (place / "hole.csv").write_text("a,b,c\n1,2,3\n1,,3\n")
    (place / "words.csv").write_text("a,b,c\n1,2,x\n")
    (place / "empty.csv").write_text("")
    (place / "one.csv").write_text("a,b,c\n1,2,3\n")
    (place / "junk.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not a model at all")
    (place / "nothing.safetensors").write_bytes(b"")
    with pytest.raises(SystemExit) as stopped:
        from pindown.cli.main import main

        main(["detect", "fit", str(place / "train.csv"), "-o", str(place / "m.safetensors"), *QUICK])
    assert stopped.value.code == 0
    return place


def scores(path):
    with path.open() as stream:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def test_fit_writes_a_model_that_the_library_reads(run, folder, tmp_path):  # noqa: F811
    model = tmp_path / "m.safetensors"
    code, out, err = run("detect", "fit", folder / "train.csv", "-o", model, *QUICK, "--seed", "3")
    assert code == 0 and out.startswith("FITTED") and f"wrote {model}" in err
    loaded = LocalMaximaDetector.load(model)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"] and loaded.n_features_in_ == 3
    X = np.loadtxt(folder / "train.csv", delimiter=",", skiprows=1)
    by_hand = LocalMaximaDetector(max_epochs=3, n_estimators=1, random_state=3).fit(X)
    del loaded.feature_names_in_
    np.testing.assert_allclose(loaded.score_samples(X), by_hand.score_samples(X), rtol=1e-5, atol=1e-5)


def test_score_finds_the_rows_that_do_not_belong(run, folder, tmp_path):  # noqa: F811
    code, out, err = run(
        *("detect", "score", folder / "m.safetensors", folder / "new.csv", "--label-column", "y"),
        *("-o", tmp_path / "s.csv", "--html", tmp_path / "s.html", "--json", tmp_path / "s.json"),
    )
    assert code == 0 and out.startswith("OUTLIERS") and "AUROC         100.0 %" in out
    assert err.count("wrote") == 3
    rows = scores(tmp_path / "s.csv")
    assert [row["line"] for row in rows] == list(range(2, 42))
    assert {row["line"] for row in rows if row["outlier"]} >= {2, 3, 4, 5}
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["auc"] == 1.0 and content["names"] == ["a", "b", "c"] and content["left_out"] == ["y"]
    assert [row["score"] for row in content["scores"]] == [row["score"] for row in rows]
    assert content["flagged"] == sum(row["outlier"] for row in rows)
    assert "<!DOCTYPE html>" in (tmp_path / "s.html").read_text()


def test_json_alone_is_all_of_stdout(run, folder):  # noqa: F811
    code, out, _ = run("detect", "score", folder / "m.safetensors", folder / "new.npz", "--json")
    content = json.loads(out)
    assert code == 0 and content["rows"] == 40 and content["purpose"] == "score"
    assert content["notes"] == [
        "only m.safetensors names its columns: they are taken in the order they have"
    ]


def test_columns_go_by_their_names_and_else_by_position(run, folder, tmp_path):  # noqa: F811
    found = {}
    for name in ("new.csv", "swapped.csv", "bare.csv", "new.npz"):
        code, out, _ = run(
            *("detect", "score", folder / "m.safetensors", folder / name, "-o", tmp_path / "s.csv"),
            *(("--ignore-column", "y") if name == "new.csv" else ()),
        )
        assert code == 0
        found[name] = [row["score"] for row in scores(tmp_path / "s.csv")]
        assert ("order of m.safetensors" in out) == (name == "swapped.csv")
    for name in ("swapped.csv", "bare.csv", "new.npz"):
        np.testing.assert_allclose(found[name], found["new.csv"], rtol=1e-9)


def test_extra_columns_of_a_new_file_are_left_out_and_said(run, folder):  # noqa: F811
    code, out, _ = run("detect", "score", folder / "m.safetensors", folder / "new.csv")
    assert code == 0 and "left out      'y'" in out


def test_words_in_columns_the_model_does_not_know_do_no_harm(run, folder, tmp_path):  # noqa: F811
    rows = (folder / "new.csv").read_text().splitlines()
    worded = "\n".join([f"site,{rows[0]}", *(f"plant {i},{row}" for i, row in enumerate(rows[1:]))])
    (tmp_path / "sites.csv").write_text(worded)
    code, out, _ = run("detect", "score", folder / "m.safetensors", tmp_path / "sites.csv")
    assert code == 0 and "left out      'site', 'y'" in out
    fit = ("detect", "fit", tmp_path / "sites.csv", "-o", tmp_path / "n.safetensors", *QUICK)
    code, out, _ = run(*fit, "--ignore-column", "y")
    assert code == 0 and "'site' is left out: 40 different values in 40 rows" in out


def test_a_mixed_table_is_learned_and_scored_alike(run, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    rows = [
        ";".join(
            [
                *(str(i), f"{rng.normal():.3f}".replace(".", ","), "red" if i % 3 else "blue"),
                *(f"{1 + i % 28:02}.01.2024", "" if i % 9 == 0 else str(i % 5)),
            ]
        )
        for i in range(120)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id;x;colour;day;n", *rows, ""]))
    new = "colour;n;x;day\nred;2;0,1;05.01.2024\nblue;;-0,2;12.01.2024\nred;2;40,5;05.01.2024\n"
    (tmp_path / "new.csv").write_text(new)
    model = tmp_path / "m.safetensors"
    code, out, _ = run("detect", "fit", tmp_path / "t.csv", "-o", model, *QUICK)
    assert code == 0
    for note in (
        "'id' is left out: it counts the rows",
        "'x' is a number with decimal commas",
        "'colour' is a category of 2 values",
        "'day' is a date, day first",
        "'n' is a number, 14 missing",
    ):
        assert note in out
    score = ("detect", "score", model, tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    code, out, _ = run(*score, "--false-alarms", "0.05")
    assert code == 0 and [row["outlier"] for row in scores(tmp_path / "s.csv")] == [0, 0, 1]
    assert "x 40.5 (+" in out
    (tmp_path / "new.csv").write_text(new.replace("0,1;", "zero;"))
    code, _, err = run(*score)
    assert code == 3 and "line 2, column 'x': 'zero' is no number" in err
    code, out, _ = run(
        "detect", "fit", tmp_path / "t.csv", "-o", model, *QUICK, "--column", "n=category",
        "--column", "id=number",
    )  # fmt: skip
    assert code == 0 and "'n' is a category of 5 values, 14 missing" in out and "left out" not in out


def test_contamination_sets_the_share_of_outliers(run, folder, tmp_path):  # noqa: F811
    code, out, _ = run(
        *("detect", "fit", folder / "train.csv", "-o", tmp_path / "m.safetensors", *QUICK),
        *("--contamination", "0.1", "--json"),
    )
    assert code == 0 and json.loads(out)["flagged"] == 15


def test_images_from_flat_rows(run, tmp_path):  # noqa: F811
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", X=rng.random((30, 64)))
    model, page = tmp_path / "m.safetensors", tmp_path / "p.html"
    code, out, _ = run(
        *("detect", "fit", tmp_path / "x.npz", "-o", model, "--epochs", "1", "--members", "1"),
        *("--image-shape", "8x8", "--html", page),
    )
    assert code == 0 and "8x8x1" in out and page.read_text().count("data:image/png;base64,") == 24
    np.savez(tmp_path / "y.npz", X=rng.random((5, 8, 8)))
    assert run("detect", "score", model, tmp_path / "y.npz")[0] == 0
    np.savez(tmp_path / "z.npz", X=rng.random((5, 4, 16)))
    code, _, err = run("detect", "score", model, tmp_path / "z.npz")
    assert code == 3 and "images of" in err and err.count("\n") == 1


BAD = [
    (("score", "m.safetensors", "two.csv"), "lacks 'c' that m.safetensors was fitted on"),
    (("score", "m.safetensors", "wide.npy"), "5 features in a row, m.safetensors was fitted on 3"),
    (("score", "m.safetensors", "hole.csv"), "line 3 (in 'b')"),
    (("score", "m.safetensors", "words.csv"), "not numbers: 'c' (line 2"),
    (("score", "m.safetensors", "empty.csv"), "is empty"),
    (("score", "m.safetensors", "none.csv"), "none.csv"),
    (("score", "m.safetensors", "new.csv", "--label-column", "z"), "no column 'z'"),
    (("score", "m.safetensors", "new.csv", "-o", "new.csv"), "overwrite"),
    (("score", "m.safetensors", "new.csv", "-o", "s.txt"), ".csv"),
    (("score", "m.safetensors", "new.csv", "--html", "train.csv"), ".html"),
    (("score", "junk.safetensors", "new.csv"), "junk.safetensors: this is not a safetensors file"),
    (("score", "nothing.safetensors", "new.csv"), "nothing.safetensors: the file is empty"),
    (("score", "gone.safetensors", "new.csv"), "no such file"),
    (("score", "new.csv", "new.csv"), "end in .safetensors"),
    (("fit", "train.csv", "-o", "m.onnx"), ".safetensors"),
    (("fit", "train.csv", "-o", "no/such/m.safetensors"), "no such folder"),
    (("fit", "one.csv", "-o", "n.safetensors"), "at least two"),
    (("fit", "train.csv", "-o", "n.safetensors", "--contamination", "0.7"), "at most 0.5"),
    (("fit", "train.csv", "-o", "n.safetensors", "--contamination", "few"), "at most 0.5"),
    (("fit", "train.csv", "-o", "n.safetensors", "--image-shape", "28"), "such as 28x28"),
    (("fit", "train.csv", "-o", "n.safetensors", "--image-shape", "28x28"), "28"),
    (("fit", "train.csv", "-o", "n.safetensors", "--preset", "image"), "image_shape"),
    (("fit", "train.csv", "-o", "n.safetensors", "--epochs", "-1"), "--epochs"),
    (("fit", "train.csv", "-o", "n.safetensors", "--epochs", "0"), "all rows score 0"),
    (("fit", "train.csv", "-o", "n.safetensors", "--preset", "huge"), "huge"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_line_and_writes_nothing(run, folder, monkeypatch, arguments, words):  # noqa: F811
    monkeypatch.chdir(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run("detect", *arguments)
    assert code == 3 and words in err and err.count("\n") == 1 and not out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_network_in_safetensors_is_not_a_detector(run, folder, tmp_path):  # noqa: F811
    from tests.test_network import random_network

    random_network((3, 4, 1)).save(tmp_path / "net.safetensors")
    code, _, err = run("detect", "score", tmp_path / "net.safetensors", folder / "new.csv")
    assert code == 3 and "holds no detector" in err and err.count("\n") == 1


def interrupted_fit(monkeypatch, warn, error):
    def stopped(self, X, y=None):
        if warn:
            warnings.warn("interrupted: the networks are kept as far as they are trained", stacklevel=2)
        if error is not None:
            raise error
        self.max_epochs = 1
        return plain(self, X)

    plain = LocalMaximaDetector.fit
    monkeypatch.setattr(LocalMaximaDetector, "fit", stopped)


def test_training_that_is_stopped_is_kept(run, folder, tmp_path, monkeypatch):  # noqa: F811
    interrupted_fit(monkeypatch, warn=True, error=None)
    model = tmp_path / "m.safetensors"
    code, out, _ = run("detect", "fit", folder / "train.csv", "-o", model, *QUICK)
    assert code == 130 and "interrupted" in out and LocalMaximaDetector.load(model)


@pytest.mark.parametrize(
    ("warn", "error"), [(False, KeyboardInterrupt()), (True, ValueError("no networks"))]
)
def test_stopped_before_anything_was_learned(run, folder, tmp_path, monkeypatch, warn, error):  # noqa: F811
    interrupted_fit(monkeypatch, warn=warn, error=error)
    code, out, err = run("detect", "fit", folder / "train.csv", "-o", tmp_path / "m.safetensors")
    assert code == 130 and not out and "nothing was written" in err and not any(tmp_path.iterdir())


def test_ctrl_c_while_scoring_says_so(run, folder, monkeypatch):  # noqa: F811
    def stopped(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalMaximaDetector, "score_samples", stopped)
    code, out, err = run("detect", "score", folder / "m.safetensors", folder / "new.csv")
    assert code == 130 and not out and err.strip() == "pindown: interrupted."


def test_a_folder_is_refused_before_the_work(run, folder, tmp_path):  # noqa: F811
    (tmp_path / "m.safetensors").mkdir()
    code, _, err = run("detect", "fit", folder / "train.csv", "-o", tmp_path / "m.safetensors")
    assert code == 3 and "is a folder" in err


@pytest.mark.slow
def test_ctrl_c_while_training_leaves_a_model(folder, tmp_path):
    model = tmp_path / "m.safetensors"
    command = [sys.executable, "-m", "pindown.cli.main", "detect", "fit", str(folder / "train.csv")]
    started = subprocess.Popen(
        [*command, "-o", str(model), "--epochs", "1000000", "--members", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    time.sleep(60)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 130, err
    assert "interrupted" in out and LocalMaximaDetector.load(model).n_features_in_ == 3


def test_options_that_may_stand_alone_may_stand_before_short_ones():
    assert _with_default_values(["--json", "-o", "x"]) == ["--json", "-", "-o", "x"]
    assert _with_default_values(["--json", "-", "-o", "x"]) == ["--json", "-", "-o", "x"]


@pytest.mark.parametrize("command", ["fit", "score"])
def test_help_shows_an_example(run, command):  # noqa: F811
    code, out, _ = run("detect", command, "--help")
    assert code == 0 and f"pindown detect {command}" in out and "Example" in out
    code, out, _ = run("detect", "--help")
    assert code == 0 and command in out


@pytest.mark.parametrize("option", ["--html", "-o"])
def test_a_full_disk_takes_the_files_and_not_the_answer(run, folder, tmp_path, monkeypatch, option):  # noqa: F811
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    target = tmp_path / {"--html": "page.html", "-o": "scores.csv"}[option]
    code, out, err = run(
        "detect", "score", folder / "m.safetensors", folder / "new.csv", option, target,
        "--label-column", "y",
    )  # fmt: skip
    assert code == 3 and "AUROC" in out and not target.exists()
    assert err.count("\n") == 1 and "No space left" in err
    fitted = ("detect", "fit", folder / "train.csv", "-o", tmp_path / "m.safetensors", *QUICK)
    code, out, err = run(*fitted)
    assert code == 3 and out and "No space left" in err.splitlines()[-1]


def test_error_rates_come_with_p_values_in_the_table(run, folder, tmp_path):  # noqa: F811
    score = ("detect", "score", folder / "m.safetensors", folder / "new.csv", "-o", tmp_path / "s.csv")
    files = ("--json", tmp_path / "s.json", "--html", tmp_path / "s.html")
    code, out, _ = run(*score, "--fdr", "0.1", *files)
    assert code == 0
    assert "error rate    false discoveries at most 0.1 (probability; 75 held-out rows)" in out
    content = json.loads((tmp_path / "s.json").read_text())
    assert content["rule"] == {"name": "fdr", "rate": 0.1, "kind": "probability", "held_out_rows": 75}
    rows = scores(tmp_path / "s.csv")
    assert [row["p_value"] for row in rows] == [row["p_value"] for row in content["scores"]]
    assert [row["p_value"] for row in rows[:4]] == [1 / 76] * 4
    ordered = sorted(row["p_value"] for row in rows)
    called = max((k for k in range(1, 41) if ordered[k - 1] <= 0.1 * k / 40), default=0)
    assert sum(row["outlier"] for row in rows) == called >= 0
    code, out, _ = run(*score, "--false-alarms", "0.05")
    rows = scores(tmp_path / "s.csv")
    assert code == 0 and [row["outlier"] for row in rows] == [row["p_value"] <= 0.05 for row in rows]
    assert (
        sum(row["outlier"] for row in rows[:4]) == 4
        and "Outliers by their p-values" in (tmp_path / "s.html").read_text()
    )


def test_rates_that_cannot_be_had_are_refused_or_said(run, folder, tmp_path):  # noqa: F811
    score = ("detect", "score", folder / "m.safetensors", folder / "new.csv")
    code, out, _ = run(*score, "--false-alarms", "0.01")
    assert code == 0 and "75 held-out rows tell rates from 0.013 on" in out and "NO OUTLIERS" in out
    for options, words in (
        (("--fdr", "0.1", "--false-alarms", "0.1"), "ask one"),
        (("--fdr", "0"), "--fdr must be a number above 0 and below 1; got 0"),
    ):
        code, out, err = run(*score, *options)
        assert code == 3 and words in err
    bare = tmp_path / "bare.safetensors"
    fit = ("detect", "fit", folder / "train.csv", "-o", bare, *QUICK)
    assert run(*fit, "--calibration", "none")[0] == 0
    code, out, err = run("detect", "score", bare, folder / "new.csv", "--fdr", "0.1")
    assert code == 3 and "without a calibration" in err
