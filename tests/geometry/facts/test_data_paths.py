"""Pieces between inputs: against dense sampling of slopes."""

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry.facts.data_cells import pieces_between
from tests.geometry.oracles import reference_network


@pytest.mark.parametrize("d", [1, 2, 20])
def test_pieces_by_slopes_on_a_fine_grid(d):
    net, X = reference_network((d, 6, 6, 2), 0), np.random.default_rng(0).standard_normal((30, d))
    found = pieces_between(net, X, n_pairs=20, seed=3)
    t = np.linspace(0, 1, 20_001)
    for (i, j), pieces, cells in zip(found.pairs, found.pieces, found.cells, strict=True):
        line = X[i] + t[:, None] * (X[j] - X[i])
        patterns = net.pattern(line)
        seen = 1 + int(np.any(patterns[1:] != patterns[:-1], axis=1).sum())
        assert i != j and seen <= cells <= seen + 1 and pieces <= cells  # the grid may miss a short one
    np.testing.assert_allclose(
        found.lengths, np.linalg.norm(np.diff(X[found.pairs], axis=1)[:, 0], axis=1)
    )


def test_classes_and_estimate():
    net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), ["left", "left", "right", "right"]
    found = pieces_between(net, X, y, n_pairs=400)
    assert found.mean_same == 1 and found.mean_other == 2
    assert found.mean == pytest.approx(1 + np.mean(~found.same_class))
    assert abs(found.mean - 5 / 3) < 4 * found.standard_error  # 8 of the 12 ordered pairs differ
    assert repr(found).endswith("1 for same classes; 2 for different classes)")
    assert pieces_between(net, X, n_pairs=1).standard_error == np.inf
    assert pieces_between(net, X, ["a"] * 4).mean_other is None


def test_same_seed_same_pairs():
    net, X = reference_network((2, 6, 1), 0), np.random.default_rng(0).standard_normal((9, 2))
    first, second = (pieces_between(net, X, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.pairs, second.pairs)
    assert np.all(first.pairs[:, 0] != first.pairs[:, 1]) and set(first.pairs.ravel()) == set(range(9))


def test_bad_input():
    net = reference_network((2, 4, 1), 0)
    with pytest.raises(ValueError, match="at least two inputs; got 1"):
        pieces_between(net, [[0.0, 1.0]])
    with pytest.raises(ValueError, match="n_pairs must be an integer of at least 1; got 0"):
        pieces_between(net, np.zeros((3, 2)), n_pairs=0)
    with pytest.raises(ValueError, match="one class for each"):
        pieces_between(net, np.zeros((3, 2)), [1])
