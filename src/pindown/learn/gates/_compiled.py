"""The loop over single samples, compiled."""

from pathlib import Path

import numpy as np

from pindown.affine import Array
from pindown.compiling import compiler


@compiler(Path(__file__).parent)
def least_mean_squares(X: Array, y: Array, rows: Array, step: float, w: Array) -> None:
    """Move ``w`` along the linear residual of each given row, one after the other, in place."""
    for i in rows:
        x = X[i]
        pull = step * (y[i] - np.dot(x, w))
        for j in range(w.shape[0]):
            w[j] += pull * x[j]
