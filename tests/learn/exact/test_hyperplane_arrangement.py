from math import comb

import numpy as np
import pytest

from pindown.learn.exact import count_general, dichotomies
from tests.learn.exact.naive import sides_by_linear_programs


def _grid(*counts):
    axes = [np.linspace(-1, 1, n) for n in counts]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))


def _rows(masks):
    return sorted(map(tuple, masks.astype(int).tolist()))


@pytest.mark.parametrize(("n", "d"), [(2, 1), (6, 1), (40, 1), (5, 2), (30, 2), (12, 3), (9, 4), (8, 6)])
def test_general_position_has_the_number_of_cells_of_the_formula(n, d):
    X = np.random.default_rng(n + d).uniform(-1, 1, (n, d))
    graph = dichotomies(X)
    assert len(graph) == count_general(n, d) == len(set(map(bytes, graph.sides)))


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_linear_programs_in_general_position(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(2, 7)), int(rng.integers(1, 3))))
    if len(X) > X.shape[1]:
        assert _rows(dichotomies(X).masks()) == _rows(sides_by_linear_programs(X))


@pytest.mark.parametrize(
    "X",
    [
        _grid(3, 3),
        _grid(2, 2, 2),
        _grid(5, 2),
        np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [0.0, 1.0], [0.5, 0.5]]),
        np.array([[0.0, 0.0, 0.0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [0.5, 0.5, 0]]),
    ],
    ids=["square", "cube", "two rows", "collinear", "coplanar"],
)
def test_agrees_with_linear_programs_in_special_position(X):
    assert _rows(dichotomies(X).masks()) == _rows(sides_by_linear_programs(X))


@pytest.mark.parametrize(
    "X", [_grid(4, 4), np.random.default_rng(0).normal(size=(25, 2)), _grid(2, 3, 2)]
)
def test_graph_facts(X):
    graph = dichotomies(X)
    masks = graph.masks()
    lifted = np.column_stack([X, np.ones(len(X))])
    assert not masks[0].any()
    for cell in range(1, len(graph)):
        gained = masks[cell] & ~masks[graph.parent[cell]]
        assert graph.parent[cell] < cell
        assert gained.nonzero()[0].tolist() == [graph.added[cell]]
    assert ((graph.inside @ lifted.T > 0) == masks).all()
    names = {mask.tobytes(): cell for cell, mask in enumerate(masks)}
    for cell in range(len(graph)):
        facets = slice(graph.facet_start[cell], graph.facet_start[cell + 1])
        expected = {}
        for point in range(len(X)):
            flipped = masks[cell].copy()
            flipped[point] ^= True
            if flipped.tobytes() in names:
                expected[point] = names[flipped.tobytes()]
        assert dict(zip(graph.facets[facets], graph.across[facets], strict=True)) == expected


def test_printed_number_of_partitions_is_too_small():
    """2 C(D, n) is printed; three points of the plane have 8 divisions, four have 14."""
    rng = np.random.default_rng(0)
    for n_points, count in ((3, 8), (4, 14)):
        X = rng.normal(size=(n_points, 2))
        assert len(sides_by_linear_programs(X)) == count == len(dichotomies(X))
        assert count > 2 * comb(n_points, 2)
    for n_points in range(2, 40):  # what the complexity needs still holds
        for dim in (2, 3, 4):
            assert count_general(n_points, dim) <= n_points**dim
