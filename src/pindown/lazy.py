"""A package's public names: listed once, in ``__init__.pyi``, and loaded when they are used.

The stub next to a package's ``__init__.py`` says where each public name lives, one ``from module import
name as name`` each, grouped. Type checkers read it; :func:`lazy_names` reads it too, so that importing a
package loads none of its modules.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pindown.extras import explained


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``, as its stub lists them.

    Args:
        package: The package's ``__name__``.

    >>> import pindown.optim
    >>> find, _, everything = lazy_names("pindown.optim")
    >>> "HeavyBall" in everything, find("HeavyBall").__name__
    (True, 'HeavyBall')
    """
    homes = homes_of(package)

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, original = homes[name]
        if module == package:  # a room, not a name
            return import_module(f"{package}.{original}")
        try:
            value = getattr(import_module(module), original)
        except ModuleNotFoundError as error:
            raise explained(error, f"{package}.{name}") from None
        # Kept, so that a module of the same name, which importing binds here, does not hide it.
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes), list(homes)


def homes_of(package: str) -> dict[str, tuple[str, str]]:
    """Return public names with the modules they come from and their names there."""
    stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
    return {
        name.asname or name.name: (line.module, name.name)
        for line in ast.parse(stub.read_text("utf-8")).body
        if isinstance(line, ast.ImportFrom) and line.module is not None
        for name in line.names
    }
