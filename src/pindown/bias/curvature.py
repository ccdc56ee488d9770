r"""Curvature of a loss: along directions, the Hessian, its largest eigenvalues, its trace, sharpness.

.. math:: J(w + tv) = J(w) + t\,\nabla J\cdot v + \tfrac12t^2\,v^\top Hv + O(t^3), \qquad
          E\,J(w + \rho\,u) - J(w) = \frac{\rho^2}{2p}\operatorname{tr}H + O(\rho^4),

with u uniform on the unit sphere. The trace is Hutchinson's estimate, from products of the Hessian with
random signs.

Losses are functions of one vector of weights in torch operations; :func:`flat_loss` makes one from a
module. For losses written over a module's own parameters see :mod:`pindown.optim.hessian`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from pindown.affine import Array
from pindown.bias.tuning import MAX_DENSE_WEIGHTS
from pindown.evidence import Kind
from pindown.torch_modules import called_with
from pindown.validation import integer, positive

Loss: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class DirectionalExpansion:
    """A loss along a line, to second order.

    Attributes:
        value: The loss.
        slope: Its derivative along the unit vector.
        curvature: Its second derivative along the unit vector: above zero where it curves upwards.
        kind: ``"exact"``: derivatives by differentiation, up to rounding.
    """

    value: float
    slope: float
    curvature: float
    kind: Kind = "exact"

    def __call__(self, distance: float) -> float:
        """Return the quadratic model at a distance along the line."""
        return self.value + distance * self.slope + distance**2 / 2 * self.curvature

    def __str__(self) -> str:
        return f"value {self.value:.6g}, slope {self.slope:.4g}, curvature {self.curvature:.4g}"


@dataclass(frozen=True)
class TraceEstimate:
    """The trace of a Hessian from random directions.

    Attributes:
        value: The estimate, without bias.
        standard_error: Its standard error.
        probes: Random directions used.
        kind: ``"estimate"``.
    """

    value: float
    standard_error: float
    probes: int
    kind: Kind = "estimate"

    def __str__(self) -> str:
        return f"trace {self.value:.6g} +- {self.standard_error:.2g} ({self.probes} probes)"


@dataclass(frozen=True)
class Eigenpairs:
    """Largest eigenvalues of a Hessian.

    Attributes:
        values: Eigenvalues, largest first.
        vectors: Unit eigenvectors, one a column.
        residual: Largest length of H v - lambda v: an eigenvalue lies within it of each value.
        kind: ``"estimate"``: an iteration, with its residual.
    """

    values: Array
    vectors: Array = field(repr=False)
    residual: float
    kind: Kind = "estimate"

    def __str__(self) -> str:
        found = ", ".join(f"{v:.4g}" for v in self.values[:5])
        return f"largest eigenvalues {found} (within {self.residual:.1g})"


def hessian_product(loss: Loss, weights: Tensor, direction: Tensor) -> Tensor:
    """Return the Hessian times a vector, by differentiating twice.

    >>> hessian_product(lambda w: w[0] ** 2 * w[1], torch.tensor([1.0, 3.0]), torch.tensor([1.0, 0.0]))
    tensor([6., 2.])

    Lecture course, slides on the Hessian.
    """
    found: Tensor = _product(loss, weights, direction.to(weights))[1]
    return found


def hessian(loss: Loss, weights: Tensor) -> Tensor:
    """Return the matrix of second derivatives.

    >>> hessian(lambda w: w[0] ** 2 * w[1], torch.tensor([1.0, 3.0])).tolist()
    [[6.0, 2.0], [2.0, 0.0]]

    Lecture course, slides on the Hessian.
    """
    found: Tensor = torch.func.jacrev(_slope(loss))(weights)
    return found


def along(loss: Loss, weights: Tensor, direction: Tensor) -> DirectionalExpansion:
    r"""Return value, slope and curvature :math:`v^\top Hv/v^\top v` of a loss along a direction.

    Args:
        loss: Function from a vector of weights to a number, in torch operations.
        weights: Where (p,).
        direction: Which way (p,); its length does not matter.

    Returns:
        A :class:`DirectionalExpansion`.

    Raises:
        ValueError: If the direction is zero, not finite, or of another length.

    Example:
        A saddle curves down along its second axis:

        >>> along(lambda w: w[0] ** 2 - w[1] ** 2, torch.zeros(2), torch.tensor([0.0, 5.0])).curvature
        -2.0

    Lecture course, slides on the Hessian.
    """
    direction = torch.as_tensor(direction).to(weights)
    length = float(direction.norm())
    if direction.shape != weights.shape or not 0 < length < float("inf"):
        raise ValueError(
            f"direction must be finite, not zero, and of shape {tuple(weights.shape)}; "
            f"got shape {tuple(direction.shape)} and length {length:g}."
        )
    unit = direction / length
    slope, bend = _product(loss, weights, unit)
    return DirectionalExpansion(float(loss(weights)), float(slope @ unit), float(bend @ unit))


def top_eigenvalues(loss: Loss, weights: Tensor, k: int = 1, *, seed: int = 0) -> Eigenpairs:
    """Return the k largest eigenvalues of the Hessian, from products where it is large.

    Args:
        loss: Function from a vector of weights to a number, in torch operations.
        weights: Where (p,).
        k: How many, at most p.
        seed: Seed of the starting vector.

    Returns:
        An :class:`Eigenpairs`.

    Raises:
        ValueError: If k is larger than the number of weights.

    Example:
        >>> top_eigenvalues(lambda w: (w**2 * torch.tensor([1.0, 2.0])).sum(), torch.zeros(2)).values
        array([4.])

    Lecture course, slides on the Hessian.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    p, k = weights.numel(), integer("k", k)
    if k > p:
        raise ValueError(f"k must be at most the number of weights {p}; got {k}.")

    def product(v: Array) -> Array:
        return hessian_product(loss, weights, torch.as_tensor(np.ravel(v).copy())).double().numpy()

    if p <= max(MAX_DENSE_WEIGHTS, k + 1):
        H = hessian(loss, weights).detach().double().numpy()
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        values, vectors = values[-k:], vectors[:, -k:]
        residual = float(np.linalg.norm(H @ vectors - vectors * values, axis=0).max())
    else:
        start = np.random.default_rng(seed).standard_normal(p)
        operator = LinearOperator((p, p), matvec=product, dtype=np.float64)
        values, vectors = eigsh(operator, k=k, which="LA", v0=start)
        columns = np.stack([product(v) for v in vectors.T], axis=1)
        residual = float(np.linalg.norm(columns - vectors * values, axis=0).max())
    order = np.argsort(values)[::-1]
    return Eigenpairs(np.asarray(values[order]), np.asarray(vectors[:, order]), residual)


