"""Linear regions around data: how many cells the inputs fall into, and how they share them.

Cells are told apart by their patterns, so this works for any number of inputs. With a complex, which
only few inputs allow, the cells also have volumes, and there are those without data to compare with.
Affine pieces on the segments that join pairs of inputs say how bent the network is between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts._values_and_slopes import Ids
from pindown.geometry.nearness import RESOLUTION
from pindown.geometry.regions.fold_distance import FoldDistances, distance_to_nearest_fold
from pindown.geometry.regions.point_location import locate
from pindown.geometry.slices.segment import along_segments
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.validation import integer


@dataclass(frozen=True, eq=False, repr=False)
class DataCells:
    """How n inputs are spread over the cells of a network.

    Attributes:
        net: The network.
        inputs: The inputs, (n, d).
        cell_of: For each input the number of its cell, cells with most inputs first, (n,).
        patterns: Which units are on in each cell, (m, size).
        n_on_folds: Inputs that lie on a fold, to rounding; each is counted in one of its cells.
        labels: The classes, ascending, (c,); empty if none were given.
        class_of: For each input the number of its class, (n,); empty if none were given.
        complex: The complex, if one was given.
        ids: Which cell of the complex each is, -1 if it was not found there, (m,).
    """

    net: ReluNetwork
    inputs: Array
    cell_of: Ids
    patterns: NDArray[np.bool_]
    n_on_folds: int
    labels: NDArray[Any]
    class_of: Ids
    complex: PolyhedralComplex | None = None
    ids: Ids | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells that contain inputs."""
        return len(self.patterns)

    @property
    def exact(self) -> bool:
        """Whether all cells of the box are known, where a complex was given."""
        return self.complex is None or self.complex.complete

    @cached_property
    def counts(self) -> Ids:
        """Number of inputs in each cell, (m,)."""
        return np.bincount(self.cell_of, minlength=self.n_cells)

    @property
    def n_alone(self) -> int:
        """Number of inputs that have their cell for themselves."""
        return int(np.sum(self.counts == 1))

    @cached_property
    def table(self) -> Ids:
        """Number of inputs in each cell by class, (m, c)."""
        table = np.zeros((self.n_cells, len(self.labels)), np.int64)
        if len(self.labels):
            np.add.at(table, (self.cell_of, self.class_of), 1)
        return table

    @property
    def cells_per_class(self) -> dict[Any, int]:
        """For each class the number of cells that contain inputs of it."""
        return dict(zip(self.labels.tolist(), np.sum(self.table > 0, axis=0).tolist(), strict=True))

    @property
    def n_mixed(self) -> int:
        """Number of cells that contain inputs of several classes."""
        return int(np.sum(np.sum(self.table > 0, axis=1) > 1))

    @cached_property
    def fold_distances(self) -> FoldDistances:
        """Distance of each input to the nearest fold."""
        return distance_to_nearest_fold(self.net, self.inputs)

    @property
    def fold_distance_per_class(self) -> dict[Any, float]:
        """For each class the median distance of its inputs to the nearest fold."""
        far = self.fold_distances.distance
        names = enumerate(self.labels.tolist())
        return {label: float(np.median(far[self.class_of == i])) for i, label in names}

    @property
    def volume_share(self) -> float | None:
        """Share of the box taken by cells that contain inputs; None without a complex."""
        if self.complex is None or self.ids is None:
            return None
        sides = self.complex.box.upper - self.complex.box.lower
        return float(self.complex.volumes[self.ids[self.ids >= 0]].sum() / np.prod(sides))

    @property
    def n_pieces(self) -> int | None:
        """Number of affine pieces that contain inputs; None without a complex."""
        if self.complex is None or self.ids is None:
            return None
        return len(np.unique(self.complex.pieces[self.ids[self.ids >= 0]]))

    def __repr__(self) -> str:
        n, most = len(self.inputs), int(self.counts.max())
        notes = [f"{_many(n, 'input')} in {_many(self.n_cells, 'cell')}, at most {most:,} in one"]
        if len(self.labels):
            notes.append(f"{self.n_mixed:,} with several of {len(self.labels)} classes")
        if self.complex is not None:
            total = f"{self.complex.n_regions:,}{'' if self.exact else ' or more'}"
            notes.append(f"{self.volume_share:.1%} of the volume of all {total}")
        return f"DataCells({'; '.join(notes)})"


