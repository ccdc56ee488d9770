"""Dense layers most of whose weights are zero, as sparse ones: the same function, with less work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pindown.model.graph import Model, Node
from pindown.model.operations.dense import Dense
from pindown.model.operations.sparse import SparseDense

# A sparse product pays where a matrix has this many entries, and at most this share that is not zero.
MIN_SPARSE_ENTRIES = 2**14
MAX_SPARSE_SHARE = 0.05


def with_sparse_layers(model: Model) -> Model:
    """Return a model whose dense layers are stored as sparse matrices where nearly all weights are zero.

    >>> from pindown.network import ReluNetwork
    >>> from pindown.model.from_network import model_of_network
    >>> wide = model_of_network(ReluNetwork.from_layers([(np.eye(200), np.zeros(200))]))
    >>> type(with_sparse_layers(wide).operations[0]).__name__
    'SparseDense'
    """
    nodes = tuple(map(_lighter, model.nodes))
    return model if nodes == model.nodes else replace(model, nodes=nodes)


def _lighter(node: Node) -> Node:
    layer = node.operation
    if not isinstance(layer, Dense) or layer.axis != -1 or layer.weight.size < MIN_SPARSE_ENTRIES:
        return node
    if np.count_nonzero(layer.weight) > MAX_SPARSE_SHARE * layer.weight.size:
        return node
    return node._replace(operation=SparseDense.of(layer.weight, layer.bias))
