r"""The corrected convex programs, one by one: slow, plain, and independent of the fast search.

Breakpoint j lies in the gap :math:`[x_{i_j}, x_{i_j + 1}]`. With
:math:`g_j(x) = (a_{j+1} - a_j) x + b_{j+1} - b_j` and signs :math:`S_j`,

.. math:: S_j g_j(x_{i_j}) \le 0, \qquad S_j g_j(x_{i_j + 1}) \ge 0, \qquad S_j (a_{j+1} - a_j) \ge 0 .

The source prints the first two the other way round, which leaves only functions with one piece.

Mukherjee 2020, section 2.4, (2.7) and (2.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.segmented.losses import Loss
from pindown.programs import linear_program

# Added to every squared coefficient so that programs with too few points have one solution.
_RIDGE = 1e-13


def crossing_constraints(x: Array, gaps: Sequence[int], signs: Sequence[int]) -> Array:
    r"""Return G with :math:`G z \ge 0` for :math:`z = (a_1, b_1, \dots, a_w, b_w)`, three rows per gap.

    Args:
        x: Distinct ascending data.
        gaps: :math:`i_1 \le \dots \le i_{w-1}`, counted from 0.
        signs: +1 where the slope grows, -1 where it falls.

    >>> crossing_constraints(np.array([0.0, 1.0]), [0], [1])
    array([[ 0.,  1.,  0., -1.],
           [-1., -1.,  1.,  1.],
           [-1.,  0.,  1.,  0.]])
    """
    G = np.zeros((3 * len(gaps), 2 * len(gaps) + 2))
    for j, (g, sign) in enumerate(zip(gaps, signs, strict=True)):
        for row, (slope, value) in enumerate([(-x[g], -1.0), (x[g + 1], 1.0), (1.0, 0.0)]):
            G[3 * j + row, 2 * j : 2 * j + 4] = sign * np.array([-slope, -value, slope, value])
    return G + 0.0


def programs(n: int, n_pieces: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All gaps and signs for n distinct points."""
    for gaps in combinations_with_replacement(range(n - 1), n_pieces - 1):
        for signs in product((-1, 1), repeat=n_pieces - 1):
            yield gaps, signs


def enumerate_programs(
    x: ArrayLike,
    y: ArrayLike,
    n_pieces: int,
    loss: str | Loss | tuple[Callable[[Array], Array], Callable[[Array], Array]] = "squared",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the least loss over all programs: for checks, with a dozen points at most.

    Args:
        x: Data, any order.
        y: Targets.
        n_pieces: Pieces.
        loss: ``"squared"``, ``"absolute"``, a :class:`~pindown.learn.segmented.Loss`, or any other
            convex loss as two functions of residuals y - f(x), entry by entry: it and its derivative.
        sample_weight: Positive weights, or None.

    >>> [round(enumerate_programs([0, 1, 2, 3], [0, 1, 1, 0], K), 6) for K in (1, 2)]  # 1/2; a tent
    [1.0, 0.0]
    >>> cosh = (lambda r: np.log(np.cosh(r)), np.tanh)
    >>> gap = enumerate_programs([0, 1, 2, 3], [0, 1, 1, 0], 1, loss=cosh) - 4 * np.log(np.cosh(0.5))
    >>> bool(abs(gap) < 1e-6)
    True
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    w = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    at = np.unique(x)
    least = np.inf
    for gaps, signs in programs(len(at), min(n_pieces, max(len(at) - 1, 1))):
        piece = np.searchsorted(np.array([at[g] for g in gaps]), x, side="left")
        A = np.zeros((len(x), 2 * len(gaps) + 2))
        A[np.arange(len(x)), 2 * piece] = x
        A[np.arange(len(x)), 2 * piece + 1] = 1.0
        G = crossing_constraints(at, gaps, signs)
        least = min(least, _program(A, y, w, G, Loss(loss) if isinstance(loss, str) else loss))
    return least


def _program(
    A: Array,
    y: Array,
    w: Array,
    G: Array,
    loss: Loss | tuple[Callable[[Array], Array], Callable[[Array], Array]],
) -> float:
    if isinstance(loss, tuple):
        return _convex_program(A, y, w, G, *loss)
    if loss.name == "squared":
        return _squared_program(A, y, w, G)
    if loss.name == "huber":
        d = loss.threshold
        return _convex_program(A, y, w, G, loss, lambda r: 2.0 * np.clip(r, -d, d))
    above, below = (1.0, 1.0) if loss.name == "absolute" else (loss.quantile, 1.0 - loss.quantile)
    return _quantile_program(A, y, w, G, above, below)


def _convex_program(
    A: Array,
    y: Array,
    w: Array,
    G: Array,
    value: Callable[[Array], Array],
    slope: Callable[[Array], Array],
) -> float:
    """Any convex loss in a cone, by sequential quadratic programs from the least-squares line."""
    from scipy.optimize import minimize

    x = A[:, 0::2].sum(axis=1)
    line = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
    start = np.tile(line, A.shape[1] // 2)  # all pieces alike: in every cone
    found = minimize(
        lambda z: float(w @ value(y - A @ z)),
        start,
        jac=lambda z: -A.T @ (w * slope(y - A @ z)),
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda z: G @ z, "jac": lambda z: G}] if len(G) else [],
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return float(found.fun)


def _squared_program(A: Array, y: Array, w: Array, G: Array) -> float:
    """Least squares in a cone, as a least-distance problem (Lawson and Hanson 1974, chapter 23)."""
    from scipy.optimize import nnls

    root = np.sqrt(w)
    full = np.vstack([A * root[:, None], np.sqrt(_RIDGE) * np.eye(A.shape[1])])
    Q, R = np.linalg.qr(full)
    target = Q.T @ np.r_[y * root, np.zeros(A.shape[1])]
    if len(G):
        H = np.linalg.solve(R.T, G.T).T
        H /= np.linalg.norm(H, axis=1, keepdims=True)
        multipliers, _ = nnls(np.ascontiguousarray(H.T), -target, maxiter=100 * len(H))
        target = target + H.T @ multipliers  # the projection to the cone, by Moreau
    z = np.linalg.solve(R, target)
    return float(w @ (A @ z - y) ** 2)


def _quantile_program(A: Array, y: Array, w: Array, G: Array, above: float, below: float) -> float:
    """Least quantile loss in a cone, as a linear program."""
    n, p = A.shape
    identity = np.eye(n)
    upper = np.block([[below * A, -identity], [-above * A, -identity], [-G, np.zeros((len(G), n))]])
    result = linear_program(
        np.r_[np.zeros(p), w],
        upper,
        np.r_[below * y, -above * y, np.zeros(len(G))],
        lower=np.r_[np.full(p, -np.inf), np.zeros(n)],
    )
    result.optimum("least quantile loss in a cone")
    return result.value
