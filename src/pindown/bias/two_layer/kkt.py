r"""Does a trained network solve the nonlinear max-margin problem? Its optimality conditions.

For a network that is homogeneous in its weights, :math:`h_{c\theta} = c^Lh_\theta`, the problem is

.. math:: \min_\theta \tfrac12\lVert\theta\rVert^2 \ \text{ s.t. }\ y_ih_\theta(x_i) \ge 1,

and its conditions are :math:`\theta = \sum_i\lambda_iy_i\nabla_\theta h(x_i)`, :math:`\lambda \ge 0`,
:math:`\lambda_i(y_ih(x_i) - 1) = 0`. Gradient flow on an exponential or logistic loss meets them in the
limit (Lyu and Li 2020); multipliers come from non-negative least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.margins.hard_margin import signed_labels
from pindown.bias.tuning import HOMOGENEITY_ERROR, ZERO_DEGREE
from pindown.bias.two_layer.training import Neurons
from pindown.evidence import Kind
from pindown.network import ReluNetwork
from pindown.torch_modules import in_evaluation


@dataclass(frozen=True)
class MarginCertificate:
    r"""Residuals of the optimality conditions, after the weights are scaled to smallest margin 1.

    Attributes:
        stationarity: :math:`\lVert\theta - \sum_i\lambda_iy_i\nabla h(x_i)\rVert/\lVert\theta\rVert`; 0
            at a solution, 1 if no sample holds the weights in place.
        complementarity: Largest :math:`\lambda_i(y_ih(x_i) - 1)/\lVert\theta\rVert^2`; at a solution the
            multipliers add up to :math:`\lVert\theta\rVert^2/L`.
        margin: :math:`\min_iy_ih(x_i)/\lVert\theta\rVert^L`, the normalised margin of the network as
            given.
        degree: L.
        multipliers: :math:`\lambda` (n,).
        kind: ``"exact"``: computed, not estimated; what it says about training is for the reader.
    """

    stationarity: float
    complementarity: float
    margin: float
    degree: float
    multipliers: Array = field(repr=False)
    kind: Kind = "exact"

    def __str__(self) -> str:
        return (
            f"max-margin conditions: stationary to {self.stationarity:.3g}, complementary to "
            f"{self.complementarity:.3g}; normalised margin {self.margin:.4g} (degree {self.degree:.3g})"
        )


def margin_certificate(
    network: Any, X: ArrayLike, y: ArrayLike, *, multipliers: ArrayLike | None = None
) -> MarginCertificate:
    """Measure how far a homogeneous network is from a KKT point of the max-margin problem.

    Args:
        network: :class:`Neurons`, a :class:`ReluNetwork` (biases that are all zero do not count as
            weights) or a torch module with one output, which is evaluated in evaluation mode.
        X: Samples (n, d), or (n, ...) for a module.
        y: Labels of at most two classes.
        multipliers: Given ones instead of the best.

    Returns:
        A :class:`MarginCertificate`.

    Raises:
        ValueError: If the network misclassifies a sample, has several outputs, or is not homogeneous in
            its weights (offsets in hidden layers and normalisation usually break it), or multipliers
            are negative.

    Example:
        The two canonical neurons solve the problem:

        >>> from pindown.bias import two_layer_limit
        >>> X, y = [[2.0, 1.0], [1.0, 2.0], [-1.0, 0.0], [-2.0, -1.0]], [1, 1, -1, -1]
        >>> margin_certificate(two_layer_limit(X, y).neurons(), X, y).stationarity < 1e-12
        True

    Phuong 2021, Lemma B.6.
    """
    from scipy.optimize import nnls

    points = np.asarray(X, dtype=np.float64)
    if points.ndim < 2 or not len(points) or not np.isfinite(points).all():
        raise ValueError(f"X must hold finite samples in rows; got shape {points.shape}.")
    labels = signed_labels(y, len(points))
    theta, outputs, slopes = _weights_and_slopes(network, points)
    margins = labels * outputs
    least = float(margins.min())
    if least <= 0:
        wrong = int((margins <= 0).sum())
        raise ValueError(
            f"the network misclassifies {wrong} of {len(points)} samples: it has no margin yet"
        )
    degree = _degree(slopes @ theta, outputs)
    # theta -> c theta with c^L least = 1: outputs shrink by c^L, slopes by c^(L - 1).
    c = least ** (-1.0 / degree)
    size = float(np.linalg.norm(theta))
    signed = (labels[:, None] * slopes) * c ** (degree - 1.0)
    scaled = c * theta
    slack = margins / least - 1.0
    if multipliers is None:
        columns, target = _reduced(signed, scaled / (c * size))
        # Slack times multiplier counts like what is left of the weights: both residuals are made small.
        columns = np.vstack([columns, np.diag(slack / (c * size))])
        target = np.r_[target, np.zeros(len(slack))]
        found = nnls(columns, target, maxiter=50 * len(points))[0] * (c * size)
    else:
        found = np.asarray(multipliers, dtype=np.float64)
        if found.shape != (len(points),) or not (np.isfinite(found) & (found >= 0)).all():
            raise ValueError(
                f"multipliers must be {len(points)} finite numbers, none negative; got {_shown(found)}."
            )
    rest = float(np.linalg.norm(scaled - found @ signed)) / (c * size)
    loose = float((found * slack).max()) / (c * size) ** 2
    return MarginCertificate(rest, loose, least / size**degree, degree, found)


def _shown(numbers: Array) -> str:
    least = f" and least {numbers.min():.3g}" if numbers.size else ""
    return f"shape {numbers.shape}{least}"


def _reduced(rows: Array, target: Array) -> tuple[Array, Array]:
    """Return an equivalent least-squares problem with at most n + 1 equations."""
    if rows.shape[1] <= len(rows) + 1:
        return rows.T, target
    Q, R = np.linalg.qr(rows.T)
    return R, Q.T @ target


def _degree(products: Array, outputs: Array) -> float:
    """Return L of Euler's identity, or say that there is none."""
    degree = float(products @ outputs / (outputs @ outputs))
    allowed = HOMOGENEITY_ERROR * float(np.abs(products).max())
    if not np.allclose(products, degree * outputs, rtol=0, atol=allowed):
        raise ValueError(
            "the network is not homogeneous in its weights (scaling all of them does not scale its "
            "output by a power); remove offsets, or keep them in the last layer of a one-layer network "
            "only."
        )
    if degree < ZERO_DEGREE:
        raise ValueError(
            "the output does not depend on the scale of the weights: margins mean nothing here"
        )
    return degree


