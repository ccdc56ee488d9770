"""One door to attacks on any model: another class within a radius, or as near as can be found."""

from __future__ import annotations

from math import inf

from numpy.typing import ArrayLike

from pindown.deadline import Deadline
from pindown.io.any_model import AnyModel
from pindown.validation import choice
from pindown.verification.classes import BoxLike
from pindown.verification.counterexamples import AttackResult, gradient_attack
from pindown.verification.shrinking_radii import nearest_attack

METHODS = ("auto", "gradient", "deepfool")


def attack(
    model: AnyModel,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "linf",
    radius: ArrayLike | None = None,
    target: ArrayLike | None = None,
    method: str = "auto",
    box: BoxLike = None,
    budget: float = inf,
    seed: int = 0,
) -> AttackResult:
    """Change inputs so that a model gives them another class, or a target.

    Args:
        model: A :class:`~pindown.model.Model`, or what can be read as one; one output means two classes
            by its sign.
        X: Inputs (n, d) or ``(n, *input_shape)``, or one of them.
        y: Their classes; those that the model gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``: how changes are measured.
        radius: Largest length of a change, for all inputs or for each; the smallest that is found if not
            given.
        target: The class to reach, for all inputs or for each; any other than y if not given.
        method: ``"gradient"``: descent by gradients and by linear bounds on shrinking boxes, from the
            input and from random points; ``"deepfool"``: steps to linearised boundaries, for the
            smallest change; ``"auto"``: both where both apply.
        box: Where changed inputs must lie, such as ``(0, 1)`` for images; X must lie in it.
        budget: Seconds.
        seed: Of random starts.

    Returns:
        ``.X``, ``.distance``, ``.success`` and ``.by`` with an entry for each input. With a radius, an
        input that was not broken is changed to where its margin is smallest; without one it stays, at an
        infinite distance.

    Raises:
        ValueError: If shapes, labels, radius, norm, method or box do not fit.

    Example:
        The class is the sign of x - 1; from 3 the boundary is 2 away:

        >>> from pindown import ReluNetwork
        >>> sign = ReluNetwork.from_layers([([[1.0]], [-1.0])])
        >>> attack(sign, [[3.0]], radius=1.5).success, attack(sign, [[3.0]], radius=2.5).success
        (array([False]), array([ True]))
        >>> found = attack(sign, [[3.0]])
        >>> found.X.round(6), found.distance.round(6)
        (array([[1.]]), array([2.]))

    Madry et al. 2018, "Towards deep learning models resistant to adversarial attacks"; Moosavi-Dezfooli,
    Fawzi and Frossard 2016, "DeepFool".
    """
    choice("method", method, METHODS)
    deadline = Deadline.of(budget)
    if radius is None:
        return nearest_attack(
            model, X, y, norm=norm, target=target, method=method, box=box, seed=seed, deadline=deadline
        )
    if method == "deepfool":
        raise ValueError("deepfool looks for the smallest change; leave radius out, or use 'gradient'.")
    return gradient_attack(
        model, X, y, radius=radius, norm=norm, target=target, box=box, seed=seed, deadline=deadline
    )
