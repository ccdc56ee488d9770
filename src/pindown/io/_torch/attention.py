"""Rules for attention and transformers, as ``torch.nn`` has them."""

from __future__ import annotations

import math
from typing import Any

import torch

from pindown.errors import UnsupportedModelError
from pindown.io._torch.elementwise import add, scaled
from pindown.io._torch.graph import Graph, Rule, array
from pindown.io._torch.moves import repeat_interleave, squeeze, transpose, unsqueeze
from pindown.io._torch.products import linear, matmul, mean
from pindown.model.builder import Tensor
from pindown.model.operations.normalisation import Softmax


def _bias_of(mask: Any) -> Any:
    """Return what a mask adds to the scores; of booleans, ``True`` lets a position take part."""
    if isinstance(mask, Tensor):
        return mask
    if mask.dtype == torch.bool:
        return torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, -math.inf)
    return mask


def scaled_dot_product_attention(
    graph: Graph,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``softmax(query @ key.T * scale + mask) @ value``."""
    return _attended(graph, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


def _attended(
    graph: Graph,
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    if dropout_p > 0:
        raise UnsupportedModelError("it drops at random also in evaluation mode; pass dropout_p=0.0.")
    query, key, value = map(graph.tensor, (query, key, value))
    if enable_gqa:
        shared = query.shape[-3] // key.shape[-3]
        key, value = (repeat_interleave(graph, part, shared, -3) for part in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else float(scale)
    scores = matmul(graph, scaled(graph, query, factor), transpose(graph, key, -1, -2))
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        scores = add(graph, scores, _bias_of(mask))
    weights = graph.add(Softmax(len(scores.shape) - 1), scores)
    return matmul(graph, weights, value), weights


def multihead_attention(
    graph: Graph,
    m: Any,
    query: Any,
    key: Any,
    value: Any,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return the attention of all heads, joined, and the weights (if asked for)."""
    if m.bias_k is not None or m.add_zero_attn:
        raise UnsupportedModelError("add_bias_kv and add_zero_attn are not read.")
    query, key, value = map(graph.tensor, (query, key, value))
    unbatched = len(query.shape) == 2
    batch = 0 if m.batch_first or unbatched else 1
    query, key, value = (
        unsqueeze(graph, part, 0) if unbatched else transpose(graph, part, 0, batch)
        for part in (query, key, value)
    )
    heads = [_heads(graph, m, i, part) for i, part in enumerate((query, key, value))]
    mask = None if attn_mask is None else _excluded(attn_mask)
    if mask is not None and mask.ndim == 3:  # (batch * heads, ...)
        mask = mask.unflatten(0, (query.shape[0], m.num_heads))
    if key_padding_mask is not None:
        padded = _excluded(key_padding_mask)
        padded = (padded[None] if padded.ndim == 1 else padded)[:, None, None]
        mask = padded if mask is None else mask + padded
    attended, weights = _attended(graph, heads[0], heads[1], heads[2], mask)
    n, length, _ = query.shape
    joined = graph.reshape(transpose(graph, attended, 1, 2), (n, length, m.embed_dim))
    out = graph.call(m.out_proj, "out_proj", joined)
    out = squeeze(graph, out, 0) if unbatched else transpose(graph, out, 0, batch)
    if not need_weights:
        return out, None
    if average_attn_weights:
        weights = mean(graph, weights, 1)
    return out, squeeze(graph, weights, 0) if unbatched else weights


def _excluded(mask: Any) -> Any:
    """Return what a mask adds to the scores; of booleans, ``True`` excludes a position here."""
    if isinstance(mask, Tensor):
        raise UnsupportedModelError("a mask that is computed from the input is not read.")
    return _bias_of(~mask if mask.dtype == torch.bool else mask)


def _heads(graph: Graph, m: Any, i: int, x: Tensor) -> Tensor:
    """Project query (0), key (1) or value (2), cut into heads: (n, heads, length, size)."""
    if m._qkv_same_embed_dim:
        whole, span = m.in_proj_weight, slice(i * m.embed_dim, (i + 1) * m.embed_dim)
    else:
        whole, span = (m.q_proj_weight, m.k_proj_weight, m.v_proj_weight)[i], slice(None)
    bias = m.in_proj_bias

    from pindown.model.operations.dense import Dense

    def make() -> Dense:
        own = None if bias is None else array(bias[i * m.embed_dim : (i + 1) * m.embed_dim])
        return Dense(array(whole[span]), own)

    projected = graph.add(graph.once("in_proj", make, whole, bias, i), x)
    n, length, _ = x.shape
    return transpose(graph, graph.reshape(projected, (n, length, m.num_heads, m.head_dim)), 1, 2)


# ---------------------------------------------------------------------- transformers


def _activation(graph: Graph, m: Any, x: Tensor) -> Tensor:
    """Apply what lies between the two linear layers, a module or a function."""
    from pindown.io._torch.ops import function_rule

    if isinstance(m.activation, torch.nn.Module):
        return graph.call(m.activation, "activation", x)
    return function_rule(m.activation)(graph, x)


def _feed_forward(graph: Graph, m: Any, x: Tensor) -> Tensor:
    hidden = _activation(graph, m, graph.call(m.linear1, "linear1", x))
    return graph.call(m.linear2, "linear2", hidden)


def encoder_layer(
    graph: Graph,
    m: Any,
    src: Tensor,
    src_mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool = False,
) -> Tensor:
    """Return self-attention and a feed-forward block, each with its shortcut and layer norm."""

    def attend(x: Tensor) -> Tensor:
        out, _ = graph.call(m.self_attn, "self_attn", x, x, x, src_key_padding_mask, False, src_mask)
        return out

    return _residual(graph, m, src, (("norm1", attend), ("norm2", lambda x: _feed_forward(graph, m, x))))


def decoder_layer(
    graph: Graph,
    m: Any,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    tgt_is_causal: bool = False,
    memory_is_causal: bool = False,
) -> Tensor:
    """Return self-attention, attention to the memory and a feed-forward block, with shortcuts."""

    def attend(x: Tensor) -> Tensor:
        out, _ = graph.call(m.self_attn, "self_attn", x, x, x, tgt_key_padding_mask, False, tgt_mask)
        return out

    def look_up(x: Tensor) -> Tensor:
        masks = (memory_key_padding_mask, False, memory_mask)
        out, _ = graph.call(m.multihead_attn, "multihead_attn", x, memory, memory, *masks)
        return out

    blocks = (("norm1", attend), ("norm2", look_up), ("norm3", lambda x: _feed_forward(graph, m, x)))
    return _residual(graph, m, graph.tensor(tgt), blocks)


def _residual(graph: Graph, m: Any, x: Tensor, blocks: Any) -> Tensor:
    """Add every block's result to what went in; its norm comes before the block or after the sum."""
    for name, block in blocks:
        norm = getattr(m, name)
        if m.norm_first:
            x = add(graph, x, block(graph.call(norm, name, x)))
        else:
            x = graph.call(norm, name, add(graph, x, block(x)))
    return x


def _stacked(graph: Graph, m: Any, x: Tensor, *memory: Any, **masks: Any) -> Tensor:
    for i, layer in enumerate(m.layers):
        x = graph.call(layer, f"layers.{i}", x, *memory, **masks)
    return x if m.norm is None else graph.call(m.norm, "norm", x)


def encoder(
    graph: Graph,
    m: Any,
    src: Tensor,
    mask: Any = None,
    src_key_padding_mask: Any = None,
    is_causal: bool | None = None,
) -> Tensor:
    """Return the layers one after the other."""
    return _stacked(graph, m, src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)


def decoder(
    graph: Graph,
    m: Any,
    tgt: Tensor,
    memory: Tensor,
    tgt_mask: Any = None,
    memory_mask: Any = None,
    tgt_key_padding_mask: Any = None,
    memory_key_padding_mask: Any = None,
    tgt_is_causal: bool | None = None,
    memory_is_causal: bool = False,
) -> Tensor:
    """Return the layers one after the other."""
    masks = {
        "tgt_mask": tgt_mask,
        "memory_mask": memory_mask,
        "tgt_key_padding_mask": tgt_key_padding_mask,
        "memory_key_padding_mask": memory_key_padding_mask,
    }
    return _stacked(graph, m, tgt, memory, **masks)


def transformer(
    graph: Graph,
    m: Any,
    src: Tensor,
    tgt: Tensor,
    src_mask: Any = None,
    tgt_mask: Any = None,
    **masks: Any,
) -> Tensor:
    """Return the decoder's result on what the encoder made of the source."""
    if any(mask is not None and mask is not False for mask in masks.values()):
        raise UnsupportedModelError(f"of {', '.join(masks)} pindown reads none for nn.Transformer.")
    memory = graph.call(m.encoder, "encoder", src, src_mask)
    return graph.call(m.decoder, "decoder", tgt, memory, tgt_mask)


ATTENTION: dict[str, Rule] = {"scaled_dot_product_attention": scaled_dot_product_attention}
ATTENTION_MODULES: dict[type, Rule] = {
    torch.nn.MultiheadAttention: multihead_attention,
    torch.nn.TransformerEncoderLayer: encoder_layer,
    torch.nn.TransformerDecoderLayer: decoder_layer,
    torch.nn.TransformerEncoder: encoder,
    torch.nn.TransformerDecoder: decoder,
    torch.nn.Transformer: transformer,
    torch.nn.modules.linear.NonDynamicallyQuantizableLinear: lambda graph, m, x: linear(
        graph, x, m.weight, m.bias
    ),
}
