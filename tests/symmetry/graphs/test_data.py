"""Graphs as arrays: renaming, batches, and the way to networkx and back."""

from types import SimpleNamespace

import networkx
import numpy as np
import pytest

from pindown.symmetry.axioms import permutation_matrices
from pindown.symmetry.graphs import (
    Graph,
    block_diagonal,
    from_edges,
    from_networkx,
    from_pyg,
    padded,
    relabel,
)
from pindown.symmetry.graphs import data as module


def some_graph(n=5, *, directed=False, seed=0):
    rng = np.random.default_rng(seed)
    A = (rng.random((n, n)) < 0.4).astype(float)
    Y = rng.standard_normal((n, n, 2)) * A[:, :, None]
    if not directed:
        A, Y = np.triu(A, 1), Y * np.triu(A, 1)[:, :, None]
        A, Y = A + A.T, Y + np.swapaxes(Y, 0, 1)
    return Graph(A, rng.standard_normal((n, 3)), Y, rng.standard_normal(2))


@pytest.mark.parametrize("directed", [False, True])
def test_renaming_is_conjugation_by_a_permutation_matrix(directed):
    graph = some_graph(directed=directed)
    perm = np.array([2, 0, 3, 1, 4])
    P = permutation_matrices(perm[None])[0]
    moved = graph.relabel(perm)
    assert np.array_equal(moved.A, P @ graph.A @ P.T) and np.array_equal(moved.X, P @ graph.X)
    for e in range(2):
        assert np.allclose(moved.Y[:, :, e], P @ graph.Y[:, :, e] @ P.T)
    assert np.array_equal(moved.g, graph.g)
    back = moved.relabel(np.argsort(perm))
    assert np.array_equal(back.A, graph.A) and np.array_equal(back.Y, graph.Y)
    A, X = relabel(graph.A, graph.X, perm)
    assert np.array_equal(A, moved.A) and np.array_equal(X, moved.X)


@pytest.mark.parametrize("directed", [False, True])
def test_networkx_and_back(directed):
    graph = some_graph(directed=directed)
    assert graph.undirected is not directed
    there = graph.to_networkx()
    assert there.number_of_edges() == graph.n_edges and there.is_directed() is directed
    back = from_networkx(there)
    for name in ("A", "X", "Y", "g"):
        assert np.array_equal(getattr(back, name), getattr(graph, name))


def test_edges_are_listed_from_sender_to_receiver():
    graph = from_edges(3, [(0, 1), (1, 2)], directed=True)
    assert graph.edge_index().tolist() == [[0, 1], [1, 2]]
    assert not graph.undirected and graph.n_edges == 2
    looped = from_edges(3, [(0, 0), (0, 1), (1, 2), (2, 2)])
    assert looped.undirected and looped.n_edges == looped.to_networkx().number_of_edges() == 4
    theirs = networkx.to_numpy_array(networkx.DiGraph([(0, 1), (1, 2)]))
    assert np.array_equal(graph.A, theirs.T)


def test_batches_hold_what_was_put_in():
    graphs = [from_edges(2, [(0, 1)]), from_edges(4, [(0, 3), (1, 2)]), from_edges(1, [])]
    batch = padded(graphs)
    union, member = block_diagonal(graphs)
    assert batch.A.shape == (3, 4, 4) and batch.mask.sum(axis=1).tolist() == [2, 4, 1]
    assert member.tolist() == [0, 0, 1, 1, 1, 1, 2]
    for i, graph in enumerate(graphs):
        assert np.array_equal(batch.A[i][np.ix_(batch.mask[i], batch.mask[i])], graph.A)
        assert np.array_equal(union.A[np.ix_(member == i, member == i)], graph.A)
    assert union.A.sum() == sum(graph.A.sum() for graph in graphs) == batch.A.sum()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 1]],), "square"),
        (([],), "square"),
        (([[np.nan]],), "finite"),
        (([[0.0]], [[1.0], [2.0]]), "row for each"),
        (([[0.0]], [[1.0]], [[1.0]]), "Y must have shape"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Graph(*arguments)


def test_bad_names_and_batches_are_refused():
    graph = from_edges(3, [(0, 1)])
    for perm in ([0, 0, 1], [0, 1], [0.0, 1.0, 2.0]):
        with pytest.raises(ValueError, match="permutation of 0"):
            graph.relabel(perm)
    with pytest.raises(ValueError, match="join nodes"):
        from_edges(2, [(0, 2)])
    with pytest.raises(ValueError, match="one number of node features"):
        padded([graph, Graph([[0.0]], [[1.0, 2.0]])])
    with pytest.raises(ValueError, match="one number of node features"):
        padded([])


@pytest.mark.parametrize("directed", [False, True])
def test_the_way_to_pytorch_geometric_and_back(directed, monkeypatch):
    """With the library where it is installed, else with what its Data keeps of what it is given."""
    pytest.importorskip("torch")
    try:
        import torch_geometric  # noqa: F401
    except ImportError:
        monkeypatch.setattr(module, "_pyg", lambda: SimpleNamespace(Data=SimpleNamespace))
    graph = some_graph(directed=directed, seed=3)
    made = graph.to_pyg()
    source, target = np.asarray(made.edge_index)
    assert len(source) == np.count_nonzero(graph.A) and np.asarray(made.edge_weight).all()
    for u, v, features in zip(source, target, np.asarray(made.edge_attr), strict=True):
        assert graph.A[v, u] and np.array_equal(features, graph.Y[v, u])  # v listens to u
    back = from_pyg(made)
    for name in ("A", "X", "Y", "g"):
        np.testing.assert_array_equal(getattr(back, name), getattr(graph, name))
    plain = from_pyg(Graph(graph.A).to_pyg())
    assert plain.Y is None and plain.g is None and np.array_equal(plain.A, graph.A)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (SimpleNamespace(), "edge_index"),
        (SimpleNamespace(edge_index=np.zeros((3, 2), int), num_nodes=2), r"\(2, m\)"),
        (SimpleNamespace(edge_index=np.array([[0], [5]]), num_nodes=2), "nodes 0 to 1"),
        (SimpleNamespace(edge_index=np.array([[0, 0], [1, 1]]), num_nodes=2), "several times"),
    ],
)
def test_what_is_no_graph_of_pytorch_geometric_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        from_pyg(given)


def test_without_pytorch_geometric_the_message_says_what_to_do(monkeypatch):
    import sys

    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    monkeypatch.setitem(sys.modules, "torch_geometric.data", None)
    with pytest.raises(ImportError, match="pip install torch_geometric"):
        Graph([[0, 1], [1, 0]]).to_pyg()
