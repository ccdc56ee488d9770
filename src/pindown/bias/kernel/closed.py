r"""The tangent kernel of a fully connected ReLU network by its structure, without a Jacobian.

The derivative of an output by the weights of layer l is the outer product of what comes down to the
layer, :math:`\delta_l`, and what goes up into it, :math:`a_{l-1}`. Inner products of outer products
are products of inner products, so that

.. math:: K(x, x') = \sum_l \bigl(\langle a_{l-1}(x), a_{l-1}(x')\rangle + 1\bigr)
    \,\langle \delta_l(x), \delta_l(x')\rangle

(the 1 is for the bias) needs two Gram matrices per layer and never the parameters side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from pindown.affine import Array
from pindown.bias.kernel.structure import TangentLayer

Outputs: TypeAlias = Literal["mean", "each", "full"]


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
    first = _forward(layers, X1)
    second = None if X2 is None else _forward(layers, X2)
    k = layers[-1].weight.shape[0]
    upward = [_upward(layer, first, second, i) for i, layer in enumerate(layers)]
    shape = (len(X1), len(X1 if X2 is None else X2))
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
