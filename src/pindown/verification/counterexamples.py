r"""Counterexamples: changed inputs of another class, found by gradients, and what they are worth.

**Projected gradient descent (PGD)** looks for the strongest change within a radius,

.. math::
    r \leftarrow \Pi_{\|r\| \le \eta}\bigl(r - \alpha\, v\bigr), \qquad
    v = \arg\max_{\|v\| \le 1} v \cdot \nabla\, \text{margin}(x + r),

where the margin is the right output minus another one. One step of full length is the fast gradient
sign method (FGSM) in linf, and exact for linear models. Gradients see one side of every kink, so slopes
of linear bounds on boxes that shrink around the changed input lead the way beside them
(:mod:`~pindown.verification.falsification`).

Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks"; Lecture course,
section on adversarial attacks (maximum-allowable attack).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel, as_model
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.network import ReluNetwork
from pindown.relaxation.lp_balls import Balls, Norm, as_norm, lengths, steepest_step
from pindown.verification._searching import Searching
from pindown.verification.annealed_descents import annealed_descents
from pindown.verification.classes import (
    BoxLike,
    Classes,
    as_classes,
    as_inputs,
    as_radii,
    as_targets,
    class_goals,
    classifier,
)
from pindown.verification.falsification import Recipe, take
from pindown.verification.tuning import (
    ANNEALED_PASSES,
    ATTACK_AGAIN_ROWS,
    ATTACK_BLOCK_NUMBERS,
    ATTACK_CLASSES_AGAIN,
    ATTACK_MAX_CLASSES,
    MIDDLE_SHARES,
    NARROW_SHARES,
    PGD_FIRST_STEP,
    WIDE_SHARES,
)


@dataclass(frozen=True, eq=False, repr=False)
class AttackResult:
    """Changed inputs and what became of them; the first axis counts inputs.

    Attributes:
        X: The changed inputs, (n, d).
        success: Whether the attack reached its goal as float64 evaluates the network: another class, or
            the target, (n,).
        distance: Length of each change in ``norm``, (n,).
        margin: The score that the attack lowers: at most 0 where it succeeded, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        n_gradients: How many gradients were computed for one input at most.
        exact: Whether theory says that no attack does better.
        by: What changed each input, in words; empty where nothing succeeded.
        distances: Where several attacks were run beside each other, what each found, by name.
    """

    X: Array
    success: NDArray[np.bool_]
    distance: Array
    margin: Array
    norm: Norm
    n_gradients: int = 0
    exact: bool = False
    by: tuple[str, ...] = ()
    distances: Mapping[str, Array] = field(default_factory=dict)

    def __repr__(self) -> str:
        n, hits = len(self.success), int(self.success.sum())
        kind = "no attack does better" if self.exact else "a better one may exist"
        if not hits:
            return f"AttackResult(none of {n:,} in {self.norm}; {kind})"
        median = float(np.median(self.distance[self.success]))
        wins = "".join(f"; {name} nearest on {self.by.count(name):,}" for name in self.distances)
        return (
            f"AttackResult({hits:,} of {n:,} in {self.norm}, median distance {median:.4g}{wins}; {kind})"
        )


def gradient_attack(
    net: AnyModel,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    radius: ArrayLike,
    norm: str = "linf",
    target: ArrayLike | None = None,
    steps: int = 30,
    restarts: int = 3,
    bounds: bool = True,
    box: BoxLike = None,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> AttackResult:
    """Look for another class, or for a target, within a radius of each input.

    Args:
        net: The model or network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        radius: Largest length of a change, for all inputs or for each, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        target: The class to reach, for all inputs or for each; any other than y if not given.
        steps: Gradient steps from each start.
        restarts: Rounds: the first from the input itself, later ones from random points of the ball.
        bounds: Whether slopes of linear bounds lead the way beside gradients.
        box: Where changed inputs must lie; X must lie in it.
        seed: Chooses the random starts.
        deadline: When to stop.

    Returns:
        The changed inputs; where no attack succeeded, those of the smallest margin seen.

    Raises:
        ValueError: If shapes, labels, radius, norm or box do not fit.

    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> gradient_attack(net, [[3.0, 4.0]], radius=[2.85], norm="linf").success
    array([False])
    >>> gradient_attack(net, [[3.0, 4.0]], radius=[2.86], norm="linf").success
    array([ True])

    Madry et al. 2018, section 2.1.
    """
    model, kind = classifier(as_model(net, "gradient_attack")), as_norm(norm)
    asked = asked_of(model, X, y, target, box)
    balls = Balls.around(asked.rows, as_radii(radius, len(asked.rows)), kind, asked.box)
    rng = np.random.default_rng(seed)
    points, used = asked.rows.copy(), 0
    by = ["" for _ in points]
    together = max(
        1, ATTACK_BLOCK_NUMBERS // (model.in_features * min(model.out_features, ATTACK_MAX_CLASSES))
    )
    for start in range(0, len(points), together):
        part = slice(start, start + together)
        few = asked.pick(part)
        with np.errstate(all="ignore"):
            quick = annealed_descents(
                model, few, balls.take(part), passes=ANNEALED_PASSES * restarts - 1,
                steps=steps, rng=rng, deadline=deadline,
            )  # fmt: skip
        points[part] = quick.points
        more = quick.n_gradients
        for i in np.flatnonzero(quick.reached).tolist():
            by[start + i] = (
                "gradient descent" if quick.margin[i] < quick.first[i] else "the input itself"
            )
        left = np.flatnonzero(~quick.reached)
        left = np.sort(left[np.argsort(quick.margin[left], kind="stable")[:ATTACK_AGAIN_ROWS]])
        if bounds and steps and len(left) and not deadline.passed:
            own, of_own = few.pick(left), balls.take(start + left)
            goals, inputs = class_goals(own.outputs, own.labels, of_own, own.target, ATTACK_MAX_CLASSES)
            search = Searching(model, goals, inputs, rng, deadline)
            with np.errstate(all="ignore"):
                _attack(search, quick.points[left], steps, restarts)
            more += int(np.bincount(inputs, search.gradients).max())
            first = np.lexsort((search.loss, inputs))[np.unique(np.sort(inputs), return_index=True)[1]]
            points[start + left] = search.point[first]
            for j, found in search.found.items():
                points[start + left[j]], by[start + left[j]] = found.point, found.by
        used = max(used, more)
    return judged(model, asked, points, kind, used, tuple(by))


class Asked(NamedTuple):
    """What an attack is asked.

    Attributes:
        rows: The inputs, (n, d).
        outputs: Outputs of the model there, (n, k).
        labels: The classes to leave, (n,).
        target: The classes to reach, (n,), or None for any other.
        box: Where changed inputs lie, or None.
    """

    rows: Array
    outputs: Array
    labels: Classes
    target: Classes | None
    box: Box | None

    def pick(self, which: slice | Classes) -> Asked:
        """Return some of the inputs."""
        target = None if self.target is None else self.target[which]
        return Asked(self.rows[which], self.outputs[which], self.labels[which], target, self.box)

    def reached(self, made: Array) -> NDArray[np.bool_]:
        """Return where outputs (n, k) name another class, or the target."""
        classes, known = np.argmax(made, axis=1), np.isfinite(made).all(axis=1)
        goal = classes != self.labels if self.target is None else classes == self.target
        return np.asarray(goal & known)

    def margins(self, made: Array) -> Array:
        """Return the right output minus the best other one, or the best other one minus the target's."""
        at, others = np.arange(len(made)), made.copy()
        with np.errstate(all="ignore"):
            own = self.labels if self.target is None else self.target
            others[at, own] = -np.inf
            values = made[at, own] - others.max(axis=1)
            return np.nan_to_num(values if self.target is None else -values, nan=np.inf)

    def forms(self, made: Array, part: slice) -> Array:
        """Return the forms (m, k) of the margins at outputs (m, k) of some of the inputs."""
        few, at = self.pick(part), np.arange(len(made))
        own, sign = (few.labels, 1.0) if few.target is None else (few.target, -1.0)
        others, rows = made.copy(), np.zeros_like(made)
        others[at, own] = -np.inf
        rows[at, own], rows[at, np.argmax(others, axis=1)] = sign, -sign
        return rows

    def soft_forms(self, made: Array, part: slice) -> Array:
        """Return likewise forms of the right output minus the mean of the others by their softmax."""
        few, at = self.pick(part), np.arange(len(made))
        own, sign = (few.labels, 1.0) if few.target is None else (few.target, -1.0)
        others = made.copy()
        others[at, own] = -np.inf
        rows = np.exp(others - others.max(axis=1, keepdims=True))
        rows *= -sign / rows.sum(axis=1, keepdims=True)
        rows[at, own] = sign
        return rows


