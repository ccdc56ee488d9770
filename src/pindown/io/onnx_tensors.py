"""Decoding of ONNX tensors: what a tensor claims is checked against what the file holds."""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io.files import require_file
from pindown.io.limits import check_entries, check_rank


class _Storage(NamedTuple):
    """How one ONNX element type is stored: raw bytes of ``dtype``, or numbers in a typed field."""

    dtype: str
    field: str
    is_bits: bool = False  # the typed field holds bit patterns, not numbers


_BFLOAT16 = 16
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
READABLE_TYPES = frozenset(_STORAGE)


def decode_tensor(proto: Any, folder: Path | None) -> NDArray[Any]:
    """Return the numbers of a ``TensorProto``: float64, int64 or bool.

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
    return _widened(values, proto.data_type).reshape(shape)


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
