r"""One set of multipliers, and the bound it gives at every corner.

With the multipliers fixed, the supremum over all that leaves the layers is a quadratic form of
:math:`u = (1, v)`, where v says which entries of the source pass: one factorisation bounds all corners.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import cholesky, solve_triangular

from pindown.affine import Array
from pindown.equivalence.sensitivity.concave import ConcaveQuadratic, coupled_layers


def corner_form(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> Array | None:
    """Return Q with ``u Q u`` about the bound; None if the quadratic is not concave.

    Args:
        layers: K, one column per entry of the source, and the weights that follow.
        w: Coefficients of the output.
        lams: Multipliers of every layer.

    >>> Q = corner_form([np.array([[3.0]])], np.ones(1), [np.array([1 / 3])])
    >>> u = np.array([1.0, 1.0])
    >>> round(float(u @ Q @ u), 9)  # all of 3 passes
    3.0
    """
    if not all(np.isfinite(lam).all() for lam in lams):
        return None
    g, H, constant = w, np.zeros((len(w), len(w))), 0.0
    try:
        for W, lam in zip(reversed(layers[1:]), reversed(lams), strict=False):
            C = cholesky(np.diag(lam) - H, lower=True, check_finite=False)
            y = solve_triangular(C, g, lower=True, check_finite=False)
            Y = solve_triangular(C, lam[:, None] * W, lower=True, check_finite=False)
            constant += 0.25 * float(y @ y)
            g, H = 0.5 * Y.T @ y, 0.25 * Y.T @ Y
        C = cholesky(np.diag(lams[0]) - H, lower=True, check_finite=False)
    except LinAlgError:
        return None
    right = np.column_stack([g, lams[0][:, None] * layers[0]])
    Y = solve_triangular(C, right, lower=True, check_finite=False)
    Q = 0.25 * Y.T @ Y
    Q[0, 0] += constant
    return np.asarray(Q)


def quadratic_of(layers: Sequence[Array], lams: Sequence[Array]) -> ConcaveQuadratic | None:
    """Return the quadratic of the multipliers with a proof that it is concave, or None."""
    return ConcaveQuadratic.proved(coupled_layers(lams, layers[1:]))


def linear_parts(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> Array:
    """Return H such that ``H u`` is the linear part of the quadratic at the corner ``u = (1, v)``."""
    H = np.zeros((sum(map(len, lams)), layers[0].shape[1] + 1))
    H[-len(w) :, 0] = w
    H[: len(lams[0]), 1:] = lams[0][:, None] * layers[0]
    return H


def proved_form(layers: Sequence[Array], w: Array, lams: Sequence[Array]) -> tuple[Array, float] | None:
    """Return Q and s: at every corner ``u Q u + s`` is a proved bound; None if it cannot be proved.

    The entries of K may carry one rounding.
    """
    quadratic = quadratic_of(layers, lams)
    return None if quadratic is None else quadratic.form(linear_parts(layers, w, lams))
