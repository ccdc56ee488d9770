"""Cells to files and back, and how many of them fit in a given amount of memory.

Arrays are stored in NPZ files, uncompressed, so a file cannot unpack to more than its own size. What
was finished stays finished: each file is there completely or not at all.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.atomic_files import whole_file, writing_to
from pindown.box import Box
from pindown.errors import DataFileError
from pindown.geometry.complex._cell_search import unit_hashes
from pindown.geometry.complex._cells import Cells
from pindown.geometry.complex.proportional_units import flip_hashes, proportional_units
from pindown.geometry.tuning import CELL_COPIES, LIBRARY_BYTES, MAX_CELLS_PER_BATCH, MIN_CELL_BYTES
from pindown.network import ReluNetwork
from pindown.validation import is_number, refuse

NETWORK_FILE = "network.npz"
_ARRAYS = ("vertex_starts", "facet_starts", "coords", "facets", "patterns", "keys", "maps")
_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_VERTICES_PER_CELL = 8  # as a store reserves them
Arrays = Mapping[str, NDArray[Any]]
# What NumPy and zipfile raise at damaged files, encrypted or of a kind they do not know.
_DAMAGE = (OSError, ValueError, KeyError, EOFError, RuntimeError, SyntaxError, zipfile.BadZipFile)
_KINDS = {"f8", "i8", "i4", "u8"}  # float64 and whole numbers, little-endian


def as_bytes(memory: int | float | str) -> int:
    """Return an amount of memory in bytes.

    >>> as_bytes("256MB"), as_bytes("1 GiB"), as_bytes(5e8)
    (256000000, 1073741824, 500000000)
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", memory)
        if match is None or match[2].lower() not in _UNITS:
            refuse("memory", "a number of bytes or a text like '512MB'", memory)
        return int(float(match[1]) * _UNITS[match[2].lower()])
    if not is_number(memory, 1, 2.0**60):
        refuse("memory", "a number of bytes or a text like '512MB'", memory)
    return int(memory)


def room_for(net: ReluNetwork, memory: int) -> int:
    """Return how many cells a process may hold at a time.

    Raises:
        ValueError: If the libraries alone take that much.
    """
    left = memory - LIBRARY_BYTES
    room = left // (CELL_COPIES * _cell_bytes(net)) if left >= MIN_CELL_BYTES else 0
    if room < 1:
        least = LIBRARY_BYTES + max(MIN_CELL_BYTES, CELL_COPIES * _cell_bytes(net))
        raise ValueError(
            f"memory must be at least {least / 1e6:,.0f} MB for this network; got "
            f"{memory / 1e6:,.0f} MB. Python and its libraries alone take {LIBRARY_BYTES / 1e6:.0f} MB."
        )
    return int(min(room, MAX_CELLS_PER_BATCH))


