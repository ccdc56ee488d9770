r"""Quadratic multipliers: the sharpest bound here on what a source can do to the outputs.

Every ReLU slope between 0 and 1 gives :math:`e_i (z_i - e_i) \ge 0`, where z enters and e leaves. With
any multipliers :math:`\lambda \ge 0`, :math:`\nu \ge 0`

.. math::
    w \cdot e_{L-1} \;\le\; \sup_{v, e} \; w \cdot e_{L-1}
      + \sum_l e_l^\top \Lambda_l (W_l e_{l-1} - e_l)
      + \nu_0 (R^2 - \|v\|^2) + \sum_j \nu_j (r_j^2 - v_j^2),

a concave quadratic if the multipliers are large enough, whose supremum is found by eliminating one layer
after the other. It is convex in the multipliers, and its derivative by one of them is the constraint it
multiplies, at the maximiser. Here the multipliers are chosen; ``certificate`` proves the bound.

Fazlyab, Robey, Hassani, Morari, Pappas 2019, "Efficient and accurate estimation of Lipschitz constants
for deep neural networks"; with a linear objective and sources as here our own.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cholesky, solve_triangular

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.sensitivity._concave_quadratics import (
    LOST,
    MODERATE,
    ConcaveQuadratic,
    coupled_layers,
)
from pindown.equivalence.tuning import LBFGS_MEMORY, MAX_SYSTEM, SMOOTHING_POWER
from pindown.rounding import UNIT_ROUNDOFF, gamma

_FAR = 1e3  # what the logarithm of the bound is said to be where the quadratic is not concave


@dataclass(frozen=True, eq=False)
class SourceChain:
    r"""A source ``fixed + matrix v`` at one layer, and all that follows.

    Attributes:
        fixed: The vector :math:`s`.
        matrix: M, with one column per entry of v; it may have none.
        entries: :math:`r`, bounds on the entries of v.
        length: :math:`R`, a bound on its length.
        weights: The layers between the source and the output layer.
        outputs: The output layer, one row w per output.
    """

    fixed: Array
    matrix: Array
    entries: Array
    length: float
    weights: tuple[Array, ...]
    outputs: Array

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of multipliers: of v's length and entries, then of every layer."""
        n = self.matrix.shape[1]
        return (1 if n else 0, n, len(self.fixed), *(len(W) for W in self.weights))

    @property
    def objectives(self) -> Array:
        """The linear forms to bound, as columns: every output with both signs (one if they agree)."""
        W = self.outputs.T
        return np.hstack([W, -W]) if self.fixed.any() else W

    def split(self, x: Array) -> list[Array]:
        """Cut a vector of all multipliers into parts."""
        return np.split(x, np.cumsum(self.sizes)[:-1])


def best_multipliers(
    chain: SourceChain, *, target: float = 0.0, deadline: Deadline = NEVER
) -> Array | None:
    """Choose multipliers: a rule first, then L-BFGS until the target or the time is reached.

    Returns:
        All multipliers, to be split by ``chain.split``, or None if none were found.
    """
    from scipy.optimize import minimize

    start = first_multipliers(chain)
    if start is None:
        return None
    best: tuple[float, Array] = (inf, start)

    def objective(logs: Array) -> tuple[float, Array]:
        nonlocal best
        with np.errstate(over="ignore"):
            x = np.exp(logs)
        found = evaluate(chain, x)
        if found is None:
            return _FAR, np.zeros_like(logs)
        values, slopes = found
        if values.max() < best[0]:
            best = (float(values.max()), x)
        if best[0] <= target or deadline.passed:
            raise _EnoughError
        shares = (values / values.max()) ** SMOOTHING_POWER
        smooth = float(np.log(values.max()) + np.log(shares.sum()) / SMOOTHING_POWER)
        weights = shares / values / shares.sum()
        return smooth, (slopes @ weights) * x

    try:
        options = {"maxiter": 10_000, "maxfun": 10_000, "maxcor": LBFGS_MEMORY}
        minimize(objective, np.log(start), jac=True, method="L-BFGS-B", options=options)
    except _EnoughError:
        pass
    return best[1] if isfinite(best[0]) else None


class _EnoughError(Exception):
    """Stops the optimiser."""


