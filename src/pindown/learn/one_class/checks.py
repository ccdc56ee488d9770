"""Parameters of the detector, checked, and the plan that follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pindown.learn.one_class.frame import Frame
from pindown.learn.one_class.networks import MOST_UNITS
from pindown.learn.one_class.presets import (
    ABLATIONS,
    INGREDIENTS,
    PRESETS,
    Plan,
    default_epochs,
    networks_for,
)
from pindown.validation import is_integer, is_number

_MEMBERS, _PRINTED_MEMBERS = 3, 1
_BATCH, _IMAGE_BATCH, _PRINTED_BATCH = 128, 64, 32
_RATE, _IMAGE_RATE, _PRINTED_RATE = 5e-3, 2e-3, 2e-4
_VECTOR_WEIGHT, _IMAGE_WEIGHT = 0.25, 0.25
_MOST_WEIGHT = 1e6  # beside it the density is rounding already; sums of more overflow


def check_parameters(detector: Any) -> None:
    """Refuse parameters that mean nothing.

    Raises:
        ValueError: Naming the parameter, what is accepted and what was given.
    """
    p = detector.get_params(deep=False)
    _one_of("preset", p["preset"], PRESETS)
    if p["ablation"] is not None:
        _one_of("ablation", p["ablation"], ABLATIONS)
    for name, least in (("n_estimators", 1), ("max_epochs", 0), ("batch_size", 2)):
        if p[name] is not None and not is_integer(p[name], least):
            raise ValueError(f"{name} must be an integer >= {least}, or None, got {p[name]!r}.")
    rate, weight = p["learning_rate"], p["learned_weight"]
    if rate is not None and not (is_number(rate) and rate > 0):
        raise ValueError(f"learning_rate must be a positive number, or None, got {rate!r}.")
    if weight is not None and not is_number(weight, 0, _MOST_WEIGHT):
        raise ValueError(
            f"learned_weight must be a number from 0 to {_MOST_WEIGHT:g}, or None, got {weight!r}."
        )
    share = p["contamination"]
    if not (isinstance(share, str) and share == "auto") and not (is_number(share) and 0 < share <= 0.5):
        raise ValueError(f"contamination must be 'auto' or in (0, 0.5], got {share!r}.")
    if p["symmetric"] is not None and not isinstance(p["symmetric"], bool | np.bool_):
        raise ValueError(f"symmetric must be True, False or None, got {p['symmetric']!r}.")
    if not isinstance(p["warm_start"], bool | np.bool_):
        raise ValueError(f"warm_start must be True or False, got {p['warm_start']!r}.")
    if not isinstance(p["verbose"], bool | np.bool_) and not is_integer(p["verbose"], 0):
        raise ValueError(f"verbose must be an integer >= 0, or a bool, got {p['verbose']!r}.")
    chosen_ingredients(p["ingredients"])


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")


def chosen_ingredients(given: Any) -> frozenset[str]:
    """Return the ingredients that take part, all of them for None.

    Raises:
        ValueError: If one is unknown, or nothing is left that could tell members from others.
    """
    if given is None:
        return frozenset(INGREDIENTS)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"ingredients must be a collection of names, got {given!r}.")
    named = list(given)
    if not all(isinstance(name, str) and name in INGREDIENTS for name in named):
        raise ValueError(
            f"ingredients must be among {', '.join(INGREDIENTS)}, got {sorted(map(str, named))}."
        )
    chosen = frozenset(named)
    if not chosen & {"density", "negatives", "generators"}:
        raise ValueError(
            "ingredients must include density, negatives or generators: "
            "without any of them nothing tells members from others."
        )
    return chosen


def check_goes_on(plan: Plan, earlier: Plan, n_earlier: int) -> None:
    """Refuse to go on with networks that are not those of the plan.

    Raises:
        ValueError: If their sizes differ, or there are more than the plan has.
    """
    same = (plan.membership, plan.comparator, plan.generator, plan.printed)
    if same != (earlier.membership, earlier.comparator, earlier.generator, earlier.printed):
        raise ValueError(
            "going on needs networks of the same sizes; keep preset and hidden, or fit anew."
        )
    if plan.n_members < n_earlier:
        raise ValueError(
            f"going on cannot take networks away: n_estimators is {plan.n_members}, "
            f"there are {n_earlier}; fit anew."
        )


def plan_for(detector: Any, frame: Frame, n: int) -> Plan:
    """Return what is going to be trained on n rows."""
    p = detector.get_params(deep=False)
    printed = p["preset"] == "paper"

    def chosen(name: str, ours: Any, source: Any) -> Any:
        return p[name] if p[name] is not None else (source if printed else ours)

    batch = int(chosen("batch_size", _IMAGE_BATCH if frame.is_image else _BATCH, _PRINTED_BATCH))
    epochs = p["max_epochs"]
    if epochs is None:
        epochs = default_epochs(n, batch, frame.is_image, printed)
    most = MOST_UNITS // 2 if printed else MOST_UNITS  # the printed h takes two rows at once
    if not frame.is_image and frame.shape[0] > most:
        raise ValueError(
            f"X has {frame.shape[0]:,} features, at most {most:,} are taken; reduce them first, "
            "by principal components for instance."
        )
    c, h, maker = networks_for(frame, p["hidden"], printed)
    return Plan(
        printed=printed,
        membership=c,
        comparator=h,
        generator=maker,
        n_members=int(chosen("n_estimators", _MEMBERS, _PRINTED_MEMBERS)),
        epochs=int(epochs),
        batch_size=batch,
        learning_rate=float(
            chosen("learning_rate", _IMAGE_RATE if frame.is_image else _RATE, _PRINTED_RATE)
        ),
        learned_weight=float(
            chosen("learned_weight", _IMAGE_WEIGHT if frame.is_image else _VECTOR_WEIGHT, 1.0)
        ),
        ingredients=frozenset({"generators", "comparator"})
        if printed
        else chosen_ingredients(p["ingredients"]),
        ablation=p["ablation"],
        symmetric=bool(chosen("symmetric", True, False)),
    )


def n_axes(X: Any) -> int:
    """Return how many axes X has; sparse matrices, which NumPy takes for numbers, know it themselves."""
    return int(X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim)


def flat(X: Any) -> Any:
    """Return images as rows and leave everything else as it is.

    Raises:
        ValueError: If values are masked: what lies under a mask would be taken for data.
    """
    if np.ma.is_masked(X):
        hidden = int(np.sum(X.mask))
        raise ValueError(f"X has {hidden:,} masked values; fill them, or leave their rows out.")
    if n_axes(X) in (3, 4):
        X = np.asarray(X)
        return X.reshape(len(X), math.prod(X.shape[1:]))
    return X
