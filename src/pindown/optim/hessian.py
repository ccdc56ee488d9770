"""Extreme eigenvalues of a loss's Hessian, from exact Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from torch import Tensor

from pindown.affine import Array
from pindown.validation import choice, integer, number

# Up to so many parameters the matrix is written out: Lanczos iteration has no room there.
MAX_DENSE_PARAMETERS = 24
# Lanczos vectors kept.
_LANCZOS_VECTORS = 40
# Precisions, as shares of the width of the spectrum, with which an end near zero is approached.
_STAGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


@dataclass(frozen=True)
class HessianSpectrum:
    """The ends of the spectrum.

    Attributes:
        smallest: Smallest eigenvalue found.
        largest: Largest eigenvalue found.
        residuals: Length of H v - lambda v for the unit vectors v of both; an eigenvalue lies within
            that distance of each.
        products: Hessian-vector products spent.
        converged: Whether the search reached its tolerance at both ends.
    """

    smallest: float
    largest: float
    residuals: tuple[float, float]
    products: int
    converged: bool

    def __str__(self) -> str:
        end = "" if self.converged else ", not converged"
        return (
            f"Hessian eigenvalues from {self.smallest:.4g} to {self.largest:.4g} "
            f"(within {max(self.residuals):.1g}, {self.products} products{end})"
        )


def hessian_operator(loss: Callable[[], Tensor], parameters: Iterable[Tensor]) -> LinearOperator:
    r"""Return :math:`v \mapsto \nabla^2 \ell(\theta)\, v` as a SciPy operator.

    The loss is evaluated once; each product is one backward pass through its gradient, exact up to
    rounding. Where a ReLU is at its kink, it counts as off.

    Args:
        loss: Evaluates the loss with the current parameters, without random parts such as dropout.
        parameters: The parameters, in the order of the operator.

    Raises:
        ValueError: If there are no parameters that need gradients, or the loss is not one finite number
            or does not depend on them; in products, if the Hessian is not finite.

    Example:
        The Hessian of x^2 + 3 x y is [[2, 3], [3, 0]]:

        >>> z = torch.nn.Parameter(torch.tensor([1.0, 1.0], dtype=torch.float64))
        >>> H = hessian_operator(lambda: z[0] ** 2 + 3 * z[0] * z[1], [z])
        >>> H @ np.array([1.0, 0.0])
        array([2., 3.])

    Mukherjee 2020, section 5.6.2.
    """
    # The rows of a tensor are new tensors, on which no loss depends.
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    params = [p for p in given if p.requires_grad]
    if not params:
        raise ValueError("there is no parameter with requires_grad=True; pass model.parameters().")
    with torch.enable_grad():
        value = loss()
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise ValueError(f"loss must return a tensor that depends on the parameters; got {value!r}.")
        if value.numel() != 1 or not bool(torch.isfinite(value).all()):
            shape = tuple(value.shape)
            raise ValueError(f"loss must return one finite number; got a tensor of shape {shape}.")
        grads = torch.autograd.grad(value.reshape(()), params, create_graph=True, allow_unused=True)
    if all(g is None for g in grads):
        raise ValueError("the loss depends on none of the parameters; pass those of its model.")
    bends = [g is not None and g.requires_grad for g in grads]
    n = sum(p.numel() for p in params)

    def product(v: Array) -> Array:
        parts = _split(v, params)
        inner = [(g * part).sum() for g, part, b in zip(grads, parts, bends, strict=True) if b]
        if not inner:
            return np.zeros(n)  # the loss is affine in its parameters
        columns = torch.autograd.grad(sum(inner), params, retain_graph=True, allow_unused=True)
        found = _flat(columns, params)
        if not np.isfinite(found).all():
            raise ValueError("the Hessian is not finite here: the loss has no second derivative.")
        return found

    return LinearOperator((n, n), matvec=product, rmatvec=product, dtype=np.float64)


def hessian_spectrum(
    loss: Callable[[], Tensor],
    parameters: Iterable[Tensor],
    *,
    ends: Literal["both", "smallest", "largest"] = "both",
    tol: float = 1e-3,
    max_products: int = 2_000,
    seed: int = 0,
) -> HessianSpectrum:
    """Find the smallest and the largest eigenvalue of the Hessian by Lanczos iteration.

    Args:
        loss: Evaluates the loss with the current parameters.
        parameters: The parameters.
        ends: Which end to find; the other one is nan.
        tol: Relative precision of the eigenvalues.
        max_products: Give up an end after about twice this many products, with the best value so far.
        seed: Seed of the starting vector.

    Raises:
        ValueError: As for :func:`hessian_operator`.

    Example:
        >>> z = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
        >>> print(hessian_spectrum(lambda: 4 * z[0] * z[1] + 0 * z.sum(), [z]))
        Hessian eigenvalues from -4 to 4 (within 0, 2 products)

    Mukherjee 2020, section 5.6.2 and Figure 5.6.2.
    """
    choice("ends", ends, ("both", "smallest", "largest"))
    number("tol", tol, 0.0, 1.0, below=True)
    integer("max_products", max_products)
    counted = _Counted(hessian_operator(loss, parameters))
    if counted.n <= MAX_DENSE_PARAMETERS:
        H = counted.operator @ np.eye(counted.n)
        values, vectors = eigh((H + H.T) / 2)
        gaps = [float(np.linalg.norm(H @ vectors[:, i] - values[i] * vectors[:, i])) for i in (0, -1)]
        found = {"SA": (values[0], gaps[0], True), "LA": (values[-1], gaps[1], True)}
    else:
        wanted = {"both": ("SA", "LA"), "smallest": ("SA",), "largest": ("LA",)}[ends]
        found = {which: _end(counted, which, tol, max_products, seed) for which in wanted}
    nothing = (np.nan, 0.0, True)
    low = found.get("SA", nothing) if ends != "largest" else nothing
    high = found.get("LA", nothing) if ends != "smallest" else nothing
    return HessianSpectrum(
        float(low[0]), float(high[0]), (low[1], high[1]), counted.count, low[2] and high[2]
    )


class _Counted:
    """An operator that counts its products."""

    def __init__(self, inner: LinearOperator) -> None:
        self.count, self.n = 0, inner.shape[0]

        def product(v: Array) -> Array:
            self.count += 1
            return inner.matvec(v)

        self.operator = LinearOperator(inner.shape, matvec=product, dtype=inner.dtype)


def _end(counted: _Counted, which: str, tol: float, most: int, seed: int) -> tuple[float, float, bool]:
    start = np.random.default_rng(seed).normal(size=counted.n)
    start /= np.linalg.norm(start)
    vector = _lanczos(counted.operator, which, tol, start, most)
    good = vector is not None
    if vector is None:  # an end near zero beside large eigenvalues, most likely
        vector = _by_stages(counted, which, tol, start, most)
    image = counted.operator @ vector
    value = float(vector @ image)
    residual = float(np.linalg.norm(image - value * vector))
    # A Hessian of zeros makes ARPACK stop at once; then every vector is an eigenvector.
    return value, residual, good or residual <= tol * abs(value)


def _lanczos(operator: LinearOperator, which: str, tol: float, start: Array, most: int) -> Array | None:
    """Return the unit vector of an end, or None if it was not found in time."""
    basis = min(operator.shape[0], _LANCZOS_VECTORS)
    rounds = max(1, most // basis)
    try:
        vectors = eigsh(operator, 1, which=which, tol=tol, v0=start, ncv=basis, maxiter=rounds)[1]
    except ArpackError:
        return None
    return np.asarray(vectors[:, 0])


def _by_stages(counted: _Counted, which: str, tol: float, start: Array, most: int) -> Array:
    """Return the best vector found with precisions relative to the width of the spectrum.

    Lanczos iteration stops only at a relative precision of the eigenvalue, and forgets what it has if
    that takes too long. Seen from the other end of the spectrum the eigenvalue is large; each stage
    starts from where the one before ended.
    """
    far = _lanczos(counted.operator, "LA" if which == "SA" else "SA", _STAGES[0], start, most)
    if far is None:
        return start
    end = float(far @ (counted.operator @ far))
    seen_from_there = LinearOperator(
        (counted.n, counted.n), matvec=lambda v: counted.operator @ v - end * v, dtype=np.float64
    )
    begun, best = counted.count, start
    for stage in _STAGES:
        found = _lanczos(seen_from_there, "LM", stage, best, most - (counted.count - begun))
        if found is None:
            break
        best = found
        image = counted.operator @ best
        value = float(best @ image)
        if float(np.linalg.norm(image - value * best)) <= tol * abs(value):
            break
        if counted.count - begun >= most:
            break
    return best


def _split(v: Array, params: list[Tensor]) -> list[Tensor]:
    flat = torch.as_tensor(np.ascontiguousarray(v).ravel())
    parts, at = [], 0
    for p in params:
        parts.append(flat[at : at + p.numel()].reshape(p.shape).to(dtype=p.dtype, device=p.device))
        at += p.numel()
    return parts


def _flat(columns: Iterable[Any], params: list[Tensor]) -> Array:
    pieces = [
        np.zeros(p.numel()) if c is None else c.detach().reshape(-1).double().cpu().numpy()
        for c, p in zip(columns, params, strict=True)
    ]
    return np.concatenate(pieces)
