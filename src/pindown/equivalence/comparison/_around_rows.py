r"""Around each row of data: do two models choose the same class there, and how far are they apart?

The ball of a row is :math:`\{x : \|x - x_i\|_\infty \le r\}`, cut to the box if there is one. With the
class c of the row, the *leads* :math:`\ell_f = \min_{j \ne c} \min_x (f_c - f_j)` and :math:`\ell_g`,
and a bound G on the gap, all on the ball, no input is put into different classes by more than a margin m
if :math:`G \le m`, or

.. math::
    \ell_f > 0 \quad \text{and} \quad (-\ell_g \le m \;\text{ or }\; 2 G - \ell_f \le m),

or the same with f and g exchanged: where f chooses c, a disagreement is at most
:math:`g_j - g_c \le f_j - f_c + 2 G`. An input that shows the contrary is proved by intervals.

The methods of the table at the end follow one another, each over the rows that are open then, those of
large margins first for proofs and last for the search. The clock only ends the sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline, Stopwatch
from pindown.equivalence.comparison._joint_bounds import Joint, Labels
from pindown.equivalence.tuning import (
    MAX_ROWS_TOGETHER,
    ROW_CORNER_STEPS,
    ROW_CORNERS,
    ROW_DIFFERENCE_STEPS,
    ROW_LOOSE,
    ROW_OUTPUTS,
    ROW_SEARCH_TURNS,
    ROW_SLOPE_STEPS,
    ROW_TARGETS,
    ROW_VERIFY_MISSES,
    ROW_VERIFY_SECONDS,
    ROWS_TOGETHER_WORK,
)
from pindown.network import ReluNetwork
from pindown.progress import Report, silent
from pindown.relaxation.differential import gap_bounds
from pindown.relaxation.linear import LinearForms, largest
from pindown.relaxation.lp_balls import Balls
from pindown.rounding import add_down, add_up
from pindown.verification.falsification import Falsifier
from pindown.verification.portfolio import verify
from pindown.verification.properties import Property, UnsafeSet

Rows = NDArray[np.intp]


@dataclass(eq=False)
class RowRun:
    """What is proved around rows, and until when to go on.

    Attributes:
        joint: The two models.
        X: The rows, (n, d).
        radius: Radius of the balls.
        box: Cuts them, if there is one.
        margin: How sure both must be for classes to count as different; None: classes are not asked for.
        deadline: When to stop.
        networks: The exact normal forms of both, if they have them.
        seed: Seed of the search.
        report: Told what is being done.
        classes: The class c of each row, (n,): that of the first model.
        lead: Proved leads of c in f and in g on the balls, (2, n).
        gap_lower: The gap at ``farthest``, proved, (n,).
        gap_upper: Proved upper bounds on the gap on the balls, (n,).
        farthest: Where the largest gaps were found, (n, d).
        shown: Inputs of the balls that are put into different classes, proved, by row.
        searched: Rows whose balls a complete search found free of different classes.
        seconds: How long it took.
    """

    joint: Joint
    X: Array
    radius: float
    box: Box | None
    margin: float | None
    deadline: Deadline
    networks: tuple[ReluNetwork, ReluNetwork] | None = None
    seed: int = 0
    report: Report = silent
    classes: Labels = field(init=False)
    lead: Array = field(init=False)
    gap_lower: Array = field(init=False)
    gap_upper: Array = field(init=False)
    farthest: Array = field(init=False)
    shown: dict[int, Array] = field(default_factory=dict)
    searched: set[int] = field(default_factory=set)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        n = len(self.X)
        self.balls = Balls.around(self.X, np.full(n, self.radius), "linf", self.box)
        # Witnesses have to lie in the balls for certain.
        inner = add_up(self.X, -self.radius), add_down(self.X, self.radius)
        self.inside = tuple(np.clip(end, self.balls.lower, self.balls.upper) for end in inner)
        self.values = self.joint.values(self.X)
        self.classes = np.argmax(self.values[0], axis=1)
        self.lead = np.full((2, n), -np.inf)
        self.gap_lower, self.gap_upper = np.zeros(n), np.full(n, np.inf)
        self.farthest = self.X.copy()
        self.together = int(
            np.clip(ROWS_TOGETHER_WORK // max(1, self.joint.both.multiply_adds), 1, MAX_ROWS_TOGETHER)
        )

    # ------------------------------------------------------------------ what is known

    @property
    def proved(self) -> NDArray[np.bool_]:
        """Whether no input of a ball is put into different classes, (n,)."""
        same = np.zeros(len(self.X), bool)
        if self.margin is None:
            return same
        same[sorted(self.searched)] = True
        twice = add_up(self.gap_upper, self.gap_upper)
        for own, other in ((0, 1), (1, 0)):
            near = (-self.lead[other] <= self.margin) | (add_up(twice, -self.lead[own]) <= self.margin)
            same |= (self.lead[own] > 0.0) & near
        return same | (self.gap_upper <= self.margin)

    @property
    def open(self) -> Rows:
        """The rows about whose classes nothing is known, those with large margins first."""
        if self.margin is None:
            return np.zeros(0, np.intp)
        undecided = ~self.proved
        undecided[sorted(self.shown)] = False
        rows = np.flatnonzero(undecided)
        return rows[np.argsort(-self.margins[rows], kind="stable")]

    @property
    def margins(self) -> Array:
        """How far the class c is ahead at the rows, in the model that is less sure; float64, (n,)."""
        at = np.arange(len(self.X))
        leads = []
        for made in self.values:
            others = made.copy()
            others[at, self.classes] = -np.inf
            leads.append(made[at, self.classes] - others.max(axis=1))
        return np.minimum(*leads)

    def batches(self, rows: Rows, what: str) -> Iterator[Rows]:
        """Yield some rows at a time until there are none left, or no time."""
        for start in range(0, len(rows), self.together):
            if self.deadline.passed:
                return
            self.say(what)
            yield rows[start : start + self.together]

    def say(self, what: str) -> None:
        """Report what is being done, and what is known."""
        n, spent, left = len(self.X), self.deadline.spent, self.deadline.left
        known = f"{int(np.isfinite(self.gap_upper).sum()):,} of {n:,} gaps bounded"
        if self.margin is not None:
            known = f"{int(self.proved.sum()):,} of {n:,} proved, {len(self.shown):,} refuted"
        total = spent + left if isfinite(left) else None
        self.report(f"around rows, {what}: {known}", min(spent, total or spent), total)

    # ------------------------------------------------------------------ taking over

    def take_gap(self, rows: Rows, upper: Array) -> None:
        """Take over upper bounds on gaps."""
        self.gap_upper[rows] = np.fmin(self.gap_upper[rows], upper)

    def take_lead(self, rows: Rows, lead: Array) -> None:
        """Take over leads, (2, m)."""
        self.lead[:, rows] = np.fmax(self.lead[:, rows], lead)

    def take_points(self, rows: Rows, points: Array) -> None:
        """Take over points of the balls: their gaps, and classes that differ there for certain."""
        lower, _ = self.joint.gaps_between(points)
        better = lower > self.gap_lower[rows]
        self.gap_lower[rows[better]], self.farthest[rows[better]] = lower[better], points[better]
        if self.margin is not None:
            differ = different(self.joint, points, self.margin)
            for row, point in zip(rows[differ].tolist(), points[differ], strict=True):
                self.shown.setdefault(row, point.copy())


def different(joint: Joint, points: Array, margin: float) -> NDArray[np.bool_]:
    """Return where both models are proved to choose different classes, both surer than the margin."""
    f, g = joint.enclosed(points)
    at = np.arange(len(points))
    i, j = np.argmax(f.lower, axis=1), np.argmax(g.lower, axis=1)
    sure = i != j
    with np.errstate(invalid="ignore"):
        for own, c in ((f, i), (g, j)):
            others = own.upper.copy()
            others[at, c] = -np.inf
            sure &= own.lower[at, c] > others.max(axis=1)
        for own, c, other in ((f, i, j), (g, j, i)):
            sure &= add_down(own.lower[at, c], -own.upper[at, other]) > margin
    return sure


def look_around(run: RowRun) -> None:
    """Let one method after the other work on the rows, as long as there is something to find."""
    watch = Stopwatch()
    try:
        for method in AROUND_ROWS:
            if run.deadline.passed and not method.at_once:
                return
            if method.applies(run):
                method.work(run)
    finally:
        run.seconds = watch.seconds


# Work


def _at_rows(run: RowRun) -> None:
    """Look at the rows themselves; if the balls are points, that is all there is."""
    every = np.arange(len(run.X))
    run.take_points(every, run.X)
    if run.radius == 0.0:
        f, g = run.joint.enclosed(run.X)
        run.take_gap(every, run.joint.gaps_between(run.X)[1])
        run.take_lead(every, np.array([_lead(own, run.classes) for own in (f, g)]))


def _identical(run: RowRun) -> None:
    if run.joint.layers.equal:
        run.take_gap(np.arange(len(run.X)), np.zeros(len(run.X)))


def _lead(made: tuple[Array, Array], classes: Labels) -> Array:
    lower, upper = made
    at = np.arange(len(lower))
    others = upper.copy()
    others[at, classes] = -np.inf
    return np.asarray(add_down(lower[at, classes], -others.max(axis=1)))


def _linear_bounds(run: RowRun, rows: Rows, steps: int = 0) -> None:
    what = "linear bounds" if not steps else "optimised slopes"
    for some in run.batches(rows, what):
        lower, upper = run.balls.lower[some], run.balls.upper[some]
        relaxed = run.joint.relaxed(lower, upper, steps=steps, deadline=run.deadline)
        run.take_gap(some, run.joint.gap_upper(relaxed, deadline=run.deadline))
        if run.margin is not None:
            how = {"steps": steps, "deadline": run.deadline}
            run.take_lead(some, run.joint.leads(relaxed, run.classes[some], **how))  # type: ignore[arg-type]


def _tied_bounds(run: RowRun) -> None:
    """Bound the difference itself, units at equal places tied, and look where it would be largest."""
    for some in run.batches(_gaps_first(run), "differences of units"):
        ends = run.balls.lower[some], run.balls.upper[some]
        if run.networks is not None and _paired(run):
            upper, forms = gap_bounds(*run.networks, *ends, deadline=run.deadline)
        else:
            upper, forms = run.joint.gap_forms(*ends, deadline=run.deadline)
        run.take_gap(some, upper)
        _from_corners(run, some, forms)


def _from_corners(run: RowRun, some: Rows, forms: LinearForms) -> None:
    """Go uphill from the corners where the largest linear bounds on the gap are attained."""
    lower, upper = (end[some] for end in run.inside)
    chosen = np.argsort(-largest(forms, lower, upper), axis=1)[:, :ROW_CORNERS]
    slope = np.take_along_axis(forms.weight, chosen[:, :, None], axis=1)
    n, q, d = slope.shape
    low, high = (np.repeat(end[:, None], q, axis=1).reshape(n * q, d) for end in (lower, upper))
    corners = np.where(slope.reshape(n * q, d) > 0, high, low)
    points = run.joint.ascended(corners, low, high, run.deadline)
    best = np.argmax(run.joint.gaps(points).reshape(n, q), axis=1)
    run.take_points(some, points.reshape(n, q, d)[np.arange(n), best])


def _every_output_uphill(run: RowRun) -> None:
    """Lead every output uphill, and downhill, where the bound is far above what was found."""
    signs = np.concatenate([np.eye(run.joint.k), -np.eye(run.joint.k)])
    q = len(signs)
    for some in run.batches(_loose(run), "looking for larger gaps of every output"):
        n = len(some)
        low, high, start = (np.repeat(part[some], q, axis=0) for part in (*run.inside, run.X))
        start = np.clip(start, low, high)
        points = run.joint.ascended(start, low, high, run.deadline, np.tile(signs, (n, 1)))
        best = np.argmax(run.joint.gaps(points).reshape(n, q), axis=1)
        run.take_points(some, points.reshape(n, q, -1)[np.arange(n), best])


def _bounds_by_corners(run: RowRun) -> None:
    """Bound inner units anew by planes exact at corners where the bound is far above what was found."""
    for some in run.batches(_loose(run), "planes at corners"):
        assert run.networks is not None
        ends = run.balls.lower[some], run.balls.upper[some]
        upper, _ = gap_bounds(*run.networks, *ends, corners=ROW_CORNER_STEPS, deadline=run.deadline)
        run.take_gap(some, upper)


def _optimised_differences(run: RowRun) -> None:
    """Choose slopes and planes anew where the bound is far above what was found."""
    for some in run.batches(_loose(run), "optimised differences"):
        ends = run.balls.lower[some], run.balls.upper[some]
        upper = run.joint.tied_gap(*ends, steps=ROW_DIFFERENCE_STEPS, deadline=run.deadline)
        run.take_gap(some, upper)


def _loose(run: RowRun) -> Rows:
    """Return the rows whose bound on the gap is far above what was found."""
    rows = _gaps_first(run)
    return rows[run.gap_upper[rows] > ROW_LOOSE * run.gap_lower[rows]]


def _gaps_first(run: RowRun) -> Rows:
    """Return the rows, those whose gap is worth bounding: open ones first, then by their margins."""
    every = np.argsort(-run.margins, kind="stable")
    return np.concatenate([run.open, every[~np.isin(every, run.open)]])


def _ascend(run: RowRun) -> None:
    lower, upper = run.inside
    for some in run.batches(np.arange(len(run.X)), "looking for larger gaps"):
        start = np.clip(run.X[some], lower[some], upper[some])
        run.take_points(some, run.joint.ascended(start, lower[some], upper[some], run.deadline))


def _search(run: RowRun) -> None:
    """Look for inputs that are put into different classes; the least sure rows first."""
    for some in run.batches(run.open[::-1], "looking for other classes"):
        sets, groups = [], []
        for row in some.tolist():
            own = _disagreements(run, row, few=True)
            sets += own
            groups += [row] * len(own)
        found = Falsifier(run.joint.both, sets, seed=run.seed, groups=groups).violations(
            ROW_SEARCH_TURNS, deadline=run.deadline
        )
        rows = np.array(sorted(found), dtype=np.intp)
        if len(rows):
            run.take_points(rows, np.array([found[row] for row in rows.tolist()]))


def _complete_search(run: RowRun) -> None:
    """Decide rows one by one, each with a few seconds, those of large margins first.

    After some in a row that could not be decided, those that are less sure are left open.
    """
    d, k, misses = run.X.shape[1], run.joint.k, 0
    every = np.arange(d)
    for row in run.open.tolist():
        if run.deadline.passed or misses == ROW_VERIFY_MISSES:
            return
        run.say("complete search")
        sets = tuple(_disagreements(run, row, few=False))
        prop = Property(sets, (d, d), (k, k), (every, every), (0, 1))
        slot = run.deadline.within(ROW_VERIFY_SECONDS).left
        answer = verify((run.joint.first, run.joint.second), prop, budget=slot)
        misses = misses + 1 if answer.verdict == "undecided" else 0
        if answer.verdict == "holds":
            run.searched.add(row)
        elif answer.verdict == "violated" and answer.witness is not None:
            run.take_points(np.array([row]), answer.witness[None])


def _disagreements(run: RowRun, row: int, *, few: bool) -> list[UnsafeSet]:
    """Return the sets of inputs of a ball where f chooses one class and g another.

    Args:
        run: The run.
        row: Which ball.
        few: Whether only the classes nearest to that of the row are looked at, to search; else all, to
            prove.
    """
    k, c, margin = run.joint.k, int(run.classes[row]), run.margin
    assert margin is not None
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
    if few:
        ends = run.inside[0][row], run.inside[1][row]
        closeness = run.values[0][row] + run.values[1][row]
        near = [j for j in np.argsort(-closeness, kind="stable").tolist() if j != c][:ROW_TARGETS]
        second = int(np.argmax(run.values[1][row]))
        pairs = [pair for j in near for pair in ((c, j), (j, c))]
        pairs += [(c, second)] if second != c and second not in near else []
    else:
        ends = run.balls.lower[row], run.balls.upper[row]
        for own, side in ((run.lead[0, row], 0), (run.lead[1, row], 1)):
            pairs = [pair for pair in pairs if own <= 0.0 or pair[side] == c]
    return [_disagreement(*ends, i, j, k, margin) for i, j in pairs]


def _disagreement(lower: Array, upper: Array, i: int, j: int, k: int, margin: float) -> UnsafeSet:
    """Return where f chooses i, g chooses j, and both are surer of it than the margin."""
    rows, limits = [], []
    for own, best, other in ((0, i, j), (k, j, i)):
        for c in range(k):
            if c != best:
                row = np.zeros(2 * k)
                row[own + c], row[own + best] = 1.0, -1.0
                rows.append(row)
                limits.append(-margin if c == other else 0.0)
    strict = np.array([limit == -margin for limit in limits])
    return UnsafeSet(lower, upper, np.array(rows), np.array(limits), strict=strict)


# The table


class RowMethod(NamedTuple):
    """One way to learn something about rows.

    Attributes:
        name: What it is called.
        applies: Whether it can say something.
        work: Does it, batch by batch, until the deadline.
        at_once: Whether it is done even if there is no time at all.
    """

    name: str
    applies: Callable[[RowRun], bool]
    work: Callable[[RowRun], None]
    at_once: bool = False


def _asked(run: RowRun) -> bool:
    return run.margin is not None and run.radius > 0.0 and len(run.open) > 0


def _wide(run: RowRun) -> bool:
    return run.radius > 0.0


def _paired(run: RowRun) -> bool:
    return run.networks is not None and run.networks[0].widths == run.networks[1].widths


def _tied(run: RowRun) -> bool:
    return _wide(run) and (_paired(run) or run.joint.tied is not None)


def _dense(run: RowRun) -> bool:
    return _wide(run) and _paired(run)


def _few_outputs(run: RowRun) -> bool:
    return _wide(run) and run.joint.k <= ROW_OUTPUTS


def _one_structure(run: RowRun) -> bool:
    return _wide(run) and run.joint.tied is not None


AROUND_ROWS = (
    RowMethod("the rows themselves", lambda run: True, _at_rows, at_once=True),
    RowMethod("equal graphs", lambda run: True, _identical, at_once=True),
    RowMethod("linear bounds", _asked, lambda run: _linear_bounds(run, run.open)),
    RowMethod("search", _asked, _search),
    RowMethod("ascent", _wide, _ascend),
    RowMethod("differences of units", _tied, _tied_bounds),
    RowMethod(
        "linear bounds on gaps",
        _wide,
        lambda run: _linear_bounds(run, np.flatnonzero(np.isinf(run.gap_upper))),
    ),
    RowMethod("optimised slopes", _asked, lambda run: _linear_bounds(run, run.open, ROW_SLOPE_STEPS)),
    RowMethod("complete search", _asked, _complete_search),
    RowMethod("every output uphill", _few_outputs, _every_output_uphill),
    RowMethod("planes at corners", _dense, _bounds_by_corners),
    RowMethod("optimised differences", _one_structure, _optimised_differences),
)
