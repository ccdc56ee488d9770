r"""Linear bounds forwards: every tensor between two affine functions of the input.

For few inputs d this costs about 4 d evaluations of the model, whatever its size, where the way back
costs one for every entry that is bounded. With :math:`A x + a \le z \le B x + b` on the box, an affine
operation :math:`L = L^+ - L^-` gives

.. math::
    (L^+ A - L^- B) x + L^+ a - L^- b \;\le\; L z \;\le\; (L^+ B - L^- A) x + L^+ b - L^- a ,

and lines around a function of numbers are put into each other. What rounding does to the coefficients is
charged to the offsets, against the size of x.

Xu et al. 2020, "Automatic perturbation analysis for scalable certified robustness and beyond" (forward
mode); Wang et al. 2018 (symbolic intervals).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pindown.affine import Array, is_finite
from pindown.model.operations.affine_operation import AffineForms
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Fill, Move
from pindown.model.operations.operation import EntrywiseLines, Interval, Operation, Relaxation, aligned
from pindown.model.operations.relu import Triangles
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.rounding import TINY, gamma

_STEPS = 8  # operations on a coefficient and its share of the offset, at most


class Band(NamedTuple):
    """Affine functions of the input below and above a tensor.

    Attributes:
        low: Coefficients and, last, the offset of the one below, ``(n, d + 1, *shape)``.
        high: The same above.
    """

    low: Array
    high: Array


def tighten_forwards(relaxed: RelaxedModel) -> None:
    """Bound every tensor by affine functions of the input, from the first to the last.

    Args:
        relaxed: The model with the bounds known so far; better ones take their place.
    """
    box = Interval(*(end.reshape(len(end), -1) for end in relaxed.values[0]))
    n, d = box.lower.shape
    reach = np.concatenate([box.reach, np.ones((n, 1))], axis=1)
    own = np.zeros((n, d + 1, d))
    own[:, np.arange(d), np.arange(d)] = 1.0
    first = own.reshape(n, d + 1, *relaxed.model.literal_shape)
    bands: dict[int, Band] = {0: Band(first, first)}
    with np.errstate(all="ignore"):
        for i, node in enumerate(relaxed.model.nodes, 1):
            relaxed.forget(i)
            known = _within(relaxed.values[i], node.operation.interval(*relaxed.into(i)))
            made = _carried(
                node.operation, relaxed.relaxation(i), [bands[j] for j in node.inputs], reach
            )
            if made is None or not (is_finite(made.low) and is_finite(made.high)):
                made = _constant(known, d)
            else:
                known = _within(known, _range(made, box, reach))
            relaxed.values[i], bands[i] = known, made
            for j in set(node.inputs):
                if relaxed.model.last_use[j] == i:
                    del bands[j]


def _carried(operation: Operation, made: Relaxation, bands: list[Band], reach: Array) -> Band | None:
    """Return the band of what an operation makes; None where only constants are known."""
    if isinstance(operation, Move):
        return Band(*(operation.move(part, 2) for part in bands[0]))
    if isinstance(operation, Concat):
        low, high = zip(*bands, strict=True)
        return Band(*(np.concatenate(parts, axis=2 + operation.axis) for parts in (low, high)))
    if isinstance(operation, Fill):
        return Band(*(_filled(operation, part) for part in bands[0]))
    if isinstance(operation, Add):
        return _added(operation, bands, reach)
    if isinstance(made, AffineForms):
        return _mapped(made, bands[0], reach)
    if isinstance(made, Triangles):
        zero = np.zeros(())
        return _lined(bands[0], (made.lower, zero), (made.slope, made.shift), reach)
    if isinstance(made, EntrywiseLines) and len(made.lower) == 1:
        return _lined(bands[0], (made.lower[0], made.below), (made.upper_slopes[0], made.above), reach)
    return None


def _filled(operation: Fill, part: Array) -> Array:
    """Pad the coefficients with zero, the offset with the value."""
    n, columns = part.shape[:2]
    zero = replace(operation, value=0.0)
    padded = zero(part.reshape(n * columns, *part.shape[2:]))
    padded = padded.reshape(n, columns, *padded.shape[1:])
    padded[:, -1] = operation(part[:, -1])
    return np.asarray(padded)


def _added(operation: Add, bands: list[Band], reach: Array) -> Band:
    rank = max(band.low.ndim for band in bands) - 2
    lows, highs, sizes = [], [], []
    for sign, band in zip(operation.signs, bands, strict=True):
        a, b = (_aligned(part, rank) for part in band)
        a, b = (a, b) if sign == 1 else (-b, -a)
        lows.append(a)
        highs.append(b)
        sizes.append(np.maximum(_size(a, reach), _size(b, reach)))
    slack = 2.0 * gamma(len(bands) + _STEPS) * _sum(sizes)
    return _charged(Band(_sum(lows), _sum(highs)), slack)


def _sum(terms: list[Array]) -> Array:
    """Return the sum of arrays that broadcast."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _aligned(part: Array, rank: int) -> Array:
    n, columns = part.shape[:2]
    flat = aligned(part.reshape(n * columns, *part.shape[2:]), rank)
    return np.asarray(flat.reshape(n, columns, *flat.shape[1:]))


