"""A network and a sample, read once: margins (by how much the right class wins) and input norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.guarantees.bounds.rescaled_weights import WeightList, weights_of
from pindown.io import as_network
from pindown.rounding import gamma, norm_up

# Roundings in the norm of a normalised row besides one for each entry: the root and quotient that made
# it, the root and the outward factor that measure it.
_OTHER_ROUNDINGS = 8
_SMALL = 1e-140


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


class Sample(NamedTuple):
    """What bounds need of a sample: margins, input norms, and how a margin moves with the outputs."""

    margins: Array
    norms: Array
    factor: float  # a margin moves by at most this times the Euclidean move of the outputs

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.margins)


def read_networks(nets: Sequence[Any], X: ArrayLike, caller: str) -> tuple[list[WeightList], Array]:
    """Return networks as weights without biases, and the rows that the first of them reads.

    Args:
        nets: Any models, or weight lists, which read rows as they are. If one has biases, all are
            taken as networks of an input (x, 1).
        X: The sample.
        caller: Who asks, for messages.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[2.0]], [1.0]), ([[3.0]], [0.0])])
    >>> weights, rows = read_networks([net, net], [[4.0], [5.0]], "an example")
    >>> len(weights), rows.tolist()
    (2, [[4.0, 1.0], [5.0, 1.0]])
    """
    first = nets[0] if isinstance(nets[0], WeightList) else as_network(nets[0], caller)
    weights = weights_of([first, *nets[1:]], caller)
    n_inputs = weights[0].shapes[0][1]
    if isinstance(first, WeightList):
        rows = np.asarray(X, dtype=np.float64)
    else:
        rows, _ = first.as_rows(X)
        if n_inputs > first.in_features:
            rows = np.hstack([rows, np.ones((len(rows), 1))])
    if rows.ndim != 2 or len(rows) < 2 or rows.shape[1] != n_inputs:
        raise ValueError(f"X must have at least 2 rows of {n_inputs} inputs; got shape {rows.shape}.")
    return weights, rows


def read_sample(weights: WeightList, rows: Array, y: ArrayLike) -> Sample:
    """Return margins, rounded down, and input norms, rounded up, on the rows."""
    margins = margins_of(weights(rows), y) - 2.0 * weights.rounding(rows)
    factor = 1.0 if weights.shapes[-1][0] == 1 else math.sqrt(2.0)
    return Sample(margins, row_norms_up(rows), factor)


def reach_of_inputs(given: float, longest: float, X: ArrayLike, n_inputs: int) -> float:
    """Return a bound on input norms as it was given, or a little more if only rounding exceeds it.

    Rows that were divided by their norms are longer than one by a few units in the last place of their
    type. The bound is widened by as much, so that what follows from it holds for such rows too.

    Args:
        given: The bound.
        longest: The largest norm of the sample, rounded up.
        X: The sample, in the type it came in.
        n_inputs: How many entries a norm is taken over.

    >>> X = np.array([[3.0, 4.0]])
    >>> reach_of_inputs(6.0, 5.0, X, 2), reach_of_inputs(4.0, 5.0, X, 2)
    (6.0, 4.0)
    >>> 1.0 < 1 + 1e-15 <= reach_of_inputs(1.0, 1 + 1e-15, X, 2) < 1 + 1e-14
    True
    """
    kind = np.asarray(X).dtype
    unit = float(np.finfo(kind if kind.kind == "f" else np.float64).eps)
    widened = given * (1.0 + (n_inputs + _OTHER_ROUNDINGS) * unit)
    return widened if given < longest <= widened else given


def row_norms_up(rows: Array) -> Array:
    """Return upper bounds on the norms of all rows.

    >>> row_norms_up(np.array([[3.0, 4.0], [0.0, 0.0]])).round(9)
    array([5., 0.])
    """
    sizes = np.max(np.abs(rows), axis=1, initial=0.0)
    plain = (sizes == 0.0) | ((sizes > _SMALL) & (sizes < 1.0 / _SMALL))
    norms = np.linalg.norm(np.where(plain[:, None], rows, 0.0), axis=1) * (
        1.0 + gamma(rows.shape[1] + 8)
    )
    for i in np.flatnonzero(~plain):  # squares would leave float64
        norms[i] = norm_up(rows[i])
    return np.asarray(norms)
