"""Who may import whom: arrows point down, also inside functions, and public names are listed once."""

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import pindown
from pindown.lazy import homes_of

SOURCE = Path(pindown.__file__).parent

# From the ground up. A room may import what stands in a line above its own. Rooms in one line do not
# know each other, except for those in the first line.
FOUNDATION = (
    "affine atomic_files box compiling confidence deadline deprecation errors evidence extras "
    "interrupts json_files lazy machine_code parallel programs progress rounding text torch_modules "
    "validation"
)
LAYERS = (
    FOUNDATION,
    "network",
    "calculus rational",
    "model",
    "io datasets",
    "relaxation",
    "geometry",
    "verification",
    "equivalence",
    "circuits guarantees optim",
    "probes symmetry learn",
    "bias",
    "findings",
    "_audit report theorems",
    "cli testing",
)
LEVEL = {room: level for level, line in enumerate(LAYERS) for room in line.split()}

# Arrows that point the wrong way, each with its reason.
EXCEPTIONS = {
    ("network", "io"): "ReluNetwork.load and save, from_torch, from_sklearn: one door to files",
    ("model", "io"): "Model.save, from_torch, from_sklearn: one door to files",
    ("network", "calculus"): "the operators of ReluNetwork",
    ("network", "rational"): "ReluNetwork.as_fractions",
    ("equivalence", "report"): "a Diff draws itself",
    ("verification", "report"): "a Verification draws itself",
    ("_audit", "report"): "an Audit draws itself",
}


def room_of(module):
    return module.split(".")[1] if "." in module else "pindown"


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


@cache
def imports_of(path):
    """Names of modules of pindown that a file imports anywhere, what is only for types left out."""
    return tuple(_imports_of(path))


def _imports_of(path):
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    whole = {"pindown"} | {
        name.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
        if name.name == "pindown" and name.asname
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "pindown")
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node, path)
            for name in node.names if module.split(".")[0] == "pindown" else ():
                if module == "pindown":
                    yield home_of(name.name)
                else:
                    yield f"{module}.{name.name}" if name.name.startswith("_") else module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in whole:
                yield home_of(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            named = [n.value for n in node.args if isinstance(n, ast.Constant)]
            yield from (name for name in named if name.startswith("pindown."))


def absolute(node, path):
    """Return the module that a ``from`` names, also where it counts dots from its own file."""
    package = path.relative_to(SOURCE.parent).parent.parts
    above = package[: len(package) - node.level + 1] if node.level else ()
    return ".".join([*above, *([node.module] if node.module else [])])


def home_of(name):
    """Return where a public name of pindown itself comes from."""
    module, original = homes_of("pindown").get(name, ("pindown", name))
    return module if module != "pindown" else f"pindown.{original}" if original in LEVEL else "pindown"


def wrong_arrows():
    found = {}
    for name, path in modules():
        here = room_of(name)
        if here in ("pindown", "__main__"):
            continue
        for imported in imports_of(path):
            there = room_of(imported)
            if there in ("pindown", here) or (here, there) in EXCEPTIONS:
                continue
            if LEVEL[there] > LEVEL[here] or (LEVEL[there] == LEVEL[here] and LEVEL[here] > 0):
                found.setdefault((here, there), []).append(f"{name} imports {imported}")
    return found


def test_every_room_has_its_place():
    assert {room_of(name) for name, _ in modules()} - {"pindown", "__main__"} <= LEVEL.keys()


def test_arrows_point_down():
    assert not wrong_arrows()


def test_foundation_has_no_circle():
    edges = {
        room: {room_of(i) for i in imports_of(path)} - {room, "pindown"}
        for name, path in modules()
        if (room := room_of(name)) in FOUNDATION.split()
    }
    done = set()
    while ready := {room for room, needs in edges.items() if needs <= done} - done:
        done |= ready
    assert done == edges.keys(), edges.keys() - done


def test_what_begins_with_an_underscore_belongs_to_its_room():
    foreign = [
        f"{name} imports {imported}"
        for name, path in modules()
        for imported in imports_of(path)
        if room_of(imported) != room_of(name)
        and any(part.startswith("_") for part in imported.split(".")[2:])
        and (room_of(name), room_of(imported)) not in EXCEPTIONS
    ]
    assert not foreign


def test_exceptions_are_needed():
    arrows = {
        (room_of(name), room_of(imported)) for name, path in modules() for imported in imports_of(path)
    }
    assert EXCEPTIONS.keys() <= arrows


@pytest.mark.parametrize("stub", sorted(SOURCE.rglob("__init__.pyi")), ids=str)
def test_public_names_are_there_and_hide_no_module(stub):
    package = ".".join(stub.relative_to(SOURCE.parent).parent.parts)
    module = importlib.import_module(package)
    inside = {info.name for info in pkgutil.iter_modules(module.__path__)}
    rooms = {name for name in module.__all__ if f"{package}.{name}" in dict(modules())}
    assert (inside & set(module.__all__)) <= (rooms if package == "pindown" else set())
    assert all(hasattr(module, name) for name in module.__all__)
