"""How bent the network is between inputs: affine pieces on the segments that join pairs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.facts.data_cells import as_classes
from pindown.geometry.facts.vertex_values import Ids
from pindown.geometry.slices.segment import along_segments
from pindown.network import ReluNetwork


@dataclass(frozen=True, eq=False, repr=False)
class PiecesBetween:
    """Affine pieces on segments between random pairs of inputs; the mean is an estimate.

    Attributes:
        pairs: The pairs, as rows of X, (p, 2).
        pieces: Number of affine pieces on each segment, (p,).
        cells: Number of cells on each segment, pieces that are alike counted apart, (p,).
        lengths: Euclidean lengths of the segments, (p,).
        same_class: Whether both ends have one class, (p,); None without classes.
    """

    pairs: Ids
    pieces: Ids
    cells: Ids
    lengths: Array
    same_class: NDArray[np.bool_] | None

    @property
    def mean(self) -> float:
        """Mean number of pieces."""
        return float(self.pieces.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean, as if pairs were independent; infinite for one pair."""
        n = len(self.pieces)
        return float(self.pieces.std(ddof=1) / np.sqrt(n)) if n > 1 else float("inf")

    @property
    def mean_same(self) -> float | None:
        """Mean number of pieces between inputs of one class; None if there is no such pair."""
        return self._mean_where(True)

    @property
    def mean_other(self) -> float | None:
        """Mean number of pieces between inputs of different classes; None if there is no such pair."""
        return self._mean_where(False)

    def _mean_where(self, same: bool) -> float | None:
        if self.same_class is None or not np.any(self.same_class == same):
            return None
        return float(self.pieces[self.same_class == same].mean())

    def __repr__(self) -> str:
        parts = [f"{self.mean:.4g} +- {self.standard_error:.2g} pieces between {len(self.pieces)} pairs"]
        for value, what in ((self.mean_same, "same"), (self.mean_other, "different")):
            if value is not None:
                parts.append(f"{value:.4g} for {what} classes")
        return f"PiecesBetween({'; '.join(parts)})"


def pieces_between(
    net: ReluNetwork, X: ArrayLike, y: ArrayLike | None = None, *, n_pairs: int = 200, seed: int = 0
) -> PiecesBetween:
    """Count the affine pieces of a network, exactly, on segments between random pairs of inputs.

    Args:
        net: The network, of any input dimension.
        X: Inputs (n, d), at least two.
        y: Their classes (n,), if they have any.
        n_pairs: How many pairs of different rows to draw.
        seed: Chooses them.

    Returns:
        The counts, and their mean with its standard error.

    Raises:
        ValueError: If there are fewer than two inputs or no pairs, or shapes do not fit.

    Example:
        One fold lies between the two inputs, whichever is drawn first:

        >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
        >>> pieces_between(net, [[-1.0], [1.0]], n_pairs=5)
        PiecesBetween(2 +- 0 pieces between 5 pairs)

    Hanin and Rolnick 2019, "Complexity of linear regions in deep networks", count them on lines.
    """
    rows, _ = net.as_rows(X)
    if len(rows) < 2:
        raise ValueError(f"pairs need at least two inputs; got {len(rows)}.")
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1; got {n_pairs}.")
    _, class_of = as_classes(y, len(rows))
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(rows), n_pairs)
    second = rng.integers(0, len(rows) - 1, n_pairs)
    pairs = np.stack([first, second + (second >= first)], axis=1)
    a, b = rows[pairs[:, 0]], rows[pairs[:, 1]]
    folds = along_segments(net, a, b)
    same = None if y is None else class_of[pairs[:, 0]] == class_of[pairs[:, 1]]
    return PiecesBetween(pairs, folds.n_pieces, folds.n_cells, np.linalg.norm(b - a, axis=1), same)
