"""The tangent kernel on the data: how well it fits the targets, and whether training moved it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array, dense
from pindown.bias.kernel import empirical_ntk, kernel_alignment, kernel_distance, target_alignment
from pindown.bias.kernel.regime import LAZY, RICH
from pindown.findings.bias_setting import Setting, read_setting
from pindown.findings.deadline import NotApplicable
from pindown.findings.finding import Finding, Hypothesis, Quantity, Table
from pindown.findings.registry import question
from pindown.findings.subject import Subject
from pindown.findings.wording import number_text, percent
from pindown.network import ReluNetwork

_MOST_ROWS = 256
_DRAWS = 3  # of fresh networks for the scale
_SECONDS_PER_STEP = 4e-10  # of one multiply-add of a product of matrices


@question(
    "BIAS-05",
    "Tangent kernel",
    group="why",
    needs=("labels", "relus"),
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
    rows = setting.some(rng, _MOST_ROWS)
    per_kernel = len(rows) * net.n_parameters + 2 * len(rows) ** 2 * sum(net.widths)
    subject.require(_SECONDS_PER_STEP * net.out_features * per_kernel * (_DRAWS + 2))
    X, y = setting.X[rows], _columns(setting, rows)
    if (y == y[0]).all():
        raise NotApplicable("no kernel can be aligned with targets that are all the same")
    try:
        K = empirical_ntk(net, X)
        fresh = [empirical_ntk(_fresh(net, rng), X) for _ in range(_DRAWS)]
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
            Hypothesis(f"kernel over all weights and biases on {len(rows):,} rows", "checked"),
            Hypothesis("fresh networks have Gaussian weights of variance 2 / inputs and no biases"),
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


def _regime(drift: _Drift | None) -> tuple[str, Hypothesis]:
    if drift is None:
        return (
            "lazy or rich cannot be said without the weights before training",
            Hypothesis("lazy or rich: not checked, for the weights before training were not given"),
        )
    change = drift[0]
    name = "lazy" if change < LAZY else "rich" if change > RICH else "between lazy and rich"
    return (
        f"{name}: the kernel moved by {_size(change)} of its size, the weights by {_size(drift[2])}",
        Hypothesis("the weights before training were given", "checked"),
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
