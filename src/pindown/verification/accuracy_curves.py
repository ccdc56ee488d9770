r"""Certified accuracy: on how many inputs is the class right, whatever is changed within a radius?

At radius :math:`\epsilon`, with every input either proved safe, attacked, or neither,

.. math::
    \frac{\#\{\text{proved}\}}{n} \;\le\;
    \frac{\#\{i : f \text{ gives } y_i \text{ on the whole ball around } x_i\}}{n}
    \;\le\; 1 - \frac{\#\{\text{attacked}\}}{n} .

Quick ways come first, for all inputs: attacks, and linear bounds of many balls at once. Inputs that
neither decides go to the complete search (:mod:`~pindown.verification.ball_proofs`), those that are
nearest to a proof first: all of them for one turn, then those that are left for more.

Zhang et al. 2018, "Efficient neural network robustness certification with general activation
functions" (CROWN); Wang et al. 2021, "Beta-CROWN" (splits).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.evidence import Kind
from pindown.io.any_model import AnyModel
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.parallel import each
from pindown.progress import watched
from pindown.relaxation.lp_balls import Balls, Norm, as_norm
from pindown.verification.accuracy_certificates import write_accuracy
from pindown.verification.ball_proofs import (
    Ball,
    bounded_form,
    decide,
    engine_form,
    quick_margins,
    surely_other,
    together,
)
from pindown.verification.certificate_files import require_files
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
from pindown.verification.questions import Written
from pindown.verification.tuning import (
    ACCURACY_ATTACK_SHARE,
    ACCURACY_BLOCK_INPUTS,
    ACCURACY_QUICK_ATTACK,
    ACCURACY_STRONG_ATTACK,
    ACCURACY_TURNS,
)

_WITHIN = 1.0 - 1e-10  # of a radius: so that rounding leads no attack out of the ball


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAccuracy:
    """Accuracy under all changes of a length, enclosed at several radii.

    Attributes:
        radii: Ascending, (m,).
        lower: Share of inputs proved right on the whole ball, (m,).
        upper: Share of inputs on which no attack succeeded, (m,).
        certified_radius: For each input the largest of the radii at which it is proved; -1: none, (n,).
        attacked_radius: The smallest at which it is wrong or was attacked; infinite: none, (n,).
        norm: In which lengths are measured.
        complete: Whether the budget sufficed.
        certificate: The file that a proof was written to; empty if none was.
        certificate_note: Why none was written although it was asked for, or what it does not prove.
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
    certificate: str = ""
    certificate_note: str = ""
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


def certified_accuracy(
    net: AnyModel,
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
    certificate: str | PathLike[str] | None = None,
) -> CertifiedAccuracy:
    """Enclose the accuracy under all input changes of given lengths.

    Args:
        net: The network or model; one output means two classes by its sign.
        X: Inputs (n, d).
        y: Their true classes, (n,).
        radii: Lengths of changes, any order; 0 gives the plain accuracy.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        box: Where inputs lie, such as ``(0, 1)`` for images: balls are cut to it.
        budget: Seconds; what is not decided then counts as undecided.
        optimise: Whether to go on where plain linear bounds and attacks decide nothing: with optimised
            slopes, then by splitting ReLUs, seconds for each input and radius.
        n_jobs: Workers, -1 for all cores; None: as an enclosing ``pindown.parallel.workers`` says,
            else one. What comes out does not depend on it, unless time runs out.
        seed: Seed of the attacks.
        verbose: 0 shows no progress bar.
        certificate: Where to write a proof that ``checker/pindown_check.py`` checks; the model must be
            given as the path of an ONNX file, and the norm be ``"linf"``. Balls are then proved once
            more, by steps that a certificate has, in half of the budget; ``certificate_note`` says what
            was not.

    Returns:
        The two ends of the curve and what is known about each input.

    Raises:
        ValueError: If X is empty, or shapes, labels, radii, norm or box do not fit, or a certificate is
            asked for and the model is no ONNX file.
        CertificateError: If the certificate's path holds something else.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])  # the class is the sign
    >>> certified_accuracy(net, [[1.0], [3.0]], [1, 1], [0.5, 2.0])
    CertifiedAccuracy(2 inputs, linf: 100.0% to 100.0% at 0.5; 50.0% to 50.0% at 2)

    Zhang et al. 2018 and Wang et al. 2021 (certificates); Madry et al. 2018 (attacks).
    """
    whole = deadline = Deadline.of(budget)
    if certificate is not None:
        require_files((net,), certificate)
        deadline = whole.share(0.5)
    deep, kind = classifier(bounded_form(net, "certified_accuracy")), as_norm(norm)
    inputs, limits = as_inputs(deep, X, box)
    if not len(inputs):
        raise ValueError("X is empty; give at least one input.")
    labels = as_classes(y, len(inputs), deep.out_features)
    ascending = np.unique(as_radii(radii, np.size(radii)))
    if not len(ascending):
        raise ValueError("radii is empty; give at least one radius.")
    run = _Run(deep, inputs, labels, kind, limits, optimise, seed, deadline)
    safe, broken, complete = _Curve(run, ascending, n_jobs, verbose).decided()
    written = Written()
    if certificate is not None:
        if kind == "linf":
            reached = run.reached(broken, whole)
            given = inputs, labels, limits, safe, reached
            written = write_accuracy(certificate, net, *given, whole)
        else:
            written = Written("", f"no certificate was written: balls of {kind} are no boxes")
    return CertifiedAccuracy(
        ascending,
        np.array([float(np.mean(safe >= radius)) for radius in ascending]),
        np.array([float(np.mean(broken > radius)) for radius in ascending]),
        safe,
        broken,
        kind,
        complete,
        written.file,
        written.note,
    )


