"""Rows of data, and what one pass of them through the network shows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite, stored_entries
from pindown.findings.deadline import NotApplicable
from pindown.findings.targets import Targets
from pindown.network import ReluNetwork

_MULTIPLY_ADDS_PER_CHUNK = 500_000_000  # between two looks at the clock: about a tenth of a second
_MOST_ROWS_PER_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs (n, d), with targets if there are any."""

    name: str
    X: Array
    targets: Targets | None

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Observed:
    """What one pass of a sample through the network showed.

    Attributes:
        rows: Which rows were seen, ascending; all, unless the time ran out.
        outputs: The network's outputs at these rows.
        lowest: Per hidden layer, the smallest value that entered each ReLU.
        highest: Per hidden layer, the largest.
        n_given: How many rows there were.
    """

    rows: NDArray[np.intp]
    outputs: Array
    lowest: tuple[Array, ...]
    highest: tuple[Array, ...]
    n_given: int

    @property
    def n(self) -> int:
        """How many rows were seen."""
        return len(self.rows)

    @property
    def seen(self) -> str:
        """How many rows were seen, in words."""
        if self.n == self.n_given:
            return f"{self.n:,} row{'s' if self.n > 1 else ''}"
        return f"{self.n:,} of {self.n_given:,} rows (time ran out)"


def one_pass(net: ReluNetwork, X: Array, rng: np.random.Generator, until: float) -> Observed:
    """Send rows through in random order, so that those seen before time runs out are a fair sample."""
    order = rng.permutation(len(X))
    chunk = chunk_rows(net)
    outputs = np.empty((len(X), net.out_features))
    lowest = [np.full(width, np.inf) for width in net.hidden_widths]
    highest = [np.full(width, -np.inf) for width in net.hidden_widths]
    done = 0
    while done < len(X) and (done == 0 or time.monotonic() < until):
        rows = np.sort(order[done : done + chunk])
        a = X[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            for i, layer in enumerate(net.layers[:-1]):
                z = layer(a)
                np.minimum(lowest[i], z.min(axis=0), out=lowest[i])
                np.maximum(highest[i], z.max(axis=0), out=highest[i])
                a = np.maximum(z, 0.0, out=z)
            outputs[rows] = net.layers[-1](a)
        if not is_finite(outputs[rows]):
            raise NotApplicable("the network overflows float64 on this data")
        done += len(rows)
    seen = np.sort(order[:done])
    return Observed(seen, outputs[seen], tuple(lowest), tuple(highest), len(X))


def chunk_rows(net: ReluNetwork) -> int:
    """Return how many rows to evaluate between two looks at the clock."""
    per_row = sum(stored_entries(layer.weight) for layer in net.layers)
    return max(1, min(_MOST_ROWS_PER_CHUNK, _MULTIPLY_ADDS_PER_CHUNK // max(1, per_row)))
