r"""Newton's method for kernel logistic regression, exact for two classes and matrix-free for more.

.. math:: \min_{A, b}\ \tfrac12\operatorname{tr} A^\top K A + C\sum_i s_i\,\ell(f_i, y_i), \qquad f = KA
          + \mathbf 1 b^\top.

With the slopes :math:`g = \partial\ell/\partial f` and curvatures W of the weighted losses, the
minimiser has :math:`A = -Cg` and :math:`\mathbf 1^\top A = 0`. Two classes take one Newton step per
Cholesky factor of :math:`I/C + W^{1/2}KW^{1/2}`; more classes couple their curvatures, and the step is
found by conjugate gradients in the inner product of the function space, preconditioned with one factor
for all.

Smooth kernels in few dimensions have Gram matrices of small numerical rank; then :math:`K = ZZ^\top`
with a thin Z, exact to rounding, and every system costs :math:`nr^2` instead of :math:`n^3` operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack
from scipy.special import expit, logsumexp, xlogy

from pindown.affine import Array
from pindown.learn.kernels.mercer import finite_feature_map
from pindown.learn.kernels.tuning import (
    LOOSE_GAP,
    MAX_FACTORED_AGAIN,
    MAX_FORCING,
    MAX_HALVINGS,
    MAX_INNER_STEPS,
    MIN_FORCING,
    RANK_PROBE_SAMPLES,
    SINGLE_PRECISION_SAMPLES,
    STALE_PRECONDITIONER,
    THIN_FACTOR_SHARE,
)

Step = Callable[[Array, Array, Array], tuple[Array, Array]]
Precondition = Callable[[Array, Array], tuple[Array, Array]]
_RANK = 1e-13  # of the largest diagonal entry: what pivoted elimination leaves below this is rounding
Map = Callable[[Array], Array]


@dataclass(frozen=True)
class Solution:
    """Coefficients of the expansion, offsets, and how they were reached.

    Attributes:
        coefficients: A, (n, k), with k = 1 for two classes.
        offset: b, (k,).
        outputs: f on the samples, (n, k).
        objective: Value of the objective.
        gap: Objective minus the dual value at the slopes: the distance to the optimum is at most this.
        residual: Norm of the gradient in function space, in units of independent slopes of size one.
        n_iter: Newton steps.
        converged: Whether the residual is below the tolerance and the gap small beside the objective.
        interrupted: Whether it was stopped by the user.
    """

    coefficients: Array
    offset: Array
    outputs: Array
    objective: float
    gap: float
    residual: float
    n_iter: int
    converged: bool
    interrupted: bool = False


@dataclass(frozen=True)
class Task:
    """A weighted classification problem.

    Gram matrix, one-hot or 0/1 targets (n, k), weights C s_i, offset or not.
    """

    K: Array
    targets: Array
    weights: Array
    intercept: bool

    def probabilities(self, outputs: Array) -> Array:
        """Return the model's probabilities, of the positive class if there is one column."""
        if outputs.shape[1] == 1:
            return np.asarray(expit(outputs))
        shifted = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    def slopes(self, outputs: Array) -> Array:
        """Return the derivative of the weighted losses by the outputs."""
        return self.weights[:, None] * (self.probabilities(outputs) - self.targets)

    def objective(self, coefficients: Array, values: Array, outputs: Array) -> float:
        """Return half the squared norm plus the weighted losses.

        Values are the outputs without offset.
        """
        if outputs.shape[1] == 1:
            losses = np.logaddexp(0.0, outputs[:, 0]) - self.targets[:, 0] * outputs[:, 0]
        else:
            losses = logsumexp(outputs, axis=1) - np.einsum("ij,ij->i", self.targets, outputs)
        return float(0.5 * np.vdot(coefficients, values) + self.weights @ losses)

    def dual(self, outputs: Array) -> float:
        """Return the dual value at the probabilities of these outputs."""
        p = self.probabilities(outputs)
        a = self.weights[:, None] * (self.targets - p)
        entropy = -xlogy(p, p).sum(axis=1)
        if p.shape[1] == 1:
            entropy = entropy - xlogy(1 - p, 1 - p)[:, 0]
        return float(self.weights @ entropy - 0.5 * np.vdot(a, self.K @ a))