class _Task(NamedTuple):
    """Inputs at a radius that are neither wrong nor attacked there; which of them may be proved."""

    radius: float
    rows: NDArray[np.intp]
    hopeful: NDArray[np.bool_]


class _Decided(NamedTuple):
    """What became of a task.

    Attributes:
        attacked: Which rows have an input of another class in their ball.
        proved: Which surely have none.
        bound: For each row the least margin that is proved: larger ones promise more.
        complete: Whether there was time for it.
    """

    attacked: NDArray[np.bool_]
    proved: NDArray[np.bool_]
    bound: Array
    complete: bool


class _Deep(NamedTuple):
    """One row at a radius, and how many turns the complete search takes."""

    radius: float
    row: int
    turns: int


@dataclass(eq=False)
class _Run:
    """What does not change from radius to radius: sent once to each worker."""

    net: ReluNetwork | Model
    X: Array
    y: NDArray[np.intp]
    norm: Norm
    box: Box | None
    optimise: bool
    seed: int
    deadline: Deadline

    @cached_property
    def model(self) -> Model:
        """What the complete search works on."""
        return engine_form(self.net)

    def quickly(self, task: _Task) -> _Decided:
        """Attack some inputs at a radius, and certify them by linear bounds."""
        radius, rows, hopeful = task
        attacked, proved = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        bound = np.full(len(rows), -inf)
        late = self.deadline.passed
        if late or not len(rows):
            return _Decided(attacked, proved, bound, not late)
        if radius == 0.0:
            return _Decided(attacked, ~proved, bound, True)
        # Cheap ways first: most inputs are decided by them.
        attacked |= self._attacked(rows, radius, ACCURACY_QUICK_ATTACK)
        worth = np.flatnonzero(hopeful & ~attacked)
        bound[worth] = self._margins(rows[worth], radius)
        proved = bound > 0.0
        left = np.flatnonzero(~attacked & ~proved)
        attacked[left] = self._attacked(rows[left], radius, ACCURACY_STRONG_ATTACK)
        return _Decided(attacked, proved, bound, not self.deadline.passed)

    def deeply(self, task: _Deep) -> _Decided:
        """Search one ball."""
        ball = Ball(self.X[task.row], int(self.y[task.row]), task.radius, self.norm, self.box)
        if self.deadline.passed:
            return _Decided(np.zeros(1, bool), np.zeros(1, bool), np.full(1, -inf), False)
        found = decide(self.model, ball, task.turns, seed=self.seed, deadline=self.deadline)
        attacked = found.witness is not None
        ended = found.proved or attacked or not self.deadline.passed
        return _Decided(np.array([attacked]), np.array([found.proved]), np.array([found.bound]), ended)

    def _margins(self, rows: NDArray[np.intp], radius: float) -> Array:
        """Return lower bounds on the margins of some inputs, by linear bounds."""
        balls = Balls.around(self.X[rows], np.full(len(rows), radius), self.norm, self.box)
        ends, step = np.full(len(rows), -inf), together(self.net)
        for start in range(0, len(rows), step):
            if self.deadline.passed:
                break
            part = slice(start, start + step)
            forms = margin_rows(self.y[rows[part]], self.net.out_features)
            upper = quick_margins(self.net, balls.take(part), forms, "linear", self.deadline)
            ends[part] = -upper.max(axis=1)
        return ends

    def _attacked(
        self, rows: NDArray[np.intp], radius: float, effort: tuple[int, int]
    ) -> NDArray[np.bool_]:
        """Return which inputs have a changed input that is surely wrong; effort: restarts, steps."""
        found, _ = self._attack(rows, radius, effort, self.deadline.share(ACCURACY_ATTACK_SHARE))
        return found

    def reached(self, broken: Array, deadline: Deadline) -> dict[int, tuple[float, Array]]:
        """Return inputs of other classes by row, with the radius, where attacks find them once more."""
        made = {int(i): (0.0, self.X[i]) for i in np.flatnonzero(broken == 0.0)}
        for radius in np.unique(broken[(broken > 0.0) & np.isfinite(broken)]):
            rows = np.flatnonzero(broken == radius)
            for effort in (ACCURACY_QUICK_ATTACK, ACCURACY_STRONG_ATTACK):
                found, points = self._attack(rows, float(radius), effort, deadline.share(0.3))
                made |= {int(rows[i]): (float(radius), points[i]) for i in np.flatnonzero(found)}
                rows = rows[~found]
        return made

    def _attack(
        self, rows: NDArray[np.intp], radius: float, effort: tuple[int, int], deadline: Deadline
    ) -> tuple[NDArray[np.bool_], Array]:
        """Return which inputs have a changed input that is surely wrong, and these."""
        restarts, steps = effort
        attack = gradient_attack(
            self.net, self.X[rows], self.y[rows], radius=_WITHIN * radius, norm=self.norm,
            restarts=restarts, steps=steps, box=self.box, seed=self.seed, deadline=deadline,
        )  # fmt: skip
        found = attack.success.copy()
        for i in np.flatnonzero(found):
            ball = Ball(self.X[rows[i]], int(self.y[rows[i]]), radius, self.norm, self.box)
            found[i] = surely_other(self.net, ball, attack.X[i])
        return found, attack.X


