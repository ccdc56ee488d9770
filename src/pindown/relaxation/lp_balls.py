r"""Balls of inputs in l1, l2 and linf, cut to a box, and how large a linear form can be on them, proved.

A change of length at most :math:`\epsilon` moves :math:`w \cdot x` by at most :math:`\epsilon \|w\|_q`,
with the dual exponent :math:`1/p + 1/q = 1` (the pairs are l1 and linf, l2 and l2, linf and l1):

.. math::
    \max_{\|x' - x\|_p \le \epsilon} w \cdot x' = w \cdot x + \epsilon \|w\|_q ,

and also at most the maximum over the smallest box around the ball. Everything is rounded outwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nextafter
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.relaxation.linear import LinearForms, largest
from pindown.rounding import TINY, add_down, add_up, gamma

Norm: TypeAlias = Literal["l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")
_ORDERS: dict[Norm, float] = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}
_SQUARES_LOST = 1e-140  # lengths below have squares near 1e-308, where float64 loses digits


@dataclass(frozen=True, eq=False)
class Balls:
    """The inputs within a radius of n centres, and in a box.

    Attributes:
        center: (n, d).
        radius: (n,).
        norm: In which lengths are measured.
        lower: Lower corners of boxes around the balls, (n, d).
        upper: Upper corners, (n, d).
    """

    center: Array
    radius: Array
    norm: Norm
    lower: Array
    upper: Array

    @classmethod
    def around(cls, X: Array, radius: Array, norm: Norm, box: Box | None = None) -> Balls:
        """Return balls around the rows of X.

        >>> balls = Balls.around(np.array([[0.5, 0.0]]), np.array([1.0]), "l2", Box([0, -9], [1, 9]))
        >>> balls.lower, balls.upper
        (array([[ 0., -1.]]), array([[1., 1.]]))
        """
        lower, upper = add_down(X, -radius[:, None]), add_up(X, radius[:, None])
        if box is not None:
            lower, upper = np.maximum(lower, box.lower), np.minimum(upper, box.upper)
        return cls(X, radius, norm, lower, upper)

    def __len__(self) -> int:
        return len(self.center)

    def take(self, which: slice | NDArray[np.intp]) -> Balls:
        """Return some of the balls."""
        return Balls(
            self.center[which], self.radius[which], self.norm, self.lower[which], self.upper[which]
        )

    def largest(self, forms: LinearForms) -> Array:
        """Return upper bounds on forms (n, q, d) over the balls, (n, q); infinite where unknown."""
        on_box = largest(forms, self.lower, self.upper)
        if self.norm == "linf":
            return on_box
        A, c = forms
        d = A.shape[2]
        with np.errstate(over="ignore", invalid="ignore"):
            middle = np.matmul(A, self.center[:, :, None])[:, :, 0]
            reach = self.radius[:, None] * lengths(A, DUALS[self.norm])
            terms = np.matmul(np.abs(A), np.abs(self.center)[:, :, None])[:, :, 0] + reach + np.abs(c)
            slack = 2.0 * gamma(2 * d + 16) * terms + TINY * (2.0 * d + self.radius[:, None] + 2.0)
            total = add_up(middle + reach + c, slack)
        return np.minimum(on_box, np.where(np.isfinite(total), total, np.inf))

    def support(self, A: Array) -> Array:
        """Return :meth:`largest` of forms (n, q, d) without an offset, but for rounding."""
        corner = np.where(A > 0, self.upper[:, None], self.lower[:, None])
        on_box = np.einsum("nqd,nqd->nq", A, corner)
        if self.norm == "linf":
            return on_box
        middle = np.matmul(A, self.center[:, :, None])[:, :, 0]
        return np.minimum(on_box, middle + self.radius[:, None] * lengths(A, DUALS[self.norm]))

    def farthest(self, A: Array) -> Array:
        """Return where forms (n, q, d) are about largest, (n, q, d); of the box if that is nearer."""
        corner = np.where(A > 0, self.upper[:, None], self.lower[:, None])
        if self.norm == "linf":
            return corner
        step = steepest_step(A, self.norm) * self.radius[:, None, None]
        return np.clip(self.center[:, None] + step, self.lower[:, None], self.upper[:, None])


def as_norm(norm: object) -> Norm:
    """Return the norm's name, or refuse it.

    >>> as_norm("linf"), as_norm(2), as_norm(float("inf"))
    ('linf', 'l2', 'linf')
    """
    for name, order in _ORDERS.items():
        if norm == name or (not isinstance(norm, str) and norm == order):
            return name
    raise ValueError(f"norm must be 'l1', 'l2' or 'linf'; got {norm!r}.")


def lengths(changes: Array, norm: Norm) -> Array:
    """Return the norm of every row, (..., d) -> (...), to rounding; also where squares leave float64.

    >>> lengths(np.array([3e-200, 4e-200]), "l2")
    array(5.e-200)
    """
    if norm != "l2":
        return np.asarray(np.linalg.norm(changes, ord=_ORDERS[norm], axis=-1))
    with np.errstate(over="ignore"):
        values = np.asarray(np.linalg.norm(changes, axis=-1))
    if values.size and not (values.min() > _SQUARES_LOST and values.max() < inf):
        largest = np.max(np.abs(changes), axis=-1, initial=0.0)
        unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        values = np.asarray(np.linalg.norm(changes / unit[..., None], axis=-1) * unit)
    return values


def length_up(change: Array, norm: Norm) -> float:
    """Return the norm of one change of input, which was computed as a difference, rounded up."""
    exact = norm == "linf" and change.size
    factor = 1.0 + gamma(2 if exact else change.size + 8)
    value = float(lengths(change, norm)) * factor
    return nextafter(value, np.inf) if value > 0 else 0.0


def steepest_step(forms: Array, norm: Norm) -> Array:
    r"""Return for each row w the change r of length 1 with the largest :math:`w \cdot r`, (..., d).

    .. math::
        \max_{\|r\|_p \le 1} w \cdot r = \|w\|_q.

    Rows of zeros give zero.

    >>> w = np.array([3.0, -4.0])
    >>> [(steepest_step(w, norm) + 0.0).round(9).tolist() for norm in ("l1", "l2", "linf")]
    [[0.0, -1.0], [0.6, -0.8], [1.0, -1.0]]

    Lecture course, section on adversarial attacks.
    """
    if norm == "linf":
        return np.sign(forms)
    if norm == "l2":
        scale = lengths(forms, "linf")[..., None]
        scaled = forms / np.where(scale > 0, scale, 1.0)  # squares of tiny numbers would vanish
        size = lengths(scaled, "l2")[..., None]
        return np.asarray(scaled / np.where(size > 0, size, 1.0))
    place = np.argmax(np.abs(forms), axis=-1)[..., None]
    steps = np.zeros_like(forms)
    np.put_along_axis(steps, place, np.sign(np.take_along_axis(forms, place, axis=-1)), axis=-1)
    return steps


def project(changes: Array, radius: Array, norm: Norm) -> Array:
    """Return the nearest changes (in l2) of length at most ``radius``, rows (n, d) and radii (n,).

    >>> project(np.array([[3.0, 4.0]]), np.array([1.0]), "l1")
    array([[0., 1.]])
    """
    r = radius[:, None]
    if norm == "linf":
        return np.clip(changes, -r, r)
    if norm == "l2":
        size = lengths(changes, "l2")[:, None]
        with np.errstate(over="ignore"):  # a ratio beyond float64 is one above 1
            return np.asarray(changes * np.minimum(1.0, r / np.where(size > 0, size, 1.0)))
    outside = lengths(changes, "l1") > radius
    result = changes.copy()
    result[outside] = _onto_l1_ball(changes[outside], radius[outside])
    return result


def _onto_l1_ball(changes: Array, radius: Array) -> Array:
    """Shrink all entries by the one threshold that leaves the right length."""
    sizes = np.abs(changes)
    falling = -np.sort(-sizes, axis=1)
    counts = np.arange(1, changes.shape[1] + 1)
    thresholds = (np.cumsum(falling, axis=1) - radius[:, None]) / counts
    last = np.count_nonzero(falling > thresholds, axis=1) - 1
    threshold = np.maximum(thresholds[np.arange(len(changes)), np.maximum(last, 0)], 0.0)[:, None]
    return np.asarray(np.sign(changes) * np.maximum(sizes - threshold, 0.0))
