"""One contract for every budget of seconds: kept within a tenth and a second, and used before it lacks.

The clock that budgets are read from counts the CPU seconds of this process here, so that a busy machine
makes nothing late; nothing here starts other processes.
"""

import importlib
import inspect
import pkgutil
import re
import time
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from torch import nn

import pindown as pn
from pindown import ReluNetwork, geometry, guarantees, learn, probes, symmetry
from pindown.cli.main import app
from pindown.equivalence import (
    check_identifiable,
    decide_shallow,
    functional_dimension,
    gap_of_changes,
    recover,
    unit_relations,
)
from pindown.equivalence.sensitivity.changes import Change
from pindown.equivalence.shrinking import shrink_and_settle
from pindown.geometry import Box
from pindown.geometry.exact import exact_cells_within, exact_count
from pindown.geometry.plots import animate_training, plot_training
from pindown.model.operations.convolution import Convolution
from pindown.model.operations.windows import Window
from pindown.relaxation import absolute_product_norm, convolution_norm, layer_spectral_norms
from pindown.symmetry.discovery import learn_orbit
from pindown.verification import output_range

SHORT = re.compile(
    r"ran out|in the time given|was used up|than what was left|could be proved in the time",
    re.IGNORECASE,
)
# A share of a full cost, not seconds.
NOT_SECONDS = {"ExitPolicy", "budget_policy", "confidence_policy", "timed_policy"} | {
    f"MultiExitClassifier.{name}"
    for name in ("early_answers", "keep_time", "policy", "predict", "predict_proba")
}


def random_net(*widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [
            (rng.normal(size=(b, a)) * (2 / a) ** 0.5, rng.normal(size=b) * 0.1)
            for a, b in pairwise(widths)
        ]
    )


def rows(n, d, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


def labels(net, X):
    return net(X).argmax(1)


# A network whose cells are few, one whose cells nobody lists, and one as wide as an image is;
# the last but one is for what only the plane allows.
SMALL = random_net(2, 6, 6, 2)
LARGE = random_net(6, 48, 48, 48, 3)
PLANE = random_net(2, 300, 300, 2)
IMAGE = random_net(784, 256, 256, 256, 256, 10)


def with_both(call):
    """Give a call both networks, each with a box."""
    return {
        "small": lambda budget: call(SMALL, Box.cube(2, -1.0, 1.0), budget),
        "large": lambda budget: call(LARGE, Box.cube(6, -1.0, 1.0), budget),
    }


def geometric(function, **settings):
    return with_both(lambda net, box, budget: function(net, box, budget=budget, **settings))


def planar(function):
    """Give a function, which is for few inputs, two networks on a square."""
    square = Box.cube(2, -1.0, 1.0)
    return {
        "small": lambda budget: function(SMALL, square, budget=budget),
        "large": lambda budget: function(PLANE, square, budget=budget),
    }


def on_rows(function, n_large=200, **settings):
    return {
        "small": lambda budget: function(SMALL, rows(5, 2), budget=budget, **settings),
        "large": lambda budget: function(IMAGE, rows(n_large, 784), budget=budget, **settings),
    }


def explained(function):
    """Give a function piecewise linear and smooth models; sums over pieces are not cut."""
    smooth = nn.Sequential(nn.Linear(784, 64), nn.Tanh(), nn.Linear(64, 10)).double()
    return {
        "small": lambda budget: function(SMALL, rows(5, 2), budget=budget),
        "large": lambda budget: function(smooth, rows(50, 784), tol=1e-14, budget=budget),
    }


def fitted(make, small, large):
    return {
        "small": lambda budget: make(budget).fit(*small()),
        "large": lambda budget: make(budget).fit(*large()),
    }


def regression(n, d):
    X = rows(n, d)
    return X, np.abs(X).sum(1) + 0.1 * np.random.default_rng(2).normal(size=n)


def halves(n, d):
    X = rows(n, d)
    return X, (X.sum(1) > 0).astype(int)


def flipped(net):
    """Return the same function with its first layer's units in another order, and one of them split."""
    order = np.random.default_rng(3).permutation(net.widths[1])
    first, second, *rest = [(layer.weight, layer.bias) for layer in net.layers]
    return ReluNetwork.from_layers(
        [(first[0][order], first[1][order]), (second[0][:, order], second[1]), *rest]
    )


def nudged(net, by=1e-3):
    rng = np.random.default_rng(4)
    return ReluNetwork.from_layers(
        [(layer.weight + by * rng.normal(size=layer.weight.shape), layer.bias) for layer in net.layers]
    )


def convolution(channels):
    window = Window(kernel=(3, 3), strides=(1, 1), before=(1, 1), after=(1, 1), dilations=(1, 1))
    return Convolution(np.random.default_rng(6).normal(size=(channels, channels, 3, 3)), window=window)


def orbits(n, d):
    X = np.random.default_rng(5).normal(size=(n, d))
    return np.concatenate([np.roll(X, k, axis=1) for k in range(d)])


def mlp(d, hidden, k):
    return nn.Sequential(nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, k))


