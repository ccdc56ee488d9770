"""The table of errata names tests that exist and call the library: printed it fails, ours holds."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from pindown import ReluNetwork

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs/errata.md"
SOURCES = (
    "Phuong 2021",
    "Mukherjee 2020",
    "Wolf et al. 2019",
    "Brutzkus and Globerson 2021",
    "Lecture course",
)
LIBRARY = ("pindown", "pindown_reproduction")
COLUMNS = 4  # source, printed, corrected, test
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows():
    """The rows of the table, as cells; a bar within a formula would be written \\lvert."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@cache
def parsed(path):
    return ast.parse((ROOT / path).read_text()).body


@cache
def functions(path):
    """The top-level functions of a test file."""
    return {name: node for name, node in definitions(path).items() if isinstance(node, ast.FunctionDef)}


@cache
def definitions(path):
    """What a test file binds at its top level: functions, classes and assignments, by name."""
    found = {}
    for node in parsed(path):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {n.id: node for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return found


def imported(nodes):
    """Names bound by imports, with the module and the name there."""
    found = {}
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.ImportFrom):
                found |= {a.asname or a.name: (each.module, a.name) for a in each.names}
    return found


def first_name(node):
    """The name that an expression such as ``name.part(1)[2]`` begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def calls_the_library(path, name, above=()):
    """Whether something of pindown is called in a definition, or in what it uses of the tests.

    Methods of constants do not count: they say what is printed, not what is computed.
    """
    node = definitions(path).get(name)
    if node is None or (path, name) in above:
        return False
    top = [n for n in parsed(path) if isinstance(n, ast.ImportFrom)]
    names = imported([*top, node])
    called = {first_name(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    if any(names.get(n, ("",))[0].split(".")[0] in LIBRARY and not n.isupper() for n in called):
        return True
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    used |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}  # fixtures
    above = (*above, (path, name))
    for other in used:
        module, origin = names.get(other, ("", ""))
        place = f"{module.replace('.', '/')}.py" if module.startswith("tests.") else path
        if (ROOT / place).is_file() and calls_the_library(place, origin or other, above):
            return True
    return False


def checks_something(function):
    """Whether a test asserts, or calls something that does."""
    return any(
        isinstance(node, ast.Assert)
        or (
            isinstance(node, ast.Call)
            and re.search(r"raises|warns|assert_|check_", ast.unparse(node.func))
        )
        for node in ast.walk(function)
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_every_row_has_four_cells_and_tests_that_exist(row):
    assert len(row) == COLUMNS and all(row)
    assert row[0].startswith(SOURCES)
    named = NAMED.findall(row[3])
    assert named and NAMED.sub("", row[3]).strip(", ") == ""
    for path, name in named:
        assert (ROOT / path).is_file(), f"{path} does not exist"
        assert name in functions(path), f"{path} has no {name}"
        assert name.startswith("test_") and checks_something(functions(path)[name])
        assert calls_the_library(path, name), f"{path}::{name} shows no result of pindown"


def test_a_test_that_computes_by_itself_is_noticed(tmp_path, monkeypatch):
    """Arithmetic, constants of ours and an import alone do not count; a call, also by a helper, does."""
    text = """
from pindown import ReluNetwork
from pindown_reproduction.underspecification_thesis._multi_exit import BUDGET
def helper():
    return ReluNetwork.from_layers([([[1.0]], [0])])
def test_alone():
    assert 1 + 1 == 2
def test_constant():
    assert BUDGET.values()
def test_named():
    assert ReluNetwork is not None
def test_direct():
    assert ReluNetwork.from_layers([([[1.0]], [0])])
def test_by_a_helper():
    assert helper()
def test_by_a_fixture(helper):
    assert helper
"""
    (tmp_path / "test_some.py").write_text(text)
    monkeypatch.setattr("tests.test_errata.ROOT", tmp_path)
    found = {name for name in functions("test_some.py") if calls_the_library("test_some.py", name)}
    assert found == {"helper", "test_direct", "test_by_a_helper", "test_by_a_fixture"}


def test_no_row_is_there_twice():
    seen = [(source, printed) for source, printed, _, _ in rows()]
    assert len(set(seen)) == len(seen) > 180


def test_every_test_written_for_the_table_is_named_in_it():
    named = {f"{path}::{name}" for row in rows() for path, name in NAMED.findall(row[3])}
    for file in sorted((ROOT / "tests/errata").glob("test_*.py")):
        path = file.relative_to(ROOT).as_posix()
        for name in functions(path):
            assert not name.startswith("test_") or f"{path}::{name}" in named


def test_offset_of_a_local_map():
    """Phuong 2021, (A.15): with W_k in front, the offset of 3 relu(2 x + 1) at x = 1 would be 2."""
    W1, b1, W2, b2 = 2.0, 1.0, 3.0, 0.0
    net = ReluNetwork.from_layers([([[W1]], [b1]), ([[W2]], [b2])])
    A, c = net.local_affine([1.0])
    printed = W1 * b1 + b2
    assert A.item() * 1.0 + printed != net([1.0]).item()
    assert A.item() * 1.0 + c.item() == net([1.0]).item()
    assert c.item() == W2 * b1 + b2
