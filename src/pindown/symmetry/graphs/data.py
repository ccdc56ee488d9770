r"""A graph as arrays: adjacency, node features, edge features, features of the whole.

Renaming the nodes by a permutation matrix P gives :math:`(PAP^{-1}, PX, PYP^{-1}, g)`: the same graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph with features; node v listens to u where ``A[v, u]`` is not zero.

    Attributes:
        A: Adjacency ``(n, n)``.
        X: Node features ``(n, d)``; by default one column of ones.
        Y: Edge features ``(n, n, e)``, or None.
        g: Features of the whole graph ``(k,)``, or None.

    >>> graph = Graph([[0, 1], [1, 0]], [[5.0], [7.0]])
    >>> graph
    Graph(2 nodes, 1 edges, 1 node features, undirected)
    >>> graph.relabel([1, 0]).X.ravel().tolist()
    [7.0, 5.0]

    Lecture course, section on graphs.
    """

    A: Array
    X: Array = None  # type: ignore[assignment]  # filled in below
    Y: Array | None = None
    g: Array | None = None

    def __post_init__(self) -> None:
        A = _finite(self.A, "A")
        n = len(A) if A.ndim else 0
        if A.shape != (n, n) or n == 0:
            raise ValueError(f"A must be square, (n, n) with n >= 1; got shape {A.shape}.")
        X = np.ones((n, 1)) if self.X is None else _finite(self.X, "X")
        if X.ndim != 2 or len(X) != n:
            raise ValueError(f"X must have a row for each of the {n} nodes; got shape {X.shape}.")
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "X", X)
        if self.Y is not None:
            Y = _finite(self.Y, "Y")
            if Y.ndim != 3 or Y.shape[:2] != (n, n):
                raise ValueError(f"Y must have shape ({n}, {n}, e); got {Y.shape}.")
            object.__setattr__(self, "Y", Y)
        if self.g is not None:
            object.__setattr__(self, "g", np.atleast_1d(_finite(self.g, "g")))

    @property
    def n_nodes(self) -> int:
        """The number of nodes n."""
        return len(self.A)

    @property
    def undirected(self) -> bool:
        """Whether A is symmetric, and Y too."""
        features = self.Y is None or np.array_equal(self.Y, np.swapaxes(self.Y, 0, 1))
        return bool(features and np.array_equal(self.A, self.A.T))

    @property
    def n_edges(self) -> int:
        """Edges, each direction by itself unless the graph is undirected; loops count once."""
        there = np.count_nonzero(self.A)
        loops = np.count_nonzero(np.diag(self.A))
        return int((there + loops) // 2 if self.undirected else there)

    def edge_index(self) -> NDArray[np.int64]:
        """Return ``(2, m)``: row 0 the node a message comes from, row 1 the one it goes to.

        This is the form that PyTorch Geometric reads.

        >>> Graph([[0, 1], [0, 0]]).edge_index().tolist()
        [[1], [0]]
        """
        target, source = np.nonzero(self.A)
        return np.stack([source, target])

    def relabel(self, perm: ArrayLike) -> Graph:
        """Return the same graph with node i renamed ``perm[i]``."""
        order = inverse_permutation(perm, self.n_nodes)
        Y = None if self.Y is None else self.Y[np.ix_(order, order)]
        return Graph(self.A[np.ix_(order, order)], self.X[order], Y, self.g)

    def to_networkx(self) -> Any:
        """Return a networkx graph; node features are ``x``, edge weights ``weight``, features ``y``."""
        import networkx  # type: ignore[import-untyped]

        made = networkx.Graph() if self.undirected else networkx.DiGraph()
        made.add_nodes_from((i, {"x": row.tolist()}) for i, row in enumerate(self.X))
        for target, source in np.argwhere(self.A).tolist():
            extra = {} if self.Y is None else {"y": self.Y[target, source].tolist()}
            made.add_edge(source, target, weight=float(self.A[target, source]), **extra)
        if self.g is not None:
            made.graph["g"] = self.g.tolist()
        return made

    def to_pyg(self) -> Any:
        """Return a ``torch_geometric.data.Data``, if PyTorch Geometric is installed.

        ``x`` are the node features, ``edge_index`` runs from source to target, ``edge_weight`` is A, and
        ``edge_attr`` and ``g`` are there if Y and g are; all in float64.

        Raises:
            ImportError: If PyTorch Geometric is not installed.
        """
        import torch

        source, target = index = self.edge_index()
        made = _pyg().Data(
            x=torch.tensor(self.X),
            edge_index=torch.tensor(index),
            edge_weight=torch.tensor(self.A[target, source]),
            num_nodes=self.n_nodes,
        )
        if self.Y is not None:
            made.edge_attr = torch.tensor(self.Y[target, source])
        if self.g is not None:
            made.g = torch.tensor(self.g)
        return made

    def __repr__(self) -> str:
        kind = "undirected" if self.undirected else "directed"
        features = f"{self.X.shape[1]} node features"
        return f"Graph({self.n_nodes} nodes, {self.n_edges} edges, {features}, {kind})"


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs of several sizes in one array, filled up with nodes that are not there.

    Attributes:
        A: ``(b, n, n)``, zero where a node is missing.
        X: ``(b, n, d)``, zero where a node is missing.
        mask: ``(b, n)``, True where a node is there.
    """

    A: Array
    X: Array
    mask: NDArray[np.bool_]


def relabel(A: ArrayLike, X: ArrayLike, perm: ArrayLike) -> tuple[Array, Array]:
    r"""Return :math:`(PAP^{-1}, PX)`, the same graph with node i renamed ``perm[i]``.

    >>> A, X = relabel([[0, 1], [0, 0]], [[5.0], [7.0]], [1, 0])
    >>> A.tolist(), X.ravel().tolist()
    ([[0.0, 0.0], [1.0, 0.0]], [7.0, 5.0])

    Lecture course, section on graphs.
    """
    graph = Graph(np.asarray(A, dtype=float), np.asarray(X, dtype=float)).relabel(perm)
    return graph.A, graph.X


def from_edges(
    n: int, edges: Iterable[Sequence[int]], X: Any = None, *, directed: bool = False
) -> Graph:
    """Return a graph from pairs (from, to); undirected ones are entered both ways.

    >>> from_edges(3, [(0, 1), (1, 2)])
    Graph(3 nodes, 2 edges, 1 node features, undirected)
    """
    A = np.zeros((n, n))
    for source, target in edges:
        if not (0 <= source < n and 0 <= target < n):
            raise ValueError(f"edges join nodes 0 to {n - 1}; got {(source, target)!r}.")
        A[target, source] = 1.0
        if not directed:
            A[source, target] = 1.0
    return Graph(A, X)


def from_networkx(graph: Any) -> Graph:
    """Return a graph from networkx, nodes in its order; reads what ``to_networkx`` writes.

    >>> import networkx
    >>> from_networkx(networkx.cycle_graph(4))
    Graph(4 nodes, 4 edges, 1 node features, undirected)
    """
    nodes = {node: i for i, node in enumerate(graph)}
    rows = [data.get("x") for _, data in graph.nodes(data=True)]
    X = None if any(row is None for row in rows) else np.array(rows, dtype=float)
    A = np.zeros((len(nodes), len(nodes)))
    features: dict[tuple[int, int], Any] = {}
    for source, target, data in graph.edges(data=True):
        ways = [(nodes[target], nodes[source])]
        if not graph.is_directed():
            ways.append((nodes[source], nodes[target]))
        for way in ways:
            A[way] = data.get("weight", 1.0)
            if "y" in data:
                features[way] = data["y"]
    Y = None
    if features:
        Y = np.zeros((*A.shape, len(next(iter(features.values())))))
        for way, values in features.items():
            Y[way] = values
    return Graph(A, X, Y, graph.graph.get("g"))  # type: ignore[arg-type]


def from_pyg(data: Any) -> Graph:
    """Return a graph from a ``torch_geometric.data.Data``; reads what :meth:`Graph.to_pyg` writes.

    Args:
        data: With ``edge_index`` (2, m), and where they are there ``x`` (n, d), ``edge_weight`` (m,),
            ``edge_attr`` (m,) or (m, e), and ``g``. Edges that are there several times are refused.

    Raises:
        ValueError: If it has no edges' index, or an edge twice.

    >>> from types import SimpleNamespace
    >>> ring = SimpleNamespace(edge_index=np.array([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
    >>> from_pyg(ring)
    Graph(3 nodes, 3 edges, 1 node features, directed)
    """
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"a graph of PyTorch Geometric has an edge_index; got {type(data).__name__}.")
    index = np.asarray(data.edge_index)
    if index.ndim != 2 or len(index) != 2 or index.dtype.kind not in "iu":
        raise ValueError(f"edge_index holds integers (2, m); got {index.dtype} {index.shape}.")
    n, (source, target) = int(data.num_nodes), index
    if index.size and not (index.min() >= 0 and index.max() < n):
        raise ValueError(f"edge_index names nodes 0 to {n - 1}; got {index.min()} to {index.max()}.")
    if len(np.unique(index, axis=1).T) != index.shape[1]:
        raise ValueError("an edge is there several times; an adjacency matrix holds it once.")
    weight, attributes = (getattr(data, name, None) for name in ("edge_weight", "edge_attr"))
    A, Y = np.zeros((n, n)), None
    A[target, source] = 1.0 if weight is None else np.asarray(weight, dtype=float).ravel()
    if attributes is not None:
        values = np.asarray(attributes, dtype=float).reshape(index.shape[1], -1)
        Y = np.zeros((n, n, values.shape[1]))
        Y[target, source] = values
    x, g = (getattr(data, name, None) for name in ("x", "g"))
    return Graph(A, None if x is None else np.asarray(x, dtype=float), Y, g)  # type: ignore[arg-type]


def _pyg() -> Any:
    try:
        return import_module("torch_geometric.data")
    except ImportError as error:
        raise ImportError(
            "to_pyg needs PyTorch Geometric: pip install torch_geometric; to_networkx needs less."
        ) from error


def padded(graphs: Sequence[Graph]) -> GraphBatch:
    """Return graphs as one batch with a mask.

    >>> padded([from_edges(2, [(0, 1)]), from_edges(3, [(0, 1)])]).mask.tolist()
    [[True, True, False], [True, True, True]]
    """
    d = _same_width(graphs)
    n = max(graph.n_nodes for graph in graphs)
    A, X = np.zeros((len(graphs), n, n)), np.zeros((len(graphs), n, d))
    mask = np.zeros((len(graphs), n), dtype=bool)
    for i, graph in enumerate(graphs):
        m = graph.n_nodes
        A[i, :m, :m], X[i, :m], mask[i, :m] = graph.A, graph.X, True
    return GraphBatch(A, X, mask)


def block_diagonal(graphs: Sequence[Graph]) -> tuple[Graph, NDArray[np.int64]]:
    """Return the disjoint union of graphs, and for each node which graph it comes from.

    >>> union, member = block_diagonal([from_edges(2, [(0, 1)]), from_edges(1, [])])
    >>> union.n_nodes, member.tolist()
    (3, [0, 0, 1])
    """
    from scipy.linalg import block_diag

    _same_width(graphs)
    union = Graph(block_diag(*(graph.A for graph in graphs)), np.concatenate([g.X for g in graphs]))
    return union, np.repeat(np.arange(len(graphs)), [graph.n_nodes for graph in graphs])


def inverse_permutation(perm: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return the inverse of a permutation of 0, ..., n - 1, or say that it is none."""
    given = np.asarray(perm)
    if (
        given.shape != (n,)
        or given.dtype.kind not in "iu"
        or not np.array_equal(np.sort(given), range(n))
    ):
        raise ValueError(f"perm must be a permutation of 0, ..., {n - 1}; got {given.tolist()!r}.")
    return np.argsort(given)


def _same_width(graphs: Sequence[Graph]) -> int:
    widths = {graph.X.shape[1] for graph in graphs}
    if len(widths) != 1:
        raise ValueError(f"graphs need one number of node features; got {sorted(widths)}.")
    return widths.pop()


def _finite(values: Any, name: str) -> Array:
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; graphs hold finite numbers.")
    return array
