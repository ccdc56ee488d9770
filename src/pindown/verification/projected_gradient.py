r"""Projected gradient descent on the margin: the strongest change within a radius, as far as found.

.. math::
    r \leftarrow \Pi_{\|r\| \le \eta}\bigl(r - \alpha\, v\bigr), \qquad
    v = \arg\max_{\|v\| \le 1} v \cdot \nabla\, \text{margin}(x + r),

where the margin is the right output minus the best other one. One step of full length is the fast
gradient sign method in linf, and exact for linear models.

Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks"; Lecture course,
section on adversarial attacks (maximum-allowable attack).
"""

from __future__ import annotations

import time
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.network import ReluNetwork
from pindown.relaxation.lp_norms import Norm, as_norm, lengths, project, steepest_step
from pindown.verification.attack_result import AttackResult
from pindown.verification.classes import as_classes, classifier, margin_slopes, predicted
from pindown.verification.inputs import BoxLike, as_inputs, as_radii

_FIRST_STEP, _LAST_STEP = 0.5, 0.02  # of the radius: long steps to travel, short ones to settle


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
    deadline: float = inf,
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
        deadline: When to stop, as ``time.monotonic()`` counts.

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
        if not len(active) or time.monotonic() > deadline:
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
    deadline: float,
) -> int:
    """Descend from ``points`` (those of ``active``), and keep the smallest margins in ``found``."""
    best, margin = found
    shrink = (_LAST_STEP / _FIRST_STEP) ** (1.0 / max(1, steps - 1))
    rate = _FIRST_STEP
    for step in range(steps + 1):
        slopes = margin_slopes(net, points, labels[active])
        better = slopes.margin < margin[active]
        best[active[better]], margin[active[better]] = points[better], slopes.margin[better]
        going = slopes.margin >= 0.0  # a tie may or may not be another class: go on
        points, active = points[going], active[going]
        if step == steps or not len(active) or (step and time.monotonic() > deadline):
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
