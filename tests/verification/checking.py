"""The checker that strangers use, and small problems whose certificates it checks."""

import importlib.util
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import pindown as pn

CHECKER = Path(__file__).parents[2] / "checker" / "pindown_check.py"


def load_checker():
    """Return the checker as a module: a file beside the package, which it knows nothing of."""
    spec = importlib.util.spec_from_file_location("pindown_check", CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Problem(NamedTuple):
    """Models, a property, and the verdict and the kind of proof that are expected."""

    models: tuple
    prop: pn.Property
    verdict: str
    way: int = 0


def wide_network(rng, d, widths, k):
    """Return a network with weights of float32."""
    sizes = [d, *widths, k]
    layers = []
    for n, m in pairwise(sizes):
        weight = (rng.standard_normal((m, n)) / np.sqrt(n)).astype(np.float32)
        layers.append(
            (weight.astype(float), (0.1 * rng.standard_normal(m)).astype(np.float32).astype(float))
        )
    return pn.ReluNetwork.from_layers(layers)


def problems():
    """Return a problem for each kind of proof."""
    rng = np.random.default_rng(0)
    norm = pn.ReluNetwork.from_layers(
        [([[1, 0], [0, 1], [-1, 0], [0, -1]], [0, 0, 0, 0]), ([[1, 1, 1, 1]], [0])]
    )
    unit = np.ones(2)
    found = {
        "boxes": Problem((norm,), pn.Property.box(-unit, unit, [[1.0]], [2.1]), "holds", 2),
        "witness": Problem((norm,), pn.Property.box(-unit, unit, [[1.0]], [1.5]), "violated"),
        "ends": Problem((norm,), pn.Property.box(-unit, unit, [[-1.0]], [0.0]), "holds", 1),
        "two networks": Problem(
            (norm,),
            pn.Property.monotone([0, -1], [1, 1], input=0, output=0, n_outputs=1, tol=0.01),
            "holds",
        ),
    }
    net = wide_network(rng, 8, (12, 10), 3)
    x = rng.uniform(-1, 1, 8)
    label = int(np.argmax(net(x)))
    for name, radius in (("bounds", 0.02), ("signs", 0.1)):
        prop = pn.Property.robust(x, label, radius, n_outputs=3)
        found[name] = Problem((net,), prop, "holds", 3)
    found["many signs"] = Problem((net,), pn.Property.robust(x, label, 0.105, n_outputs=3), "holds", 3)
    low, high = np.full(2, -1.0), np.ones(2)
    small = wide_network(np.random.default_rng(2), 2, (24, 24), 1)
    grid = small(np.stack(np.meshgrid(*[np.linspace(-1, 1, 99)] * 2), -1).reshape(-1, 2))
    limit = float(grid.max()) + 0.001
    found["many boxes"] = Problem((small,), pn.Property.box(low, high, [[1.0]], [limit]), "holds", 2)
    return found


def certified(problem, folder, **options):
    """Write models and certificate; return the answer, the models' bytes and the certificate's."""
    paths = []
    for i, net in enumerate(problem.models):
        path = Path(folder, f"model{i}.onnx")
        net.save(path)
        paths.append(path)
    place = Path(folder, "proof")
    answer = pn.verify(tuple(paths), problem.prop, certificate=place, n_jobs=1, **options)
    return answer, [path.read_bytes() for path in paths], place.read_bytes() if place.exists() else b""
