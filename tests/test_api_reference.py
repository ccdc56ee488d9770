"""The library reference documents every public name of every public package."""

import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

import pindown

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "docs/api.md", *ROOT.glob("docs/api/*.md")])
DIRECTIVE = re.compile(
    r"^\.\. (?:auto|py:)(module|class|function|data):: ([\w.]+).*\n((?:   :.*\n)*)", re.MULTILINE
)
MEMBERS = re.compile(r"^   :members:(.*)$", re.MULTILINE)


def public_packages():
    """Every package that lists its public names, pindown itself first."""
    found = [pindown]
    for info in pkgutil.walk_packages(pindown.__path__, "pindown."):
        if info.ispkg and not any(part.startswith("_") for part in info.name.split(".")):
            package = importlib.import_module(info.name)
            if getattr(package, "__all__", None):
                found.append(package)
    return found


def names_of(module):
    """What automodule shows: the names in __all__, or what is defined there."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def resolve(path):
    """The object of a dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@cache
def documented():
    """The ids of the objects on the pages of the reference."""
    objects = []
    for page in PAGES:
        for kind, path, options in DIRECTIVE.findall(page.read_text()):
            if kind != "module":
                objects.append(resolve(path))
                continue
            members = MEMBERS.search(options)
            module = importlib.import_module(path)
            chosen = members.group(1).replace(",", " ").split() if members else []
            names = chosen or (names_of(module) if members else [])
            found = [getattr(module, name) for name in names]
            # Without a docstring of their own, constants do not appear: they need py:data.
            objects += [each for each in found if inspect.isclass(each) or inspect.isroutine(each)]
    return {id(each): each for each in objects}


@pytest.mark.parametrize("package", public_packages(), ids=lambda package: package.__name__)
def test_every_public_name_is_in_the_reference(package):
    missing = [
        name
        for name in package.__all__
        if not inspect.ismodule(getattr(package, name))
        and id(getattr(package, name)) not in documented()
    ]
    assert not missing, f"{package.__name__} has names that docs/api does not show: {' '.join(missing)}"


def test_every_page_of_the_reference_documents_something():
    for page in PAGES:
        assert DIRECTIVE.search(page.read_text()), f"{page.name} documents nothing"
