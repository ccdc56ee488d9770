r"""Counterexamples: changed inputs of another class, found by gradients, and what they are worth.

**Projected gradient descent (PGD)** looks for the strongest change within a radius,

.. math::
    r \leftarrow \Pi_{\|r\| \le \eta}\bigl(r - \alpha\, v\bigr), \qquad
    v = \arg\max_{\|v\| \le 1} v \cdot \nabla\, \text{margin}(x + r),

where the margin is the right output minus the best other one. One step of full length is the fast
gradient sign method (FGSM) in linf, and exact for linear models.

**DeepFool** looks for a small change: it steps to the nearest boundary of the local linear model, again
and again. For a score g whose sign is the class,

.. math::
    x \leftarrow x - \frac{g(x)}{\|\nabla g(x)\|^2} \nabla g(x) .

One step is exact for an affine g. In general the steps end on the boundary, but not at its nearest
point: each is a projection from where the last one ended, not from the start. The steps stop when the
class has changed, when the gradient vanishes, or after ``max_iter`` of them; then the way from the start
is prolonged by ``overshoot``, since on the boundary itself nothing has changed yet.

Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks"; Moosavi-Dezfooli,
Fawzi and Frossard 2016, "DeepFool", for more classes and other norms; Lecture course, sections on
adversarial attacks (maximum-allowable attack) and DeepFool (with a rule to stop, which it leaves open).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, dense
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.relaxation.lp_balls import (
    DUALS,
    Norm,
    as_norm,
    lengths,
    project,
    steepest_step,
)
from pindown.verification.classes import (
    BoxLike,
    as_classes,
    as_inputs,
    as_radii,
    classifier,
    margin_rows,
    margin_slopes,
    predicted,
)
from pindown.verification.tuning import (
    DEEPFOOL_BEYOND,
    DEEPFOOL_BLOCK_NUMBERS,
    PGD_FIRST_STEP,
    PGD_LAST_STEP,
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
    """

    X: Array
    success: NDArray[np.bool_]
    distance: Array
    margin: Array
    norm: Norm
    n_gradients: int = 0
    exact: bool = False

    def __repr__(self) -> str:
        n, hits = len(self.success), int(self.success.sum())
        kind = "no attack does better" if self.exact else "a better one may exist"
        if not hits:
            return f"AttackResult(none of {n:,} in {self.norm}; {kind})"
        median = float(np.median(self.distance[self.success]))
        return f"AttackResult({hits:,} of {n:,} in {self.norm}, median distance {median:.4g}; {kind})"


