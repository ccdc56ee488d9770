"""Several models as one: side by side on shared inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.model.builder import Builder, Tensor
from pindown.model.graph import Model
from pindown.model.operations.moves import Concat, Gather, Reshape
from pindown.model.operations.operation import Shape


def joined(models: Sequence[Model], reads: Sequence[ArrayLike], n_inputs: int) -> Model:
    r"""Return the model :math:`x \mapsto (f_1(x_{R_1}), f_2(x_{R_2}), \ldots)` of flat vectors.

    A model that occurs twice keeps its operations: no weight is copied.

    Args:
        models: The models :math:`f_i`; an input is flattened in the order of its entries.
        reads: For each model, which of the inputs it reads :math:`R_i`, one index for each of its own.
        n_inputs: Length of :math:`x`.

    Raises:
        ValueError: If the indices are not as many as a model has inputs, or not below ``n_inputs``.

    Example:
        >>> from pindown.model.operations.dense import Dense
        >>> graph = Builder((1, 2))
        >>> difference = graph.model(graph.add(Dense([[1.0, -1.0]], [0.0]), graph.input))
        >>> both = joined([difference, difference], [[0, 1], [2, 1]], n_inputs=3)
        >>> both([5.0, 1.0, 7.0])  # 5 - 1 and 7 - 1
        array([4., 6.])
        >>> both.n_parameters
        3
    """
    if len(models) != len(reads) or not models:
        raise ValueError(f"joined needs models and what each reads; got {len(models)} and {len(reads)}.")
    builder = Builder((1, n_inputs))
    outputs = []
    for number, (model, read) in enumerate(zip(models, reads, strict=True), 1):
        positions = _positions(read, model, number, n_inputs)
        builder.place = f"input of model {number}"
        own = builder.input
        if not np.array_equal(positions, np.arange(n_inputs)):
            own = builder.add(Gather(positions, axis=1), own)
        own = _reshaped(builder, own, model.literal_shape)
        made = _copied(builder, model, own, f"model {number}, ")
        builder.place = f"output of model {number}"
        outputs.append(_reshaped(builder, made, (1, model.out_features)))
    builder.place = "outputs"
    output = outputs[0] if len(outputs) == 1 else builder.add(Concat(axis=1), *outputs)
    notes = tuple(dict.fromkeys(note for model in models for note in model.notes))
    types = {model.dtype for model in models}
    dtype = types.pop() if len(types) == 1 else "float64"
    return builder.model(output, input_shape=(n_inputs,), dtype=dtype, notes=notes)


def _positions(read: ArrayLike, model: Model, number: int, n_inputs: int) -> NDArray[np.int64]:
    positions = np.asarray(read, dtype=np.int64)
    if positions.shape != (model.in_features,):
        raise ValueError(
            f"model {number} has {model.in_features} inputs; it is to read {positions.size} of them."
        )
    if positions.min() < 0 or positions.max() >= n_inputs:
        raise ValueError(f"model {number} reads inputs that are not among 0 to {n_inputs - 1}.")
    return positions


def _copied(builder: Builder, model: Model, own: Tensor, prefix: str) -> Tensor:
    """Add the nodes of a model that reads a tensor; return its output."""
    tensors = [own]
    for node in model.nodes:
        builder.place = prefix + node.name
        tensors.append(builder.add(node.operation, *(tensors[j] for j in node.inputs)))
    return tensors[-1]


def _reshaped(builder: Builder, tensor: Tensor, shape: Shape) -> Tensor:
    return tensor if tensor.shape == shape else builder.add(Reshape(shape), tensor)
