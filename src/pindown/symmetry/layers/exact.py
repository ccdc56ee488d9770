"""Torch modules whose constants stay in double precision, whatever the parameters are cast to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from pindown.validation import is_integer


class ExactConstants(nn.Module):  # type: ignore[misc]
    """A module with constants that ``.float()`` and ``.double()`` leave alone.

    A basis rounded to single precision and widened again commutes with the group to seven digits only.
    The constants are part of the ``state_dict``: weights are coefficients in this very basis.
    """

    def __init__(self) -> None:
        super().__init__()
        self._constants: list[str] = []

    def keep(self, name: str, values: Any) -> None:
        """Store an array as a constant: whole numbers as they are, others in double precision."""
        tensor = torch.as_tensor(values)
        self.register_buffer(name, tensor.double() if tensor.is_floating_point() else tensor)
        self._constants.append(name)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ExactConstants:
        kept = {name: getattr(self, name) for name in self._constants}
        super()._apply(fn, recurse)
        for name, tensor in kept.items():
            moved = getattr(self, name)
            setattr(self, name, tensor.to(moved.device))
        return self


def check_channels(**channels: int) -> None:
    """Refuse numbers of channels that are not whole and positive."""
    for name, value in channels.items():
        if not is_integer(value):
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")


def check_shape(x: Tensor, expected: tuple[int, ...], what: str) -> None:
    """Refuse tensors whose last axes are not as expected."""
    if tuple(x.shape[-len(expected) :]) != expected or x.ndim < len(expected):
        wanted = ", ".join(map(str, expected))
        raise ValueError(f"{what} takes tensors (..., {wanted}); got shape {tuple(x.shape)}.")
