r"""Upper bounds on spectral norms that rounding cannot break.

A number s with :math:`s^2 I - W^\top W \succeq 0` bounds :math:`\|W\|_2`. We guess s from an
eigenvalue routine, whose accuracy nobody needs to trust, and prove it: a Cholesky factorisation that
runs to completion shows the matrix positive semidefinite up to a known multiple of rounding.

Rump 2006, "Verification of positive definiteness"; Higham 2002, Theorem 10.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, inf, ldexp, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from pindown.affine import Array, Matrix, dense, stored_entries
from pindown.deadline import NEVER, Deadline
from pindown.relaxation.tuning import (
    BALANCING_SETTLED,
    BALANCING_SWEEPS,
    FLOPS_PER_SECOND,
    MAX_GRAM_SIZE,
    NORM_POWER_STEPS,
)
from pindown.rounding import (
    SMALLEST,
    TINY,
    UNIT_ROUNDOFF,
    gamma,
    norm_up,
    product_up,
    times_power_up,
)

# Any positive scales are valid. Those are chosen as if weights and scales were within these, where all
# products stay in float64: a unit must not look idle only because its weights are small.
_WEIGHTS = (1e-30, 1e30)
_SQUARES = (1e-80, 1e80)


@dataclass(frozen=True)
class NormBound:
    """An upper bound on a norm, and how it was proved.

    Attributes:
        value: The bound.
        method: ``"cholesky"`` (tight to about 1e-9), ``"frobenius"`` (exact for one row or
            column), ``"symbol"`` (of a convolution, a few percent above) or ``"absolute weights"``
            (the norm of ``|W|``, which can be far above).
    """

    value: float
    method: str

    def __float__(self) -> float:
        return self.value

    @property
    def tight(self) -> bool:
        """Whether the true norm is known to be within a relative 1e-6."""
        return self.method in ("cholesky", "frobenius")


def spectral_norm(matrix: Matrix, *, budget: float = inf) -> NormBound:
    r"""Bound :math:`\|W\|_2 = \max_{\|x\|_2 = 1} \|W x\|_2` from above.

    Args:
        matrix: ``W``, dense or sparse.
        budget: Seconds it may take, roughly. The tight proof needs the smaller Gram matrix; where
            that has a side above 4096 or takes too long, the norm of ``|W|`` is bounded instead.

    >>> bound = spectral_norm(np.diag([3.0, -4.0]))
    >>> 4.0 <= bound.value < 4.0 + 1e-9
    True
    """
    scale = _scale(matrix)
    if scale == 0.0:
        return NormBound(0.0, "frobenius")
    whole = norm_up(matrix.data if sp.issparse(matrix) else matrix)
    if min(matrix.shape) == 1:
        return NormBound(whole, "frobenius")
    if min(matrix.shape) <= MAX_GRAM_SIZE and tight_cost(matrix) <= budget:
        proved = _proved_by_cholesky(_divided(matrix, scale), whole / scale)
        if proved is not None:
            return NormBound(product_up([proved, scale]), "cholesky")
    return NormBound(min(whole, absolute_product_norm([matrix], budget=budget)), "absolute weights")


def spectral_norms(matrices: Array, guesses: Array) -> Array:
    r"""Bound the spectral norms of many small dense matrices (n, k, d) from above, (n,).

    Args:
        matrices: Entries of size 1 or so: squares must stay in float64.
        guesses: About their norms, (n,); only the tightness of the bounds hangs on them.

    >>> bounds = spectral_norms(np.array([np.diag([3.0, -4.0]), np.eye(2)]), np.array([4.0, 1.0]))
    >>> bool(np.all(bounds >= [4, 1])), bounds.round(9)
    (True, array([4., 1.]))
    """
    rows, columns = matrices.shape[1:]
    turned = matrices.transpose(0, 2, 1)
    grams = matrices @ turned if rows <= columns else turned @ matrices
    n, m = min(rows, columns), max(rows, columns)
    squares = np.square(matrices).sum(axis=(1, 2))
    backward = gamma(n + 2) * n  # as in _proved_by_cholesky
    shift = np.square(guesses) * (1.0 + 1e-12 + 2.0 * backward) + 2.0 * gamma(m) * squares + TINY
    shifted = -grams
    shifted[:, np.arange(n), np.arange(n)] += shift[:, None]
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return np.array([spectral_norm(matrix).value for matrix in matrices])
    rounding = (2.0 * backward + 4.0 * UNIT_ROUNDOFF) * shift + gamma(m) * squares + TINY
    return np.sqrt(shift + 1.01 * rounding) * (1.0 + 4.0 * UNIT_ROUNDOFF)


def power_below(sizes: ArrayLike) -> Array:
    """Return powers of two near sizes, 1 for 0: division by them is exact and prevents overflow.

    >>> power_below([0.0, 5.0])
    array([1., 4.])
    """
    given = np.asarray(sizes, dtype=np.float64)
    return np.where(given > 0, np.ldexp(1.0, np.frexp(given)[1] - 1), 1.0)


def tight_cost(matrix: Matrix) -> float:
    """Return roughly the seconds that the tight proof of :func:`spectral_norm` takes."""
    n = min(matrix.shape)
    return (1.0 * n * stored_entries(matrix) + 1.0 * n**3) / FLOPS_PER_SECOND


def absolute_product_norm(matrices: Sequence[Matrix], *, budget: float = inf) -> float:
    r"""Bound :math:`\| |W_L| \cdots |W_1| \|_2` from above without forming the product.

    For a matrix :math:`M \ge 0` and any vector :math:`p > 0`,
    :math:`\|M\|_2^2 \le \max_j (M^\top M p)_j / p_j` (Collatz, Wielandt); power steps improve p.

    Args:
        matrices: :math:`W_1, \dots, W_L` in the order they are applied.
        budget: Seconds after which to take no further power step; every step is a valid bound.

    >>> absolute_product_norm([np.array([[3.0, -4.0]])]).__round__(6)
    5.0
    """
    deadline = Deadline.after(budget)
    scales = [_scale(W) for W in matrices]
    if 0.0 in scales:
        return 0.0
    scales = [1.0 if 1e-100 < scale < 1e100 else scale for scale in scales]
    scaled = [_divided(W, scale) for W, scale in zip(matrices, scales, strict=True)]
    p = np.ones(scaled[0].shape[1])
    best = (inf, 1.0)  # an exponent e and a fraction m, for m 2^e may leave float64
    for _ in range(NORM_POWER_STEPS):
        q, exponent = p, 0
        for W in scaled:
            q, shift = _near_one(_absolute_times(W, q), W.shape[1])
            exponent += shift
        for W in reversed(scaled):
            q, shift = _near_one(_absolute_transposed_times(W, q), W.shape[0])
            exponent += shift
        fraction, shift = frexp(float(np.max(q / p)))
        previous, best = best, min(best, (exponent + shift, fraction))
        settled = best[0] == previous[0] and best[1] > (1.0 - 1e-9) * previous[1]
        if settled or deadline.passed:
            break
        p = np.maximum(q / q.max(), 1e-12)
    half, odd = divmod(int(best[0]), 2)
    rounding = gamma(2 * sum(sum(W.shape) + 5 for W in scaled) + 8)
    root = sqrt(ldexp(best[1], odd)) * (1.0 + rounding)
    exponents = [frexp(scale)[1] - 1 for scale in scales]
    return times_power_up(root, half + sum(exponents))


def _near_one(q: Array, terms: int) -> tuple[Array, int]:
    """Return q times a power of two, and its exponent; what underflow may have taken is put back."""
    q = q + terms * SMALLEST
    exponent = frexp(float(q.max()))[1]
    return np.ldexp(q, -exponent) + TINY, exponent


def _absolute_times(W: Matrix, v: Array) -> Array:
    """Return ``|W| v`` without holding a second copy of a large dense W."""
    if sp.issparse(W):
        return np.asarray(abs(W) @ v)
    return np.concatenate([np.abs(rows) @ v for rows in _row_blocks(W)])


def _absolute_transposed_times(W: Matrix, v: Array) -> Array:
    if sp.issparse(W):
        return np.asarray(abs(W).T @ v)
    total, start = np.zeros(W.shape[1]), 0
    for rows in _row_blocks(W):
        total += v[start : start + len(rows)] @ np.abs(rows)
        start += len(rows)
    return total


def _row_blocks(W: Array) -> list[Array]:
    return np.array_split(W, max(1, min(len(W), W.size // 2**18)))


def _scale(matrix: Matrix) -> float:
    """Return a power of two near the largest entry: division by it is exact and prevents overflow."""
    entries = matrix.data if sp.issparse(matrix) else matrix
    largest = float(max(np.max(entries, initial=0.0), -np.min(entries, initial=0.0)))
    return ldexp(1.0, frexp(largest)[1] - 1) if largest else 0.0


def _divided(matrix: Matrix, scale: float) -> Matrix:
    if scale == 1.0 or not sp.issparse(matrix):
        return matrix if scale == 1.0 else matrix / scale
    divided = matrix.copy()
    divided.data = matrix.data / scale  # SciPy multiplies by 1 / scale, which may be infinite
    return divided


def _proved_by_cholesky(W: Matrix, frobenius: float) -> float | None:
    """Return a proved bound on the norm, or None if no guess near the estimate could be proved."""
    rows, columns = W.shape
    gram = dense(W @ W.T if rows <= columns else W.T @ W)
    n, m = len(gram), max(rows, columns)
    guess = _largest_eigenvalue(gram)
    backward = gamma(n + 2) * n  # Cholesky: A + E = R'R with |E| <= this times the largest diagonal
    for margin in (1e-12, 1e-10, 1e-8, 1e-5, 1e-2):
        shift = guess * (1.0 + margin + 2.0 * backward)
        if _factorises(gram, shift):
            rounding = (2.0 * backward + 4.0 * UNIT_ROUNDOFF) * shift + gamma(m) * frobenius**2
            return sqrt(shift + rounding) * (1.0 + 4.0 * UNIT_ROUNDOFF)
    return None


def _factorises(gram: Array, shift: float) -> bool:
    """Return whether Cholesky runs through on ``shift I - gram``."""
    A = -gram
    A[np.diag_indices_from(A)] += shift
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True


def _largest_eigenvalue(gram: Array) -> float:
    if len(gram) <= 256:
        return float(np.linalg.eigvalsh(gram)[-1])
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    start: Any = np.random.default_rng(0).standard_normal(len(gram))  # fixed: same answer every time
    try:
        return float(eigsh(gram, k=1, which="LA", v0=start, tol=1e-9, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return float(np.linalg.eigvalsh(gram)[-1])


def balanced_weights(weights: list[Matrix], *, deadline: Deadline = NEVER) -> list[Matrix]:
    r"""Return :math:`D_l W_l D_{l-1}^{-1}` with balanced units.

    Units without incoming or without outgoing weights cannot move the output: their weights become
    zero on both sides. Every entry carries at most five roundings.

    Args:
        weights: :math:`W_1, \dots, W_L`, dense or sparse.
        deadline: When to stop balancing; the result is valid anyway.

    >>> W1, W2 = balanced_weights([np.array([[8.0]]), np.array([[0.5]])])
    >>> W1.item(), W2.item()
    (2.0, 2.0)
    """
    squares = _balancing_squares(weights, deadline)
    with np.errstate(over="ignore"):
        return [
            _scaled(W, np.sqrt(row), np.sqrt(column))
            for W, (row, _), (_, column) in zip(weights, squares[1:], squares[:-1], strict=True)
        ]


def balancing_scales(weights: list[Matrix], *, deadline: Deadline = NEVER) -> list[Array]:
    r"""Return the scales s of all hidden units at which they are balanced; 0 for units without effect.

    >>> balancing_scales([np.array([[8.0]]), np.array([[0.5]])])
    [array([0.25])]
    """
    return [np.sqrt(squares) for squares, _ in _balancing_squares(weights, deadline)[1:-1]]


def _balancing_squares(weights: list[Matrix], deadline: Deadline) -> list[tuple[Array, Array]]:
    """Return per layer of units ``(s^2, 1 / s^2)``, both zero for units without effect."""
    Q = [_moderate_squares(W) for W in weights]
    ends = [np.ones(weights[0].shape[1]), *(np.ones(W.shape[0]) for W in weights)]
    squares = [(one, one) for one in ends]
    for _ in range(BALANCING_SWEEPS):
        change = 0.0
        for layer in range(1, len(weights)):
            incoming = np.asarray(Q[layer - 1] @ squares[layer - 1][1])
            outgoing = np.asarray(Q[layer].T @ squares[layer + 1][0])
            alive = (incoming > 0) & (outgoing > 0)
            ratio = np.sqrt(outgoing / np.where(alive, incoming, 1.0))
            new = np.where(alive, np.clip(ratio, *_SQUARES), 0.0)
            moved = np.abs(new - squares[layer][0])[alive] / new[alive]
            change = max(change, float(moved.max(initial=0.0)))
            squares[layer] = (new, np.where(alive, 1.0 / np.where(alive, new, 1.0), 0.0))
        if change < BALANCING_SETTLED or deadline.passed:
            break
    return squares


def _moderate_squares(W: Matrix) -> Matrix:
    """Return the squares of the weights, those that are not zero clipped to the range above."""
    if sp.issparse(W):
        squares = W.copy()
        squares.data = np.clip(np.abs(W.data), *_WEIGHTS) ** 2
        return squares
    return np.where(W == 0.0, 0.0, np.clip(np.abs(W), *_WEIGHTS) ** 2)


def _scaled(W: Matrix, rows: Array, columns: Array) -> Matrix:
    # Scales first: their product is finite, so that no infinity meets a zero.
    if not sp.issparse(W):
        return rows[:, None] * columns * W
    scaled = W.copy()
    scaled.data = np.repeat(rows, np.diff(W.indptr)) * columns[W.indices] * W.data
    return scaled
