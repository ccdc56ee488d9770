"""Graphs that branch at random: no bound of any kind is crossed, no verdict contradicted by a sample."""

import numpy as np
import pytest

from pindown.model.builder import Builder
from pindown.model.operations.dense import Add, Dense
from pindown.model.operations.gated import Gelu
from pindown.model.operations.moves import Concat, Slice
from pindown.model.operations.operation import Interval
from pindown.model.operations.piecewise_linear import Abs, LeakyRelu
from pindown.model.operations.products import Multiply
from pindown.model.operations.relu import Relu
from pindown.model.operations.smooth import Sigmoid, Tanh
from pindown.relaxation.forward_bounds import tighten_forwards
from pindown.relaxation.model_bounds import bounds, tighten
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification import Property, verify

BENDS = (Relu(), Relu(), Relu(), LeakyRelu(0.2), Abs(), Tanh(), Sigmoid(), Gelu())


def random_graph(rng):
    """Return a model in which every node reads any one or two tensors that were made before."""
    d = int(rng.integers(1, 5))
    graph = Builder((1, d))
    made, widths = [graph.input], [d]

    def keep(tensor, width):
        made.append(tensor)
        widths.append(width)

    for _ in range(int(rng.integers(4, 14))):
        at = int(rng.integers(max(0, len(made) - 6), len(made)))
        what = rng.choice(["dense", "bend", "two", "concat", "slice"], p=[0.25, 0.35, 0.3, 0.05, 0.05])
        if what == "dense":
            width = int(rng.integers(1, 5))
            weight = rng.normal(size=(width, widths[at])) / np.sqrt(widths[at])
            keep(graph.add(Dense(weight, rng.normal(size=width)), made[at]), width)
        elif what == "bend":
            keep(graph.add(BENDS[rng.integers(len(BENDS))], made[at]), widths[at])
        elif what == "two":
            alike = [i for i, width in enumerate(widths) if width == widths[at]]
            other = int(rng.choice(alike))
            both = Multiply() if rng.random() < 0.15 else Add((1, int(rng.choice([1, -1]))))
            keep(graph.add(both, made[at], made[other]), widths[at])
        elif what == "concat":
            other = int(rng.integers(len(made)))
            keep(graph.add(Concat(1), made[at], made[other]), widths[at] + widths[other])
        elif widths[at] > 1:
            keep(graph.add(Slice((slice(0, 1), slice(0, 1))), made[at]), 1)
    # The last few tensors side by side, so that what has been made is read.
    last = range(max(1, len(made) - 3), len(made)) or [0]
    whole = graph.add(Concat(1), *(made[i] for i in last)) if len(last) > 1 else made[last[0]]
    weight = rng.normal(size=(2, sum(widths[i] for i in last)))
    return graph.model(graph.add(Dense(weight, rng.normal(size=2)), whole), input_shape=(d,))


def within(interval, values, box):
    low, high = (np.asarray(end[box]).ravel() for end in interval)
    values = values.reshape(len(values), -1)
    slack = 1e-9 * (1.0 + np.abs(values))
    return (low <= values + slack).all() and (values - slack <= high).all()


def attacked(seed):
    """Bound one graph in every way, ask for a property near its range, and look at samples."""
    rng = np.random.default_rng(seed)
    model = random_graph(rng)
    middle, half = rng.normal(size=(2, model.in_features)), 10.0 ** rng.uniform(-2, 0.5, (2, 1))
    lower, upper = middle - half, middle + half
    ways = {"forwards": tighten_forwards, "linear": tighten, "optimised": lambda r: tighten(r, steps=4)}
    shares = np.concatenate([rng.random((300, 1, 1)), rng.integers(0, 2, (100, 1, 1))])
    shares = np.where(rng.random((400, 1, model.in_features)) < 0.5, shares, rng.random(shares.shape))
    points = lower + shares * (upper - lower)
    tensors = [list(model.walk(points[:, box])) for box in range(2)]
    for name, way in ways.items():
        relaxed = RelaxedModel.by_intervals(model, Interval(lower, upper))
        way(relaxed)
        for box in range(2):
            for i, values in enumerate(tensors[box]):
                assert within(relaxed.values[i], np.asarray(values), box), (seed, name, i)
    rows = rng.normal(size=(2, 2))
    for method in ("interval", "linear", "optimised"):
        found = Interval(*bounds(model, lower, upper, rows, method))
        for box in range(2):
            outputs = np.asarray(tensors[box][-1]).reshape(400, -1) @ rows.T
            assert within(found, outputs, box), (seed, method)
    outputs = np.asarray(tensors[0][-1]).reshape(400, -1) @ rows[0]
    limit = outputs.max() + rng.choice([-0.05, 0.02, 0.2]) * (np.ptp(outputs) + 1e-3)
    answer = verify(model, Property.box(lower[0], upper[0], rows[:1], [limit]), budget=1.0, n_jobs=1)
    if answer.verdict == "holds":
        assert (outputs <= limit + 1e-9 * (1.0 + abs(limit))).all(), seed
    elif answer.verdict == "violated":
        assert float(model(answer.witness) @ rows[0]) >= limit - 1e-9 * (1.0 + abs(limit)), seed
    return answer.verdict


def test_nothing_is_crossed():
    verdicts = [attacked(seed) for seed in range(40)]
    assert verdicts.count("holds") > 10 and verdicts.count("violated") > 5


@pytest.mark.slow
def test_nothing_is_crossed_in_a_long_run():
    for seed in range(1_000, 4_000):
        attacked(seed)
