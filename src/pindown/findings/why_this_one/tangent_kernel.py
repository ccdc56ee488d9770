"""Lazy or rich: how far training moved the tangent kernel and the weights.

The kernel is that on the data, and stands beside the targets and beside kernels of fresh networks.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Affine, Array, Matrix, dense
from pindown.bias.tangent_kernel import (
    empirical_ntk,
    kernel_alignment,
    kernel_distance,
    target_alignment,
)
from pindown.bias.tuning import LAZY, RICH
from pindown.evidence import Assumption
from pindown.findings.finding import Entry, Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.subject import Subject
from pindown.findings.tuning import FRESH_KERNELS, MAX_TANGENT_ROWS, TANGENT_SECONDS_PER_STEP
from pindown.findings.why_this_one.training_theorems import Setting, read_setting
from pindown.findings.wording import number_text, percent
from pindown.network import ReluNetwork
from pindown.rounding import norm_up


@question(
    "BIAS-05",
    "Tangent kernel",
    group="why",
    needs=("labels", "exact", "relus"),
    about="How well the tangent kernel fits the targets beside that of fresh networks of the same "
    "shape, and, where the weights before training are given, whether training was lazy or rich.",
    cost=(0.5, 0),
)
def tangent_kernel(subject: Subject) -> Finding:
    """Compare the tangent kernel with the targets, fresh networks and the network before training."""
    setting = read_setting(subject)
    net = setting.net
    if not setting.dense:
        raise NotApplicable(
            "a layer is stored sparse, as unrolled convolutions are, and which of its weights are "
            "shared is not known; pindown.bias.empirical_ntk takes the torch module"
        )
    rng = subject.rng("BIAS-05")
    rows = setting.some(rng, MAX_TANGENT_ROWS)
    per_kernel = len(rows) * net.n_parameters + 2 * len(rows) ** 2 * sum(net.widths)
    subject.require(TANGENT_SECONDS_PER_STEP * net.out_features * per_kernel * (FRESH_KERNELS + 2))
    X, y = setting.X[rows], _columns(setting, rows)
    if (y == y[0]).all():
        raise NotApplicable("no kernel can be aligned with targets that are all the same")
    try:
        K = empirical_ntk(net, X)
        fresh = [empirical_ntk(_fresh(net, rng), X) for _ in range(FRESH_KERNELS)]
        drift = None if subject.initial is None else _drift(subject.initial, net, X, K)
    except ValueError:  # rows and weights are finite, so it is their products that are not
        raise NotApplicable("the tangent kernel overflows float64 on this data") from None
    fit, usual = target_alignment(K, y), float(np.mean([target_alignment(F, y) for F in fresh]))
    near = float(np.mean([kernel_alignment(K, F) for F in fresh]))
    among = float(np.mean([kernel_alignment(fresh[0], F) for F in fresh[1:]]))
    told, regime = _regime(drift)
    drawn = len(rows) < setting.n
    return Finding(
        verdict=f"{told}; target alignment {number_text(fit)} (fresh networks {number_text(usual)})",
        number=Quantity(
            fit,
            "estimate" if drawn else "exact",
            n=len(rows) if drawn else None,
            label="alignment with the targets",
        ),
        hypotheses=(
            regime,
            Assumption(f"kernel over all weights and biases on {len(rows):,} rows", "checked"),
            Assumption("fresh networks have Gaussian weights of variance 2 / inputs and no biases"),
            setting.trained_on,
        ),
        reading="The tangent kernel says which outputs move together in a step of training. If it "
        "stayed what it was at the start (lazy training), the network is a kernel machine with that "
        "kernel; if it turned towards the targets (rich training), the network has learned features. "
        "Alignment is the cosine between two kernel matrices, with their means taken out.",
        scale=f"1 is a kernel made for these targets. Kernels of fresh networks of this shape align "
        f"{number_text(among)} with each other and {number_text(near)} with this one.",
        table=_table(fit, usual, near, among, drift),
    )


def _columns(setting: Setting, rows: NDArray[np.intp]) -> Array:
    values = setting.targets.values[rows]
    if not setting.targets.is_classification:
        return np.asarray(values, dtype=np.float64)
    if setting.one_output:
        return np.where(values == 1, 1.0, -1.0)[:, None]
    return np.eye(setting.net.out_features)[values]


def _fresh(net: ReluNetwork, rng: np.random.Generator) -> ReluNetwork:
    return ReluNetwork.from_layers(
        [
            (np.sqrt(2 / W.shape[1]) * rng.standard_normal(W.shape), np.zeros(W.shape[0]))
            for W, _ in net.layers
        ]
    )


class _Drift(tuple[float, float, float]):
    """Change of the kernel, its alignment with the start, and movement of the weights."""


def _drift(initial: ReluNetwork, net: ReluNetwork, X: Array, K: Array) -> _Drift:
    whole = ReluNetwork.from_layers([(dense(W), b) for W, b in initial.layers])
    before = empirical_ntk(whole, X)
    squares = moved = 0.0
    for (W, b), (V, c) in zip(initial.layers, net.layers, strict=True):
        squares += float(np.sum(dense(W) ** 2) + b @ b)
        moved += float(np.sum((dense(V) - dense(W)) ** 2) + (c - b) @ (c - b))
    movement = float(np.sqrt(moved / squares)) if squares else (float("inf") if moved else 0.0)
    return _Drift((kernel_distance(before, K), kernel_alignment(before, K), movement))


def _regime(drift: _Drift | None) -> tuple[str, Assumption]:
    if drift is None:
        return (
            "lazy or rich cannot be said without the weights before training",
            Assumption("lazy or rich: not checked, for the weights before training were not given"),
        )
    change = drift[0]
    name = "lazy" if change < LAZY else "rich" if change > RICH else "between lazy and rich"
    return (
        f"{name}: the kernel moved by {_size(change)} of its size, the weights by {_size(drift[2])}",
        Assumption("the weights before training were given", "checked"),
    )


def _size(share: float) -> str:
    return percent(share) if share <= 1 else f"{number_text(round(share, 1))} times"


def _table(fit: float, usual: float, near: float, among: float, drift: _Drift | None) -> Table:
    rows = [
        ("alignment with the targets", fit),
        ("of fresh networks with the targets", usual),
        ("with fresh networks", near),
        ("of fresh networks with each other", among),
    ]
    if drift is not None:
        rows += [
            ("relative change since the start", drift[0]),
            ("alignment with the kernel at the start", drift[1]),
            ("relative movement of the weights", drift[2]),
        ]
    return Table("Alignments of the tangent kernel", ("what", "value"), tuple(rows))


@question(
    "BIAS-06",
    "Movement in training",
    group="why",
    needs=("initial", "exact"),
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
    rows: list[tuple[Entry, ...]] = [
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
        hypotheses=(Assumption("the network given as initial is where training started"),),
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
