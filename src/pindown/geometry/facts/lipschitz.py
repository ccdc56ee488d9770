r"""The Lipschitz constant of a network on a box, exactly: the steepest of its cells.

.. math::
    \sup_{x \ne x' \in B} \frac{\|f(x) - f(x')\|_p}{\|x - x'\|_p} = \max_{\text{cells}} \|A\|_{p \to p} .

A segment in the box is cut by cells into parts on each of which f changes by at most :math:`\|A\|` times
its length, so the left side is not larger; inside the steepest cell the ratio is attained.

The cells are certified: every sign is proved. The norms are enclosed, rounding included; where slopes
cancel so much that float64 does not say which cell is the steepest, those cells are looked at in
rational numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import Deadline, Stopwatch
from pindown.geometry.complex._reading import BoxLike, complex_of
from pindown.geometry.complex.polyhedral import PolyhedralComplex
from pindown.geometry.exact.integer_network import affine_map, integer_network
from pindown.geometry.facts._values_and_slopes import (
    Ids,
    blocks,
    map_errors,
    output_number,
    slopes_with_errors,
)
from pindown.geometry.tuning import (
    CELLS_TRIED_FOR_ATTAINMENT,
    MIN_RATIONAL_NORMS_SECONDS,
    RATIONAL_NORMS_PATIENCE,
)
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.operator_norms import power_below, spectral_norms
from pindown.rounding import SMALLEST, UNIT_ROUNDOFF, gamma, norm_down, norm_up
from pindown.validation import refuse

_NORMS = {1: 1, 2: 2, inf: inf, "l1": 1, "l2": 2, "linf": inf}
_NAMES = {1: "l1", 2: "l2", inf: "linf"}
_STATUS = {
    "proved": "proved",
    "float64": "all cells searched in float64",
    "partial": "search not complete",
}
_AGREE = 2.0**-30  # the relative difference of two bounds that counts as rounding


@dataclass(frozen=True, eq=False, repr=False)
class LipschitzConstant:
    """The Lipschitz constant on a box: ``lower <= constant <= upper`` is proved, whatever the status.

    Attributes:
        value: The norm of the steepest map, in float64, between the bounds.
        lower: Proved lower bound: the norm on a cell that is certainly there.
        upper: Proved upper bound: over all cells if these are certified, else from absolute weights.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``, for inputs and outputs.
        cell: A steepest cell; -1 if none was found.
        point: A point inside it, (d,), to rounding.
        direction: A step of length 1 along which the outputs change fastest, (d,).
        norms: The norm of the affine map of every cell, (n,), in float64.
        status: ``"proved"`` if all cells are certified and the bounds differ by less than 1e-9 of
            them; ``"float64"`` if all cells were searched, but signs are as float64 gives them or it
            cannot hold the norms; ``"partial"`` if a budget ended the search.
    """

    value: float
    lower: float
    upper: float
    norm: str
    cell: int
    point: Array
    direction: Array
    norms: Array
    status: str

    @property
    def exact(self) -> bool:
        """Whether the constant is proved, to rounding."""
        return self.status == "proved"

    def __repr__(self) -> str:
        sign = "at least " if self.status == "partial" else ""
        value = self.lower if self.status == "partial" else self.value
        surely = "" if self.exact else f"; surely in [{self.lower:.6g}, {self.upper:.6g}]"
        return f"LipschitzConstant({sign}{value:.6g} in {self.norm}, {_STATUS[self.status]}{surely})"


@on_network
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
        net: The network, whose cells are then certified, or its complex. The constant is proved if
            that complex is certified and complete.
        box: The domain; not given with a complex.
        norm: ``"l1"``, ``"l2"`` or ``"linf"`` for both inputs and outputs.
        output: One output alone; all of them if not given.
        budget: Seconds for finding the cells; with those found there is a lower bound.

    Returns:
        The constant between proved bounds, with the cell, a point and a direction that attain it.

    Raises:
        TypeError: If a network comes without a box, or a complex with one.
        ValueError: If the norm is another one, there is no such output, or the box does not fit.

    Example:
        The slope of ``2 relu(x) - relu(x - 1)`` is 2 between 0 and 1, and at most 1 elsewhere:

        >>> net = ReluNetwork.from_layers([([[1.0], [1.0]], [0, -1]), ([[2.0, -1.0]], [0])])
        >>> found = lipschitz_constant(net, (-1, 4))
        >>> found, found.point
        (LipschitzConstant(2 in l2, proved), array([0.5]))
    """
    if norm not in _NORMS:
        refuse("norm", "one of 'l1', 'l2', 'linf'", norm)
    order, watch = _NORMS[norm], Stopwatch()
    cx = complex_of(net, box, budget=budget, certified=not isinstance(net, PolyhedralComplex))
    outputs = np.arange(cx.net.out_features) if output is None else [output_number(cx.net, output)]
    cells = _Steepness(cx, np.asarray(outputs), order)
    proved = cx.complete and cx.certified
    if not cx.n_regions:
        still = np.zeros(cx.net.in_features)
        return LipschitzConstant(
            0.0, 0.0, cells.anywhere, _NAMES[order], -1, cx.box.center, still, np.zeros(0), "partial"
        )
    if proved:
        patience = RATIONAL_NORMS_PATIENCE * max(watch.seconds, cx.seconds)
        cells.sharpen(Deadline.after(max(patience, MIN_RATIONAL_NORMS_SECONDS)))
    lower = float(cells.lower.max()) if proved else cells.attained()
    upper = min(cells.anywhere, float(cells.upper.max())) if proved else cells.anywhere
    norms = np.clip(cells.norms, cells.lower, cells.upper)
    norms.flags.writeable = False
    cell = int(norms.argmax())
    agree = upper - lower <= _AGREE * upper < inf
    status = "partial" if not cx.complete else "proved" if proved and agree else "float64"
    point, direction = cx.cells.vertices(cell).mean(axis=0), _fastest(cells.A[cell], order)
    point.flags.writeable = direction.flags.writeable = False
    return LipschitzConstant(
        float(norms[cell]), lower, upper, _NAMES[order], cell, point, direction, norms, status
    )


