r"""Graph neural networks (GNN): layers blind to node names, and heads for graphs, nodes and edges.

.. math:: x_v \leftarrow \phi\Big(x_v, \bigoplus_{u \in N_v} m_{vu}\Big)

The three layers differ in the messages only:

.. math:: m_{vu} = c_{vu}\psi(x_u), \qquad m_{vu} = a(x_v, x_u)\psi(x_u), \qquad m_{vu} = \psi(x_v, x_u).

:math:`N_v` are the nodes u with :math:`A_{vu} \ne 0`; v itself enters through
:math:`\phi(x, z) = Wx + Uz + b`. An empty neighbourhood sends 0. Activations are left to the network.
Adjacencies are ``(..., n, n)``, features ``(..., n, c)``; masks are not needed, as a missing node has no
edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from pindown.symmetry.graphs.isomorphism import LEVELS
from pindown.symmetry.layers.convolution import POOLS
from pindown.symmetry.layers.sets import PermInvariant
from pindown.validation import choice, integer


class GraphConvolution(nn.Module):  # type: ignore[misc]
    r"""Convolutional layer: messages :math:`c_{vu}(Vx_u + r)`, coefficients from degrees alone.

    Args:
        c_in: Numbers per node of the input.
        c_out: Numbers per node of the output.
        aggregate: ``"sum"`` with :math:`c_{vu} = 1/\sqrt{\deg u \deg v}`, or ``"mean"``, ``"max"`` with
            :math:`c_{vu} = 1`.

    >>> GraphConvolution(3, 5)(torch.ones(4, 4), torch.ones(4, 3)).shape
    torch.Size([4, 5])

    Lecture course, section on graph networks: convolutional approach.
    """

    def __init__(self, c_in: int, c_out: int, aggregate: str = "sum") -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        self.aggregate = choice("aggregate", aggregate, POOLS)
        self.psi = nn.Linear(c_in, c_out)
        self.own, self.around = nn.Linear(c_in, c_out), nn.Linear(c_out, c_out, bias=False)

    def forward(self, A: Tensor, X: Tensor) -> Tensor:
        """Return ``(..., n, c_out)``."""
        edges = _check_graph(A, X)
        sent = self.psi(X)
        if self.aggregate == "sum":
            total = _coefficients(edges).to(sent) @ sent
        else:
            total = _aggregated(sent.unsqueeze(-3).expand(*edges.shape, -1), edges, self.aggregate)
        return self.own(X) + self.around(total)


class GraphAttention(nn.Module):  # type: ignore[misc]
    r"""Attentional layer: messages :math:`a_{vu}(Vx_u + r)`, a softmax of learned scores.

    Scores are :math:`s^T \tanh(Qx_v + Kx_u)`, so that which neighbour counts can depend on the node.

    Args:
        c_in: Numbers per node of the input.
        c_out: Numbers per node of the output.
        hidden: Width of the score.

    >>> GraphAttention(3, 5)(torch.ones(2, 4, 4), torch.ones(2, 4, 3)).shape
    torch.Size([2, 4, 5])

    Lecture course, section on graph networks: attentional approach.
    """

    def __init__(self, c_in: int, c_out: int, hidden: int = 16) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        integer("hidden", hidden)
        self.psi = nn.Linear(c_in, c_out)
        self.query, self.key = nn.Linear(c_in, hidden), nn.Linear(c_in, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.own, self.around = nn.Linear(c_in, c_out), nn.Linear(c_out, c_out, bias=False)

    def weights(self, A: Tensor, X: Tensor) -> Tensor:
        """Return the attention ``(..., n, n)``: rows sum to one, those of isolated nodes to zero."""
        edges = _check_graph(A, X)
        mixed = torch.tanh(self.query(X).unsqueeze(-2) + self.key(X).unsqueeze(-3))
        logits = self.score(mixed).squeeze(-1).masked_fill(~edges, -torch.inf)
        # A row without edges would be 0/0; whatever stands there is cleared below.
        lonely = ~edges.any(-1, keepdim=True)
        return torch.softmax(logits.masked_fill(lonely, 0.0), -1).masked_fill(~edges, 0.0)

    def forward(self, A: Tensor, X: Tensor) -> Tensor:
        """Return ``(..., n, c_out)``."""
        return self.own(X) + self.around(self.weights(A, X) @ self.psi(X))


class MessagePassing(nn.Module):  # type: ignore[misc]
    r"""Message passing: messages :math:`\psi(x_v, x_u, y_{vu})` from a network with one hidden layer.

    Args:
        c_in: Numbers per node of the input.
        c_out: Numbers per node of the output.
        aggregate: ``"sum"``, ``"mean"`` or ``"max"``.
        hidden: Width of :math:`\psi`, and length of a message.
        c_edge: Numbers per edge; 0 for none.

    >>> MessagePassing(3, 5, c_edge=2)(torch.ones(4, 4), torch.ones(4, 3), torch.ones(4, 4, 2)).shape
    torch.Size([4, 5])

    Lecture course, section on graph networks: message-passing approach.
    """

    def __init__(
        self, c_in: int, c_out: int, aggregate: str = "sum", *, hidden: int = 16, c_edge: int = 0
    ) -> None:
        super().__init__()
        integer("c_in", c_in)
        integer("c_out", c_out)
        integer("hidden", hidden)
        self.aggregate, self.c_edge = choice("aggregate", aggregate, POOLS), c_edge
        self.psi = nn.Sequential(
            nn.Linear(2 * c_in + c_edge, hidden), nn.ReLU(), nn.Linear(hidden, hidden)
        )
        self.own, self.around = nn.Linear(c_in, c_out), nn.Linear(hidden, c_out, bias=False)

    def forward(self, A: Tensor, X: Tensor, Y: Tensor | None = None) -> Tensor:
        """Return ``(..., n, c_out)``."""
        edges = _check_graph(A, X)
        if (0 if Y is None else Y.shape[-1]) != self.c_edge:
            raise ValueError(f"this layer takes edge features (..., n, n, {self.c_edge}).")
        pairs = [X.unsqueeze(-2).expand(*edges.shape, -1), X.unsqueeze(-3).expand(*edges.shape, -1)]
        messages = self.psi(torch.cat([*pairs, *([] if Y is None else [Y])], -1))
        return self.own(X) + self.around(_aggregated(messages, edges, self.aggregate))


class GraphReadout(PermInvariant):
    """Answers about a whole graph: nodes pooled, then a linear map; missing nodes are masked.

    >>> GraphReadout(4, 2)(torch.ones(3, 6, 4), torch.ones(3, 6)).shape
    torch.Size([3, 2])

    Lecture course, section on graphs.
    """


class EdgeHead(nn.Module):  # type: ignore[misc]
    r"""Answers about pairs of nodes, :math:`F_{vu} = L\,\mathrm{relu}(Px_v + Qx_u)`.

    >>> EdgeHead(4, 2)(torch.ones(6, 4)).shape
    torch.Size([6, 6, 2])

    Lecture course, section on graphs.
    """

    def __init__(self, c_in: int, c_out: int, hidden: int = 16) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(c_in, hidden), nn.Linear(c_in, hidden, bias=False)
        self.answer = nn.Linear(hidden, c_out)

    def forward(self, X: Tensor) -> Tensor:
        """Return ``(..., n, n, c_out)``."""
        return self.answer(torch.relu(self.first(X).unsqueeze(-2) + self.second(X).unsqueeze(-3)))


_KINDS = {"convolution": GraphConvolution, "attention": GraphAttention, "messages": MessagePassing}


class GraphNetwork(nn.Module):  # type: ignore[misc]
    """Graph layers with ReLUs and a head for one kind of question.

    Args:
        widths: Numbers per node of the input and of each hidden layer, then of the answer.
        level: ``"graph"``, ``"node"`` or ``"edge"``.
        kind: ``"convolution"``, ``"attention"`` or ``"messages"``.
        pool: How nodes are pooled for answers about graphs.

    Example:
        >>> net = GraphNetwork([3, 8, 8, 2], "node")
        >>> net(torch.ones(5, 5), torch.ones(5, 3)).shape
        torch.Size([5, 2])

    Lecture course, section on graphs and graph networks.
    """

    def __init__(
        self,
        widths: Sequence[int],
        level: str = "graph",
        kind: str = "convolution",
        pool: str = "mean",
    ) -> None:
        super().__init__()
        if level not in LEVELS or kind not in _KINDS or len(widths) < 3:
            raise ValueError(
                f"give at least three widths, a level of {', '.join(LEVELS)} and a kind of "
                f"{', '.join(_KINDS)}; got {list(widths)!r}, {level!r}, {kind!r}."
            )
        self.level = level
        self.hidden = nn.ModuleList(_KINDS[kind](a, b) for a, b in pairwise(widths[:-1]))
        heads = {"node": nn.Linear, "edge": EdgeHead}
        last = (widths[-2], widths[-1])
        self.head = GraphReadout(*last, pool) if level == "graph" else heads[level](*last)

    def forward(self, A: Tensor, X: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return an answer for each graph, node or pair of nodes; a mask says which nodes are there."""
        for layer in self.hidden:
            X = torch.relu(layer(A, X))
        return self.head(X, mask) if self.level == "graph" else self.head(X)


