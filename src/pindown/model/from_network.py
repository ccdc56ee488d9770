"""ReLU networks as models: the same layers, as operations."""

from __future__ import annotations

import math

import scipy.sparse as sp

from pindown.errors import UnsupportedModelError
from pindown.model._lowering import Lowered
from pindown.model.builder import Builder
from pindown.model.graph import Model
from pindown.model.operations.dense import Dense
from pindown.model.operations.moves import Reshape
from pindown.model.operations.operation import Operation
from pindown.model.operations.piecewise_linear import Relu
from pindown.model.operations.smooth import Sigmoid
from pindown.model.operations.softmax import LogSoftmax, Softmax
from pindown.model.operations.sparse import SparseDense
from pindown.network import ReluNetwork


def model_of_network(net: ReluNetwork, dtype: str = "float64") -> Model:
    """Return a network as a model: dense layers with ReLUs between them, and its output activation.

    Args:
        net: The network.
        dtype: The float type to write it in.

    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> model_of_network(net)
    Model((1,) -> 1, 7 parameters: 2 Dense, ReLU)
    """
    graph = Builder((1, *net.input_shape))
    x = graph.input
    if len(net.input_shape) > 1:
        x = graph.add(Reshape((1, math.prod(net.input_shape))), x)
    for i, (weight, bias) in enumerate(net.layers, 1):
        graph.place = f"layer {i}"
        sparse = sp.issparse(weight)
        x = graph.add(SparseDense.of(weight, bias) if sparse else Dense(weight, bias), x)
        if i < net.depth:
            x = graph.add(Relu(), x)
    if net.output_activation is not None:
        x = graph.add(_activation(net.output_activation), x)
    model = graph.model(x, input_shape=net.input_shape, dtype=dtype, notes=net.notes)
    vars(model)["_lowered"] = Lowered(net, len(model.nodes))  # its exact form is known
    return model


def _activation(name: str) -> Operation:
    match name:
        case "softmax":
            return Softmax(1)
        case "log_softmax":
            return LogSoftmax(1)
        case "sigmoid":
            return Sigmoid()
    raise UnsupportedModelError(
        f"a network is written with the output activations softmax, log_softmax, sigmoid; got '{name}'."
    )
