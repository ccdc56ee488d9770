r"""What a linear student learns from a teacher's logits: the interpolant of least norm.

Gradient flow on the distillation loss from zero never leaves the span of the inputs, and there

.. math:: w(t) \to \hat w = X^+ z, \qquad \hat w = P_X w_* \text{ for a linear teacher } z = X w_*

which needs no training and no access to the teacher's weights: d logits at inputs that span the space
give a linear teacher away completely.

One column of logits :math:`z` means :math:`P[1 | x] = 1 / (1 + e^{-z})`. Several columns mean
:math:`P[k | x] \propto e^{z_k}`; a number added to a whole row changes nothing, so rows are centred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, softmax

from pindown.affine import Array
from pindown.errors import ParameterError
from pindown.learn.distillation.tuning import MAX_LOGIT
from pindown.validation import array, choice

_EXACT = 1e-9  # logits that are met to this share of the largest are met, but for rounding
Labels: TypeAlias = Literal["logit", "probability"]
_SUM = 1e-6  # rows of float32 probabilities add up to one within this


def inputs_and_logits(X: ArrayLike, logits: ArrayLike) -> tuple[Array, Array]:
    """Return inputs (n, d) and logits (n,) or (n, k) as finite float64, or say what is wrong."""
    rows, z = array("X", X), array("logits", logits)
    if rows.ndim != 2 or not rows.size or z.ndim not in (1, 2) or len(z) != len(rows) or not z.size:
        raise ParameterError(
            f"X must be (n, d) and logits (n,) or (n, k), not empty; got {rows.shape} and {z.shape}."
        )
    if not np.isfinite(rows).all() or not np.isfinite(z).all():
        raise ParameterError("X and logits must be finite; remove the samples with NaN or infinity.")
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
    rows, z = inputs_and_logits(X, logits)
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


def as_logits(y: ArrayLike, labels: Labels = "logit", *, most: float = MAX_LOGIT) -> Array:
    r"""Return the teacher's logits, (n,) or centred (n, k).

    Args:
        y: Logits, or probabilities of class 1 (n,) or of all classes (n, k).
        labels: Which of the two y holds.
        most: Log-odds from probabilities are cut at this size; logits are taken as they are.

    Raises:
        ValueError: If y is not finite, empty, or not probabilities where these were announced.

    Example:
        >>> as_logits([0.5, 1.0], "probability")
        array([ 0., 30.])
        >>> as_logits([[3.0, 1.0]])
        array([[ 1., -1.]])

    Phuong 2021, section 5.2.
    """
    given = array("y", y)
    if given.ndim not in (1, 2) or not given.size or not np.isfinite(given).all():
        raise ParameterError(
            f"teacher labels must be finite numbers of shape (n,) or (n, k); got shape {given.shape}"
            f"{'' if np.isfinite(given).all() else ' with NaN or infinity'}."
        )
    if choice("labels", labels, ("logit", "probability")) == "logit":
        return centred(given)
    if ((given < 0) | (given > 1)).any():
        raise ParameterError(
            f"probabilities must lie between 0 and 1; got {given.min():g} to {given.max():g}; "
            "pass labels='logit' for logits."
        )
    if given.ndim == 1 or given.shape[1] == 1:
        with np.errstate(divide="ignore"):
            return np.clip(np.log(given) - np.log1p(-given), -most, most)
    if np.abs(given.sum(axis=1) - 1.0).max() > _SUM:
        raise ParameterError(
            "each row of probabilities must add up to 1; normalise them, or pass logits."
        )
    return centred(np.log(np.maximum(given, np.exp(-most))))


def centred(logits: Array) -> Array:
    """Return rows of several columns with mean zero; one column stays as it is.

    >>> centred(np.array([[1.0, 2.0, 6.0]]))
    array([[-2., -1.,  3.]])
    """
    if logits.ndim == 1 or logits.shape[1] == 1:
        return logits
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))


def probabilities(logits: Array) -> Array:
    """Return the probability of each class, (n, 2) for one column of logits.

    >>> probabilities(np.array([0.0, 50.0])).round(3).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    if logits.ndim == 2 and logits.shape[1] > 1:
        return np.asarray(softmax(logits, axis=1))
    flat = logits.ravel()
    return np.column_stack([expit(-flat), expit(flat)])


def log_probabilities(logits: Array) -> Array:
    """Return the logarithm of the probability of each class, without loss for sure answers."""
    if logits.ndim == 2 and logits.shape[1] > 1:
        from scipy.special import log_softmax

        return np.asarray(log_softmax(logits, axis=1))
    flat = logits.ravel()
    return np.column_stack([log_expit(-flat), log_expit(flat)])


def answers(logits: Array) -> Array:
    """Return the number of the likeliest class; a logit of zero is class 1, as for the teacher.

    >>> answers(np.array([-1.0, 0.0, 2.0])).tolist(), answers(np.array([[1.0, 3.0, 2.0]])).tolist()
    ([0, 1, 1], [1])
    """
    if logits.ndim == 2 and logits.shape[1] > 1:
        return np.asarray(logits.argmax(axis=1))
    return (logits.ravel() >= 0).astype(np.int64)
