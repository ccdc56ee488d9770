r"""Kinks that repeat each other, wherever in a network they are, and units that have none.

Written as functions of the inputs and of the kinks below, two kinks with
:math:`(V_k, U_k, c_k) = t\,(V_j, U_j, c_j)`, :math:`t > 0`, are one, also if they come from different
layers. Up to rounding they differ by at most :math:`|r_k - t\, r_j| \cdot (|x|, \rho(z), 1)`.

:math:`\rho(-x) + x` looks as if it took both signs; written by kinks it is :math:`\rho(x)`. So bounds on
the units are taken again there,

.. math::
    z_k \ge \sum_i \min(V_{ki} l_i, V_{ki} u_i) + \sum_j \min(U_{kj}\, t_j, 0) + c_k ,

with :math:`0 \le \rho(z_j) \le t_j`. What misses zero by rounding only is decided as well: then
:math:`|\rho(z) - z| = \rho(-z)` or :math:`\rho(z)` is at most what is missing.

Phuong 2021, section 2.1 (units with the same fold); Moore 1966, "Interval Analysis".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.shrinking._rounded_matrices import Mask, affine_image, sum_up
from pindown.equivalence.tuning import NEAR_KEYS
from pindown.rounding import SMALLEST, add_down, add_up, gamma

# Rounding, also that of the weights, relative to the terms that cancelled or to others beside it.
CANCELLED = 2.0**-40
_SEED = 0


class Sums(NamedTuple):
    """Affine functions of the inputs and kinks: coefficients, constants, and what rounding did to them.

    ``terms`` are the magnitudes that were added up to the coefficients.
    """

    weight: Array
    bias: Array
    weight_error: Array
    bias_error: Array
    terms: Array


class Places(NamedTuple):
    """For kinks of a layer: ``relu(z) = factor * (kink number ``kink``)``, up to ``error``.

    ``known`` is how many kinks there were before, ``new`` which of the layer's kinks are new ones.
    """

    kink: NDArray[np.intp]
    factor: Array
    error: Array
    known: int
    new: NDArray[np.intp]


def table(sums: list[Sums]) -> Sums:
    """Return the sums of all layers in one, over all coordinates that the last of them has."""
    full = sums[-1].weight.shape[1]

    def stacked(parts: list[Array]) -> Array:
        return np.vstack([np.pad(part, ((0, 0), (0, full - part.shape[1]))) for part in parts])

    return Sums(
        stacked([part.weight for part in sums]),
        np.concatenate([part.bias for part in sums]),
        stacked([part.weight_error for part in sums]),
        np.concatenate([part.bias_error for part in sums]),
        stacked([part.terms for part in sums]),
    )


def copies_among(found: list[Sums], own: Sums, sizes: Array) -> Places:
    """Find the kinks of a layer that repeat one below, or each other.

    Args:
        found: The kinks of the layers below.
        own: Those of the layer, over inputs and all kinks below.
        sizes: Bounds on the inputs and on what these kinks give; infinite: nothing is compared.

    >>> rows = np.array([[1.0], [2.0], [-1.0]])
    >>> own = Sums(rows, np.array([1.0, 2.0, -1.0]), 0 * rows, np.zeros(3), np.abs(rows))
    >>> places = copies_among([], own, np.ones(1))
    >>> places.kink.tolist(), places.factor.tolist(), places.new.tolist()
    ([0, 0, 1], [1.0, 2.0, 1.0], [0, 2])
    """
    every, known = table([*found, own]), sum(len(part.bias) for part in found)
    count = len(own.bias)
    kink, factor, error = np.zeros(count, dtype=np.intp), np.ones(count), np.zeros(count)
    leaders = list(range(known))  # rows of the table, one for every kink
    finite = bool(np.isfinite(sizes).all())
    scaled = np.column_stack([every.weight * sizes, every.bias]) if finite else np.zeros((1, 1))
    keys = _keys(scaled)
    for k in range(count):
        row = known + k
        near = np.flatnonzero(np.abs(keys[leaders] - keys[row]) <= NEAR_KEYS) if finite else ()
        match = next((p for p in map(int, near) if _repeats(scaled[leaders[p]], scaled[row])), None)
        if match is None:
            kink[k] = len(leaders)
            leaders.append(row)
        else:
            pivot = int(np.argmax(np.abs(scaled[row])))
            kink[k], factor[k] = match, scaled[row, pivot] / scaled[leaders[match], pivot]
            error[k] = _distance(every, leaders[match], row, factor[k], sizes)
    return Places(kink, factor, error, known, np.array(leaders[known:], dtype=np.intp) - known)


def _keys(rows: Array) -> Array:
    """Return one number for each row that is the same for all its positive multiples."""
    g = np.random.default_rng(_SEED).standard_normal(rows.shape[1])
    top = np.abs(rows).max(axis=1)
    return (rows / np.where(top > 0.0, top, 1.0)[:, None]) @ g


def _repeats(leader: Array, row: Array) -> bool:
    """Return whether the row is a positive multiple of the leader up to rounding."""
    pivot = int(np.argmax(np.abs(row)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        factor = row[pivot] / leader[pivot]
        off = np.abs(row - factor * leader).max()
    return bool(0.0 < factor < np.inf and off <= CANCELLED * np.abs(row[pivot]))


def _distance(every: Sums, leader: int, row: int, factor: float, sizes: Array) -> float:
    """Bound how far the row is from the factor times the leader, for all inputs."""
    mine, other = every.weight[row], factor * every.weight[leader]
    doubt = every.weight_error[row] + factor * every.weight_error[leader]
    off = np.abs(mine - other) + gamma(4) * (np.abs(mine) + np.abs(other)) + doubt
    bias, shift = every.bias[row], factor * every.bias[leader]
    last = abs(bias - shift) + gamma(4) * (abs(bias) + abs(shift))
    last += every.bias_error[row] + factor * every.bias_error[leader]
    total = float(off @ sizes + last) * (1.0 + 2.0 * gamma(len(sizes) + 16))
    return total + len(sizes) * SMALLEST


class Decided(NamedTuple):
    """Units that are never off, units that are never on, and what it costs to say so."""

    on: Mask
    dead: Mask
    error: Array


def decided_signs(z: Sums, on: Mask, box: Box | None, sizes: Array) -> Decided:
    """Return the units of one sign: what is known to be always on, and what shows in this form.

    Args:
        z: The units of a layer, over inputs and all kinks below.
        on: Those known to be always on.
        box: The inputs; None: nothing else is found.
        sizes: Bounds on the size of the inputs and on what the kinks give.

    >>> rows = np.array([[0.0, 1.0], [0.0, -2.0], [1.0, 0.0]])  # of x in [-1, 1] and a kink in [0, 1]
    >>> z = Sums(rows, np.zeros(3), 0 * rows, np.zeros(3), np.abs(rows))
    >>> on, dead, error = decided_signs(z, np.zeros(3, dtype=bool), Box([-1], [1]), np.ones(2))
    >>> on.tolist(), dead.tolist(), error.tolist()
    ([True, False, False], [False, True, False], [0.0, 0.0, 0.0])
    """
    if box is None:
        return Decided(on, np.zeros_like(on), np.zeros(len(on)))
    lower, upper = _ends(z, box, sizes)
    rounding = CANCELLED * (np.abs(z.weight) @ sizes + np.abs(z.bias))
    shown = ~on & (lower >= -rounding)
    dead = ~(on | shown) & (upper <= rounding)
    missing = np.where(shown, -lower, np.where(dead, upper, 0.0))
    return Decided(on | shown, dead, np.maximum(missing, 0.0))


def _ends(z: Sums, box: Box, sizes: Array) -> tuple[Array, Array]:
    """Bound the units for all inputs and kinks in their ranges; exact where nothing rounds."""
    kinks = sizes[box.dim :]
    ends = np.concatenate([box.lower, 0.0 * kinks, box.upper, kinks])
    positive, negative = np.maximum(z.weight, 0.0), np.minimum(z.weight, 0.0)
    low = affine_image(np.hstack([positive, negative]), ends, z.bias)
    high = affine_image(np.hstack([negative, positive]), ends, z.bias)
    doubt = (z.weight_error @ sizes) * (1.0 + 2.0 * gamma(len(sizes) + 8)) + len(sizes) * SMALLEST
    doubt = sum_up(np.where(z.weight_error.any(axis=1), doubt, 0.0), z.bias_error)
    lower = add_down(low.value, -sum_up(low.error, doubt))
    return lower, add_up(high.value, sum_up(high.error, doubt))
