"""Which rule reads which torch operation: modules by their class, functions and methods by their name.

The rules have the argument names of the torch functions, so that traced calls fit as they stand. A rule
of a module takes the module first. Functions and methods share a table, because those of one name
compute the same; a method that ends in an underscore works in place and has the rule of the one that
does not.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from pindown.errors import UnsupportedModelError
from pindown.io._torch.attention import ATTENTION, ATTENTION_MODULES
from pindown.io._torch.elementwise import ELEMENTWISE, softmax
from pindown.io._torch.graph import Graph, Rule, no_rule
from pindown.io._torch.layers import (
    LAYERS,
    adaptive_pool,
    avg_pool_module,
    conv_module,
    conv_transpose_module,
    max_pool_module,
    unfold,
    upsample_module,
)
from pindown.io._torch.moves import MOVES, VIEWS, flatten, pad, unflatten
from pindown.io._torch.norms import (
    NORMS,
    batch_norm_module,
    group_norm,
    instance_norm_module,
    layer_norm,
    rms_norm,
)
from pindown.io._torch.products import PRODUCTS, bilinear, cosine_similarity, linear
from pindown.io._torch.recurrent import RECURRENT_MODULES
from pindown.io._torch.values import VALUES, same

_COMPARED = (
    "it compares computed tensors, and neither masks nor branches that depend on the input are read; "
    "use clamp, maximum or ReLU."
)
_CHOSEN = "it returns positions, which jump with the input and are not read."
_RANDOM = "it draws random numbers, so that the model is no function of its input."
_TABLE = (
    "it looks integers up in a table; pindown reads models of real numbers: read the part that begins "
    "after it."
)


def refused(reason: str) -> Rule:
    """Return the rule of what is not read, for a reason."""

    def rule(graph: Graph, *_: Any, **__: Any) -> Any:
        raise UnsupportedModelError(reason)

    return rule


RULES: dict[str, Rule] = {
    **ELEMENTWISE,
    **MOVES,
    **VALUES,
    **PRODUCTS,
    **LAYERS,
    **NORMS,
    **ATTENTION,
    **dict.fromkeys(
        ("gt", "ge", "lt", "le", "eq", "ne", "greater", "less", "isclose"), refused(_COMPARED)
    ),
    **dict.fromkeys(("argmax", "argmin", "argsort", "topk", "sort", "nonzero"), refused(_CHOSEN)),
    **dict.fromkeys(("rand_like", "randn_like", "bernoulli", "multinomial"), refused(_RANDOM)),
    **dict.fromkeys(("item", "tolist", "numpy"), refused("it takes a number out of a computed tensor.")),
    **dict.fromkeys(("embedding", "embedding_bag", "one_hot"), refused(_TABLE)),
}


def _named(name: str, *options: str) -> Rule:
    """Return the rule of a module that is a function with its attributes as arguments."""

    def rule(graph: Graph, m: Any, x: Any) -> Any:
        return RULES[name](graph, x, **{option: getattr(m, option) for option in options})

    return rule


def _padding(mode: str) -> Rule:
    return lambda graph, m, x: pad(graph, x, m.padding, mode, getattr(m, "value", 0.0))


def _dims(kinds: str, rule: Any, *arguments: Any) -> dict[type, Rule]:
    """Return rules of a family of classes such as ``AvgPool1d`` to ``AvgPool3d``."""
    return {
        getattr(nn, f"{kinds}{d}d"): rule(d, *arguments)
        for d in (1, 2, 3)
        if hasattr(nn, f"{kinds}{d}d")
    }


def _adaptive(dims: int, average: bool) -> Rule:
    pool = adaptive_pool(dims, average)
    return lambda graph, m, x: pool(graph, x, m.output_size, getattr(m, "return_indices", False))


MODULES: dict[type, Rule] = {
    nn.Linear: lambda graph, m, x: linear(graph, x, m.weight, m.bias),
    nn.Bilinear: lambda graph, m, x, y: bilinear(graph, x, y, m.weight, m.bias),
    **_dims("Conv", lambda d: conv_module),
    **_dims("ConvTranspose", lambda d: conv_transpose_module),
    nn.Unfold: lambda graph, m, x: unfold(graph, x, m.kernel_size, m.dilation, m.padding, m.stride),
    **_dims("MaxPool", max_pool_module),
    **_dims("AvgPool", avg_pool_module),
    **_dims("AdaptiveAvgPool", _adaptive, True),
    **_dims("AdaptiveMaxPool", _adaptive, False),
    **_dims("BatchNorm", lambda d: batch_norm_module),
    nn.SyncBatchNorm: batch_norm_module,
    **_dims("InstanceNorm", instance_norm_module),
    nn.GroupNorm: lambda graph, m, x: group_norm(graph, x, m.num_groups, m.weight, m.bias, m.eps),
    nn.LayerNorm: lambda graph, m, x: layer_norm(graph, x, m.normalized_shape, m.weight, m.bias, m.eps),
    nn.RMSNorm: lambda graph, m, x: rms_norm(graph, x, m.normalized_shape, m.weight, m.eps),
    nn.LocalResponseNorm: refused("LocalResponseNorm is not read; use BatchNorm or GroupNorm."),
    nn.ReLU: _named("relu"),
    nn.ReLU6: _named("relu6"),
    nn.LeakyReLU: _named("leaky_relu", "negative_slope"),
    nn.RReLU: _named("rrelu", "lower", "upper"),
    nn.PReLU: _named("prelu", "weight"),
    nn.Hardtanh: _named("hardtanh", "min_val", "max_val"),
    nn.ELU: _named("elu", "alpha"),
    nn.SELU: _named("selu"),
    nn.CELU: _named("celu", "alpha"),
    nn.GELU: _named("gelu", "approximate"),
    nn.SiLU: _named("silu"),
    nn.Mish: _named("mish"),
    nn.Hardswish: _named("hardswish"),
    nn.Hardsigmoid: _named("hardsigmoid"),
    nn.Softplus: _named("softplus", "beta", "threshold"),
    nn.Softsign: _named("softsign"),
    nn.Sigmoid: _named("sigmoid"),
    nn.Tanh: _named("tanh"),
    nn.LogSigmoid: _named("logsigmoid"),
    nn.Tanhshrink: _named("tanhshrink"),
    nn.Softshrink: _named("softshrink", "lambd"),
    nn.Hardshrink: _named("hardshrink", "lambd"),
    nn.Threshold: _named("threshold", "threshold", "value"),
    nn.GLU: _named("glu", "dim"),
    nn.Softmax: _named("softmax", "dim"),
    nn.LogSoftmax: _named("log_softmax", "dim"),
    nn.Softmin: _named("softmin", "dim"),
    nn.Softmax2d: lambda graph, m, x: softmax(graph, x, -3),
    nn.Flatten: lambda graph, m, x: flatten(graph, x, m.start_dim, m.end_dim),
    nn.Unflatten: lambda graph, m, x: unflatten(graph, x, m.dim, m.unflattened_size),
    **dict.fromkeys(
        (
            nn.Identity,
            nn.Dropout,
            nn.Dropout1d,
            nn.Dropout2d,
            nn.Dropout3d,
            nn.AlphaDropout,
            nn.FeatureAlphaDropout,
        ),
        lambda graph, m, x: same(graph, x),
    ),
    **_dims("ZeroPad", lambda d: _padding("constant")),
    **_dims("ConstantPad", lambda d: _padding("constant")),
    **_dims("ReflectionPad", lambda d: _padding("reflect")),
    **_dims("ReplicationPad", lambda d: _padding("replicate")),
    **_dims("CircularPad", lambda d: _padding("circular")),
    **dict.fromkeys((nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d), upsample_module),
    nn.PixelShuffle: _named("pixel_shuffle", "upscale_factor"),
    nn.PixelUnshuffle: _named("pixel_unshuffle", "downscale_factor"),
    nn.ChannelShuffle: _named("channel_shuffle", "groups"),
    nn.CosineSimilarity: lambda graph, m, x, y: cosine_similarity(graph, x, y, m.dim, m.eps),
    **dict.fromkeys((nn.Embedding, nn.EmbeddingBag), refused(_TABLE)),
    **ATTENTION_MODULES,
    **RECURRENT_MODULES,
}

# Modules by class, and functions by name, whose result shares memory with their input.
SHARING: frozenset[Any] = frozenset(
    {
        *VIEWS,
        *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout),
        *(nn.FeatureAlphaDropout, nn.Flatten, nn.Unflatten),
    }
)

_LIBRARIES = ("torch", "_operator", "builtins")


def is_known_function(function: Any) -> bool:
    """Return whether a function is torch's or Python's own; others are traced through."""
    return str(getattr(function, "__module__", "")).partition(".")[0] in _LIBRARIES


def name_of(target: Any) -> str:
    """Return the name of a function or method.

    >>> import operator, torch
    >>> name_of(torch.relu), name_of("relu_"), name_of(operator.add)
    ('relu', 'relu_', 'add')
    """
    return target if isinstance(target, str) else str(getattr(target, "__name__", target))


def function_rule(target: Any) -> Rule:
    """Return the rule of a function or method, or refuse it."""
    name = name_of(target)
    rule = RULES.get(name) or RULES.get(name.removesuffix("_").removeprefix("special_"))
    if rule is None:
        raise UnsupportedModelError(no_rule(name))
    return rule


def works_in_place(target: Any) -> bool:
    """Return whether a function or method changes its first argument.

    >>> import operator, torch
    >>> works_in_place("relu_"), works_in_place(operator.iadd), works_in_place(torch.relu)
    (True, True, False)
    """
    name = name_of(target)
    return name.endswith("_") or (
        getattr(target, "__module__", "") == "_operator" and name.startswith("i")
    )
