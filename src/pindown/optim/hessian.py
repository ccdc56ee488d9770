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

DENSE = 24  # below this many parameters the matrix is written out: Lanczos has no room there


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
        ValueError: If there are no parameters that need gradients, or the loss is not one finite number.

    Example:
        The Hessian of x^2 + 3 x y is [[2, 3], [3, 0]]:

        >>> z = torch.nn.Parameter(torch.tensor([1.0, 1.0], dtype=torch.float64))
        >>> H = hessian_operator(lambda: z[0] ** 2 + 3 * z[0] * z[1], [z])
        >>> H @ np.array([1.0, 0.0])
        array([2., 3.])

    Mukherjee 2020, section 5.6.2.
    """
    params = [p for p in parameters if p.requires_grad]
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
    bends = [g is not None and g.requires_grad for g in grads]
    n = sum(p.numel() for p in params)

    def product(v: Array) -> Array:
        parts = _split(v, params)
        inner = [(g * part).sum() for g, part, b in zip(grads, parts, bends, strict=True) if b]
        if not inner:
            return np.zeros(n)  # the loss is affine in its parameters
        columns = torch.autograd.grad(sum(inner), params, retain_graph=True, allow_unused=True)
        return _flat(columns, params)

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
        max_products: Give up an end after about this many products, with the best value so far.
        seed: Of the starting vector.

    Raises:
        ValueError: As for :func:`hessian_operator`.

    Example:
        >>> z = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))
        >>> print(hessian_spectrum(lambda: 4 * z[0] * z[1] + 0 * z.sum(), [z]))
        Hessian eigenvalues from -4 to 4 (within 0, 2 products)

    Mukherjee 2020, section 5.6.2 and Figure 5.6.2.
    """
    if ends not in ("both", "smallest", "largest"):
        raise ValueError(f"ends must be both, smallest or largest; got {ends!r}.")
    if not 0 <= tol < 1 or max_products < 1:
        raise ValueError(
            f"tol must be in [0, 1), max_products at least 1; got {tol!r}, {max_products!r}."
        )
    counted = _Counted(hessian_operator(loss, parameters))
    if counted.n <= DENSE:
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
    basis = min(counted.n, 40)
    try:
        values, vectors = eigsh(
            counted.operator,
            k=1,
            which=which,
            tol=tol,
            v0=start,
            ncv=basis,
            maxiter=max(1, most // basis),
        )
        value, vector, good = values[0], vectors[:, 0], True
    except ArpackError as stopped:
        good = False
        if len(getattr(stopped, "eigenvalues", ())):
            value, vector = stopped.eigenvalues[0], stopped.eigenvectors[:, 0]
        else:  # the Rayleigh quotient of the start: a value inside of the spectrum
            vector = start / np.linalg.norm(start)
            value = float(vector @ (counted.operator @ vector))
    residual = float(np.linalg.norm(counted.operator @ vector - value * vector))
    # A Hessian of zeros makes ARPACK stop at once; then the start is an eigenvector.
    return float(value), residual, good or residual == 0


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
