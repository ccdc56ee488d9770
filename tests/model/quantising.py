"""Models whose inputs are quantised before an operation on integers."""

from __future__ import annotations

import numpy as np

from pindown.model.builder import Builder
from pindown.model.operations.moves import Reshape, Slice
from pindown.model.operations.operation import Interval


def quantised_model(operation, quantizers, *shapes):
    """Return a model that cuts one flat input into tensors, quantises them and applies an operation."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    graph = Builder((1, sum(sizes)))
    tensors, start = [], 0
    for quantizer, shape, size in zip(quantizers, shapes, sizes, strict=True):
        part = graph.add(Slice((slice(None), slice(start, start + size))), graph.input)
        tensors.append(graph.add(quantizer, graph.add(Reshape(tuple(shape)), part)))
        start += size
    return graph.model(graph.add(operation, *tensors), input_shape=(sum(sizes),))


def check_on_integers(operation, *shapes, low, high, n=4, seed=0):
    """Check bounds and linear bounds of an operation at whole numbers in boxes of whole numbers."""
    rng = np.random.default_rng(seed)
    centres = [rng.integers(low, high + 1, (n, *shape)).astype(float) for shape in shapes]
    for radius in (0, 1, 5, 300):
        boxes = [Interval(np.maximum(c - radius, low), np.minimum(c + radius, high)) for c in centres]
        bounds, relaxation = operation.interval(*boxes), operation.relaxation(*boxes)
        form = rng.normal(size=(n, 3, *bounds.lower.shape[1:]))
        form[:, 0] = 0.0
        form[:, 0].reshape(n, -1)[:, 0] = 1.0
        pulled = relaxation.upper(form)
        for _ in range(8):
            points = [rng.integers(box.lower, box.upper + 1).astype(float) for box in boxes]
            y = operation(*points)
            assert (bounds.lower <= y).all() and (y <= bounds.upper).all(), (operation.name, radius)
            left = np.einsum("nqk,nk->nq", form.reshape(n, 3, -1), y.reshape(n, -1))
            right = pulled.offset + sum(
                np.einsum("nqk,nk->nq", f.reshape(n, 3, -1), x.reshape(n, -1))
                for f, x in zip(pulled.forms, points, strict=True)
            )
            assert (left <= right + 1e-9).all(), (operation.name, radius, (left - right).max())
        if radius == 0:
            assert (bounds.upper - bounds.lower <= 1e-9 * (1 + np.abs(bounds.upper))).mean() > 0.99