def asked_of(
    model: Model, X: ArrayLike, y: ArrayLike | None, target: ArrayLike | None, box: BoxLike
) -> Asked:
    """Check what an attack was given."""
    rows, limits = as_inputs(model, X, box)
    n, k = len(rows), model.out_features
    made = model(rows) if n else np.zeros((0, k))
    labels = np.argmax(made, axis=1) if y is None else as_classes(y, n, k)
    return Asked(rows, made, labels, None if target is None else as_targets(target, n, k), limits)


def judged(
    model: Model, asked: Asked, points: Array, norm: Norm, used: int, by: tuple[str, ...]
) -> AttackResult:
    """Return what became of inputs, as float64 evaluates the model."""
    made = outputs(model, points)
    success, distance = asked.reached(made), lengths(points - asked.rows, norm)
    told = tuple(word if hit else "" for word, hit in zip(by, success, strict=True))
    return AttackResult(points, success, distance, asked.margins(made), norm, used, by=told)


def gradient_sign(model: Model, asked: Asked, balls: Balls) -> AttackResult:
    """Take one step of full length against the gradient of the margin, towards the nearest class.

    In linf it is the fast gradient sign method (FGSM). Goodfellow, Shlens and Szegedy 2015, "Explaining
    and harnessing adversarial examples".
    """
    _, slopes = gradients(model, asked.rows, asked.forms)
    points = asked.rows - balls.radius[:, None] * steepest_step(slopes, balls.norm)
    points = np.clip(points, balls.lower, balls.upper)
    return judged(model, asked, points, balls.norm, 1, ("one step along the gradient",) * len(points))


