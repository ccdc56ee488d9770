"""Optional parts: what each is for, and one clear line where one is missing.

``from pindown.extras import torch`` inside a function gives torch, or says how to get it.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

# The extra of pyproject.toml that brings each module.
EXTRAS = {
    "torch": "torch",
    "matplotlib": "plots",
    "numba": "fast",
    "dask": "cluster",
    "distributed": "cluster",
}
# What each extra is for.
USES = {
    "torch": "torch modules, training, optimisers",
    "plots": "pictures: matplotlib",
    "fast": "compiled loops for large work: numba",
    "cluster": "work on many machines, through joblib's Dask backend",
    "all": "everything above",
}


class MissingExtraError(ModuleNotFoundError):
    """Something was asked for that needs an optional part; the message says how to get it."""


def __getattr__(name: str) -> Any:
    """Return an optional module.

    Raises:
        MissingExtraError: If it is not installed.

    >>> from pindown.extras import numpy  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ImportError: cannot import name 'numpy' from 'pindown.extras' ...
    """
    if name not in EXTRAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise explained(error) from None


def require(module: str) -> None:
    """Go on, or say how to get an optional module; for functions that import parts of it.

    Raises:
        MissingExtraError: If it is not installed.
    """
    __getattr__(module)


def explained(error: ModuleNotFoundError, what: str = "this") -> ModuleNotFoundError:
    """Return an error that says what to install, if it is an optional part that is missing.

    >>> str(explained(ModuleNotFoundError("no", name="torch.nn"), "HeavyBall"))  # doctest: +ELLIPSIS
    'HeavyBall needs torch, which is not installed: ...pip install ...[torch]"'
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS or isinstance(error, MissingExtraError):
        return error
    command = install_command(EXTRAS[module])
    return MissingExtraError(f"{what} needs {module}, which is not installed: {command}", name=module)


def install(what: str, *options: str) -> str:
    """Return the command that installs something into the Python that is running.

    >>> install("numpy>=2", "--upgrade").endswith('-m pip install --upgrade "numpy>=2"')
    True
    """
    return " ".join([sys.executable, "-m pip install", *options, f'"{what}"'])


def install_command(extra: str) -> str:
    """Return the command that adds an optional part to the pindown that is running."""
    from importlib import metadata  # slow to load, and seldom needed

    try:
        origin = json.loads(metadata.distribution("pindown").read_text("direct_url.json") or "{}")
        folder = origin["url"].removeprefix("file://") if "dir_info" in origin else ""
        if folder:
            editable = ("-e",) if origin["dir_info"].get("editable") else ()
            return install(f"{folder}[{extra}]", *editable)
    except (ImportError, ValueError, RecursionError, AttributeError, KeyError, TypeError):
        pass  # not installed, or a damaged record of how it came here
    return install(f"pindown[{extra}]")
