from itertools import pairwise

import numpy as np
import pytest

from pindown.box import Box
from pindown.equivalence.recovery._kinks import kinks_on_lines, observe
from pindown.equivalence.recovery._oracle import Oracle, StopAskingError
from pindown.geometry.slices.segment import along_segment
from pindown.network import ReluNetwork


def gaussian(widths, seed=0):
    rng = np.random.default_rng(seed)
    return ReluNetwork.from_layers(
        [(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairwise(widths)]
    )


def lines(oracle, n, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (2, n, oracle.d))


@pytest.mark.parametrize("seed", range(3))
def test_kinks_agree_with_the_folds_of_the_network(seed):
    net = gaussian((5, 8, 6, 1), seed)
    oracle = Oracle(net, Box.cube(5, -3, 3))
    assert oracle.calibrate(np.random.default_rng(0)) is None
    starts, ends = lines(oracle, 20, seed)
    before = oracle.n_queries
    found = kinks_on_lines(oracle, starts, ends)
    hits = total = wrong = 0
    for i in range(20):
        folds = along_segment(net, oracle.to_box(starts)[i], oracle.to_box(ends)[i])
        truth, mine = folds.t[folds.visible], found.t[found.line == i]
        gaps = np.abs(truth[:, None] - mine)
        wrong += int((gaps.min(axis=0, initial=1.0) > 1e-9).sum())
        hits += int((gaps.min(axis=1, initial=1.0) < 1e-9).sum())
        total += len(truth)
    assert wrong == 0
    assert hits >= 0.8 * total  # the rest is next to another kink, and is left out on purpose
    assert (oracle.n_queries - before) / total < 60


def test_normals_and_gradients_are_those_of_the_network():
    net = gaussian((4, 4, 3, 2), 1)
    box = Box.cube(4, -1, 1)
    oracle = Oracle(net, box)
    oracle.calibrate(np.random.default_rng(0))
    seen = observe(oracle, *lines(oracle, 10, 1))
    assert len(seen) > 10
    for i in range(len(seen)):
        gradients = [net.local_affine(seen.side[i, side])[0] / oracle.spread[:, None] for side in (0, 1)]
        np.testing.assert_allclose(seen.gradient[i], gradients, atol=1e-8)
        jump = gradients[1] - gradients[0]
        across = jump - np.outer(jump @ seen.normal[i], seen.normal[i])
        assert np.abs(across).max() < 1e-6 * np.abs(jump).max()


def test_queries_are_batched_and_counted():
    calls = []

    def query(X):
        calls.append(len(X))
        return np.abs(X[:, 0])

    oracle = Oracle(query, Box.cube(3, -1, 1))
    kinks_on_lines(oracle, *lines(oracle, 500, 0))
    assert sum(calls) == oracle.n_queries and len(calls) < 60


def test_no_kink_no_line():
    oracle = Oracle(lambda X: X @ [1.0, 2.0], Box.cube(2, -1, 1))
    assert len(kinks_on_lines(oracle, *lines(oracle, 5, 0))) == 0
    assert len(kinks_on_lines(oracle, np.empty((0, 2)), np.empty((0, 2)))) == 0


def test_asking_stops_at_the_limit():
    oracle = Oracle(lambda X: X[:, 0], Box.cube(2, -1, 1), max_queries=10)
    with pytest.raises(StopAskingError):
        oracle(np.zeros((11, 2)))
    assert oracle.n_queries == 0


@pytest.mark.parametrize(("dtype", "low", "high"), [(np.float64, 0.0, 1e-13), (np.float32, 1e-9, 1e-6)])
def test_noise_of_the_query_is_measured(dtype, low, high):
    net = gaussian((3, 4, 1))
    oracle = Oracle(lambda X: net(X).astype(dtype), Box.cube(3, -3, 3))
    assert oracle.calibrate(np.random.default_rng(0)) is None
    assert low < oracle.noise < high
