r"""Attacks of foolbox beside ours: the nearest input of another class that any of them finds.

Every attack gives an upper end of the distance to another class, so the smallest is the one to keep.
foolbox is not needed for anything else here: ``pip install "pindown[bench]"``.

Rauber et al. 2020, "Foolbox Native: fast adversarial attacks to benchmark the robustness of machine
learning models".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.evidence import Kind
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.probes.tuning import FOOLBOX_WIDER, MIN_FOOLBOX_WIDTH
from pindown.relaxation.lp_balls import Norm, as_norm, lengths
from pindown.verification.classes import (
    BoxLike,
    Classes,
    as_inputs,
    as_targets,
    classifier,
    predicted,
)
from pindown.verification.shrinking_radii import nearest_attack

OURS = "ours"
# Those that minimise a norm; foolbox spells the maximum norm in two ways.
DEFAULT_ATTACKS: Mapping[Norm, tuple[str, ...]] = {
    "l1": ("L1FMNAttack",),
    "l2": ("L2FMNAttack", "L2DeepFoolAttack", "DDNAttack"),
    "linf": ("LInfFMNAttack", "LinfDeepFoolAttack"),
}


@dataclass(frozen=True, eq=False, repr=False)
class AttackComparison:
    """What several attacks found; the first axis counts inputs.

    Attributes:
        X: The nearest changed inputs, (n, d); the input itself where no attack succeeded.
        distance: Their distances in ``norm``, infinite where no attack succeeded, (n,).
        by: Which attack found each: a name of foolbox, ``"ours"``, or ``""``. A second attack of one
            kind has a number behind its name.
        distances: The distances that each attack found, by name.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        kind: ``"exact"``: each input has another class in float64. Nearer ones may exist.
    """

    X: Array
    distance: Array
    by: tuple[str, ...]
    distances: Mapping[str, Array] = field(default_factory=dict)
    norm: Norm = "l2"
    kind: Kind = "exact"

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether any attack succeeded, (n,)."""
        return np.isfinite(self.distance)

    def __repr__(self) -> str:
        n, hits = len(self.by), int(self.success.sum())
        if not hits:
            return f"AttackComparison(none of {n:,} inputs in {self.norm})"
        wins = {name: self.by.count(name) for name in self.distances}
        counts = ", ".join(f"{name} nearest on {wins[name]:,}" for name in wins)
        median = float(np.median(self.distance[self.success]))
        return (
            f"AttackComparison({hits:,} of {n:,} inputs in {self.norm}, median distance {median:.4g}; "
            f"{counts}; nearer ones may exist)"
        )


@on_network
def foolbox_attack(
    net: ReluNetwork | Any,
    X: ArrayLike,
    *,
    norm: str = "l2",
    target: ArrayLike | None = None,
    attacks: Sequence[str | Any] | None = None,
    box: BoxLike = None,
    seed: int = 0,
) -> AttackComparison:
    """Attack with foolbox and with pindown, and keep the nearest input of another class.

    Args:
        net: A :class:`ReluNetwork`, or a torch module that :meth:`ReluNetwork.from_torch` can read; one
            output means two classes by its sign. The classes to leave are those that it gives.
        X: Inputs (n, d), or one (d,).
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        target: The class to reach, for all inputs or for each; any other than the model's if not given.
        attacks: Names in ``foolbox.attacks``, or attacks made from them; by default fast minimum norm,
            DeepFool and the like for the norm. They should minimise a distance; with a target, those
            that take none are left out of the default.
        box: Where changed inputs must lie, such as ``(0, 1)``. foolbox takes one pair of numbers, so
            what it finds outside of other boxes is pulled in and tried again.
        seed: Seed of torch and of our attacks.

    Returns:
        The nearest inputs, by whom they were found, and what each attack found.

    Raises:
        ImportError: If foolbox is not installed.
        ValueError: If shapes, norm, box or the name of an attack do not fit.

    Rauber et al. 2020; Pintor et al. 2021, "Fast minimum-norm adversarial attacks".
    """
    library = _library()
    kind = as_norm(norm)
    shape = np.shape(X)[1:] or np.shape(X)
    given = net if isinstance(net, ReluNetwork) else ReluNetwork.from_torch(net, shape)
    deep = classifier(given)
    rows, limits = as_inputs(deep, np.reshape(X, (-1, deep.in_features)), box)
    if not len(rows):
        raise ValueError("X is empty; give at least one input.")
    labels = predicted(deep, rows)
    goals = None if target is None else as_targets(target, len(rows), deep.out_features)
    asked = attacks
    if asked is None:
        asked = [n for n in DEFAULT_ATTACKS[kind] if goals is None or "DeepFool" not in n]
    ours = nearest_attack(deep, rows, labels, norm=kind, target=goals, box=limits, seed=seed)
    found = {OURS: ours.X}
    for attack in asked:
        plain = attack if isinstance(attack, str) else type(attack).__name__
        again = sum(name.split(" ")[0] == plain for name in found)
        name = f"{plain} {again + 1}" if again else plain  # two of one kind, with other settings
        criterion = (labels, goals)
        found[name] = _theirs(library, _attack(library, attack), deep, rows, criterion, limits, seed)

    def reached(points: Array) -> NDArray[np.bool_]:
        classes = predicted(deep, points)
        return np.asarray(classes != labels if goals is None else classes == goals)

    distances = {
        name: np.where(reached(points), lengths(points - rows, kind), math.inf)
        for name, points in found.items()
    }
    names = list(found)
    table = np.stack([distances[name] for name in names])
    best = np.argmin(table, axis=0)
    nearest = table.min(axis=0)
    hit = np.isfinite(nearest)
    points = np.stack([found[name] for name in names])[best, np.arange(len(rows))]
    return AttackComparison(
        np.where(hit[:, None], points, rows),
        nearest,
        tuple(names[i] if success else "" for i, success in zip(best, hit, strict=True)),
        distances,
        kind,
    )


def _library() -> Any:
    try:
        return import_module("foolbox")
    except ImportError as error:
        raise ImportError(
            'these attacks need foolbox, which cannot be imported; pip install "pindown[bench]", or use '
            "minimum_distance, deepfool and gradient_attack, which need nothing."
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
    net: ReluNetwork,
    rows: Array,
    criterion: tuple[Classes, Classes | None],
    box: Box | None,
    seed: int,
) -> Array:
    """Return what an attack of foolbox finds; rows as they were where it finds nothing."""
    import torch

    if box is None:
        low, high = float(rows.min()), float(rows.max())
        more = FOOLBOX_WIDER * max(high - low, MIN_FOOLBOX_WIDTH)
        low, high = low - more, high + more
    else:
        low, high = float(box.lower.min()), float(box.upper.max())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = net.to_torch().eval()
        model = library.PyTorchModel(module, bounds=(low, high), device="cpu")
        inputs, (labels, goals) = torch.from_numpy(rows.copy()), criterion
        wanted: Any = torch.from_numpy((labels if goals is None else goals).astype(np.int64))
        if goals is not None:
            wanted = library.criteria.TargetedMisclassification(wanted)
        _, changed, _ = attack(model, inputs, wanted, epsilons=None)
    points = np.asarray(changed.detach().cpu().numpy(), dtype=np.float64)
    points = np.where(np.isfinite(points), points, rows)
    return points if box is None else np.clip(points, box.lower, box.upper)