def certified(net, X, budget):
    radii = [0.01, 0.05]
    return guarantees.certified_accuracy(net, X, labels(net, X), radii, budget=budget, verbose=0)


def verified(net, box, budget):
    matrix, limits = np.eye(net.out_features)[:1], net(rows(2000, box.dim)).max(0)[:1] * 1.05
    return pn.verify(net, pn.Property.box(box.lower, box.upper, matrix, limits), budget=budget)


def masked(d, n, budget):
    net, X = random_net(d * d, 16, 2), rows(n, d * d)
    return probes.fourier_mask(
        net.to_torch().float(), X, labels(net, X), image_shape=(d, d), budget=budget, verbose=0
    )


def pictures(function):
    def call(net, box, budget):
        nets = [net, nudged(net), nudged(net, 1e-2)]
        return function(nets, box, budget=budget)

    plane = Box.cube(2, -1.0, 1.0)
    wide = random_net(2, 40, 40, 2)  # the budget is for finding cells; drawing many takes longer
    return {"small": lambda b: call(SMALL, plane, b), "large": lambda b: call(wide, plane, b)}


CASES = {
    "audit": {
        "small": lambda b: pn.audit(SMALL, rows(50, 2), labels(SMALL, rows(50, 2)), budget=b),
        "large": lambda b: pn.audit(IMAGE, rows(2000, 784), labels(IMAGE, rows(2000, 784)), budget=b),
    },
    "diff": with_both(lambda net, box, b: pn.diff(net, nudged(net), box=box, budget=b)),
    "diff, all inputs": with_both(lambda net, box, b: pn.diff(net, flipped(net), budget=b)),
    "diff, rows": {
        "small": lambda b: pn.diff(SMALL, nudged(SMALL), data=rows(20, 2), radius=0.05, budget=b),
        "large": lambda b: pn.diff(
            IMAGE, nudged(IMAGE), data=rows(200, 784), radius=0.02, labels=True, budget=b
        ),
    },
    "shrink": with_both(lambda net, box, b: pn.shrink(net, box=box, budget=b)),
    "shrink_and_settle": with_both(lambda net, box, b: shrink_and_settle(net, box=box, budget=b)),
    "verify": with_both(verified),
    "recover": with_both(lambda net, box, b: recover(net, net.in_features, box=box, budget=b)),
    "check_identifiable": geometric(check_identifiable),
    "decide_shallow": with_both(
        lambda net, box, b: decide_shallow(
            *(random_net(net.in_features, 40, 1, seed=s) for s in (0, 1)), box, budget=b
        )
    ),
    "functional_dimension": with_both(lambda net, box, b: functional_dimension(net, box, budget=b)),
    "unit_relations": with_both(lambda net, box, b: unit_relations(net, budget=b)),
    "gap_of_changes": with_both(
        lambda net, box, b: gap_of_changes(
            net, {0: Change(1e-3 * net.layers[0].weight, 0 * net.layers[0].bias)}, box=box, budget=b
        )
    ),
    "check_generality": geometric(geometry.check_generality),
    "check_transparency": geometric(geometry.check_transparency),
    "convexity": geometric(geometry.convexity),
    "monotonicity": geometric(geometry.monotonicity),
    "decision_regions": geometric(geometry.decision_regions),
    "exact_complex": geometric(geometry.exact_complex),
    "exact_count": geometric(exact_count),
    "exact_cells_within": with_both(lambda net, box, b: exact_cells_within(net, box, None, budget=b)),
    "explore": with_both(
        lambda net, box, b: geometry.explore(net, rows(20, box.dim), box=box, budget=b, max_cells=10**6)
    ),
    "flatten_to_one_hidden": planar(geometry.flatten_to_one_hidden),
    "fold_set": planar(geometry.fold_set),
    "level_set": planar(geometry.level_set),
    "volume_above": geometric(geometry.volume_above),
    "lipschitz_constant": geometric(geometry.lipschitz_constant),
    "local_maxima": geometric(geometry.local_maxima),
    "local_minima": geometric(geometry.local_minima),
    "output_range": geometric(geometry.output_range),
    "output_range of any model": geometric(output_range),
    "polyhedral_complex": geometric(geometry.polyhedral_complex),
    "region_count": geometric(geometry.region_count),
    "on_plane": {
        "small": lambda b: geometry.on_plane(SMALL, [0, 0], [1, 0], [0, 1], budget=b),
        "large": lambda b: geometry.on_plane(
            IMAGE, *rows(3, 784), extent=((-20, 20), (-20, 20)), budget=b
        ),
    },
    "plane_through": {
        "small": lambda b: geometry.plane_through(SMALL, [0, 0], [1, 0], [0, 1], budget=b),
        "large": lambda b: geometry.plane_through(IMAGE, *(20 * rows(3, 784)), budget=b),
    },
    "plot_training": pictures(plot_training),
    "certified_accuracy": {
        "small": lambda b: certified(SMALL, rows(5, 2), b),
        "large": lambda b: certified(IMAGE, rows(100, 784), b),
    },
    "certify": {
        "small": lambda b: guarantees.certify(mlp(2, 8, 2), *halves(100, 2), budget=b, verbose=0),
        "large": lambda b: guarantees.certify(mlp(784, 256, 2), *halves(5000, 784), budget=b, verbose=0),
    },
    "certify, PAC-Bayes": {
        "small": lambda b: guarantees.certify(
            mlp(2, 8, 2), *halves(100, 2), method="pac-bayes", budget=b, verbose=0
        ),
        "large": lambda b: guarantees.certify(
            mlp(784, 256, 2), *halves(5000, 784), method="pac-bayes", budget=b, verbose=0
        ),
    },
    "lipschitz_bounds": on_rows(guarantees.lipschitz_bounds),
    "minimum_distance": {
        "small": lambda b: guarantees.minimum_distance(SMALL, [0.1, 0.2], budget=b),
        "large": lambda b: guarantees.minimum_distance(IMAGE, rows(1, 784)[0], budget=b),
    },
    "spectral_norm": {
        "small": lambda b: guarantees.spectral_norm(rows(5, 4), budget=b),
        "large": lambda b: guarantees.spectral_norm(rows(1500, 1500), budget=b),
    },
    "layer_spectral_norms": {
        "small": lambda b: layer_spectral_norms([rows(5, 4)], budget=b),
        "large": lambda b: layer_spectral_norms([rows(1200, 1200)] * 3, budget=b),
    },
    "absolute_product_norm": {
        "small": lambda b: absolute_product_norm([rows(5, 4), rows(3, 5)], budget=b),
        "large": lambda b: absolute_product_norm([rows(1500, 1500)] * 3, budget=b),
    },
    "convolution_norm": {
        "small": lambda b: convolution_norm(convolution(2), budget=b),
        "large": lambda b: convolution_norm(convolution(64), budget=b),
    },
    "ExactReluRegressor": fitted(
        lambda b: learn.ExactReluRegressor(2, budget=b, verbose=0),
        partial(regression, 10, 2),
        partial(regression, 60, 4),
    ),
    "ExactReluClassifier": fitted(
        lambda b: learn.ExactReluClassifier(1, budget=b, verbose=0),
        partial(halves, 10, 2),
        partial(halves, 60, 4),
    ),
    "SegmentedRegressor": fitted(
        lambda b: learn.SegmentedRegressor(4, budget=b),
        partial(regression, 60, 1),
        partial(regression, 1_000, 1),
    ),
    "attack": on_rows(probes.attack),
    "attributions": explained(probes.attributions),
    "integrated_gradients": explained(probes.integrated_gradients),
    "fourier_mask": {"small": partial(masked, 6, 20), "large": partial(masked, 28, 2000)},
    "SymmetryLearner": fitted(
        lambda b: symmetry.SymmetryLearner(budget=b, random_state=0),
        lambda: (orbits(10, 4),),
        lambda: (orbits(60, 16),),
    ),
    "prove_invariance": {
        "small": lambda b: symmetry.prove_invariance(
            SMALL, symmetry.symmetric(2), box=Box.cube(2, -1.0, 1.0), budget=b
        ),
        "large": lambda b: symmetry.prove_invariance(
            LARGE, symmetry.cyclic(6), box=Box.cube(6, -1.0, 1.0), budget=b
        ),
    },
}
# Named by another case, or in need of a file.
COVERED = {"animate_training": "plot_training", "learn_orbit": "SymmetryLearner"}
COMMANDS = {"audit", "certify", "demo", "diff", "shrink", "verify"}  # those of a case; demo is an audit


