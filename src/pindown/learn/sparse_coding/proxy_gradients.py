r"""The proxy gradient: the expected gradient if units are on exactly when their atom is in the support.

For a support S, with :math:`P = W_S^\top W_S - I`, :math:`C = E[y y^\top]`, :math:`\bar y = E[y]` and
:math:`c = W_S^\top \epsilon_S`, a unit i in S has the expected gradient

.. math:: G_i = P C W_i + C P W_i - c \langle W_i, \bar y \rangle - \bar y \langle c, W_i \rangle
          - \epsilon_i (P \bar y - c),

a polynomial of degree three in which atoms are in S. Its mean over uniform supports needs only the
probabilities that one, two or three further atoms are in S: closed form, no sampling.

Mukherjee 2020, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.datasets.sparse_codes import SparseCodingModel
from pindown.learn.sparse_coding.tuning import MAX_LISTED_SUPPORTS
from pindown.validation import is_integer


def proxy_gradient(
    model: SparseCodingModel,
    W: ArrayLike,
    threshold: ArrayLike,
    units: Iterable[int] | None = None,
) -> Array:
    r"""Return :math:`E_S[1\{i \in S\}\, G_i]` for the given units, exactly.

    Args:
        model: The generative model.
        W: Weights (h, n), row i near atom i.
        threshold: :math:`\epsilon`, one number or one per unit.
        units: Which units; None for all. Each costs O(h n).

    Returns:
        One gradient per unit, (units, n).

    Example:
        Orthogonal atoms, no threshold, weights at the atoms: a critical point.

        >>> model = SparseCodingModel(np.eye(4), 2)
        >>> float(np.abs(proxy_gradient(model, np.eye(4), 0.0)).max())
        0.0

    Mukherjee 2020, section 4.5, proxy gradient.
    """
    V, eps = weights_and_thresholds(model, W, threshold)
    chosen = range(model.n_atoms) if units is None else [a_unit(model, i) for i in units]
    return np.array([_proxy(model, V, eps, i) for i in chosen]).reshape(-1, model.n_features)


def support_gradient(
    model: SparseCodingModel, W: ArrayLike, threshold: ArrayLike, support: Sequence[int], unit: int
) -> Array:
    r"""Return :math:`G_i` for one support that holds the unit.

    Mukherjee 2020, section 4.5.1, in matrix form.
    """
    V, eps = weights_and_thresholds(model, W, threshold)
    S = list(support)
    if unit not in S:
        raise ValueError(f"the unit must be in the support; got unit {unit} and support {S}.")
    A, w, m1, m2 = model.dictionary[:, S], V[unit], model.mean, model.second_moment
    P = V[S].T @ V[S] - np.eye(model.n_features)
    total = A.sum(axis=1)
    C = m1**2 * np.outer(total, total) + (m2 - m1**2) * A @ A.T
    ybar, c = m1 * total, V[S].T @ eps[S]
    return P @ C @ w + C @ P @ w - c * (w @ ybar) - ybar * (c @ w) - eps[unit] * (P @ ybar - c)


def supports_with(model: SparseCodingModel, unit: int) -> Iterable[tuple[int, ...]]:
    """Return all supports that hold the unit, for small models.

    Raises:
        ValueError: If there are too many to list.
    """
    a_unit(model, unit)
    n = comb(model.n_atoms - 1, model.sparsity - 1)
    if n > MAX_LISTED_SUPPORTS:
        raise ValueError(f"{n:,} supports are too many to list; give supports, for example a sample.")
    others = [j for j in range(model.n_atoms) if j != unit]
    return ((unit, *rest) for rest in combinations(others, model.sparsity - 1))


def weights_and_thresholds(
    model: SparseCodingModel, W: ArrayLike, threshold: ArrayLike
) -> tuple[Array, Array]:
    """Return weights (h, n) and thresholds (h,), checked."""
    V, eps = np.asarray(W, dtype=np.float64), np.asarray(threshold, dtype=np.float64)
    if V.shape != (model.n_atoms, model.n_features):
        raise ValueError(
            f"W must be {(model.n_atoms, model.n_features)}, a row per atom; got {V.shape}."
        )
    if eps.shape not in ((), (1,), (len(V),)) or not np.isfinite(V).all() or not np.isfinite(eps).all():
        raise ValueError(
            f"W must be finite, and threshold one finite number or {len(V)}; got shape {eps.shape}."
        )
    return V, np.broadcast_to(eps, (len(V),))


def a_unit(model: SparseCodingModel, unit: int) -> int:
    """Return the index, or refuse it."""
    if not is_integer(unit, 0) or unit >= model.n_atoms:
        raise ValueError(f"units are 0 to {model.n_atoms - 1}; got {unit!r}.")
    return int(unit)


class _Moments:
    """Expectations of sums over the atoms beside i that are in the support."""

    def __init__(self, k: int, h: int) -> None:
        # Probability that 1, 2, 3 given atoms are in the support, given that i is.
        p = [
            float(np.prod([(k - 1 - s) / (h - 1 - s) if h - 1 > s else 0.0 for s in range(t)]))
            for t in (1, 2, 3)
        ]
        self.one = p[0]
        self.two, self.pair = p[1], p[0] - p[1]
        self.three, self.two_equal, self.all_equal = p[2], p[1] - p[2], p[0] - 3 * p[1] + 2 * p[2]


def _proxy(model: SparseCodingModel, W: Array, eps: Array, i: int) -> Array:
    m1, v = model.mean, model.second_moment - model.mean**2
    moments = _Moments(model.sparsity, model.n_atoms)
    w, u, e = W[i], model.dictionary[:, i], eps[i]
    others = np.arange(model.n_atoms) != i
    V, A, t = W[others], model.dictionary.T[others], eps[others]
    b, d = A @ w, V @ w  # <A_k, W_i>, <W_j, W_i>
    own = u @ w
    diagonal = np.einsum("ij,ij->i", V, A)  # <W_j, A_j>
    sumA, sumb = A.sum(axis=0), b.sum()
    one, two, pair = moments.one, moments.two, moments.pair

    def own_part(x: Array) -> Array:  # the part of P that i itself makes
        return w * (w @ x) - x

    def moved(x: Array) -> Array:  # sum_j W_j <W_j, x>
        return V.T @ (V @ x)

    # E[C w] and its factors: y = m1 (u + sum A_k), <w, y> = m1 (own + sum b_l).
    Ab = A.T @ b
    fixed = m1**2 * u * own + v * u * own
    linear = m1**2 * (u * sumb + own * sumA) + v * Ab
    both = m1**2 * (two * sumA * sumb + pair * Ab)
    Cw = fixed + one * linear + both
    # E[sum_j W_j <W_j, C w>], term by term in the number of atoms beside i.
    rows = V @ sumA  # sum_k <W_j, A_k>
    first = one * moved(fixed)
    Vd = V.T @ (diagonal * b)
    second = m1**2 * (two * moved(u) * sumb + pair * V.T @ ((V @ u) * b))
    second += m1**2 * own * (two * V.T @ rows + pair * V.T @ diagonal)
    second += v * (two * moved(Ab) + pair * Vd)
    third = moments.three * V.T @ rows * sumb
    third += moments.two_equal * (V.T @ diagonal * sumb + moved(Ab) + V.T @ (rows * b))
    third += moments.all_equal * Vd
    result = own_part(Cw) + first + second + m1**2 * third
    # C P w: P w = x0 + sum_j d_j W_j.
    result += _covariance_part(m1, v, moments, (u, A, sumA), own_part(w), (V, d))
    # Thresholds: c = e w + sum t_j W_j.
    Vt, Vtb = V.T @ t, V.T @ (t * b)
    result -= m1 * (e * w * (own + one * sumb) + one * Vt * own + two * Vt * sumb + pair * Vtb)
    cw0, td = e * (w @ w), t * d
    result -= m1 * (
        u * (cw0 + one * td.sum()) + one * sumA * cw0 + two * sumA * td.sum() + pair * A.T @ td
    )
    Py = own_part(u) + one * own_part(sumA) + one * moved(u) + two * V.T @ rows + pair * V.T @ diagonal
    result -= e * (m1 * Py - e * w - one * Vt)
    return model.inclusion(1) * result


def _covariance_part(
    m1: float,
    v: float,
    moments: _Moments,
    atoms: tuple[Array, Array, Array],
    x0: Array,
    moving: tuple[Array, Array],
) -> Array:
    r"""Return :math:`E[C (x_0 + \sum_j d_j W_j)]`, C made of atom u and those in the support."""
    (u, A, sumA), (V, d) = atoms, moving
    one, two, pair = moments.one, moments.two, moments.pair
    Ax, x = A @ x0, V.T @ d
    result = (m1**2 + v) * u * (u @ x0)
    result += one * (m1**2 * (u * Ax.sum() + sumA * (u @ x0)) + v * A.T @ Ax)
    result += m1**2 * (two * sumA * Ax.sum() + pair * A.T @ Ax)
    result += (m1**2 + v) * u * one * (u @ x)
    Ad, own = A @ x, np.einsum("ij,ij->i", V, A) * d  # <A_l, x>, <A_j, W_j> d_j
    ud = (V @ u) * d
    rows = (V @ sumA) * d  # sum_l <A_l, W_j> d_j
    result += m1**2 * u * (two * Ad.sum() + pair * own.sum())
    result += m1**2 * (two * sumA * ud.sum() + pair * A.T @ ud)
    result += v * (two * A.T @ Ad + pair * A.T @ own)
    third = moments.three * sumA * Ad.sum() + moments.all_equal * A.T @ own
    third += moments.two_equal * (A.T @ Ad + sumA * own.sum() + A.T @ rows)
    return result + m1**2 * third
