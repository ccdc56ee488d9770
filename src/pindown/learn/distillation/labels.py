r"""What a teacher hands over: logits, or soft labels that are turned into logits.

One column of logits :math:`z` means :math:`P[1 | x] = 1 / (1 + e^{-z})`. Several columns mean
:math:`P[k | x] \propto e^{z_k}`; a number added to a whole row changes nothing, so rows are centred.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, softmax

from pindown.affine import Array

Labels: TypeAlias = Literal["logit", "probability"]
MOST_LOGIT = 30.0  # a probability of 0 or 1 hides its logit; beyond this float64 soft labels say little
_SUM = 1e-6  # rows of float32 probabilities add up to one within this


def as_logits(y: ArrayLike, labels: Labels = "logit", *, most: float = MOST_LOGIT) -> Array:
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
    given = np.asarray(y, dtype=np.float64)
    if given.ndim not in (1, 2) or not given.size or not np.isfinite(given).all():
        raise ValueError(
            f"teacher labels must be finite numbers of shape (n,) or (n, k); got shape {given.shape}"
            f"{'' if np.isfinite(given).all() else ' with NaN or infinity'}."
        )
    if labels not in ("logit", "probability"):
        raise ValueError(f"labels must be 'logit' or 'probability'; got {labels!r}.")
    if labels == "logit":
        return centred(given)
    if ((given < 0) | (given > 1)).any():
        raise ValueError(
            f"probabilities must lie between 0 and 1; got {given.min():g} to {given.max():g}; "
            "pass labels='logit' for logits."
        )
    if given.ndim == 1 or given.shape[1] == 1:
        with np.errstate(divide="ignore"):
            return np.clip(np.log(given) - np.log1p(-given), -most, most)
    if np.abs(given.sum(axis=1) - 1.0).max() > _SUM:
        raise ValueError("each row of probabilities must add up to 1; normalise them, or pass logits.")
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
