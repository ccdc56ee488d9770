"""Files about the project say what the project is: versions, Pythons, requirements, commands."""

import re
import tomllib
import warnings
from pathlib import Path

import pytest

import pindown
from pindown.deprecation import deprecated
from tests.touched import files_testing

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = [
    line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)
]
MAKEFILE = (ROOT / "Makefile").read_text()
YAML = sorted(
    [*ROOT.glob(".github/**/*.yml"), *ROOT.glob("*.cff"), *ROOT.glob(".*.yaml"), *ROOT.glob("conda/*")]
)


def read(path):
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text())


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_they_can_be_read(path):
    assert read(path)


def test_pythons_are_those_that_are_tested():
    matrix = read(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS == re.search(r"^PYTHONS \?= (.*)$", MAKEFILE, re.M)[1].split()
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "README.md").read_text()
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "docs/stability.md").read_text()


def test_versions_agree():
    assert read("CITATION.cff")["version"] == pindown.__version__
    assert read("conda/recipe.yaml")["context"]["version"] == pindown.__version__
    assert f"## {pindown.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_recipe_asks_for_what_the_project_asks_for():
    runs = read("conda/recipe.yaml")["requirements"]["run"]
    assert [need.replace(" ", "") for need in runs[1:]] == PROJECT["dependencies"]


def test_the_linter_of_commits_is_that_of_the_tests():
    pinned = re.search(r"^ruff==(.*)$", (ROOT / "constraints.txt").read_text(), re.M)[1]
    hooks = {repo["repo"]: repo["rev"] for repo in read(".pre-commit-config.yaml")["repos"]}
    assert hooks["https://github.com/astral-sh/ruff-pre-commit"] == f"v{pinned}"


def test_workflows_and_pages_name_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    for path in (*ROOT.glob(".github/**/*.*"), ROOT / "CONTRIBUTING.md", ROOT / "README.md"):
        named = re.findall(r"(?:^|`|run: )make ([a-z-]+)", path.read_text(), re.M)
        assert set(named) <= targets, path.name


def test_the_paper_cites_what_its_bibliography_holds():
    cited = set(re.findall(r"@([a-z]+\d{4}\w*)", (ROOT / "paper/paper.md").read_text()))
    held = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper/paper.bib").read_text(), re.M))
    assert cited == held
    assert 250 < len((ROOT / "paper/paper.md").read_text().split()) < 1000


def test_what_goes_away_still_works_and_says_so():
    @deprecated(instead="new(x)", removed_in="9.9")
    def old(x):
        """Return twice x."""
        return 2 * x

    with pytest.warns(FutureWarning, match=r"removed in pindown 9\.9; use new\(x\)\.") as said:
        assert old(3) == 6
    assert said[0].filename == __file__ and old.__doc__ == "Return twice x."  # where it is called
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pindown.diff  # nothing of ours is used by itself


def test_changed_files_lead_to_their_tests():
    assert files_testing(Path("src/pindown/compiling.py")) == ["tests/test_compiling.py"]
    assert files_testing(Path("tests/test_box.py")) == ["tests/test_box.py"]
    assert "tests/cli/test_doctor.py" in files_testing(Path("src/pindown/cli/doctor.py"))
    assert files_testing(Path("docs/index.md")) == []