def trace_estimate(loss: Loss, weights: Tensor, probes: int = 32, *, seed: int = 0) -> TraceEstimate:
    r"""Estimate the Hessian's trace as Hutchinson: the mean of :math:`z^\top Hz` over random signs z.

    Args:
        loss: Function from a vector of weights to a number, in torch operations.
        weights: Where (p,).
        probes: Random directions, at least two.
        seed: Seed of the directions.

    Returns:
        A :class:`TraceEstimate`; exact where the Hessian is diagonal.

    Example:
        >>> print(trace_estimate(lambda w: (w**2).sum() / 2, torch.zeros(3), 4))
        trace 3 +- 0 (4 probes)

    Lecture course, slides on the Hessian.
    """
    probes = integer("probes", probes, least=2)
    rng = np.random.default_rng(seed)
    signs = torch.as_tensor(rng.choice([-1.0, 1.0], size=(probes, weights.numel()))).to(weights)
    found = np.array([float(z @ hessian_product(loss, weights, z)) for z in signs])
    return TraceEstimate(float(found.mean()), float(found.std(ddof=1) / np.sqrt(probes)), probes)


def flat_loss(module: Any, loss: Callable[[Callable[..., Tensor]], Tensor]) -> tuple[Loss, Tensor]:
    """Return a module's loss as a function of one vector of weights, and its present weights.

    Args:
        module: A torch module; it is not changed.
        loss: Function from the module, called like a function, to its loss.

    Returns:
        The function, and the trainable parameters as one vector.

    Raises:
        ValueError: If no parameter is trainable.

    Example:
        >>> linear = torch.nn.Linear(1, 1, bias=False)
        >>> f, w = flat_loss(linear, lambda net: (net(torch.ones(1, 1)) ** 2).sum())
        >>> hessian(f, w).tolist()
        [[2.0]]
    """
    named = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError("the module has no trainable parameter.")
    shapes = [(name, p.shape, p.numel()) for name, p in named.items()]
    flat = torch.cat([p.detach().reshape(-1) for p in named.values()])

    def of_weights(w: Tensor) -> Tensor:
        parts = torch.split(w, [size for *_, size in shapes])
        parameters = {
            name: part.reshape(shape) for (name, shape, _), part in zip(shapes, parts, strict=True)
        }
        return loss(lambda *inputs: called_with(module, parameters, inputs))

    return of_weights, flat


