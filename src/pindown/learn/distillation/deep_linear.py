r"""Where a deep linear student ends: the closed form, plus what its start left in unseen directions.

A student :math:`w^\top = W_L \cdots W_1` with balanced factors follows

.. math:: \dot w = -\lVert w \rVert^{2 - 2/L} \big(g + (L - 1) P_w g\big), \qquad g = \nabla \ell(w)

The part :math:`P_Q w` orthogonal to the inputs keeps its direction, and
:math:`\lVert P_Q w \rVert^2 / \lVert w \rVert^{2(L-1)/L}` never changes. Hence, with :math:`q_0 = \lVert
P_Q w(0) \rVert^2`,

.. math:: w(\infty) = \hat w + \sqrt{q / q_0}\; P_Q w(0), \qquad
          q = q_0 \Big(\frac{\lVert \hat w \rVert^2 + q}{\lVert w(0) \rVert^2}\Big)^{(L-1)/L}.

The distance to :math:`\hat w` falls like :math:`\lVert w(0) \rVert^{1/L}` only: a deep student needs an
exponentially smaller start for the same accuracy. The flow on the factors themselves,

.. math:: \dot W_l = -(W_L \cdots W_{l+1})^\top g^\top (W_{l-1} \cdots W_1)^\top ,

is integrated, to check that.

Phuong 2021, section 5.2 and Theorem 5.2.
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
from scipy.optimize import brentq

from pindown.affine import Array
from pindown.evidence import Assumption, Kind, kind_of
from pindown.learn.distillation.loss import improves_on_zero, slopes
from pindown.learn.distillation.student import inputs_and_logits, minimum_norm, null_part
from pindown.learn.distillation.tuning import MAX_INTEGRATOR_STEPS
from pindown.validation import choice, integer, positive

_MIN_START = 1e-100  # squares of smaller numbers leave float64
_ROOT = 1e-15  # of the logarithm of q
Method: TypeAlias = Literal["ode", "gd"]
_RELATIVE, _ABSOLUTE = 1e-12, 1e-15  # errors of one step of the integrator
_NEVER = 1e300  # a time that no flow reaches: it ends at rest


@dataclass(frozen=True, eq=False)
class DeepLimit:
    r"""The limit of a deep linear student.

    Attributes:
        weights: :math:`w(\infty)`.
        shallow: :math:`\hat w`, the limit of a student with one layer from zero.
        depth: L.
        start_norm: Norm of the product of the factors at the start.
        error: :math:`\lVert w(\infty) - \hat w \rVert`, exact.
        guarantee: The theorem's bound on the error; infinite where it says nothing.
        assumptions: What the limit rests on.
    """

    weights: Array
    shallow: Array
    depth: int
    start_norm: float
    error: float
    guarantee: float
    assumptions: tuple[Assumption, ...]

    @property
    def relative_error(self) -> float:
        """The error as a share of the length of the shallow student."""
        length = float(np.linalg.norm(self.shallow))
        return self.error / length if length else math.inf

    @property
    def kind(self) -> Kind:
        """Exact, or a heuristic where an assumption is violated."""
        return kind_of(self.assumptions)

    def __str__(self) -> str:
        rests = "; ".join(map(str, self.assumptions))
        return (
            f"depth {self.depth}, start {self.start_norm:.3g}: ends {self.error:.4g} from the shallow "
            f"student, by the theorem at most {self.guarantee:.4g} ({self.kind}; "
            f"Phuong 2021, Theorem 5.2)\nrests on: {rests}"
        )


def deep_limit(X: ArrayLike, logits: ArrayLike, start: ArrayLike, depth: int) -> DeepLimit:
    r"""Return the limit of gradient flow on the factors of a deep linear student.

    Args:
        X: Inputs, (n, d).
        logits: The teacher's logits, (n,), a linear function of the inputs.
        start: The product :math:`w(0)` of balanced factors, (d,), not zero.
        depth: Number of factors L; 1 is a student without factors.

    Raises:
        ValueError: If the shapes do not fit, the start is zero, or no linear student has these logits.

    Example:
        The teacher (1, 5) is seen along the first axis only. With two factors and the start (0.1, 0.1)
        the unseen part grows to the root of q = 0.01 sqrt((1 + q) / 0.02):

        >>> limit = deep_limit([[1.0, 0.0]], [1.0], [0.1, 0.1], depth=2)
        >>> q = limit.error**2
        >>> limit.weights.round(4), round(0.01 * math.sqrt((1 + q) / 0.02) / q, 9)
        (array([1.    , 0.2707]), 1.0)

    Phuong 2021, Theorem 5.2 and (D.32), solved for the limit itself.
    """
    rows, z = inputs_and_logits(X, logits)
    w0, layers = np.asarray(start, dtype=np.float64), integer("depth", depth)
    if z.ndim != 1 or w0.shape != (rows.shape[1],) or not np.isfinite(w0).all():
        raise ValueError(
            f"logits must be (n,) and start ({rows.shape[1]},), finite; got {z.shape} and {w0.shape}."
        )
    student = minimum_norm(rows, z)
    if not student.interpolates:
        raise ValueError(
            f"no linear student meets these logits (off by {student.residual:.2g}); the limit is known "
            "for logits that are linear in the inputs, for example with no more inputs than dimensions."
        )
    length = float(np.linalg.norm(w0))
    if length < _MIN_START and layers > 1:
        raise ValueError(
            f"a deep student that starts at zero never moves; start at a norm of {_MIN_START:g} or more."
        )
    unseen = null_part(rows, w0)
    q0, hat = float(unseen @ unseen), student.weights
    q = 0.0 if student.complete or q0 == 0.0 else _unseen_limit(q0, float(hat @ hat), length**2, layers)
    weights = hat + (math.sqrt(q / q0) if q0 else 0.0) * unseen
    better = improves_on_zero(w0, rows, z)
    rests = [Assumption("factors are balanced at the start")]
    if layers > 1:
        text = "the start has a smaller loss than zero"
        rests.append(Assumption.judged(text, better))
    return DeepLimit(
        weights,
        hat,
        layers,
        length,
        math.sqrt(q),
        error_bound(length, float(np.linalg.norm(hat)), layers),
        tuple(rests),
    )


def _unseen_limit(q0: float, seen: float, start: float, depth: int) -> float:
    """Return the root q; in logarithms both sides are smooth and the slope is at least 1 / depth."""
    power = (depth - 1) / depth
    if seen == 0.0 or depth == 1:
        return float(math.exp((math.log(q0) - power * math.log(start)) * depth)) if depth > 1 else q0

    def gap(x: float) -> float:
        return x - math.log(q0) - power * (math.log(seen + math.exp(x)) - math.log(start))

    low = math.log(q0) + power * (math.log(seen) - math.log(start))
    high = low - gap(low) * depth
    if high <= low:
        return math.exp(low)
    return math.exp(float(brentq(gap, low, math.nextafter(high, math.inf) + _ROOT, xtol=_ROOT)))


def error_bound(start_norm: float, student_norm: float, depth: int) -> float:
    r"""Return the theorem's bound on the distance to the shallow student.

    .. math:: \epsilon^2 = \frac{\lVert w(0) \rVert^{2/L}}{\lVert \hat w \rVert^{2/L} - \lVert w(0)
              \rVert^{2/L}}\; \lVert \hat w \rVert^2, \qquad \lVert w(0) \rVert < \lVert \hat w \rVert

    >>> round(error_bound(0.01, 1.0, 2), 4), error_bound(2.0, 1.0, 2)
    (0.1005, inf)

    Phuong 2021, (D.40); (D.41) is misprinted.
    """
    start, hat = (
        positive("start_norm", start_norm, zero=True),
        positive("student_norm", student_norm, zero=True),
    )
    power = 2.0 / integer("depth", depth)
    if start >= hat:
        return math.inf
    return hat * math.sqrt(start**power / (hat**power - start**power))


def start_norm_for(error: float, student_norm: float, depth: int) -> float:
    r"""Return the norm of the start below which the theorem promises this distance.

    .. math:: \lVert \hat w \rVert \Big(\frac{\epsilon^2}{\epsilon^2 + \lVert \hat w \rVert^2}\Big)^{L/2}

    >>> round(error_bound(start_norm_for(0.1, 3.0, 4), 3.0, 4), 12)
    0.1

    Phuong 2021, (5.11), whose minimum is always its second term, simplified.
    """
    eps, hat = positive("error", error), positive("student_norm", student_norm)
    return hat * (eps**2 / (eps**2 + hat**2)) ** (integer("depth", depth) / 2.0)


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
    w0, layers = np.asarray(start, dtype=np.float64), integer("depth", depth)
    if w0.ndim != 1 or not w0.size or not np.isfinite(w0).all():
        raise ValueError(f"start must be a finite vector; got shape {w0.shape}.")
    if layers == 1:
        return [w0[None, :].copy()]
    length = float(np.linalg.norm(w0))
    rng, size = np.random.default_rng(random_state), length ** (1.0 / layers)
    units = rng.standard_normal((layers - 1, integer("width", width)))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    first = size * np.outer(units[0], w0 / length if length else w0)
    inner = [size * np.outer(b, a) for a, b in pairwise(units)]
    return [first, *inner, size * units[-1][None, :]]


def deep_start(
    X: ArrayLike, logits: ArrayLike, norm: float, random_state: int | np.random.Generator | None = None
) -> Array:
    """Return a random start of this norm that has a smaller loss than zero, if need be by its sign.

    >>> start = deep_start([[1.0, 0.0], [0.0, 1.0]], [2.0, -1.0], norm=0.1, random_state=0)
    >>> round(float(np.linalg.norm(start)), 6)
    0.1

    Phuong 2021, condition (5.12).
    """
    rows, z = inputs_and_logits(X, logits)
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
    rows, z = inputs_and_logits(X, logits)
    start = [np.array(factor, dtype=np.float64) for factor in factors]
    if z.ndim != 1 or not start or start[0].shape[-1] != rows.shape[1] or start[-1].shape[0] != 1:
        raise ValueError(
            f"factors must lead from {rows.shape[1]} inputs to one output, and logits be (n,); got "
            f"{[factor.shape for factor in start]} and {z.shape}."
        )
    choice("method", method, ("ode", "gd"))
    first = max(_steepness(np.zeros(rows.shape[1]), rows, z), _steepness(product(start), rows, z))
    goal = positive("tol", tol) * first
    if method == "ode":
        ends, time = _integrated(rows, z, start, goal)
    else:
        ends, time = _stepped(
            rows, z, start, goal, positive("step", step), integer("max_iter", max_iter)
        )
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
    for _ in range(MAX_INTEGRATOR_STEPS):
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
