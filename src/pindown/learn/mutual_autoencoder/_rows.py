"""Rows of data as tensors and back: numbers by shift and scale, symbols by their place in a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.learn._inputs import mean_and_deviation
from pindown.learn.mutual_autoencoder._networks import Numbers, Symbols

_NONE = torch.empty(0)


@dataclass
class NumberRows:
    """Columns shifted to mean zero and scaled to deviation one; a constant column is only shifted."""

    shift: Array
    scale: Array
    training: Tensor

    entropy = None

    @classmethod
    def of(cls, X: Array) -> NumberRows:
        """Learn shift and scale."""
        shift, deviation = mean_and_deviation(X, rounding=1e-14)
        scale = np.where(deviation > 0, deviation, 1.0)  # constant up to rounding
        rows = (X - shift) / scale
        if not np.isfinite(rows).all():
            raise ValueError("X has numbers too large for float64 arithmetic; scale them down.")
        return cls(shift, scale, torch.as_tensor(rows, dtype=torch.float32))

    def forget_training(self) -> None:
        """Drop the training rows: a fitted model does not carry its data around."""
        self.training = _NONE

    def reader(self) -> Numbers:
        """Return what turns rows into features."""
        return Numbers(len(self.scale))

    def tensor(self, X: Array) -> Tensor:
        """Return rows as the networks take them."""
        return torch.as_tensor((X - self.shift) / self.scale)

    def back(self, rows: Array) -> Array:
        """Return rows in the data's units."""
        return rows * self.scale + self.shift

    @property
    def log_unit(self) -> float:
        """What a log density loses by going back to the data's units."""
        return float(np.log(self.scale).sum())


def _symbols(j: int, column: Any) -> Any:
    """Return the sorted symbols of a column."""
    try:
        return np.unique(column)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in column}))
        raise ValueError(
            f"symbols of a column must be of one kind, to be sorted; column {j} has {kinds}. "
            "Turn them into strings."
        ) from None


@dataclass
class SymbolRows:
    """Columns of symbols, each with its sorted list."""

    symbols: list[Any]
    training: Tensor
    entropy: float

    log_unit = 0.0

    @classmethod
    def of(cls, X: Any) -> SymbolRows:
        """Learn the symbols of every column, and the entropy of the rows."""
        symbols = [_symbols(j, column) for j, column in enumerate(X.T)]
        rows = np.stack([np.searchsorted(s, c) for s, c in zip(symbols, X.T, strict=True)], axis=1)
        counts = np.unique(rows, axis=0, return_counts=True)[1]
        p = counts / counts.sum()
        return cls(symbols, torch.as_tensor(rows), max(0.0, -float(p @ np.log(p))))

    def forget_training(self) -> None:
        """Drop the training rows: a fitted model does not carry its data around."""
        self.training = _NONE

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of symbols of every column."""
        return tuple(len(s) for s in self.symbols)

    def reader(self) -> Symbols:
        """Return what turns rows into features."""
        return Symbols(self.sizes)

    def tensor(self, X: Any) -> Tensor:
        """Return rows as the networks take them.

        Raises:
            ValueError: If a symbol was never seen.
        """
        columns = []
        for j, (known, column) in enumerate(zip(self.symbols, X.T, strict=True)):
            new = ~np.isin(column, known)
            if new.any():
                raise ValueError(
                    f"column {j} has the symbol '{column[new][0]}', which training did not; "
                    f"known are {', '.join(map(str, known[:8]))}{', ...' if len(known) > 8 else ''}."
                )
            columns.append(np.searchsorted(known, column))
        return torch.as_tensor(np.stack(columns, axis=1))

    def back(self, rows: Array) -> Any:
        """Return rows of symbols."""
        whole = rows.astype(np.int64)
        return np.stack([known[whole[:, j]] for j, known in enumerate(self.symbols)], axis=1)