def _attack(search: Searching, points: Array, steps: int, restarts: int) -> None:
    """Follow linear bounds from the inputs to every class, then from random points to the nearest."""
    search.by = "the input itself"
    search.tried(np.arange(len(search.goals)), points[search.groups])  # the best that is known
    take(search, Recipe("centre", WIDE_SHARES, steps // 4, 0.1, False), search.promising())
    again = cycle(
        (
            Recipe("random", MIDDLE_SHARES, steps, 0.1, False),
            Recipe("random", (), steps, PGD_FIRST_STEP, True),
            Recipe("random", NARROW_SHARES, steps, 0.1, True),
        )
    )
    for recipe in islice(again, max(0, restarts - 1)):
        take(search, recipe, _nearest(search, ATTACK_CLASSES_AGAIN))


def _nearest(search: Searching, most: int) -> Classes:
    """Return of every group the open goals of the smallest loss, so many at most."""
    goals = search.promising()
    order = np.argsort(search.groups[goals], kind="stable")
    groups = search.groups[goals][order]
    first = np.concatenate([[True], groups[1:] != groups[:-1]]) if len(groups) else np.zeros(0, bool)
    place = np.arange(len(groups)) - np.maximum.accumulate(np.where(first, np.arange(len(groups)), 0))
    return np.sort(goals[order[place < most]])


def float32_outputs(net: ReluNetwork, X: Array) -> Array:
    """Evaluate rows (n, d) with weights, inputs and sums rounded to float32, as most runtimes do.

    A point just behind a boundary in real numbers may be before it there, so results say what their
    margin is when it is evaluated so, in NumPy's order of sums; another runtime sums in another order,
    and differs by about as much as float32 does from float64.

    >>> net = ReluNetwork.from_layers([([[1.0]], [-1])])
    >>> net([1 + 1e-9])[0] > 0, float32_outputs(net, np.array([[1 + 1e-9]]))[0, 0] > 0
    (np.True_, np.False_)
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        a = X.astype(np.float32)
        for i, (W, b) in enumerate(net.layers):
            a = np.maximum(a, np.float32(0.0)) if i else a
            a = a @ dense(W).astype(np.float32).T + b.astype(np.float32)
    return np.asarray(a, dtype=np.float64)
