"""Which operations an ONNX file has, as it names them."""

from __future__ import annotations

from collections import Counter
from os import PathLike
from pathlib import Path

from pindown.io.files import read_bytes, read_gzip


def operations_of(path: str | PathLike[str]) -> Counter[str]:
    """Return how often an ``.onnx`` or ``.onnx.gz`` file names each operation.

    >>> from tempfile import TemporaryDirectory
    >>> from pindown import ReluNetwork
    >>> with TemporaryDirectory() as folder:
    ...     ReluNetwork.from_layers([([[1.0]], [0]), ([[1.0]], [0])]).save(f"{folder}/net.onnx")
    ...     operations_of(f"{folder}/net.onnx")["Relu"]
    1
    """
    import onnx

    file = Path(path)
    data = read_gzip(file) if file.name.lower().endswith(".gz") else read_bytes(file)
    nodes = onnx.load_from_string(data).graph.node
    own = ("", "ai.onnx")
    return Counter(
        node.op_type if node.domain in own else f"{node.domain}.{node.op_type}" for node in nodes
    )