def solve(task: Task, *, tolerance: float, max_iter: int) -> Solution:
    """Minimise by damped Newton steps until the slopes and the coefficients agree to the tolerance.

    Raises:
        ValueError: If the kernel times the weights spans more than float64 can hold.
    """
    found = None
    try:
        found = _descend(task, operator(task.K), tolerance, max_iter)
        ended = found.converged or found.interrupted or found.n_iter >= max_iter
        if ended or len(task.K) > MAX_FACTORED_AGAIN:
            return found
    except LinAlgError:
        pass  # rounding in a matrix far larger than the identity: its factor has less of it
    try:
        again = _descend(task, Factored(finite_feature_map(task.K)), tolerance, max_iter)
        better = again if found is None or again.residual < found.residual else found
        return replace(better, interrupted=again.interrupted)
    except (LinAlgError, ValueError):
        if found is not None:
            return found
        raise ValueError(
            "C times the kernel spans more than float64 can hold; scale the samples or lower C"
        ) from None


def _descend(task: Task, K: Dense | Factored, tolerance: float, max_iter: int) -> Solution:
    n, k = task.targets.shape
    A, values, b = np.zeros((n, k)), np.zeros((n, k)), np.zeros(k)
    step: Step | _IterativeStep = _exact_step(task, K) if k == 1 else _IterativeStep(task, K)
    value = task.objective(A, values, values + b)
    steps, residual = 0, _residual(task, K, A, values + b)
    interrupted = False
    try:
        while residual > tolerance and steps < max_iter:
            dA, db = step(A, values + b, task.slopes(values + b))
            moved = K.product(dA)
            t, new_value = _damped(task, (A, values, b), (dA, moved, db), value)
            if t == 0.0:  # rounding has the last word: no step decreases the objective
                break
            new = A + t * dA, values + t * moved, b + t * db
            new_residual = _residual(task, K, new[0], new[1] + new[2])
            if new_value >= value and new_residual >= residual:  # rounding: keep what there is
                if isinstance(step, _IterativeStep) and step.sharpen():
                    continue
                break
            (A, values, b), value, residual, steps = new, new_value, new_residual, steps + 1
    except KeyboardInterrupt:
        interrupted = True
    if not steps and not interrupted and residual > tolerance:  # not even the first step goes down
        raise LinAlgError
    return replace(_solution(task, A, b, steps, tolerance), interrupted=interrupted)


def _solution(task: Task, A: Array, b: Array, steps: int, tolerance: float) -> Solution:
    K = Dense(task.K)  # the matrix itself has the last word, not its factor
    values = K.product(A)
    outputs = values + b
    value, residual = task.objective(A, values, outputs), _residual(task, K, A, values + b)
    # Sums of slopes are zero to rounding only; what that can hide is their product with the offsets.
    unbalanced = float(np.abs(b) @ np.abs(task.slopes(outputs).sum(axis=0))) if task.intercept else 0.0
    gap = max(0.0, value - task.dual(outputs)) + unbalanced
    # Both values are sums over the samples of terms whose size the objective bounds.
    gap += len(A) * np.finfo(float).eps * (abs(value) + float(task.weights.sum()))
    converged = bool(residual <= tolerance and gap <= max(LOOSE_GAP, tolerance) * abs(value))
    return Solution(A, b, outputs, value, gap, residual, steps, converged)


def _residual(task: Task, K: Dense | Factored, A: Array, outputs: Array) -> float:
    """Return the norm of the gradient in function space.

    In units of that of independent slopes of size one.
    """
    g = task.slopes(outputs)
    r = A + g
    square = float(np.vdot(r, K.product(r)))
    size = max(float(task.K.diagonal().mean()), np.finfo(float).tiny)
    if task.intercept:
        square += size * float((g.sum(axis=0) ** 2).sum()) / len(g)
    return float(np.sqrt(max(square, 0.0) / (size * float(task.weights @ task.weights))))


def _damped(
    task: Task, at: tuple[Array, Array, Array], move: tuple[Array, Array, Array], value: float
) -> tuple[float, float]:
    """Return the first of the steps 1, 1/2, 1/4, ... that does not raise the objective.

    And the new objective.
    """
    (A, values, b), (dA, moved, db) = at, move
    rounding = len(A) * np.finfo(float).eps * abs(value)  # of a sum over the samples
    t = 1.0
    for _ in range(MAX_HALVINGS):
        new = task.objective(A + t * dA, values + t * moved, values + t * moved + b + t * db)
        if new <= value + rounding:
            return t, new
        t /= 2
    return 0.0, value


