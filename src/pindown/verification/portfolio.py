r"""Does a property hold? Several ways to decide it, by what the problem is, within one budget.

First a short search for a violation and bounds of all unsafe sets at once, then turns: conclusions are
drawn from the unsafe set and from cuts, boxes are cut where few inputs vary, ReLUs are split where there
are some, and the search for a violation goes on from the points at which bounds are attained. A set that
one way proves to be out of reach is dropped by all. Turns grow, and their order does not depend on the
clock: a longer run goes through the shorter one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.graph import Model
from pindown.model.joining import joined
from pindown.model.operations.operation import Interval
from pindown.model.sparse_layers import with_sparse_layers
from pindown.parallel import n_workers
from pindown.parallel.limits import one_thread
from pindown.progress import Report, silent
from pindown.relaxation.forward_bounds import tighten_forwards
from pindown.relaxation.lp_balls import Balls
from pindown.relaxation.model_bounds import EXACT, tighten
from pindown.relaxation.propagation import Goal
from pindown.relaxation.relaxed_model import RelaxedModel
from pindown.verification._exact_ends import never_below
from pindown.verification.box_splitting import BoxSplitting
from pindown.verification.certificate_files import Certificate
from pindown.verification.deduction import Deductions, goal_of
from pindown.verification.falsification import Falsifier, find_violation
from pindown.verification.inner_splitting import InnerSplitting, InnerSplittings
from pindown.verification.proof_files import Frontier
from pindown.verification.proof_log import BY_BOXES, BY_ENDS, BY_SIGNS, ProofLog, SignLog
from pindown.verification.proof_roots import pinned_root, restored_root
from pindown.verification.properties import Property, UnsafeSet
from pindown.verification.tuning import (
    BOX_FIRST_PARTS,
    BOX_FIRST_WORK,
    BOX_MAX_INPUTS,
    BOX_PREFERRED_INPUTS,
    DEDUCTION_FIRST_PARTS,
    DEDUCTION_IDLE_PARTS,
    DEDUCTION_MAX_SETS,
    FEW_INPUTS,
    FORWARD_MAX_INPUTS,
    INNER_FIRST_PARTS,
    INNER_FIRST_WORK,
    INNER_IDLE_SHARE,
    LINEAR_FIRST_WORK,
    LOGGED_DEDUCTION_TURN,
    LOGGED_PATIENCE,
    PORTFOLIO_TURNS,
    ROOT_INNER_SHARE,
    ROOT_INNER_STEPS,
    ROOT_MAX_WORK,
    SEARCH_FIRST_MAX_SETS,
    SEARCH_FIRST_TURNS,
    SPLIT_FIRST_PARTS,
    SPLIT_MAX_GROUPS,
)
from pindown.verification.unit_splitting import UnitSplitting
from pindown.verification.verdicts import Verification
from pindown.verification.vnnlib import read_vnnlib
from pindown.verification.witnesses import Witness


def verify(
    model: AnyModel | tuple[AnyModel, ...],
    prop: Property | str | PathLike[str],
    *,
    budget: float | None = 60.0,
    seed: int = 0,
    n_jobs: int | None = None,
    certificate: str | PathLike[str] | None = None,
    progress: Report = silent,
) -> Verification:
    """Decide whether a model keeps a property: proved, refuted by an input, or not decided.

    Args:
        model: A model, or what can be read as one; a tuple of them for a property of several networks:
            those that it says are equal once, or as often as it names them.
        prop: A :class:`~pindown.verification.Property`, or the path of a VNN-LIB file.
        budget: Seconds; None for no limit.
        seed: Seed of the search for violations.
        n_jobs: Threads to bound parts in; all cores if not given. Inside
            :func:`pindown.parallel.workers` choices of signs are bounded by its processes, or on its
            cluster: for one machine threads do as well.
        certificate: Where to write a proof that ``checker/pindown_check.py`` checks; models must be
            given as paths of ONNX files.
        progress: What is told how far the work is.

    Returns:
        ``"holds"`` if no input of the property's boxes violates it, proved for the real-number model
        with outward rounding; ``"violated"`` with an input that does, proved likewise; or
        ``"undecided"``.

    Raises:
        ValueError: If the property has other sizes than the model, or a certificate is asked for and a
            model is no ONNX file.

    Example:
        ``|x|`` is below 3.1 on [-3, 3], and above 2 somewhere:

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> verify(net, Property.box([-3], [3], [[1.0]], [3.1])).verdict
        'holds'
        >>> abs(verify(net, Property.box([-3], [3], [[1.0]], [2.0])).witness) > 2
        array([ True])
    """
    deadline = Deadline.of(budget)
    goal = prop if isinstance(prop, Property) else read_vnnlib(prop)
    given = goal.one_of_each(model if isinstance(model, tuple) else (model,))
    models = [as_model(one, "verify") for one in given]
    goal.check_model(*models)
    proof = None if certificate is None else Certificate.at(certificate, goal, given, models)
    graph, path = models[0], _path(given[0]) if len(given) == 1 else None
    if goal.reads is not None and goal.models is not None:
        graph, path = joined([models[i] for i in goal.models], goal.reads, goal.n_free), None
    graph = with_sparse_layers(graph)
    threads = max(n_workers(None), n_workers(-1)) if n_jobs is None else n_workers(n_jobs)
    with one_thread():
        run = Run(graph, goal, deadline, seed, threads, progress, path)
        if proof is None:
            return run.decided()
        if not proof.log.refused:
            run.log = proof.log
            run.go_on(proof.earlier(graph))
        return proof.written(run.decided(), run.frontier)


def _path(model: Any) -> str | None:
    return fspath(model) if isinstance(model, (str, PathLike)) else None


@dataclass(eq=False)
class Run:
    """One question on its way to an answer."""

    model: Model
    prop: Property
    deadline: Deadline
    seed: int
    threads: int
    progress: Report
    path: str | None
    turns: int = PORTFOLIO_TURNS
    log: ProofLog | None = None
    method: str = "a search"
    example: Witness | None = None
    interrupted: bool = False
    history: list[tuple[float, int, int]] = field(default_factory=list)
    tried: dict[str, None] = field(default_factory=dict)  # in the order in which it was
    open: dict[int, UnsafeSet] = field(init=False)
    _boxes: BoxSplitting | None = None
    _units: _Units | None = None
    _deductions: Deductions | None = None
    _inside: InnerSplittings | None = None
    _falsifier: Falsifier | None = None
    # Sets that are known to be out of reach by steps that a log does not have: other ways go on.
    _concluded: set[int] = field(default_factory=set)
    _concluded_at: float = 0.0
    _concluded_by: str = ""
    _searched: list[int] = field(default_factory=list)
    _refused: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open = dict(enumerate(self.prop.unsafe))
        widths = [int(np.count_nonzero(s.upper > s.lower)) for s in self.prop.unsafe]
        self.n_varying = max(widths, default=0)

    # ------------------------------------------------------------------ earlier and later runs

    def go_on(self, earlier: tuple[ProofLog, Frontier] | None) -> None:
        """Begin where an earlier run ended, if there was one."""
        if earlier is None:
            return
        self.log, frontier = earlier
        for s in self.log.proved:
            self.open.pop(s, None)
        self.progress("going on from a certificate", len(self.log.proved), len(self.prop.unsafe))
        left = {s: root for s, root in self.log.box_roots.items() if s in self.open}
        if left and len(left) == len(self.open):
            nodes = [(s, node) for s in left for node in self.log.open_boxes(s)]
            corners = np.array([frontier.boxes[node][0] for _, node in nodes])
            excess = np.array([frontier.boxes[node][1] for _, node in nodes])
            self._boxes = BoxSplitting(self.model, self.prop.unsafe, threads=self.threads)
            self._boxes.log = self.log
            owner, node = np.array(nodes, np.int64).T
            self._boxes.go_on(owner, node, corners, excess)
        if self.open and all(s in frontier.parts for s in self.open):
            self._units = _Units.of(self.model, self.open, log=self.log)
            if self._units is not None:
                self._units.go_on(frontier, self.threads)

    @property
    def frontier(self) -> Frontier:
        """What is open, for a later run."""
        made = Frontier()
        if self._boxes is not None:
            made.boxes = self._boxes.left
        if self._units is not None:
            made.parts = {s: one.left for s, one in self._units.splittings.items() if s in self.open}
        return made

    # ------------------------------------------------------------------ turns

    def decided(self) -> Verification:
        """Go through the turns until something is decided, time is over, or Ctrl-C comes."""
        if not self.open:
            return self._answer("holds", "the property's own statement: nothing is unsafe")
        try:
            self._turns()
        except KeyboardInterrupt:  # sets that were proved until then stay proved
            self.interrupted = True
        if self.example is not None and self.example.proved:
            return self._answer("violated", self.example.by)
        if self.open.keys() <= self._concluded:
            self._drop(set(self.open), self._concluded_by)
        if self.open:
            return self._answer("undecided", ", ".join(self.tried))
        return self._answer("holds", self.method)

    def _turns(self) -> None:
        if not self.deadline.passed:
            self._drop(never_below(self.model, self.open), "intervals that end at a limit", BY_ENDS)
        if self._bounds_are_cheap and not self._over:
            self._split_units(1)
        if 0 < len(self.open) <= SEARCH_FIRST_MAX_SETS:  # of thousands, bounds leave few
            self._search(SEARCH_FIRST_TURNS)
        if self.n_varying > FEW_INPUTS and self._units is None and not self._over:
            self._split_units(1)
        for turn in range(self.turns):
            if self._over:
                break
            if self.n_varying > FEW_INPUTS and (self.log is None or turn >= LOGGED_DEDUCTION_TURN):
                self._deduce(turn)
            if not self._over and self.n_varying > FEW_INPUTS:
                self._split_units(SPLIT_FIRST_PARTS << turn)
                if self.log is None or turn >= LOGGED_DEDUCTION_TURN:
                    self._cut_inside(turn)
            if not self._over and self.n_varying <= BOX_MAX_INPUTS:
                self._cut_boxes(max(self._first_boxes << turn, 2 * len(self.open)))
            if not self._over and turn and self.n_varying <= FEW_INPUTS:
                self._split_units(SPLIT_FIRST_PARTS << turn)
            if not self._over:
                self._search(2 * turn + 1)
            if self._exhausted:
                break

    @property
    def _bounds_are_cheap(self) -> bool:
        """Whether linear bounds of many inputs take less time than a search for a violation."""
        sizes = (math.prod(n.shape) for n in self.model.nodes if not isinstance(n.operation, EXACT))
        work = sum(sizes) * self.model.multiply_adds
        return self.n_varying > FEW_INPUTS and work <= LINEAR_FIRST_WORK

    @property
    def _first_boxes(self) -> int:
        """How many boxes to bound in the first turn: few of a model that costs much."""
        work = BOX_FIRST_WORK // max(1, self.model.multiply_adds)
        most = BOX_FIRST_PARTS if self.n_varying <= BOX_PREFERRED_INPUTS else SPLIT_FIRST_PARTS
        return max(1, min(most, work))

    @property
    def _over(self) -> bool:
        found = self.example is not None and self.example.proved
        return found or not self.open or self.deadline.passed or self._known_otherwise

    @property
    def _known_otherwise(self) -> bool:
        """Whether all is known, and steps that a log has did not prove it in some time more."""
        known = bool(self._concluded) and self.open.keys() <= self._concluded
        return known and self.deadline.spent > LOGGED_PATIENCE * (self._concluded_at + 1.0)

    @property
    def _exhausted(self) -> bool:
        """Whether nothing can be cut any more."""
        boxes = self.n_varying > BOX_MAX_INPUTS or (self._boxes is not None and self._boxes.stuck)
        units = self._units is not None and self._units.exhausted
        return boxes and units and (self._inside is None or self._inside.done)

    def _search(self, turns: int) -> None:
        """Go on looking for violations of the open sets."""
        self._tell("looking for a violation")
        if self._falsifier is None:
            self._searched = list(self.open)
            sets = [self.open[s] for s in self._searched]
            self._falsifier = Falsifier(self.model, sets, seed=self.seed, path=self.path)
        self._falsifier.drop(i for i, s in enumerate(self._searched) if s not in self.open)
        self._note(self._falsifier.search(turns, deadline=self.deadline), self._searched)

    def _note(self, found: Witness | None, sets: Sequence[int]) -> None:
        """Keep a witness, with the number of its set in the property."""
        if found is not None and (found.proved or self.example is None):
            self.example = replace(found, index=sets[found.index])

    def _cut_boxes(self, parts: int) -> None:
        if self._boxes is None:
            self._boxes = BoxSplitting(
                self.model,
                self.prop.unsafe,
                only=list(self.open),
                threads=self.threads,
                log=self.log,
            )
        boxes = self._boxes
        end = boxes.n_parts + parts
        while boxes.n_parts < end and not boxes.done and not boxes.stuck and not self._over:
            boxes.keep(self.open)
            boxes.round(self.deadline)
            self._try(boxes.corners)
            self._drop(set(self.open) - boxes.open_sets, "cutting boxes", BY_BOXES)
            self._tell("cutting boxes")

    def _deduce(self, turn: int) -> None:
        """Cut and conclude, where there are not too many sets; little as long as nothing comes of it."""
        if self._deductions is None:
            few = self.open if len(self.open) <= DEDUCTION_MAX_SETS else {}
            self._deductions = Deductions.of(self.model, few, self.threads)
        deductions = self._deductions
        start, all_parts = deductions.n_parts, DEDUCTION_FIRST_PARTS << turn
        while not deductions.done and not self._over:
            parts = all_parts if deductions.fruitful else DEDUCTION_IDLE_PARTS
            if deductions.n_parts >= start + parts:
                break
            deductions.round(self.open, self.deadline)
            self._try(deductions.corners)
            self._conclude(deductions.proved, "cutting and concluding")

    def _cut_inside(self, turn: int) -> None:
        """Cut ranges inside where a turn can bound some parts; little as long as nothing comes of it."""
        if self._inside is None:
            searches = [] if self._units is None else self._units.inner_searches(self.open, self.threads)
            if searches is None:
                return
            self._inside = InnerSplittings(searches)
        inside = self._inside
        start, last = inside.work, inside.n_parts + (INNER_FIRST_PARTS << turn)
        while inside.n_parts < last and not self._over:
            work = float(INNER_FIRST_WORK << turn) * (1.0 if inside.fruitful else INNER_IDLE_SHARE)
            if inside.work >= start + work or not inside.affordable(work):
                break
            inside.round(self.open, work, self.deadline)
            self._try(inside.corners)
            self._conclude(inside.proved, "cutting inside")

    def _conclude(self, proved: set[int], method: str) -> None:
        """Drop sets that are proved by steps that a log does not have; with a log others go on."""
        if self.log is None:
            self._drop(proved & set(self.open), method)
        elif new := proved & set(self.open) - self._concluded:
            self._concluded |= new
            self._concluded_at, self._concluded_by = self.deadline.spent, method
        self._tell(method)

    def _split_units(self, parts: int) -> None:
        if self._units is None:
            self._units = _Units.of(self.model, self.open, log=self.log)
            if self._units is None:
                return
        units = self._units
        end = units.n_parts + parts
        while units.n_parts < end and not units.exhausted and not self._over:
            units.round(self.open, self.deadline, self.threads)
            self._try(units.corners)
            self._drop(units.proved & set(self.open), units.method, BY_SIGNS)
            self._tell(units.method)

    def _try(self, corners: tuple[Array, Any] | None) -> None:
        """Look whether points at which bounds are attained violate the property."""
        if corners is None or not len(corners[0]):
            return
        points, owner = corners
        with np.errstate(all="ignore"):
            outputs = np.concatenate(
                [
                    self.model.evaluate(points[part]).reshape(len(points[part]), -1)
                    for part in self.model.chunks(len(points))
                ]
            )
        for s in np.unique(owner):
            unsafe = self.open.get(int(s))
            if unsafe is None:
                continue
            mine = owner == s
            with np.errstate(all="ignore"):
                values = outputs[mine] @ unsafe.rows.T - unsafe.limits
                if unsafe.input_rows is not None:
                    values = values + points[mine] @ unsafe.input_rows.T
            worst = values.max(axis=1, initial=-np.inf)
            depth = float(np.nanmin(worst, initial=np.inf))
            # A point that is hardly deeper than one that could not be proved is not looked at.
            if depth <= 0.0 and depth < 2.0 * self._refused.get(int(s), np.inf):
                self._refused[int(s)] = depth
                best = points[mine][np.nanargmin(worst)]
                found = find_violation(
                    self.model,
                    [unsafe],
                    seed=self.seed,
                    deadline=self.deadline,
                    turns=0,
                    proposals=best[None],
                    path=self.path,
                )
                self._note(found, [int(s)])
                if self._over:
                    return

    def _drop(self, proved: set[int], method: str, how: str = "") -> None:
        """Leave out sets that are proved; ``how`` is the kind of proof that the log has of them."""
        if self.log is not None:
            self.log.settle(proved, how, method)
        for s in proved:
            self.open.pop(s, None)
            self.method = method

    def _tell(self, what: str) -> None:
        self.tried[what] = None
        done = len(self.prop.unsafe) - len(self.open)
        self.progress(f"{what}: {self._n_parts:,} parts", done, len(self.prop.unsafe))
        self.history.append((self.deadline.spent, self._n_parts, len(self.open)))

    @property
    def _n_parts(self) -> int:
        parts = (self._boxes, self._units, self._deductions, self._inside)
        return sum(way.n_parts for way in parts if way is not None)

    def _answer(self, verdict: str, method: str) -> Verification:
        ways = () if self.interrupted else (self._boxes, self._units)  # a half round bounds nothing
        bounds = [way.bound for way in ways if way is not None]
        return Verification(
            verdict,
            self.prop,
            self.example,
            method,
            self._n_parts,
            len(self.open) if verdict == "undecided" else 0,
            max((-b for b in bounds), default=-np.inf) if verdict == "undecided" else np.inf,
            self.deadline.spent,
            tuple(self.history),
            interrupted=self.interrupted,
        )


@dataclass(eq=False)
class _Units:
    """Splitting ReLUs for all open sets: those on one box share the bounds inside the model."""

    model: Model
    groups: list[list[int]]
    sets: dict[int, UnsafeSet]
    balls: Balls | None = None
    log: ProofLog | None = None
    method: str = "linear bounds"
    proved: set[int] = field(default_factory=set)
    corners: tuple[Array, Any] | None = None
    bound: float = np.inf
    _roots: dict[int, RelaxedModel] = field(default_factory=dict)
    _logged: dict[int, int] = field(default_factory=dict)  # which root of the log a group has
    _stage: int = 0
    _finished_parts: int = 0
    splittings: dict[int, UnitSplitting] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Model,
        sets: dict[int, UnsafeSet],
        balls: Balls | None = None,
        log: ProofLog | None = None,
    ) -> _Units | None:
        """Return the state at the beginning; None if there are too many boxes.

        A ball holds the inputs of all sets besides their one box, if it is given.
        """
        groups: dict[bytes, list[int]] = {}
        for s, unsafe in sets.items():
            groups.setdefault(unsafe.lower.tobytes() + unsafe.upper.tobytes(), []).append(s)
        if len(groups) > SPLIT_MAX_GROUPS:
            return None
        return cls(model, list(groups.values()), dict(sets), balls, log)

    def go_on(self, frontier: Frontier, threads: int) -> None:
        """Begin with the parts that an earlier run left."""
        assert self.log is not None
        for g, group in enumerate(self.groups):
            for s in group:
                log, unsafe = self.log.signs[s], self.sets[s]
                if g not in self._roots:
                    self._logged[g] = log.root
                    self._roots[g] = restored_root(
                        self.model, unsafe.lower, unsafe.upper, self.log.roots[log.root]
                    )
                one = UnitSplitting(self._roots[g], self._goal(s), threads=threads, log=log)
                one.go_on(frontier.parts[s])
                self.splittings[s] = one
        self._stage = 3

    @property
    def n_parts(self) -> int:
        """How many parts were bounded."""
        return self._finished_parts + sum(one.n_parts for one in self.splittings.values())

    @property
    def exhausted(self) -> bool:
        """Whether every set is proved, or cannot be split any more."""
        return self._stage > 2 and all(one.done for one in self.splittings.values())

    def round(self, open_sets: dict[int, UnsafeSet], deadline: Deadline, threads: int) -> None:
        """Bound all sets by linear bounds, then by optimised ones, then split units, worst sets last."""
        self.corners, stage = None, self._stage
        if stage < 2:
            self.method = "linear bounds" if stage == 0 else "linear bounds with optimised slopes"
            for g, group in enumerate(self.groups):
                left = [s for s in group if s in open_sets and s not in self.proved]
                if left and not deadline.passed:
                    self._bounded(g, left, stage, deadline)
            self._stage += 0 if deadline.passed else 1
            return
        self.method = "splitting ReLUs"
        if stage == 2:
            for g, group in enumerate(self.groups):
                for s in group:
                    if s in open_sets and s not in self.proved:
                        self.splittings[s] = UnitSplitting(
                            self._roots[g], self._goal(s), threads=threads, log=self._sign_log(g, s)
                        )
            self._stage = 3
        points, owner = [], []
        for s in list(self.splittings):
            one = self.splittings[s]
            if s not in open_sets:
                self._finish(s)
            elif not one.done and not deadline.passed:
                one.round(deadline)
                points += one.corners
                owner += [s] * sum(map(len, one.corners))
                one.corners.clear()
                if not one.waiting and not one.stuck:
                    self.proved.add(s)
                    self._finish(s)
        self.bound = max((one.bound for one in self.splittings.values()), default=-np.inf)
        if points:
            self.corners = np.concatenate(points), np.array(owner)

    def inner_searches(
        self, open_sets: dict[int, UnsafeSet], threads: int
    ) -> list[InnerSplitting] | None:
        """Return searches inside the model for the open sets; None before bounds inside are the best."""
        if self._stage < 3:
            return None
        searches = []
        for g, group in enumerate(self.groups):
            left = {s: self._goal(s) for s in group if s in open_sets}
            if left and g in self._roots:
                searches.append(InnerSplitting(self._roots[g], left, threads))
        return [one for one in searches if one.kept]

    def _finish(self, s: int) -> None:
        self._finished_parts += self.splittings.pop(s).n_parts

    def _goal(self, s: int) -> Goal:
        return goal_of(self.sets[s], self.model.output_shape)

    def _steps_pay(self, root: RelaxedModel) -> bool:
        """Return whether gradient steps for all units of open sign are affordable."""
        ways = 4 * ROOT_INNER_STEPS * UnitSplitting(root, self._goal(self.groups[0][0])).n_units
        return ways * self.model.multiply_adds <= ROOT_MAX_WORK

    def _bounded(self, g: int, sets: Sequence[int], stage: int, deadline: Deadline) -> None:
        few = self.model.in_features <= FORWARD_MAX_INPUTS and self.log is None
        if stage and few and self._steps_pay(self._roots[g]):
            only = self._dearest(g, sets, deadline)
            tighten(self._roots[g], steps=ROOT_INNER_STEPS, only=only, deadline=deadline)
            self._tried(g, sets, self._roots[g], deadline, optimise=True)
            sets = [s for s in sets if s not in self.proved]
        if sets and not (stage and deadline.passed):
            root = self._root(g, self.sets[sets[0]], stage, deadline)
            self._tried(g, sets, root, deadline, optimise=bool(stage))

    def _tried(
        self, g: int, sets: Sequence[int], root: RelaxedModel, deadline: Deadline, *, optimise: bool
    ) -> None:
        for s in sets:
            self._finished_parts += 1
            splitting = UnitSplitting(root, self._goal(s), log=self._sign_log(g, s))
            if splitting.root_bound(deadline, optimise=optimise) < 0.0:
                self.proved.add(s)

    def _dearest(self, g: int, sets: Sequence[int], deadline: Deadline) -> dict[int, NDArray[np.bool_]]:
        """Return by tensor the units that most of what lines around units cost is due to."""
        costs: dict[int, Array] = {}
        for s in sets:
            for j, own in UnitSplitting(self._roots[g], self._goal(s)).costs(deadline).items():
                costs[j] = np.maximum(costs.get(j, 0.0), own)
        return {j: dearest(own, ROOT_INNER_SHARE)[None] for j, own in costs.items()}

    def _root(self, g: int, unsafe: UnsafeSet, stage: int, deadline: Deadline) -> RelaxedModel:
        """Return the model on the box of a group, with bounds as good as a stage makes them."""
        if self.log is not None:
            if not stage or self._steps_pay(self._roots[g]):
                steps = ROOT_INNER_STEPS if stage else 0
                self._roots[g], told = pinned_root(
                    self.model, unsafe.lower, unsafe.upper, steps=steps, deadline=deadline
                )
                self._logged[g] = len(self.log.roots)
                self.log.roots.append(told)
            return self._roots[g]
        if g not in self._roots:
            box = Interval(unsafe.lower[None], unsafe.upper[None])
            self._roots[g] = RelaxedModel.by_intervals(self.model, box, self.balls)
            if len(unsafe.lower) <= FORWARD_MAX_INPUTS:
                tighten_forwards(self._roots[g])
        root = self._roots[g]
        if not stage or self._steps_pay(root):
            tighten(root, steps=ROOT_INNER_STEPS if stage else 0, deadline=deadline)
        return root

    def _sign_log(self, g: int, s: int) -> SignLog | None:
        """Begin a tree of signs of a set, if there is a log."""
        if self.log is None:
            return None
        self.log.signs[s] = SignLog(self._logged[g])
        return self.log.signs[s]


def dearest(costs: Array, share: float) -> NDArray[np.bool_]:
    """Say which entries, the largest first, have at least this share of the sum.

    >>> dearest(np.array([1.0, 6.0, 0.0, 3.0]), 0.8)
    array([False,  True, False,  True])
    """
    order = np.argsort(-costs, kind="stable")
    total = np.cumsum(costs[order])
    chosen = np.zeros(len(costs), bool)
    chosen[order[: 1 + int(np.searchsorted(total, share * total[-1]))]] = True
    return chosen