@dataclass(eq=False)
class _Curve:
    """The certified and the attacked radius of each input, on the way."""

    run: _Run
    radii: Array
    n_jobs: int | None
    verbose: int
    complete: bool = True
    safe: Array = field(init=False)
    broken: Array = field(init=False)
    failed: Array = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.run.X)
        self.safe, self.broken = np.full(n, -1.0), np.full(n, inf)
        self.broken[predicted(self.run.net, self.run.X) != self.run.y] = 0.0
        self.failed = np.full(n, inf)  # the least radius without a proof: none is to be expected beyond

    def decided(self) -> tuple[Array, Array, bool]:
        """Return both radii of each input, and whether time sufficed."""
        try:
            for _ in watched(self._steps(), "certifying", total=None, verbose=self.verbose):
                pass
        except KeyboardInterrupt:  # what was finished stays
            self.complete = False
        return self.safe, self.broken, self.complete

    def _steps(self) -> Iterator[None]:
        """Decide what can be at every radius: quickly, then deeply."""
        bounds = {float(radius): np.full(len(self.safe), -inf) for radius in self.radii}
        for radius, bound in bounds.items():  # what is decided at one is left out at the next
            yield from self._quickly(radius, bound)
        for turns in ACCURACY_TURNS if self.run.optimise else ():
            self.failed[:] = inf
            for radius, bound in bounds.items():
                yield from self._deeply(radius, turns, bound)

    def _quickly(self, radius: float, bound: Array) -> Iterator[None]:
        """Attack and bound all inputs that are left at a radius."""
        left = np.flatnonzero(self.broken > radius)
        blocks = range(0, len(left), ACCURACY_BLOCK_INPUTS)
        rows = [left[start : start + ACCURACY_BLOCK_INPUTS] for start in blocks]
        tasks = [_Task(radius, part, self.failed[part] > radius) for part in rows]
        for index, found in each(self.run.quickly, tasks, n_jobs=self.n_jobs):
            bound[rows[index]] = found.bound
            self._note(rows[index], radius, found)
            yield
        self.failed[self._open(radius)] = radius

    def _deeply(self, radius: float, turns: int, bound: Array) -> Iterator[None]:
        """Search the balls that are open, those with the largest bounds first."""
        rows = np.flatnonzero(self._open(radius)) if radius else np.zeros(0, np.intp)
        rows = rows[np.argsort(-bound[rows], kind="stable")]
        tasks = [_Deep(radius, int(row), turns) for row in rows]
        for index, found in each(self.run.deeply, tasks, n_jobs=self.n_jobs, batch=1):
            bound[rows[index]] = max(bound[rows[index]], float(found.bound[0]))
            self._note(rows[index : index + 1], radius, found)
            yield
        self.failed[self._open(radius)] = radius

    def _open(self, radius: float) -> NDArray[np.bool_]:
        """Return which inputs are neither proved nor attacked, nor failed at a smaller radius."""
        return (self.safe < radius) & (self.broken > radius) & (self.failed > radius)

    def _note(self, rows: NDArray[np.intp], radius: float, found: _Decided) -> None:
        self.complete &= found.complete
        self.broken[rows[found.attacked]] = np.minimum(self.broken[rows[found.attacked]], radius)
        self.safe[rows[found.proved]] = np.maximum(self.safe[rows[found.proved]], radius)
