"""What a model's numbers lose in the float type of a file."""

from __future__ import annotations

from math import inf

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking._channel_changes import Error, change_bound
from pindown.equivalence.shrinking._channel_graph import biases, is_layer, weights, with_weights
from pindown.model.graph import Model
from pindown.model.operations.operation import Operation


def fits(model: Model, dtype: str) -> bool:
    """Return whether every number of a model is one of the float type.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> tenth = model_of_network(ReluNetwork.from_layers([([[0.1]], [0.0])]))
    >>> fits(tenth, "float32"), fits(tenth, "float64")
    (False, True)
    """
    return not any(_lost(operation, dtype) for operation in model.operations)


def rounding_gap(model: Model, dtype: str, box: Box | None) -> float:
    """Bound how far a model moves if its numbers are written in a float type.

    Args:
        model: The model.
        dtype: ``"float32"`` or the like.
        box: The inputs; None for all, the gap then relative to ``1 + ||x||``.

    Returns:
        The bound; infinite if none is known.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> tenth = model_of_network(ReluNetwork.from_layers([([[0.1]], [0.0])]))
    >>> 1e-9 < rounding_gap(tenth, "float32", None) < 2e-9
    True
    """
    errors: dict[int, Error] = {}
    rounded: dict[int, Operation] = {}
    for i, node in enumerate(model.nodes, 1):
        operation = node.operation
        if not _lost(operation, dtype):
            continue
        if not is_layer(operation):
            return inf
        W, b = weights(operation), biases(operation)
        V, c = (_narrowed(values, dtype) for values in (W, b))
        if not (np.isfinite(V).all() and np.isfinite(c).all()):
            return inf
        # Differences of neighbours, and so exact.
        errors[i] = Error(np.abs(V - W), np.abs(c - b))
        rounded[i] = with_weights(operation, V, None if operation.bias is None else c)
    return change_bound(model, errors, box, rounded) if errors else 0.0


def _lost(operation: Operation, dtype: str) -> bool:
    arrays = (v for v in vars(operation).values() if isinstance(v, np.ndarray) and v.dtype == np.float64)
    return any(bool((_narrowed(array, dtype) != array).any()) for array in arrays)


def _narrowed(values: Array, dtype: str) -> Array:
    with np.errstate(over="ignore"):
        return values.astype(dtype).astype(np.float64)
