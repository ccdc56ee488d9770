"""Find a network layer by layer: collect kinks, find the units, orient them, go on.

Phuong 2021, Theorem 2.1: its induction, run as an algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pindown.affine import Array
from pindown.equivalence.recovery._kinks import Observations, observe
from pindown.equivalence.recovery._known_layers import KnownLayers, across, beyond
from pindown.equivalence.recovery._last_layer import fit_last, linear_rest, vote, with_partial
from pindown.equivalence.recovery._oracle import Oracle
from pindown.equivalence.recovery._unit_candidates import (
    LayerNotFoundError,
    Parts,
    Verdict,
    choices_of,
    explained,
    piece_together,
    refine,
    rows_at,
    too_few,
    unexplained,
    verify,
)
from pindown.equivalence.tuning import (
    ACROSS_SEGMENTS,
    COLLECT_ROUNDS,
    CUBE_INSET,
    DUPLICATE_ROWS,
    FIRST_SEGMENTS,
    LAST_LAYER_POINTS,
    MAX_BRANCHES,
    MAX_CANDIDATES,
    MAX_COLLECTS,
    MAX_PARTIAL,
    TWIN_ROWS,
    ZERO_SET_PROBES,
)
from pindown.progress import Report


@dataclass
class LayerSearch:
    """The state of one recovery.

    Attributes:
        oracle: What is asked.
        widths: Hidden widths, or None if they are to be found.
        rng: Chooses segments and points.
        progress: Told ``(title, done, total)``.
    """

    oracle: Oracle
    widths: tuple[int, ...] | None
    rng: np.random.Generator
    progress: Report

    def __post_init__(self) -> None:
        self.seen = Observations.none(self.oracle.d, self.oracle.k)
        self.branches = self.collects = 0
        self.notes: list[str] = []
        self.sharp: list[Array] = []
        self.partial = Parts.none(self.oracle.d)
        self.points = self.rng.uniform(-1.0, 1.0, (LAST_LAYER_POINTS, self.oracle.d))
        self.values = self.oracle(self.points)

    # ------------------------------------------------------------------ the recursion

    def find(self, lower: KnownLayers) -> KnownLayers:
        """Return the hidden layers above and including ``lower``'s, signs decided.

        Raises:
            LayerNotFoundError: If a layer cannot be found or oriented.
        """
        layer = len(lower.layers) + 1
        if self.widths is not None and layer > len(self.widths):
            return lower
        self.progress(
            f"hidden layer {layer}", layer - 1, len(self.widths) if self.widths is not None else layer
        )
        wanted = self.widths[layer - 1] if self.widths is not None else None
        failure = LayerNotFoundError(
            ("few", layer),
            f"which units hidden layer {layer} has did not settle: every round told otherwise",
        )
        tried: set[bytes] = set()
        before, found = -1, []
        for attempt in range(COLLECT_ROUNDS):
            if attempt or not len(self.seen):
                if self.collects >= MAX_COLLECTS:
                    break
                self.collect(lower, attempt)
            found = self._confirmed(lower)
            if wanted is not None and len(found) < wanted:
                failure = too_few(len(found), wanted, layer)
                continue
            if wanted is None and (attempt < 2 or len(found) != before):
                before = len(found)
                continue
            for rows in choices_of(found, wanted, lower.width, tried):
                try:
                    return self._go_on(lower, rows, layer)
                except LayerNotFoundError as error:
                    failure = error
                self.branches += 1
                if self.branches > MAX_BRANCHES:
                    raise failure
            # A deeper layer that stays hidden is not this one's fault, unless there was a choice.
            if failure.status != ("orient", layer) and len(found) == wanted:
                break
        completed = self._completed(lower, found, layer)
        if completed is None:
            raise failure
        return completed

    def _completed(
        self, lower: KnownLayers, found: list[tuple[Array, Verdict, int]], layer: int
    ) -> KnownLayers | None:
        """Return the last hidden layer with units that show no whole fold, or None."""
        if self.widths is None or layer != len(self.widths) or len(found) >= self.widths[-1]:
            return None
        rows = np.array([row for row, _, _ in found]).reshape(-1, lower.width + 1)
        missing = self.widths[-1] - len(rows)
        rest = linear_rest(self.oracle, lower, rows, self.points, self.values, missing)
        if rest is not None and rest[1] == 0:
            raise LayerNotFoundError(
                ("few", layer),
                f"{len(rows)} of {self.widths[-1]} units of hidden layer {layer} give the function: the "
                "rest is off all over the box, or cancels; without widths the smaller network is found",
            )
        if rest is not None:
            dead = np.zeros((missing - rest[1], lower.width + 1))
            dead[:, -1] = -1.0
            self.notes.append(
                f"{missing} of {self.widths[-1]} units of hidden layer {layer} never switch on the box: "
                "the function does not determine their weights, and some that give it were chosen"
            )
            return _with_rows(lower, np.concatenate([rest[0], dead]))
        full = with_partial(self.oracle, lower, rows, self.partial, missing, self.points, self.values)
        if full is None:
            return None
        self.notes.append(
            f"{missing} of {self.widths[-1]} units of hidden layer {layer} show their folds in parts of "
            "the box only; weights that the folds do not tell were fitted to the values"
        )
        return _with_rows(lower, full)

    def _go_on(self, lower: KnownLayers, rows: Array, layer: int) -> KnownLayers:
        """Orient the units of a layer, given their rows, and find the rest."""
        if not len(rows):
            return lower
        if self.widths is None or layer == len(self.widths):
            fitted = fit_last(self.oracle, lower, rows, self.points, self.values)
            if fitted is not None and fitted[0] is None:
                return self._function(lower, rows, layer)
            if fitted is not None and fitted[0] is not None:
                return self._last(lower, rows, fitted[0])
            if self.widths is not None:
                raise LayerNotFoundError(
                    ("orient", layer),
                    f"the {len(rows)} units found in hidden layer {layer}, the last, do not explain the "
                    "values: one of them belongs to no such network, or the network is deeper",
                )
        choices = vote(lower, rows, self.seen)
        failure = LayerNotFoundError(
            ("orient", layer),
            f"on which side of their folds units of hidden layer {layer} are on could not be decided",
        )
        for signs in choices:
            try:
                return self.find(_with_signs(lower, rows, signs))
            except LayerNotFoundError as error:
                failure = error
            self.branches += 1
            if self.branches > MAX_BRANCHES:
                break
        raise failure

    def _function(self, lower: KnownLayers, rows: Array, layer: int) -> KnownLayers:
        """Return the function where only signs are open: any signs, and units that are always on."""
        rest = linear_rest(self.oracle, lower, rows, self.points, self.values)
        if rest is None:
            raise LayerNotFoundError(
                ("orient", layer), f"the side on which units of hidden layer {layer} are on is open"
            )
        self.notes.append(
            f"on which side of its fold each of the {len(rows)} units of hidden layer {layer} is on "
            f"is open: the function is given with {rest[1]} units more that are on all over the box"
        )
        return _with_rows(lower, rest[0])

    def _last(self, lower: KnownLayers, rows: Array, signs: Array) -> KnownLayers:
        """Return the last hidden layer, with units that are always on if the widths leave that open."""
        rest = None
        if self.widths is None:
            rest = linear_rest(self.oracle, lower, rows, self.points, self.values)
        if rest is None or rest[1] == 0:
            return _with_signs(lower, rows, signs)
        self.notes.append(f"{rest[1]} units that are on all over the box stand for a linear part")
        return _with_rows(lower, rest[0])

    # ------------------------------------------------------------------ the units of one layer

    def _confirmed(self, lower: KnownLayers) -> list[tuple[Array, Verdict, int]]:
        """Return rows whose whole zero set is a fold, what was seen there, and their hits."""
        open_ones = unexplained(lower, self.seen)
        in_time = self.oracle.require_time
        parts = piece_together(rows_at(lower, open_ones, in_time), in_time)
        found = self._verified(lower, parts, open_ones, [])
        if found and self.widths is not None and len(found) < self.widths[len(lower.layers)]:
            # A unit nearly the same as one found was taken for it; the kinks left over are its own.
            others = [~explained(lower, row, open_ones) for row, _, _ in found]
            rest = open_ones.take(np.logical_and.reduce(others))
            again = piece_together(rows_at(lower, rest, in_time), in_time)
            twins = [any(_same(row, unit, TWIN_ROWS) for unit, _, _ in found) for row in again.row]
            found = self._verified(lower, again.take(np.array(twins, dtype=bool)), rest, found)
        self.partial = parts.take(~parts.complete)
        return self._sharpened(lower, found)

    def _verified(
        self,
        lower: KnownLayers,
        parts: Parts,
        seen: Observations,
        found: list[tuple[Array, Verdict, int]],
    ) -> list[tuple[Array, Verdict, int]]:
        """Return the units found and those among the complete parts that are units too."""
        found = list(found)
        complete = parts.take(parts.complete)
        order = np.argsort(-complete.hits, kind="stable")[:MAX_CANDIDATES]
        for i in order:
            self.oracle.require_time()
            row, hits = refine(lower, complete.row[i], seen)
            if hits == 0 or any(_same(row, other) for other, _, _ in found):
                continue
            verdict = verify(self.oracle, lower, row, ZERO_SET_PROBES, self.rng)
            if verdict.is_unit:
                found.append((row, verdict, hits))
        return found

    def _sharpened(
        self, lower: KnownLayers, found: list[tuple[Array, Verdict, int]]
    ) -> list[tuple[Array, Verdict, int]]:
        """Ask across the folds found, once for each, and fit them again."""
        fresh = [row for row, _, _ in found if not any(_same(row, other) for other in self.sharp)]
        if fresh:
            pieces = [across(lower, row, ACROSS_SEGMENTS, self.rng) for row in fresh]
            self._observe(pieces)
        open_ones = unexplained(lower, self.seen)
        better = [(refine(lower, row, open_ones), verdict) for row, verdict, _ in found]
        self.sharp += [row for (row, _), _ in better]
        return [(row, verdict, hits) for (row, hits), verdict in better]

    def collect(self, lower: KnownLayers, attempt: int) -> None:
        """Ask along new segments: across the cube, chords of cells, and beyond known parts of folds."""
        self.collects += 1
        n, d = int(FIRST_SEGMENTS * 1.5**attempt), self.oracle.d
        starts, ends = self.rng.uniform(-1.0, 1.0, (2, n, d))
        pieces = [(starts, ends)]
        if lower.layers:
            points = self._cell_points(lower, n)
            directions = self.rng.standard_normal((len(points), d))
            directions /= np.linalg.norm(directions, axis=1, keepdims=True)
            low, high = lower.chords(points, directions)
            # Not up to the ends: those lie on folds that are known.
            pieces.append((low + CUBE_INSET * (high - low), high - CUBE_INSET * (high - low)))
            often = np.argsort(-self.partial.hits, kind="stable")[:MAX_PARTIAL]
            for i in often:
                row, known = self.partial.row[i], self.partial.known[i]
                if row.shape[0] == lower.width + 1:
                    pieces.append(beyond(lower, row, known, ACROSS_SEGMENTS, self.rng))
        self._observe(pieces)

    def _observe(self, pieces: list[tuple[Array, Array]]) -> None:
        starts, ends = (np.concatenate(part) for part in zip(*pieces, strict=True))
        self.seen = self.seen + observe(self.oracle, starts, ends)

    def _cell_points(self, lower: KnownLayers, n: int) -> Array:
        """Return points whose cells are worth a chord: any, those with most units on, all units on."""
        draws = self.rng.uniform(-1.0, 1.0, (100 * n, self.oracle.d))
        on = np.zeros(len(draws))
        a = draws
        for W, b in lower.layers:
            z = a @ W.T + b
            on += (z > 0.0).mean(axis=1)
            a = np.maximum(z, 0.0)
        most = draws[np.argsort(-on, kind="stable")[: n // 3]]
        everything = lower.inside_all_on(n // 3, self.rng)
        return np.concatenate([most, everything, draws[: n // 3]])


def _with_rows(lower: KnownLayers, rows: Array) -> KnownLayers:
    return lower.with_layer(rows[:, :-1], rows[:, -1])


def _with_signs(lower: KnownLayers, rows: Array, signs: Array) -> KnownLayers:
    size = np.linalg.norm(rows[:, :-1], axis=1) * signs
    return lower.with_layer(rows[:, :-1] / size[:, None], rows[:, -1] / size)


def _same(a: Array, b: Array, within: float = DUPLICATE_ROWS) -> bool:
    return a.shape == b.shape and bool(min(np.linalg.norm(a - b), np.linalg.norm(a + b)) < within)