class _Steepness:
    """Norms of the maps of all cells, enclosed: ``lower[i] <= |A_i| <= upper[i]`` on its pattern."""

    def __init__(self, cx: PolyhedralComplex, outputs: Ids, order: float) -> None:
        self.cx, self.outputs, self.order = cx, outputs, order
        self.A = cx.A[:, outputs].copy()
        self.error = map_errors(cx.net)[outputs]
        with np.errstate(over="ignore", invalid="ignore"):
            self.norms = _operator_norms(self.A, order)
            self.lower, self.upper = _enclosed(
                self.A, np.broadcast_to(self.error, self.A.shape), order, self.norms
            )

    def sharpen(self, deadline: Deadline) -> None:
        """Enclose anew what may be the steepest: from patterns alone, then in rational numbers."""
        if self._agree():
            return
        for part in blocks(self.cx, np.flatnonzero(self.upper > self.lower.max())):
            patterns = np.array([self.cx.cells.unpacked_patterns(int(i)) for i in part])
            A, error = slopes_with_errors(self.cx.net, patterns)
            self._take(part, A[:, self.outputs], error[:, self.outputs])
        integers = integer_network(self.cx.net) if not self._agree() else None
        # The steepest that may be first: each that is known leaves fewer.
        for i in np.argsort(-self.upper):
            if integers is None or self._agree() or deadline.passed:
                return
            if self.upper[i] > self.lower.max():
                pattern = self.cx.cells.unpacked_patterns(int(i))
                rows = affine_map(integers, self.cx.net.by_layer(pattern))
                A = np.array([[_nearest(a) for a in rows[k][:-1]] for k in self.outputs])
                error = np.where(np.isfinite(A), UNIT_ROUNDOFF * np.abs(A) + SMALLEST, inf)
                flat = [[a == 0 for a in rows[k][:-1]] for k in self.outputs]
                self._take(np.array([i]), A[None], np.where(flat, 0.0, error)[None])

    def _agree(self) -> bool:
        return bool(self.upper.max() <= (1.0 + _AGREE / 2) * self.lower.max())

    def _take(self, cells: Ids, A: Array, error: Array) -> None:
        """Intersect the bounds of some cells with those from other matrices."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.norms[cells] = _operator_norms(A, self.order)
            lower, upper = _enclosed(A, error, self.order, self.norms[cells])
        self.A[cells] = A
        self.lower[cells] = np.maximum(self.lower[cells], lower)
        self.upper[cells] = np.minimum(self.upper[cells], upper)

    def attained(self) -> float:
        """Return the largest lower bound of a cell that is proved to be there, of those looked at."""
        net, box, before = self.cx.net, self.cx.box, np.cumsum([0, *self.cx.net.hidden_widths])
        for i in np.argsort(-self.lower)[:CELLS_TRIED_FOR_ATTAINMENT]:
            point = np.clip(self.cx.cells.vertices(int(i)).mean(axis=0), box.lower, box.upper)
            pattern = self.cx.cells.unpacked_patterns(int(i))
            signs = interval_bounds(net, Box(point, point))[:-1]
            ends = [
                np.where(pattern[a : a + len(z.lower)], z.lower, -z.upper)
                for a, z in zip(before, signs, strict=False)
            ]
            if all(np.all(end > 0) for end in ends):
                return float(self.lower[i])
        return 0.0

    @property
    def anywhere(self) -> float:
        r"""A bound by :math:`|W_L| D_{L-1} |W_{L-1}| \cdots |W_1|`, D for units that may be on."""
        net = self.cx.net
        T, reach = np.abs(dense(net.layers[0].weight)), interval_bounds(net, self.cx.box)
        with np.errstate(over="ignore", invalid="ignore"):
            for (W, _), z in zip(net.layers[1:], reach, strict=False):
                T = (np.abs(dense(W)) @ (T * (z.upper > 0)[:, None]) + SMALLEST * W.shape[1]) * (
                    1.0 + gamma(W.shape[1] + 4)
                )
            T = T[self.outputs]
            stack = T[None]
            norms = _operator_norms(stack, self.order)
            bound = float(_enclosed(stack, np.zeros_like(stack), self.order, norms)[1][0])
        return bound if bound < inf else inf


def _nearest(value: Fraction) -> float:
    """Return the nearest float64, infinite for what it cannot hold."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def _operator_norms(A: Array, order: float) -> Array:
    r"""Return :math:`\|A_i\|_{p \to p}` of matrices (n, k, d) in float64; 0 if it cannot hold them."""
    A = np.where(np.isfinite(A).all(axis=(1, 2), keepdims=True), A, 0.0)
    if order == 1:  # the largest column sum
        return np.abs(A).sum(axis=1).max(axis=1)
    if order == inf:  # the largest row sum
        return np.abs(A).sum(axis=2).max(axis=1)
    scale = power_below(np.abs(A).max(axis=(1, 2)))
    scaled = A / scale[:, None, None]  # squares must stay in float64
    if min(A.shape[1:]) == 1:
        return scale * np.linalg.norm(scaled, axis=(1, 2))
    return scale * np.linalg.norm(scaled, ord=2, axis=(1, 2)) if len(A) else np.zeros(0)


