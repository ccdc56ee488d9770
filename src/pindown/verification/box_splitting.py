r"""Cutting boxes: is one of many unsafe sets reached? For models with few inputs.

A part is a box of inputs of one unsafe set. Where a linear bound shows that one of the set's rows is
above its limit on the whole box, the part is proved; any other is cut in two along the input on which
the bound depends most, many parts at a time.

Wang et al. 2018, "Formal security analysis of neural networks using symbolic intervals".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.graph import Model
from pindown.model.operations.operation import Interval, charged, dot_up
from pindown.parallel import in_threads
from pindown.relaxation.forward_bounds import Bend, tighten_forwards
from pindown.relaxation.model_bounds import bends_at_relus_only, tighten
from pindown.relaxation.propagation import contracted
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.rounding import add_up
from pindown.verification.proof_log import ProofLog
from pindown.verification.properties import UnsafeSet
from pindown.verification.row_weights import weighted_rows
from pindown.verification.signs_in_boxes import bound_by_signs, open_units
from pindown.verification.tuning import (
    BOX_BATCH_NUMBERS,
    BOX_CONTRACTED_SHARE,
    BOX_MAX_BATCH,
    BOX_MIN_CHUNK,
    BOX_SETS_TOGETHER,
    BOX_SIGN_HIGH_SHARE,
    BOX_SIGN_JUDGED,
    BOX_SIGN_LOW_SHARE,
    BOX_SIGN_MAX_UNITS,
    BOX_SIGN_MIN_UNITS,
    BOX_TIGHTENED_ENTRIES,
    CUT_WIDTH_SHARE,
    FORWARD_MAX_INPUTS,
    WAITING_BYTES,
)


@dataclass(eq=False)
class BoxSplitting:
    """A search over boxes of inputs.

    Attributes:
        model: The model.
        sets: The unsafe sets.
        only: Which of them are looked at; all if not given.
        threads: How many to bound boxes in.
        log: What is told of every cut, and of every box that is proved; None if nobody asks.
        n_parts: How many boxes were bounded.
        corners: Where bounds of the last round are attained: points to try, (n, d), and their sets.
    """

    model: Model
    sets: Sequence[UnsafeSet]
    only: Sequence[int] | None = None
    threads: int = 1
    log: ProofLog | None = None
    n_parts: int = 0
    corners: tuple[Array, NDArray[np.intp]] | None = None
    _lower: Array = field(init=False)
    _upper: Array = field(init=False)
    # The sets that are open on each box, (n, m): where there are fewer the first stands for the others.
    _owner: NDArray[np.intp] = field(init=False)
    _excess: Array = field(init=False)  # proved upper bounds on the least of limit minus row
    _node: NDArray[np.int64] = field(init=False)  # numbers of boxes in the log's trees
    _thin: dict[int, float] = field(default_factory=dict)  # of sets with boxes too thin to cut
    _closely: int = BOX_SIGN_MIN_UNITS  # ReLUs of open sign up to which a box is looked at closely

    def __post_init__(self) -> None:
        # With one or two inputs boxes are soon small, and cheaper to cut than to look at closely.
        self._by_relus = self.model.in_features > 2 and bends_at_relus_only(self.model)
        q = max([1, *(len(unsafe.limits) for unsafe in self.sets)])
        d, k = self.model.in_features, self.model.out_features
        self._rows, self._limits = np.zeros((len(self.sets), q, k)), np.zeros((len(self.sets), q))
        self._at_input = None
        if any(unsafe.input_rows is not None for unsafe in self.sets):
            self._at_input = np.zeros((len(self.sets), q, d))
        for s, unsafe in enumerate(self.sets):
            if not len(unsafe.limits):
                continue  # the whole box is unsafe: 0 <= 0
            which = np.minimum(np.arange(q), len(unsafe.limits) - 1)  # the last row again and again
            self._rows[s], self._limits[s] = unsafe.rows[which], unsafe.limits[which]
            if self._at_input is not None and unsafe.input_rows is not None:
                self._at_input[s] = unsafe.input_rows[which]
        # A proof for others has a tree of boxes for every set.
        groups = on_one_box(self.sets, BOX_SETS_TOGETHER if self.log is None else 1)
        first = [group[0] for group in groups]
        self._lower = np.array([self.sets[s].lower for s in first]).reshape(-1, d)
        self._upper = np.array([self.sets[s].upper for s in first]).reshape(-1, d)
        m = max(map(len, groups), default=1)
        filled = [group + group[:1] * (m - len(group)) for group in groups]
        self._owner = np.array(filled, dtype=np.intp).reshape(-1, m)
        self._excess = np.full(len(groups), np.inf)
        self._node = np.zeros(len(groups), np.int64)
        if self.log is not None:
            self._node = self.log.boxes.begin(len(groups))
            self.log.box_roots.update(zip(first, self._node.tolist(), strict=True))
        if self.only is not None:
            self.keep(self.only)

    def go_on(
        self, owner: NDArray[np.int64], node: NDArray[np.int64], corners: Array, excess: Array
    ) -> None:
        """Take the boxes that an earlier search left, instead of the sets' own.

        Args:
            owner: Which set each belongs to.
            node: Their numbers in the log's trees.
            corners: Their corners, (n, 2, d); NaN for boxes that were too thin to cut.
            excess: Their bounds, (n,).
        """
        there = np.isfinite(corners).all(axis=(1, 2))
        self._thin = {int(s): np.inf for s in owner[~there]}
        self._owner, self._node = owner[there, None].astype(np.intp), node[there]
        self._lower, self._upper = corners[there, 0], corners[there, 1]
        self._excess = excess[there]

    @property
    def left(self) -> dict[int, tuple[Array, float]]:
        """The boxes that are left, by their numbers in the log's trees: corners and bounds."""
        corners = np.stack([self._lower, self._upper], axis=1)
        rows = zip(self._node.tolist(), corners, self._excess.tolist(), strict=True)
        return {node: (corner, bound) for node, corner, bound in rows}

    def keep(self, sets: Collection[int]) -> None:
        """Drop the boxes of all other sets."""
        wanted = np.zeros(len(self.sets), bool)
        wanted[list(sets)] = True
        open_ = wanted[self._owner]
        if not open_.all():
            kept = open_.any(axis=1)
            self._lower, self._upper = self._lower[kept], self._upper[kept]
            self._owner, self._excess = open_first(self._owner[kept], open_[kept]), self._excess[kept]
            self._node = self._node[kept]
        self._thin = {s: excess for s, excess in self._thin.items() if wanted[s]}

    @property
    def open_sets(self) -> set[int]:
        """The sets that have boxes left."""
        return {*np.unique(self._owner).tolist(), *self._thin}

    @property
    def done(self) -> bool:
        """Whether no box is left."""
        return not len(self._lower) and not self._thin

    @property
    def stuck(self) -> bool:
        """Whether all boxes that are left are too thin to be cut."""
        return not len(self._lower) and bool(self._thin)

    @property
    def bound(self) -> float:
        """A proved upper bound, on all that is left, on the least of limit minus row."""
        return max([float(self._excess.max(initial=-np.inf)), *self._thin.values()])

    @property
    def waiting(self) -> int:
        """How many boxes are left."""
        return len(self._lower)

    @property
    def _box_bytes(self) -> int:
        """What one box that waits takes: its corners, its sets, its bound and its number."""
        return 8 * (2 * self._lower.shape[1] + self._owner.shape[1] + 2)

    @property
    def held(self) -> int:
        """Bytes of the boxes that wait."""
        return len(self._lower) * self._box_bytes

    @property
    def batch(self) -> int:
        """How many boxes to bound together."""
        widest = max(
            math.prod(self.model.literal_shape), *(math.prod(n.shape) for n in self.model.nodes)
        )
        return int(
            max(
                1, min(BOX_MAX_BATCH, BOX_BATCH_NUMBERS // (widest * min(widest, BOX_TIGHTENED_ENTRIES)))
            )
        )

    @np.errstate(over="ignore", invalid="ignore")  # boxes as wide as float64
    def round(self, deadline: Deadline) -> None:
        """Bound the last boxes, and cut those that are not proved."""
        # The last boxes first, and fewer of them if much waits: what waits stays short.
        step = int(max(1, min(self.batch, (WAITING_BYTES - self.held) // self._box_bytes)))
        low, high, owner = self._lower[-step:], self._upper[-step:], self._owner[-step:]
        node = self._node[-step:]
        chunks = np.array_split(
            np.arange(len(low)), max(1, min(self.threads, len(low) // BOX_MIN_CHUNK))
        )
        bounded = in_threads(
            lambda part: self._bounded(low[part], high[part], owner[part], deadline),
            chunks,
            self.threads,
        )
        excess, slope, ends, steep, looked = (
            np.concatenate(column) for column in zip(*bounded, strict=True)
        )
        self.n_parts += len(low)
        small_low, small_high, empty = _contracted_for_each(low, high, slope, ends)
        open_ = ~(empty | (excess.min(axis=2) < 0.0))
        left = np.flatnonzero(open_.any(axis=1))
        self._judge(looked, left)
        open_, excess, before = open_[left], excess[left], (low[left], high[left])
        # The smallest box around what is left to the sets.
        low = np.where(open_[:, :, None], small_low[left], np.inf).min(axis=1)
        high = np.where(open_[:, :, None], small_high[left], -np.inf).max(axis=1)
        moved = np.any((low > before[0]) | (high < before[1]), axis=1)
        # What became much thinner is bounded again before it is cut: one thing follows from another.
        thinner = np.any(high - low < BOX_CONTRACTED_SHARE * (before[1] - before[0]), axis=1)
        known = np.where(np.isnan(excess).any(axis=2), np.inf, excess.min(axis=2))
        known = np.where(open_, known, -np.inf)
        at = np.arange(len(left)), np.argmax(known, axis=1)
        slope = slope[left][at][at[0], np.argmin(excess[at], axis=1)]
        known, worst, owner = known[at], owner[left][at], open_first(owner[left], open_)
        corner = np.where(slope > 0, high, low)
        self.corners = (np.concatenate([corner, low / 2 + high / 2]), np.concatenate([worst, worst]))
        cut = np.flatnonzero(~thinner)
        left_low, left_high, axis, thin = _cut(low[cut], high[cut], steep[left][cut])
        for sets, end in zip(owner[cut][thin].tolist(), known[cut][thin].tolist(), strict=True):
            for s in set(sets):
                self._thin[s] = max(self._thin.get(s, -np.inf), end)
        halved = np.tile(cut[~thin], 2)
        rest = self._told(node, left, thinner, cut[~thin], axis[~thin], moved)
        self._lower = np.concatenate([self._lower[:-step], low[thinner], left_low])
        self._upper = np.concatenate([self._upper[:-step], high[thinner], left_high])
        self._owner = np.concatenate([self._owner[:-step], owner[thinner], owner[halved]])
        self._excess = np.concatenate([self._excess[:-step], known[thinner], known[halved]])
        self._node = np.concatenate([self._node[:-step], rest])

    def _judge(self, looked: NDArray[np.bool_], left: NDArray[np.intp]) -> None:
        """Look at more boxes closely where that proves most of them, at fewer where it proves few."""
        tried = int(np.count_nonzero(looked))
        share = 1.0 - np.count_nonzero(looked[left]) / max(1, tried)
        if tried >= BOX_SIGN_JUDGED and share > BOX_SIGN_HIGH_SHARE:
            self._closely = min(2 * self._closely, BOX_SIGN_MAX_UNITS)
        elif tried >= BOX_SIGN_JUDGED and share < BOX_SIGN_LOW_SHARE:
            self._closely = max(self._closely // 2, BOX_SIGN_MIN_UNITS)

    def _told(
        self,
        node: NDArray[np.int64],
        left: NDArray[np.intp],
        thinner: NDArray[np.bool_],
        cut: NDArray[np.intp],
        axis: NDArray[np.intp],
        moved: NDArray[np.bool_],
    ) -> NDArray[np.int64]:
        """Tell the log what became of a round's boxes; return the numbers of those that wait now."""
        if self.log is None:
            return np.zeros(np.count_nonzero(thinner) + 2 * len(cut), np.int64)
        tree, open_ = self.log.boxes, node[left]
        tree.close(np.delete(node, left))
        shrunk = tree.shrink(open_[thinner])
        return np.concatenate([shrunk, tree.halve(open_[cut], axis, moved[cut])])

    @np.errstate(over="ignore", invalid="ignore")  # what leaves float64 proves nothing
    def _bounded(
        self, low: Array, high: Array, owner: NDArray[np.intp], deadline: Deadline
    ) -> tuple[Array, Array, Array, Array, NDArray[np.bool_]]:
        """Return proved upper bounds (n, m, q) on ``limit - row``; forms; their maxima; where to cut.

        Also which boxes were looked at closely.
        """
        n, d = low.shape
        box, bends = Interval(low, high), {}
        if d <= FORWARD_MAX_INPUTS:
            relaxed = RelaxedModel.unbounded(self.model, box)
            bends = tighten_forwards(relaxed)
        else:
            relaxed = RelaxedModel.by_intervals(self.model, box)
        last, m = relaxed.values[-1], owner.shape[1]
        # Boxes mostly have few sets left: those beyond stand for the first.
        kept = 1 + int(np.count_nonzero(owner[:, 1:] != owner[:, :1], axis=1).max(initial=0))
        owner = owner[:, :kept]
        found = _Bounds(
            form=-self._rows[owner].reshape(n, -1, *last.lower.shape[1:]),
            at_input=None if self._at_input is None else -self._at_input[owner].reshape(n, -1, d),
            limits=self._limits[owner].reshape(n, -1),
            relaxed=relaxed,
            bends=bends,
            kept=kept,
        )
        some = found.left()
        if len(some):
            few = relaxed.of_boxes(some, found.index)
            if not bends:
                tighten(few, most=BOX_TIGHTENED_ENTRIES, deadline=deadline)
            found.carry_back(few, some)
            if self.log is None:  # certificates have no such steps
                found.weigh_rows(some)
            if bends and self.log is None and self._by_relus:
                found.look_closer(self._closely, deadline)
        plain, slope, ends = (
            _for_each(m, kept, part) for part in (found.plain, found.slope, found.ends)
        )
        return plain, slope, ends, found.steep, found.looked


class _Bounds:
    """What is known of n boxes with some sets each: rows of all of them side by side.

    Attributes:
        plain: Proved upper bounds on ``limit - row``, (n, kept * q).
        slope: Linear bounds of them, (n, kept * q, d).
        offset: Their offsets, (n, kept * q).
        weights: Weights of the rows of each set, (n, kept, q): those that show most that they do not
            hold at once.
        ends: The largest values of these.
        steep: Along which inputs to cut, (n, d).
        looked: Which boxes were looked at closely, (n,).
    """

    def __init__(
        self,
        form: Array,
        at_input: Array | None,
        limits: Array,
        relaxed: RelaxedModel,
        bends: dict[int, Bend],
        kept: int,
    ) -> None:
        self.form, self.at_input, self.limits, self.relaxed = form, at_input, limits, relaxed
        self.bends, self.kept, self.index = bends, kept, len(relaxed.values) - 1
        box = Interval(*(end.reshape(len(end), -1) for end in relaxed.values[0]))
        self.width = box.upper - box.lower
        plain = dot_up(form, relaxed.values[-1])
        if at_input is not None:
            plain = add_up(plain, dot_up(at_input, box))
        self.plain = add_up(plain, limits)
        n, d = self.width.shape
        self.slope, self.steep = np.zeros((n, limits.shape[1], d)), np.zeros((n, d))
        self.offset, self.ends = np.zeros(plain.shape), np.full(plain.shape, np.inf)
        q = plain.shape[1] // kept
        self.weights, self.looked = np.full((n, kept, q), 1.0 / q), np.zeros(n, bool)

    def by_sets(self, boxes: NDArray[np.intp]) -> Array:
        """Return the bounds on some boxes, (n, kept, q)."""
        return self.plain[boxes].reshape(len(boxes), self.kept, -1)

    def left(self) -> NDArray[np.intp]:
        """Return the boxes on which some set is not proved to be out of reach."""
        proved = self.by_sets(np.arange(len(self.plain))).min(axis=2) < 0.0
        return np.flatnonzero(~proved.all(axis=1))

    def carry_back(self, few: RelaxedModel, some: NDArray[np.intp]) -> None:
        """Bound the rows on some boxes by linear forms."""
        met: dict[int, Array] = {}
        own = None if self.at_input is None else self.at_input[some]
        for at in few.way_back(self.index, self.form[some], None, own):
            carried, offset = at
            met[max(carried)] = carried[max(carried)]
        forms = met[0]
        self.offset[some] = add_up(offset, self.limits[some])
        end = dot_up(forms, few.values[0])
        ends = add_up(charged(offset + end, np.abs(offset) + np.abs(end), 1), self.limits[some])
        self.ends[some] = ends
        self.plain[some] = np.minimum(self.plain[some], ends)
        self.slope[some] = forms.reshape(*ends.shape, -1)
        row = _worst_row(self.by_sets(some))
        if self.bends:
            bent = {i: Bend(*(part[some] for part in bend)) for i, bend in self.bends.items()}
            self.steep[some] = _bending(bent, met, row, self.width[some])
        else:
            self.steep[some] = self.slope[some, row]

    def weigh_rows(self, boxes: NDArray[np.intp]) -> None:
        """Bound weighted sums of the linear bounds of each set's rows, which must all hold at once."""
        n, m, q = len(boxes), self.kept, self.weights.shape[2]
        if q == 1:
            return
        low, high = (end[boxes].reshape(n, -1).repeat(m, axis=0) for end in self.relaxed.values[0])
        slope, offset = self.slope[boxes].reshape(n * m, q, -1), self.offset[boxes].reshape(n * m, q)
        bounds, weights = weighted_rows(low, high, slope, offset)
        self.weights[boxes] = weights.reshape(n, m, q)
        self._note(boxes[:, None], np.arange(m), bounds.reshape(n, m))

    def _note(self, boxes: NDArray[np.intp], sets: NDArray[np.intp], bounds: Array) -> None:
        """Keep bounds on the smallest row of a set: those of its first row from now on."""
        at = boxes, sets * self.weights.shape[2]
        self.plain[at] = np.fmin(self.plain[at], bounds)

    def look_closer(self, most: int, deadline: Deadline) -> None:
        """Where few ReLUs have an open sign, bound their inputs by linear forms, and split them."""
        some = self.left()
        n_open = open_units(self.relaxed.of_boxes(some, self.index))
        some = some[(n_open > 0) & (n_open <= most)]
        if not len(some) or deadline.passed:
            return
        self.looked[some] = True
        few = self.relaxed.of_boxes(some, self.index)
        tighten(few, deadline=deadline)
        self.carry_back(few, some)
        self.weigh_rows(some)
        which, sets = np.nonzero(~(self.by_sets(some).min(axis=2) < 0.0))
        if not len(which) or deadline.passed:
            return
        q = self.weights.shape[2]
        at = some[which][:, None], sets[:, None] * q + np.arange(q)
        ends = bound_by_signs(
            few.of_boxes(which, self.index),
            self.index,
            self.form[at],
            self.limits[at],
            None if self.at_input is None else self.at_input[at],
            self.weights[some[which], sets],
            deadline,
        )
        self._note(some[which], sets, ends)


def on_one_box(sets: Sequence[UnsafeSet], most: int) -> list[list[int]]:
    """Return the numbers of sets, those on one box together, at most so many."""
    groups: dict[bytes, list[int]] = {}
    for s, unsafe in enumerate(sets):
        groups.setdefault(unsafe.lower.tobytes() + unsafe.upper.tobytes(), []).append(s)
    return [
        group[start : start + most] for group in groups.values() for start in range(0, len(group), most)
    ]


def open_first(owner: NDArray[np.intp], open_: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Put the open sets of every box first; the first of them stands for the others.

    >>> open_first(np.array([[4, 5, 6]]), np.array([[False, True, False]]))
    array([[5, 5, 5]])
    """
    order = np.argsort(~open_, axis=1, kind="stable")
    ordered = np.take_along_axis(owner, order, axis=1)
    return np.where(np.take_along_axis(open_, order, axis=1), ordered, ordered[:, :1])


def _for_each(m: int, kept: int, part: Array) -> Array:
    """Cut what is known of rows (n, kept * q) into sets, (n, m, q); the first stands for the others."""
    which = np.where(np.arange(m) < kept, np.arange(m), 0)
    return part.reshape(len(part), kept, -1, *part.shape[2:])[:, which]


def _worst_row(excess: Array) -> NDArray[np.intp]:
    """Return the number of the best row of the worst set, for bounds (n, m, q)."""
    n, _, q = excess.shape
    worst = np.argmax(excess.min(axis=2), axis=1)
    return worst * q + np.argmin(excess[np.arange(n), worst], axis=1)


def _contracted_for_each(
    low: Array, high: Array, slope: Array, ends: Array
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Cut off, for every one of m sets, what its bounds show to be safe."""
    n, m, q, d = slope.shape
    boxes = np.repeat(low, m, axis=0), np.repeat(high, m, axis=0)
    small = contracted(*boxes, slope.reshape(n * m, q, d), ends.reshape(n * m, q))
    return small[0].reshape(n, m, d), small[1].reshape(n, m, d), small[2].reshape(n, m)


def _bending(
    bends: dict[int, Bend], met: dict[int, Array], row: NDArray[np.intp], width: Array
) -> Array:
    r"""Return how much of what a linear bound loses comes from the width of each input, over that width.

    A function of numbers between lines at a distance h, of which the bound takes :math:`c` times, loses
    about :math:`|c| h`; of the width of what enters it, on which h depends, each input makes its part.

    Args:
        bends: Where the operations bend.
        met: The form of what each makes, ``(n, q, *shape)``.
        row: Which row of the forms to look at, (n,).
        width: Width of the boxes, (n, d).
    """
    n, d = width.shape
    total = np.zeros((n, d))
    for i, bend in bends.items():
        if i in met:
            lost = np.abs(met[i][np.arange(n), row]) * bend.share
            parts = np.abs(bend.inputs).reshape(n, d, -1)
            total += (parts @ lost.reshape(n, -1, 1))[:, :, 0]
    return np.where(width > 0, total / np.where(width > 0, width, 1.0), 0.0)


def _cut(
    lower: Array, upper: Array, slope: Array
) -> tuple[Array, Array, NDArray[np.intp], NDArray[np.bool_]]:
    """Halve boxes along the coordinate that moves the bound most; say which, and what is too thin."""
    middle = lower / 2 + upper / 2
    wide = (lower < middle) & (middle < upper)
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.abs(np.nan_to_num(slope))
        scale = np.max(steep, axis=1, keepdims=True, initial=0.0)
        share = steep / np.where(scale > 0, scale, 1.0)
        score = np.where(wide, (upper - lower) * (share + CUT_WIDTH_SHARE), -1.0)
    at = np.arange(len(lower)), np.argmax(score, axis=1)
    left, right = upper.copy(), lower.copy()
    left[at], right[at] = middle[at], middle[at]
    thin = ~wide[at]
    halves = np.concatenate([lower, right]), np.concatenate([left, upper])
    low, high = (corners[np.tile(~thin, 2)] for corners in halves)
    return low, high, at[1], thin
