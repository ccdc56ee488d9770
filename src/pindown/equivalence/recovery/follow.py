r"""Where to ask next: across a fold already known, and along it to where it is not.

A row that was pieced together from few kinks is known badly in the columns of inputs that are rarely on.
Short segments across its fold, all over the cube, place it to rounding. A row with unknown columns has a
known fold only in cells where these inputs are off; walking along the fold to the edge of such a cell,
and a little beyond, leads to the cells that tell the missing weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery.lower import Lower

Segments = tuple[Array, Array]

_HALF = 2.0**-5  # half length of a segment across a known fold
_BEYOND = 2.0**-6  # how far beyond the edge of a cell the next segment lies
_WIDE = 2.0**-3  # half length of a segment that looks for the fold beyond an edge
_ON = 1e-9  # height of a point that is on the fold
_SHORTEST = 1e-4  # segments shorter than this are left out
_HOPS = 8  # cells a walk along a fold crosses at most


def across(lower: Lower, row: Array, n: int, rng: np.random.Generator) -> Segments:
    """Return segments across the zero set of a row at up to n random places."""
    y = lower.zeros(row[:-1], float(row[-1]), n, rng)
    normal, _ = _normals(lower, row, y)
    # Tilted a little: a segment along the normal of one fold may run along another.
    tilted = normal + 0.2 * rng.standard_normal(y.shape) / np.sqrt(lower.d)
    return _within_cube(y, _HALF * tilted, rng)


def beyond(
    lower: Lower, row: Array, known: NDArray[np.bool_], n: int, rng: np.random.Generator
) -> Segments:
    """Return segments just beyond the cells in which a partly known row's fold is known."""
    y = lower.zeros(row[:-1], float(row[-1]), n, rng)
    y = y[~(lower(y) > 0.0)[:, ~known[:-1]].any(axis=1)]
    found = [np.empty((2, 0, lower.d))]
    for _ in range(_HOPS):
        normal, fine = _normals(lower, row, y)
        y, normal = y[fine], normal[fine]
        if not len(y):
            break
        along = rng.standard_normal(y.shape)
        along -= np.einsum("nd,nd->n", along, normal)[:, None] * normal
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-300)
        _, edge = lower.chords(y, along)
        after = edge + _BEYOND * rng.random((len(y), 1)) * along
        inside = np.abs(after).max(axis=1) < 1.0
        after, normal = after[inside], normal[inside]
        new = (lower(after) > 0.0)[:, ~known[:-1]].any(axis=1)
        found.append(np.stack(_within_cube(after[new], _WIDE * normal[new], rng)))
        y = _back_onto(lower, row, after[~new])
    starts, ends = np.concatenate(found, axis=1)
    return starts, ends


def _normals(lower: Lower, row: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return unit normals of the row's zero set, and where there is one."""
    _, J = lower.jacobian(y)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.linalg.norm(slope, axis=1)
    return slope / np.maximum(size, 1e-300)[:, None], size > 0.0


def _back_onto(lower: Lower, row: Array, y: Array) -> Array:
    """Move points onto the zero set by one Newton step, which is exact within a cell."""
    a, J = lower.jacobian(y)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.maximum(np.einsum("nd,nd->n", slope, slope), 1e-300)
    moved = y - ((a @ row[:-1] + row[-1]) / size)[:, None] * slope
    height = np.abs(lower(moved) @ row[:-1] + row[-1]) / np.sqrt(size)
    return moved[(np.abs(moved).max(axis=1) < 1.0) & (height < _ON)]


def _within_cube(middle: Array, step: Array, rng: np.random.Generator) -> Segments:
    """Return ``middle -+ step``, not centred, and shortened to fit the cube."""
    off = rng.uniform(-0.3, 0.3, (len(middle), 1))
    starts, ends = middle - (1.0 + off) * step, middle + (1.0 - off) * step
    for end in (starts, ends):
        away = end - middle
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(away > 0, (1.0 - middle) / away, (-1.0 - middle) / away)
        share = np.min(np.where(away != 0.0, room, 1.0), axis=1, initial=1.0)
        end[:] = middle + np.maximum(share, 0.0)[:, None] * away
    long = np.linalg.norm(ends - starts, axis=1) > _SHORTEST
    return starts[long], ends[long]
