r"""Certificates: a log of what was proved as a file that others can check, and a search can go on from.

``docs/certificates.md`` has the format down to the byte; ``checker/pindown_check.py`` reads it and
shares no code with this module. A file has a head, a JSON object with the claim, and arrays.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.atomic_files import whole_file
from pindown.errors import CertificateError
from pindown.text import printable
from pindown.verification.proof_log import (
    BY_BOXES,
    BY_ENDS,
    BY_SIGNS,
    CUT,
    LEAF,
    OPEN,
    SHRUNK,
    SHRUNK_AND_CUT,
    CutTree,
    InnerBounds,
    ProofLog,
    SignLeaf,
    SignLog,
)
from pindown.verification.properties import Property, UnsafeSet

MAGIC = b"pindown proof\r\n\x1a"
VERSION = 3
_HEAD = struct.Struct("<16sIIQ32s")  # magic, version, length of the JSON, length of all, its SHA-256
MAX_FILE = 100_000_000  # bytes of a certificate
MAX_UNPACKED = 1_000_000_000
MAX_TEXT = 10_000_000
_WAYS = {"": 0, BY_ENDS: 1, BY_BOXES: 2, BY_SIGNS: 3}

Arrays = dict[str, NDArray[Any]]


class ModelFile(NamedTuple):
    """A model's file, as a certificate names it.

    Attributes:
        name: Name of the file.
        sha256: SHA-256 of its decompressed bytes.
    """

    name: str
    sha256: str

    @classmethod
    def of(cls, path: str | PathLike[str]) -> ModelFile:
        """Read a file and hash it; a gzipped one is decompressed."""
        from pindown.io.files import read_bytes, read_gzip

        file = Path(path)
        data = read_gzip(file) if file.name.lower().endswith(".gz") else read_bytes(file)
        return cls(printable(file.name), hashlib.sha256(data).hexdigest())


# ---------------------------------------------------------------------- what is claimed


def claim_of(
    prop: Property, models: Sequence[ModelFile], *, inner: bool
) -> tuple[dict[str, Any], Arrays]:
    """Return a claim as the JSON object and the arrays of a certificate.

    Args:
        prop: The property.
        models: The models' files.
        inner: Whether to write the sets that a witness has to lie in, rounded inwards.
    """
    sets = [unsafe.inside if inner else unsafe for unsafe in prop.unsafe]
    boxes: dict[bytes, int] = {}
    corners: list[Array] = []
    which = []
    for unsafe in sets:
        key = unsafe.lower.tobytes() + unsafe.upper.tobytes()
        if key not in boxes:
            boxes[key] = len(corners)
            corners.append(np.array([unsafe.lower, unsafe.upper]))
        which.append(boxes[key])
    d, k = prop.n_free, sum(prop.n_outputs)
    arrays: Arrays = {
        "boxes": np.array(corners, np.float64).reshape(-1, 2, d),
        "set_box": np.array(which, np.int32),
        "set_rows": np.array([len(unsafe.limits) for unsafe in sets], np.int32),
        "rows": np.concatenate([np.zeros((0, k)), *(unsafe.rows for unsafe in sets)]),
        "limits": np.concatenate([np.zeros(0), *(unsafe.limits for unsafe in sets)]),
        "strict": np.concatenate([np.zeros(0, np.uint8), *map(_strict, sets)]),
    }
    if any(unsafe.input_rows is not None for unsafe in sets):
        own = [
            np.zeros((len(unsafe.limits), d)) if unsafe.input_rows is None else unsafe.input_rows
            for unsafe in sets
        ]
        arrays["input_rows"] = np.concatenate([np.zeros((0, d)), *own])
    claim: dict[str, Any] = {
        "models": [{"name": m.name, "sha256": m.sha256} for m in models],
        "inputs": d,
        "networks": _networks(prop),
        "words": str(prop),
    }
    return claim, arrays


def _networks(prop: Property) -> list[dict[str, Any]]:
    """Return of each network its model, how many outputs it has, and what it reads unless it is all."""
    found: list[dict[str, Any]] = []
    every = list(range(prop.n_free))
    for i, n in enumerate(prop.n_outputs):
        own: dict[str, Any] = {"model": 0 if prop.models is None else int(prop.models[i]), "outputs": n}
        reads = every if prop.reads is None else np.asarray(prop.reads[i]).tolist()
        found.append(own if reads == every else {**own, "reads": reads})
    return found


def _strict(unsafe: UnsafeSet) -> NDArray[np.uint8]:
    if unsafe.strict is None:
        return np.zeros(len(unsafe.limits), np.uint8)
    return unsafe.strict.astype(np.uint8)


# ---------------------------------------------------------------------- what is proved


@dataclass(eq=False)
class Frontier:
    """What a search left open, by its numbers in the log's trees.

    Attributes:
        boxes: Corners of boxes, each (2, d), with their bounds.
        parts: Of every set, its open choices of signs with the best bounds known.
    """

    boxes: dict[int, tuple[Array, float]] = field(default_factory=dict)
    parts: dict[int, dict[int, tuple[SignLeaf, float]]] = field(default_factory=dict)


def proof_arrays(log: ProofLog, prop: Property, frontier: Frontier) -> Arrays:
    """Return a log as the arrays of a certificate; ``log.refused`` says why, if it cannot be one."""
    n = len(prop.unsafe)
    arrays: Arrays = {"proof": np.array([_WAYS[log.proved.get(s, "")] for s in range(n)], np.uint8)}
    wanted = {
        way: [s for s in range(n) if log.proved.get(s, way) == way] for way in (BY_BOXES, BY_SIGNS)
    }
    boxes = [s for s in wanted[BY_BOXES] if s in log.box_roots]
    _box_arrays(log, boxes, frontier, prop.n_free, arrays)
    signs = _sign_arrays(log, [s for s in wanted[BY_SIGNS] if s in log.signs], frontier, arrays)
    if len(log.proved) < n:  # else they follow from how the sets are proved
        arrays["box_sets"], arrays["sign_sets"] = (np.array(sets, np.int32) for sets in (boxes, signs))
    elif any(s not in boxes + signs for s, way in log.proved.items() if way != BY_ENDS):
        log.refuse("a set was proved by a step that certificates do not have")
    return arrays


def _joined(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)


def _box_arrays(log: ProofLog, sets: list[int], frontier: Frontier, d: int, arrays: Arrays) -> None:
    kinds, places, corners = [], [], []
    for s in sets:
        nodes, kind, place = log.boxes.walk(log.box_roots[s])
        left = nodes[kind == OPEN].tolist()
        if left and s in log.proved:
            log.refuse("boxes were proved by a step that certificates do not have")
        missing = np.full((2, d), np.nan), np.inf  # a box that is too thin to be cut is not kept
        corners += [frontier.boxes.get(node, missing) for node in left]
        kinds.append(kind)
        places.append(place)
    arrays["box_kinds"], arrays["box_places"] = _joined(kinds, np.uint8), _joined(places, np.uint16)
    if corners:
        arrays["open_boxes"] = np.array([each for each, _ in corners])
        arrays["open_box_bounds"] = np.array([bound for _, bound in corners])


def _sign_arrays(log: ProofLog, sets: list[int], frontier: Frontier, arrays: Arrays) -> list[int]:
    """Write trees of signs; return the sets of which they are."""
    kept, kinds, places, ends, bounds = [], [], [], [], []
    for s in sets:
        signs, parts = log.signs[s], frontier.parts.get(s, {})
        signs.tree.reopen(parts)  # a round that was interrupted had cut what still waits
        nodes, kind, place = signs.tree.walk(0)
        if (kind == OPEN).any() and s in log.proved:
            log.refuse("choices of signs were proved by a step that certificates do not have")
        known = signs.leaves | {node: leaf for node, (leaf, _) in parts.items()}
        own = [known.get(node) for node in nodes[kind != CUT].tolist()]
        told = [each for each in own if each is not None]
        if len(told) == len(own):  # else this tree begins anew when the search goes on
            kept.append(s)
            kinds.append(kind)
            places.append(place)
            ends += told
            bounds += [parts[node][1] for node in nodes[kind == OPEN].tolist()]
    used = list(dict.fromkeys(log.signs[s].root for s in kept))
    arrays["sign_root"] = np.array([used.index(log.signs[s].root) for s in kept], np.int32)
    arrays["sign_kinds"], arrays["sign_places"] = _joined(kinds, np.uint8), _joined(places, np.int32)
    arrays["sign_slopes"] = _joined([each.slopes for each in ends], np.uint8)
    arrays["sign_multipliers"] = _joined([each.multipliers for each in ends], np.float32)
    arrays["sign_weights"] = _joined([each.weights for each in ends], np.float64)
    if bounds:
        arrays["open_sign_bounds"] = np.array(bounds)
    tensors = [tensor for r in used for tensor in log.roots[r]]
    arrays["root_lower"] = _joined([t.lower for t in tensors], np.float32)
    arrays["root_upper"] = _joined([t.upper for t in tensors], np.float32)
    arrays["root_counts"] = np.array([len(t.entries) for t in tensors], np.int32)
    arrays["root_entries"] = _joined([t.entries for t in tensors], np.int32)
    arrays["root_slopes"] = _joined([t.slopes.ravel() for t in tensors], np.uint8)
    return kept


# ---------------------------------------------------------------------- bytes


def packed(claim: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return a certificate's bytes.

    Raises:
        CertificateError: If it is larger than certificates may be.
    """
    table = [[name, a.dtype.newbyteorder("<").str, list(a.shape)] for name, a in arrays.items()]
    text = json.dumps({**claim, "arrays": table}, separators=(",", ":")).encode()
    body = b"".join(
        [text, *(np.ascontiguousarray(a, a.dtype.newbyteorder("<")).tobytes() for a in arrays.values())]
    )
    if len(text) > MAX_TEXT:
        raise CertificateError(f"its text would have {len(text) / 1e6:,.0f} MB")
    head = _HEAD.pack(MAGIC, VERSION, len(text), len(body), hashlib.sha256(body).digest())
    data = head + zlib.compress(body, 6)
    if len(data) > MAX_FILE or len(body) > MAX_UNPACKED:
        raise CertificateError(
            f"it would have {len(data) / 1e6:,.0f} MB, and {MAX_FILE / 1e6:,.0f} MB are allowed"
        )
    return data