def _weights_and_slopes(network: Any, points: Array) -> tuple[Array, Array, Array]:
    """Return weights (q,), outputs (n,) and the slopes of each output in the weights (n, q)."""
    if isinstance(network, Neurons):
        network = network.network()
    if isinstance(network, ReluNetwork):
        return _of_network(network, points.reshape(len(points), -1))
    return _of_module(network, points)


def _of_network(network: ReluNetwork, points: Array) -> tuple[Array, Array, Array]:
    if network.out_features != 1:
        raise ValueError(f"a network with one output is needed; got {network.out_features}.")
    biased = any(np.any(layer.bias) for layer in network.layers)
    dense = [np.asarray(W.toarray() if hasattr(W, "toarray") else W) for W, _ in network.layers]
    traces = [np.asarray(z) for z in network.trace(points)]
    inputs = [points, *(np.maximum(z, 0.0) for z in traces[:-1])]
    weights, slopes = [], []
    back = np.ones((len(points), 1))
    for at in range(len(dense) - 1, -1, -1):
        part = np.einsum("ni,nj->nij", back, inputs[at]).reshape(len(points), -1)
        slopes.append(np.hstack([part, back]) if biased else part)
        bias = network.layers[at].bias
        weights.append(np.r_[dense[at].ravel(), bias] if biased else dense[at].ravel())
        if at:
            back = (back @ dense[at]) * (traces[at - 1] > 0)
    return np.concatenate(weights), traces[-1][:, 0], np.hstack(slopes)


def _of_module(module: Any, points: Array) -> tuple[Array, Array, Array]:
    from pindown.extras import torch

    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"Neurons, a ReluNetwork or a torch module is needed; got {type(module).__name__}."
        )
    parameters = [p for p in module.parameters() if p.requires_grad and bool(p.detach().any())]
    if not parameters:
        raise ValueError("all trainable weights of the module are zero")
    with in_evaluation(module), torch.enable_grad():
        outputs = module(torch.as_tensor(points, dtype=parameters[0].dtype)).reshape(len(points), -1)
    if outputs.shape[1] != 1:
        raise ValueError(f"a module with one output is needed; got {outputs.shape[1]}.")
    rows = []
    for i in range(len(points)):
        parts = torch.autograd.grad(outputs[i, 0], parameters, retain_graph=True, allow_unused=True)
        filled = [
            torch.zeros_like(p) if g is None else g for p, g in zip(parameters, parts, strict=True)
        ]
        rows.append(torch.cat([g.reshape(-1) for g in filled]).double().numpy())
    theta = torch.cat([p.detach().reshape(-1) for p in parameters]).double().numpy()
    return theta, outputs.detach().double().numpy()[:, 0], np.array(rows)
