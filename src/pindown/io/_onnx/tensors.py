"""Decoding of ONNX bytes: what a file or a tensor claims is checked against what is there.

Two bytes on the wire can make protobuf allocate a hundred: a gzipped file of 100 kB that claims
fifty million empty nodes would take 8 GB before anybody could count them. So the fields are counted
first, without building anything; the tensors' bytes are stepped over.
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.files import require_file
from pindown.model.limits import MAX_FIELDS, MAX_PACKED_INTEGERS, check_entries, check_rank

_BFLOAT16 = 16
_FIELD_DTYPES = {
    "float_data": "<f4",
    "double_data": "<f8",
    "int32_data": "<i8",
    "int64_data": "<i8",
    "uint64_data": "<u8",
}
FLOAT_TYPES = frozenset({1, 10, 11, _BFLOAT16})
HALF_TYPES = frozenset({10, _BFLOAT16})
INTEGER_TYPES = frozenset({2, 3, 4, 5, 6, 7, 12, 13})
BOOL_TYPE = 9
_ROUNDING_TYPES = {"tensor(float)": 1, "tensor(float16)": 10, "tensor(bfloat16)": _BFLOAT16}
# Field numbers of onnx.proto, by message.
_MESSAGES = {
    "model": {7: "graph", 25: "function"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
# Strings, bytes and packed floats: in memory they take what they take on the wire.
_BYTES = {
    "model": {2, 3, 4, 6},
    "function": {1, 4, 5, 6, 8, 10, 13},
    "graph": {2, 10},
    "node": {1, 2, 3, 4, 6, 7, 8},
    "attribute": {1, 4, 7, 9, 13},
    "sparse": set(),
    "tensor": {4, 6, 8, 9, 10, 12},
}
_PACKED_INTEGERS = {"attribute": {8}, "sparse": {3}, "tensor": {1, 5, 7, 11}}
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


class _Storage(NamedTuple):
    """How one ONNX element type is stored: raw bytes of ``dtype``, or numbers in a typed field."""

    dtype: str
    field: str
    is_bits: bool = False  # the typed field holds bit patterns, not numbers


_STORAGE = {
    1: _Storage("<f4", "float_data"),
    2: _Storage("<u1", "int32_data"),
    3: _Storage("<i1", "int32_data"),
    4: _Storage("<u2", "int32_data"),
    5: _Storage("<i2", "int32_data"),
    6: _Storage("<i4", "int32_data"),
    7: _Storage("<i8", "int64_data"),
    9: _Storage("|b1", "int32_data"),
    10: _Storage("<f2", "int32_data", is_bits=True),
    11: _Storage("<f8", "double_data"),
    12: _Storage("<u4", "uint64_data"),
    13: _Storage("<u8", "uint64_data"),
    _BFLOAT16: _Storage("<u2", "int32_data", is_bits=True),
}
READABLE_TYPES = frozenset(_STORAGE)


def decode_tensor(proto: Any, folder: Path | None) -> NDArray[Any]:
    """Return the numbers of a ``TensorProto``: float64, int64 or bool, read-only.

    Args:
        proto: The tensor as parsed.
        folder: Where the model file lies; tensors stored outside of it are read from there only.

    Raises:
        ModelFileError: If the tensor does not hold what it claims.
        UnsupportedModelError: If its element type is none that weights have.
    """
    name = proto.name or "without a name"
    if proto.data_type not in _STORAGE:
        raise UnsupportedModelError(
            f"tensor '{name}' has the element type number {proto.data_type}; "
            "pindown reads floats of 16 to 64 bits (also bfloat16), integers of 8 to 64 bits, and bool."
        )
    if proto.HasField("segment"):
        raise UnsupportedModelError(f"tensor '{name}' is stored in segments, which is not read.")
    storage = _STORAGE[proto.data_type]
    shape = check_rank(proto.dims, f"tensor '{name}'")
    if any(n < 0 for n in shape):
        raise ModelFileError(f"tensor '{name}' claims the impossible shape {shape}.")
    count = check_entries(*shape, what=f"tensor '{name}'")

    if proto.data_location == proto.EXTERNAL:
        raw = _external_bytes(proto, count * np.dtype(storage.dtype).itemsize, folder)
        values = _from_bytes(raw, storage, shape, name)
    elif proto.HasField("raw_data"):
        values = _from_bytes(proto.raw_data, storage, shape, name)
    else:
        values = _from_field(getattr(proto, storage.field), storage, shape, name)
    numbers = _widened(values, proto.data_type).reshape(shape)
    numbers.flags.writeable = False  # so that operations share it without a copy
    return numbers


def _from_bytes(raw: bytes, storage: _Storage, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    dtype = np.dtype(storage.dtype)
    needed = math.prod(shape) * dtype.itemsize
    if len(raw) != needed:
        raise ModelFileError(
            f"tensor '{name}' claims the shape {shape}, which takes {needed:,} bytes; "
            f"it holds {len(raw):,}."
        )
    return np.frombuffer(raw, dtype)


def _from_field(numbers: Any, storage: _Storage, shape: tuple[int, ...], name: str) -> NDArray[Any]:
    needed = math.prod(shape)
    if len(numbers) != needed:
        raise ModelFileError(
            f"tensor '{name}' claims the shape {shape}, which takes {needed:,} numbers; "
            f"it holds {len(numbers):,}."
        )
    if storage.is_bits:
        return np.array(numbers, dtype=np.int64).astype("<u2").view(storage.dtype)
    return np.array(numbers, dtype=_FIELD_DTYPES[storage.field]).astype(storage.dtype)


def _widened(values: NDArray[Any], data_type: int) -> NDArray[Any]:
    """Turn floats into float64 and integers into int64; both hold the smaller types exactly."""
    if data_type == _BFLOAT16:
        # bfloat16 is the upper half of a float32.
        return (values.astype("<u4") << 16).view("<f4").astype(np.float64)
    if data_type in FLOAT_TYPES:
        return values.astype(np.float64)
    return values.astype(np.bool_ if data_type == BOOL_TYPE else np.int64)


def narrowed(values: NDArray[Any], data_type: int) -> NDArray[Any]:
    """Return float64 numbers as rounded to another float type.

    >>> narrowed(np.array([0.1, 1.0]), _BFLOAT16)
    array([0.10009766, 1.        ])
    """
    if data_type != _BFLOAT16:
        return values.astype(_STORAGE[data_type].dtype).astype(np.float64)
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.round(fraction * 2**8) / 2**8, exponent)  # eight digits are kept


def as_type(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """Return float64 numbers as rounded to a type by its name; the same array if nothing changes.

    >>> as_type(np.array([0.1, 1.0]), "tensor(float16)")
    array([0.09997559, 1.        ])
    """
    number = _ROUNDING_TYPES.get(kind)
    if number is None or values.dtype != np.float64:
        return values
    made = narrowed(values, number)
    return values if np.array_equal(made, values, equal_nan=True) else made


def _external_bytes(proto: Any, needed: int, folder: Path | None) -> bytes:
    facts = {entry.key: entry.value for entry in proto.external_data}
    path = _external_path(facts.get("location", ""), proto.name, folder)
    size = require_file(path)
    try:
        offset = int(facts.get("offset", "0"))
        length = int(facts.get("length", str(size - offset)))
    except ValueError:
        raise ModelFileError(f"tensor '{proto.name}' has no numeric place in {path.name}.") from None
    if not 0 <= offset <= offset + length <= size:
        raise ModelFileError(
            f"tensor '{proto.name}' claims bytes {offset:,} to {offset + length:,} of {path.name}, "
            f"which has {size:,}."
        )
    if length < needed or ("length" in facts and length != needed):
        raise ModelFileError(
            f"tensor '{proto.name}' needs {needed:,} bytes; {path.name} gives it {length:,}."
        )
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(needed)
    except OSError as error:
        raise ModelFileError(f"{path.name} cannot be read: {error}.") from None


def _external_path(location: str, name: str, folder: Path | None) -> Path:
    """Return the data file, which must lie beside the model: its name is a stranger's word."""
    if folder is None:
        raise ModelFileError(
            f"tensor '{name}' is stored in the file '{location}'; load the model from its path."
        )
    plain = location not in ("", ".", "..") and "\0" not in location
    if (
        not plain
        or PurePosixPath(location).name != location
        or PureWindowsPath(location).name != location
    ):
        raise ModelFileError(
            f"tensor '{name}' points to the data file '{location}'; "
            "pindown reads only files that lie in the model's own directory, named without a path."
        )
    path = folder / location
    if path.resolve().parent != folder.resolve():
        raise ModelFileError(
            f"tensor '{name}' points to '{location}', a link that leads out of the model's directory."
        )
    if not path.exists():
        raise ModelFileError(
            f"the data file '{location}' of tensor '{name}' is missing; keep it beside the model."
        )
    return path


