r"""The tangent kernel of infinitely wide networks, by recursion over layers.

With :math:`z_1 = \sigma_w W_1 x + \sigma_b b_1` and
:math:`z_l = \sigma_w W_l\,\varphi(z_{l-1}) / \sqrt{m} + \sigma_b b_l`,
all entries of W and b independent standard normals and all widths m going to infinity,

.. math::
    \Sigma_1 = \Theta_1 = \sigma_w^2\, x \cdot x' + \sigma_b^2, \quad
    \Sigma_l = \sigma_w^2\, F(\Sigma_{l-1}) + \sigma_b^2, \quad
    \Theta_l = \Sigma_l + \sigma_w^2\, \Theta_{l-1}\, \dot F(\Sigma_{l-1}),

where F is the mean of :math:`\varphi(u)\varphi(v)` over normals with covariance :math:`\Sigma_{l-1}` and
:math:`\dot F` that of :math:`\varphi'(u)\varphi'(v)`; for ReLUs these are arc-cosine kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from pindown.affine import Array, is_finite
from pindown.bias.tangent_kernel.gram import as_pair
from pindown.bias.tuning import INFINITE_KERNEL_BLOCK
from pindown.validation import choice, integer, refuse

Activation: TypeAlias = Literal["relu", "erf"]


def infinite_ntk(
    X1: Any,
    X2: Any = None,
    *,
    depth: int = 2,
    weight_std: float | Sequence[float] = 1.0,
    bias_std: float | Sequence[float] = 0.0,
    activation: Activation = "relu",
    kernel: Literal["ntk", "nngp"] = "ntk",
) -> Array:
    r"""Return the neural tangent kernel of infinitely wide fully connected networks.

    With one hidden ReLU layer (``depth=2``) and :math:`\theta` the angle between x and x',

    .. math:: K(x, x') = \frac{\lVert x\rVert \lVert x'\rVert}{2\pi}
        \bigl(\sin\theta + 2(\pi - \theta)\cos\theta\bigr).

    Args:
        X1: Inputs (n1, d).
        X2: Inputs (n2, d); X1 again by default.
        depth: Number of affine maps, as ``net.depth`` counts them: 1 is a linear model, 2 has one hidden
            layer. There are ``depth - 1`` hidden layers.
        weight_std: :math:`\sigma_w`, one for all layers or one per affine map. :math:`\sqrt2` keeps the
            size of activations over ReLU layers.
        bias_std: :math:`\sigma_b`, likewise; 0 means no biases.
        activation: ``"relu"`` or ``"erf"``.
        kernel: ``"ntk"``, or ``"nngp"`` for the covariance :math:`\Sigma_L` of the outputs at
            initialisation, which training only the last layer would see.

    Returns:
        The kernel (n1, n2). Inputs are not divided by :math:`\sqrt d`; neural-tangents does that, so
        its kernel is ``infinite_ntk(X1 / sqrt(d), X2 / sqrt(d), ...)`` with its ``W_std`` and ``b_std``.
        ``tangent_network`` builds finite networks whose kernels converge to this one.

    Raises:
        ValueError: If shapes do not fit, a number is not finite, or depth is below 1.

    Example:
        At x = x' half of the units are on, in the forward and in the backward factor:

        >>> round(float(infinite_ntk([[1.0, 0.0]])[0, 0]), 12)
        1.0
        >>> infinite_ntk([[1.0, 0.0]], [[0.0, 1.0]]) * 2 * np.pi
        array([[1.]])

    Cho and Saul 2009; Jacot, Gabriel and Hongler 2018; answer to an exercise of the lecture course.
    """
    first, second = as_pair(X1, X2)
    depth = integer("depth", depth)
    choice("activation", activation, _STEPS)
    choice("kernel", kernel, ("ntk", "nngp"))
    scales = _scales(weight_std, depth, "weight_std"), _scales(bias_std, depth, "bias_std")
    with np.errstate(over="ignore", invalid="ignore"):
        left = _variances(first, scales, activation)
        right = left if second is None else _variances(second, scales, activation)
        result = np.empty((len(first), len(first if second is None else second)))
        for i in _blocks(len(first)):
            for j in _blocks(result.shape[1]):
                if second is None and j.start < i.start:
                    continue
                dot = first[i] @ (first if second is None else second)[j].T
                same = second is None and i == j
                block = _recursion(
                    dot, left[:, i], right[:, j], scales, activation, same, kernel == "ntk"
                )
                result[i, j] = block
                if second is None:
                    result[j, i] = block.T
    if not is_finite(result):
        raise ValueError("the kernel overflows float64 for these inputs; scale the inputs down.")
    return result


_Scales: TypeAlias = tuple[Array, Array]


def _scales(std: float | Sequence[float], depth: int, name: str) -> Array:
    values = np.asarray(std, dtype=np.float64)
    if values.ndim > 1 or (values.ndim == 1 and len(values) != depth):
        refuse(name, f"one number or {depth}, one per affine map", std)
    if not np.isfinite(values).all() or (values < 0).any():
        refuse(name, "finite and not negative", std)
    return np.broadcast_to(values, depth) ** 2


def _blocks(n: int) -> list[slice]:
    return [
        slice(start, min(n, start + INFINITE_KERNEL_BLOCK))
        for start in range(0, n, INFINITE_KERNEL_BLOCK)
    ]


def _variances(X: Array, scales: _Scales, activation: Activation) -> Array:
    """Return the diagonal of every covariance: (depth, n)."""
    weights, biases = scales
    rows = [weights[0] * np.einsum("ij,ij->i", X, X) + biases[0]]
    for w, b in zip(weights[1:], biases[1:], strict=True):
        v = rows[-1]
        rows.append(w * (v / 2 if activation == "relu" else _erf_mean(v, v, v)) + b)
    return np.array(rows)


def _recursion(
    dot: Array,
    left: Array,
    right: Array,
    scales: _Scales,
    activation: Activation,
    same: bool,
    tangent: bool,
) -> Array:
    weights, biases = scales
    covariance = dot
    covariance *= weights[0]
    covariance += biases[0]
    theta = covariance.copy()
    for layer, (w, b) in enumerate(zip(weights[1:], biases[1:], strict=True)):
        mean, slopes = _STEPS[activation](covariance, left[layer][:, None], right[layer][None], same)
        covariance = mean
        covariance *= w
        covariance += b
        if tangent:
            theta *= slopes
            theta *= w
            theta += covariance
    return theta if tangent else covariance


def _relu_step(covariance: Array, v: Array, u: Array, same: bool) -> tuple[Array, Array]:
    """Return the means of ReLUs and of their slopes: arc-cosine kernels of degree 1 and 0, halved."""
    sizes = np.sqrt(v) * np.sqrt(u)
    cosine = np.divide(covariance, sizes, out=np.zeros_like(covariance), where=sizes > 0)
    np.clip(cosine, -1.0, 1.0, out=cosine)
    if same:  # an angle of 0 would be off by the root of the rounding of its cosine
        np.fill_diagonal(cosine, np.where(v[:, 0] > 0, 1.0, 0.0))
    angle = np.arccos(cosine)
    np.subtract(math.pi, angle, out=angle)  # now pi - theta
    sine = np.sqrt((1.0 - cosine) * (1.0 + cosine))
    cosine *= angle
    cosine += sine
    cosine *= sizes
    cosine /= 2 * math.pi
    angle /= 2 * math.pi
    return cosine, angle


def _erf_step(covariance: Array, v: Array, u: Array, same: bool) -> tuple[Array, Array]:
    # (1 + 2v)(1 + 2u) - 4c^2 without the difference of two large numbers.
    sizes = np.sqrt(v) * np.sqrt(u)
    apart = np.maximum((sizes - covariance) * (sizes + covariance), 0.0)
    if same:
        np.fill_diagonal(apart, 0.0)
    slopes = (4 / math.pi) / np.sqrt(1 + 2 * (v + u) + 4 * apart)
    return _erf_mean(covariance, v, u), slopes


def _erf_mean(covariance: Array, v: Array, u: Array) -> Array:
    ratio = 2 * covariance / np.sqrt((1 + 2 * v) * (1 + 2 * u))
    return np.asarray((2 / math.pi) * np.arcsin(np.clip(ratio, -1.0, 1.0)))


_STEPS: dict[str, Callable[[Array, Array, Array, bool], tuple[Array, Array]]] = {
    "relu": _relu_step,
    "erf": _erf_step,
}