def _exact_step(task: Task, K: Dense | Factored) -> Step:
    def step(A: Array, outputs: Array, g: Array) -> tuple[Array, Array]:
        p = task.probabilities(outputs)[:, 0]
        curvatures = task.weights * p * (1 - p)
        inverse = K.inverse(curvatures)
        x = inverse(-(A + g)[:, 0])
        if not task.intercept:
            return x[:, None], np.zeros(1)
        y = inverse(curvatures)
        # The new coefficients sum to zero: that is the equation of the offset.
        t = (A.sum() + x.sum()) / max(float(y.sum()), np.finfo(float).tiny)
        return (x - t * y)[:, None], np.array([t])

    return step


class _IterativeStep:
    """Newton steps for several classes, with one preconditioner kept as long as it serves."""

    def __init__(self, task: Task, K: Dense | Factored) -> None:
        self.task, self.K = task, K
        self.single = len(task.K) > SINGLE_PRECISION_SAMPLES
        self.weight = 0.0
        self.precondition: Any = None

    def __call__(self, A: Array, outputs: Array, g: Array) -> tuple[Array, Array]:
        s, k = self.task.weights[:, None], g.shape[1]
        p = self.task.probabilities(outputs)
        # Mean eigenvalue of the curvatures, apart from the direction that changes no probability.
        weight = float((s[:, 0] * (1 - np.einsum("ij,ij->i", p, p))).mean()) / (k - 1)
        self._prepare(max(weight, float(self.task.weights.max()) * np.finfo(float).eps))

        def curve(h: Array) -> Array:
            return np.asarray(s * p * (h - np.einsum("ij,ij->i", p, h)[:, None]))

        r = -(A + g)
        rest = -g.sum(axis=0) if self.task.intercept else np.zeros(k)
        forcing = min(MAX_FORCING, max(MIN_FORCING, _residual(self.task, self.K, A, outputs) ** 0.5))
        x, t = _conjugate_gradients(
            self.K, curve, self.precondition, (r, rest), forcing, self.task.intercept
        )
        # One number added to all classes changes no probability; rounding must not add any.
        return x - x.mean(axis=1, keepdims=True), t - t.mean()

    def sharpen(self) -> bool:
        """Go over to double precision; return whether that is a change."""
        changed, self.single, self.precondition = self.single, False, None
        return changed

    def _prepare(self, weight: float) -> None:
        if (
            self.precondition is None
            or not 1 / STALE_PRECONDITIONER < weight / self.weight < STALE_PRECONDITIONER
        ):
            inverse = self.K.rough_inverse(weight, self.single)
            self.precondition = _preconditioner(inverse, len(self.task.K), weight, self.task.intercept)
            self.weight = weight


def _preconditioner(inverse: Map, n: int, weight: float, intercept: bool) -> Precondition:
    """Return the solution map of the Newton system whose curvatures are all equal to one number."""
    if not intercept:
        return lambda r, rest: (inverse(r), np.zeros_like(rest))
    sums = inverse(np.ones((n, 1)))[:, 0]
    total = weight * float(sums.sum())

    def apply(r: Array, rest: Array) -> tuple[Array, Array]:
        t = (rest - r.sum(axis=0) + sums @ r) / total
        return inverse(r) - weight * sums[:, None] * t, t

    return apply


def _conjugate_gradients(
    K: Dense | Factored,
    curve: Callable[[Array], Array],
    precondition: Precondition,
    right: tuple[Array, Array],
    forcing: float,
    intercept: bool,
) -> tuple[Array, Array]:
    """Solve (I + W K) x + W 1 t = r, with the sums over samples of W (K x + 1 t) equal to the rest."""
    r, rest = right[0].copy(), right[1].copy()
    x, t = np.zeros_like(r), np.zeros_like(rest)
    z, zt = precondition(r, rest)
    Kz = K.product(z)
    size = float(np.vdot(r, Kz) + rest @ zt)
    d, dt, Kd = z, zt, Kz
    goal = forcing**2 * size
    for _ in range(MAX_INNER_STEPS):
        bent = curve(Kd + dt)
        q, qt = bent + d, bent.sum(axis=0) if intercept else np.zeros_like(rest)
        curvature = float(np.vdot(Kd, q) + dt @ qt)
        if not curvature > 0 or not size > 0:
            break
        step = size / curvature
        x, t = x + step * d, t + step * dt
        r, rest = r - step * q, rest - step * qt
        z, zt = precondition(r, rest)
        Kz = K.product(z)
        before, size = size, float(np.vdot(r, Kz) + rest @ zt)
        if size <= goal:
            break
        d, dt, Kd = z + size / before * d, zt + size / before * dt, Kz + size / before * Kd
    return x, t