@on_network
def data_cells(
    net: ReluNetwork | PolyhedralComplex, X: ArrayLike, y: ArrayLike | None = None
) -> DataCells:
    """Count the cells that inputs fall into, overall and by class.

    Args:
        net: The network, of any input dimension, or its complex on a box that holds the inputs.
        X: Inputs (n, d), at least one.
        y: Their classes (n,), if they have any.

    Returns:
        The cells with data, most inputs first, and how they are shared.

    Raises:
        ValueError: If there are no inputs, shapes do not fit, or inputs lie outside the box.
        TypeError: If ``net`` is neither a network nor a complex.

    Example:
        Three of four inputs lie right of the one fold:

        >>> net = ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])])
        >>> found = data_cells(net, [[-1.0], [1.0], [2.0], [3.0]], y=["a", "a", "b", "b"])
        >>> found
        DataCells(4 inputs in 2 cells, at most 3 in one; 1 with several of 2 classes)
        >>> found.cells_per_class, found.fold_distances.distance
        ({'a': 2, 'b': 1}, array([1., 1., 2., 3.]))
    """
    cx = net if isinstance(net, PolyhedralComplex) else None
    network = net.net if isinstance(net, PolyhedralComplex) else net
    if not isinstance(network, ReluNetwork):
        raise TypeError(f"net must be a ReluNetwork or a PolyhedralComplex; got {type(net).__name__}.")
    rows, _ = network.as_rows(X)
    if not len(rows):
        raise ValueError("statistics need at least one input; got none.")
    box = None if cx is None else cx.box
    if box is not None and not box.contains(rows).all():
        outside = int(np.sum(~box.contains(rows)))
        raise ValueError(
            f"{outside} of {len(rows)} inputs lie outside the box; Box.around(X) holds them."
        )
    labels, class_of = as_classes(y, len(rows))
    patterns, n_on_folds = cell_patterns(network, rows, box)
    cell_of, first = _grouped(patterns)
    ids = None if cx is None else _found_in(cx, patterns[first])
    arrays = (rows.copy(), cell_of, patterns[first])
    for array in (*arrays, labels, class_of):
        array.flags.writeable = False
    return DataCells(network, *arrays, n_on_folds, labels, class_of, cx, ids)


def as_classes(y: ArrayLike | None, n: int) -> tuple[NDArray[Any], Ids]:
    """Return the distinct classes, ascending, and for each input the number of its class."""
    if y is None:
        return np.zeros(0), np.zeros(0, np.int64)
    given = np.asarray(y)
    if given.shape != (n,):
        raise ValueError(f"y must hold one class for each of the {n} inputs; got shape {given.shape}.")
    labels, class_of = np.unique(given, return_inverse=True)
    return labels, class_of.astype(np.int64)


def cell_patterns(net: ReluNetwork, X: Array, box: Box | None = None) -> tuple[NDArray[np.bool_], int]:
    """Return the pattern of a full-dimensional cell that contains each input, and how many lie on folds.

    Zero counts as on where that gives a cell with an interior; otherwise a small step off the folds
    decides, as in :func:`~pindown.geometry.regions.region.region_at`.
    """
    patterns, unsure = np.empty((len(X), net.size), bool), np.zeros(len(X), bool)
    for part in net.chunks(len(X)):
        a, states = X[part], [np.zeros((len(X[part]), 0), bool)]
        for layer in net.layers[:-1]:
            z = layer(a)
            terms = np.asarray(abs(layer.weight) @ np.abs(a).T).T + np.abs(layer.bias)
            near = np.abs(z) <= RESOLUTION * terms
            unsure[part] |= near.any(axis=1)
            states.append(near | (z > 0.0))
            a = np.maximum(z, 0.0)
        patterns[part] = np.concatenate(states, axis=1)
    n_on_folds = 0
    for i in np.flatnonzero(unsure):
        try:
            found = locate(net, X[i], box)
        except ArithmeticError:  # folds too close to step between them: its own pattern stays
            n_on_folds += 1
            continue
        sides = found.sides @ np.append(X[i], 1.0)
        size = 1.0 + float(np.abs(X[i]).max())
        n_on_folds += bool(np.any(np.abs(sides) <= RESOLUTION * size))
        patterns[i] = found.pattern
    return patterns, n_on_folds


def _grouped(patterns: NDArray[np.bool_]) -> tuple[Ids, Ids]:
    """Number equal patterns, the most frequent first; return the numbers, and an input of each."""
    bits = np.packbits(patterns, axis=1) if patterns.shape[1] else np.zeros((len(patterns), 1), np.uint8)
    rows = np.ascontiguousarray(bits).view(f"V{bits.shape[1]}").reshape(-1)
    _, first, number, counts = np.unique(
        rows, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort([first, -counts])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[number], first[order]


def _found_in(cx: PolyhedralComplex, patterns: NDArray[np.bool_]) -> Ids:
    """Return the cells of a complex with given patterns, -1 where there is none."""
    hashes = np.where(patterns, cx.cells.hashes, np.uint64(0))
    keys = np.bitwise_xor.reduce(hashes, axis=1, dtype=np.uint64)
    known = {int(key): i for i, key in enumerate(cx.cells.keys)}
    return np.array([known.get(int(key), -1) for key in keys], dtype=np.int64)


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


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


@on_network
def pieces_between(
    net: ReluNetwork, X: ArrayLike, y: ArrayLike | None = None, *, n_pairs: int = 200, seed: int = 0
) -> PiecesBetween:
    """Count the affine pieces of a network, exactly, on segments between random pairs of inputs.

    Args:
        net: The network, of any input dimension.
        X: Inputs (n, d), at least two.
        y: Their classes (n,), if they have any.
        n_pairs: How many pairs of different rows to draw.
        seed: Chooses the pairs.

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
    integer("n_pairs", n_pairs)
    _, class_of = as_classes(y, len(rows))
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(rows), n_pairs)
    second = rng.integers(0, len(rows) - 1, n_pairs)
    pairs = np.stack([first, second + (second >= first)], axis=1)
    a, b = rows[pairs[:, 0]], rows[pairs[:, 1]]
    folds = along_segments(net, a, b)
    same = None if y is None else class_of[pairs[:, 0]] == class_of[pairs[:, 1]]
    return PiecesBetween(pairs, folds.n_pieces, folds.n_cells, np.linalg.norm(b - a, axis=1), same)