def evaluate(
    chain: SourceChain, x: Array, *, objective: bool = True, source: bool = True
) -> tuple[Array, Array] | None:
    """Return the bound for every objective and its derivatives, (multipliers, objectives).

    Plain float64. None if the quadratic is not concave. Without ``objective`` or without ``source``
    these are taken as zero, which gives the two parts of the bound that scale with the multipliers
    and with their inverse.
    """
    ball, entry, *lams = chain.split(x)
    g = chain.objectives * float(objective)
    factors, half_g, couplings = [], [], []
    H = np.zeros((len(g), len(g)))
    c = np.zeros(g.shape[1])
    matrices = [chain.matrix, *chain.weights]
    try:
        for i in range(len(lams) - 1, -1, -1):
            C = cholesky(np.diag(lams[i]) - H, lower=True, check_finite=False)
            y = _solve(C, g)
            if i == 0 and source:
                y = y + _solve(C, lams[0] * chain.fixed)[:, None]
            Y = _solve(C, lams[i][:, None] * matrices[i])
            c = c + 0.25 * np.einsum("ij,ij->j", y, y)
            g, H = 0.5 * Y.T @ y, 0.25 * Y.T @ Y
            factors.append(C)
            half_g.append(y)
            couplings.append(Y)
        v = np.zeros((0, g.shape[1]))
        if len(entry):
            C = cholesky(np.diag(ball + entry) - H, lower=True, check_finite=False)
            y = _solve(C, g)
            c = c + 0.25 * np.einsum("ij,ij->j", y, y)
            v = 0.5 * _solve(C, y, transposed=True)
            if source:
                c = c + (float(ball[0]) * chain.length**2 + float(entry @ chain.entries**2))
    except LinAlgError:
        return None
    slopes = [chain.length**2 - np.sum(v**2, axis=0, keepdims=True)] if len(entry) else []
    slopes.append(chain.entries[:, None] ** 2 - v**2)
    e = v
    for i in range(len(lams)):
        z = matrices[i] @ e + (chain.fixed[:, None] * float(source) if i == 0 else 0.0)
        e = 0.5 * _solve(factors[-1 - i], half_g[-1 - i] + couplings[-1 - i] @ e, transposed=True)
        slopes.append(e * (z - e))
    return (c, np.concatenate(slopes)) if np.isfinite(c).all() and c.min() > 0.0 else None


def _solve(C: Array, right: Array, *, transposed: bool = False) -> Array:
    return np.asarray(
        solve_triangular(C, right, lower=True, trans=1 if transposed else 0, check_finite=False)
    )


def first_multipliers(chain: SourceChain) -> Array | None:
    """Return multipliers twice as large as concavity needs, with the best common factor."""
    lams = [np.ones(chain.outputs.shape[1])]
    H = np.zeros((len(lams[0]), len(lams[0])))
    for K in (*reversed(chain.weights), chain.matrix):
        try:
            C = cholesky(np.diag(lams[-1]) - H, lower=True, check_finite=False)
        except LinAlgError:
            return None
        Y = _solve(C, lams[-1][:, None] * K)
        H = 0.25 * Y.T @ Y
        if not np.isfinite(H).all():
            return None
        top = float(np.linalg.eigvalsh(H)[-1]) if len(H) else 0.0
        lams.append(np.full(len(H), 2.0 * top if top > 0.0 else 1.0))
    *_, entry = lams
    parts = [entry[:1] / 2, entry / 2, *reversed(lams[:-1])]
    x = np.concatenate(parts)
    falling, rising = evaluate(chain, x, source=False), evaluate(chain, x, objective=False)
    if falling is None or rising is None:
        return x if evaluate(chain, x) is not None else None
    return np.asarray(np.sqrt(falling[0].max() / rising[0].max()) * x)


def proved_bounds(chain: SourceChain, x: Array) -> Array:
    """Return a proved upper bound for every objective of the chain; infinite where the proof fails.

    Args:
        chain: The source and all that follows.
        x: Positive multipliers.

    >>> one = np.ones((1, 1))  # a source of 3 passes one ReLU and is read with weight 1
    >>> chain = SourceChain(np.array([3.0]), np.ones((1, 0)), np.zeros(0), 0.0, (), one)
    >>> proved_bounds(chain, np.array([1 / 3])).round(9)
    array([3., 0.])
    """
    objectives = chain.objectives
    failed = np.full(objectives.shape[1], inf)
    if sum(chain.sizes[1:]) > MAX_SYSTEM or not np.all((x > MODERATE[0]) & (x < MODERATE[1])):
        return failed
    ball, entry, *lams = chain.split(x)
    # Rounded down: a smaller multiplier is a valid one, and what it multiplies is counted in full.
    first = np.nextafter(ball + entry, 0.0) if len(entry) else np.zeros(0)
    quadratic = ConcaveQuadratic.proved(coupled_layers([first, *lams], [chain.matrix, *chain.weights]))
    if quadratic is None:
        return failed
    h = np.zeros((len(quadratic.matrix), objectives.shape[1]))
    start = chain.matrix.shape[1]
    h[-len(objectives) :] += objectives
    h[start : start + len(chain.fixed)] += (lams[0] * chain.fixed)[:, None]
    suprema = quadratic.suprema(h)
    constant = float(np.sum(ball)) * chain.length**2 + float(np.sum(entry * chain.entries**2))
    constant *= 1.0 + 4.0 * gamma(len(h) + 8)
    bounds = suprema + constant + 8.0 * UNIT_ROUNDOFF * (np.abs(suprema) + constant) + LOST
    return np.where(np.isfinite(bounds), bounds, inf)