@on_network
def gradient_attack(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    radius: ArrayLike,
    norm: str = "linf",
    steps: int = 40,
    restarts: int = 1,
    box: BoxLike = None,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> AttackResult:
    """Look for another class within a radius of each input.

    Args:
        net: The network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        radius: Largest length of a change, for all inputs or for each, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        steps: Gradient steps from each start.
        restarts: Starts: the input itself, then random points of the ball.
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
    deep, kind = classifier(net), as_norm(norm)
    rows, limits = as_inputs(deep, X, box)
    labels = predicted(deep, rows) if y is None else as_classes(y, len(rows), deep.out_features)
    radii, rng = as_radii(radius, len(rows)), np.random.default_rng(seed)
    best, margin, used = rows.copy(), np.full(len(rows), inf), 0
    active = np.arange(len(rows))
    for start in range(max(1, restarts)):
        points = rows[active]
        if start:
            change = (
                rng.standard_normal(points.shape) * (radii[active] * rng.random(len(active)))[:, None]
            )
            points = _into(points + project(change, radii[active], kind), limits)
        used += _descend(
            deep, rows, points, labels, radii, (best, margin), active, kind, limits, steps, deadline
        )
        active = active[predicted(deep, best[active]) == labels[active]]
        if not len(active) or deadline.passed:
            break
    success = predicted(deep, best) != labels if len(rows) else np.zeros(0, bool)
    return AttackResult(best, success, lengths(best - rows, kind), margin, kind, used)


def _descend(
    net: ReluNetwork,
    rows: Array,
    points: Array,
    labels: NDArray[np.intp],
    radii: Array,
    found: tuple[Array, Array],
    active: NDArray[np.intp],
    norm: Norm,
    box: Box | None,
    steps: int,
    deadline: Deadline,
) -> int:
    """Descend from ``points`` (those of ``active``), and keep the smallest margins in ``found``."""
    best, margin = found
    shrink = (PGD_LAST_STEP / PGD_FIRST_STEP) ** (1.0 / max(1, steps - 1))
    rate = PGD_FIRST_STEP
    for step in range(steps + 1):
        slopes = margin_slopes(net, points, labels[active])
        better = slopes.margin < margin[active]
        best[active[better]], margin[active[better]] = points[better], slopes.margin[better]
        going = slopes.margin >= 0.0  # a tie may or may not be another class: go on
        points, active = points[going], active[going]
        if step == steps or not len(active) or (step and deadline.passed):
            return step
        # In l1 one coordinate at a time would need as many steps as coordinates: take all, then project.
        kind: Norm = "l2" if norm == "l1" else norm
        move = steepest_step(slopes.gradient[going], kind) * (rate * radii[active])[:, None]
        change = project(points - move - rows[active], radii[active], norm)
        points = _into(rows[active] + change, box)
        rate *= shrink
    return steps


def _into(points: Array, box: Box | None) -> Array:
    return points if box is None else np.clip(points, box.lower, box.upper)


def deepfool_binary(
    score: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    x: ArrayLike,
    *,
    max_iter: int = 50,
    overshoot: float = 0.02,
) -> AttackResult:
    r"""Move x to where a differentiable score changes its sign.

    Args:
        score: :math:`g`, whose sign is the class.
        gradient: :math:`\nabla g`.
        x: The start, (d,).
        max_iter: Steps at most.
        overshoot: Share of the way to add at the end.

    Returns:
        One changed input; ``margin`` is :math:`\pm g` there, at most 0 if the sign has changed.

    Example:
        From (5, 1) to the circle of radius 2:

        >>> found = deepfool_binary(lambda x: x @ x - 4, lambda x: 2 * x, [5.0, 1.0], overshoot=0.0)
        >>> found.X.round(5)
        array([[1.96116, 0.39223]])

    Lecture course, section on DeepFool.
    """
    start = np.asarray(x, dtype=np.float64)
    if start.ndim != 1 or not np.isfinite(start).all():
        raise ValueError(f"x must be one input (d,) of finite numbers; got shape {start.shape}.")
    sign = 1.0 if score(start) > 0 else -1.0
    point, used = start.copy(), 0
    for _ in range(max_iter):
        value, slope = float(score(point)), np.asarray(gradient(point), dtype=np.float64)
        size = float(slope @ slope)
        used += 1
        if sign * value < 0 or size == 0.0:
            break
        step = value / size * slope
        if np.array_equal(point - step, point):
            break
        point = point - step
    point = start + (1.0 + overshoot) * (point - start)
    margin = np.array([sign * float(score(point))])
    distance = lengths(point - start, "l2").reshape(1)
    return AttackResult(point[None], margin <= 0.0, distance, margin, "l2", used)


@on_network
def deepfool(
    net: ReluNetwork,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "l2",
    max_iter: int = 50,
    overshoot: float = 0.02,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
) -> AttackResult:
    """Move inputs of a network to another class, by steps to the nearest linearised boundary.

    Args:
        net: The network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        max_iter: Steps at most.
        overshoot: Share of the way to add at the end.
        box: Where changed inputs must lie; X must lie in it.

    Raises:
        ValueError: If shapes, labels, norm or box do not fit.

    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> deepfool(net, [[3.0, 4.0]], overshoot=0.0).X.round(2)
    array([[0.6, 0.8]])

    Moosavi-Dezfooli, Fawzi and Frossard 2016, Algorithms 1 and 2.
    """
    deep, kind = classifier(net), as_norm(norm)
    rows, limits = as_inputs(deep, X, box)
    labels = predicted(deep, rows) if y is None else as_classes(y, len(rows), deep.out_features)
    points, used = rows.copy(), 0
    active = np.flatnonzero(predicted(deep, points) == labels)
    for _ in range(max_iter):
        if not len(active):
            break
        used += 1
        points[active] = _stepped(deep, points[active], labels[active], kind, limits)
        active = active[predicted(deep, points[active]) == labels[active]]
    points = rows + (1.0 + overshoot) * (points - rows)
    if limits is not None:
        points = np.clip(points, limits.lower, limits.upper)
    outputs = deep(points)
    margin = -np.einsum("njk,nk->nj", margin_rows(labels, deep.out_features), outputs).max(axis=1)
    success = np.argmax(outputs, axis=1) != labels
    return AttackResult(points, success, lengths(points - rows, kind), margin, kind, used)


def _stepped(net: ReluNetwork, X: Array, labels: NDArray[np.intp], norm: Norm, box: Box | None) -> Array:
    """Step each input to the nearest boundary of its own affine map."""
    result = np.empty_like(X)
    block = max(1, DEEPFOOL_BLOCK_NUMBERS // (net.out_features * net.in_features))
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        with np.errstate(over="ignore", invalid="ignore"):  # slopes only say where to search
            A, _ = net.local_affine(X[part])
        rows = -margin_rows(labels[part], net.out_features)
        form, score = rows @ A, np.einsum("njk,nk->nj", rows, net(X[part]))
        size = lengths(form, DUALS[norm])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            radius = np.where(size > 0, np.maximum(score, 0.0) / size, np.inf)
        best = np.argmin(radius, axis=1)
        at = np.arange(len(best)), best
        reach = np.where(np.isfinite(radius[at]), radius[at], 0.0)
        step = ((1.0 + DEEPFOOL_BEYOND) * reach + np.finfo(float).tiny)[:, None] * steepest_step(
            form[at], norm
        )
        result[part] = X[part] - step
    return result if box is None else np.clip(result, box.lower, box.upper)


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
