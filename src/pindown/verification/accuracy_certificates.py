"""Certificates of certified accuracy: of inputs the largest ball that is safe, the least that is not.

The class is the true one c on a whole ball if no other output comes as far as output c there. That is
proved once more by steps that certificates have (:mod:`~pindown.verification.questions`), at the largest
radius at which it was: smaller balls lie in it. An input with another class is a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import Deadline
from pindown.io.any_model import as_model
from pindown.model.graph import Model
from pindown.model.sparse_layers import with_sparse_layers
from pindown.relaxation.lp_balls import Balls
from pindown.rounding import add_down, add_up
from pindown.verification.properties import Property, UnsafeSet
from pindown.verification.questions import Question, Written, write_questions


def write_accuracy(
    path: str | PathLike[str],
    net: Any,
    X: Array,
    y: NDArray[np.intp],
    box: Box | None,
    safe: Array,
    reached: Mapping[int, tuple[float, Array]],
    deadline: Deadline,
) -> Written:
    """Write what is proved about balls around inputs.

    Args:
        path: Where the certificate shall go.
        net: The path of the model.
        X: The inputs, (n, d).
        y: Their classes, (n,).
        box: Where inputs lie; cuts the balls.
        safe: The largest radius at which each is proved, -1 for none, (n,).
        reached: Inputs of other classes, by row, with the radius of the ball they are in.
        deadline: When to stop.
    """
    model = as_model(net, "certified_accuracy")
    k = model.out_features
    questions = []
    for i in range(len(X)):
        if safe[i] >= 0.0:
            ball = Balls.around(X[i : i + 1], np.array([safe[i]]), "linf", box)
            sets = _rivals(int(y[i]), k)
            questions.append(
                Question(
                    tuple(UnsafeSet(ball.lower[0], ball.upper[0], row, np.zeros(1)) for row in sets)
                )
            )
        if i in reached:
            questions += _shown(model, X[i], int(y[i]), box, *reached[i])
    if not questions:
        return Written("", "no certificate was written: nothing was decided")
    words = f"the class of {len(X)} inputs, in balls around {int((safe >= 0).sum())} of them"
    prop = Property((), (model.in_features,), (k,), None, None, words)
    return write_questions(
        path, (net,), (model,), prop, questions, graph=with_sparse_layers(model), deadline=deadline
    )


def _rivals(label: int, k: int) -> list[Array]:
    """Return forms of the outputs that are positive while the class is the one that is named."""
    if k == 1:  # the class is the sign
        return [np.array([[1.0 if label else -1.0]])]
    rows = []
    for j in range(k):
        if j != label:
            row = np.zeros((1, k))
            row[0, label], row[0, j] = 1.0, -1.0
            rows.append(row)
    return rows


def _shown(
    model: Model, x: Array, label: int, box: Box | None, radius: float, point: Array
) -> list[Question]:
    """Return the question that an input of another class answers."""
    ball = Balls.around(x[None], np.array([radius]), "linf", box)
    ends = add_up(x, -radius), add_down(x, radius)
    low, high = (np.clip(end, ball.lower[0], ball.upper[0]) for end in ends)
    scores = np.asarray(model(point)).ravel()
    rows = _rivals(label, len(scores))
    best = min(rows, key=lambda row: float((row @ scores)[0]))
    inside = bool((point >= low).all() and (point <= high).all())
    if not inside or float((best @ scores)[0]) > -1e-9 * float(np.abs(scores).max(initial=0.0)):
        return []
    return [Question((UnsafeSet(low, high, best, np.zeros(1)),), point)]
