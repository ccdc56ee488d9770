"""Which pattern each class's units have learnt: the direction with most weight around it."""

from __future__ import annotations

import numpy as np

from pindown.affine import Array

# Units whose directions have at least this cosine have learnt the same pattern.
_SAME_DIRECTION = 0.9
# Comparing all pairs takes the square of this in memory; the lightest units are left out.
_CLUSTERED_UNITS = 2048


def class_directions(W: Array, a: Array) -> tuple[Array, Array]:
    """Return the direction with most weight around it, for the negative and the positive class.

    Args:
        W: Units (k, d).
        a: Output weights (k,); a unit belongs to the class of its sign.

    Returns:
        Directions of norm one (2, d), zero if a class has no unit, and their shares of its weight.

    Example:
        >>> directions, shares = class_directions(np.eye(2), np.array([1.0, -3.0]))
        >>> directions.tolist(), shares.tolist()
        ([[0.0, 1.0], [1.0, 0.0]], [1.0, 1.0])
    """
    norms = np.linalg.norm(W, axis=1)
    directions = W / np.where(norms > 0.0, norms, 1.0)[:, None]
    mass = np.abs(a) * norms
    patterns, shares = np.zeros((2, W.shape[1])), np.zeros(2)
    for row, sign in enumerate((-1.0, 1.0)):
        mine = np.flatnonzero((np.sign(a) == sign) & (mass > 0.0))
        if not len(mine):
            continue
        mine = mine[np.argsort(-mass[mine], kind="stable")[:_CLUSTERED_UNITS]]
        near = directions[mine] @ directions[mine].T >= _SAME_DIRECTION
        around = near @ mass[mine]
        group = mine[near[around.argmax()]]
        mean = mass[group] @ directions[group]
        patterns[row] = mean / np.linalg.norm(mean)
        shares[row] = mass[group].sum() / mass[np.sign(a) == sign].sum()
    return patterns, shares