def _mapped(made: AffineForms, band: Band, reach: Array) -> Band:
    """Carry a band through an affine operation."""
    n, columns = band.low.shape[:2]
    shape = band.low.shape[2:]
    sizes = np.maximum(_size(band.low, reach), _size(band.high, reach))[:, None]
    stacked = np.concatenate([band.low, band.high, sizes], axis=1)
    flat = stacked.reshape(-1, *shape)
    positive, negative = (part.linear(flat) for part in made.operation.signed())
    out = positive.shape[1:]
    P, N = (part.reshape(n, 2 * columns + 1, *out) for part in (positive, negative))
    low = P[:, :columns] - N[:, columns:-1]
    high = P[:, columns:-1] - N[:, :columns]
    size = P[:, -1] + N[:, -1]
    b = made.operation.offset
    if b is not None:
        low[:, -1] += b
        high[:, -1] += b
        size = size + np.abs(b)
    terms = made.operation.n_terms(shape) + _STEPS
    lost = TINY * terms * (1.0 + reach.sum(axis=1)).reshape(n, *(1,) * len(out))
    return _charged(Band(low, high), 4.0 * gamma(terms + columns) * size + lost)


def _lined(band: Band, below: tuple[Array, Array], above: tuple[Array, Array], reach: Array) -> Band:
    """Put a band into lines around a function of numbers."""
    (a, b), (s, t) = below, above
    low = np.where((a >= 0)[:, None], band.low, band.high) * a[:, None]
    high = np.where((s >= 0)[:, None], band.high, band.low) * s[:, None]
    low[:, -1] += b
    high[:, -1] += t
    size = np.maximum(_size(low, reach), _size(high, reach)) + np.abs(b) + np.abs(t)
    lost = TINY * _STEPS * (1.0 + reach.sum(axis=1)).reshape(len(low), *(1,) * (size.ndim - 1))
    return _charged(Band(low, high), 4.0 * gamma(low.shape[1] + _STEPS) * size + lost)


def _charged(band: Band, slack: Array) -> Band:
    """Move the offsets outwards."""
    low, high = np.array(band.low), np.array(band.high)
    low[:, -1] -= slack
    high[:, -1] += slack
    return Band(low, high)


def _size(part: Array, reach: Array) -> Array:
    """Return ``|A| |x| + |a|`` for every entry, ``(n, *shape)``."""
    return np.asarray(np.einsum("nc...,nc->n...", np.abs(part), reach))


def _range(band: Band, box: Interval, reach: Array) -> Interval:
    """Return proved bounds on the entries of a tensor in a band."""
    low, high = band
    columns = low.shape[1]
    up, down = np.maximum, np.minimum
    least = np.einsum("nc...,nc->n...", up(low[:, :-1], 0.0), box.lower)
    least += np.einsum("nc...,nc->n...", down(low[:, :-1], 0.0), box.upper)
    most = np.einsum("nc...,nc->n...", up(high[:, :-1], 0.0), box.upper)
    most += np.einsum("nc...,nc->n...", down(high[:, :-1], 0.0), box.lower)
    slack = 4.0 * gamma(columns + _STEPS)
    lost = TINY * columns
    least = least + low[:, -1] - (slack * _size(low, reach) + lost)
    most = most + high[:, -1] + (slack * _size(high, reach) + lost)
    known = np.isfinite(least) & np.isfinite(most)
    return Interval(np.where(known, least, -np.inf), np.where(known, most, np.inf))


def _constant(known: Interval, d: int) -> Band:
    """Return the ends of a box as functions with slope zero."""
    parts = []
    for end in known:
        part = np.zeros((len(end), d + 1, *end.shape[1:]))
        part[:, -1] = end
        parts.append(part)
    return Band(*parts)


def _within(first: Interval, second: Interval) -> Interval:
    """Return where two proved bounds agree."""
    return Interval(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper))