def _slope(loss: Loss) -> Loss:
    found: Loss = torch.func.grad(lambda w: loss(w).reshape(()))
    return found


def _product(loss: Loss, weights: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    """Return gradient and Hessian times direction; the Hessian is symmetric, so two passes back do."""
    slope, pull = torch.func.vjp(_slope(loss), weights)
    return slope, pull(direction)[0]


@dataclass(frozen=True)
class Sharpness:
    """How sharp a point of the loss is.

    Attributes:
        largest: Largest eigenvalue of the Hessian.
        rise: Mean rise of the loss at a distance, over random directions.
        standard_error: Standard error of ``rise``.
        radius: The distance.
        probes: Random directions.
        step_limit: Two over the largest eigenvalue: gradient descent with a larger step leaves such a
            minimum; infinite where nothing curves upwards.
        kind: ``"estimate"``.
    """

    largest: float
    rise: float
    standard_error: float
    radius: float
    probes: int
    step_limit: float
    kind: Kind = "estimate"

    def __str__(self) -> str:
        return (
            f"largest curvature {self.largest:.4g} (steps below {self.step_limit:.4g} stay), loss rises "
            f"by {self.rise:.4g} +- {self.standard_error:.2g} at distance {self.radius:g}"
        )


def sharpness(
    loss: Loss, weights: Tensor, *, radius: float = 0.1, probes: int = 64, seed: int = 0
) -> Sharpness:
    """Measure how sharp a loss is around a point.

    Args:
        loss: Function from a vector of weights to a number, in torch operations.
        weights: The point (p,).
        radius: Distance at which the loss is averaged.
        probes: Random directions, at least one; each is used both ways.
        seed: Seed of the directions.

    Returns:
        A :class:`Sharpness`.

    Raises:
        ValueError: If the loss there is not finite.

    Example:
        >>> print(sharpness(lambda w: (w**2).sum(), torch.zeros(2, dtype=torch.float64)))
        largest curvature 2 (steps below 1 stay), loss rises by 0.01 +- 0 at distance 0.1

    Lecture course, slides on stochastic gradient descent and flat minima.
    """
    radius, probes = positive("radius", radius), integer("probes", probes)
    base = float(loss(weights))
    if not np.isfinite(base):
        raise ValueError(f"the loss at the point must be finite; got {base!r}.")
    largest = float(top_eigenvalues(loss, weights, 1, seed=seed).values[0])
    directions = np.random.default_rng(seed).standard_normal((probes, weights.numel()))
    directions *= radius / np.linalg.norm(directions, axis=1, keepdims=True)
    rises = []
    with torch.no_grad():
        for row in directions:
            move = torch.as_tensor(row).reshape(weights.shape).to(weights)
            # Both ways: the slope cancels, and curvature is left.
            rises.append((float(loss(weights + move)) + float(loss(weights - move))) / 2 - base)
    spread = float(np.std(rises, ddof=1) / np.sqrt(probes)) if probes > 1 else float("nan")
    spread = (
        0.0 if spread < np.finfo(float).eps * max(abs(base), float(np.max(np.abs(rises)))) else spread
    )
    limit = 2 / largest if largest > 0 else float("inf")
    return Sharpness(largest, float(np.mean(rises)), spread, radius, probes, limit)
