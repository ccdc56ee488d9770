r"""Rows that must all hold at once: which weighted sum of their linear bounds is the smallest?

With linear bounds :math:`g_r(x) = s_r x + b_r` of r rows on a box, their smallest is nowhere above

.. math::
    \min_{w \ge 0,\; \sum_r w_r = 1} \; \max_{l \le x \le u} \; \sum_r w_r g_r(x),

which may be negative although every row reaches above zero somewhere. Weights grow where rows are small
at the point at which the sum is largest; any weights give a proved bound.
"""

from __future__ import annotations

import numpy as np

from pindown.affine import Array
from pindown.model.operations.operation import charged
from pindown.rounding import TINY
from pindown.verification.tuning import ROW_WEIGHT_DECAY, ROW_WEIGHT_STEP, ROW_WEIGHT_STEPS


@np.errstate(over="ignore", invalid="ignore")  # what leaves float64 proves nothing
def weighted_rows(low: Array, high: Array, slope: Array, offset: Array) -> tuple[Array, Array]:
    """Bound the smallest of some linear functions on each of n boxes.

    Args:
        low: Lower corners, (n, d).
        high: Upper corners, (n, d).
        slope: Slopes of the functions, (n, r, d).
        offset: Their values at zero, (n, r).

    Returns:
        Proved upper bounds (n,) on ``max over x of min over r``, and the weights (n, r) that show them.

    Both ``x - 1/4`` and ``-x - 1/4`` reach 3/4 on [-1, 1], but nowhere are both above -1/4:

    >>> box = np.array([[-1.0]]), np.array([[1.0]])
    >>> end, weights = weighted_rows(*box, np.array([[[1.0], [-1.0]]]), np.array([[-0.25, -0.25]]))
    >>> end.round(9), weights
    (array([-0.25]), array([[0.5, 0.5]]))

    Freund and Schapire 1999, "Adaptive game playing using multiplicative weights".
    """
    n, r, d = slope.shape
    weights = np.full((n, r), 1.0 / r)
    best, ends = weights, np.full(n, np.inf)
    for step in range(ROW_WEIGHT_STEPS):
        total = np.einsum("nr,nrd->nd", weights, slope)
        point = np.where(total > 0, high, low)
        values = np.einsum("nrd,nd->nr", slope, point) + offset
        now = (weights * values).sum(axis=1)
        better = now < ends
        best, ends = np.where(better[:, None], weights, best), np.where(better, now, ends)
        above = values - values.min(axis=1, keepdims=True)
        most = above.max(axis=1, keepdims=True)
        rate = ROW_WEIGHT_STEP * ROW_WEIGHT_DECAY**step
        weights = weights * np.exp(-rate * above / np.where(most > 0, most, 1.0))
        weights = weights / weights.sum(axis=1, keepdims=True)
    total = np.einsum("nr,nrd->nd", best, slope)
    end = (total * np.where(total > 0, high, low)).sum(axis=1) + (best * offset).sum(axis=1)
    # Weights and what they sum up were rounded: their own sum is one but for that.
    reach = np.maximum(np.abs(low), np.abs(high))
    sizes = np.einsum("nrd,nd->nr", np.abs(slope), reach) + np.abs(offset)
    lost = TINY * reach.sum(axis=1)  # by underflow of weighted slopes
    return charged(end + lost, (best * sizes).sum(axis=1) + np.abs(end) + lost, r + d), best
