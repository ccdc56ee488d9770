r"""Certificates: is the class the same on a whole ball? Proved yes, or not known.

Margins of all inputs are bounded by linear relaxation at once. Where that does not suffice and more is
asked for, slopes are optimised, input by input (:mod:`~pindown.verification.ball_proofs`). Bisection
gives certified radii.

Zhang et al. 2018, "Efficient neural network robustness certification with general activation
functions" (CROWN); Xu et al. 2021, "Fast and complete" (optimised slopes).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.io.any_model import AnyModel
from pindown.relaxation.lp_balls import Balls, as_norm
from pindown.verification.ball_proofs import (
    Ball,
    bounded_form,
    decide,
    engine_form,
    quick_margins,
    together,
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


def certified(
    net: AnyModel,
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
        net: The network or model; one output means two classes by its sign.
        X: Inputs (n, d), or one (d,).
        y: Their classes; those that the network gives if not given.
        radius: Radius of the balls, for all inputs or for each, (n,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        box: Where inputs lie, if not anywhere: balls are cut to it. X must lie in it.
        method: ``"interval"``, ``"linear"``, or ``"optimised"``: linear with optimised slopes, and a few
            splits of ReLUs, for the inputs that need it.
        deadline: When to stop; what is not decided then is False.

    Returns:
        True is a proof, also for rounded arithmetic; False only means that none was found. A tie
        with another output is no proof.

    Raises:
        ValueError: If shapes, labels, radius, norm, method or box do not fit.

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[3.0, 4.0]], [-5])])
    >>> certified(net, [[3.0, 4.0]], radius=2.857), certified(net, [[3.0, 4.0]], radius=2.858)
    (array([ True]), array([False]))

    Zhang et al. 2018, section 3; Xu et al. 2021.
    """
    if method not in ("interval", "linear", "optimised"):
        raise ValueError(f"method must be 'interval', 'linear' or 'optimised'; got {method!r}.")
    deep = classifier(bounded_form(net, "certified"))
    inputs, limits = as_inputs(deep, X, box)
    labels = predicted(deep, inputs) if y is None else as_classes(y, len(inputs), deep.out_features)
    balls = Balls.around(inputs, as_radii(radius, len(inputs)), as_norm(norm), limits)
    found = np.zeros(len(inputs), bool)
    step = together(deep)
    for start in range(0, len(inputs), step):
        if deadline.passed:
            break
        part = slice(start, start + step)
        rows = margin_rows(labels[part], deep.out_features)
        way = "interval" if method == "interval" else "linear"
        upper = quick_margins(deep, balls.take(part), rows, way, deadline)
        found[part] = (upper < 0.0).all(axis=1)
    if method == "optimised" and not found.all():
        model = engine_form(deep)
        for i in np.flatnonzero(~found):
            if deadline.passed:
                break
            ball = Ball(inputs[i], int(labels[i]), float(balls.radius[i]), balls.norm, limits)
            found[i] = decide(model, ball, 1, deadline=deadline).proved
    return found


def certified_radii(
    net: AnyModel,
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

    >>> from pindown import ReluNetwork
    >>> net = ReluNetwork.from_layers([([[1.0]], [0])])
    >>> certified_radii(net, [[0.75], [3.0]], largest=1.0)
    array([0.74609375, 1.        ])

    Zhang et al. 2018, section 4.
    """
    deep = classifier(bounded_form(net, "certified_radii"))
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
