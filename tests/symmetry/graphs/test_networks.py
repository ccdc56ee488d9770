"""Graph layers: contracts, inclusions of the three kinds, lonely nodes, and the limit of colours."""

import networkx
import numpy as np
import pytest
import torch

from pindown.symmetry.graphs import (
    EdgeHead,
    Graph,
    GraphAttention,
    GraphConvolution,
    GraphNetwork,
    MessagePassing,
    block_diagonal,
    from_edges,
    from_networkx,
    graph_contract_error,
    padded,
)
from pindown.symmetry.graphs.networks import _coefficients
from tests.symmetry.graphs.test_data import some_graph
from tests.symmetry.graphs.test_isomorphism import cycle

torch.set_num_threads(1)
KINDS = ("convolution", "attention", "messages")


def tensors(*arrays):
    return [torch.as_tensor(array) for array in arrays]


def made(build, seed=0):
    torch.manual_seed(seed)
    return build().double()


def on_arrays(module):
    return lambda A, X, *rest: module(*tensors(A, X))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", ["graph", "node", "edge"])
@pytest.mark.parametrize("directed", [False, True])
def test_networks_keep_the_contract_of_their_level(kind, level, directed):
    net = made(lambda: GraphNetwork([3, 8, 8, 2], level, kind))
    contract = graph_contract_error(on_arrays(net), level, some_graph(6, directed=directed), 10)
    assert float(contract) < 1e-10 and contract.scale > 1e-3


@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
@pytest.mark.parametrize("layer", [GraphConvolution, MessagePassing])
def test_every_aggregation_keeps_the_contract(layer, aggregate):
    net = made(lambda: layer(3, 4, aggregate))
    assert float(graph_contract_error(on_arrays(net), "node", some_graph(6))) < 1e-10


def test_edge_features_keep_the_contract():
    net = made(lambda: MessagePassing(3, 4, c_edge=2))
    fn = lambda A, X, Y, g: net(*tensors(A, X, Y))  # noqa: E731
    graph = some_graph(6)
    assert float(graph_contract_error(fn, "node", graph)) < 1e-10
    other = Graph(graph.A, graph.X, 2 * graph.Y, graph.g)
    assert not torch.allclose(fn(graph.A, graph.X, graph.Y, 0), fn(other.A, other.X, other.Y, 0))


def test_a_model_that_reads_nodes_in_order_breaks_the_contract():
    dense = made(lambda: torch.nn.Linear(6 * 6 + 6 * 3, 1))
    flat = lambda A, X, *rest: dense(torch.cat([t.ravel() for t in tensors(A, X)]))  # noqa: E731
    contract = graph_contract_error(flat, "graph", some_graph(6))
    assert contract.error > 0.05 and "change by up to" in str(contract)
    with pytest.raises(ValueError, match="level must be"):
        graph_contract_error(flat, "city", some_graph(6))
    with pytest.raises(ValueError, match="start with 1 axes"):
        graph_contract_error(flat, "node", some_graph(6))
    with pytest.raises(ValueError, match="n_perms"):
        graph_contract_error(flat, "graph", some_graph(6), 0)


def copied(target, source, *names):
    for name in names:
        getattr(target, name).load_state_dict(getattr(source, name).state_dict())


def test_attention_with_equal_scores_is_the_mean_convolution():
    attention, mean = made(lambda: GraphAttention(3, 4)), made(lambda: GraphConvolution(3, 4, "mean"), 1)
    torch.nn.init.zeros_(attention.score.weight)
    copied(mean, attention, "psi", "own", "around")
    A, X = tensors(some_graph(7).A, some_graph(7).X)
    assert torch.allclose(attention(A, X), mean(A, X), atol=1e-12)
    regular = from_networkx(networkx.random_regular_graph(3, 8, seed=0))
    total = made(lambda: GraphConvolution(3, 4, "sum"), 1)
    copied(total, attention, "psi", "own", "around")
    A, X = tensors(regular.A, np.random.default_rng(0).standard_normal((8, 3)))
    assert torch.allclose(attention(A, X), total(A, X), atol=1e-12)


def test_attention_cannot_be_every_convolution():
    """Its weights sum to one; those of a convolution on a star do not, nor do features show degrees."""
    star = from_edges(5, [(0, i) for i in range(1, 5)])
    A, X = tensors(star.A, star.X)
    convolution = made(lambda: GraphConvolution(1, 1))
    assert float(_coefficients(A != 0)[0].sum()) == pytest.approx(2.0)
    attention = made(lambda: GraphAttention(1, 1))
    assert torch.allclose(attention.weights(A, X).sum(-1), torch.ones(5, dtype=torch.float64))
    answers = attention(A, X).detach().ravel()
    assert float(answers.max() - answers.min()) < 1e-12  # equal features: all nodes look alike to it
    told = convolution(A, X).detach().ravel()
    assert float(told.max() - told.min()) > 1e-3


