"""Cells around data: against patterns, exact arithmetic and the complex."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pindown import ReluNetwork
from pindown.geometry import Box
from pindown.geometry.complex.polyhedral import polyhedral_complex
from pindown.geometry.exact.complex import exact_complex
from pindown.geometry.facts.data_cells import cell_patterns, data_cells, pieces_between
from tests.geometry.oracles import KINDS, cube, degenerate_network, random_network, reference_network
from tests.geometry.partial import first_cells


@pytest.mark.parametrize("d", [1, 3, 50])
def test_groups_are_equal_patterns(d):
    rng = np.random.default_rng(d)
    net, X = reference_network((d, 10, 10, 3), 0), rng.standard_normal((300, d))
    y = rng.integers(0, 3, 300)
    found = data_cells(net, X, y)
    truth = {}
    for i, pattern in enumerate(map(bytes, net.pattern(X).astype(np.uint8))):
        truth.setdefault(pattern, []).append(i)
    assert found.n_cells == len(truth) and found.counts.sum() == 300
    assert {frozenset(group) for group in truth.values()} == {
        frozenset(np.flatnonzero(found.cell_of == c)) for c in range(found.n_cells)
    }
    assert np.all(np.diff(found.counts) <= 0)
    assert found.cells_per_class == {
        c: len({key for key, rows in truth.items() if c in y[rows]}) for c in range(3)
    }
    assert found.n_mixed == sum(len(set(y[rows])) > 1 for rows in truth.values())
    assert found.n_alone == sum(len(rows) == 1 for rows in truth.values())
    np.testing.assert_array_equal(found.patterns[found.cell_of], net.pattern(X))
    assert found.table.sum() == 300 and found.volume_share is None and found.n_pieces is None


def test_fold_distances_by_walking_there():
    rng = np.random.default_rng(0)
    net, X = reference_network((3, 8, 8, 1), 0), rng.standard_normal((40, 3))
    y = np.arange(40) % 2
    found = data_cells(net, X, y)
    far = found.fold_distances.distance
    u = rng.standard_normal((40, 500, 3))
    u /= np.linalg.norm(u, axis=2, keepdims=True)
    for x, r, steps in zip(X, far, u, strict=True):
        patterns = net.pattern(x + 0.999 * r * steps)
        assert (
            np.all(patterns == net.pattern(x))
            and len(np.unique(net.pattern(x + 1.5 * r * steps), axis=0)) > 1
        )
    assert found.fold_distance_per_class == {
        0: pytest.approx(np.median(far[::2])),
        1: pytest.approx(np.median(far[1::2])),
    }


@pytest.mark.parametrize("d", [1, 2, 3])
def test_volume_share_and_pieces_with_a_complex(d):
    rng = np.random.default_rng(d)
    net, box = reference_network((d, 8, 8, 1), 0), cube(d)
    cx = polyhedral_complex(net, box)
    X = box.sample(30, rng)
    found = data_cells(cx, X)
    assert np.all(found.ids >= 0)
    np.testing.assert_array_equal(cx.patterns[found.ids], found.patterns)
    visited = {tuple(p) for p in found.patterns}
    share = np.mean([tuple(p) in visited for p in net.pattern(box.sample(20_000, rng))])
    assert found.volume_share == pytest.approx(share, abs=4 * np.sqrt(0.25 / 20_000))
    assert found.n_pieces == len({int(cx.pieces[i]) for i in found.ids})
    assert "of the volume of all" in repr(found) and found.exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [2, 3])
def test_inputs_on_folds_and_corners_get_a_cell_that_contains_them(kind, d):
    net, box = degenerate_network(kind, d, np.random.default_rng(d), widths=(6, 5)), cube(d)
    cx, cells = polyhedral_complex(net, box), exact_complex(net, box)
    rng = np.random.default_rng(0)
    inside = box.sample(20, rng)
    corners = cx.vertices[rng.choice(len(cx.vertices), 15)]
    edges = cx.vertices[cx.edges[rng.choice(len(cx.edges), 15)]].mean(axis=1)
    X = np.clip(np.vstack([inside, corners, edges, np.zeros((1, d))]), -1, 1)
    found = data_cells(cx, X)
    known = {pattern.tobytes() for pattern in cells.patterns}
    assert all(pattern.tobytes() in known for pattern in found.patterns)
    assert np.all(found.ids >= 0)
    values = np.einsum("nkd,nd->nk", cx.A[found.ids[found.cell_of]], X) + cx.c[found.ids[found.cell_of]]
    np.testing.assert_allclose(values, net(X), atol=1e-9)


def test_a_fold_is_noticed():
    net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 0.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    patterns, on_folds = cell_patterns(net, np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]]))
    # The second unit is zero everywhere: it is on, and no fold.
    assert on_folds == 1 and patterns.tolist() == [[True, True], [True, True], [False, True]]


def test_exactly_on_a_fold_that_rounding_hides():
    # 0.1 * 3 - 0.3 is 5.6e-17 in float64, below what can be told from 0.
    net = ReluNetwork.from_layers([([[3.0], [1.0]], [-0.3, 1]), ([[1.0, 1.0]], [0])])
    assert net.as_fractions().trace([Fraction(0.1)])[0][0] != 0
    assert data_cells(net, [[0.1], [0.2]]).n_on_folds == 1


def test_one_input_no_units_and_prints():
    net = ReluNetwork.from_layers([([[1.0, 2.0]], [0])])
    found = data_cells(net, [[1.0, 2.0]], ["a"])
    assert repr(found) == "DataCells(1 input in 1 cell, at most 1 in one; 0 with several of 1 classes)"
    assert found.fold_distances.distance.tolist() == [np.inf]


def test_partial_complexes_say_so():
    whole = polyhedral_complex(random_network(np.random.default_rng(0), 2, (10, 10)), (-1, 1))
    part = first_cells(whole, 3)
    found = data_cells(part, cube(2).sample(200, np.random.default_rng(0)))
    assert not found.exact and "or more" in repr(found) and np.any(found.ids == -1)


def test_bad_input():
    net = reference_network((2, 4, 1), 0)
    with pytest.raises(ValueError, match="at least one input"):
        data_cells(net, np.zeros((0, 2)))
    with pytest.raises(ValueError, match="one class for each of the 3"):
        data_cells(net, np.zeros((3, 2)), [0, 1])
    with pytest.raises(ValueError, match="1 of 2 inputs lie outside the box"):
        data_cells(polyhedral_complex(net, Box([0, 0], [1, 1])), [[0.5, 0.5], [2, 0]])
    with pytest.raises(TypeError, match="got list"):
        data_cells([], [[0.0]])
    with pytest.raises(ValueError, match="must be finite"):
        data_cells(net, [[np.nan, 0.0]])


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


def test_bad_pairs():
    net = reference_network((2, 4, 1), 0)
    with pytest.raises(ValueError, match="at least two inputs; got 1"):
        pieces_between(net, [[0.0, 1.0]])
    with pytest.raises(ValueError, match="n_pairs must be an integer of at least 1; got 0"):
        pieces_between(net, np.zeros((3, 2)), n_pairs=0)
    with pytest.raises(ValueError, match="one class for each"):
        pieces_between(net, np.zeros((3, 2)), [1])