def check_structure(data: bytes) -> None:
    r"""Refuse a serialised ONNX model that would take far more memory than its bytes.

    Raises:
        ModelFileError: If there are too many fields, or the bytes are not protobuf.

    >>> check_structure(b"\x08\x07")  # ir_version: 7
    """
    fields = integers = 0
    stack = [("model", 0, len(data))]
    while stack:
        kind, position, end = stack.pop()
        while position < end:
            key, position = _varint(data, position, end)
            number, wire = key >> 3, key & 7
            fields += 1
            if wire == _VARINT:
                _, position = _varint(data, position, end)
            elif wire in (_FIXED64, _FIXED32):
                position += 8 if wire == _FIXED64 else 4
            elif wire == _DELIMITED:
                length, position = _varint(data, position, end)
                if number in _MESSAGES[kind]:
                    stack.append((_MESSAGES[kind][number], position, position + length))
                elif number in _PACKED_INTEGERS.get(kind, ()):
                    integers += length
                elif number not in _BYTES[kind]:
                    fields += length // 2  # a message that is not looked into: the worst it can hold
                position += length
            else:
                raise damaged()
            if position > end:
                raise damaged()
            if fields > MAX_FIELDS or integers > MAX_PACKED_INTEGERS:
                raise ModelFileError(
                    "the file claims millions of nodes or small values; no network looks like that."
                )


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            raise damaged()
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise damaged()


def damaged() -> ModelFileError:
    """Return the complaint about bytes that are not a whole ONNX file."""
    return ModelFileError(
        "this is not an ONNX file, or it is cut short or damaged; export or download it again."
    )
