r"""Lengths of input changes, and how far a linear form can move within them.

A change r of length at most :math:`\epsilon` moves :math:`w \cdot x` by at most
:math:`\epsilon \|w\|_q`, with the dual exponent :math:`1/p + 1/q = 1`: the pairs are
(l1, linf), (l2, l2) and (linf, l1).
"""

from __future__ import annotations

from math import inf, nextafter
from typing import Literal, TypeAlias

import numpy as np

from pindown.affine import Array
from pindown.rounding import gamma

Norm: TypeAlias = Literal["l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")
_ORDERS: dict[Norm, float] = {"l1": 1, "l2": 2, "linf": np.inf}
DUALS: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}
_SQUARES_LOST = 1e-140  # lengths below have squares near 1e-308, where float64 loses digits


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
