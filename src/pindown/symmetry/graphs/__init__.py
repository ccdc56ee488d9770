"""Graphs: node order that does not matter, isomorphism, and layers that respect both."""

from typing import TYPE_CHECKING

from pindown.lazy import lazy_names

if TYPE_CHECKING:
    from pindown.symmetry.graphs.contracts import graph_contract_error as graph_contract_error
    from pindown.symmetry.graphs.data import Graph as Graph
    from pindown.symmetry.graphs.isomorphism import find_isomorphism as find_isomorphism

# Where each name lives: torch is loaded with the first layer that is used.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "contracts": "GraphContract graph_contract_error",
        "data": "Graph GraphBatch block_diagonal from_edges from_networkx padded relabel",
        "isomorphism": "colour_refinement find_isomorphism isomorphisms",
        "layers": "GraphAttention GraphConvolution MessagePassing",
        "networks": "EdgeHead GraphNetwork GraphReadout",
    },
)
