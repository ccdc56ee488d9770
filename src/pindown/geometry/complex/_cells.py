"""All cells of a network as arrays, one cell after the other."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.geometry.tuning import MAX_COMPLEX_INPUTS


@dataclass(frozen=True, eq=False)
class Cells:
    """The arrays of a complex.

    The vertices of cell i are ``coords[vertex_starts[i] : vertex_starts[i + 1]]``, and so its facets.

    Attributes:
        hidden_widths: Widths of the ReLU layers.
        coords: Vertices (V, d).
        facets: Facet labels; in the plane that of the side which follows each vertex.
        masks: For d >= 3, bit k of a vertex: the cell's k-th facet passes through it.
        patterns: Bits of the units that are on, every layer from a new word on.
        keys: One hash per cell: exclusive or of the ``hashes`` of its units that are on.
        flips: What a key changes by across the zero set of a unit, its multiples included.
        maps: Affine maps (n, d + 1, k): slopes, then the offset.
    """

    hidden_widths: tuple[int, ...]
    vertex_starts: NDArray[np.int64]
    facet_starts: NDArray[np.int64]
    coords: Array
    facets: NDArray[np.int32]
    masks: NDArray[np.uint64] | None
    patterns: NDArray[np.uint64]
    keys: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    flips: NDArray[np.uint64]
    maps: Array

    @property
    def n(self) -> int:
        """Number of cells."""
        return len(self.keys)

    @property
    def dim(self) -> int:
        """Dimension of the input."""
        return self.coords.shape[1]

    def vertices(self, i: int) -> Array:
        """Vertices of cell i, (V, d)."""
        return self.coords[self.vertex_starts[i] : self.vertex_starts[i + 1]]

    def labels(self, i: int) -> NDArray[np.int32]:
        """Facet labels of cell i, each once."""
        own = self.facets[self.facet_starts[i] : self.facet_starts[i + 1]]
        return np.array(list(dict.fromkeys(own.tolist())), dtype=np.int32)

    def first(self, n: int) -> Cells:
        """Return the first n cells."""
        vertices, facets = self.vertex_starts[n], self.facet_starts[n]
        return replace(
            self,
            vertex_starts=self.vertex_starts[: n + 1],
            facet_starts=self.facet_starts[: n + 1],
            coords=self.coords[:vertices],
            facets=self.facets[:facets],
            masks=None if self.masks is None else self.masks[:vertices],
            patterns=self.patterns[:n],
            keys=self.keys[:n],
            maps=self.maps[:n],
        )

    def unpacked_patterns(self, i: int | slice = slice(None)) -> NDArray[np.bool_]:
        """Patterns as booleans, (n, size), or of one cell, (size,)."""
        return unpack_patterns(self.patterns[i], self.hidden_widths)

    def volumes(self) -> Array:
        """Volume of each cell."""
        if self.n == 0:
            return np.zeros(0)
        if self.dim == 1:
            return np.diff(self.coords[:, 0])[::2]
        if self.dim == 2:
            # Relative to the cell's first vertex: areas of tiny cells far from 0 would cancel away.
            base = np.repeat(self.coords[self.vertex_starts[:-1]], np.diff(self.vertex_starts), axis=0)
            here = self.coords - base
            there = here[following(self.vertex_starts)]
            cross = here[:, 0] * there[:, 1] - here[:, 1] * there[:, 0]
            # Cells thinner than the spacing of their coordinates may come out inside out.
            return np.maximum(np.add.reduceat(cross, self.vertex_starts[:-1]) / 2, 0.0)
        from scipy.spatial import QhullError

        from pindown.geometry._compiled.faces import cell_volumes
        from pindown.geometry.regions._hull import volume as hull_volume

        volumes, doubtful = cell_volumes(
            self.dim, self.vertex_starts, np.diff(self.facet_starts), self.coords, self.masks
        )
        for i in np.flatnonzero(doubtful).tolist():
            with suppress(QhullError):  # a cell so thin that its volume does not matter
                volumes[i] = hull_volume(self.vertices(i))
        return volumes


def following(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for every vertex of a list of polygons the index of the next one around."""
    after = np.arange(1, starts[-1] + 1)
    after[starts[1:] - 1] = starts[:-1]
    return after


def pack_patterns(patterns: NDArray[np.bool_], hidden_widths: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return patterns (n, size) as words, every layer from a new word on."""
    parts, at = [np.zeros((len(patterns), 0), np.uint8)], 0
    for width in hidden_widths:
        layer = np.zeros((len(patterns), (width + 63) // 64 * 64), bool)
        layer[:, :width] = patterns[:, at : at + width]
        parts.append(np.packbits(layer, axis=1, bitorder="little"))
        at += width
    return np.ascontiguousarray(np.concatenate(parts, axis=1)).view(np.uint64)


def unpack_patterns(words: NDArray[np.uint64], hidden_widths: tuple[int, ...]) -> NDArray[np.bool_]:
    """Undo :func:`pack_patterns`, for many rows or one."""
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(bool)
    parts, at = [bits[..., :0]], 0
    for width in hidden_widths:
        parts.append(bits[..., at : at + width])
        at += (width + 63) // 64 * 64
    return np.concatenate(parts, axis=-1)


class Found(NamedTuple):
    """Cells, whether they are all, and how many of them exact arithmetic had to decide."""

    cells: Cells
    growth: tuple[int, ...]
    complete: bool
    n_exact: int = 0


def full_box(box: Box | tuple[ArrayLike, ArrayLike], dim: int) -> Box:
    """Return a full-dimensional box for ``dim`` inputs, or say what is wrong with the one given."""
    domain = as_box(box, dim)
    flat = domain.lower >= domain.upper
    if flat.any():
        i = int(flat.argmax())
        raise ValueError(
            f"the box is flat in coordinate {i} ({domain.lower[i]:g} to {domain.upper[i]:g}); cells "
            "there have no volume. Give it some width, or use along_segment or on_plane."
        )
    if dim > MAX_COMPLEX_INPUTS:
        raise ValueError(
            f"all cells can be listed for up to {MAX_COMPLEX_INPUTS} inputs; the network takes {dim}. "
            "Use region_at, explore, along_segment or on_plane instead."
        )
    return domain
