r"""DeepFool: a small change of input that changes the class, by steps to linearised boundaries.

It steps to the nearest boundary of the local linear model, again and again. For a score g whose sign is
the class,

.. math::
    x \leftarrow x - \frac{g(x)}{\|\nabla g(x)\|^2} \nabla g(x) .

One step is exact for an affine g. In general the steps end on the boundary, but not at its nearest
point: each is a projection from where the last one ended, not from the start. The steps stop when the
class has changed, when the gradient vanishes, or after ``max_iter`` of them; then the way from the start
is prolonged by ``overshoot``, since on the boundary itself nothing has changed yet.

Moosavi-Dezfooli, Fawzi and Frossard 2016, "DeepFool", for more classes and other norms; Lecture course,
section on DeepFool (with a rule to stop, which it leaves open).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box
from pindown.io.any_model import AnyModel, as_model
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.relaxation.lp_balls import DUALS, Norm, as_norm, lengths, steepest_step
from pindown.verification.classes import Classes, classifier
from pindown.verification.counterexamples import AttackResult, asked_of, judged
from pindown.verification.tuning import ATTACK_MAX_CLASSES, DEEPFOOL_BEYOND, DEEPFOOL_BLOCK_NUMBERS


def deepfool(
    net: AnyModel,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "l2",
    target: ArrayLike | None = None,
    max_iter: int = 50,
    overshoot: float = 0.02,
    box: Box | tuple[ArrayLike, ArrayLike] | None = None,
) -> AttackResult:
    """Move inputs of a model to another class, by steps to the nearest linearised boundary.

    Args:
        net: The model or network; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        target: The class to reach, for all inputs or for each: steps lead to the boundary with the class
            that is the largest; any other class than y if not given.
        max_iter: Steps at most.
        overshoot: Share of the way to add at the end.
        box: Where changed inputs must lie; X must lie in it.

    Raises:
        ValueError: If shapes, labels, norm or box do not fit.

    >>> from pindown.network import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> deepfool(net, [[3.0, 4.0]], overshoot=0.0).X.round(2)
    array([[0.6, 0.8]])

    Moosavi-Dezfooli, Fawzi and Frossard 2016, Algorithms 1 and 2.
    """
    model, kind = classifier(as_model(net, "deepfool")), as_norm(norm)
    asked = asked_of(model, X, y, target, box)
    points, used, limits = asked.rows.copy(), 0, asked.box
    active = np.flatnonzero(~asked.reached(asked.outputs))
    for _ in range(max_iter):
        if not len(active):
            break
        used += 1
        goals = None if asked.target is None else asked.target[active]
        points[active] = _stepped(model, points[active], asked.labels[active], goals, kind, limits)
        active = active[~asked.reached(outputs(model, points))[active]]
    points = asked.rows + (1.0 + overshoot) * (points - asked.rows)
    if limits is not None:
        points = np.clip(points, limits.lower, limits.upper)
    return judged(model, asked, points, kind, used, ("steps to the linearised boundary",) * len(points))


def _stepped(
    model: Model, X: Array, labels: Classes, target: Classes | None, norm: Norm, box: Box | None
) -> Array:
    """Step each input to the nearest boundary of its own linear model."""
    made = outputs(model, X)
    if target is None:
        others = made.copy()
        others[np.arange(len(X)), labels] = -np.inf
        k = min(model.out_features - 1, ATTACK_MAX_CLASSES)
        classes, own = np.argsort(-others, axis=1, kind="stable")[:, :k], labels
    else:  # one boundary: that of the class that is ahead
        classes, own = target[:, None], np.argmax(made, axis=1)
    result, k = np.empty_like(X), classes.shape[1]
    block = max(1, DEEPFOOL_BLOCK_NUMBERS // (k * model.in_features))
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        form, score = _boundaries(model, X[part], own[part], classes[part])
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


def _boundaries(model: Model, X: Array, own: Classes, classes: Classes) -> tuple[Array, Array]:
    """Return gradients (n, k, d) and values (n, k) of each row's own output minus other ones."""
    n, k = classes.shape
    at, rows = np.arange(n * k), np.zeros((n * k, model.out_features))
    rows[at, np.repeat(own, k)] += 1.0
    rows[at, classes.ravel()] -= 1.0
    made, slopes = gradients(model, np.repeat(X, k, axis=0), lambda _, part: rows[part])
    with np.errstate(all="ignore"):
        score = np.nan_to_num((rows * made).sum(axis=1), nan=0.0)
    return slopes.reshape(n, k, -1), score.reshape(n, k)
