"""How far training moved the weights from where they started."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from pindown.affine import Affine, Array, Matrix
from pindown.findings.finding import Cell, Finding, Quantity, Table
from pindown.findings.finding import Hypothesis as Condition
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import number_text, percent
from pindown.rounding import norm_up


@question(
    "BIAS-06",
    "Movement in training",
    group="why",
    needs=("initial",),
    about="How far the weights and biases of every layer moved in training, as a share of their length "
    "at the start.",
    cost=(0.1, 0),
    place=16,
)
def movement_in_training(subject: Subject) -> Finding:
    """Measure the distance of the weights from the initial ones."""
    net, initial = subject.net, subject.initial
    assert initial is not None
    pairs = list(zip(initial.layers, net.layers, strict=True))
    moved = [_length_of_difference(before, after) for before, after in pairs]
    start = [_length(before) for before, _ in pairs]
    whole, origin = math.hypot(*moved), math.hypot(*start)
    share = whole / origin if origin else (math.inf if whole else 0.0)
    shares = [m / s if s else (math.inf if m else 0.0) for m, s in zip(moved, start, strict=True)]
    most = max(range(len(shares)), key=shares.__getitem__)
    still = sum(1 for m in moved if m == 0.0)
    rows: list[tuple[Cell, ...]] = [
        (i, s, m, share_ if math.isfinite(share_) else None)
        for i, (s, m, share_) in enumerate(zip(start, moved, shares, strict=True), 1)
    ]
    return Finding(
        verdict=f"the weights moved by {_size(share)} of their length, most in layer {most + 1} "
        f"({_size(shares[most])})" + (f"; {still} of {len(moved)} layers did not move" if still else "")
        if whole
        else "no weight moved",
        number=Quantity(
            share, "exact", "%" if share <= 1 else "times", label="of the length at the start"
        ),
        hypotheses=(Condition("the network given as initial is where training started"),),
        reading="The Euclidean distance between all weights and biases before and after, over their "
        "length before. Small movement is a sign of lazy training, in which the network behaves like "
        "its linearisation at the start; BIAS-05 measures that on labelled data.",
        scale="Wide networks fit data while moving by a few per cent; narrow ones, small initial "
        "weights and long training move by more than the whole length.",
        table=Table(
            "Movement of every layer",
            ("layer", "length at the start", "distance moved", "share of the length"),
            tuple(rows),
        ),
        sentence=f"Training moved the weights by {_size(share)} of their length at the start."
        if whole
        else "Training moved no weight.",
    )


def _length(layer: Affine) -> float:
    return math.hypot(norm_up(_entries(layer.weight)), norm_up(layer.bias))


def _length_of_difference(before: Affine, after: Affine) -> float:
    difference = after.weight - before.weight
    return math.hypot(norm_up(_entries(difference)), norm_up(after.bias - before.bias))


def _entries(weight: Matrix) -> Array:
    return np.asarray(weight.data if sp.issparse(weight) else weight, dtype=np.float64)


def _size(share: float) -> str:
    if share == math.inf:
        return "more than the whole"
    return percent(share) if share <= 1 else f"{number_text(round(share, 1))} times"
