"""Propose faults: change one operation of a function at a time, and see which test notices.

``python -m tests.mutants.propose pindown.bias.flow`` prints entries for a list of this folder, with the
first test that failed, and the changes that no test noticed: these want a better test, or are the same.
A package stands for all its modules; ``--per-function 3`` proposes so many changes of each function.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from tests.mutants.faults import ROOT, Fault, FaultError, _modules, _read, _span, _test_files
from tests.mutants.run import NOTICED, SURVIVED, Pool, warm_up

OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
CALLS = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "sqrt": "square",
    "log": "log1p",
    "floor": "ceil",
    "ceil": "floor",
    "mean": "sum",
    "argmax": "argmin",
    "argmin": "argmax",
    "any": "all",
    "all": "any",
}
COMPARISONS = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">", ast.GtE: "<"}
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Subscript, ast.Assert, ast.FunctionDef, ast.Lambda)


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield expressions of a function and what a slip of the pen would make of them."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, SKIPPED) or (
            isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        ):
            continue
        match child:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                yield child, f"{_inner(left)} {OPERATORS[type(op)]} {_inner(right)}"
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                yield child, f"{_inner(left)} ** (1 + {_inner(right)})"
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name() | ast.Call() | ast.BinOp() as operand):
                yield child, _inner(operand)
            case ast.Constant(value=float() as value) if value not in (0.0, 1.0):
                yield child, repr(2 * value)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                yield child, f"{ast.unparse(left)} {COMPARISONS[type(op)]} {ast.unparse(right)}"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in CALLS:
                source = ast.unparse(child)
                yield child, re.sub(rf"\b{name}\(", f"{CALLS[name]}(", source, count=1)
            case ast.Call(func=ast.Name(id="isinstance")):
                pass
            case ast.Call(func=func, args=[ast.Name() as a, ast.Name() as b], keywords=[]):
                yield child, f"{ast.unparse(func)}({b.id}, {a.id})"
            case ast.Attribute(attr="T", value=value):
                yield child, ast.unparse(value)
            case ast.AugAssign(target=target, op=op, value=value):
                changed = "-" if isinstance(op, ast.Add) else "+"
                yield child, f"{ast.unparse(target)} {changed}= {ast.unparse(value)}"
        yield from changes(child)


def _inner(node: ast.AST) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.IfExp | ast.Compare | ast.UnaryOp) else text


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield the qualified names of functions and methods, those of nobody but Python left out."""
    for node in ast.iter_child_nodes(tree):
        name = getattr(node, "name", "")
        if isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{name}.")
        elif isinstance(node, ast.FunctionDef) and not re.fullmatch(r"__\w+__|plot\w*|draw\w*", name):
            yield f"{prefix}{name}", node


def proposals(path: Path, per_function: int, draw: random.Random) -> Iterator[Fault]:
    """Yield faults of a module, a few for each function."""
    text = _read(path)
    module = _modules()[path].removeprefix("pindown.")
    for name, node in functions(ast.parse(text)):
        found = list(changes(node))
        draw.shuffle(found)
        taken = 0
        for old_node, written in found:
            old = ast.get_source_segment(text, old_node)
            if taken == per_function or old is None:
                break
            start, end = _span(text, node)
            offset = sum(len(line) + 1 for line in text.split("\n")[: old_node.lineno - 1])
            at = offset + len(
                text.split("\n")[old_node.lineno - 1].encode()[: old_node.col_offset].decode()
            )
            old, new = _widened(text, start, end, at, old, written)
            fault = Fault(name, old, new, (), module, within=module)
            try:
                ast.parse(fault.source)
            except (FaultError, SyntaxError):
                continue
            taken += 1
            yield fault


def _widened(text: str, start: int, end: int, at: int, old: str, new: str) -> tuple[str, str]:
    """Take in whole words around a snippet until it stands only once in its function."""
    left, right = at, at + len(old)
    while text[start:end].count(text[left:right]) > 1 and (left > start or right < end):
        left = max(start, text.rfind("\n", 0, left - 1) + 1) if text[left - 1] in "\n " else left - 1
        right = min(end, right + 1) if text[right - 1] != "\n" else right
    return text[left:right].strip("\n"), (text[left:at] + new + text[at + len(old) : right]).strip("\n")


def tests_of(fault: Fault) -> list[str]:
    """Files of tests that should notice: the module's own first, then those that name the function."""
    _, path = fault.module
    twin = f"test_{path.stem.lstrip('_')}.py"
    room = path.relative_to(ROOT / "src/pindown").parts[0]
    name = fault.of.split(".")[0]
    words = re.compile(rf"\b({name}|{path.stem})\b")
    named = [p for p in _test_files() if room in p.parts and words.search(_read(ROOT / p))]
    beside = [p for p in named if p.name == twin] or [p for p in _test_files() if p.name == twin]
    return [p.as_posix() for p in dict.fromkeys([*beside, *named])][:4]


def main() -> None:
    """Propose, try, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--per-function", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    paths = [
        path
        for path, name in _modules().items()
        if any(f"{name}.".startswith(f"{module}.") for module in arguments.modules)
    ]
    faults = [fault for path in paths for fault in proposals(path, arguments.per_function, draw)]
    warm_up()
    jobs = [(fault, fault, tuple(tests)) for fault in faults if (tests := tests_of(fault))]
    for done, (fault, outcome, said, _) in enumerate(Pool(arguments.jobs).answers(jobs), 1):
        failed = re.findall(r"^FAILED (\S+)", said, re.MULTILINE)
        if outcome == NOTICED and failed:
            print(_entry(fault, failed[0]), flush=True)
        elif outcome == SURVIVED:
            print(f"# [{done}/{len(jobs)}] SURVIVED {fault.within}: {fault}", flush=True)


def _entry(fault: Fault, test: str) -> str:
    file, _, name = test.removesuffix(".py").partition(".py::")
    short = file.removeprefix("tests/")
    lines = [
        f"{key} = {json.dumps(value)}"
        for key, value in (("of", fault.of), ("old", fault.old), ("new", fault.new))
    ]
    return "\n".join(["[[fault]]", *lines, f'noticed_by = ["{short}::{name.split("[")[0]}"]', ""])


if __name__ == "__main__":
    main()