def _coefficients(edges: Tensor) -> Tensor:
    r"""Return :math:`c_{vu} = 1/\sqrt{\deg u \deg v}` on edges and 0 elsewhere, in double precision.

    >>> _coefficients(torch.tensor([[False, True], [True, False]])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    there = edges.double()
    # In a directed graph v receives along its row and u sends along its column.
    received, sent = there.sum(-1, keepdim=True), there.sum(-2, keepdim=True)
    return there / torch.sqrt(received * sent).clamp(min=1.0)


def _aggregated(messages: Tensor, edges: Tensor, how: str) -> Tensor:
    """Pool messages ``(..., n, n, m)`` over neighbours; no neighbour gives 0.

    >>> _aggregated(torch.ones(2, 2, 1), torch.tensor([[True, True], [False, False]]), "sum").tolist()
    [[2.0], [0.0]]
    """
    there = edges.unsqueeze(-1)
    if how == "max":
        largest = messages.masked_fill(~there, -torch.inf).amax(-2)
        return torch.where(there.any(-2), largest, torch.zeros_like(largest))
    total = messages.masked_fill(~there, 0.0).sum(-2)
    return total if how == "sum" else total / there.sum(-2).clamp(min=1)


def _check_graph(A: Tensor, X: Tensor) -> Tensor:
    """Return where edges are, or say what does not fit."""
    if A.ndim < 2 or A.shape[-1] != A.shape[-2] or X.ndim < 2 or A.shape[:-1] != X.shape[:-1]:
        raise ValueError(
            f"a graph layer takes A (..., n, n) and X (..., n, c); got {tuple(A.shape)} and "
            f"{tuple(X.shape)}."
        )
    return A != 0
