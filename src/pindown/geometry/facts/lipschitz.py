r"""The Lipschitz constant of a network on a box, exactly: the steepest of its cells.

.. math::
    \sup_{x \ne x' \in B} \frac{\|f(x) - f(x')\|_p}{\|x - x'\|_p} = \max_{\text{cells}} \|A\|_{p \to p} .

A segment in the box is cut by cells into parts on each of which f changes by at most :math:`\|A\|` times
its length, so the left side is not larger; inside the steepest cell the ratio is attained.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from pindown.affine import Array
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.facts.vertex_values import BoxLike, complex_of, output_number
from pindown.network import ReluNetwork

_NORMS = {1: 1, 2: 2, inf: inf, "l1": 1, "l2": 2, "linf": inf}
_NAMES = {1: "l1", 2: "l2", inf: "linf"}


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzConstant:
    """The Lipschitz constant on a box, computed in float64 from all cells.

    Attributes:
        value: The constant; only a lower bound unless ``exact``.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``, for inputs and outputs.
        cell: A steepest cell; -1 if none was found.
        point: A point inside it, (d,).
        direction: A step of length 1 along which the outputs change fastest, (d,).
        norms: The norm of the affine map of every cell, (n,).
        exact: Whether the whole box was searched.
    """

    value: float
    norm: str
    cell: int
    point: Array
    direction: Array
    norms: Array
    exact: bool

    def __repr__(self) -> str:
        sign = "" if self.exact else "at least "
        state = "all cells searched" if self.exact else "search not complete"
        return f"LipschitzConstant({sign}{self.value:.6g} in {self.norm}, {state})"


def lipschitz_constant(
    net: ReluNetwork | PolyhedralComplex,
    box: BoxLike | None = None,
    *,
    norm: str | float = "l2",
    output: int | None = None,
    budget: float | None = None,
) -> LipschitzConstant:
    """Return the Lipschitz constant of a network on a box, and where it is attained.

    Args:
        net: The network, or its complex.
        box: The domain; not given with a complex.
        norm: ``"l1"``, ``"l2"`` or ``"linf"`` for both inputs and outputs.
        output: One output alone; all of them if not given.
        budget: Seconds for finding the cells; with those found the value is a lower bound.

    Returns:
        The constant, to float64 rounding, with the cell, a point and a direction that attain it.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If the norm is another one, there is no such output, or the box does not fit.

    Example:
        The slope of ``2 relu(x) - relu(x - 1)`` is 2 between 0 and 1, and at most 1 elsewhere:

        >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[2.0, -1.0]], [0])])
        >>> found = lipschitz_constant(net, (-1, 4))
        >>> found, found.point
        (LipschitzConstant(2 in l2, all cells searched), array([0.5]))
    """
    if norm not in _NORMS:
        raise ValueError(f'norm must be "l1", "l2" or "linf"; got {norm!r}.')
    order = _NORMS[norm]
    cx = complex_of(net, box, budget=budget)
    chosen = slice(None) if output is None else [output_number(cx.net, output)]
    A = cx.A[:, chosen]
    norms = _operator_norms(A, order)
    norms.flags.writeable = False
    if not len(norms):
        start = np.zeros(cx.net.in_features)
        return LipschitzConstant(0.0, _NAMES[order], -1, cx.box.center, start, norms, False)
    cell = int(norms.argmax())
    point, direction = cx.cells.vertices(cell).mean(axis=0), _fastest(A[cell], order)
    point.flags.writeable = direction.flags.writeable = False
    return LipschitzConstant(
        float(norms[cell]), _NAMES[order], cell, point, direction, norms, cx.complete
    )


def _operator_norms(A: Array, order: float) -> Array:
    r"""Return :math:`\|A_i\|_{p \to p}` for matrices (n, k, d)."""
    if order == 1:  # the largest column sum
        return np.abs(A).sum(axis=1).max(axis=1)
    if order == inf:  # the largest row sum
        return np.abs(A).sum(axis=2).max(axis=1)
    if min(A.shape[1:]) == 1:
        return np.linalg.norm(A.reshape(len(A), -1), axis=1)
    return np.linalg.norm(A, ord=2, axis=(1, 2)) if len(A) else np.zeros(0)


def _fastest(A: Array, order: float) -> Array:
    """Return a vector of length 1 that the matrix stretches most."""
    d = A.shape[1]
    if order == 1:
        return np.eye(d)[int(np.abs(A).sum(axis=0).argmax())]
    if order == inf:
        row = A[int(np.abs(A).sum(axis=1).argmax())]
        return np.where(row < 0, -1.0, 1.0)
    direction: Array = np.linalg.svd(A)[2][0]
    return direction
