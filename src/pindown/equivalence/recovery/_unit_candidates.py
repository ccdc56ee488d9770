r"""From kinks to units: solve for a row where its inputs are on, and piece the parts together.

Let a be the values of the layers found so far and J their Jacobian at a point of a fold with normal n. A
unit :math:`w \cdot a + b` of the next layer has

.. math:: J_S^\top w_S \propto n, \qquad b = -w_S \cdot a_S,

S being the inputs that are on there: the others are zero, so b is complete although their weights are
unknown. Two such parts belong to one unit only if they are parallel on what they share; then each fills
the gaps of the other.

A row is a unit if its whole zero set is a fold, wherever the output is not constant: a fold of a deeper
layer, continued straight, stops being a fold where it truly bends. So points are drawn from ``w . a(y)
+ b = 0`` all over the cube, and second differences across it are measured at two scales: a kink through
the point shrinks them by the ratio of the scales, another one nearby does not. Where another fold is
nearer than that, both are measured again closer to the point.

Phuong 2021, proof of Theorem 2.1 and Lemma A.19 (two affine functions that vanish on a common piece of
a hyperplane are proportional); Lemma 2.1 (the fold-set of a transparent network is the union of its
units' zero sets).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.equivalence.recovery._kinks import Observations
from pindown.equivalence.recovery._known_layers import KnownLayers
from pindown.equivalence.recovery._oracle import Oracle
from pindown.equivalence.tuning import (
    ALIKE,
    ALIKE_ERRORS,
    CLOSER,
    FINER_SCALE,
    FOLD_NOISES,
    FOLD_SHARE,
    MAX_APART,
    MAX_CHOICES,
    MAX_LOOKS,
    MAX_REFITS,
    MAX_ROW_ERROR,
    MIN_KINKS,
    NEAR_GUESS,
    ON_KNOWN_FOLD,
)

Tick = Callable[[], None]
_NOTHING = 1e-20  # what two parts share is empty below this
_FLAT = 1e-12  # slopes below this are rounding


def _go_on() -> None:
    """Let a long loop run to its end."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows ``(w, b)`` up to sign and size, known in some columns.

    Attributes:
        row: The rows with b last, unknown weights 0, length one, (m, width + 1).
        known: Which columns are known (b always), (m, width + 1).
        error: Their relative errors, (m,).
        hits: How many kinks each was seen at, (m,).
    """

    row: Array
    known: NDArray[np.bool_]
    error: Array
    hits: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)

    def take(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Parts:
        """Return some of them."""
        return Parts(*(part[which] for part in vars(self).values()))

    @classmethod
    def none(cls, width: int) -> Parts:
        """Return no parts of rows of a given width."""
        shape = (0, width + 1)
        return cls(
            np.empty(shape), np.empty(shape, dtype=bool), np.empty(0), np.empty(0, dtype=np.int64)
        )

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which rows have all columns."""
        return np.asarray(self.known.all(axis=1))


def unexplained(lower: KnownLayers, seen: Observations) -> Observations:
    """Return the kinks that do not lie on a fold of the layers found."""
    if not lower.layers or not len(seen):
        return seen
    near = lower.distances(seen.y) <= np.maximum(ON_KNOWN_FOLD, 10.0 * seen.place)[:, None]
    return seen.take(~np.asarray(near.any(axis=1)))


def rows_at(lower: KnownLayers, seen: Observations, tick: Tick = _go_on) -> Parts:
    """Solve for the row of the next layer's unit at every kink; ``tick`` may stop by an exception."""
    values, jacobians = lower.jacobian(seen.y)
    rows, masks, errors = [], [], []
    for n, error, a, J in zip(seen.normal, seen.error, values, jacobians, strict=True):
        tick()
        size = np.linalg.norm(J, axis=1)
        on = size > 0.0
        if not on.any() or on.sum() > lower.d:
            continue
        scaled = J[on] / size[on, None]
        u, s, vt = np.linalg.svd(scaled, full_matrices=False)
        doubt = error / s[-1] if s[-1] > 0.0 else np.inf
        if doubt > MAX_ROW_ERROR or np.linalg.norm(n - (n @ vt.T) @ vt) > ALIKE_ERRORS * error + ALIKE:
            continue
        row = np.zeros(lower.width + 1)
        row[:-1][on] = u @ ((vt @ n) / s) / size[on]
        row[-1] = -row[:-1] @ a
        length = np.linalg.norm(row)
        # The error of a weight counts in units of the largest weight.
        errors.append(min(doubt / (size[on].min() * length), 1.0))
        rows.append(row / length)
        masks.append(np.append(on, True))
    shape = (len(rows), lower.width + 1)
    parts = Parts(
        np.array(rows).reshape(shape),
        np.array(masks, dtype=bool).reshape(shape),
        np.array(errors),
        np.ones(len(rows), dtype=np.int64),
    )
    return parts.take(parts.error < MAX_ROW_ERROR)


