"""The list of faults: where each goes, what it changes, and which tests have to notice it.

A fault is a table ``[[fault]]`` in a TOML file of this folder::

    [[fault]]
    of = "GLMTron.fit"                     # the qualified name of a function, method, class or constant
    old = "w - step * gradient"            # what stands there once, in the source of that function
    new = "w + step * gradient"            # what a fault would make of it
    noticed_by = ["test_glmtron::test_recovers_the_gate"]     # file (its name is enough), test

It names no path of a module, so moving files does not lose it. Where two functions of one name hold the
snippet, ``within = "learn.gates"`` says in which package.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = {
    "pindown": ROOT / "src" / "pindown",
    "pindown_reproduction": ROOT / "reproduction" / "src" / "pindown_reproduction",
}
FIELDS = {"of", "old", "new", "noticed_by", "within"}


class FaultError(ValueError):
    """A fault that cannot be put in: its function, snippet or test is not there."""


@dataclass(frozen=True)
class Fault:
    """One change of the source, with the tests that have to fail."""

    of: str
    old: str
    new: str
    noticed_by: tuple[str, ...]
    listed_in: str
    within: str = ""

    def __str__(self):
        return f"{self.of}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"

    @property
    def module(self) -> tuple[str, Path]:
        """Name and path of the module that holds the snippet."""
        return _located(self.of, self.old, self.within)[:2]

    @property
    def source(self) -> str:
        """The module's source with the fault in it."""
        _, path, offset, *_ = _located(self.of, self.old, self.within)
        text = _read(path)
        return text[:offset] + self.new + text[offset + len(self.old) :]

    @property
    def definition(self) -> tuple[str, str]:
        """The source of what it changes, before and after."""
        _, path, _, start, end = _located(self.of, self.old, self.within)
        return _read(path)[start:end], self.source[start : end + len(self.new) - len(self.old)]

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids under which pytest finds the tests."""
        return tuple(_test_id(name) for name in self.noticed_by)

    @property
    def compiled(self) -> bool:
        """Whether the module has compiled loops, whose machine code on disk must not be used."""
        return "compile" in _read(self.module[1])

    @property
    def digest(self) -> str:
        """A stamp that changes with the fault, its module and its tests."""
        files = sorted({ROOT / test.split("::")[0] for test in self.tests})
        parts = [self.source, *map(_read, files), *self.tests]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def all_faults() -> list[Fault]:
    """All faults of the TOML files of this folder, in order of files and lines.

    Raises:
        FaultError: If a table has a field too many or too few.
    """
    faults = []
    for path in sorted(HERE.glob("*.toml")):
        for table in tomllib.loads(path.read_text("utf-8")).get("fault", []):
            if table.keys() - FIELDS or (FIELDS - {"within"}) - table.keys():
                raise FaultError(f"{path.name}: {table} must have the fields {sorted(FIELDS)}")
            table["noticed_by"] = tuple(table["noticed_by"])
            faults.append(Fault(**table, listed_in=path.stem))
    return faults


@cache
def _read(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def _modules() -> dict[Path, str]:
    return {
        path: ".".join([name, *path.relative_to(top).with_suffix("").parts]).removesuffix(".__init__")
        for name, top in SOURCES.items()
        for path in sorted(top.rglob("*.py"))
    }


@cache
def _homes() -> dict[str, list[Path]]:
    """Names to the modules that may define them."""
    found: dict[str, list[Path]] = {}
    for path in _modules():
        defined = re.findall(r"^ *(?:def|class) +(\w+)|^ *(\w+)\b.*=", _read(path), re.MULTILINE)
        for name in {a or b for a, b in defined}:
            found.setdefault(name, []).append(path)
    return found


def _span(text: str, node: ast.AST) -> tuple[int, int]:
    """Where the node's lines begin and end in the text, decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    lines = _line_starts(text)
    return lines[first - 1], lines[node.end_lineno]


@cache
def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text)), len(text)]


@cache
def _definitions(path: Path) -> dict[str, list[tuple[list[str], ast.AST]]]:
    """Functions, classes and constants of a module by name: what each stands in, and what it is."""
    found: dict[str, list[tuple[list[str], ast.AST]]] = {}

    def visit(node: ast.AST, outer: list[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue
            named = isinstance(child, ast.FunctionDef | ast.ClassDef)
            targets = [child] if named else getattr(child, "targets", [getattr(child, "target", None)])
            for target in targets:
                name = getattr(target, "name", None) or getattr(target, "id", None)
                found.setdefault(name, []).append((outer, child))
            visit(child, [*outer, child.name] if named else outer)

    visit(ast.parse(_read(path)), [])
    return found


@cache
def _located(of: str, old: str, within: str) -> tuple[str, Path, int, int, int]:
    """Module, path, place of the snippet, and where its definition begins and ends."""
    *outer, name = of.split(".")
    places, defined = {}, False
    for path in _homes().get(name, ()):
        module = _modules()[path]
        if within and f".{within}." not in f".{module}.":
            continue
        for around, node in _definitions(path).get(name, ()):
            if outer and around[-len(outer) :] != outer:
                continue
            defined = True
            start, end = _span(_read(path), node)
            for match in re.finditer(re.escape(old), _read(path)[start:end]):
                places.setdefault((module, path, start + match.start()), (start, end))
    if len(places) != 1:
        where = "nothing is called so" if not defined else f"the snippet is there {len(places)} times"
        modules = ", ".join(sorted({module for module, *_ in places}))
        raise FaultError(f"{of}: {old!r}: {where}{' in ' + modules if modules else ''}")
    ((place, span),) = places.items()
    return *place, *span


@cache
def _test_files() -> tuple[Path, ...]:
    return tuple(sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")))


@cache
def _test_id(name: str) -> str:
    file, _, test = name.partition("::")
    last = test.split("::")[-1].split("[")[0]
    files = [
        path
        for path in _test_files()
        if f"/{path.with_suffix('').as_posix()}".endswith(f"/{file.removesuffix('.py')}")
        and (not last or re.search(rf"def {last}\b", _read(ROOT / path)))
    ]
    if len(files) != 1:
        raise FaultError(f"{name}: {len(files)} test files hold such a test; say folder/file::test")
    return f"{files[0].as_posix()}::{test}" if test else files[0].as_posix()
