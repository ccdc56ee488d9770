"""Sizes that follow from the data: one rule for all data sets, and the source's own sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pindown.learn.one_class.frame import Frame
from pindown.learn.one_class.negatives import IMAGE_KINDS
from pindown.learn.one_class.networks import Description

PRESETS = ("auto", "tabular", "image", "paper")
INGREDIENTS = ("density", "negatives", "generators", "comparator", "averaging", "bending")
ABLATIONS = ("c", "h", "only_g_c", "only_g_h")

BOUND = 8.0  # standard deviations at which a feature is held: beyond it nothing was ever seen
_VECTOR_STEPS = (60, 300)  # gradient steps of one member, least and most
_IMAGE_STEPS = (40, 300)
_PAPER_EPOCHS = 12
_PAPER_WIDTH = 16  # the source's DCGAN has 64; a quarter of it trains on a processor
_REACH = 1.0  # of a generator of vectors, in standard deviations of each feature
_IMAGE_REACH = 0.5  # of a generator of images, in ranges of the pixels


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
        learning_rate: Of Adam.
        learned_weight: Weight of the networks' log-odds beside the density's.
        ingredients: Which parts take part.
        ablation: One of Table 2's, or None.
        symmetric: Whether h also learns that x is at least as good as its changed copy.
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

    def has(self, ingredient: str) -> bool:
        """Whether an ingredient takes part."""
        return ingredient in self.ingredients


def automatic_epochs(n: int, batch_size: int, is_image: bool) -> int:
    """Return how many epochs give about one step for each row, within limits.

    Example:
        >>> automatic_epochs(128, 128, False)  # 128 steps, one for each epoch
        128
    """
    least, most = _IMAGE_STEPS if is_image else _VECTOR_STEPS
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
            raise ValueError(f"hidden must be positive integers (one per layer), got {hidden!r}.")
    if not given:
        raise ValueError("hidden must name at least one layer's width, got an empty sequence.")
    return [int(width) for width in given]


def networks_for(
    frame: Frame, hidden: Any, printed: bool
) -> tuple[Description, Description, Description]:
    """Return the descriptions of c, of h and of a generator."""
    if printed and frame.is_image:
        channels, width = frame.shape[0], sizes(hidden, [_PAPER_WIDTH])[0]
        critic = {"kind": "paper critic", "channels": channels, "width": width}
        maker = {"kind": "paper generator", "channels": channels, "width": width}
        return critic, critic | {"channels": 2 * channels}, maker
    if printed:
        d = frame.shape[0]
        outer, inner = (sizes(hidden, [512, 256]) * 2)[:2]
        critic = {"kind": "paper perceptron", "inputs": d, "hidden": [outer], "outputs": 1}
        maker = critic | {"hidden": [outer, inner, outer], "outputs": d}
        return critic, critic | {"inputs": 2 * d}, maker
    if frame.is_image:
        widths = sizes(hidden, [16, 32, 64])
        net = {"kind": "convolutions", "shape": frame.shape, "widths": widths, "hidden": 64}
        maker = {"kind": "image step", "channels": frame.shape[0], "width": 8, "reach": _IMAGE_REACH}
        return net | {"outputs": 2 + IMAGE_KINDS}, net | {"outputs": 1}, maker
    d = frame.shape[0]
    width = 32 if d <= 8 else 64
    widths = sizes(hidden, [width, width])
    net = {"kind": "perceptron", "inputs": d, "hidden": widths, "outputs": 1, "bound": BOUND}
    maker = {"kind": "vector step", "inputs": d, "hidden": widths[:1], "bound": BOUND, "reach": _REACH}
    return net, net, maker


def default_epochs(n: int, batch_size: int, is_image: bool, printed: bool) -> int:
    """Return the epochs of a member if the user did not say."""
    return _PAPER_EPOCHS if printed else automatic_epochs(n, batch_size, is_image)
