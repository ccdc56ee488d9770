r"""Gradient flow on the factors of a deep linear student, integrated.

.. math:: \dot W_l = -(W_L \cdots W_{l+1})^\top g^\top (W_{l-1} \cdots W_1)^\top, \qquad
          g = \nabla \ell(w), \quad w^\top = W_L \cdots W_1

Phuong 2021, (5.3).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.distillation.loss import improves_on_zero, slopes
from pindown.learn.distillation.student import null_part, problem
from pindown.learn.gates.numbers import count, positive

Method: TypeAlias = Literal["ode", "gd"]
_RELATIVE, _ABSOLUTE = 1e-12, 1e-15  # errors of one step of the integrator
_NEVER = 1e300  # a time that no flow reaches: it ends at rest
_MOST_STEPS = 30_000  # of the integrator; an even flow takes some hundred, a stiff one some thousand


def product(factors: Sequence[Array]) -> Array:
    """Return the student's weights, the product of the factors as a vector.

    >>> product([np.array([[1.0, 2.0]]), np.array([[3.0]])])
    array([3., 6.])
    """
    whole = factors[0]
    for factor in factors[1:]:
        whole = factor @ whole
    return np.asarray(whole[0])


def imbalance(factors: Sequence[Array]) -> float:
    r"""Return the largest entry of :math:`W_{l+1}^\top W_{l+1} - W_l W_l^\top`, zero if balanced."""
    pairs = pairwise(factors)
    return max((float(np.abs(b.T @ b - a @ a.T).max()) for a, b in pairs), default=0.0)


def balanced_factors(
    start: ArrayLike,
    depth: int,
    *,
    width: int = 1,
    random_state: int | np.random.Generator | None = None,
) -> list[Array]:
    r"""Return balanced factors with a given product: a chain of rank one.

    .. math:: W_1 = s u_1 v^\top, \quad W_l = s u_l u_{l-1}^\top, \quad W_L = s u_{L-1}^\top, \qquad
              s = \lVert w(0) \rVert^{1/L}

    Args:
        start: The product :math:`w(0) = s^L v`, (d,).
        depth: Number of factors L.
        width: Rows of the inner factors; the unit vectors u are random.
        random_state: Seed or generator.

    Example:
        >>> factors = balanced_factors([0.0, 8.0], 3, width=2, random_state=0)
        >>> product(factors).round(12), imbalance(factors) < 1e-12
        (array([0., 8.]), True)

    Phuong 2021, condition (5.13).
    """
    w0, layers = np.asarray(start, dtype=np.float64), count("depth", depth)
    if w0.ndim != 1 or not w0.size or not np.isfinite(w0).all():
        raise ValueError(f"start must be a finite vector; got shape {w0.shape}.")
    if layers == 1:
        return [w0[None, :].copy()]
    length = float(np.linalg.norm(w0))
    rng, size = np.random.default_rng(random_state), length ** (1.0 / layers)
    units = rng.standard_normal((layers - 1, count("width", width)))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    first = size * np.outer(units[0], w0 / length if length else w0)
    inner = [size * np.outer(b, a) for a, b in pairwise(units)]
    return [first, *inner, size * units[-1][None, :]]


def deep_start(
    X: ArrayLike, logits: ArrayLike, norm: float, random_state: int | np.random.Generator | None = None
) -> Array:
    """Return a random start of this norm that has a smaller loss than zero, if need be by its sign.

    Phuong 2021, condition (5.12).
    """
    rows, z = problem(X, logits)
    rng = np.random.default_rng(random_state)
    w = rng.standard_normal((1, rows.shape[1]))[0]
    w = w * (positive("norm", norm) / float(np.linalg.norm(w)))
    # For a small start only the sign of the slope at zero counts.
    rises = float(slopes(np.zeros(len(z)), z, rows) @ w) > 0
    w = -w if rises else w
    if np.any(z) and not improves_on_zero(w, rows, z):
        warnings.warn("the start has no smaller loss than zero; choose a smaller norm.", stacklevel=2)
    return w


@dataclass(frozen=True, eq=False)
class DeepRun:
    """Where the flow of the factors has come to.

    Attributes:
        factors: The factors at the end.
        weights: Their product.
        time: The end of the flow, or steps times step length.
        gradient: Norm of the loss's gradient at the end.
        invariant_drift: Change of the quantity that should not change, as a share of the largest value
            that it can have for a start of this norm.
        imbalance: How far the factors are from balanced at the end.
        method: ``"ode"`` or ``"gd"``.
        converged: Whether the gradient fell below the tolerance before the steps ran out.
    """

    factors: tuple[Array, ...]
    weights: Array
    time: float
    gradient: float
    invariant_drift: float
    imbalance: float
    method: Method
    converged: bool

    def __str__(self) -> str:
        state = "at rest" if self.converged else "not at rest"
        return (
            f"{self.method} flow of {len(self.factors)} factors to time {self.time:.4g}, {state}: "
            f"gradient {self.gradient:.2g}, invariant drifted {self.invariant_drift:.2g} (estimate)"
        )


def deep_linear_flow(
    X: ArrayLike,
    logits: ArrayLike,
    factors: Sequence[Array],
    *,
    method: Method = "ode",
    tol: float = 1e-13,
    step: float = 1e-2,
    max_iter: int = 1_000_000,
) -> DeepRun:
    """Follow gradient flow, or gradient descent, on the factors until the gradient vanishes.

    Args:
        X: Inputs, (n, d).
        logits: The teacher's logits, (n,).
        factors: Where to start, (h, d), ..., (1, h); see :func:`balanced_factors`.
        method: ``"ode"`` integrates with controlled error, also stiff flows (inputs of uneven size);
            ``"gd"`` takes steps of length ``step``.
        tol: Norm of the loss's gradient, as a share of that at zero or at the start, at which to stop.
            The flow of sure answers (logits beyond 20) is that flat long before its end.
        step: Step length of ``"gd"``.
        max_iter: Most steps of ``"gd"``.

    Example:
        >>> run = deep_linear_flow([[1.0, 0.0]], [1.0], balanced_factors([0.1, 0.1], 2))
        >>> run.weights.round(4)
        array([1.    , 0.2707])

    Phuong 2021, section 5.2.
    """
    rows, z = problem(X, logits)
    start = [np.array(factor, dtype=np.float64) for factor in factors]
    if z.ndim != 1 or not start or start[0].shape[-1] != rows.shape[1] or start[-1].shape[0] != 1:
        raise ValueError(
            f"factors must lead from {rows.shape[1]} inputs to one output, and logits be (n,); got "
            f"{[factor.shape for factor in start]} and {z.shape}."
        )
    if method not in ("ode", "gd"):
        raise ValueError(f"method must be 'ode' or 'gd'; got {method!r}.")
    first = max(_steepness(np.zeros(rows.shape[1]), rows, z), _steepness(product(start), rows, z))
    goal = positive("tol", tol) * first
    if method == "ode":
        ends, time = _integrated(rows, z, start, goal)
    else:
        ends, time = _stepped(rows, z, start, goal, positive("step", step), count("max_iter", max_iter))
    w = product(ends)
    before, after = (_invariant(rows, product(f), len(start)) for f in (start, ends))
    # A start inside the span has the invariant zero, but for rounding: judge it by what it could be.
    largest = float(np.linalg.norm(product(start))) ** (2.0 / len(start))
    drift = abs(after - before) / largest if largest else 0.0
    size = _steepness(w, rows, z)
    return DeepRun(tuple(ends), w, time, size, drift, imbalance(ends), method, size <= goal)


def _steepness(w: Array, rows: Array, z: Array) -> float:
    return float(np.linalg.norm(slopes(rows @ w, z, rows)))


def _invariant(rows: Array, w: Array, depth: int) -> float:
    unseen = null_part(rows, w)
    length = float(np.linalg.norm(w))
    return float(unseen @ unseen) / length ** (2 * (depth - 1) / depth) if length else 0.0


def _slopes_of_factors(factors: list[Array], rows: Array, z: Array) -> list[Array]:
    below = [np.eye(rows.shape[1])]
    for factor in factors:
        below.append(factor @ below[-1])
    slope = slopes(rows @ below[-1][0], z, rows)[None, :]
    above, found = np.eye(1), []
    for factor, under in zip(reversed(factors), reversed(below[:-1]), strict=True):
        found.append(above.T @ slope @ under.T)
        above = above @ factor
    return found[::-1]


def _integrated(rows: Array, z: Array, factors: list[Array], goal: float) -> tuple[list[Array], float]:
    from scipy.integrate import LSODA

    shapes = [factor.shape for factor in factors]
    cuts = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def split(flat: Array) -> list[Array]:
        return [part.reshape(s) for part, s in zip(np.split(flat, cuts), shapes, strict=True)]

    def field(_: float, flat: Array) -> Array:
        return -np.concatenate([part.ravel() for part in _slopes_of_factors(split(flat), rows, z)])

    flat = np.concatenate([factor.ravel() for factor in factors])
    flow = LSODA(field, 0.0, flat, _NEVER, rtol=_RELATIVE, atol=_ABSOLUTE)
    for _ in range(_MOST_STEPS):
        if flow.status != "running" or _steepness(product(split(flow.y)), rows, z) <= goal:
            break
        flow.step()
    return split(flow.y), float(flow.t)


def _stepped(
    rows: Array, z: Array, factors: list[Array], goal: float, step: float, most: int
) -> tuple[list[Array], float]:
    taken = 0
    for taken in range(most + 1):
        size = _steepness(product(factors), rows, z)
        if not math.isfinite(size):
            raise ValueError(f"the factors left the floats; choose a step below {step:g}.")
        if size <= goal or taken == most:
            break
        moves = _slopes_of_factors(factors, rows, z)
        factors = [factor - step * move for factor, move in zip(factors, moves, strict=True)]
    return factors, taken * step