def _enclosed(A: Array, error: Array, order: float, norms: Array) -> tuple[Array, Array]:
    r"""Bound :math:`\|A_i + E_i\|_{p \to p}` for :math:`|E_i| \le` ``error``; ``norms`` are guesses."""
    known = np.all(np.isfinite(A) & np.isfinite(error), axis=(1, 2))
    A, error = np.where(known[:, None, None], A, 0.0), np.where(known[:, None, None], error, 0.0)
    rounding = gamma(A.shape[1] * A.shape[2] + 16)
    high, low = np.abs(A) + error, np.maximum(np.abs(A) * (1.0 - rounding) - error, 0.0)
    if order == 2:
        upper, lower = _spectral(A, error, norms, high, low)
    else:
        axis = 1 if order == 1 else 2
        upper, lower = (part.sum(axis=axis).max(axis=1) for part in (high, low))
    upper, lower = upper * (1.0 + rounding) + SMALLEST * (upper > 0), lower * (1.0 - rounding)
    return np.where(known, np.maximum(lower, 0.0), 0.0), np.where(known & ~np.isnan(upper), upper, inf)


def _spectral(A: Array, error: Array, norms: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Bound spectral norms from above and below, but for rounding of the last steps."""
    scale = power_below(high.max(axis=(1, 2)))
    A, error, high, low = (part / scale[:, None, None] for part in (A, error, high, low))
    whole = np.linalg.norm(high, axis=(1, 2))
    if min(A.shape[1:]) == 1:
        return scale * whole, scale * np.linalg.norm(
            low.reshape(len(A), A.shape[1] * A.shape[2]), axis=1
        )
    off = np.linalg.norm(error, axis=(1, 2))
    upper = np.minimum(whole, spectral_norms(A, norms / scale) + off)
    lower = np.maximum(np.linalg.norm(low, axis=1).max(axis=1), np.linalg.norm(low, axis=2).max(axis=1))
    for i in np.argsort(-norms)[:CELLS_TRIED_FOR_ATTAINMENT]:
        if not np.isfinite(A[i]).all():
            continue
        v = np.linalg.svd(A[i])[2][0]
        image = A[i] @ v
        slack = gamma(A.shape[2] + 8) * (np.abs(A[i]) @ np.abs(v))
        stretched = norm_down(np.maximum(np.abs(image) - slack, 0.0)) / norm_up(v)
        lower[i] = max(lower[i], stretched * (1.0 - gamma(4)) - off[i] * (1.0 + gamma(16)))
    return scale * upper, scale * lower


def _fastest(A: Array, order: float) -> Array:
    """Return a vector of length 1 that the matrix stretches most."""
    d = A.shape[1]
    if order == 1:
        return np.eye(d)[int(np.abs(A).sum(axis=0).argmax())]
    if order == inf:
        row = A[int(np.abs(A).sum(axis=1).argmax())]
        return np.where(row < 0, -1.0, 1.0)
    A = np.nan_to_num(A)
    direction: Array = np.linalg.svd(A / power_below(np.abs(A).max(initial=0.0)))[2][0]
    return direction
