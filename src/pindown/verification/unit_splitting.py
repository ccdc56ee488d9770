r"""Splitting ReLUs: is an unsafe set reached? For networks with many inputs.

A part of the problem is a choice of signs for some ReLUs' inputs. On it those ReLUs are linear, and the
signs enter the linear bound as constraints with multipliers (:mod:`~pindown.relaxation.descent`). A part
whose bound is negative is proved; any other is cut in two at the ReLU that promises most, judged by how
far the bound's own point is from the ReLU there, and then by trying the best few.

Wang et al. 2021, "Beta-CROWN" (bounds); Bunel et al. 2020, "Branch and bound for piecewise linear neural
network verification" (branching); De Palma et al. 2021, "Improved branch and bound for neural network
verification via Lagrangian decomposition" (trying the best few).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.operations.operation import dot
from pindown.model.operations.relu import Relu, Triangles
from pindown.parallel import in_threads, shared_out
from pindown.relaxation.descent import Descent
from pindown.relaxation.propagation import Goal
from pindown.relaxation.relaxed_model import Choice, RelaxedModel
from pindown.relaxation.tuning import OUTER_SLOPE_STEPS
from pindown.rounding import add_up
from pindown.verification._leaves import leaf
from pindown.verification.proof_log import SLOPE_STEPS, SignLeaf, SignLog
from pindown.verification.signs_in_boxes import lost_by_lines
from pindown.verification.tuning import (
    LOGGED_SLACK,
    SPLIT_BATCH_NUMBERS,
    SPLIT_CANDIDATES,
    SPLIT_FIRST_BATCH,
    SPLIT_HIGH_SHARE,
    SPLIT_JUDGED_PARTS,
    SPLIT_LOW_SHARE,
    SPLIT_MAX_BATCH,
    SPLIT_MAX_STEPS,
    SPLIT_STEPS,
    SPLIT_WAITING_BYTES,
)

_T = TypeVar("_T")
# Of a search that another process bounds parts for: the same at every round, so that it is sent once.
_FRESH = {"_seen": 0, "_proved": 0, "_count": None, "threads": 1}


class Part(NamedTuple):
    """Signs of some units, with what is known under them.

    Attributes:
        units: Which units of open sign have one: places in the list of all of them.
        signs: 1 or -1 for each.
        bound: Proved upper bound on the smallest form.
        slopes: Below the units of open sign.
        multipliers: Multipliers of the signs.
        weights: Weights of the forms.
        node: Its number in the log's tree.
    """

    units: NDArray[np.intp]
    signs: NDArray[np.int8]
    bound: float
    slopes: NDArray[np.float32]
    multipliers: Array
    weights: Array
    node: int = 0


@dataclass(eq=False)
class UnitSplitting:
    """A search over signs of ReLUs on one box.

    Attributes:
        root: The model on the box, with the best bounds known.
        goal: What must be shown.
        threads: How many to bound parts in.
        log: What is told of every cut, and of every part that is proved; None if nobody asks.
    """

    root: RelaxedModel
    goal: Goal
    threads: int = 1
    log: SignLog | None = None
    n_parts: int = 0
    waiting: list[tuple[float, int, Part]] = field(default_factory=list)
    corners: list[Array] = field(default_factory=list)
    stuck: list[Part] = field(default_factory=list)
    steps: int = SPLIT_STEPS
    single: bool = True  # whether float32 is fine enough to search with
    held: int = 0  # bytes of the slopes of waiting parts
    _seen: int = 0
    _proved: int = 0
    _count: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.index = len(self.root.values) - 1
        self.nodes: list[int] = []
        self.tensors: list[int] = []
        self.starts: list[int] = []
        self.places: list[NDArray[np.intp]] = []
        total = 0
        for i, node in enumerate(self.root.model.nodes, 1):
            if isinstance(node.operation, Relu) and isinstance(self.root.relaxation(i), Triangles):
                (j,) = node.inputs
                low, high = self.root.values[j]
                places = np.flatnonzero((low < 0) & (high > 0))
                if len(places) and j > 0 and j not in self.tensors:  # one sign for all that read it
                    self.nodes.append(i)
                    self.tensors.append(j)
                    self.starts.append(total)
                    self.places.append(places)
                    total += len(places)
        self.n_units = total
        self.layer_of = np.repeat(np.arange(len(self.nodes)), [len(p) for p in self.places])

    @cached_property
    def usual(self) -> NDArray[np.float32]:
        """The slopes below units of open sign that bounds begin with."""
        slopes = np.zeros(self.n_units, dtype=np.float32)
        for i, start, places in zip(self.nodes, self.starts, self.places, strict=True):
            made = self.root.relaxation(i)
            assert isinstance(made, Triangles)
            slopes[start : start + len(places)] = made.lower.ravel()[places]
        return slopes

    def begin(self) -> Part:
        """Return the whole problem as a part."""
        r = len(self.goal.rows)
        none = np.zeros(0)
        return Part(
            none.astype(np.intp), none.astype(np.int8), np.inf, self.usual, none, np.full(r, 1.0 / r)
        )

    def root_bound(self, deadline: Deadline, *, optimise: bool) -> float:
        """Return a proved upper bound on the smallest form, before anything is split.

        Args:
            deadline: When to stop.
            optimise: Whether to take gradient steps; else the best of the forms with the usual slopes.
        """
        if not optimise:
            ends = self.root.upper_ends(
                self.index,
                self.goal.rows[None],
                at_input=None if self.goal.at_input is None else self.goal.at_input[None],
            )
            bounds = add_up(ends, self.goal.constant)[0]
            best = int(np.argmin(bounds))
            bound = float(bounds[best]) + self.slack
            weights = np.eye(len(bounds))[best]
            self.told([self.begin()._replace(bound=bound, weights=weights)])
            return bound
        descent = self.descent([self.begin()])
        descent.run(OUTER_SLOPE_STEPS, goal=0.0, deadline=deadline)
        bounds = self.proved(descent)
        self.told(self.kept([self.begin()], descent, bounds))
        return float(bounds[0])

    @np.errstate(all="ignore")
    def costs(self, deadline: Deadline) -> dict[int, Array]:
        """Return by tensor what lines around its units may cost the bound of the whole, (size,) each."""
        descent = self.descent([self.begin()])
        descent.run(OUTER_SLOPE_STEPS, goal=0.0, deadline=deadline)
        assert descent.last is not None
        found = {}
        for i, j in zip(self.nodes, self.tensors, strict=True):
            if i in descent.last.forms:
                form, made = descent.last.forms[i]
                assert isinstance(made, Triangles)
                found[j] = np.nan_to_num(np.abs(form) * made.shift[:, None]).ravel().astype(np.float64)
        return found

    # ------------------------------------------------------------------ bounds of a batch

    def descent(self, parts: list[Part]) -> Descent:
        """Return the bounds of parts, with the slopes and multipliers that they bring."""
        n = len(parts)
        signs: dict[int, NDArray[np.int8]] = {}
        multipliers: dict[int, Array] = {}
        slopes: dict[int, Array] = {}
        stacked = np.array([part.slopes for part in parts], dtype=np.float64).reshape(n, -1)
        for layer, (i, j) in enumerate(zip(self.nodes, self.tensors, strict=True)):
            shape = self.root.values[j].lower.shape[1:]
            size = int(np.prod(shape))
            start, places = self.starts[layer], self.places[layer]
            own = np.zeros((n, size))
            own[:, places] = stacked[:, start : start + len(places)]
            slopes[i] = own.reshape(n, 1, *shape)
            if any((self.layer_of[part.units] == layer).any() for part in parts):
                sign, multiplier = np.zeros((n, size), dtype=np.int8), np.zeros((n, size))
                for row, part in enumerate(parts):
                    here = self.layer_of[part.units] == layer
                    at = places[part.units[here] - start]
                    sign[row, at] = part.signs[here]
                    multiplier[row, at] = part.multipliers[here]
                signs[j] = sign.reshape(n, *shape)
                multipliers[j] = multiplier.reshape(n, 1, *shape)
        relaxed = self.root.assuming(signs) if signs else self.root
        r = len(self.goal.rows)
        rows = np.broadcast_to(self.goal.rows, (n, 1, *self.goal.rows.shape))
        at_input = self.goal.at_input
        if at_input is not None:
            at_input = np.broadcast_to(at_input, (n, 1, *at_input.shape))
        constant = np.broadcast_to(self.goal.constant, (n, 1, r))
        weights = np.array([part.weights for part in parts]).reshape(n, 1, r)
        return Descent(
            relaxed,
            self.index,
            rows,
            at_input,
            constant,
            Choice(slopes, multipliers),
            weights,
            single=self.single,
        )

    def kept(self, parts: list[Part], descent: Descent, bounds: Array) -> list[Part]:
        """Return the parts with what a descent found out."""
        slopes = [
            descent.best_choice.slopes[i].reshape(len(parts), -1)[:, places]
            for i, places in zip(self.nodes, self.places, strict=True)
        ]
        flat = (
            np.concatenate(slopes, axis=1).astype(np.float32)
            if slopes
            else np.zeros((len(parts), 0), np.float32)
        )
        multipliers = np.zeros((len(parts), self.n_units))
        for layer, j in enumerate(self.tensors):
            if j in descent.best_choice.multipliers:
                values = descent.best_choice.multipliers[j].reshape(len(parts), -1)
                start, places = self.starts[layer], self.places[layer]
                multipliers[:, start : start + len(places)] = values[:, places]
        return [
            part._replace(
                bound=float(bounds[k]),
                slopes=flat[k].copy(),  # a view would keep those of all parts
                multipliers=multipliers[k, part.units],
                weights=descent.best_weights[k, 0],
            )
            for k, part in enumerate(parts)
        ]

    # ------------------------------------------------------------------ what is told to a log

    @cached_property
    def slack(self) -> float:
        """By how much bounds must be below zero so that others find them so: they round otherwise."""
        if self.log is None:
            return 0.0
        sizes = np.abs(self.goal.rows).reshape(1, len(self.goal.rows), -1)
        terms = dot(sizes, self.root.values[-1].reach.reshape(1, -1)) + np.abs(self.goal.constant)
        if self.goal.at_input is not None:
            reach = self.root.values[0].reach.reshape(1, -1)
            terms = terms + dot(np.abs(self.goal.at_input)[None], reach)
        return LOGGED_SLACK * float(terms.max())

    def proved(self, descent: Descent) -> Array:
        """Return the proved bounds (n,) of a descent; for a log with numbers as they are written."""
        if self.log is not None:
            descent.coarsen(SLOPE_STEPS)
        return descent.proved()[:, 0] + self.slack

    def told(self, parts: Iterable[Part]) -> None:
        """Tell the log which parts are proved."""
        if self.log is not None:
            for part in parts:
                if part.bound < 0.0:
                    leaf = SignLeaf.of(part.slopes, part.multipliers, part.weights)
                    self.log.close(part.node, leaf)

    @property
    def left(self) -> dict[int, tuple[SignLeaf, float]]:
        """The parts that are left, by their numbers in the log's tree."""
        parts = [*self.stuck, *(part for _, _, part in self.waiting)]
        return {
            part.node: (SignLeaf.of(part.slopes, part.multipliers, part.weights), part.bound)
            for part in parts
        }

    def go_on(self, left: Mapping[int, tuple[SignLeaf, float]]) -> None:
        """Take the parts that an earlier search left, instead of the whole."""
        assert self.log is not None
        ways = self.log.tree.way(0, left)
        for node, (known, bound) in left.items():
            units, signs = (np.array(each, np.intp) for each in ways[node])
            slopes = (known.slopes / np.float32(SLOPE_STEPS)).astype(np.float32)
            multipliers, weights = known.multipliers.astype(np.float64), np.array(known.weights)
            self._wait(Part(units, signs.astype(np.int8), bound, slopes, multipliers, weights, node))
        self.n_parts += len(left)

    def halves(self, part: Part, unit: int) -> list[Part]:
        """Return the two parts in which one more unit has a sign, with their numbers in the log."""
        both = [halved(part, unit, sign) for sign in (1, -1)]
        if self.log is None:
            return both
        nodes = self.log.tree.halve([part.node], [unit]).tolist()
        return [half._replace(node=node) for half, node in zip(both, nodes, strict=True)]

    # ------------------------------------------------------------------ where to cut

    @np.errstate(all="ignore")
    def candidates(self, parts: list[Part], descent: Descent) -> list[NDArray[np.intp]]:
        """Return for every part the units that promise most."""
        found, choice = descent.last, descent.choice
        assert found is not None
        points = descent.relaxed.followed(found)
        n = len(parts)
        gap = np.zeros((n, self.n_units))
        lift = np.zeros((n, self.n_units))
        for i, j, start, places in zip(self.nodes, self.tensors, self.starts, self.places, strict=True):
            if i not in found.forms or j not in points:
                continue
            form, made = found.forms[i]
            if not isinstance(made, Triangles):
                continue
            parts_of = (form, points[j], choice.slopes[i], made.slope, made.shift)
            lines = (part.reshape(len(part), -1)[:, places] for part in parts_of)
            here = slice(start, start + len(places))
            gap[:, here], lift[:, here] = lost_by_lines(*lines)
        chosen = []
        for k, part in enumerate(parts):
            for score in (gap[k], lift[k]):
                np.nan_to_num(score, copy=False)
                score[part.units] = -np.inf
            m = min(SPLIT_CANDIDATES, self.n_units - len(part.units))
            if not m:
                chosen.append(np.zeros(0, dtype=np.intp))
                continue
            best = [np.argpartition(-score, m - 1)[:m] for score in (gap[k], lift[k])]
            chosen.append(np.unique(np.concatenate(best)))
        return chosen

    def cut(self, parts: list[Part], chosen: list[NDArray[np.intp]]) -> list[Part]:
        """Cut every part at the candidate whose worse half has the best bound."""
        trials, owner = [], []
        for k, (part, units) in enumerate(zip(parts, chosen, strict=True)):
            for unit in units:
                trials += [halved(part, int(unit), sign) for sign in (1, -1)]
                owner.append((k, int(unit)))
        if not trials:
            return []
        ends = np.concatenate(self._shared_out(self._tried, trials)).reshape(-1, 2)
        best: dict[int, tuple[float, float, int]] = {}
        for (k, unit), (a, b) in zip(owner, ends, strict=True):
            score = (max(a, b), min(a, b), unit)
            if k not in best or score < best[k]:
                best[k] = score
        return [half for k in best for half in self.halves(parts[k], best[k][2])]

    def _tried(self, trials: list[Part]) -> Array:
        descent = self.descent(trials)
        descent.run(0)
        return descent.best[:, 0]

    @property
    def batch(self) -> int:
        """How many parts to bound together, for memory's sake."""
        largest = sum(int(np.prod(v.lower.shape[1:])) for v in self.root.values)
        return int(max(1, min(SPLIT_MAX_BATCH, SPLIT_BATCH_NUMBERS // (8 * largest))))

    # ------------------------------------------------------------------ the search

    def round(self, deadline: Deadline) -> None:
        """Cut the worst parts and bound their halves; a finished round keeps what it proved."""
        if not self.waiting and not self.n_parts:
            self._bound([self.begin()], deadline)
            return
        taken = self._taken(min(self.batch * self.threads, SPLIT_FIRST_BATCH + self.n_parts // 4))
        try:
            descent = self.descent(taken)
            descent.run(0)
            chosen = self.candidates(taken, descent)
            for part, units in zip(taken, chosen, strict=True):
                if not len(units):
                    self._settle(part, deadline)
            halves = self.cut(taken, chosen)
            if halves:
                self._bound(halves, deadline)
        except BaseException:
            for part in taken:
                self._wait(part)
            raise

    def _taken(self, size: int) -> list[Part]:
        """Take the worst parts; if too much waits, those nearest to a proof: they soon leave nothing."""
        size = min(size, len(self.waiting))
        if self.held < SPLIT_WAITING_BYTES:
            taken = [heapq.heappop(self.waiting)[2] for _ in range(size)]
        else:
            self.waiting.sort()  # a sorted list is a heap
            taken = [part for _, _, part in self.waiting[-size:]]
            del self.waiting[-size:]
        self.held -= sum(self._own_bytes(part) for part in taken)
        return taken

    def _own_bytes(self, part: Part) -> int:
        return 0 if part.slopes is self.usual else part.slopes.nbytes

    def _settle(self, part: Part, deadline: Deadline) -> None:
        """Decide a part in which every unit has its sign, if a linear program can."""
        bound, point = leaf(self, part, deadline)
        if point is not None:
            self.corners.append(point[None])
        if not bound < 0.0:
            self.stuck.append(part._replace(slopes=self.usual))

    def _bound(self, parts: list[Part], deadline: Deadline) -> None:
        """Bound parts, and let those wait that are not proved."""
        chunks = self._shared_out(partial(self._bounded, deadline=deadline), parts)
        bounded = [piece for few, _ in chunks for piece in few]
        self.n_parts += len(parts)
        if any(missed for _, missed in chunks):
            self.single = False  # what was nearly proved wants more digits
        self.told(part for part, _ in bounded)
        left = [(part, corner) for part, corner in bounded if not part.bound < 0.0]
        if left:
            self.corners.append(np.array([corner for _, corner in left]))
        for part, _ in left:
            self._wait(part)
        # More steps where few parts are proved, fewer where many are: what pays differs by network.
        self._seen += len(parts)
        self._proved += len(parts) - len(left)
        if self._seen >= SPLIT_JUDGED_PARTS:
            share = self._proved / self._seen
            if share < SPLIT_LOW_SHARE:
                self.steps = min(2 * self.steps, SPLIT_MAX_STEPS)
            elif share > SPLIT_HIGH_SHARE:
                self.steps = max(self.steps // 2, SPLIT_STEPS)
            self._seen = self._proved = 0

    def _bounded(self, parts: list[Part], deadline: Deadline) -> tuple[list[tuple[Part, Array]], bool]:
        """Return parts with their proved bounds, each with the point at which it is attained.

        Also whether the steps saw a proof that there was not.
        """
        finished: list[tuple[Part, Array]] = []
        missed = False
        phases = [SPLIT_STEPS, self.steps - SPLIT_STEPS] if self.steps > SPLIT_STEPS else [SPLIT_STEPS]
        for phase, steps in enumerate(phases, 1):
            descent = self.descent(parts)
            descent.run(steps, goal=0.0, deadline=deadline)
            last = phase == len(phases)
            bounds = np.array([part.bound for part in parts])
            if last or (descent.best[:, 0] < 0.0).any():
                bounds = np.minimum(self.proved(descent), bounds)
                nearly = (descent.best[:, 0] < 0.0) & ~(bounds < 0.0)
                missed |= self.log is None and bool(nearly.any())  # else slopes were rounded
            assert descent.last is not None
            points = descent.last.point.reshape(len(parts), -1)
            kept = self.kept(parts, descent, bounds)
            over = np.full(len(parts), last) | (bounds < 0.0)
            finished += [(kept[k], points[k]) for k in np.flatnonzero(over)]
            parts = [kept[k] for k in np.flatnonzero(~over)]
            if not parts:
                break
        return finished, missed

    def _shared_out(self, work: Callable[[list[Part]], _T], parts: list[Part]) -> list[_T]:
        """Share parts among threads or, where that was asked for, processes or a cluster."""
        size = max(1, min(self.batch, -(-len(parts) // self.threads)))
        chunks = [parts[start : start + size] for start in range(0, len(parts), size)]
        if self.log is not None:  # it is kept here
            return in_threads(work, chunks, self.threads)
        return shared_out(work, chunks, self.threads)

    def __getstate__(self) -> dict[str, object]:
        """Send to workers what parts are bounded with, and not the parts that wait here."""
        return vars(self) | {"waiting": [], "corners": [], "stuck": [], "n_parts": 0, "held": 0} | _FRESH

    def _wait(self, part: Part) -> None:
        if self.held >= SPLIT_WAITING_BYTES:  # begin again from the usual slopes: only time is lost
            part = part._replace(slopes=self.usual)
        self.held += self._own_bytes(part)
        heapq.heappush(self.waiting, (-part.bound, next(self._count), part))

    @property
    def bound(self) -> float:
        """A proved upper bound on the smallest form, on all that is left."""
        if not self.n_parts:
            return np.inf
        return max([-self.waiting[0][0] if self.waiting else -np.inf, *(p.bound for p in self.stuck)])

    @property
    def done(self) -> bool:
        """Whether nothing is left to cut."""
        return bool(self.n_parts) and not self.waiting


def halved(part: Part, unit: int, sign: int) -> Part:
    """Return the part in which one more unit has a sign."""
    return part._replace(
        units=np.append(part.units, unit),
        signs=np.append(part.signs, np.int8(sign)),
        multipliers=np.append(part.multipliers, 0.0),
    )
