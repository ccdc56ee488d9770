"""Names of a package that are loaded when they are used, not when the package is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], eager: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return a package's ``__getattr__``, ``__dir__`` and ``__all__``.

    Args:
        package: The package's ``__name__``.
        names: Module names to the public names that live there, separated by spaces.
        eager: Public names the package imports at once.

    >>> find, _, everything = lazy_names("math", {})
    >>> everything
    []
    """
    homes = {name: module for module, listed in names.items() for name in listed.split()}
    everything = [*eager, *homes]

    def find(name: str) -> Any:
        if name in homes:
            return getattr(import_module(f"{package}.{homes[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(everything), everything
