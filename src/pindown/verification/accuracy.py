r"""Certified accuracy: on how much of a data set no small change can make the network wrong.

At radius :math:`\epsilon`, with every input either proved safe, attacked, or neither,

.. math::
    \frac{\#\{\text{proved}\}}{n} \;\le\;
    \frac{\#\{i : f \text{ gives } y_i \text{ on the whole ball around } x_i\}}{n}
    \;\le\; 1 - \frac{\#\{\text{attacked}\}}{n} .
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.network import ReluNetwork
from pindown.parallel import each
from pindown.progress import watched
from pindown.relaxation.lp_norms import Norm, as_norm
from pindown.verification.certificates import certified
from pindown.verification.classes import as_classes, classifier, predicted
from pindown.verification.distance_state import Problem, distance_up
from pindown.verification.inputs import BoxLike, as_inputs, as_radii, as_seconds
from pindown.verification.projected_gradient import gradient_attack

_BLOCK = 64  # inputs between two looks at the clock
_WITHIN = 1.0 - 1e-10  # of a radius: so that rounding leads no attack out of the ball
_ATTACK_SHARE = 0.25  # of the time left, for attacks


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
    kind: str = "exact"

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
    end = time.time() + as_seconds(budget)
    run = _Run(deep, inputs, labels, kind, limits, optimise, seed, end)
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
    end: float  # a time of day, which other machines know as well

    def decide(self, task: _Task) -> _Decided:
        """Attack and certify some inputs at a radius."""
        radius, rows, hopeful = task
        attacked, proved = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        now, left = time.monotonic(), self.end - time.time()
        if left < 0 or not len(rows):
            return _Decided(attacked, proved, left >= 0)
        if radius == 0.0:
            return _Decided(attacked, ~proved, True)
        attack = gradient_attack(
            self.net, self.X[rows], self.y[rows], radius=_WITHIN * radius, norm=self.norm,
            box=self.box, seed=self.seed, deadline=now + _ATTACK_SHARE * left,
        )  # fmt: skip
        attacked[:] = attack.success
        for i in np.flatnonzero(attacked):
            attacked[i] = self._is_witness(rows[i], attack.X[i], radius)
        worth = np.flatnonzero(hopeful & ~attacked)
        proved[worth] = certified(
            self.net, self.X[rows[worth]], self.y[rows[worth]], radius=radius, norm=self.norm,
            box=self.box, method="optimised" if self.optimise else "linear", deadline=now + left,
        )  # fmt: skip
        return _Decided(attacked, proved, time.time() <= self.end)

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
    blocks = [np.arange(n)[start : start + _BLOCK] for start in range(0, n, _BLOCK)]

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
