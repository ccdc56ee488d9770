"""A complex on disk, read file by file as it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.errors import DataFileError
from pindown.geometry.complex._cell_search import joined
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.regions.region import Region
from pindown.geometry.subboxes._shards import (
    NETWORK_FILE,
    as_bytes,
    box_of,
    keys_and_flips,
    read_cells,
    read_network,
)
from pindown.geometry.subboxes.streamed_passes import ComplexStatistics, statistics_of
from pindown.json_files import CHECKSUM, read_record
from pindown.network import ReluNetwork

FORMAT = "pindown complex"
VERSION = 2
_UNSEALED = 1  # the version before has no checksums


@dataclass(frozen=True, eq=False, repr=False)
class StreamedComplex:
    """All full-dimensional cells of a network on a box, kept in files.

    Cells are numbered in the order of the files. One file is in memory at a time.

    Attributes:
        folder: Where the files are.
        net: The network.
        box: The domain.
        certified: Whether every sign was proved or decided in exact arithmetic.
        n_regions: Number of cells, all of them.
        files: For each file its name, its size in bytes and its number of cells.
    """

    folder: Path
    net: ReluNetwork
    box: Box
    certified: bool
    n_regions: int
    files: tuple[tuple[str, int, int], ...]

    def __len__(self) -> int:
        return self.n_regions

    @cached_property
    def _keys(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return keys_and_flips(self.net)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Number of the first cell of each file, and of one past the last."""
        return np.concatenate([[0], np.cumsum([n for _, _, n in self.files], dtype=np.int64)])

    def shard(self, k: int) -> PolyhedralComplex:
        """Return the cells of file k, with everything that a complex knows of its cells.

        ``complete`` is False there, for they are not all cells; ``neighbours`` are those in the file.

        Raises:
            DataFileError: If the file is missing, damaged, or does not hold cells of this network.
        """
        name, n_bytes, n = self.files[k]
        cells = read_cells(self.folder / name, self.net, *self._keys, n_bytes)
        if cells.n != n:
            raise DataFileError(f"{name} holds {cells.n} cells; the table of contents says {n}.")
        return PolyhedralComplex(self.net, self.box, False, self.certified, (), cells)

    def shards(self) -> Iterator[PolyhedralComplex]:
        """Yield the cells of one file after the other."""
        for k in range(len(self.files)):
            yield self.shard(k)

    def __iter__(self) -> Iterator[Region]:
        for part in self.shards():
            yield from part.regions

    def region(self, i: int) -> Region:
        """Return cell i; its file is read for it, so take whole files where many cells are wanted."""
        k = range(self.n_regions)[i]
        file = int(np.searchsorted(self.starts, k, side="right")) - 1
        return self.shard(file).regions[k - int(self.starts[file])]

    def volumes(self) -> Iterator[Array]:
        """Yield the volumes of the cells, file by file."""
        for part in self.shards():
            yield part.volumes

    def statistics(self) -> ComplexStatistics:
        """Return counts, volumes, slopes and the range of the outputs, from one pass over the files."""
        return statistics_of(self.net, self.shards())

    def neighbours(
        self, *, memory: int | float | str = "256MB"
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield pairs i < j of cells that share a facet, (m, 2), and the unit that switches there, (m,).

        Args:
            memory: What keys of cells may take; with less the files are read more often. Facets
                at which several units switch at once are matched together, and not counted.
        """
        from pindown.geometry.subboxes.streamed_passes import streamed_neighbours

        return streamed_neighbours(self, as_bytes(memory))

    def load(self) -> PolyhedralComplex:
        """Return the whole complex in memory.

        ``growth`` is empty: it is not kept in files.
        """
        cells = joined([part.cells for part in self.shards()])
        return PolyhedralComplex(self.net, self.box, True, self.certified, (), cells)

    def __repr__(self) -> str:
        cells = "1 cell" if self.n_regions == 1 else f"{self.n_regions:,} cells"
        files = "1 file" if len(self.files) == 1 else f"{len(self.files):,} files"
        return f"StreamedComplex({cells} in {files})"


def read_complex(folder: str | PathLike[str]) -> StreamedComplex:
    """Open a complex that :func:`~pindown.geometry.stream_complex` has written.

    Files may come from anywhere: no code in them is run, and what they claim is checked before memory is
    taken for it.

    Args:
        folder: The folder.

    Raises:
        DataFileError: If there is no finished complex in the folder, or its files are damaged.

    >>> from tempfile import TemporaryDirectory
    >>> from pindown.geometry import stream_complex
    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
    >>> with TemporaryDirectory() as folder:
    ...     _ = stream_complex(net, (-1, 1), folder)
    ...     read_complex(folder)
    StreamedComplex(2 cells in 1 file)
    """
    where = Path(folder)
    if not (where / "index.json").is_file():
        begun = (where / "plan.json").is_file()
        what = "is not finished; call stream_complex with resume=True" if begun else "holds no complex"
        raise DataFileError(f"{where} {what}.")
    contents = read_record(where / "index.json")
    if contents.get("format") != FORMAT:
        raise DataFileError(f"{where / 'index.json'} is no table of contents of a complex.")
    if contents.get("version") != (VERSION if CHECKSUM in contents else _UNSEALED):
        raise DataFileError(
            f"the complex has format version {contents.get('version')}; this pindown reads {VERSION}."
        )
    net = read_network(where / NETWORK_FILE)
    if net.fingerprint != contents.get("network"):
        raise DataFileError(f"{where / NETWORK_FILE} is not the network that the cells belong to.")
    files = tuple(_entry(shard) for shard in _listed(contents))
    box, n = box_of(contents.get("box")), contents.get("n_regions")
    if n != sum(cells for _, _, cells in files) or box.dim != net.in_features:
        raise DataFileError(f"the table of contents in {where} contradicts itself.")
    return StreamedComplex(where, net, box, bool(contents.get("certified")), int(n), files)


def _listed(contents: dict[str, Any]) -> list[Any]:
    shards = contents.get("shards")
    if not isinstance(shards, list):
        raise DataFileError("the table of contents lists no files.")
    return shards


def _entry(shard: Any) -> tuple[str, int, int]:
    """Return name, size and number of cells; a name that leads out of the folder is refused."""
    try:
        name, n_bytes, cells = str(shard["file"]), int(shard["bytes"]), int(shard["cells"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataFileError(f"the table of contents is damaged: {error}.") from None
    if Path(name).name != name or not name.endswith(".npz") or n_bytes < 0 or cells < 1:
        raise DataFileError(f"the table of contents names {name!r}, which is no file of a complex.")
    return name, n_bytes, cells
