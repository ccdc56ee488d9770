r"""Labelled samples as signed points :math:`z_i = y_i x_i`, and the proof that no margin exists."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.learn.kernels.gram import samples
from pindown.learn.margins import NotSeparableError


class NoMarginError(NotSeparableError):
    r"""No classifier of the asked form has a positive margin.

    Attributes:
        weights: Convex weights of the samples (n,) with :math:`\sum_i a_i y_i x_i = 0` (and
            :math:`\sum_i a_i y_i = 0` with an offset): no w has :math:`y_i w x_i > 0` for all of them.
        residual: Norm of that sum over the norm of the longest sample; zero up to rounding.
    """

    def __init__(self, weights: Array, residual: float, *, offset: bool) -> None:
        self.weights, self.residual = weights, residual
        used = np.flatnonzero(weights)
        shown = ", ".join(str(i) for i in used[:5]) + (", ..." if len(used) > 5 else "")
        form = "with" if offset else "without"
        remedy = (
            "drop those samples or use a soft margin" if offset else "try bias=True, or a soft margin"
        )
        super().__init__(
            f"no linear classifier {form} offset separates the samples: a convex combination of "
            f"{len(used)} signed sample{'s' if len(used) != 1 else ''} (indices {shown}) is zero to "
            f"{residual:.1g}; {remedy}"
        )


def signed_labels(y: ArrayLike, n: int) -> Array:
    """Return labels as -1 and 1: of two classes the larger is positive.

    A class that is alone is positive, unless its label is zero, negative or False.

    >>> signed_labels(["no", "yes", "no"], 3).tolist(), signed_labels([0, 0], 2).tolist()
    ([-1.0, 1.0, -1.0], [-1.0, -1.0])
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} samples, got shape {labels.shape}")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y has NaN or infinite labels; drop those samples first")
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(f"y must hold at most two classes, got {len(classes)}: compare them in pairs")
    if len(classes) == 1:
        negative = labels.dtype.kind in "biuf" and classes[0] <= 0
        return np.full(n, -1.0 if negative else 1.0)
    return np.where(labels == classes[1], 1.0, -1.0)


def labelled(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return samples (n, d) as floats and their labels as -1 and 1.

    >>> labelled([[1, 2]], [7])[1].tolist()
    [1.0]
    """
    points = samples(X)
    return points, signed_labels(y, len(points))