def test_message_passing_contains_attention():
    """Messages exp(score) psi and exp(score), summed; dividing one by the other is attention."""
    attention = made(lambda: GraphAttention(3, 4))
    A, X = tensors(some_graph(7).A, some_graph(7).X)
    with torch.no_grad():
        mixed = torch.tanh(attention.query(X)[:, None] + attention.key(X)[None])
        raw = torch.exp(attention.score(mixed)) * (A != 0)[:, :, None]
        messages = torch.cat([raw * attention.psi(X)[None], raw], -1).sum(1)
        ratio = messages[:, :4] / messages[:, 4:].clamp(min=1e-300)
        assert torch.allclose(attention.own(X) + attention.around(ratio), attention(A, X), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_lonely_nodes_get_finite_answers_and_gradients(kind):
    net = made(lambda: GraphNetwork([2, 4, 4, 1], "graph", kind))
    A = torch.zeros(3, 3, dtype=torch.float64)
    A[0, 1] = A[1, 0] = 1.0
    X = torch.as_tensor(np.random.default_rng(0).standard_normal((3, 2))).requires_grad_()
    net(A, X).sum().backward()
    assert torch.isfinite(X.grad).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in net.parameters())
    layer = net.hidden[0]
    assert torch.allclose(layer(A, X)[2], layer.own(X)[2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pool", ["mean", "sum", "max"])
def test_padded_and_block_diagonal_batches_agree_with_single_graphs(kind, pool):
    graphs = [Graph(some_graph(n, seed=n).A, some_graph(n, seed=n).X) for n in (3, 6, 4)]
    net = made(lambda: GraphNetwork([3, 5, 2], "graph", kind, pool))
    single = torch.stack([net(*tensors(graph.A, graph.X)) for graph in graphs])
    batch = padded(graphs)
    assert torch.allclose(net(*tensors(batch.A, batch.X, batch.mask)), single, atol=1e-12)
    nodes = made(lambda: GraphNetwork([3, 5, 2], "node", kind))
    union, member = block_diagonal(graphs)
    together = nodes(*tensors(union.A, union.X))
    for i, graph in enumerate(graphs):
        assert torch.allclose(together[member == i], nodes(*tensors(graph.A, graph.X)), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_layer_tells_a_hexagon_from_two_triangles(kind):
    """Equal colours, equal answers: a known limit, here as a fact that must not change by accident."""
    net = made(lambda: GraphNetwork([1, 8, 8, 8, 3], "graph", kind, "sum"))
    hexagon, triangles = cycle(6), block_diagonal([cycle(3), cycle(3)])[0]
    first, second = (net(*tensors(graph.A, graph.X)) for graph in (hexagon, triangles))
    assert torch.allclose(first, second, atol=1e-12)
    path = net(*tensors(from_edges(6, [(i, i + 1) for i in range(5)]).A, hexagon.X))
    assert kind == "attention" or not torch.allclose(first, path, atol=1e-6)


def test_bad_graphs_and_layers_are_refused():
    layer = GraphConvolution(3, 2)
    with pytest.raises(ValueError, match="takes A"):
        layer(torch.ones(4, 5), torch.ones(4, 3))
    with pytest.raises(ValueError, match="takes A"):
        layer(torch.ones(4, 4), torch.ones(5, 3))
    with pytest.raises(ValueError, match="edge features"):
        MessagePassing(3, 2, c_edge=1)(torch.ones(4, 4), torch.ones(4, 3))
    with pytest.raises(ValueError, match="aggregate must be one of"):
        GraphConvolution(3, 2, "median")
    with pytest.raises(ValueError, match="at least three widths"):
        GraphNetwork([3, 2])
    with pytest.raises(ValueError, match="a kind of"):
        GraphNetwork([3, 2, 1], kind="magic")
    assert EdgeHead(2, 3)(torch.ones(4, 2)).shape == (4, 4, 3)


def test_a_function_without_answers_keeps_no_contract():
    """NaN compares as no difference, and must not pass."""
    with pytest.raises(ValueError, match="finite"):
        graph_contract_error(lambda A, X: A.sum() * np.nan, "graph", Graph(np.ones((3, 3))))
