"""The table of errata names tests that exist; the first of them: printed it fails, ours holds."""

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
COLUMNS = 4  # source, printed, corrected, test
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows():
    """The rows of the table, as cells; a bar within a formula would be written \\lvert."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


@cache
def functions(path):
    """The top-level functions of a test file."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


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
