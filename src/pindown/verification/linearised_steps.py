r"""DeepFool: step to the nearest boundary of the local linear model, again and again.

For a score g whose sign is the class,

.. math::
    x \leftarrow x - \frac{g(x)}{\|\nabla g(x)\|^2} \nabla g(x) .

One step is exact for an affine g. In general the steps end on the boundary, but not at its nearest
point: each is a projection from where the last one ended, not from the start. The steps stop when the
class has changed, when the gradient vanishes, or after ``max_iter`` of them; then the way from the start
is prolonged by ``overshoot``, since on the boundary itself nothing has changed yet.

Lecture course, section on DeepFool (with a rule to stop, which it leaves open); Moosavi-Dezfooli,
Fawzi and Frossard 2016, "DeepFool", for more classes and other norms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.network import ReluNetwork
from pindown.relaxation.lp_norms import DUALS, Norm, as_norm, lengths, steepest_step
from pindown.verification.attack_result import AttackResult
from pindown.verification.classes import as_classes, classifier, margin_rows, predicted
from pindown.verification.inputs import as_inputs

_BLOCK_NUMBERS = 2**22  # of gradients held at once: 32 MB
_BEYOND = 1e-4  # of each step beyond the linear boundary, so that the last one crosses it


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
    block = max(1, _BLOCK_NUMBERS // (net.out_features * net.in_features))
    for start in range(0, len(X), block):
        part = slice(start, start + block)
        A, _ = net.local_affine(X[part])
        rows = -margin_rows(labels[part], net.out_features)
        form, score = rows @ A, np.einsum("njk,nk->nj", rows, net(X[part]))
        size = lengths(form, DUALS[norm])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            radius = np.where(size > 0, np.maximum(score, 0.0) / size, np.inf)
        best = np.argmin(radius, axis=1)
        at = np.arange(len(best)), best
        reach = np.where(np.isfinite(radius[at]), radius[at], 0.0)
        step = ((1.0 + _BEYOND) * reach + np.finfo(float).tiny)[:, None] * steepest_step(form[at], norm)
        result[part] = X[part] - step
    return result if box is None else np.clip(result, box.lower, box.upper)
