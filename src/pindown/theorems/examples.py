"""Examples of docstrings as sessions that run by themselves, with the imports of their modules."""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def session_of(path: str) -> str:
    """Return the example in the docstring of a public name, imports first.

    Args:
        path: A dotted name.

    >>> session_of("pindown.learn.gates.glmtron_horizon").split(chr(10))
    ['>>> from pindown.learn.gates import glmtron_horizon', '>>> glmtron_horizon(3.0, 0.5)', '18']
    """
    package, _, name = path.rpartition(".")
    value = getattr(import_module(package), name)
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(value) or "")
    home = vars(sys.modules[value.__module__])
    lines = [">>> " + line for line in _imports(examples, {**home, name: value}, {name: package})]
    for each in examples:
        first, *rest = each.source.rstrip("\n").split("\n")
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        lines += each.want.rstrip("\n").split("\n") if each.want else []
    return "\n".join(lines)


def _imports(examples: list[doctest.Example], home: dict[str, Any], known: dict[str, str]) -> list[str]:
    """Return lines that bind what examples use of the module they come from."""
    tree = ast.parse("".join(each.source for each in examples))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {
        a.asname or a.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for a in node.names
    }
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    used = {node.id for node in names} - bound - set(vars(builtins))
    plain: list[str] = []
    members: dict[str, list[str]] = {}
    for name in sorted(used & set(home)):
        value = home[name]
        if isinstance(value, ModuleType):
            plain.append(f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else ""))
        else:
            place = known.get(name) or _public_home(name, value, home["__name__"])
            members.setdefault(place, []).append(name)
    return plain + [
        f"from {place} import {', '.join(found)}" for place, found in sorted(members.items())
    ]


def _public_home(name: str, value: Any, here: str) -> str:
    """Return the shortest package of pindown that offers a value under its name; else its module."""
    module = getattr(value, "__module__", None) or here
    parts = module.split(".")
    for end in range(1, len(parts)):
        package = import_module(".".join(parts[:end]))
        if name in getattr(package, "__all__", ()) and getattr(package, name) is value:
            return package.__name__
    return module
