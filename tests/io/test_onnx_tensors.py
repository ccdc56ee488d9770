"""Files whose parsed form would be hundreds of times their size are refused before parsing."""

import gzip
import resource
import subprocess
import sys

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from pindown import load
from pindown.errors import ModelFileError
from pindown.io._onnx.tensors import check_structure


def varint(value: int) -> bytes:
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def field(number: int, content: bytes) -> bytes:
    """One length-delimited field on the wire."""
    return varint(number << 3 | 2) + varint(len(content)) + content


FEW, EMPTY = 2_000, 3_000
BOMBS = {
    "nodes": field(7, field(1, b"") * EMPTY),
    "attributes": field(7, field(1, field(5, b"") * EMPTY)),
    "strings of a tensor": field(7, field(5, field(6, b"") * EMPTY)),
    "nested graphs": field(7, field(1, field(5, field(6, field(1, b"") * EMPTY)))),
    "value_info": field(7, field(13, b"") * EMPTY),
    "functions": field(25, field(7, b"") * EMPTY),
    "scalars": field(7, field(5, b"\x10\x01" * EMPTY)),
    "packed integers": field(7, field(5, field(7, b"\x00" * EMPTY))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused(name, monkeypatch):
    check_structure(BOMBS[name])  # small as it is, it is sound
    monkeypatch.setattr("pindown.io._onnx.tensors.MAX_FIELDS", FEW)
    monkeypatch.setattr("pindown.io._onnx.tensors.MAX_PACKED_INTEGERS", FEW)
    with pytest.raises(ModelFileError, match="millions"):
        check_structure(BOMBS[name])


def test_a_gzipped_bomb_takes_little_memory(tmp_path):
    """A file of 100 kB that would take 8 GB once parsed."""
    bomb = tmp_path / "bomb.onnx.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(field(7, field(1, b"") * 50_000_000))
    code = (
        f"import pindown\ntry:\n    pindown.load({str(bomb)!r})\nexcept ValueError as e:\n    print(e)"
    )

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=limit, check=False
    )
    assert "millions" in done.stdout, done.stderr


@given(st.binary(max_size=200))
def test_whatever_protobuf_accepts_passes_the_scan_and_nothing_else_is_lost(data):
    """The scan never refuses a small file that protobuf would read (groups apart, which ONNX lacks)."""
    try:
        onnx.ModelProto().ParseFromString(data)
        sound = True
    except Exception:
        sound = False
    try:
        check_structure(data)
        passed = True
    except ModelFileError:
        passed = False
    if sound and not passed:
        assert any(byte & 7 in (3, 4) for byte in data)


def test_a_model_with_many_weights_and_nodes_passes(tmp_path):
    x = helper.make_tensor_value_info("x0", onnx.TensorProto.FLOAT, ["n", 2])
    y = helper.make_tensor_value_info("x3000", onnx.TensorProto.FLOAT, ["n", 2])
    nodes = [helper.make_node("Identity", [f"x{i}"], [f"x{i + 1}"]) for i in range(3000)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 13)]
    )
    onnx.save(model, tmp_path / "long.onnx")
    assert load(tmp_path / "long.onnx").relu_network().widths == (2, 2)
