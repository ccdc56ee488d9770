"""Every code block of README and docs runs: Python, doctest sessions and shell commands."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pindown.cli.demo import write_demo_files
from pindown.findings import CATALOGUE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
RUNNABLE = {"python", "pycon", "sh"}
PROSE = {"text", "", "json", "csv"}
# Set-up that a reader does once and that this very test run rests on already.
SET_UP = ("pip install", "git clone", "cd ")


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_demo_files(folder)
    return folder


@pytest.fixture
def workplace(demo_folder, tmp_path, monkeypatch):
    """A folder with the model and the data that the pages talk about."""
    shutil.copy(demo_folder / "digits.onnx", tmp_path / "model.onnx")
    for name in ("train.npz", "test.npz"):
        shutil.copy(demo_folder / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, code) for kind, code in FENCE.findall(page.read_text())]


def test_readme_needs_nothing_but_itself(tmp_path, monkeypatch):
    """In an empty folder: the files that its snippets use are made by its snippets."""
    monkeypatch.chdir(tmp_path)
    run_page(ROOT / "README.md")


def cases():
    """All other pages; the course runs in `make slow`, its cells also as examples of results."""
    course, others = ROOT / "docs" / "course", PAGES[1:]
    marks = {page: [pytest.mark.slow] if course in page.parents else [] for page in others}
    return [pytest.param(page, marks=marks[page], id=str(page.relative_to(ROOT))) for page in others]


@pytest.mark.parametrize("page", cases())
def test_code_blocks_run(page, workplace):
    run_page(page)


def run_page(page):
    namespace: dict = {"__name__": "__docs__"}
    for kind, code in blocks(page):
        assert kind in RUNNABLE | PROSE, f"{page.name} has a block marked {kind!r}"
        if kind == "python":
            exec(compile(code, str(page), "exec"), namespace)
        elif kind == "pycon":
            run_session(code, namespace, page)
        elif kind == "sh":
            run_shell(code)


def run_session(code: str, namespace: dict, page: Path) -> None:
    test = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)
    namespace.update(test.globs)


def run_shell(code: str) -> None:
    for line in code.splitlines():
        command = line.split("  #")[0].strip()
        if not command or command.startswith("#") or command.startswith(SET_UP):
            continue
        words = shlex.split(command)
        if words[0] == "make":
            subprocess.run(["make", "-n", "-C", str(ROOT), *words[1:]], check=True, capture_output=True)
            continue
        assert words[0] == "pindown", f"a page shows a command this test cannot run: {command}"
        if words[1] in {"audit", "demo"}:
            words += ["--budget", "4"]  # the last one counts: readers have a minute, tests do not
        done = subprocess.run(
            [sys.executable, "-m", "pindown.cli.main", *words[1:]],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        promised = re.search(r"  # exit code (\d)", line)
        code = int(promised[1]) if promised else 0
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"


def test_pages_hold_code():
    found = [kind for page in PAGES for kind, _ in blocks(page) if kind in RUNNABLE]
    assert found.count("python") + found.count("pycon") >= 8
    assert found.count("sh") >= 4


def test_the_catalogue_is_documented_as_it_is():
    rows = re.findall(
        r'^\| <a id="(.*?)"></a>`([A-Z]+-\d+)` \| (.*?) \|(.*?)\| (.*?) \|$',
        (ROOT / "docs/findings.md").read_text(),
        re.M,
    )
    documented = [(code, title, needs.strip(), about) for _, code, title, needs, about in rows]
    assert documented == [(q.code, q.title, ", ".join(q.needs), q.about) for q in CATALOGUE]
    assert [anchor for anchor, *_ in rows] == [q.code.lower() for q in CATALOGUE]  # pages link to them