def piece_together(parts: Parts, tick: Tick = _go_on) -> Parts:
    """Merge parts of one unit until nothing changes; ``tick`` may stop by an exception."""
    while True:
        merged = _merge_once(parts, tick)
        if len(merged) == len(parts):
            return merged
        parts = merged


def _merge_once(parts: Parts, tick: Tick) -> Parts:
    order = np.lexsort((parts.error, -parts.known.sum(axis=1)))
    parts = parts.take(order)
    kept = Parts(parts.row.copy(), parts.known.copy(), parts.error.copy(), np.zeros_like(parts.hits))
    n = 0
    for row, known, error, hits in zip(*vars(parts).values(), strict=True):
        tick()
        match = _best_match(kept, n, row, known, error)
        if match is None:
            kept.row[n], kept.known[n], kept.error[n], kept.hits[n] = row, known, error, hits
            n += 1
        else:
            i, factor = match
            fresh = known & ~kept.known[i]
            kept.row[i, fresh] = factor * row[fresh]
            kept.known[i] |= known
            size = np.linalg.norm(kept.row[i])
            kept.row[i] /= size
            if fresh.any():
                kept.error[i] = max(kept.error[i], error * abs(factor)) / size
            kept.hits[i] += hits
    return kept.take(np.arange(n))


def _best_match(
    kept: Parts, n: int, row: Array, known: NDArray[np.bool_], error: float
) -> tuple[int, float] | None:
    """Return the unit that agrees on most columns, and what to multiply the row by; or None."""
    if n == 0:
        return None
    common = kept.known[:n] & known
    mine, theirs = common * row, common * kept.row[:n]
    a, b = np.linalg.norm(mine, axis=1), np.linalg.norm(theirs, axis=1)
    size = np.maximum(a * b, 1e-300)
    inner = np.einsum("ij,ij->i", mine, theirs)
    angle = np.linalg.norm(
        mine / np.maximum(a, 1e-300)[:, None] * np.sign(inner)[:, None]
        - theirs / np.maximum(b, 1e-300)[:, None],
        axis=1,
    )
    allowed = ALIKE + ALIKE_ERRORS * (
        error / np.maximum(a, 1e-300) + kept.error[:n] / np.maximum(b, 1e-300)
    )
    alike = (angle <= np.minimum(allowed, MAX_APART)) & (common.sum(axis=1) >= 2) & (size > _NOTHING)
    if not alike.any():
        return None
    count = np.where(alike, common.sum(axis=1), -1)
    best = np.flatnonzero(count == count.max())
    i = int(best[np.argmin(angle[best])])
    return i, float(np.sign(inner[i]) * b[i] / a[i])


def refine(lower: KnownLayers, row: Array, seen: Observations) -> tuple[Array, int]:
    """Fit one row to all kinks on its fold: (row, number of kinks).

    The places are known to more digits than the normals, so both enter, each in units of its error:
    ``w . a(y) + b = 0`` and ``J^T w`` parallel to n. The row is the last singular vector. Other folds
    can be nearly the same one; so every equation is weighted by how far it was off, if that is more than
    its error, and the fit repeated: kinks that agree with each other win.
    """
    values, jacobians = lower.jacobian(seen.y)
    far, turn, size = _misfit(row, values, jacobians, seen.normal)
    near = (far <= NEAR_GUESS[0] + 10.0 * seen.place) & (
        turn <= NEAR_GUESS[1] + ALIKE_ERRORS * seen.error
    )
    near &= size > _FLAT
    if not near.any():
        return row, 0
    a, J, part = values[near], jacobians[near], seen.take(near)
    for _ in range(MAX_REFITS):
        far, turn, size = _misfit(row, a, J, part.normal)
        row = _fit(
            row,
            a,
            J,
            part.normal,
            size * np.maximum(part.place, far),
            size * np.maximum(part.error, turn),
        )
    return row, int(explained(lower, row, part).sum())


def explained(lower: KnownLayers, row: Array, seen: Observations) -> NDArray[np.bool_]:
    """Return which kinks lie on the fold of a row, (m,)."""
    values, jacobians = lower.jacobian(seen.y)
    far, turn, _ = _misfit(row, values, jacobians, seen.normal)
    return (far <= ON_KNOWN_FOLD + 100.0 * seen.place) & (
        turn <= ON_KNOWN_FOLD + ALIKE_ERRORS * seen.error
    )


def _misfit(row: Array, values: Array, jacobians: Array, normals: Array) -> tuple[Array, Array, Array]:
    """Return how far kinks are off the row's fold, in place and in angle, and the row's slope there."""
    slope = np.einsum("nwd,w->nd", jacobians, row[:-1])
    size = np.maximum(np.linalg.norm(slope, axis=1), 1e-300)
    far = np.abs(values @ row[:-1] + row[-1]) / size
    same = np.sign(np.einsum("nd,nd->n", slope, normals))
    turn = np.linalg.norm(slope / size[:, None] - normals * same[:, None], axis=1)
    return far, turn, size


