r"""Rescale hidden units so that no layer is large only because its neighbour is small.

Multiplying what enters a ReLU by :math:`s > 0` and dividing what leaves it by s does not change the
function, but it changes the norms of the layers. Balancing picks the scales at which every unit has
incoming and outgoing weights of equal length: the minimiser of :math:`\sum_l \|W_l\|_F^2`, so bounds
computed from balanced weights do not depend on how the units were scaled.

Neyshabur, Salakhutdinov, Srebro 2015, "Path-SGD"; Du, Hu, Lee 2018 (training keeps layers balanced).
"""

from __future__ import annotations

import time
from math import inf

import numpy as np
import scipy.sparse as sp

from pindown.affine import Array, Matrix

_SWEEPS = 200
_SETTLED = 1e-9
# Any positive scales are valid. Those are chosen as if weights and scales were within these, where all
# products stay in float64: a unit must not look idle only because its weights are small.
_WEIGHTS = (1e-30, 1e30)
_SQUARES = (1e-80, 1e80)


def balanced_weights(weights: list[Matrix], *, until: float = inf) -> list[Matrix]:
    r"""Return :math:`D_l W_l D_{l-1}^{-1}` with balanced units.

    Units without incoming or without outgoing weights cannot move the output: their weights become
    zero on both sides. Every entry carries at most five roundings.

    Args:
        weights: :math:`W_1, \dots, W_L`, dense or sparse.
        until: Time (``time.monotonic``) at which to stop balancing; the result is valid anyway.

    >>> W1, W2 = balanced_weights([np.array([[8.0]]), np.array([[0.5]])])
    >>> W1.item(), W2.item()
    (2.0, 2.0)
    """
    squares = _balancing_squares(weights, until)
    with np.errstate(over="ignore"):
        return [
            _scaled(W, np.sqrt(row), np.sqrt(column))
            for W, (row, _), (_, column) in zip(weights, squares[1:], squares[:-1], strict=True)
        ]


def balancing_scales(weights: list[Matrix], *, until: float = inf) -> list[Array]:
    r"""Return the scales s of all hidden units at which they are balanced; 0 for units without effect.

    >>> balancing_scales([np.array([[8.0]]), np.array([[0.5]])])
    [array([0.25])]
    """
    return [np.sqrt(squares) for squares, _ in _balancing_squares(weights, until)[1:-1]]


def _balancing_squares(weights: list[Matrix], until: float) -> list[tuple[Array, Array]]:
    """Return per layer of units ``(s^2, 1 / s^2)``, both zero for units without effect."""
    Q = [_moderate_squares(W) for W in weights]
    ends = [np.ones(weights[0].shape[1]), *(np.ones(W.shape[0]) for W in weights)]
    squares = [(one, one) for one in ends]
    for _ in range(_SWEEPS):
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
        if change < _SETTLED or time.monotonic() > until:
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
