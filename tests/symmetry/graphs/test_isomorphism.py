"""Isomorphism: the course's example, networkx as an oracle, and what colours cannot tell apart."""

import itertools

import networkx
import numpy as np
import pytest

from pindown.symmetry.graphs import (
    Graph,
    block_diagonal,
    colour_refinement,
    find_isomorphism,
    from_edges,
    from_networkx,
    isomorphisms,
)
from tests.symmetry.graphs.test_data import some_graph

FIRST = np.array([[0, 1, 0, 0, 0], [1, 0, 1, 1, 1], [0, 1, 0, 1, 0], [0, 1, 1, 0, 1], [0, 1, 0, 1, 0]])
SECOND = np.array([[0, 1, 1, 0, 0], [1, 0, 1, 1, 1], [1, 1, 0, 1, 0], [0, 1, 1, 0, 0], [0, 1, 0, 0, 0]])


def cycle(n):
    return from_edges(n, [(i, (i + 1) % n) for i in range(n)])


def test_the_example_has_exactly_two_isomorphisms():
    found = set(isomorphisms(FIRST, SECOND))
    assert found == {(4, 1, 0, 2, 3), (4, 1, 3, 2, 0)}
    by_hand = {
        perm
        for perm in itertools.permutations(range(5))
        if all(SECOND[perm[i], perm[j]] == FIRST[i, j] for i in range(5) for j in range(5))
    }
    assert found == by_hand


@pytest.mark.parametrize("directed", [False, True])
def test_renamed_graphs_are_found_and_features_count(directed):
    rng = np.random.default_rng(0)
    for seed in range(10):
        graph = some_graph(7, directed=directed, seed=seed)
        perm = rng.permutation(7)
        other = graph.relabel(perm)
        found = find_isomorphism(graph, other)
        assert np.array_equal(graph.relabel(found).A, other.A)
        assert np.array_equal(graph.relabel(found).X, other.X)
        assert find_isomorphism(graph, Graph(other.A, other.X + 1, other.Y, other.g)) is None
        assert find_isomorphism(graph, Graph(other.A, other.X, other.Y, other.g + 1)) is None
        bare, renamed = Graph(graph.A), Graph(other.A)
        assert find_isomorphism(bare, renamed) is not None


def test_agrees_with_networkx_on_small_regular_and_random_graphs():
    rng = np.random.default_rng(1)
    answers = []
    for trial in range(60):
        a, b = (networkx.gnm_random_graph(6, 7, seed=int(rng.integers(1e6))) for _ in range(2))
        if trial % 3 == 0:
            a, b = (networkx.random_regular_graph(3, 8, seed=int(rng.integers(1e6))) for _ in range(2))
        ours = find_isomorphism(from_networkx(a), from_networkx(b)) is not None
        answers.append(ours)
        assert ours == networkx.is_isomorphic(a, b)
    assert 0 < sum(answers) < len(answers)


def test_automorphisms_of_cycles_and_complete_graphs_are_counted():
    assert len(list(isomorphisms(cycle(6), cycle(6)))) == 12
    everyone = 1 - np.eye(5)
    assert len(list(isomorphisms(everyone, everyone))) == 120


def test_colours_cannot_tell_a_hexagon_from_two_triangles_but_the_search_can():
    hexagon, triangles = cycle(6), block_diagonal([cycle(3), cycle(3)])[0]
    assert set(colour_refinement(hexagon)) == set(colour_refinement(triangles)) == {0}
    assert find_isomorphism(hexagon, triangles) is None


def test_colours_do_not_depend_on_names_and_are_stable():
    rng = np.random.default_rng(0)
    for seed in range(5):
        A = Graph(some_graph(9, seed=seed).A)
        perm = rng.permutation(9)
        colours = colour_refinement(A)
        assert np.array_equal(colour_refinement(A.relabel(perm))[perm], colours)
        for shade in set(colours):  # equal colours see equal numbers of every colour
            seen = A.A[colours == shade] @ np.eye(9)[colours]
            assert (seen == seen[0]).all()


def test_strongly_regular_graphs_are_told_apart():
    """The Shrikhande graph and the 4 x 4 rook's graph agree in every count of neighbours."""
    rook = np.zeros((16, 16))
    shrikhande = np.zeros((16, 16))
    for i, j in itertools.product(range(16), repeat=2):
        (a, b), (c, d) = divmod(i, 4), divmod(j, 4)
        rook[i, j] = (a == c) != (b == d)
        shrikhande[i, j] = ((c - a) % 4, (d - b) % 4) in {(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)}
    assert find_isomorphism(rook, shrikhande) is None
    assert find_isomorphism(rook, rook[::-1, ::-1]) is not None


def test_weights_directions_loops_and_sizes_matter():
    assert find_isomorphism([[0, 2], [2, 0]], [[0, 1], [1, 0]]) is None
    assert find_isomorphism([[0, 1], [0, 0]], [[0, 0], [1, 0]]) == (1, 0)
    path = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    out = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert find_isomorphism(path, out) is None
    assert find_isomorphism([[1, 0], [0, 0]], [[0, 0], [0, 0]]) is None
    assert find_isomorphism([[1, 0], [0, 0]], [[0, 0], [0, 1]]) == (1, 0)
    assert find_isomorphism(np.zeros((2, 2)), np.zeros((3, 3))) is None
    assert find_isomorphism([[0.0]], [[0.0]]) == (0,)


def test_colours_see_who_sends_and_who_receives():
    colours = colour_refinement(from_edges(3, [(0, 1)], directed=True))
    assert len(set(colours.tolist())) == 3  # a sender, a receiver, and one that does neither
