"""Attention in one node, as onnxruntime's optimiser of transformers writes it."""

from __future__ import annotations

import math

import numpy as np

from pindown.errors import ModelFileError, UnsupportedModelError
from pindown.io._onnx.arithmetic import plus, times
from pindown.io._onnx.contrib import FLOAT, INT, INTS, Contract
from pindown.io._onnx.data_movement import sliced, transposed, with_shape
from pindown.io._onnx.merging import biased
from pindown.io._onnx.node import MASKED, Node, Rule, Value
from pindown.io._onnx.products import product
from pindown.model.builder import Tensor
from pindown.model.operations.dense import Scale
from pindown.model.operations.softmax import Softmax

_FILTER = -10_000.0  # what is added to hidden entries unless the node says otherwise


def _attention(node: Node) -> Value:
    """Project a sequence to queries, keys and values with one weight, and let it attend to itself."""
    x, W = node.operand(0), node.weight(1)
    _require_plain(node, same=(0, 1, 2, 5), past=(4, 6))
    if len(x.shape) != 3 or W.ndim != 2:
        raise ModelFileError(f"Attention of a tensor {x.shape} with a weight {W.shape} does not exist.")
    widths = node.integers("qkv_hidden_sizes") or (W.shape[1] // 3,) * 3
    if len(widths) != 3 or sum(widths) != W.shape[1] or widths[0] != widths[1]:
        raise ModelFileError(f"Attention cannot cut {W.shape[1]} columns into {tuple(widths)}.")
    made = product(node, x, W)
    if node.given(2):
        made = _with_bias(node, made, _vector(node, 2, W.shape[1]))
    ends = [0, *np.cumsum(widths).tolist()]
    q, k, v = (sliced(node, made, 2, *ends[i : i + 2]) for i in range(3))
    return _attended(node, q, k, v, mask=3, added=5)


def _multi_head_attention(node: Node) -> Value:
    """Let queries attend to keys, which are made elsewhere; a bias may be added first."""
    _require_plain(node, same=(0, 1, 2, 3, 5), past=(6, 7, 8, 9))
    if not (node.given(1) and node.given(2)):
        raise UnsupportedModelError(
            "MultiHeadAttention with queries, keys and values in one is not read."
        )
    parts = [node.operand(i) for i in range(3)]
    if any(len(part.shape) != 3 for part in parts):
        shapes = " and ".join(str(part.shape) for part in parts)
        raise UnsupportedModelError(f"MultiHeadAttention of tensors {shapes} is not read.")
    if node.given(3):
        widths = [part.shape[2] for part in parts]
        b, ends = _vector(node, 3, sum(widths)), [0, *np.cumsum(widths).tolist()]
        parts = [_with_bias(node, part, b[ends[i] : ends[i + 1]], i) for i, part in enumerate(parts)]
    return _attended(node, *parts, mask=4, added=5)


def _require_plain(node: Node, *, same: tuple[int, ...], past: tuple[int, ...]) -> None:
    """Refuse what is not read, and inputs of different types."""
    if any(node.given(i) for i in past) or node.integer("do_rotary", 0):
        raise UnsupportedModelError(f"{node.op} with a past or rotated positions is not read.")
    kinds = {node.type(i) for i in same if node.given(i) and node.type(i)}
    if len(kinds) > 1:
        raise ModelFileError(f"{node.op} takes numbers of one type; got {' and '.join(sorted(kinds))}.")


def _vector(node: Node, i: int, length: int) -> np.ndarray:
    b = node.weight(i)
    if b.shape != (length,):
        raise ModelFileError(f"{node.op} needs a bias of {length} numbers; got {b.shape}.")
    return b


def _with_bias(node: Node, x: Value, b: np.ndarray, i: int | None = None) -> Value:
    """Add a bias to a product, as a part of it where nobody else reads the product."""
    if not isinstance(x, Tensor):
        return np.asarray(x + b)
    done = biased(node, x, b, i)
    return node.apply(Scale(None, b, "Add", b.size), x) if done is None else done


def _attended(node: Node, q: Value, k: Value, v: Value, *, mask: int, added: int) -> Value:
    r"""Return :math:`\mathrm{softmax}(Q K^T s + M) V` for every head, side by side."""
    heads, (batch, n, width), length = node.integer("num_heads", 0), q.shape, k.shape[1]
    if heads < 1 or width % heads or v.shape[2] % heads or k.shape != (batch, length, width):
        raise ModelFileError(f"{heads} heads do not fit queries {q.shape} and keys {k.shape}.")
    if v.shape[:2] != k.shape[:2]:
        raise ModelFileError(f"keys {k.shape} and values {v.shape} do not belong together.")
    q, k, v = (_by_head(node, part, heads) for part in (q, k, v))
    scale = node.finite("scale", 0.0) or 1.0 / math.sqrt(width // heads)
    scores = times(node, product(node, q, transposed(node, k, (0, 1, 3, 2))), np.array(scale))
    if node.given(added):
        scores = plus(node, scores, _fitting(node, added, (batch, heads, n, length)), None, added)
    if node.given(mask):
        scores = plus(node, scores, _hiding(node, mask, batch, length))
    if node.flag("unidirectional", False):
        scores = plus(node, scores, np.triu(np.full((n, length), MASKED), 1 + length - n))
    mixed = product(node, node.apply(Softmax(-1), scores), v)
    return with_shape(node, transposed(node, mixed, (0, 2, 1, 3)), (batch, n, v.shape[3] * heads))


def _by_head(node: Node, x: Value, heads: int) -> Value:
    """Turn (batch, length, width) into (batch, heads, length, width of a head)."""
    batch, length, width = x.shape
    return transposed(node, with_shape(node, x, (batch, length, heads, width // heads)), (0, 2, 1, 3))


def _fitting(node: Node, i: int, shape: tuple[int, ...]) -> Value:
    value = node.operand(i)
    if len(value.shape) != 4 or any(n not in (1, m) for n, m in zip(value.shape, shape, strict=True)):
        raise ModelFileError(f"what is added to the scores has the shape {value.shape}, not {shape}.")
    if value.shape[2:] != shape[2:]:
        raise ModelFileError(f"what is added to the scores has the shape {value.shape}, not {shape}.")
    return value


def _hiding(node: Node, i: int, batch: int, length: int) -> np.ndarray:
    """Return what hides the keys whose entry in a constant mask is zero."""
    mask = node.constant(i)
    if node.type(i) not in ("", "int32"):
        raise ModelFileError(f"{node.op} needs a mask of type int32; got {node.type(i)}.")
    if mask.shape != (batch, length):
        raise UnsupportedModelError(
            f"{node.op} with a mask of shape {mask.shape} is not read, only with one entry for each key."
        )
    low = node.finite("mask_filter_value", _FILTER)
    return np.where(mask > 0, 0.0, low).reshape(batch, 1, 1, length)


_SHARED = {"mask_filter_value": FLOAT, "num_heads": INT, "scale": FLOAT, "unidirectional": INT}
_OWN = {"do_rotary": INT, "past_present_share_buffer": INT, "qkv_hidden_sizes": INTS}
ATTENTION: dict[str, tuple[Rule, Contract]] = {
    "Attention": (_attention, Contract(2, 7, {**_SHARED, **_OWN}, outputs=2, alike=False)),
    "MultiHeadAttention": (_multi_head_attention, Contract(1, 10, _SHARED, outputs=4, alike=False)),
}
