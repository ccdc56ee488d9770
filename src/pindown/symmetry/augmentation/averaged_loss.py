"""The loss of augmented training, exactly: the mean over whole orbits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.symmetry.measure.families import Family
from pindown.symmetry.measure.models import Array, is_module
from pindown.validation import is_integer


def orbit_loss(
    model: Any,
    loss: Callable[[Any, Any], Any],
    X: Any,
    y: Any,
    group: Family,
    *,
    n_samples: int | None = None,
    seed: int = 0,
) -> Any:
    r"""Return the mean loss over the orbits of the data.

    .. math:: L(w) = \frac1N \sum_i \frac1{|G|} \sum_g \ell(f_w(g x_i), y_i)

    For a linear layer at the input and an orthogonal action, :math:`L(g w) = L(w)` for every g, as the
    whole group is averaged. Random augmentation estimates it, and is invariant in expectation only.

    Args:
        model: A torch module, or a function of tensors or arrays, as X is.
        loss: ``loss(outputs, y)``: one number for the batch, or one per sample.
        X: Samples; a tensor if gradients are wanted of a function that is no module.
        y: Targets, unchanged along orbits.
        group: The group with its action on samples.
        n_samples: How many elements to draw; by default all of them, exactly.
        seed: For the draw.

    Returns:
        A tensor with gradients for a module or a tensor X, else a float.

    >>> from pindown.symmetry import cyclic
    >>> first = lambda X: X[:, 0]
    >>> square = lambda out, y: (out - y) ** 2
    >>> orbit_loss(first, square, np.array([[1.0, 3.0]]), np.array([0.0]), cyclic(2))
    5.0

    Lecture course, slides on augmentation, with the lost 1/N kept.
    """
    chosen = _chosen(group, n_samples, seed)
    array, as_input = _inputs(model, X)
    if len(array) == 0 or array.ndim < 2 or len(y) != len(array):
        raise ValueError(
            f"X holds samples (n, ...) and y one target for each; got {array.shape} and {len(y)}."
        )
    total: Any = 0.0
    for index in chosen:
        values = loss(model(as_input(group.act(int(index), array))), y)
        total = total + (values.mean() if getattr(values, "ndim", 0) else values)
    mean = total / len(chosen)
    return mean if hasattr(mean, "backward") else float(mean)


def _chosen(group: Family, n_samples: int | None, seed: int) -> NDArray[np.int64]:
    if n_samples is None:
        return np.arange(group.order)
    if not is_integer(n_samples):
        raise ValueError(f"n_samples is a whole number from 1, or None for all; got {n_samples!r}.")
    return np.random.default_rng(seed).integers(group.order, size=int(n_samples))


def _inputs(model: Any, X: Any) -> tuple[Array, Callable[[Array], Any]]:
    """Return the samples as an array to move, and how to hand moved ones to the model."""
    tensor = hasattr(X, "detach")
    array = np.asarray(X.detach().cpu() if tensor else X, dtype=float)
    if not (tensor or is_module(model)):
        return array, lambda moved: moved
    import torch

    like = X if tensor else next(iter(model.parameters()), torch.zeros((), dtype=torch.float64))
    return array, lambda moved: torch.as_tensor(
        np.ascontiguousarray(moved), dtype=like.dtype, device=like.device
    )
