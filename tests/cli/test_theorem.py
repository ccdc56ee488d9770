"""The command finds theorems, prints them whole, and refuses in a line."""

import json

import pytest

from pindown.theorems import results
from tests.cli.test_main import run  # noqa: F401


def test_the_best_result_is_printed_whole_and_others_in_a_line(run):  # noqa: F811
    code, out, _ = run("theorem", "how", "many", "steps", "does", "GLM-Tron", "need")
    assert code == 0 and out.startswith("R30  GLM-Tron\n")
    assert "Mukherjee 2020, Algorithm 4" in out and "pindown.learn.GLMTron" in out
    assert results()["R30"].test in out and "pindown reproduce gate-horizons" in out
    assert "‖w_*‖²/ε" in out and ">>> " in out and "erratum" in out
    assert "See also" in out and "R27  " in run("theorem", "recursion step size horizon")[1]


def test_a_number_is_found_and_only_that(run):  # noqa: F811
    code, out, _ = run("theorem", "Mukherjee 3.3.1")
    assert code == 0 and out.startswith("R26  ") and "See also" not in out


def test_the_list_has_everything_and_can_be_of_one_source(run):  # noqa: F811
    assert len(run("theorem", "--list")[1].splitlines()) == len(results()) == 257
    mine = run("theorem", "--list", "--source", "Wolf")[1].splitlines()
    assert len(mine) == 12 and mine[4].startswith("L5  ")
    few = run("theorem", "margin", "--list", "--source", "phuong")[1].splitlines()
    assert 0 < len(few) < 62 and all(line.startswith("U") for line in few)


def test_json_holds_what_is_printed(run, tmp_path):  # noqa: F811
    code, out, _ = run("theorem", "representer theorem", "-n", "2", "--json")
    first, second = json.loads(out)
    assert code == 0 and first["id"] == "K14" and second["id"] != "K14"
    wanted = {"id", "title", "source", "statement", "function", "test", "example", "errata", "variants"}
    assert wanted <= set(first) and first["function"] == "pindown.learn.kernels.fit_kernel_problem"
    listed = json.loads(run("theorem", "--list", "--json")[1])
    assert len(listed) == 257 and "example" not in listed[0]
    file = tmp_path / "found.json"
    assert (
        run("theorem", "K1", "--json", str(file))[0] == 0
        and json.loads(file.read_text())[0]["id"] == "K1"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("theorem",), "say what to look for"),
        (("theorem", "xyzzy"), "no result speaks of 'xyzzy'"),
        (("theorem", "margin", "--source", "nobody"), "--source takes one of"),
        (("theorem", "margin", "-n", "0"), "--count"),
    ],
)
def test_what_cannot_be_found_is_said_in_a_line(run, words, told):  # noqa: F811
    code, out, err = run(*words)
    assert code == 3 and out == "" and told in err and len(err.splitlines()) == 1