def patterns_for(net: ReluNetwork, memory: int) -> int:
    """Return how many patterns a process may sort and look for at a time."""
    each = 32 * _pattern_words(net) + 2 * net.size + 256
    return max(1_024, (memory - LIBRARY_BYTES) // (CELL_COPIES * each))


def _cell_bytes(net: ReluNetwork) -> int:
    d = net.in_features
    vertices = _VERTICES_PER_CELL * (8 * d + 8 + 4)
    return 24 + vertices + 8 * _pattern_words(net) + 8 * net.out_features * (d + 1)


def _pattern_words(net: ReluNetwork) -> int:
    return sum((width + 63) // 64 for width in net.hidden_widths)


def write_cells(path: Path, cells: Cells) -> dict[str, Any]:
    """Write cells to a file; return what the table of contents says about it."""
    arrays = {name: getattr(cells, name) for name in _ARRAYS}
    if cells.masks is not None:
        arrays["masks"] = cells.masks
    return {**write_arrays(path, arrays), "cells": cells.n}


def read_cells(
    path: Path, net: ReluNetwork, hashes: NDArray[np.uint64], flips: NDArray[np.uint64], n_bytes: int
) -> Cells:
    """Read the cells of one file, and check that they fit the network and each other."""
    names = _ARRAYS if net.in_features <= 2 else (*_ARRAYS, "masks")
    found = read_arrays(path, names, n_bytes)
    cells = Cells(
        hidden_widths=net.hidden_widths,
        masks=found.pop("masks", None),
        hashes=hashes,
        flips=flips,
        **found,
    )
    if not _fit(cells, net):
        raise DataFileError(f"{path.name} does not hold cells of this network.")
    return cells


def _fit(cells: Cells, net: ReluNetwork) -> bool:
    d, n = net.in_features, len(cells.keys)
    vertices, facets = len(cells.coords), len(cells.facets)
    wanted: dict[str, tuple[tuple[int, ...], str]] = {
        "vertex_starts": ((n + 1,), "i8"),
        "facet_starts": ((n + 1,), "i8"),
        "coords": ((vertices, d), "f8"),
        "facets": ((facets,), "i4"),
        "patterns": ((n, _pattern_words(net)), "u8"),
        "keys": ((n,), "u8"),
        "maps": ((n, d + 1, net.out_features), "f8"),
    }
    if cells.masks is not None:
        wanted["masks"] = ((vertices, cells.masks.shape[-1]), "u8")
    for name, (shape, kind) in wanted.items():
        array = getattr(cells, name)
        if array.shape != shape or array.dtype.str[1:] != kind:
            return False
    # Compiled loops trust these numbers, so they are looked at one by one.
    runs = ((cells.vertex_starts, vertices), (cells.facet_starts, facets))
    ordered = all(s[0] == 0 and s[-1] == end and (np.diff(s) > 0).all() for s, end in runs)
    labelled = cells.facets.min(initial=0) >= 0 and cells.facets.max(initial=0) < net.size + 2 * d
    if (
        cells.masks is not None
        and np.diff(cells.facet_starts).max(initial=0) > 64 * cells.masks.shape[1]
    ):
        return False
    return ordered and bool(labelled) and (cells.masks is None or _masks_fit(cells))


def _masks_fit(cells: Cells) -> bool:
    """Return whether no vertex claims a facet that its cell does not have."""
    assert cells.masks is not None
    owner = np.repeat(np.arange(cells.n), np.diff(cells.vertex_starts))
    words = np.arange(cells.masks.shape[1])
    left = np.clip(np.diff(cells.facet_starts)[owner, None] - 64 * words, 0, 64)
    beyond = np.where(left < 64, cells.masks >> np.minimum(left, 63).astype(np.uint64), np.uint64(0))
    return bool((beyond == 0).all())


def write_network(path: Path, net: ReluNetwork) -> None:
    """Write the weights of a network."""
    from pindown.affine import dense

    arrays: dict[str, NDArray[Any]] = {"depth": np.array([net.depth], np.int64)}
    for k, layer in enumerate(net.layers):
        arrays[f"weight{k}"] = np.ascontiguousarray(dense(layer.weight))
        arrays[f"bias{k}"] = layer.bias
    write_arrays(path, arrays)


def read_network(path: Path) -> ReluNetwork:
    """Read the weights of a network."""
    depth = int(read_arrays(path, ["depth"])["depth"].reshape(-1)[0])
    names = [f"{kind}{k}" for k in range(min(depth, 10_000)) for kind in ("weight", "bias")]
    found = read_arrays(path, names)
    try:
        return ReluNetwork.from_layers([(found[f"weight{k}"], found[f"bias{k}"]) for k in range(depth)])
    except (ValueError, KeyError) as error:
        raise DataFileError(f"{path.name} does not hold a network: {error}") from None


def keys_and_flips(net: ReluNetwork) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hashes that keys of cells are made of, and what keys change by across folds."""
    hashes = unit_hashes(net)
    return hashes, flip_hashes(net, proportional_units(net), hashes)


def box_of(corners: Any) -> Box:
    """Return the box that a table of contents names."""
    try:
        return Box(*corners)
    except (TypeError, ValueError) as error:
        raise DataFileError(f"the table of contents names no box: {error}") from None


def write_arrays(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Write arrays, one after the other, without a second copy of them all; say what was written."""
    with writing_to(path.parent), whole_file(path, sweep=False) as file:
        np.savez(file, allow_pickle=False, **arrays)
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": _digest(path)}


def is_as_written(folder: Path, entry: Mapping[str, Any]) -> bool:
    """Return whether a file is there and is what :func:`write_arrays` said."""
    path = folder / Path(entry["file"]).name
    return path.stat().st_size == entry["bytes"] and _digest(path) == entry["sha256"]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_arrays(path: Path, names: Sequence[str], n_bytes: int | None = None) -> dict[str, Any]:
    """Read arrays by name; what the file claims is checked before memory is taken for it.

    Args:
        path: The file.
        names: Which arrays; others in the file are not touched.
        n_bytes: How large the file has to be, if that is known.

    Raises:
        DataFileError: If the file is missing, damaged, of another size, compressed, or has other arrays.
    """
    try:
        size = path.stat().st_size
        if n_bytes is not None and size != n_bytes:
            raise DataFileError(f"{path.name} has {size:,} bytes; {n_bytes:,} were written.")
        with zipfile.ZipFile(path) as archive:
            return {name: _read_array(archive, name, size) for name in names}
    except _DAMAGE as error:
        if isinstance(error, DataFileError):
            raise
        raise DataFileError(f"{path} is missing, damaged or no file of a complex: {error}.") from None


def _read_array(archive: zipfile.ZipFile, name: str, size: int) -> NDArray[Any]:
    entry = archive.getinfo(f"{name}.npy")
    if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > size:
        raise DataFileError(f"array {name} is compressed or claims more than the file holds.")
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version != (1, 0):
            raise DataFileError(f"array {name} has a header that pindown does not write.")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        claimed = dtype.itemsize * int(np.prod(shape, dtype=object))
        if dtype.str[1:] not in _KINDS or fortran or dtype.str[0] == ">" or claimed > entry.file_size:
            raise DataFileError(f"array {name} is {dtype} of shape {shape}, not one that was written.")
        data = file.read(claimed)
        if len(data) != claimed or file.read(1):  # at its end the archive compares its checksum
            raise DataFileError(f"array {name} is cut short, or longer than it says.")
        return np.frombuffer(data, dtype=dtype).reshape(shape)
