r"""Bounds carried forwards: every tensor is an affine function of the input and of a few unknowns.

On the box :math:`x_j = m_j + r_j e_j` with :math:`|e_j| \le 1`. A tensor is kept as a *zonotope*

.. math::
    z = c + \sum_i g_i e_i + \rho, \qquad |e_i| \le 1, \quad |\rho| \le s ,

so that :math:`|z - c| \le \sum_i |g_i| + s`. An affine operation acts on c and on every g. A function
of numbers is put between two parallel lines, :math:`a z + b \le f(z) \le a z + t`, and what is between
them is a new unknown, which all later tensors share: :math:`f = a z + (b + t)/2 + e (t - b)/2`. All
entries are bounded at once, where the way back costs one evaluation of the model for each. What rounding
does, and unknowns for which there is no room, go to the slack s.

Singh et al. 2018, "Fast and effective robustness certification" (DeepZ); for ReLUs :math:`b = 0`, with
the slope of the chord.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, is_finite
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineForms, AffineOperation
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Concat, Fill, Move
from pindown.model.operations.operation import EntrywiseLines, Interval, Operation, Relaxation, aligned
from pindown.model.operations.relu import Triangles
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.relaxation.tuning import FORWARD_MAX_UNKNOWNS, FORWARD_MIN_UNKNOWNS, FORWARD_NUMBERS
from pindown.rounding import TINY, add_down, add_up, gamma

_STEPS = 8  # roundings of one entry beside its sums, at most


class Zonotope(NamedTuple):
    """A tensor as an affine function of unknowns in [-1, 1].

    Attributes:
        centre: c, ``(n, *shape)``.
        generators: g, ``(n, k, *shape)``: the first belong to the inputs.
        unknowns: The numbers of the unknowns that they belong to, (k,), ascending: what two operations
            leave open is never one unknown, also where they stand side by side.
        slack: s, ``(n, *shape)``.
        size: At least ``|c| + sum |g| + s``.
        whole: Whether the slack is only what rounding does.
    """

    centre: Array
    generators: Array
    unknowns: NDArray[np.intp]
    slack: Array
    size: Array
    whole: bool = True


class Bend(NamedTuple):
    """Where an operation left its line.

    Attributes:
        inputs: How much of what enters it comes from each input, ``(n, d, *shape)``.
        share: The width between the two lines, over that of what enters.
    """

    inputs: Array
    share: Array


def tighten_forwards(relaxed: RelaxedModel) -> dict[int, Bend]:
    """Bound every tensor by a zonotope, from the first to the last.

    Args:
        relaxed: The model with the bounds known so far; better ones take their place.

    Returns:
        For nodes (1-based) that are functions of numbers, where they bend.
    """
    made: dict[int, Zonotope] = {0: _of_box(relaxed.values[0])}
    bends: dict[int, Bend] = {}
    d = made[0].generators.shape[1]
    most, used = d + _unknowns(relaxed.model), d
    with np.errstate(all="ignore"):
        for i, node in enumerate(relaxed.model.nodes, 1):
            relaxed.forget(i)
            parts = [made[j] for j in node.inputs]
            affine = isinstance(node.operation, AffineOperation)
            known = relaxed.values[i]
            if not affine or not parts[0].whole:
                known = _within(known, node.operation.interval(*relaxed.into(i)))
            relaxation = relaxed.relaxation(i)
            lines = _lines(relaxation)
            zonotope: Zonotope | None
            if lines is not None:
                bends[i] = _bend(lines, parts[0], relaxed.into(i)[0], d)
                zonotope = _bent(lines, parts[0], most, used)
                used = max(used, 1 + int(zonotope.unknowns[-1]))
            else:
                zonotope = _carried(node.operation, relaxation, parts)
            if zonotope is None or not (is_finite(zonotope.centre) and is_finite(zonotope.size)):
                if affine:
                    known = _within(known, node.operation.interval(*relaxed.into(i)))
                zonotope = _constant(known, d)
            elif lines is None:
                known = _within(known, _range(zonotope))
            relaxed.values[i], made[i] = known, zonotope
            for j in set(node.inputs):
                if relaxed.model.last_use[j] == i:
                    del made[j]
    return bends


def _unknowns(model: Model) -> int:
    """Return how many unknowns tensors may have beside those of the inputs."""
    widest = max(math.prod(node.shape) for node in model.nodes)
    return max(FORWARD_MIN_UNKNOWNS, min(FORWARD_MAX_UNKNOWNS, FORWARD_NUMBERS // widest))


def _of_box(box: Interval) -> Zonotope:
    """Return the input: one unknown for each of its entries."""
    low, high = box
    n, d = len(low), low[0].size
    centre = low / 2 + high / 2
    radius = np.maximum(add_up(high, -centre), add_up(centre, -low))
    generators = np.zeros((n, d, d))
    generators[:, np.arange(d), np.arange(d)] = radius.reshape(n, d)
    size = add_up(np.abs(centre), radius)
    own = generators.reshape(n, d, *low.shape[1:])
    return Zonotope(centre, own, np.arange(d), np.zeros(low.shape), size)


def _range(z: Zonotope) -> Interval:
    """Return proved bounds on the entries."""
    radius = z.size - np.abs(z.centre)  # exact enough: what it rounds is charged below
    radius = radius + 2.0 * gamma(_STEPS) * z.size + TINY
    low, high = add_down(z.centre, -radius), add_up(z.centre, radius)
    known = np.isfinite(low) & np.isfinite(high)
    return Interval(np.where(known, low, -np.inf), np.where(known, high, np.inf))


def _sized(
    centre: Array, generators: Array, unknowns: NDArray[np.intp], slack: Array, whole: bool
) -> Zonotope:
    """Return a zonotope with its size."""
    k = generators.shape[1]
    size = np.abs(generators).sum(axis=1) + slack + np.abs(centre)
    size *= 1.0 + 2.0 * gamma(k + _STEPS)
    return Zonotope(centre, generators, unknowns, slack, size, whole)


# ---------------------------------------------------------------------- operations that are exact


def _carried(operation: Operation, made: Relaxation, parts: list[Zonotope]) -> Zonotope | None:
    """Return what an operation makes of zonotopes; None where only constants are known."""
    first = parts[0]
    if isinstance(operation, Move):
        flat = (operation.move(part, 1) for part in (first.centre, first.slack, first.size))
        centre, slack, size = (np.asarray(part) for part in flat)
        generators = operation.move(first.generators, 2)
        return Zonotope(centre, generators, first.unknowns, slack, size, first.whole)
    if isinstance(operation, Concat):
        parts = _as_many(parts)
        centre, generators, slack, size = (
            np.concatenate([getattr(part, field) for part in parts], axis=lead + operation.axis)
            for field, lead in (("centre", 1), ("generators", 2), ("slack", 1), ("size", 1))
        )
        whole = all(part.whole for part in parts)
        return Zonotope(centre, generators, parts[0].unknowns, slack, size, whole)
    if isinstance(operation, Fill):
        return _filled(operation, first)
    if isinstance(operation, Add):
        return _added(operation, _as_many(parts))
    if isinstance(made, AffineForms):
        return _mapped(made.operation, first)
    return None


def _as_many(parts: list[Zonotope]) -> list[Zonotope]:
    """Give all the same unknowns."""
    if all(np.array_equal(part.unknowns, parts[0].unknowns) for part in parts):
        return parts
    unknowns = np.unique(np.concatenate([part.unknowns for part in parts]))
    wide = []
    for part in parts:
        g = part.generators
        generators = np.zeros((len(g), len(unknowns), *g.shape[2:]))
        generators[:, np.searchsorted(unknowns, part.unknowns)] = g
        wide.append(part._replace(generators=generators, unknowns=unknowns))
    return wide


def _filled(operation: Fill, part: Zonotope) -> Zonotope:
    """Pad the centre with the value, everything else with zero."""
    zero = replace(operation, value=0.0)
    g = part.generators
    padded = zero(g.reshape(-1, *g.shape[2:]))
    padded = padded.reshape(len(g), -1, *padded.shape[1:])
    return _sized(operation(part.centre), padded, part.unknowns, zero(part.slack), part.whole)


def _added(operation: Add, parts: list[Zonotope]) -> Zonotope:
    rank = max(part.centre.ndim for part in parts) - 1
    centre, slack, size, generators = (np.zeros(()) for _ in range(4))
    for sign, part in zip(operation.signs, parts, strict=True):
        g = part.generators
        flat = aligned(g.reshape(-1, *g.shape[2:]), rank)
        centre = centre + sign * aligned(part.centre, rank)
        generators = generators + sign * flat.reshape(*g.shape[:2], *flat.shape[1:])
        slack, size = slack + aligned(part.slack, rank), size + aligned(part.size, rank)
    steps = 2.0 * gamma(len(parts) + _STEPS)
    whole = all(part.whole for part in parts)
    return _sized(centre, generators, parts[0].unknowns, slack + steps * size, whole)


def _mapped(operation: AffineOperation, z: Zonotope) -> Zonotope:
    """Carry a zonotope through an affine operation."""
    n, k = z.generators.shape[:2]
    shape = z.centre.shape[1:]
    terms = operation.n_terms(shape) + _STEPS
    rounding = 2.0 * gamma(terms)
    stacked = np.concatenate([z.generators, z.centre[:, None]], axis=1)
    image = operation.linear(stacked.reshape(-1, *shape))
    image = image.reshape(n, k + 1, *image.shape[1:])
    centre, generators = image[:, -1], image[:, :-1]
    # What rounding did to all sums is relative to |L| size; of that, as of |L| slack, the next line
    # computes a bit more, and a bit more again for its own rounding.
    lost = z.slack + 2.0 * rounding * z.size
    positive, negative = (part.linear(lost) for part in operation.signed())
    slack = (positive + negative) * (1.0 + 2.0 * rounding) + TINY * terms * (k + 4)
    b = operation.offset
    if b is not None:
        centre = centre + b
        slack = slack + rounding * (np.abs(b) + np.abs(centre))
    return _sized(centre, generators, z.unknowns, slack, z.whole)


def _constant(known: Interval, d: int) -> Zonotope:
    """Return a box whose entries have nothing in common."""
    low, high = known
    finite = np.isfinite(low) & np.isfinite(high)
    centre = np.where(finite, low / 2 + high / 2, 0.0)
    slack = np.where(finite, np.maximum(add_up(high, -centre), add_up(centre, -low)), np.inf)
    return Zonotope(
        centre,
        np.zeros((len(low), d, *low.shape[1:])),
        np.arange(d),
        slack,
        add_up(np.abs(centre), slack),
        whole=False,
    )


# ---------------------------------------------------------------------- functions of numbers


class _Lines(NamedTuple):
    """``slope * z + below <= f(z) <= slope * z + above``, ``(n, *shape)``, but for rounding."""

    slope: Array
    below: Array
    above: Array
    size: Array  # of the numbers that below and above were made of


def _lines(made: Relaxation) -> _Lines | None:
    """Return parallel lines around a function of numbers."""
    if isinstance(made, Triangles):
        # A ReLU is above every line through zero with a slope between 0 and 1, also that of its chord.
        return _Lines(made.slope, np.zeros(made.shift.shape), made.shift, made.shift)
    if isinstance(made, EntrywiseLines) and not any(
        map(np.any, (*made.lower[1:], *made.upper_slopes[1:]))
    ):
        a, b, s, t, box = made.lower[0], made.below, made.upper_slopes[0], made.above, made.boxes[0]
        size = np.abs(b) + np.abs(t) + (np.abs(a) + np.abs(s)) * box.reach
        ends = [_around(slope, made) for slope in (a, s, a / 2 + s / 2)]
        best = np.argmin([above - below for _, below, above in ends], axis=0)  # the closest two
        slope, below, above = (np.choose(best, column) for column in zip(*ends, strict=True))
        return _Lines(slope, below, above, size)
    return None


def _around(slope: Array, made: EntrywiseLines) -> tuple[Array, Array, Array]:
    """Return lines of a slope, below the lower line and above the upper one."""
    a, s, box = made.lower[0], made.upper_slopes[0], made.boxes[0]
    low, high = ([(part - slope) * end for end in box] for part in (a, s))
    return slope, made.below + np.minimum(*low), made.above + np.maximum(*high)


def _bend(lines: _Lines, z: Zonotope, box: Interval, d: int) -> Bend:
    width = box.upper - box.lower
    share = (lines.above - lines.below) / np.where(width > 0, width, 1.0)
    return Bend(z.generators[:, :d], np.where(share > 0, share, 0.0))


def _bent(lines: _Lines, z: Zonotope, most: int, used: int) -> Zonotope:
    """Put a zonotope between parallel lines: what is between them is unknown, the widest one by one.

    Numbers of unknowns below ``used`` belong to others.
    """
    n, k = z.generators.shape[:2]
    slope, below, above, _ = lines
    size = np.abs(slope) * z.size + lines.size + np.abs(below) + np.abs(above)
    rounding = 2.0 * gamma(_STEPS) * size + TINY * (k + _STEPS)
    half = np.where(above > below, (above - below) / 2, 0.0)
    slack = np.abs(slope) * z.slack * (1.0 + 2.0 * gamma(_STEPS)) + rounding
    flat = half.reshape(n, -1)
    new = int(np.count_nonzero(flat, axis=1).max(initial=0))
    room = min(new, max(0, (most - k) // 2))
    generators = np.zeros((n, k + room, *z.centre.shape[1:]))
    np.multiply(z.generators, slope[:, None], out=generators[:, :k])
    if room:
        which = np.argsort(-flat, axis=1, kind="stable")[:, :room]
        rows, slots = np.arange(n)[:, None], k + np.arange(room)
        generators.reshape(n, k + room, -1)[rows, slots, which] = flat[rows, which]
        if room < new:
            flat = flat.copy()
            flat[rows, which] = 0.0
    if room < new:
        slack = slack + flat.reshape(half.shape)
    whole = z.whole and room == new
    centre = slope * z.centre + (below / 2 + above / 2)
    size = np.abs(slope) * z.size + np.abs(below) + np.abs(above) + slack
    unknowns = np.append(z.unknowns, used + np.arange(room))
    return Zonotope(centre, generators, unknowns, slack, size * (1.0 + 2.0 * gamma(_STEPS)), whole)


def _within(first: Interval, second: Interval) -> Interval:
    """Return where two proved bounds agree."""
    return Interval(np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper))
