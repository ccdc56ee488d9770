"""How arrays become inputs of a network: shapes and scales, learned from the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pindown.affine import Array

_MOST_CHANNELS = 4
_SMALLEST_SPREAD = 1e-12  # of a feature's largest value: below it, the spread is rounding
_FARTHEST = 1e15  # standard deviations: squares of more do not fit into single precision


@dataclass(frozen=True, eq=False)
class InputFrame:
    """Shape and scale of inputs.

    Attributes:
        shape: Of one input: (features,), or (channels, height, width).
        centre: Subtracted, one number per feature or channel.
        scale: Divided by, alike.
    """

    shape: tuple[int, ...]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, rows: Array, shape: tuple[int, ...], standardise: bool) -> InputFrame:
        """Learn the scale from rows, (n, numbers)."""
        groups = shape[0]
        values = rows.reshape(len(rows), groups, -1).transpose(1, 0, 2).reshape(groups, -1)
        if not standardise:
            return cls(shape, np.zeros(groups), np.ones(groups))
        largest = np.abs(values).max(axis=1)
        unit = np.where(largest > 0, largest, 1.0)  # squares of huge numbers overflow
        centre, spread = (values / unit[:, None]).mean(axis=1), (values / unit[:, None]).std(axis=1)
        scale = np.where(spread > _SMALLEST_SPREAD, spread * unit, 1.0)
        return cls(shape, centre * unit, np.where(scale > 0, scale, 1.0))

    @property
    def is_image(self) -> bool:
        """Whether inputs are images."""
        return len(self.shape) == 3

    def inputs(self, rows: Array, dtype: torch.dtype) -> Tensor:
        """Return scaled inputs, (n, *shape)."""
        per = rows.reshape(len(rows), self.shape[0], -1)
        with np.errstate(over="ignore"):
            scaled = (per - self.centre[:, None]) / self.scale[:, None]
        scaled = np.clip(scaled, -_FARTHEST, _FARTHEST)
        return torch.as_tensor(scaled, dtype=dtype).reshape(len(rows), *self.shape)

    def module(self, dtype: torch.dtype) -> nn.Module:
        """Return the scaling as a module, to go in front of an exported network."""
        make = nn.BatchNorm2d if self.is_image else nn.BatchNorm1d
        norm = make(self.shape[0], eps=0.0, affine=False, dtype=dtype).eval()
        with torch.no_grad():
            norm.running_mean.copy_(torch.as_tensor(self.centre))
            norm.running_var.copy_(torch.as_tensor(self.scale**2))
        return norm


def as_images(X: Any) -> tuple[Any, tuple[int, ...]]:
    """Return images as rows with the shape of one, (channels, height, width); leave tables alone.

    Raises:
        ValueError: If the channels seem to be last.

    Example:
        >>> rows, shape = as_images(np.zeros((5, 8, 8)))
        >>> rows.shape, shape
        ((5, 64), (1, 8, 8))
    """
    axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
    if axes not in (3, 4):
        return X, ()
    X = np.asarray(X)
    shape = (1, *X.shape[1:]) if axes == 3 else X.shape[1:]
    if axes == 4 and shape[0] > _MOST_CHANNELS >= shape[2]:
        raise ValueError(
            f"images must have their channels first, (n, channels, height, width); got {X.shape}: "
            "use X.transpose(0, 3, 1, 2)."
        )
    return X.reshape(len(X), -1), tuple(int(n) for n in shape)
