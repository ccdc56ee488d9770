"""Examples to certify on: checked at the door, and parted by a draw that does not look at them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

_LARGEST_CLASS = 2**31 - 1
LEAST_EXAMPLES = 2  # one for the prior, one for the certificate


class Examples(NamedTuple):
    """Inputs (n, ...) in float32 and classes 0 to k - 1."""

    inputs: Tensor
    classes: Tensor

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.classes)

    def at(self, rows: Tensor) -> Examples:
        """Return the examples in these rows."""
        return Examples(self.inputs[rows], self.classes[rows])


def read_examples(X: Any, y: Any) -> Examples:
    """Return examples as tensors.

    Args:
        X: Inputs, an array or tensor (n, ...) of finite numbers.
        y: One class per input: 0 to k - 1, or -1 and 1.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or y does not hold two classes.
        TypeError: If X or y does not hold numbers.

    >>> read_examples([[0.5], [1.5]], [-1, 1]).classes
    tensor([0, 1])
    """
    inputs, labels = _array("X", X), _array("y", y)
    if inputs.ndim < 2:
        raise ValueError(f"X must have shape (n, ...), one row per example; got shape {inputs.shape}.")
    if labels.shape != (len(inputs),):
        raise ValueError(
            f"y must hold one class per row of X, shape ({len(inputs)},); got shape {labels.shape}."
        )
    if len(inputs) < LEAST_EXAMPLES:
        raise ValueError(f"certify needs at least {LEAST_EXAMPLES} examples; got {len(inputs)}.")
    with np.errstate(over="ignore"):
        short = inputs.astype(np.float32)
    if not np.isfinite(short).all():
        raise ValueError("X must hold finite numbers within float32; it has NaN, infinity or larger.")
    return Examples(torch.from_numpy(short), torch.from_numpy(_classes(labels)))


def part(n: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw which rows the prior may see and which certify: both parts hold at least one.

    >>> first, second = part(10, 0.3, torch.Generator().manual_seed(0))
    >>> len(first), len(second), sorted([*first.tolist(), *second.tolist()]) == list(range(10))
    (3, 7, True)
    """
    order = torch.randperm(n, generator=generator)
    cut = min(max(round(share * n), 1), n - 1)
    return order[:cut], order[cut:]


def _array(name: str, values: Any) -> np.ndarray[Any, Any]:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = (values.float() if values.dtype is torch.bfloat16 else values).numpy()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}.")
    return array


def _classes(labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = labels.astype(np.float64)
    good = (values == np.round(values)) & (np.abs(values) <= _LARGEST_CLASS)  # false for NaN
    if not good.all():
        raise ValueError(f"y must hold classes as integers, 0 to k - 1; got {values[~good][0]:g}.")
    present = np.unique(values)
    if len(present) < 2:
        raise ValueError(f"y must hold at least two classes; every label is {present[0]:g}.")
    if present.min() < 0 and not np.array_equal(present, [-1.0, 1.0]):
        raise ValueError(f"y must hold classes 0 to k - 1, or -1 and 1; got {present[:5].tolist()}.")
    if present.min() < 0:
        values = (values + 1.0) / 2.0
    return values.astype(np.int64)
