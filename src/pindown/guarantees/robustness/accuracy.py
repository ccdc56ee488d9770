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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.geometry.box import Box
from pindown.guarantees.robustness.bar import watched
from pindown.guarantees.robustness.certificates import certified
from pindown.guarantees.robustness.classes import as_classes, classifier, predicted
from pindown.guarantees.robustness.inputs import BoxLike, as_inputs, as_radii, as_seconds
from pindown.guarantees.robustness.norms import Norm, as_norm
from pindown.guarantees.robustness.projected_gradient import gradient_attack
from pindown.network import ReluNetwork
from pindown.parallel import each

_BLOCK = 64  # inputs between two looks at the clock
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
        kind: ``"exact"``: both ends are proved (the upper one by inputs that are wrong in float64).
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
    n_jobs: int = 1,
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
        n_jobs: Threads.
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
    end = time.monotonic() + as_seconds(budget)
    run = _Run(deep, inputs, labels, kind, limits, optimise, n_jobs, seed, end)
    safe, broken, complete = run.curve(ascending, verbose)
    return CertifiedAccuracy(
        ascending,
        np.array([float(np.mean(safe >= radius)) for radius in ascending]),
        np.array([float(np.mean(broken > radius)) for radius in ascending]),
        safe,
        broken,
        kind,
        complete,
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """One curve: what does not change from radius to radius."""

    net: ReluNetwork
    X: Array
    y: NDArray[np.intp]
    norm: Norm
    box: Box | None
    optimise: bool
    n_jobs: int
    seed: int
    end: float

    def curve(self, radii: Array, verbose: int) -> tuple[Array, Array, bool]:
        """Return the certified and the attacked radius of each input, and whether time sufficed."""
        n = len(self.X)
        safe, broken = np.full(n, -1.0), np.full(n, inf)
        broken[predicted(self.net, self.X) != self.y] = 0.0
        failed = np.full(n, inf)  # the least radius without a proof: none is to be expected beyond
        blocks = [np.arange(n)[start : start + _BLOCK] for start in range(0, n, _BLOCK)]
        work = [(radius, block) for radius in radii for block in blocks]
        tasks = each(
            lambda item: self._decide(*item, safe, broken, failed),
            work,
            n_jobs=self.n_jobs,
            threads=True,
        )
        complete = True
        try:
            for _, decided in watched(tasks, len(work), "certifying", verbose):
                complete &= decided
        except KeyboardInterrupt:  # what was finished stays
            complete = False
        return safe, broken, complete

    def _decide(
        self,
        radius: float,
        block: NDArray[np.intp],
        safe: Array,
        broken: Array,
        failed: Array,
    ) -> bool:
        """Attack and certify a block of inputs at a radius; return whether there was time for it."""
        now = time.monotonic()
        if now > self.end:
            return False
        hard = now + _ATTACK_SHARE * (self.end - now)
        open_rows = block[broken[block] > radius]  # threads may take the radii in any order
        if radius == 0.0:
            safe[open_rows] = np.maximum(safe[open_rows], 0.0)
            return True
        if not len(open_rows):
            return True
        attack = gradient_attack(
            self.net, self.X[open_rows], self.y[open_rows], radius=radius, norm=self.norm,
            box=self.box, seed=self.seed, deadline=hard,
        )  # fmt: skip
        hit = open_rows[attack.success]
        broken[hit] = np.minimum(broken[hit], radius)
        open_rows = open_rows[~attack.success]
        rows = open_rows[failed[open_rows] > radius]
        proved = certified(
            self.net, self.X[rows], self.y[rows], radius=radius, norm=self.norm, box=self.box,
            method="optimised" if self.optimise else "linear", deadline=self.end,
        )  # fmt: skip
        safe[rows[proved]] = np.maximum(safe[rows[proved]], radius)
        failed[rows[~proved]] = np.minimum(failed[rows[~proved]], radius)
        return time.monotonic() <= self.end


def certified_radii(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    box: BoxLike = None,
    largest: float = 1.0,
    steps: int = 8,
    deadline: float = inf,
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
        if time.monotonic() > deadline:
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