class Dense:
    """The matrix itself."""

    def __init__(self, K: Array) -> None:
        self.K = K

    def product(self, V: Array) -> Array:
        """Return K V."""
        return np.asarray(self.K @ V)

    def inverse(self, weights: Array) -> Map:
        """Return the map v -> (I + W K)^-1 v for a diagonal W, which may have zeros."""
        root = np.sqrt(weights)
        B = root[:, None] * self.K
        B *= root
        B.flat[:: len(B) + 1] += 1.0
        factor = cho_factor(B.T, lower=False, overwrite_a=True, check_finite=False)

        def apply(v: Array) -> Array:
            return np.asarray(v - root * cho_solve(factor, root * (self.K @ v), check_finite=False))

        return apply

    def rough_inverse(self, weight: float, single: bool) -> Map:
        """Return the map v -> (I + weight K)^-1 v, in single precision if that is enough."""
        if single:
            B = (weight * self.K).astype(np.float32)
            B.flat[:: len(B) + 1] += np.float32(1.0)
            factor, failed = lapack.spotrf(B.T, lower=0, overwrite_a=1)
            if not failed:
                # One product with the inverse is several times faster than two triangular solves.
                upper, _ = lapack.spotri(factor, lower=0, overwrite_c=1)
                whole = np.triu(upper) + np.triu(upper, 1).T
                return lambda v: (whole @ v.astype(np.float32)).astype(np.float64)
        D = weight * self.K
        D.flat[:: len(D) + 1] += 1.0
        double = cho_factor(D.T, lower=False, overwrite_a=True, check_finite=False)
        return lambda v: np.asarray(cho_solve(double, v, check_finite=False))


class Factored:
    """A thin factor Z with K = Z Z'."""

    def __init__(self, Z: Array) -> None:
        self.Z = Z
        self._inner: Array | None = None

    def product(self, V: Array) -> Array:
        """Return K V."""
        return np.asarray(self.Z @ (self.Z.T @ V))

    def inverse(self, weights: Array) -> Map:
        """Return the map v -> (I + W K)^-1 v for a diagonal W, which may have zeros."""
        weighted = weights[:, None] * self.Z
        return self._map(weighted.T @ self.Z, weighted)

    def rough_inverse(self, weight: float, single: bool) -> Map:
        """Return the map v -> (I + weight K)^-1 v; single precision would save nothing here."""
        if self._inner is None:
            self._inner = self.Z.T @ self.Z
        return self._map(weight * self._inner, weight * self.Z)

    def _map(self, inner: Array, weighted: Array) -> Map:
        inner.flat[:: len(inner) + 1] += 1.0
        factor = cho_factor(inner, check_finite=False)
        return lambda v: np.asarray(v - weighted @ cho_solve(factor, self.Z.T @ v, check_finite=False))


def operator(K: Array) -> Dense | Factored:
    """Return the cheaper of the two forms of a positive semi-definite matrix."""
    n = len(K)
    if n <= RANK_PROBE_SAMPLES:
        return Dense(K)
    some = np.linspace(0, n - 1, RANK_PROBE_SAMPLES).astype(int)
    part = np.linalg.eigvalsh(K[np.ix_(some, some)])
    if (
        np.count_nonzero(part > _RANK * RANK_PROBE_SAMPLES * part[-1])
        > THIN_FACTOR_SHARE * RANK_PROBE_SAMPLES
    ):
        return Dense(K)
    largest = float(K.diagonal().max())
    factor, pivots, rank, _ = lapack.dpstrf(K, tol=_RANK * largest, lower=1)
    if rank > THIN_FACTOR_SHARE * n:
        return Dense(K)
    Z = np.empty((n, rank))
    Z[pivots - 1] = np.tril(factor[:, :rank])
    return Factored(Z)
