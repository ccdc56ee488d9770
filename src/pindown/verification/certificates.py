r"""Certificates: is the class the same on a whole ball? Proved yes, or not known.

Margins are bounded by linear relaxation, with optimised slopes where that does not suffice
(:mod:`~pindown.relaxation.optimised_slopes`). Bisection gives certified radii. On a data set, at radius
:math:`\epsilon`, with every input either proved safe, attacked, or neither,

.. math::
    \frac{\#\{\text{proved}\}}{n} \;\le\;
    \frac{\#\{i : f \text{ gives } y_i \text{ on the whole ball around } x_i\}}{n}
    \;\le\; 1 - \frac{\#\{\text{attacked}\}}{n} .

Zhang et al. 2018, "Efficient neural network robustness certification with general activation
functions" (CROWN); Xu et al. 2021, "Fast and complete" (optimised slopes).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.evidence import Kind
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.parallel import each
from pindown.progress import watched
from pindown.relaxation.linear_on_balls import (
    balls_at_once,
    interval_margins,
)
from pindown.relaxation.lp_balls import Balls, Norm, as_norm
from pindown.relaxation.optimised_slopes import (
    margin_bounds,
)
from pindown.verification.classes import (
    BoxLike,
    as_classes,
    as_inputs,
    as_radii,
    classifier,
    margin_rows,
    predicted,
)
from pindown.verification.counterexamples import gradient_attack
from pindown.verification.distance_problem import Problem, distance_up
from pindown.verification.tuning import (
    ACCURACY_ATTACK_SHARE,
    ACCURACY_BLOCK_INPUTS,
    ACCURACY_QUICK_ATTACK,
    ACCURACY_STRONG_ATTACK,
    MIN_BALLS_TOGETHER,
)

_WITHIN = 1.0 - 1e-10  # of a radius: so that rounding leads no attack out of the ball


@on_network
def certified(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    radius: ArrayLike,
    norm: str = "linf",
    box: BoxLike = None,
    method: str = "linear",
    deadline: Deadline = NEVER,
) -> NDArray[np.bool_]:
    """Return for each input whether its class is proved to be y on the whole ball around it, (n,).

    Args:
        net: The network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        radius: Radius of the balls, for all inputs or for each, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        box: Where inputs lie, if not anywhere: balls are cut to it. X must lie in it.
        method: ``"interval"``, ``"linear"``, or ``"optimised"`` (linear with optimised slopes).
        deadline: When to stop; what is not decided then is False.

    Returns:
        True is a proof, also for rounded arithmetic; False only means that none was found. A tie
        with another output is no proof.

    Raises:
        ValueError: If shapes, labels, radius, norm, method or box do not fit.

    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> certified(net, [[3.0, 4.0]], radius=2.857), certified(net, [[3.0, 4.0]], radius=2.858)
    (array([ True]), array([False]))

    Zhang et al. 2018, section 3; Xu et al. 2021.
    """
    if method not in ("interval", "linear", "optimised"):
        raise ValueError(f"method must be 'interval', 'linear' or 'optimised'; got {method!r}.")
    deep = classifier(net)
    inputs, limits = as_inputs(deep, X, box)
    labels = predicted(deep, inputs) if y is None else as_classes(y, len(inputs), deep.out_features)
    balls = Balls.around(inputs, as_radii(radius, len(inputs)), as_norm(norm), limits)
    found = np.zeros(len(inputs), bool)
    step = max(balls_at_once(deep), MIN_BALLS_TOGETHER)
    for start in range(0, len(inputs), step):
        if deadline.passed:
            break
        part = slice(start, start + step)
        rows = margin_rows(labels[part], deep.out_features)
        if method == "interval":
            upper = interval_margins(deep, balls.take(part), rows)
        else:
            improve = method == "optimised"
            upper = margin_bounds(deep, balls.take(part), rows, improve=improve, deadline=deadline)
        found[part] = (upper < 0.0).all(axis=1)
    return found


@on_network
def certified_radii(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    box: BoxLike = None,
    largest: float = 1.0,
    steps: int = 8,
    deadline: Deadline = NEVER,
) -> Array:
    """Return for each input a radius within which its class is proved not to change, (n,).

    Found by bisection between 0 and ``largest``; 0 for inputs that are wrong already. A larger radius
    may be safe, too.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])
    >>> certified_radii(net, [[0.75], [3.0]], largest=1.0)
    array([0.74609375, 1.        ])

    Zhang et al. 2018, section 4.
    """
    deep = classifier(net)
    inputs, limits = as_inputs(deep, X, box)
    labels = predicted(deep, inputs) if y is None else as_classes(y, len(inputs), deep.out_features)
    top = float(as_radii(largest, 1)[0])
    proved, failed = np.zeros(len(inputs)), np.full(len(inputs), np.nan)
    for radii in _guesses(proved, failed, top, steps):
        if deadline.passed:
            break
        ok = certified(deep, inputs, labels, radius=radii, norm=norm, box=limits, deadline=deadline)
        proved[:] = np.where(ok, np.maximum(proved, radii), proved)
        failed[:] = np.where(ok, failed, np.fmin(failed, radii))
    return proved


def _guesses(proved: Array, failed: Array, top: float, steps: int) -> Iterator[Array]:
    """Yield radii to try: the largest, then the middle between what was proved and what was not."""
    yield np.full(len(proved), top)
    for _ in range(steps):
        yield np.where(np.isnan(failed), top, 0.5 * (proved + np.nan_to_num(failed)))


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAccuracy:
    """Accuracy under all changes of a length, enclosed at several radii.

    Attributes:
        radii: Ascending, (m,).
        lower: Share of inputs proved right on the whole ball, (m,).
        upper: Share of inputs on which no attack succeeded, (m,).
        certified_radius: Of each input the largest of the radii at which it is proved; -1: none, (n,).
        attacked_radius: The smallest at which it is wrong or was attacked; infinite: none, (n,).
        norm: In which lengths are measured.
        complete: Whether the budget sufficed.
        kind: ``"exact"``: both ends are proved for the real-number network, the upper one by inputs that
            are surely wrong; at radius 0 the class is the one that float64 gives.
    """

    radii: Array
    lower: Array
    upper: Array
    certified_radius: Array
    attacked_radius: Array
    norm: Norm
    complete: bool
    kind: Kind = "exact"

    @property
    def undecided(self) -> Array:
        """Share of inputs that are neither proved nor attacked, (m,)."""
        return self.upper - self.lower

    def __repr__(self) -> str:
        rows = [
            f"{low:.1%} to {high:.1%} at {radius:.4g}"
            for radius, low, high in zip(self.radii, self.lower, self.upper, strict=True)
        ]
        shown = "; ".join(rows if len(rows) <= 4 else [*rows[:2], "...", rows[-1]])
        end = "" if self.complete else ", time ran out"
        return f"CertifiedAccuracy({len(self.certified_radius):,} inputs, {self.norm}: {shown}{end})"


@on_network
def certified_accuracy(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike,
    radii: ArrayLike,
    *,
    norm: str = "linf",
    box: BoxLike = None,
    budget: float = inf,
    optimise: bool = True,
    n_jobs: int | None = None,
    seed: int = 0,
    verbose: int = 1,
) -> CertifiedAccuracy:
    """Enclose the accuracy under all input changes of given lengths.

    Args:
        net: The network; one output means two classes by its sign.
        X: Inputs (n, d).
        y: Their true classes, (n,).
        radii: Lengths of changes, any order; 0 gives the plain accuracy.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        box: Where inputs lie, such as ``(0, 1)`` for images: balls are cut to it.
        budget: Seconds; what is not decided then counts as undecided.
        optimise: Whether to optimise slopes where plain linear bounds do not suffice.
        n_jobs: Workers, -1 for all cores; None: as an enclosing ``pindown.parallel.workers`` says,
            else one. What comes out does not depend on it, unless time runs out.
        seed: Of the attacks.
        verbose: 0 shows no progress bar.

    Returns:
        The two ends of the curve and what is known about each input.

    Raises:
        ValueError: If X is empty, or shapes, labels, radii, norm or box do not fit.

    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])  # the class is the sign
    >>> certified_accuracy(net, [[1.0], [3.0]], [1, 1], [0.5, 2.0])
    CertifiedAccuracy(2 inputs, linf: 100.0% to 100.0% at 0.5; 50.0% to 50.0% at 2)

    Zhang et al. 2018 (certificates); Madry et al. 2018 (attacks).
    """
    deep, kind = classifier(net), as_norm(norm)
    inputs, limits = as_inputs(deep, X, box)
    if not len(inputs):
        raise ValueError("X is empty; give at least one input.")
    labels = as_classes(y, len(inputs), deep.out_features)
    ascending = np.unique(as_radii(radii, np.size(radii)))
    if not len(ascending):
        raise ValueError("radii is empty; give at least one radius.")
    deadline = Deadline.of(budget)
    run = _Run(deep, inputs, labels, kind, limits, optimise, seed, deadline)
    safe, broken, complete = _curve(run, ascending, n_jobs, verbose)
    return CertifiedAccuracy(
        ascending,
        np.array([float(np.mean(safe >= radius)) for radius in ascending]),
        np.array([float(np.mean(broken > radius)) for radius in ascending]),
        safe,
        broken,
        kind,
        complete,
    )


class _Task(NamedTuple):
    """Inputs at a radius that are neither wrong nor attacked there; which of them may be proved."""

    radius: float
    rows: NDArray[np.intp]
    hopeful: NDArray[np.bool_]


class _Decided(NamedTuple):
    """Which rows of a task were attacked, which proved, and whether there was time for it."""

    attacked: NDArray[np.bool_]
    proved: NDArray[np.bool_]
    complete: bool


@dataclass(frozen=True, eq=False)
class _Run:
    """What does not change from radius to radius: sent once to each worker."""

    net: ReluNetwork
    X: Array
    y: NDArray[np.intp]
    norm: Norm
    box: Box | None
    optimise: bool
    seed: int
    deadline: Deadline

    def decide(self, task: _Task) -> _Decided:
        """Attack and certify some inputs at a radius."""
        radius, rows, hopeful = task
        attacked, proved = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        late = self.deadline.passed
        if late or not len(rows):
            return _Decided(attacked, proved, not late)
        if radius == 0.0:
            return _Decided(attacked, ~proved, True)
        # Cheap ways first: most inputs are decided by them.
        attacked |= self._attacked(rows, radius, ACCURACY_QUICK_ATTACK)
        worth = np.flatnonzero(hopeful & ~attacked)
        proved[worth] = self._proved(rows[worth], radius, "linear")
        left = np.flatnonzero(~attacked & ~proved)
        attacked[left] = self._attacked(rows[left], radius, ACCURACY_STRONG_ATTACK)
        worth = np.flatnonzero(hopeful & ~attacked & ~proved)
        if self.optimise:
            proved[worth] = self._proved(rows[worth], radius, "optimised")
        return _Decided(attacked, proved, not self.deadline.passed)

    def _proved(self, rows: NDArray[np.intp], radius: float, method: str) -> NDArray[np.bool_]:
        return certified(
            self.net, self.X[rows], self.y[rows], radius=radius, norm=self.norm, box=self.box,
            method=method, deadline=self.deadline,
        )  # fmt: skip

    def _attacked(
        self, rows: NDArray[np.intp], radius: float, effort: tuple[int, int]
    ) -> NDArray[np.bool_]:
        """Return which inputs have a changed input that is surely wrong; effort: restarts, steps."""
        restarts, steps = effort
        attack = gradient_attack(
            self.net, self.X[rows], self.y[rows], radius=_WITHIN * radius, norm=self.norm,
            restarts=restarts, steps=steps, box=self.box, seed=self.seed,
            deadline=self.deadline.share(ACCURACY_ATTACK_SHARE),
        )  # fmt: skip
        found = attack.success.copy()
        for i in np.flatnonzero(found):
            found[i] = self._is_witness(rows[i], attack.X[i], radius)
        return found

    def _is_witness(self, row: int, point: Array, radius: float) -> bool:
        """Return whether a changed input is surely wrong and surely within the radius."""
        problem = Problem(self.net, self.X[row], int(self.y[row]), self.norm, self.box)
        near = distance_up(point, problem.x, self.norm) <= radius
        return near and bool(problem.changed(point[None])[0])


def _curve(run: _Run, radii: Array, n_jobs: int | None, verbose: int) -> tuple[Array, Array, bool]:
    """Return the certified and the attacked radius of each input, and whether time sufficed."""
    n = len(run.X)
    safe, broken = np.full(n, -1.0), np.full(n, inf)
    broken[predicted(run.net, run.X) != run.y] = 0.0
    failed = np.full(n, inf)  # the least radius without a proof: none is to be expected beyond
    blocks = [
        np.arange(n)[start : start + ACCURACY_BLOCK_INPUTS]
        for start in range(0, n, ACCURACY_BLOCK_INPUTS)
    ]

    def decided() -> Iterator[tuple[_Task, _Decided]]:
        for radius in radii:  # what is decided at one is left out at the next
            kept = [block[broken[block] > radius] for block in blocks]
            tasks = [_Task(float(radius), rows, failed[rows] > radius) for rows in kept]
            for index, result in each(run.decide, tasks, n_jobs=n_jobs):
                yield tasks[index], result

    complete = True
    try:
        n_tasks = len(radii) * len(blocks)
        for task, found in watched(decided(), "certifying", total=n_tasks, verbose=verbose):
            complete &= found.complete
            broken[task.rows[found.attacked]] = task.radius
            safe[task.rows[found.proved]] = task.radius
            failed[task.rows[task.hopeful & ~found.attacked & ~found.proved]] = task.radius
    except KeyboardInterrupt:  # what was finished stays
        complete = False
    return safe, broken, complete
