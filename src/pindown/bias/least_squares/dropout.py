r"""Dropout on the inputs of a linear model: the weights it trains, in closed form.

With keep probability q the expected loss is a squared error with a ridge penalty in the scale of the
inputs, and the weights that are used in prediction (:math:`\bar w = q\,w` where nothing was rescaled, w
where the kept inputs were divided by q) are

.. math:: \bar w = \Big(X^\top X + \frac{1 - q}{q}\,\mathrm{diag}(X^\top X)\Big)^{-1}X^\top y.

Unlike ridge it does not depend on the units of the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.bias.least_squares.checks import labelled, number, scaled_squares
from pindown.bias.shrinkage.dropout import dropout_squared_error


@dataclass(frozen=True)
class DropoutFit:
    """What dropout trains a linear model to.

    Attributes:
        weights: Weights to predict with, all inputs kept.
        trained: The weights during training, where dropped inputs are zero and kept ones as they are.
        loss: Expected sum of squared errors at ``trained``.
        penalties: The ridge penalty on each of ``weights``.
        keep: Probability that an input is kept.
        kind: ``"exact"``, up to rounding.
    """

    weights: Array = field(repr=False)
    trained: Array = field(repr=False)
    loss: float
    penalties: Array = field(repr=False)
    keep: float
    kind: str = "exact"

    def __str__(self) -> str:
        return (
            f"dropout that keeps {self.keep:g} of the inputs: ridge penalties "
            f"{self.penalties.min():.4g} to {self.penalties.max():.4g}, expected loss {self.loss:.6g}"
        )


def dropout_least_squares(X: ArrayLike, y: ArrayLike, keep: float) -> DropoutFit:
    """Return the weights that minimise the expected squared error under dropout of the inputs.

    Args:
        X: Inputs (n, d) of any rank; weights of inputs that are always zero are zero.
        y: Targets (n,).
        keep: Probability that an input is kept, in (0, 1].

    Returns:
        A :class:`DropoutFit`.

    Raises:
        ValueError: If values are not finite, shapes differ, or ``keep`` is not in (0, 1].

    Example:
        One input: dropping half of the time halves the weight to predict with.

        >>> dropout_least_squares([[1.0]], [1.0], 0.5).weights.round(12).tolist()
        [0.5]

    Lecture course, slides on dropout; the closed form is ours.
    """
    X, y = labelled(X, y)
    keep = number("keep", keep, 0.0, 1.0, closed=False)
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.linalg.norm(X, axis=0)
    scaled_squares(np.abs(X).max(axis=0), 1.0)  # refused where penalties leave the floats
    # Unit columns first: the penalty follows the scale of each input, so only rounding changes.
    scale = np.where(lengths > 0, lengths, 1.0)
    rows = np.sqrt((1 - keep) / keep) * np.diag((lengths > 0).astype(np.float64))
    stacked, target = np.vstack([X / scale, rows]), np.concatenate([y, np.zeros(X.shape[1])])
    weights = np.linalg.lstsq(stacked, target, rcond=None)[0] / scale
    trained = weights / keep
    loss = float(dropout_squared_error(X, y, trained, keep).sum())
    return DropoutFit(weights, trained, loss, (1 - keep) / keep * lengths**2, keep)
