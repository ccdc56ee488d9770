"""Networks for the three kinds of questions about graphs: the whole, its nodes, its edges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from pindown.symmetry.graphs.contracts import LEVELS
from pindown.symmetry.graphs.layers import GraphAttention, GraphConvolution, MessagePassing
from pindown.symmetry.layers.sets import PermInvariant

_KINDS = {"convolution": GraphConvolution, "attention": GraphAttention, "messages": MessagePassing}


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
