"""A look at an ONNX file's wire format before protobuf is allowed to build objects from it.

Two bytes on the wire can make protobuf allocate a hundred: a gzipped file of 100 kB that claims
fifty million empty nodes would take 8 GB before anybody could count them. So the fields are counted
first, without building anything; the tensors' bytes are stepped over.
"""

from __future__ import annotations

from pindown.errors import ModelFileError

MAX_FIELDS = 2_000_000  # about 100 bytes each once parsed; real models have thousands
MAX_PACKED_INTEGERS = 64_000_000  # bytes on the wire, up to eight times as many in memory

# Field numbers of onnx.proto, by message.
_MESSAGES = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
# Strings, bytes and packed floats: in memory they take what they take on the wire.
_BYTES = {
    "model": {2, 3, 4, 6},
    "graph": {2, 10},
    "node": {1, 2, 3, 4, 6, 7, 8},
    "attribute": {1, 4, 7, 9, 13},
    "sparse": set(),
    "tensor": {4, 6, 8, 9, 10, 12},
}
_PACKED_INTEGERS = {"attribute": {8}, "sparse": {3}, "tensor": {1, 5, 7, 11}}
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


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
