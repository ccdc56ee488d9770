"""The tables of results: every item, with names and tests that exist, and examples that run."""

import ast
import doctest
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import pytest

from pindown.theorems import errata, results, sources
from pindown.theorems.examples import session_of
from pindown.theorems.formulas import plain
from pindown.theorems.search import _words
from pindown.theorems.tables import FIELDS, TABLES
from pindown_reproduction import DECLARED, EXPERIMENTS

ROOT = Path(__file__).parents[2]
SPECIFICATION = ROOT.parent / "shared" / "spec"
ITEMS = {"K": 109, "R": 67, "U": 62, "L": 12, "M": 7}
RESULTS = list(results().values())
VARIANTS = {"corrected", "as_printed", "sharp"}


def resolved(path):
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@cache
def functions_of(path):
    return {
        node.name
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.FunctionDef)
    }


def test_every_item_of_every_source_has_its_entry():
    assert [one.id for one in RESULTS] == [
        f"{letter}{i}" for letter, n in ITEMS.items() for i in range(1, n + 1)
    ]
    assert list(ITEMS) == list(TABLES.values())


@pytest.mark.skipif(not SPECIFICATION.is_dir(), reason="the specification is not beside the project")
def test_the_items_are_those_of_the_specification():
    rows = [
        row
        for page in SPECIFICATION.glob("*.md")
        for row in re.findall(r"^\| ([KRULM]\d+) \|", page.read_text(), re.MULTILINE)
    ]
    assert sorted(rows) == sorted(results()) and len(rows) == 257


def test_every_entry_is_whole():
    for one in RESULTS:
        assert one.title and one.number and one.statement.endswith((".", "?")), one
        assert one.field in FIELDS and len(one.words) >= 2 and all(one.words), one
        assert len(set(one.functions)) == len(one.functions) >= 1, one
        path, _, name = one.test.partition("::")
        assert name.startswith("test_") and name in functions_of(path), one
        assert not one.experiment or one.experiment in EXPERIMENTS or one.experiment in DECLARED, one
        assert not one.picture or (ROOT / "gallery" / f"{one.picture}.py").is_file(), one


def test_functions_are_public_and_variants_are_theirs():
    for one in RESULTS:
        forms = set()
        for path in one.functions:
            value, (package, _, name) = resolved(path), path.rpartition(".")
            assert name in importlib.import_module(package).__all__, f"{path} is not in a public list"
            takes = inspect.signature(value).parameters if callable(value) else {}
            if "variant" in takes:
                forms |= {form for form in VARIANTS if f'"{form}"' in inspect.getsource(value)}
        assert set(one.variants) == forms, one


def test_docstrings_carry_the_textbook_name():
    """Of a result's functions, or of their modules; published tables and figures have no such name."""
    missing = []
    for one in RESULTS:
        values = [resolved(path) for path in one.functions]
        docs = [inspect.getdoc(each) or "" for v in values for each in (v, inspect.getmodule(v))]
        said = [f" {' '.join(_words(doc))} " for doc in docs]
        names = [" ".join(_words(name)) for name in (*one.words, *re.split("[:;,?]", one.title))]
        if "experiment" not in one.words and not any(
            f" {name} " in doc for name in names for doc in said
        ):
            missing.append((one.id, one.functions))
    assert missing == []


def test_formulas_are_readable_in_a_terminal():
    for one in RESULTS:
        text = plain(one.statement)
        assert not re.search(r"[\\$]", text) and text.count("(") == text.count(")"), one
        assert one.statement.count("$") % 2 == 0 and one.statement.count("{") == one.statement.count("}")


def run(session, name):
    test = doctest.DocTestParser().get_doctest(session, {}, name, name, 0)
    assert test.examples
    told = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)


@pytest.mark.parametrize("one", [one for one in RESULTS if one.own_example], ids=lambda one: one.id)
def test_an_example_of_its_own_runs(one):
    run(one.example, one.id)


def test_other_examples_are_those_of_docstrings_and_their_imports_are_there():
    """The docstrings themselves are run by the suite; here what is put in front of them."""
    for path in sorted({one.functions[0] for one in RESULTS if not one.own_example}):
        session = session_of(path)
        assert doctest.DocTestParser().get_examples(session), path
        for line in session.split("\n"):
            if line.startswith((">>> import ", ">>> from ")):
                exec(line.removeprefix(">>> "), {})


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted({one.functions[0] for one in RESULTS if not one.own_example}))
def test_an_example_of_a_docstring_runs_by_itself(path):
    run(session_of(path), path)


def test_chapters_part_every_source():
    for source, letter in zip(sources(), ITEMS, strict=True):
        ids = [one.id for chapter in source.chapters for one in chapter.results]
        assert ids == [one.id for one in RESULTS if one.id.startswith(letter)]
        assert all((ROOT / "docs" / f"{chapter.guide}.md").is_file() for chapter in source.chapters)
        assert source.aliases


def test_every_erratum_belongs_to_results_of_its_source():
    for one in errata():
        assert one.results and all(results()[i].source == one.source for i in one.results)
    assert {one.source for one in errata()} == {source.name for source in sources()}
