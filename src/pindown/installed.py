"""Which packages pindown asks for, which of them are installed, and the command that gets the others."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from importlib import metadata

_NAME = re.compile(r"[\w.-]+")
_LEAST = re.compile(r">=\s*([\d.]+)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)""")


@dataclass(frozen=True)
class Requirement:
    """One requirement: a name, the least version, and the optional part it belongs to.

    Attributes:
        name: The package.
        least: The least version that will do; empty if any will.
        extra: The optional part that asks for it; empty if pindown cannot do without.

    >>> Requirement.parse("dask[distributed]>=2024.8; extra == 'cluster'")
    Requirement(name='dask', least='2024.8', extra='cluster')
    """

    name: str
    least: str = ""
    extra: str = ""

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Read one entry of ``importlib.metadata.requires``.

        Raises:
            ValueError: If it does not begin with a name.
        """
        name = _NAME.match(text.strip())
        if name is None:
            raise ValueError(f"a requirement begins with the name of a package; got {text!r}.")
        wanted, _, marker = text.partition(";")
        least, extra = _LEAST.search(wanted), _EXTRA.search(marker)
        return cls(name[0], least[1] if least else "", extra[1] if extra else "")

    @property
    def version(self) -> str:
        """The version that is installed; empty if none is."""
        try:
            return metadata.version(self.name)
        except metadata.PackageNotFoundError:
            return ""

    @property
    def is_met(self) -> bool:
        """Whether a version that will do is installed."""
        return bool(self.version) and release(self.version) >= release(self.least)

    def __str__(self) -> str:
        return f"{self.name}>={self.least}" if self.least else self.name


def requirements() -> list[Requirement]:
    """Return what pindown asks for, optional parts included; empty if it is not installed."""
    try:
        return [Requirement.parse(line) for line in metadata.requires("pindown") or []]
    except metadata.PackageNotFoundError:
        return []


def release(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, without zeros at the end.

    >>> release("2.13.0+cpu"), release("1.6.dev0"), release("8.0") == release("8")
    ((2, 13), (1, 6), True)
    """
    begin = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(n) for n in begin[0].split(".")] if begin else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def pip_install(what: str, *options: str) -> str:
    """Return the command that installs something into the Python that is running.

    >>> pip_install("numpy>=2", "--upgrade").endswith('-m pip install --upgrade "numpy>=2"')
    True
    """
    return " ".join([sys.executable, "-m pip install", *options, f'"{what}"'])


def pip_install_extra(extra: str) -> str:
    """Return the command that adds an optional part to the pindown that is running."""
    try:
        origin = json.loads(metadata.distribution("pindown").read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            return pip_install(f"{origin['url'].removeprefix('file://')}[{extra}]", "-e")
    except (ValueError, RecursionError, AttributeError, KeyError):
        pass  # a damaged record of how it came here
    return pip_install(f"pindown[{extra}]")
