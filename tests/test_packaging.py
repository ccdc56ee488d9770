"""What is shipped: the wheel holds the whole package, the source distribution what its tests need."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from pindown.cli.doctor_checks import Requirement, release

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SHIPPED_WITH_SOURCES = ("src", "tests", "docs", "benchmarks", "gallery", "checker")
# Of a wheel, of a source distribution (which has the pictures of the docs and the tests), of one file.
WHEEL_BYTES, SOURCE_BYTES, FILE_BYTES = 3_000_000, 8_000_000, 400_000


def files_in(folder: Path) -> set[str]:
    """Return all files below a folder, except what tools left there."""
    return {
        str(path.relative_to(ROOT))
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".hypothesis", ".ruff_cache"} & set(path.parts)
    }


def planned(builder_name: str) -> set[str]:
    """Return the files that hatchling would pack, without packing them."""
    builders = pytest.importorskip("hatchling.builders." + builder_name)
    builder = getattr(builders, f"{builder_name.title()}Builder")(str(ROOT))
    return {file.distribution_path for file in builder.recurse_included_files()}


def test_the_wheel_holds_every_file_of_the_package():
    expected = {name.removeprefix("src/") for name in files_in(ROOT / "src" / "pindown")}
    assert planned("wheel") == expected
    assert {"pindown/py.typed", "pindown/__main__.py", "pindown/report/page.css"} <= expected


def test_the_source_distribution_holds_what_its_tests_need():
    expected = set[str]().union(*(files_in(ROOT / name) for name in SHIPPED_WITH_SOURCES))
    expected |= {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "pyproject.toml"}
    expected |= {"constraints.txt", "constraints-lowest.txt", "conftest.py"}
    assert expected - planned("sdist") - {"pyproject.toml"} == set()


def test_nothing_in_the_package_is_found_by_a_path_outside_it():
    pattern = re.compile(r"parents\[[2-9]\]|\.\./\.\.")
    leaving = [
        str(path) for path in (ROOT / "src").rglob("*.py") if pattern.search(path.read_text("utf-8"))
    ]
    assert leaving == []


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_the_lowest_versions_are_those_that_are_asked_for():
    lowest = pins("constraints-lowest.txt")
    needs = [Requirement.parse(line) for line in PROJECT["dependencies"]]
    parts = PROJECT["optional-dependencies"]
    extra = {
        need.name: need
        for part in ("torch", "plots", "fast", "cluster", "test-core")
        for need in map(Requirement.parse, parts[part])
    }
    assert {need.name for need in needs} <= set(lowest)
    for need in (*needs, *(extra[name] for name in extra if name in lowest)):
        if need.name != "torch":  # only one release has a CPU build here
            assert release(lowest[need.name]) == release(need.least), need
    assert lowest["torch"] == pins("constraints.txt")["torch"]


def test_python_m_pindown_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "pindown", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"pindown \d+\.\d+\.\d+\n", done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "-o", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_the_built_files_are_small_and_complete(built):
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.stat().st_size < WHEEL_BYTES and source.stat().st_size < SOURCE_BYTES
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("pindown/")}
        entry = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "pindown = pindown.cli.main:main" in archive.read(entry).decode()
    assert held == {name.removeprefix("src/") for name in files_in(ROOT / "src" / "pindown")}
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        assert max(member.size for member in archive.getmembers()) < FILE_BYTES
    assert files_in(ROOT / "tests") <= names


@pytest.mark.slow
def test_the_wheel_works_where_nothing_of_the_source_is(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    target = tmp_path / "site"
    install = ["pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(target)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run("-c", "import pindown; print(pindown.__file__)").startswith(str(target))
    assert '"healthy": true' in run("-m", "pindown", "doctor", "--json")
    run("-m", "pindown", "demo", "--budget", "10")
    assert (tmp_path / "pindown-demo" / "audit.html").stat().st_size > 10_000
