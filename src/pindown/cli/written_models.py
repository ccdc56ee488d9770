"""Model files that commands write: in the type that was read, and no larger unless asked for."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pindown.text import rounded_up

if TYPE_CHECKING:
    from pindown.box import Box
    from pindown.equivalence import Shrunk
    from pindown.model.graph import Model
    from pindown.network import ReluNetwork

# A canonical file may take this many times what was read, or this much more: names and shapes of small
# ones.
_GROWTH, _ROOM = 1.1, 1_000
_ENDINGS = (".onnx.gz", ".onnx", ".safetensors")
_BYTES = {"float16": 2, "float32": 4, "float64": 8}


class Written(NamedTuple):
    """A file to write, and what there is to say about it."""

    data: bytes
    remarks: list[str]


def shrunk_file(
    shrunk: Shrunk, source: Path, out: Path, box: Box | None, dtype: str, *, whole: bool
) -> Written:
    """Return the file of a smaller model.

    Args:
        shrunk: What was found; it was given a model.
        source: The file that was read.
        out: The file to write; its ending says as what.
        box: The inputs that count.
        dtype: The float type asked for, or ``"auto"``: the type that was read, or float64 where that is
            needed and takes no more.
        whole: Whether the file holds nothing but what was read of it, so that it may be copied.

    Raises:
        ValueError: If it would be larger than what was read, and that was not asked for.
    """
    from pindown.io.any_model import file_bytes

    beside = _bytes_beside(source)
    copies = whole and dtype == "auto" and _ending(source) == _ending(out) and not beside
    if copies and not shrunk.steps:
        return Written(source.read_bytes(), ["nothing can go: the file is copied as it is"])
    chosen, remarks = (dtype, []) if dtype != "auto" else _chosen_type(shrunk, box)
    data, size = file_bytes(shrunk.model, out, dtype=chosen), source.stat().st_size + beside
    if copies and len(data) > size:
        more = f"written again it would take {len(data):,} bytes, and it has {size:,}"
        return Written(source.read_bytes(), [f"the file is copied as it is: {more}"])
    if _ending(out) == ".safetensors" and dtype == "auto" and len(data) > size + _ROOM:
        raise ValueError(
            f"{source} has {size:,} bytes; as .safetensors, which holds dense layers only, the model "
            f"takes {len(data):,}. Write .onnx, or ask for it with --dtype {chosen}."
        )
    return Written(data, remarks)


def _chosen_type(shrunk: Shrunk, box: Box | None) -> tuple[str, list[str]]:
    """Return the type to write, and what that adds to the gap if it holds less than was proved."""
    from pindown.equivalence.shrinking.file_types import fits, rounding_gap
    from pindown.equivalence.shrinking.models import stored_numbers
    from pindown.model.graph import Model

    given = shrunk.original
    assert isinstance(given, Model)
    own = _own_type(given)
    if fits(shrunk.model, own):
        return own, []
    if _BYTES["float64"] * stored_numbers(shrunk.model) <= _BYTES[own] * stored_numbers(given):
        return "float64", ["written in float64, which its new numbers need"]
    bound = rounding_gap(shrunk.model, own, box)
    moved = "how far outputs move is not known"
    if bound < inf:
        moved = f"outputs move by at most {rounded_up(bound)}{'' if box is not None else ' x (1 + |x|)'}"
    return own, [
        f"new numbers are rounded to {own}, the type of the file: {moved}; --dtype float64 keeps them"
    ]


def canonical_file(
    net: ReluNetwork, model: Model, source: Path, out: Path, dtype: str, *, force: bool
) -> tuple[ReluNetwork, Written]:
    """Return a canonical network as it stands in its file, and the file.

    Raises:
        ValueError: If it would be larger than what was read, and that was not asked for.
    """
    from pindown.io.any_model import file_bytes

    chosen = _own_type(model) if dtype == "auto" else dtype
    written = _rounded(net, chosen)
    data = file_bytes(written, out, dtype=chosen)
    if not force and dtype == "auto":
        _require_small(source, len(data))
    lost = f"numbers are rounded to {chosen}, the type of the file; --dtype float64 keeps all digits"
    return written, Written(data, [] if written == net else [lost])


def require_canonical_fits(model: Model, source: Path, out: Path, dtype: str, *, force: bool) -> None:
    """Refuse before the work what would be too large: layers of a ReLU network are written in full.

    Raises:
        ValueError: If it would be larger than what was read, and that was not asked for.
    """
    from pindown.equivalence.shrinking.models import network_numbers

    if not force and dtype == "auto" and _ending(out) == ".onnx":
        _require_small(source, _BYTES[_own_type(model)] * network_numbers(model))


def _require_small(source: Path, wanted: int) -> None:
    size = source.stat().st_size + _bytes_beside(source)
    if wanted > max(_GROWTH * size, size + _ROOM):
        raise ValueError(
            f"{source} has {size:,} bytes; its canonical form, a ReLU network with dense layers, takes "
            f"at least {wanted:,}. Use --force to write it all the same."
        )


def _bytes_beside(source: Path) -> int:
    """Return how many bytes of weights an ONNX file keeps in files beside it."""
    if _ending(source) != ".onnx":
        return 0
    import onnx

    tensors = onnx.load(source, load_external_data=False).graph.initializer
    outside = [tensor for tensor in tensors if tensor.data_location == onnx.TensorProto.EXTERNAL]
    lengths = [int(entry.value) for t in outside for entry in t.external_data if entry.key == "length"]
    return sum(lengths) or len(outside)


def _own_type(model: Model) -> str:
    """Return the float type in which a model was read, as far as it can be written."""
    return model.dtype if model.dtype in _BYTES else "float32"


def _rounded(net: ReluNetwork, dtype: str) -> ReluNetwork:
    """Return a network with its numbers as a float type holds them."""
    import numpy as np

    from pindown.affine import Affine

    with np.errstate(over="ignore"):
        layers = [[part.astype(dtype).astype(np.float64) for part in layer] for layer in net.layers]
    return replace(net, layers=tuple(Affine.of(W, b) for W, b in layers))


def _ending(path: Path) -> str:
    return next((ending for ending in _ENDINGS if path.name.lower().endswith(ending)), path.suffix)
