"""Parameters of the detector, checked, and the plan that follows from them and from the data.

Sizes follow one rule for all data sets, or are the source's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pindown.learn.one_class._inputs import InputScaling
from pindown.learn.one_class._negatives import IMAGE_KINDS
from pindown.learn.one_class._networks import Description
from pindown.learn.one_class.tuning import (
    BATCH,
    IMAGE_BATCH,
    IMAGE_RATE,
    IMAGE_REACH,
    IMAGE_STEPS,
    IMAGE_WEIGHT,
    INPUT_BOUND,
    MAX_LEARNED_WEIGHT,
    MAX_UNITS,
    MEMBERS,
    PRINTED_BATCH,
    PRINTED_EPOCHS,
    PRINTED_MEMBERS,
    PRINTED_RATE,
    PRINTED_WIDTH,
    RATE,
    VECTOR_REACH,
    VECTOR_STEPS,
    VECTOR_WEIGHT,
)
from pindown.validation import boolean, choice, integer, is_number, number, optional, positive, refuse

PRESETS = ("auto", "tabular", "image", "paper")
INGREDIENTS = ("density", "negatives", "generators", "comparator", "averaging", "bending")
CALIBRATIONS = ("auto", "split", "cross")
ABLATIONS = ("c", "h", "only_g_c", "only_g_h")


@dataclass(frozen=True)
class Plan:
    """What is going to be trained, and for how long.

    Attributes:
        printed: Whether the printed algorithm is used.
        membership: Description of c.
        comparator: Description of h (of its potential, unless printed).
        generator: Description of both generators.
        n_members: Networks c, and h, that are averaged.
        epochs: Epochs of each member.
        batch_size: Rows in a step.
        learning_rate: Learning rate of Adam.
        learned_weight: Weight of the networks' log-odds beside the density's.
        ingredients: Which parts take part.
        ablation: One of Table 2's, or None.
        symmetric: Whether h also learns that x is at least as good as its changed copy.
        expects: Share of the training rows that may be outliers.
    """

    printed: bool
    membership: Description
    comparator: Description
    generator: Description
    n_members: int
    epochs: int
    batch_size: int
    learning_rate: float
    learned_weight: float
    ingredients: frozenset[str] = field(default_factory=lambda: frozenset(INGREDIENTS))
    ablation: str | None = None
    symmetric: bool = True
    expects: float = 0.0

    def has(self, ingredient: str) -> bool:
        """Whether an ingredient takes part."""
        return ingredient in self.ingredients


def automatic_epochs(n: int, batch_size: int, is_image: bool) -> int:
    """Return how many epochs give about one step for each row, within limits.

    Example:
        >>> automatic_epochs(128, 128, False)  # 128 steps, one for each epoch
        128
    """
    least, most = IMAGE_STEPS if is_image else VECTOR_STEPS
    steps = min(max(n, least), most)
    return math.ceil(steps / math.ceil(n / batch_size))


def sizes(hidden: Any, default: Sequence[int]) -> list[int]:
    """Return the widths of the hidden layers: what was given, or the default.

    Raises:
        ValueError: If a width is not a positive integer.
    """
    if hidden is None:
        return list(default)
    given = list(hidden) if isinstance(hidden, Sequence | np.ndarray) else [hidden]
    for width in given:
        if isinstance(width, bool) or not hasattr(width, "__index__") or int(width) < 1:
            refuse("hidden", "integers of at least 1, one per layer", hidden)
    if not given:
        refuse("hidden", "the width of at least one layer", hidden)
    return [int(width) for width in given]


def networks_for(
    scaling: InputScaling, hidden: Any, printed: bool
) -> tuple[Description, Description, Description]:
    """Return the descriptions of c, of h and of a generator."""
    if printed and scaling.is_image:
        channels, width = scaling.shape[0], sizes(hidden, [PRINTED_WIDTH])[0]
        critic = {"kind": "paper critic", "channels": channels, "width": width}
        maker = {"kind": "paper generator", "channels": channels, "width": width}
        return critic, critic | {"channels": 2 * channels}, maker
    if printed:
        d = scaling.shape[0]
        outer, inner = (sizes(hidden, [512, 256]) * 2)[:2]
        critic = {"kind": "paper perceptron", "inputs": d, "hidden": [outer], "outputs": 1}
        maker = critic | {"hidden": [outer, inner, outer], "outputs": d}
        return critic, critic | {"inputs": 2 * d}, maker
    if scaling.is_image:
        widths = sizes(hidden, [16, 32, 64])
        net = {"kind": "convolutions", "shape": scaling.shape, "widths": widths, "hidden": 64}
        maker = {"kind": "image step", "channels": scaling.shape[0], "width": 8, "reach": IMAGE_REACH}
        return net | {"outputs": 2 + IMAGE_KINDS}, net | {"outputs": 1}, maker
    d = scaling.shape[0]
    width = 32 if d <= 8 else 64
    widths = sizes(hidden, [width, width])
    net = {"kind": "perceptron", "inputs": d, "hidden": widths, "outputs": 1, "bound": INPUT_BOUND}
    maker = {
        "kind": "vector step",
        "inputs": d,
        "hidden": widths[:1],
        "bound": INPUT_BOUND,
        "reach": VECTOR_REACH,
    }
    return net, net, maker


def default_epochs(n: int, batch_size: int, is_image: bool, printed: bool) -> int:
    """Return the epochs of a member if the user did not say."""
    return PRINTED_EPOCHS if printed else automatic_epochs(n, batch_size, is_image)


def check_parameters(detector: Any) -> None:
    """Refuse parameters that mean nothing.

    Raises:
        ValueError: Naming the parameter, what is accepted and what was given.
    """
    p = detector.get_params(deep=False)
    choice("preset", p["preset"], PRESETS)
    optional(choice, "ablation", p["ablation"], options=ABLATIONS)
    for name, least in (("n_estimators", 1), ("max_epochs", 0), ("batch_size", 2)):
        optional(integer, name, p[name], least=least)
    optional(positive, "learning_rate", p["learning_rate"])
    optional(number, "learned_weight", p["learned_weight"], low=0.0, high=MAX_LEARNED_WEIGHT)
    share = p["contamination"]
    if not (isinstance(share, str) and share == "auto") and not (is_number(share) and 0 < share <= 0.5):
        refuse("contamination", "'auto' or a number above 0 and at most 0.5", share)
    optional(boolean, "symmetric", p["symmetric"])
    optional(number, "expects", p["expects"], low=0.0, high=0.5, above=True)
    optional(choice, "calibration", p["calibration"], options=CALIBRATIONS)
    boolean("warm_start", p["warm_start"])
    if not isinstance(p["verbose"], bool | np.bool_):
        integer("verbose", p["verbose"], least=0)
    chosen_ingredients(p["ingredients"])


def chosen_ingredients(given: Any) -> frozenset[str]:
    """Return the ingredients that take part, all of them for None.

    Raises:
        ValueError: If one is unknown, or nothing is left that could tell members from others.
    """
    if given is None:
        return frozenset(INGREDIENTS)
    if isinstance(given, str) or not isinstance(given, Iterable):
        refuse("ingredients", "a collection of names", given)
    named = list(given)
    if not all(isinstance(name, str) and name in INGREDIENTS for name in named):
        refuse("ingredients", f"among {', '.join(INGREDIENTS)}", sorted(map(str, named)))
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


def plan_for(detector: Any, scaling: InputScaling, n: int) -> Plan:
    """Return what is going to be trained on n rows."""
    p = detector.get_params(deep=False)
    printed = p["preset"] == "paper"

    def chosen(name: str, ours: Any, source: Any) -> Any:
        return p[name] if p[name] is not None else (source if printed else ours)

    batch = int(chosen("batch_size", IMAGE_BATCH if scaling.is_image else BATCH, PRINTED_BATCH))
    epochs = p["max_epochs"]
    if epochs is None:
        epochs = default_epochs(n, batch, scaling.is_image, printed)
    most = MAX_UNITS // 2 if printed else MAX_UNITS  # the printed h takes two rows at once
    if not scaling.is_image and scaling.shape[0] > most:
        raise ValueError(
            f"X has {scaling.shape[0]:,} features; at most {most:,} are taken: reduce them first, "
            "by principal components for instance."
        )
    c, h, maker = networks_for(scaling, p["hidden"], printed)
    return Plan(
        printed=printed,
        membership=c,
        comparator=h,
        generator=maker,
        n_members=int(chosen("n_estimators", MEMBERS, PRINTED_MEMBERS)),
        epochs=int(epochs),
        batch_size=batch,
        learning_rate=float(
            chosen("learning_rate", IMAGE_RATE if scaling.is_image else RATE, PRINTED_RATE)
        ),
        learned_weight=float(
            chosen("learned_weight", IMAGE_WEIGHT if scaling.is_image else VECTOR_WEIGHT, 1.0)
        ),
        ingredients=frozenset({"generators", "comparator"})
        if printed
        else chosen_ingredients(p["ingredients"]),
        ablation=p["ablation"],
        symmetric=bool(chosen("symmetric", True, False)),
        expects=0.0 if printed or p["expects"] is None else float(p["expects"]),
    )
