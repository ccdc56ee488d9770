"""What one layer of a network has more than the same layer of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix, is_finite
from pindown.equivalence.sensitivity.upwards import product_above


@dataclass(frozen=True, eq=False)
class Change:
    """A change of weights and bias, known up to a slack.

    Attributes:
        weight: What is added to W, shape (out, in), dense or sparse.
        bias: What is added to b, shape (out,).
        weight_slack: How far, entry by entry, the true change of W may be from ``weight``: a matrix, or
            one number for all entries.
        bias_slack: The same for the bias.

    >>> Change(np.zeros((1, 2)), np.array([1e-3]))
    Change(0 of 2 weights, 1 of 1 biases, by up to 0.001)
    """

    weight: Matrix
    bias: Array
    weight_slack: Matrix = 0.0  # or a number
    bias_slack: Any = 0.0  # an array or a number

    def __post_init__(self) -> None:
        bias = np.asarray(self.bias, dtype=np.float64)
        weight = self.weight if sp.issparse(self.weight) else np.asarray(self.weight, dtype=np.float64)
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise ValueError(
                f"a change needs a weight of shape (out, in) and a bias of shape (out,); "
                f"got {weight.shape} and {bias.shape}."
            )
        if not (is_finite(_entries(weight)) and is_finite(bias)):
            raise ValueError("a change must be finite; it holds NaN or infinity.")
        for slack, shape, name in (
            (self.weight_slack, weight.shape, "weight_slack"),
            (self.bias_slack, bias.shape, "bias_slack"),
        ):
            if np.ndim(_entries(slack)) and slack.shape != shape:
                raise ValueError(f"{name} must be one number or have shape {shape}; got {slack.shape}.")
            if not np.all(_entries(slack) >= 0.0):
                raise ValueError(f"{name} must not be negative or NaN.")
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "bias", bias)

    @property
    def moves_weights(self) -> bool:
        """Whether ``weight`` is not zero (its slack may be)."""
        return bool(np.any(_entries(self.weight)))

    @property
    def is_zero(self) -> bool:
        """Whether nothing changes, for sure."""
        parts = (self.weight, self.bias, self.weight_slack, self.bias_slack)
        return not any(np.any(_entries(part)) for part in parts)

    def weight_slack_times(self, v: Array) -> Array:
        """Return at least the weight slack times a vector ``v >= 0``."""
        slack = self.weight_slack
        if np.ndim(_entries(slack)) == 0:
            total = product_above(np.ones((1, len(v))), v)[0] if float(slack) else 0.0
            row = product_above(np.array([[float(slack)]]), np.array([total]))[0] if total else 0.0
            return np.full(self.weight.shape[0], row)
        return product_above(slack, v)

    def __repr__(self) -> str:
        entries = _entries(self.weight)
        counts = [int(np.count_nonzero(part)) for part in (entries, self.bias)]
        largest = max(float(np.max(np.abs(part), initial=0.0)) for part in (entries, self.bias))
        size = self.weight.shape[0] * self.weight.shape[1]
        return (
            f"Change({counts[0]} of {size} weights, {counts[1]} of {self.bias.size} biases, "
            f"by up to {largest:.3g})"
        )


def _entries(part: Matrix) -> Array:
    return np.asarray(part.data if sp.issparse(part) else part)