def _fit(row: Array, a: Array, J: Array, normals: Array, places: Array, angles: Array) -> Array:
    """Return the row that fits the places and normals of kinks best, each weighted by its error."""
    levels = np.column_stack([a, np.ones(len(a))]) / places[:, None]
    across = np.swapaxes(J, 1, 2)
    across = across - normals[:, :, None] * np.einsum("nd,nwd->nw", normals, J)[:, None]
    across /= angles[:, None, None]
    slopes = np.concatenate([across, np.zeros((*across.shape[:2], 1))], axis=2).reshape(-1, len(row))
    system = np.concatenate([levels, slopes])
    scale = np.maximum(np.linalg.norm(system, axis=0), 1e-300)
    fitted = np.linalg.svd(system / scale, full_matrices=False)[2][-1] / scale
    return fitted / (np.linalg.norm(fitted) * (np.sign(fitted @ row) or 1.0))


@dataclass(frozen=True)
class Verdict:
    """What was seen on the zero set of a row.

    Attributes:
        kinks: Points with a kink.
        smooth: Points without one, although the function is not constant there.
        constant: Points around which the function is constant, where folds cannot be seen.
    """

    kinks: int
    smooth: int
    constant: int

    @property
    def share(self) -> float:
        """Share of kinks among the points that can tell."""
        return self.kinks / max(self.kinks + self.smooth, 1)

    @property
    def is_unit(self) -> bool:
        """Whether the whole zero set is a fold."""
        return self.kinks >= MIN_KINKS and self.share >= FOLD_SHARE


def verify(oracle: Oracle, lower: KnownLayers, row: Array, n: int, rng: np.random.Generator) -> Verdict:
    """Look for kinks at n points of the zero set of ``w . a(y) + b``."""
    points = lower.zeros(row[:-1], float(row[-1]), n, rng)
    _, J = lower.jacobian(points)
    slope = np.einsum("nwd,w->nd", J, row[:-1])
    size = np.linalg.norm(slope, axis=1)
    fine = size > 0.0
    points, across = points[fine], slope[fine] / size[fine, None]
    if not len(points):
        return Verdict(0, 0, 0)
    near = np.min(lower.distances(points), axis=1, initial=1.0)
    h = np.minimum(np.clip(4.0 * np.sqrt(oracle.noise), 2.0**-14, 2.0**-6), near / 2)
    kink, constant = _kinks(oracle, points, across, h)
    for _ in range(1, MAX_LOOKS):
        again = np.flatnonzero(~kink & ~constant)
        kink[again], _ = _kinks(oracle, points[again], across[again], h[again] / CLOSER)
        h[again] /= CLOSER
    # Nearer to another fold than the noise allows to look, a point says nothing.
    silent = ~constant & ~kink & (near < 2.0**-13)
    smooth = ~constant & ~kink & ~silent
    return Verdict(int(kink.sum()), int(smooth.sum()), int(constant.sum()))


def _kinks(
    oracle: Oracle, points: Array, across: Array, h: Array
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return at which points there is a kink, and around which the function is constant."""
    steps = np.stack([-h, -h / FINER_SCALE, 0.0 * h, h / FINER_SCALE, h], axis=1)
    where = np.clip(points[:, None] + steps[..., None] * across[:, None], -1.0, 1.0)
    value = oracle(where)
    coarse = np.abs(value[:, 0] - 2.0 * value[:, 2] + value[:, 4]).max(axis=1)
    fine = np.abs(value[:, 1] - 2.0 * value[:, 2] + value[:, 3]).max(axis=1)
    allowed = FOLD_NOISES * oracle.noise
    constant = np.asarray((np.ptp(value, axis=1) <= allowed).all(axis=1))
    return ~constant & (fine > allowed) & (fine > 0.5 / FINER_SCALE * coarse), constant


class LayerNotFoundError(Exception):
    """A layer could not be found: a status and a reason."""

    def __init__(self, status: tuple[str | int, ...], reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def too_few(found: int, wanted: int, layer: int) -> LayerNotFoundError:
    """Return the failure to see enough units of a layer."""
    return LayerNotFoundError(
        ("few", layer),
        f"only {found} of {wanted} units of hidden layer {layer} were seen as whole folds: a unit may "
        "never switch on the box, or switch only where it cannot be followed",
    )


def choices_of(
    found: list[tuple[Array, Verdict, int]], wanted: int | None, width: int, tried: set[bytes]
) -> Iterator[Array]:
    """Yield sets of rows to go on with, the likeliest first, none of them twice."""
    found = sorted(found, key=lambda item: (-item[1].share, -item[2]))
    sets = combinations(range(len(found)), len(found) if wanted is None else wanted)
    for chosen in islice(sets, MAX_CHOICES):
        rows = np.array([found[i][0] for i in chosen]).reshape(-1, width + 1)
        key = np.sort(np.abs(rows).sum(axis=1)).round(4).tobytes()
        if key not in tried:
            tried.add(key)
            yield rows
