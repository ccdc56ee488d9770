"""The tangent kernel of a network as it is."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from pindown.affine import Array, is_finite
from pindown.bias.kernel.checks import as_pair
from pindown.bias.kernel.closed import Outputs, closed_form_ntk
from pindown.bias.kernel.structure import TangentLayer, layers_of_module, layers_of_network, starts_flat
from pindown.network import ReluNetwork

Method = Literal["auto", "closed", "jacobian", "products"]
_COPIES = 3  # of a block, beside the Gram matrices of the layers
_LEAST_ROWS = 64  # of a block: each passes the other rows through the network again


def empirical_ntk(
    module_or_net: Any,
    X1: Any,
    X2: Any = None,
    *,
    outputs: Outputs = "mean",
    method: Method = "auto",
    biases: bool = True,
    memory: float = 2**30,
) -> Array:
    r"""Return the neural tangent kernel of a network at its present parameters.

    .. math:: K(x, x') = \frac1k \sum_{j=1}^k \nabla_w f_j(x, w)^\top \nabla_w f_j(x', w)

    over all trained parameters :math:`w`, biases included: the plain Gram matrix of the Jacobian. While
    the kernel stays what it is, training on the half sum of squares moves the outputs by
    :math:`\dot f = -K (f - y)`.

    A ``ReluNetwork``, and a ``Sequential`` of ``Linear`` and ``ReLU``, has a closed form: two Gram
    matrices per layer and no Jacobian. Everything else is differentiated by ``torch.func`` in blocks.

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
        memory: Bytes that blocks of Jacobians, or of a closed form's Gram matrices, may take.

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
    if outputs not in ("mean", "each", "full"):
        raise ValueError(f"outputs must be 'mean', 'each' or 'full'; got {outputs!r}.")
    if method not in ("auto", "closed", "jacobian", "products"):
        raise ValueError(f"method must be 'auto', 'closed', 'jacobian' or 'products'; got {method!r}.")
    if not memory > 0:
        raise ValueError(f"memory must be a positive number of bytes; got {memory!r}.")
    module, layers = _read(module_or_net, biases, method)
    if layers is None or (method == "auto" and _acts_on_last_axis(module_or_net, X1)):
        from pindown.bias.kernel.autodiff import autodiff_ntk

        first, second = as_pair(X1, X2, flat=False)
        return _within_floats(
            autodiff_ntk(
                module, first, second, outputs, biases=biases, memory=memory,
                products=method == "products",
            )
        )  # fmt: skip
    first, second = _rows(module_or_net, layers, X1, X2)
    with np.errstate(over="ignore", invalid="ignore"):
        return _within_floats(_by_blocks(layers, first, second, outputs, memory))


def _by_blocks(
    layers: list[TangentLayer], first: Array, second: Array | None, outputs: Outputs, memory: float
) -> Array:
    """Return the closed form, in blocks of rows where the Gram matrices of all layers are too large."""
    other = first if second is None else second
    per_row = 8.0 * len(other) * (len(layers) + _COPIES)
    rows = max(_LEAST_ROWS, int(min(memory / per_row, len(first))))
    if rows >= len(first):
        return closed_form_ntk(layers, first, second, outputs)
    k = layers[-1].weight.shape[0]
    axes = {"mean": (), "each": (k,), "full": (k, k)}[outputs]
    kernel = np.empty((len(first), len(other), *axes))
    for start in range(0, len(first), rows):
        kernel[start : start + rows] = closed_form_ntk(
            layers, first[start : start + rows], other, outputs
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
    layers = layers_of_module(model, biases) if method in ("auto", "closed") else None
    if layers is None and method == "closed":
        raise ValueError(
            f"no closed form is known for {type(model).__name__}: it is not a Sequential of Linear and "
            "ReLU in evaluation mode; use method='auto'."
        )
    return model, layers


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
