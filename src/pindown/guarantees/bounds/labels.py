"""Margins of outputs: by how much the right class wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array


def margins_of(outputs: ArrayLike, y: ArrayLike) -> Array:
    r"""Return :math:`f_y - \max_{j \ne y} f_j` for each row, or :math:`\pm f` with one output.

    Args:
        outputs: Outputs, (m, k).
        y: Classes 0 to k - 1; {0, 1} or {-1, 1} for one output.

    Raises:
        ValueError: If labels do not fit the outputs.

    >>> margins_of([[3.0, 1.0, 2.5]], [0]), margins_of([[2.0], [2.0]], [1, 0])
    (array([0.5]), array([ 2., -2.]))
    """
    f, labels = np.asarray(outputs, dtype=np.float64), np.asarray(y)
    if f.ndim != 2 or not len(f) or not np.isfinite(f).all():
        raise ValueError(f"outputs must be finite, of shape (m, k) with m >= 1; got shape {f.shape}.")
    if labels.shape != (len(f),) or labels.dtype.kind not in "biuf":
        raise ValueError(
            f"y must hold one class per row, {len(f)} numbers; "
            f"got shape {labels.shape}, dtype {labels.dtype}."
        )
    if f.shape[1] == 1:
        present = set(np.unique(labels.astype(float)).tolist())
        if not (present <= {0.0, 1.0} or present <= {-1.0, 1.0}):
            raise ValueError(
                f"y must hold 0 and 1, or -1 and 1, for one output; got {sorted(present)[:5]}."
            )
        return np.where(labels > 0, f[:, 0], -f[:, 0])
    values = labels.astype(np.float64)
    if not (values == np.round(values)).all() or values.min() < 0 or values.max() >= f.shape[1]:
        raise ValueError(
            f"y must hold classes 0 to {f.shape[1] - 1} as integers; got values from "
            f"{values.min():g} to {values.max():g}."
        )
    classes, rows = values.astype(np.intp), np.arange(len(f))
    others = f.copy()
    others[rows, classes] = -np.inf
    return np.asarray(f[rows, classes] - others.max(axis=1))