@pytest.fixture(autouse=True)
def own_clock(monkeypatch):
    monkeypatch.setattr(time, "monotonic", time.process_time)


def held(function, budget):
    """Run a case; fail if it breaks the contract."""
    began = time.process_time()
    found = function(budget)
    spent = time.process_time() - began
    assert spent <= 1.1 * budget + 1.0, f"{spent:.1f} s of work with a budget of {budget:g} s"
    said = SHORT.search(str(found))
    assert not said or spent >= 0.8 * budget, f"{said.group()!r} after {spent:.2f} of {budget:g} s"


@pytest.mark.parametrize("name", CASES)
def test_a_short_budget_is_kept(name, monkeypatch):
    """By one thread, whose seconds are those of the clock, and by loops that need no compiler.

    Exact training may take machine code: its first product of cones takes 3 s as Python.
    """
    if name != "ExactReluRegressor":
        monkeypatch.setenv("PINDOWN_LOOPS", "plain")
    with threadpool_limits(1):
        CASES[name]["small"](0.05)  # what is imported at first use is no part of a budget
        held(CASES[name]["large"], 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("budget", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("name", CASES)
def test_budgets_are_kept_and_used(name, budget, size):
    CASES[name]["small"](0.05)
    held(CASES[name][size], budget)


def test_every_function_with_a_budget_has_a_case():
    """A new one fails here until it is in the table."""
    names = set()
    for part in pkgutil.walk_packages(pn.__path__, "pindown."):
        if part.ispkg and not any(word.startswith("_") for word in part.name.split(".")):
            room = importlib.import_module(part.name)
            for name in getattr(room, "__all__", ()):
                value = getattr(room, name)
                methods = vars(value).items() if inspect.isclass(value) else ()
                named = {f"{name}.{method}": f for method, f in methods if method[0] != "_"}
                names |= {key for key, f in ({name: value} | named).items() if has_budget(f)}
    known = {name.split(",")[0].split(" ")[0] for name in CASES} | NOT_SECONDS | set(COVERED)
    assert NOT_SECONDS <= names <= known, names ^ known
    assert {animate_training.__name__, learn_orbit.__name__} == set(COVERED)


def test_every_command_with_a_budget_is_that_of_a_case():
    callbacks = [command.callback for command in app.registered_commands]
    assert {f.__name__ for f in callbacks if has_budget(f)} == COMMANDS
    assert set(CASES) >= COMMANDS - {"demo"}


def has_budget(value):
    """Whether a function, or what a class is made of, takes a budget."""
    try:
        return callable(value) and "budget" in inspect.signature(value).parameters
    except (TypeError, ValueError):
        return False