def unpacked(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON object and the arrays of a certificate's bytes.

    Raises:
        CertificateError: If they are none.
    """
    try:
        magic, version, n_text, n_body, digest = _HEAD.unpack_from(data)
        if magic != MAGIC or version != VERSION:
            raise CertificateError("it is no certificate, or one of another version")
        if n_body > MAX_UNPACKED:
            raise CertificateError("it is larger than certificates may be")
        body = zlib.decompressobj().decompress(data[_HEAD.size :], n_body + 1)
        if len(body) != n_body or hashlib.sha256(body).digest() != digest:
            raise CertificateError("it is damaged: its checksum does not fit")
        claim = json.loads(body[:n_text])
        arrays, at = {}, n_text
        for name, kind, shape in claim.pop("arrays"):
            dtype, count = np.dtype(kind), int(np.prod(shape, dtype=object))
            if dtype.kind not in "fiu":
                raise CertificateError("it has arrays of another type")
            arrays[name] = np.frombuffer(body, dtype, count, at).reshape(shape)
            at += count * dtype.itemsize
    except CertificateError:
        raise
    except (struct.error, zlib.error, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise CertificateError("it is damaged, or no certificate") from None
    return claim, arrays


def write_certificate(path: str | PathLike[str], data: bytes) -> None:
    """Write a certificate: whole, or not at all."""
    place = Path(path).resolve()
    with whole_file(place) as file:
        file.write(data)


# ---------------------------------------------------------------------- going on


class _Stream:
    """The arrays of a certificate, read from the front."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays, self.at = arrays, dict.fromkeys(arrays, 0)

    def take(self, name: str, n: int) -> NDArray[Any]:
        """Return the next n entries of an array."""
        start = self.at[name]
        if start + n > len(self.arrays[name]):
            raise ValueError(f"the array {name} ends too early.")
        self.at[name] = start + n
        return self.arrays[name][start : start + n]

    def tree(self, way: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """Return the kinds and places of the next tree."""
        kinds, start = self.arrays[f"{way}_kinds"], self.at[f"{way}_kinds"]
        left, end = 1, start
        while left:
            left += (0 if kinds[end] <= LEAF else 1 if kinds[end] == SHRUNK else 2) - 1
            end += 1
        own = self.take(f"{way}_kinds", end - start)
        n_cuts = int(np.isin(own, (CUT, SHRUNK_AND_CUT)).sum())
        return own, self.take(f"{way}_places", n_cuts).astype(np.int32)


def restored(arrays: Arrays, prop: Property, sizes: Sequence[int]) -> tuple[ProofLog, Frontier]:
    """Return the log and the frontier that a certificate holds.

    Args:
        arrays: Arrays of the certificate.
        prop: The property that it is about.
        sizes: Sizes of the tensors that enter ReLUs, in order.

    Raises:
        CertificateError: If its arrays do not fit together.
    """
    log, frontier, stream = ProofLog(), Frontier(), _Stream(arrays)
    try:
        ways = {number: way for way, number in _WAYS.items()}
        for s, number in enumerate(arrays["proof"][: len(prop.unsafe)].tolist()):
            if number:
                log.proved[s] = ways[number]
        for s in arrays["box_sets"].tolist():
            log.box_roots[s], left = log.boxes.grow(*stream.tree("box"))
            for node in left.tolist():
                (corners,), (bound,) = (stream.take(f"open_box{n}", 1) for n in ("es", "_bounds"))
                frontier.boxes[node] = corners, float(bound)
        roots = arrays["sign_root"].tolist()
        for _ in range(max(roots, default=-1) + 1):
            log.roots.append(_restored_root(stream, sizes))
        for s, r in zip(arrays["sign_sets"].tolist(), roots, strict=True):
            signs = log.signs[s] = SignLog(r)
            n_units = sum(int(((t.lower < 0) & (t.upper > 0)).sum()) for t in log.roots[r])
            signs.tree = CutTree()
            signs.tree.grow(*stream.tree("sign"))
            frontier.parts[s] = {}
            for node, depth, kind in signs.tree.ends():
                leaf = SignLeaf(
                    stream.take("sign_slopes", n_units),
                    stream.take("sign_multipliers", depth),
                    stream.take("sign_weights", max(1, len(prop.unsafe[s].limits))),
                )
                if kind == LEAF:
                    signs.leaves[node] = leaf
                else:
                    frontier.parts[s][node] = leaf, float(stream.take("open_sign_bounds", 1)[0])
    except (KeyError, ValueError, IndexError, TypeError, OverflowError):
        raise CertificateError("it is damaged: its arrays do not fit together") from None
    return log, frontier


def _restored_root(stream: _Stream, sizes: Sequence[int]) -> list[InnerBounds]:
    tensors: list[InnerBounds] = []
    n_units = 0
    for size in sizes:
        (n,) = stream.take("root_counts", 1).tolist()
        low, high = stream.take("root_lower", size), stream.take("root_upper", size)
        slopes = stream.take("root_slopes", n * n_units).reshape(n, n_units)
        tensors.append(InnerBounds(low, high, stream.take("root_entries", n), slopes))
        n_units += int(((low < 0) & (high > 0)).sum())
    return tensors
