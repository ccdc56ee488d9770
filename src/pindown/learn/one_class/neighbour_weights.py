r"""How much each distance counts, learned from telling rows from made-up ones.

With :math:`f_j(x)` minus the log of the j-th distance of x, the weights are those of a logistic
regression that must not turn any distance round,

.. math::
    \min_{w \ge 0,\, b} \; E_x[-\log\sigma(w \cdot f(x) + b)]
    + E_{\tilde x}[-\log\sigma(-w \cdot f(\tilde x) - b)] + \lambda \lVert w \rVert^2 ,

a convex problem with one solution. It is solved step by step from w = 0, where all rows look the same.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from pindown.affine import Array

_SHRINKAGE = 0.3  # lambda: distances that say nearly the same share their weight


def learned_weights(inside: Array, outside: Array, steps: int) -> Array:
    """Return the weights, divided by their sum.

    Where made-up rows are no farther away than rows are from each other (on a lattice, say), nothing can
    be learned, and all distances count the same.

    Args:
        inside: Minus log-distances of training rows, (n, k).
        outside: Those of made-up rows, (m, k).
        steps: Most steps, at least 1.

    Example:
        The first distance tells rows from made-up ones, the second does not:

        >>> near, far = np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([[-2.0, 0.0], [-1.0, 1.0]])
        >>> learned_weights(near, far, 50).tolist()
        [1.0, 0.0]
    """
    k = inside.shape[1]

    def price(place: Array) -> tuple[float, Array]:
        w, b = place[:k], place[k]
        at_rows, at_others = inside @ w + b, outside @ w + b
        value = np.logaddexp(0, -at_rows).mean() + np.logaddexp(0, at_others).mean()
        pull_rows, pull_others = -expit(-at_rows) / len(inside), expit(at_others) / len(outside)
        slope = pull_rows @ inside + pull_others @ outside + 2 * _SHRINKAGE * w
        return float(value + _SHRINKAGE * w @ w), np.append(slope, pull_rows.sum() + pull_others.sum())

    limits = [(0.0, None)] * k + [(None, None)]
    found = minimize(
        price,
        np.zeros(k + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"maxiter": steps},
    )
    weights = found.x[:k]
    return weights / weights.sum() if weights.any() else np.full(k, 1 / k)
