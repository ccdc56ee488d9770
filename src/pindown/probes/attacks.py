r"""One door to attacks on any model, in the three forms in which the problem is posed.

With the score s, the right output minus the best other one, or the best other one minus a target's, an
attack looks for a change r of an input x that solves one of

- the **minimum-norm** problem, :math:`\min \|r\|` with :math:`s(x + r) \le 0`;
- the **maximum-allowable** problem, :math:`\min s(x + r)` with :math:`\|r\| \le \eta`: give ``radius``;
- the **regularised** problem, :math:`\min \tfrac12 \|r\|^2 + \lambda\, s(x + r)`: give ``strength``.

Of affine models the solutions are known in closed form (:mod:`~pindown.probes.linear_attacks`). Else
they are looked for by the fast gradient sign method (FGSM), projected gradient descent (PGD), DeepFool,
Carlini and Wagner's search (C&W), fast minimum norm (FMN), and by slopes of linear bounds on boxes that
shrink around the input, which see both sides of a kink; the search is that of
:mod:`pindown.verification`.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.deadline import Deadline
from pindown.model.graph import Model
from pindown.model.operations.affine_operation import AffineOperation
from pindown.model.operations.dense import Add
from pindown.model.operations.moves import Move
from pindown.probes.differentiable import as_differentiable
from pindown.probes.linear_attacks import (
    linear_maximum_allowable_attack,
    linear_minimum_norm_attack,
    linear_regularised_attack,
)
from pindown.relaxation.lp_balls import Balls, as_norm
from pindown.validation import choice, positive
from pindown.verification.carlini_wagner import regularised_attack
from pindown.verification.classes import BoxLike, Classes, as_radii, classifier
from pindown.verification.counterexamples import (
    Asked,
    AttackResult,
    asked_of,
    gradient_attack,
    gradient_sign,
    judged,
)
from pindown.verification.shrinking_radii import nearest_attack
from pindown.verification.tuning import ATTACK_AGAIN_ROWS

# What each form of the problem is solved with.
NEAREST_METHODS = ("auto", "deepfool", "cw", "fmn", "pgd", "foolbox")
RADIUS_METHODS = ("auto", "fgsm", "pgd", "foolbox")
STRENGTH_METHODS = ("auto",)


def attack(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    radius: ArrayLike | None = None,
    strength: float | None = None,
    target: ArrayLike | None = None,
    method: str = "auto",
    box: BoxLike = None,
    budget: float = inf,
    seed: int = 0,
) -> AttackResult:
    r"""Change inputs so that a model gives them another class, or a target.

    Args:
        model: A :class:`~pindown.model.Model` or what can be read as one; any torch module; a function
            of torch tensors; or a :class:`Differentiable`. One output means two classes by its sign.
        X: Inputs (n, d) or ``(n, *input_shape)``, or one of them.
        y: Their classes; those that the model gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``: how changes are measured.
        radius: Largest length of a change, for all inputs or for each (maximum-allowable problem). With
            neither radius nor strength the shortest change that is found (minimum-norm problem).
        strength: :math:`\lambda` of the regularised problem, instead of a radius.
        target: The class to reach, for all inputs or for each; any other than y if not given.
        method: With a radius ``"fgsm"`` (one step along the gradient) or ``"pgd"`` (projected gradient
            descent from several starts); without one ``"deepfool"``, ``"cw"`` (Carlini-Wagner),
            ``"fmn"`` (fast minimum norm) or ``"pgd"`` (within shrinking radii); ``"foolbox"``: ours
            beside its attacks, if it is installed; ``"auto"``: the closed form for affine models, else
            all of ours, and slopes of linear bounds where little is missing.
        box: Where changed inputs must lie, such as ``(0, 1)`` for images; X must lie in it.
        budget: Seconds.
        seed: Seed of random starts.

    Returns:
        ``.X``, ``.distance``, ``.success`` and ``.by`` with an entry for each input, X in the shape that
        was given. ``.exact`` says that no attack does better: that holds for affine models. With a
        radius or strength, an input that was not broken is changed to the best that was met; without one
        it stays, at an infinite distance.

    Raises:
        ValueError: If shapes, labels, radius, norm, method or box do not fit.

    Example:
        The class is the sign of x - 1; from 3 the boundary is 2 away:

        >>> from pindown import ReluNetwork
        >>> sign = ReluNetwork.from_layers([([[1.0]], [-1.0])])
        >>> attack(sign, [[3.0]], radius=1.5).success, attack(sign, [[3.0]], radius=2.5).success
        (array([False]), array([ True]))
        >>> found = attack(sign, [[3.0]])
        >>> found.X.round(5), found.distance.round(5), found.exact
        (array([[1.]]), array([2.]), True)
        >>> attack(sign, [[3.0]], strength=0.5).X  # the minimum of r^2 / 2 + (2 + r) / 2
        array([[2.5]])

    Goodfellow, Shlens and Szegedy 2015 (FGSM); Madry et al. 2018 (PGD); Moosavi-Dezfooli, Fawzi and
    Frossard 2016 (DeepFool); Carlini and Wagner 2017 (C&W); Pintor et al. 2021 (FMN); Lecture course,
    section on adversarial attacks.
    """
    deadline, kind = Deadline.of(budget), as_norm(norm)
    _check_method(method, radius, strength)
    read = classifier(as_differentiable(model, X, "attack"))
    asked = asked_of(read, X, y, target, box)
    if method == "foolbox":
        from pindown.probes.foolbox import beside_foolbox

        found = beside_foolbox(read, asked, kind, radius, seed=seed, deadline=deadline)
    elif method == "auto" and is_affine(read) and _is_own(asked):
        found = _closed_form(read, asked, kind, radius, strength, seed, deadline)
    else:
        found = searched(read, asked, kind, radius, strength, method, seed, deadline)
    shape = np.shape(X)
    return replace(found, X=found.X.reshape(shape)) if len(shape) > 2 else found


def _check_method(method: str, radius: ArrayLike | None, strength: float | None) -> None:
    if radius is not None and strength is not None:
        raise ValueError("give a radius or a strength, not both: they pose different problems.")
    choice("method", method, sorted({*NEAREST_METHODS, *RADIUS_METHODS}))
    for given, methods, words in (
        (radius, RADIUS_METHODS, "with a radius"),
        (strength, STRENGTH_METHODS, "with a strength"),
    ):
        if given is not None and method not in methods:
            raise ValueError(
                f"{method!r} looks for the smallest change; {words} use one of {', '.join(methods)}."
            )
    if radius is None and strength is None and method not in NEAREST_METHODS:
        raise ValueError(f"{method!r} needs a radius; without one use {', '.join(NEAREST_METHODS)}.")


def searched(
    model: Model,
    asked: Asked,
    norm: Any,
    radius: ArrayLike | None,
    strength: float | None,
    method: str,
    seed: int,
    deadline: Deadline,
) -> AttackResult:
    """Search for a change of one of the three kinds."""
    n = len(asked.rows)
    if strength is not None:
        prices = np.full(n, positive("strength", strength, zero=True))
        return regularised_attack(model, asked, norm, prices, seed=seed, deadline=deadline)
    if radius is None:
        return nearest_attack(
            model, asked.rows, asked.labels, norm=norm, target=asked.target, method=method,
            box=asked.box, seed=seed, deadline=deadline,
        )  # fmt: skip
    radii = as_radii(radius, n)
    if method == "fgsm":
        return gradient_sign(model, asked, Balls.around(asked.rows, radii, norm, asked.box))
    found = gradient_attack(
        model, asked.rows, asked.labels, radius=radii, norm=norm, target=asked.target,
        bounds=method == "auto", box=asked.box, seed=seed, deadline=deadline,
    )  # fmt: skip
    left = np.flatnonzero(~found.success)
    if method != "auto" or not len(left) or deadline.passed:
        return found
    left = np.sort(left[np.argsort(found.margin[left], kind="stable")[:ATTACK_AGAIN_ROWS]])
    few = asked.pick(left)  # some may come near the boundary on other ways
    more = nearest_attack(
        model, few.rows, few.labels, norm=norm, target=few.target, method="boundary", box=few.box,
        seed=seed, deadline=deadline,
    )  # fmt: skip
    hit = np.flatnonzero(more.distance <= radii[left])
    return _joined(found, more, left, hit)


def is_affine(model: Model) -> bool:
    """Return whether a model is made of affine operations alone.

    >>> from pindown.model.from_network import model_of_network
    >>> from pindown.network import ReluNetwork
    >>> is_affine(model_of_network(ReluNetwork.from_layers([([[2.0]], [1])])))
    True
    """
    return all(isinstance(operation, (AffineOperation, Move, Add)) for operation in model.operations)


def _is_own(asked: Asked) -> bool:
    """Return whether the classes to leave are those that the model gives; closed forms leave these."""
    return asked.target is not None or bool((asked.labels == np.argmax(asked.outputs, axis=1)).all())


def _closed_form(
    model: Model,
    asked: Asked,
    norm: Any,
    radius: ArrayLike | None,
    strength: float | None,
    seed: int,
    deadline: Deadline,
) -> AttackResult:
    """Return the solutions of an affine model; what leaves the box is searched for inside it."""
    W, b = (part.copy() for part in _affine_map(model))
    goals = [None] if asked.target is None else sorted(set(asked.target.tolist()))
    n, points = len(asked.rows), asked.rows.copy()
    radii = None if radius is None else as_radii(radius, n)
    for goal in goals:
        for reach in [None] if radii is None else sorted(set(radii.tolist())):
            own = np.ones(n, bool) if goal is None else asked.target == goal
            own = own if reach is None else own & (radii == reach)
            at = np.flatnonzero(own)
            if not len(at):
                continue
            rows = asked.rows[at]
            if reach is not None:
                made = linear_maximum_allowable_attack(W, b, rows, reach, target=goal, norm=norm)
            elif strength is not None:
                made = linear_regularised_attack(W, b, rows, strength, target=goal, norm=norm)
            else:
                made = linear_minimum_norm_attack(W, b, rows, target=goal, norm=norm)
            points[at] = np.where(np.isfinite(made.distance)[:, None], made.X, rows)
    inside = np.ones(n, bool) if asked.box is None else asked.box.contains(points)
    points[~inside] = asked.rows[~inside]
    found = judged(model, asked, points, norm, 1, ("the closed form of affine models",) * n)
    if radius is None and strength is None:
        found = replace(found, distance=np.where(found.success, found.distance, inf))
    if inside.all():
        return replace(found, exact=True)
    rest = np.flatnonzero(~inside)
    some = None if radii is None else radii[rest]
    more = searched(model, asked.pick(rest), norm, some, strength, "auto", seed, deadline)
    return _joined(found, more, rest, np.arange(len(rest)))


def _joined(found: AttackResult, more: AttackResult, rows: Classes, which: Classes) -> AttackResult:
    """Return results with some entries replaced: those ``which`` of the others, made for ``rows``."""
    by = list(found.by)
    for i in which.tolist():
        by[int(rows[i])] = more.by[i]
    columns = {name: getattr(found, name).copy() for name in ("X", "success", "distance", "margin")}
    for name, column in columns.items():
        column[rows[which]] = getattr(more, name)[which]
    used = found.n_gradients + more.n_gradients
    return replace(found, **columns, by=tuple(by), n_gradients=used)


def _affine_map(model: Model) -> tuple[Array, Array]:
    """Return weights (k, d) and offsets (k,) of an affine model."""
    net = model.relu_network()
    weight, bias = net.layers[0]
    return np.asarray(weight.toarray() if hasattr(weight, "toarray") else weight), bias
