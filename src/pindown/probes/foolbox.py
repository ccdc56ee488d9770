r"""Attacks of foolbox beside ours: the best input of another class that any of them finds.

Every attack gives an upper end of the distance to another class, so the smallest is the one to keep;
with a radius, whatever succeeds within it. foolbox is not needed for anything else here:
``pip install "pindown[bench]"``.

Rauber et al. 2020, "Foolbox Native: fast adversarial attacks to benchmark the robustness of machine
learning models".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.deadline import NEVER, Deadline
from pindown.model.gradients import gradients, outputs
from pindown.model.graph import Model
from pindown.probes.differentiable import as_differentiable
from pindown.probes.tuning import FOOLBOX_WIDER, MIN_FOOLBOX_WIDTH
from pindown.relaxation.lp_balls import Norm, as_norm, lengths, project
from pindown.validation import positive
from pindown.verification.classes import BoxLike, as_radii, classifier
from pindown.verification.counterexamples import Asked, AttackResult, asked_of, gradient_attack
from pindown.verification.shrinking_radii import nearest_attack

OURS = "ours"
# Those that minimise a norm, and those that stay within a radius; foolbox spells the maximum norm in two
# ways.
DEFAULT_ATTACKS: Mapping[Norm, tuple[str, ...]] = {
    "l1": ("L1FMNAttack",),
    "l2": ("L2FMNAttack", "L2DeepFoolAttack", "DDNAttack"),
    "linf": ("LInfFMNAttack", "LinfDeepFoolAttack"),
}
RADIUS_ATTACKS: Mapping[Norm, tuple[str, ...]] = {
    "l1": ("L1PGD", "L1FMNAttack"),
    "l2": ("L2PGD", "L2FMNAttack"),
    "linf": ("LinfPGD", "LInfFMNAttack"),
}


def foolbox_attack(
    model: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    norm: str = "l2",
    radius: float | None = None,
    target: ArrayLike | None = None,
    attacks: Sequence[str | Any] | None = None,
    box: BoxLike = None,
    seed: int = 0,
) -> AttackResult:
    """Attack with foolbox and with pindown, and keep the nearest input of another class.

    Args:
        model: What :func:`attack` takes.
        X: Inputs.
        y: Their classes; those that the model gives if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        radius: Largest length of a change; the smallest that is found if not given.
        target: The class to reach, for all inputs or for each; any other than y if not given.
        attacks: Names in ``foolbox.attacks``, or attacks made from them; by default fast minimum norm,
            DeepFool and the like for the norm, and projected gradient descent where there is a radius.
            With a target, those that take none are left out of the default.
        box: Where changed inputs must lie, such as ``(0, 1)``. foolbox takes one pair of numbers, so
            what it finds outside of other boxes is pulled in and tried again.
        seed: Seed of torch and of our attacks.

    Returns:
        The nearest inputs; ``by`` names the attack: one of foolbox or ``"ours"``, a second of one kind
        with a number behind its name; ``distances`` is what each found. Each success is one as float64
        evaluates the model.

    Raises:
        ImportError: If foolbox is not installed.
        ValueError: If shapes, norm, box or the name of an attack do not fit.

    Rauber et al. 2020; Pintor et al. 2021, "Fast minimum-norm adversarial attacks".
    """
    _library()
    read = classifier(as_differentiable(model, X, "foolbox_attack"))
    asked = asked_of(read, X, y, target, box)
    found = beside_foolbox(read, asked, as_norm(norm), radius, attacks, seed=seed)
    shape = np.shape(X)
    return replace(found, X=found.X.reshape(shape)) if len(shape) > 2 else found


def beside_foolbox(
    model: Model,
    asked: Asked,
    norm: Norm,
    radius: ArrayLike | None,
    attacks: Sequence[str | Any] | None = None,
    *,
    seed: int = 0,
    deadline: Deadline = NEVER,
) -> AttackResult:
    """Run ours and those of foolbox on what :func:`asked_of` made of a question."""
    library = _library()
    if not len(asked.rows):
        raise ValueError("X is empty; give at least one input.")
    reach = None if radius is None else positive("radius", np.asarray(radius).item(), zero=True)
    wanted = attacks
    if wanted is None:
        wanted = (DEFAULT_ATTACKS if reach is None else RADIUS_ATTACKS)[norm]
        wanted = [name for name in wanted if asked.target is None or "DeepFool" not in name]
    found = {OURS: _ours(model, asked, norm, reach, seed, deadline)}
    for attack in wanted:
        made = _attack(library, attack)
        plain = attack if isinstance(attack, str) else type(attack).__name__
        again = sum(name.split(" ")[0] == plain for name in found)
        name = f"{plain} {again + 1}" if again else plain  # two of one kind, with other settings
        if not deadline.passed:
            found[name] = _theirs(library, made, model, asked, norm, reach, seed)
    return _nearest(model, asked, norm, reach, found)


def _ours(
    model: Model, asked: Asked, norm: Norm, radius: float | None, seed: int, deadline: Deadline
) -> Array:
    options: dict[str, Any] = {"norm": norm, "target": asked.target, "box": asked.box, "seed": seed}
    if radius is None:
        return nearest_attack(model, asked.rows, asked.labels, deadline=deadline, **options).X
    return gradient_attack(
        model, asked.rows, asked.labels, radius=radius, deadline=deadline, **options
    ).X


def _nearest(
    model: Model, asked: Asked, norm: Norm, radius: float | None, found: Mapping[str, Array]
) -> AttackResult:
    """Keep of each input the nearest point that is reached, within the radius if there is one."""
    names, rows = list(found), asked.rows
    distances = {
        name: np.where(asked.reached(outputs(model, points)), lengths(points - rows, norm), math.inf)
        for name, points in found.items()
    }
    if radius is not None:  # as long as rounding can make what was projected onto the ball
        distances = {k: np.where(v <= radius * (1 + 1e-9), v, math.inf) for k, v in distances.items()}
    table = np.stack([distances[name] for name in names])
    best, nearest = np.argmin(table, axis=0), table.min(axis=0)
    hit = np.isfinite(nearest)
    points = np.stack([found[name] for name in names])[best, np.arange(len(rows))]
    kept = np.where(hit[:, None], points, rows if radius is None else found[OURS])
    length = np.where(hit, nearest, math.inf if radius is None else lengths(kept - rows, norm))
    by = tuple(names[i] if success else "" for i, success in zip(best, hit, strict=True))
    margin = asked.margins(outputs(model, kept))
    return AttackResult(kept, hit, length, margin, norm, by=by, distances=distances)


def _library() -> Any:
    try:
        return import_module("foolbox")
    except ImportError as error:
        raise ImportError(
            'these attacks need foolbox, which cannot be imported; pip install "pindown[bench]", or use '
            "attack with another method, or minimum_distance, which need nothing."
        ) from error


def _attack(library: Any, attack: str | Any) -> Any:
    if not isinstance(attack, str):
        return attack
    if not hasattr(library.attacks, attack):
        raise ValueError(f"foolbox.attacks has no {attack!r}; the defaults are {dict(DEFAULT_ATTACKS)}.")
    return getattr(library.attacks, attack)()


def _theirs(
    library: Any,
    attack: Any,
    model: Model,
    asked: Asked,
    norm: Norm,
    radius: float | None,
    seed: int,
) -> Array:
    """Return what an attack of foolbox finds; rows as they were where it finds nothing."""
    from pindown.extras import torch

    rows, box = asked.rows, asked.box
    if box is None:
        low, high = float(rows.min()), float(rows.max())
        more = FOOLBOX_WIDER * max(high - low, MIN_FOOLBOX_WIDTH)
        low, high = low - more, high + more
    else:
        low, high = float(box.lower.min()), float(box.upper.max())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        theirs = library.PyTorchModel(torch_module(model), bounds=(low, high), device="cpu")
        goals = asked.labels if asked.target is None else asked.target
        wanted: Any = torch.from_numpy(goals.astype(np.int64))
        if asked.target is not None:
            wanted = library.criteria.TargetedMisclassification(wanted)
        _, changed, _ = attack(theirs, torch.from_numpy(rows.copy()), wanted, epsilons=radius)
    points = np.asarray(changed.detach().cpu().numpy(), dtype=np.float64)
    points = np.where(np.isfinite(points), points, rows)
    if radius is not None:
        points = rows + project(points - rows, as_radii(radius, len(rows)), norm)
    return points if box is None else np.clip(points, box.lower, box.upper)


def torch_module(model: Model) -> Any:
    """Return a torch module of float64 rows that evaluates and differentiates a model."""
    from pindown.extras import torch

    class Evaluated(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, rows: Any) -> Any:
            ctx.save_for_backward(rows)
            return torch.from_numpy(outputs(model, rows.detach().numpy().astype(np.float64)))

        @staticmethod
        def backward(ctx: Any, *forms: Any) -> Any:
            (rows,) = ctx.saved_tensors
            form = forms[0].detach().numpy().astype(np.float64)
            points = rows.detach().numpy().astype(np.float64)
            slopes = gradients(model, points, lambda _, part: form[part])[1]
            return torch.from_numpy(slopes).to(rows.dtype)

    class Rows(torch.nn.Module):  # type: ignore[misc]
        def forward(self, rows: Any) -> Any:
            return Evaluated.apply(rows)

    return Rows().eval()
