r"""The tangent kernel of a network as it is, for ReLU networks by their structure, without a Jacobian.

The derivative of an output by the weights of layer l is the outer product of what comes down to the
layer, :math:`\delta_l`, and what goes up into it, :math:`a_{l-1}`. Inner products of outer products
are products of inner products, so that

.. math:: K(x, x') = \sum_l \bigl(\langle a_{l-1}(x), a_{l-1}(x')\rangle + 1\bigr)
    \,\langle \delta_l(x), \delta_l(x')\rangle

(the 1 is for the bias) needs two Gram matrices per layer and never the parameters side by side. Modules
with convolutions and norms go layer by layer too, in :mod:`pindown.bias.tangent_kernel.layerwise`; what
remains is differentiated row by row, in :mod:`pindown.bias.tangent_kernel._autodiff`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, is_finite
from pindown.bias.tangent_kernel.gram import as_pair
from pindown.bias.tuning import (
    CLOSED_FORM_COPIES,
    CLOSED_FORM_MEMORY,
    JACOBIAN_MEMORY,
    MIN_CLOSED_FORM_ROWS,
)
from pindown.network import ReluNetwork
from pindown.validation import choice, positive

Method = Literal["auto", "closed", "jacobian", "products"]
Outputs: TypeAlias = Literal["mean", "each", "full"]


def empirical_ntk(
    module_or_net: Any,
    X1: Any,
    X2: Any = None,
    *,
    outputs: Outputs = "mean",
    method: Method = "auto",
    biases: bool = True,
    memory: float | None = None,
) -> Array:
    r"""Return the neural tangent kernel of a network at its present parameters.

    .. math:: K(x, x') = \frac1k \sum_{j=1}^k \nabla_w f_j(x, w)^\top \nabla_w f_j(x', w)

    over all trained parameters :math:`w`, biases included: the plain Gram matrix of the Jacobian. While
    the kernel stays what it is, training on the half sum of squares moves the outputs by
    :math:`\dot f = -K (f - y)`.

    A ``ReluNetwork``, and a ``Sequential`` of ``Linear`` and ``ReLU``, has a closed form: two Gram
    matrices per layer and no Jacobian. So has any module whose parameters lie in linear layers,
    convolutions, batch and layer norms, each used once, whatever lies between them; that the layers add
    up to the gradient is checked on two rows. Everything else is differentiated by ``torch.func``.

    Args:
        module_or_net: A ``ReluNetwork`` (all weights and biases count as parameters, also those of an
            unrolled convolution, whose own kernel only the module knows) or a ``torch.nn.Module`` in
            evaluation mode that maps each row on its own (parameters without ``requires_grad`` do not
            count).
        X1: Inputs (n1, d), or (n1, ...) as the module takes them.
        X2: Inputs (n2, d); X1 again by default.
        outputs: ``"mean"`` of the kernels of the k outputs, which is the convention of
            neural-tangents (``trace_axes=(-1,)``) and has the infinite-width kernel as its limit;
            ``"each"`` output's own kernel, with a last axis k; ``"full"``, with the products of
            different outputs too, and two last axes (k, k).
        method: ``"closed"`` form, ``"jacobian"`` blocks, or ``"products"`` of Jacobians and vectors,
            which store no Jacobian; ``"auto"`` takes the closed form where there is one.
        biases: Whether biases count as parameters.
        memory: Bytes that blocks may take; None is 16 MB for Gram matrices of closed forms and 1 GB for
            Jacobians and what is kept of layers.

    Returns:
        The kernel (n1, n2) in float64, with axes for outputs as asked.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, the module is in a mode where rows
            depend on each other, or no closed form is known although it was asked for.
        TypeError: If it is neither a network nor a module.

    Example:
        A linear model without bias has the kernel of inner products:

        >>> net = ReluNetwork.from_layers([([[5.0, 7.0]], [0.0])])
        >>> empirical_ntk(net, [[1.0, 2.0], [0.0, 1.0]], biases=False)
        array([[5., 2.],
               [2., 1.]])

    Jacot, Gabriel and Hongler 2018. Lecture course, slides on the neural tangent kernel.
    """
    choice("outputs", outputs, ("mean", "each", "full"))
    choice("method", method, ("auto", "closed", "jacobian", "products"))
    room = None if memory is None else positive("memory", memory, infinite=True)
    module, layers = _read(module_or_net, biases, method)
    if layers is None or (method == "auto" and _acts_on_last_axis(module_or_net, X1)):
        first, second = as_pair(X1, X2, flat=False)
        room = JACOBIAN_MEMORY if room is None else room
        return _within_floats(_of_module(module, first, second, outputs, method, biases, room))
    first, second = _rows(module_or_net, layers, X1, X2)
    room = CLOSED_FORM_MEMORY if room is None else room
    with np.errstate(over="ignore", invalid="ignore"):
        return _within_floats(_by_blocks(layers, first, second, outputs, room))


def _of_module(
    module: Any,
    first: Array,
    second: Array | None,
    outputs: Outputs,
    method: Method,
    biases: bool,
    memory: float,
) -> Array:
    from pindown.bias.tangent_kernel._autodiff import autodiff_ntk
    from pindown.bias.tangent_kernel.layerwise import NotLayerwiseError, layerwise_ntk

    if method in ("auto", "closed"):
        try:
            return layerwise_ntk(module, first, second, outputs, biases=biases, memory=memory)
        except NotLayerwiseError:
            if method == "closed":
                raise ValueError(
                    f"no closed form is known for {type(module).__name__}: its parameters have to lie "
                    "in linear layers, convolutions, batch or layer norms in evaluation mode, each used "
                    "once; use method='auto'."
                ) from None
    return autodiff_ntk(
        module, first, second, outputs, biases=biases, memory=memory, products=method == "products"
    )


def _by_blocks(
    layers: list[TangentLayer], first: Array, second: Array | None, outputs: Outputs, memory: float
) -> Array:
    """Return the closed form, in blocks of rows where the Gram matrices of all layers are too large."""
    other = first if second is None else second
    side = int((min(memory, 2.0**60) / (8.0 * (len(layers) + CLOSED_FORM_COPIES))) ** 0.5)
    rows = max(MIN_CLOSED_FORM_ROWS, side)
    if rows >= max(len(first), len(other)):
        return closed_form_ntk(layers, first, second, outputs)
    k = layers[-1].weight.shape[0]
    axes = {"mean": (), "each": (k,), "full": (k, k)}[outputs]
    kernel = np.empty((len(first), len(other), *axes))
    for i in range(0, len(first), rows):
        left = _forward(layers, first[i : i + rows])
        for j in range(i if second is None else 0, len(other), rows):
            same = second is None and i == j
            right = None if same else _forward(layers, other[j : j + rows])
            part = _between(layers, left, right, outputs)
            kernel[i : i + rows, j : j + rows] = part
            if second is None and not same:
                turned = part.swapaxes(0, 1)
                kernel[j : j + rows, i : i + rows] = (
                    turned.swapaxes(2, 3) if outputs == "full" else turned
                )
    return kernel


def _within_floats(kernel: Array) -> Array:
    if not is_finite(kernel):
        raise ValueError(
            "the kernel is not finite for these inputs and parameters: it overflows float64, or the "
            "module returns NaN; scale the inputs down."
        )
    return kernel


def _read(model: Any, biases: bool, method: Method) -> tuple[Any, list[TangentLayer] | None]:
    """Return the module to differentiate, or the layers if the closed form is to be used."""
    if isinstance(model, ReluNetwork):
        if method in ("auto", "closed"):
            return None, layers_of_network(model, biases)
        return model.to_torch(), None
    try:
        from torch import nn
    except ImportError:
        nn = None
    if nn is None or not isinstance(model, nn.Module):
        raise TypeError(
            f"empirical_ntk takes a ReluNetwork or a torch.nn.Module; got {type(model).__name__}."
        )
    return model, layers_of_module(model, biases) if method in ("auto", "closed") else None


def _acts_on_last_axis(model: Any, X: Any) -> bool:
    """Return whether rows have several axes of which a linear layer would see the last only."""
    return not isinstance(model, ReluNetwork) and np.ndim(X) > 2 and not starts_flat(model)


def _rows(model: Any, layers: list[TangentLayer], X1: Any, X2: Any) -> tuple[Array, Array | None]:
    first, second = as_pair(X1, X2, flat=False)
    d = layers[0].weight.shape[1]
    if isinstance(model, ReluNetwork):
        return model.as_rows(first)[0], None if second is None else model.as_rows(second)[0]
    if first[0].size != d or (first.ndim > 2 and not starts_flat(model)):
        raise ValueError(f"the network takes inputs of shape (n, {d}); got {first.shape}.")
    return first.reshape(len(first), d), None if second is None else second.reshape(len(second), d)


@dataclass(frozen=True, eq=False)
class TangentLayer:
    r"""The map :math:`z = s W a + r b`, perhaps with a ReLU after it.

    Attributes:
        weight: The product :math:`s W` that acts on the input.
        bias: The product :math:`r b`; zeros if there is none.
        weight_factor: :math:`s^2` if the weights are trained, else 0.
        bias_factor: :math:`r^2` if the bias is trained, else 0.
        relu: Whether a ReLU follows.
    """

    weight: Array
    bias: Array
    weight_factor: float
    bias_factor: float
    relu: bool


def layers_of_network(net: ReluNetwork, biases: bool) -> list[TangentLayer]:
    """Return the layers of a network, all weights trained.

    Raises:
        ValueError: If a layer is sparse: an unrolled convolution no longer knows its parameters.
    """
    for i, layer in enumerate(net.layers, 1):
        if sp.issparse(layer.weight):
            raise ValueError(
                f"layer {i} is stored sparse, as convolutions are, and its shared weights cannot be "
                "told apart any more; give the torch module itself to empirical_ntk."
            )
    last = net.depth - 1
    return [
        TangentLayer(layer.weight, layer.bias, 1.0, float(biases), i < last)
        for i, layer in enumerate(net.layers)
    ]


def layers_of_module(module: Any, biases: bool) -> list[TangentLayer] | None:
    """Return the layers of a ``Sequential`` of linear maps and ReLUs, or None if it is anything else."""
    from torch import nn

    from pindown.bias.tangent_kernel.linearised import TangentLinear

    parts = list(_parts(module))
    owned = [id(value) for part in parts for value in part.parameters()]
    if len(set(owned)) < len(owned):
        return None  # parameters used twice are one set, not two
    layers: list[TangentLayer] = []
    for i, part in enumerate(parts):
        kind = type(part)
        if part._forward_hooks or part._forward_pre_hooks:
            return None
        if kind is nn.Identity or (kind is nn.Dropout and not part.training):
            continue
        if kind is nn.Flatten and i == 0 and (part.start_dim, part.end_dim) == (1, -1):
            continue
        if kind is nn.ReLU and layers:
            layers[-1] = replace(layers[-1], relu=True)
        elif kind is nn.Linear:
            layers.append(_affine(part, 1.0, 1.0, biases))
        elif kind is TangentLinear:
            layers.append(_affine(part, part.weight_scale, part.bias_scale, biases))
        else:
            return None
    return layers or None


def starts_flat(module: Any) -> bool:
    """Return whether the module flattens its inputs first, so that rows of any shape fit."""
    from torch import nn

    return isinstance(next(_parts(module)), nn.Flatten)


def _parts(module: Any) -> Iterator[Any]:
    from torch import nn

    if type(module) is nn.Sequential and not (module._forward_hooks or module._forward_pre_hooks):
        for child in module:
            yield from _parts(child)
    else:
        yield module


def _affine(part: Any, weight_scale: float, bias_scale: float, biases: bool) -> TangentLayer:
    weight = weight_scale * part.weight.detach().cpu().double().numpy()
    for name, value in part.named_parameters():
        if not value.isfinite().all():
            raise ValueError(f"parameter {name} of {part} holds NaN or infinity.")
    trained = biases and part.bias is not None and part.bias.requires_grad
    bias = np.zeros(len(weight))
    if part.bias is not None:
        bias = bias_scale * part.bias.detach().cpu().double().numpy()
    return TangentLayer(
        weight,
        bias,
        weight_scale**2 * float(part.weight.requires_grad),
        bias_scale**2 * float(trained),
        relu=False,
    )


@dataclass(frozen=True, eq=False)
class _Trace:
    """What entered each layer, and which of its ReLUs were on (None: no ReLU)."""

    inputs: list[Array]
    masks: list[Array | None]


def closed_form_ntk(layers: list[TangentLayer], X1: Array, X2: Array | None, outputs: Outputs) -> Array:
    """Return the tangent kernel: (n1, n2), or with one or two more axes for the outputs.

    Args:
        layers: The network.
        X1: Inputs (n1, d).
        X2: Inputs (n2, d), or None for X1 again.
        outputs: ``"mean"`` over outputs, ``"each"`` output with itself or ``"full"``.
    """
    second = None if X2 is None else _forward(layers, X2)
    return _between(layers, _forward(layers, X1), second, outputs)


def _between(
    layers: list[TangentLayer], first: _Trace, second: _Trace | None, outputs: Outputs
) -> Array:
    k = layers[-1].weight.shape[0]
    upward = [_upward(layer, first, second, i) for i, layer in enumerate(layers)]
    shape = (len(first.inputs[0]), len((second or first).inputs[0]))
    if outputs == "full":
        full = np.empty((*shape, k, k))
        right = [_downward(layers, second or first, j) for j in range(k)]
        for i in range(k):
            left = right[i] if second is None else _downward(layers, first, i)
            for j in range(k):
                full[:, :, i, j] = _combine(upward, left, right[j], same_output=i == j)
        return full
    each = np.empty((*shape, k)) if outputs == "each" else None
    total = np.zeros(shape)
    for j in range(k):
        left = _downward(layers, first, j)
        right_j = left if second is None else _downward(layers, second, j)
        kernel = _combine(upward, left, right_j, same_output=True)
        if each is None:
            total += kernel
        else:
            each[:, :, j] = kernel
    return total / k if each is None else each


def _forward(layers: list[TangentLayer], X: Array) -> _Trace:
    inputs, masks, a = [], [], X
    for layer in layers:
        inputs.append(a)
        z = a @ layer.weight.T
        z += layer.bias
        # At a kink autograd takes the slope 0; so do we.
        masks.append((z > 0).astype(np.float64) if layer.relu else None)
        a = np.maximum(z, 0.0, out=z) if layer.relu else z
    return _Trace(inputs, masks)


def _upward(layer: TangentLayer, first: _Trace, second: _Trace | None, i: int) -> Array | None:
    """Return the Gram matrix of what goes up, with the bias; None if nothing there is trained."""
    if layer.weight_factor == 0.0 and layer.bias_factor == 0.0:
        return None
    gram: Array = first.inputs[i] @ (second or first).inputs[i].T
    gram *= layer.weight_factor
    gram += layer.bias_factor
    return gram


def _downward(layers: list[TangentLayer], trace: _Trace, output: int) -> list[Array | None]:
    """Return the derivatives of one output by what leaves each layer; None at the top: a unit vector."""
    top = trace.masks[-1]
    rows: list[Array | None] = [None if top is None else _only(top, output)]
    for layer, mask in zip(reversed(layers[1:]), reversed(trace.masks[:-1]), strict=True):
        above = rows[-1]
        down = layer.weight[output][None] if above is None else above @ layer.weight
        rows.append(
            np.broadcast_to(down, (len(trace.inputs[0]), down.shape[1])) if mask is None else down * mask
        )
    return rows[::-1]


def _only(mask: Array, output: int) -> Array:
    kept = np.zeros_like(mask)
    kept[:, output] = mask[:, output]
    return kept


def _combine(
    upward: list[Array | None],
    left: list[Array | None],
    right: list[Array | None],
    same_output: bool,
) -> Array:
    kernel = None
    for up, mine, other in zip(upward, left, right, strict=True):
        if up is None or (mine is None and not same_output):
            continue
        part = up.copy() if mine is None or other is None else (mine @ other.T) * up
        kernel = part if kernel is None else np.add(kernel, part, out=kernel)
    if kernel is not None:
        return kernel
    some = next((up for up in upward if up is not None), None)
    if some is None:
        raise ValueError(
            "no parameter is trained (requires_grad is False everywhere): the kernel is empty."
        )
    return np.zeros_like(some)
