r"""What a linear student learns from a teacher's logits: the interpolant of least norm.

Gradient flow on the distillation loss from zero never leaves the span of the inputs, and there

.. math:: w(t) \to \hat w = X^+ z, \qquad \hat w = P_X w_* \text{ for a linear teacher } z = X w_*

which needs no training and no access to the teacher's weights: d logits at inputs that span the space
give a linear teacher away completely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array

_EXACT = 1e-9  # logits that are met to this share of the largest are met, but for rounding


def problem(X: ArrayLike, logits: ArrayLike) -> tuple[Array, Array]:
    """Return inputs (n, d) and logits (n,) or (n, k) as finite float64, or say what is wrong."""
    rows, z = np.asarray(X, dtype=np.float64), np.asarray(logits, dtype=np.float64)
    if rows.ndim != 2 or not rows.size or z.ndim not in (1, 2) or len(z) != len(rows) or not z.size:
        raise ValueError(
            f"X must be (n, d) and logits (n,) or (n, k), not empty; got {rows.shape} and {z.shape}."
        )
    if not np.isfinite(rows).all() or not np.isfinite(z).all():
        raise ValueError("X and logits must be finite; remove the samples with NaN or infinity.")
    return rows, z


@dataclass(frozen=True, eq=False)
class Student:
    """The least-squares fit of least norm to a teacher's logits.

    Attributes:
        weights: (d,), or (d, k) for k columns of logits.
        rank: Rank of the inputs.
        dimension: d; directions beyond the rank are not seen, and the student ignores them.
        residual: Largest distance of a logit from the teacher's, as a share of the teacher's largest.
    """

    weights: Array
    rank: int
    dimension: int
    residual: float

    @property
    def interpolates(self) -> bool:
        """Whether the teacher's logits are met, but for rounding."""
        return self.residual <= _EXACT

    @property
    def complete(self) -> bool:
        """Whether the inputs span the space: a linear teacher is then found exactly."""
        return self.rank == self.dimension

    def __str__(self) -> str:
        met = "meets the logits" if self.interpolates else f"misses logits by up to {self.residual:.2g}"
        return (
            f"student of norm {np.linalg.norm(self.weights):.4g} in {self.rank} of {self.dimension} "
            + (f"dimensions, {met} (exact; Phuong 2021, Theorem 5.1)")
        )


def minimum_norm(X: ArrayLike, logits: ArrayLike, *, rcond: float | None = None) -> Student:
    r"""Return the closed-form student :math:`X^+ z`.

    Args:
        X: Inputs, (n, d), of any rank.
        logits: The teacher's logits, (n,) or (n, k).
        rcond: Singular values below this share of the largest are zero; None is
            :math:`\max(n, d)` times the unit of rounding.

    Example:
        One input shows one direction of the teacher (1, 5):

        >>> minimum_norm([[2.0, 0.0]], [2.0]).weights
        array([1., 0.])

    Phuong 2021, Theorem 5.1, for inputs of any rank.
    """
    rows, z = problem(X, logits)
    found: Any = np.linalg.lstsq(rows, z, rcond=rcond)
    weights, rank = np.asarray(found[0]), int(found[2])
    largest = float(np.abs(z).max())
    off = float(np.abs(rows @ weights - z).max())
    return Student(weights, rank, rows.shape[1], off / largest if largest else off)


def span_basis(X: ArrayLike) -> Array:
    """Return an orthonormal basis of the span of the rows, as columns (d, rank).

    >>> span_basis([[0.0, 2.0], [0.0, -4.0]]).round(12).tolist() in ([[0.0], [1.0]], [[-0.0], [-1.0]])
    True
    """
    rows = np.asarray(X, dtype=np.float64)
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    least = (sizes[0] if sizes.size else 0.0) * max(rows.shape) * np.finfo(np.float64).eps
    return np.asarray(right[sizes > least].T)


def null_part(X: ArrayLike, w: ArrayLike) -> Array:
    """Return the part of w that is orthogonal to all inputs: what they cannot show.

    >>> null_part([[1.0, 0.0]], [3.0, 4.0])
    array([0., 4.])
    """
    basis, vector = span_basis(X), np.asarray(w, dtype=np.float64)
    return np.asarray(vector - basis @ (basis.T @ vector))
