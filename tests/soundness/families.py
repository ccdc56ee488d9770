"""Small networks that are hard for float64, in families, with boxes and second networks to match."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from pindown.box import Box
from pindown.network import ReluNetwork
from tests.soundness.cases import Case

SMALLEST, LARGEST = 5e-324, 1.7e308


def make_case(seed: int, index: int) -> Case:
    """Draw case ``index`` of a seed; families take turns."""
    rng = np.random.default_rng([seed, index])
    turn, number = divmod(index, len(FAMILIES))
    family = list(FAMILIES)[number]
    d = int(rng.choice([1, 1, 1, 2, 3]))
    k = int(rng.choice([1, 2, 2, 3]))
    with np.errstate(all="ignore"):
        layers = [(_finite(W), _finite(b)) for W, b in FAMILIES[family](rng, d, k)]
        net = ReluNetwork.from_layers(layers)
        box = _box(rng, net)
        return Case(family, seed, index, turn, net, box, _point(rng, box), _second(rng, net))


def _finite(values):
    if sp.issparse(values):
        return values
    return np.clip(np.nan_to_num(np.asarray(values, dtype=float)), -LARGEST, LARGEST)


# ---------------------------------------------------------------------- networks


def _widths(rng, d, k):
    return [d, *rng.integers(1, 6, size=rng.integers(1, 4)), k]


def _gaussian(rng, d, k, widths=None):
    return [
        (rng.normal(size=(m, n)), rng.normal(size=m) * rng.choice([0, 0.3, 1]))
        for n, m in pairwise(widths or _widths(rng, d, k))
    ]


def _scaled(low, high):
    def make(rng, d, k):
        return [
            (W * 10.0 ** rng.uniform(low, high), b * 10.0 ** rng.uniform(low, high))
            for W, b in _gaussian(rng, d, k)
        ]

    return make


def _mixed_units(rng, d, k):
    """Every weight has a scale of its own, from 1e-30 to 1e30."""
    return [
        (W * 10.0 ** rng.uniform(-30, 30, W.shape), b * 10.0 ** rng.uniform(-30, 30, b.shape))
        for W, b in _gaussian(rng, d, k)
    ]


def _rescaled_units(rng, d, k):
    """An ordinary function whose units are scaled by 1e-30 to 1e30 and back."""
    layers, before = [], np.ones(d)
    for W, b in _gaussian(rng, d, k):
        scale = 10.0 ** rng.uniform(-30, 30, len(b))
        layers.append((W * scale[:, None] / before, b * scale))
        before = scale
    W, b = layers[-1]
    layers[-1] = W / before[:, None], b / before
    return layers


def _cancelling(rng, d, k):
    """Two copies of each unit of the first layer, weighted S and -(S - 1)."""
    (W, b), *rest = _gaussian(rng, d, k)
    V, c = rest[0]
    S = 10.0 ** rng.integers(3, 18)
    return [(np.vstack([W, W]), np.concatenate([b, b])), (np.hstack([S * V, (1 - S) * V]), c), *rest[1:]]


def _near_folds(rng, d, k):
    """Folds that almost coincide, and differences of them blown up."""
    gap = 10.0 ** rng.integers(-15, -7)
    (W, b), *rest = _gaussian(rng, d, k)
    V, c = rest[0]
    tilt = W * (1 + gap * rng.choice([0, 1])) if rng.random() < 0.5 else W
    V = V * rng.choice([1.0, 1 / gap])
    return [(np.vstack([W, tilt]), np.concatenate([b, b - gap])), (np.hstack([V, -V]), c), *rest[1:]]


def _one_ulp(rng, d, k):
    """Copies of units that differ in the last place, subtracted from each other."""
    (W, b), *rest = _gaussian(rng, d, k)
    V, c = rest[0]
    factor = 2.0 ** rng.integers(0, 54)
    copy = np.nextafter(W, rng.choice([-np.inf, np.inf], W.shape)), np.nextafter(b, np.inf)
    return [
        (np.vstack([W, copy[0]]), np.concatenate([b, copy[1]])),
        (np.hstack([V, -V]) * factor, c),
        *rest[1:],
    ]


def _denormal(rng, d, k):
    layers = _gaussian(rng, d, k)
    for W, b in layers:
        chosen = rng.random(W.shape) < 0.4
        W[chosen] *= 10.0 ** rng.uniform(-323, -300)
        b[:] *= rng.choice([1.0, 1e-310, 0.0])
    W, b = layers[rng.integers(len(layers))]
    W[rng.random(W.shape) < 0.3] = SMALLEST
    return layers


def _duplicates(rng, d, k):
    layers = _gaussian(rng, d, k)
    for (W, b), (V, _) in pairwise(layers):
        rows = rng.integers(0, len(b), len(b))
        factor = rng.choice([1.0, 1.0, 2.0, 3.0], len(b))
        W[:], b[:] = W[rows] * factor[:, None], b[rows] * factor
        if rng.random() < 0.5:
            V[:, -1] = -V[:, :-1].sum(axis=1)
    return layers


def _opposite(rng, d, k):
    """Pairs relu(z), relu(-z): absolute values and linear parts."""
    layers = []
    for i, (W, b) in enumerate(_gaussian(rng, d, k)):
        V = np.hstack([W, rng.choice([-1, 1], len(b))[:, None] * W]) if i else W
        layers.append((V, b))
    return [(np.vstack([W, -W]), np.concatenate([b, -b])) for W, b in layers[:-1]] + [layers[-1]]


def _dead(rng, d, k):
    layers = _gaussian(rng, d, k)
    for W, b in layers[:-1]:
        for i in range(len(b)):
            kind = rng.integers(4)
            if kind == 0:
                b[i] = -1e3
            elif kind == 1:
                W[i], b[i] = 0, rng.choice([0, 0, -1, 1])
    return layers


def _huge_biases(rng, d, k):
    layers = _gaussian(rng, d, k)
    for _, b in layers:
        b[rng.random(len(b)) < 0.5] += rng.choice([-1, 1]) * 10.0 ** rng.integers(6, 20)
    if rng.random() < 0.5:  # and taken off again
        layers[-1][1][:] -= np.nan_to_num(ReluNetwork.from_layers(layers)(np.zeros(d)))
    return layers


def _integers(rng, d, k):
    return [
        (rng.integers(-2, 3, W.shape).astype(float), rng.integers(-2, 3, b.shape).astype(float))
        for W, b in _gaussian(rng, d, k)
    ]


def _deep(rng, d, k):
    widths = [d, *rng.integers(1, 4, size=rng.integers(5, 11)), k]
    return [(W * rng.uniform(0.8, 2), np.abs(b) * 0.5) for W, b in _gaussian(rng, d, k, widths)]


def _zeros(rng, d, k):
    layers = _gaussian(rng, d, k)
    for W, b in layers:
        if rng.random() < 0.4:
            W[:] = 0
        if rng.random() < 0.4:
            b[:] = 0
        W[rng.random(W.shape) < 0.5] = 0
    return layers


def _sparse(rng, d, k):
    layers = _gaussian(rng, d, k)
    for W, _ in layers:
        W[rng.random(W.shape) < 0.6] = 0
    return [(sp.csr_array(W) if rng.random() < 0.8 else W, b) for W, b in layers]


def _affine(rng, d, k):
    return [(rng.normal(size=(k, d)) * 10.0 ** rng.integers(-30, 31), rng.normal(size=k))]


def _through_corners(rng, d, k):
    """Folds through points of a coarse grid: many meet there, and on the sides of the box."""
    layers = [(np.round(W * 4) / 4, np.round(b * 4) / 4) for W, b in _gaussian(rng, d, k)]
    W, b = layers[0]
    b[:] = -np.einsum("ij,ij->i", W, rng.choice([-1.0, 0.0, 1.0], W.shape))
    return layers


def _flat_offset(rng, d, k):
    """Something small on top of something large."""
    layers = _gaussian(rng, d, k)
    W, b = layers[-1]
    layers[-1] = W * 10.0 ** -rng.integers(0, 20), b + 10.0 ** rng.integers(0, 17)
    return layers


def _float32(rng, d, k):
    return [
        (W.astype(np.float32).astype(float), b.astype(np.float32).astype(float))
        for W, b in _gaussian(rng, d, k)
    ]


def _near_ties(rng, d, k):
    """Outputs that differ by the last places of their common part."""
    *layers, (W, b) = _gaussian(rng, d, k)
    size = 10.0 ** rng.integers(-17, -8)
    base, shift = rng.normal(size=W.shape[1]), rng.normal()
    return [*layers, (base + size * W, shift + size * b * rng.choice([0, 1]))]


def _overflowing(rng, d, k):
    return [
        (W * 10.0 ** rng.uniform(60, 300), b * 10.0 ** rng.uniform(0, 300))
        for W, b in _gaussian(rng, d, k)
    ]


FAMILIES = {
    "plain": _gaussian,
    "float32": _float32,
    "tiny": _scaled(-30, -5),
    "huge": _scaled(5, 30),
    "mixed weights": _mixed_units,
    "rescaled units": _rescaled_units,
    "mixed layers": _scaled(-30, 30),
    "cancelling": _cancelling,
    "near folds": _near_folds,
    "one ulp apart": _one_ulp,
    "denormal": _denormal,
    "duplicates": _duplicates,
    "opposite pairs": _opposite,
    "dead units": _dead,
    "huge biases": _huge_biases,
    "integers": _integers,
    "deep narrow": _deep,
    "zeros": _zeros,
    "sparse": _sparse,
    "affine": _affine,
    "through corners": _through_corners,
    "flat offset": _flat_offset,
    "near ties": _near_ties,
    "overflowing": _overflowing,
}


# ---------------------------------------------------------------------- boxes and points


def _box(rng, net) -> Box:
    d = net.in_features
    kind = rng.choice(
        [
            "unit",
            "unit",
            "folds",
            "folds",
            "huge",
            "point",
            "flat",
            "tiny",
            "ulps",
            "far",
            "denormal",
            "mixed",
        ]
    )
    middle, radius = np.zeros(d), np.ones(d)
    if kind == "folds":  # where the first layer has its folds
        W, b = net.layers[0]
        dense = W.toarray() if sp.issparse(W) else W
        sizes = np.abs(b) / np.maximum(np.abs(dense).max(axis=1), SMALLEST)
        sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
        radius = radius * (min(2 * rng.choice(sizes), 1e200) if len(sizes) else 1.0)
    elif kind == "huge":
        radius *= 10.0 ** rng.uniform(6, 30)
    elif kind == "point":
        middle, radius = rng.normal(size=d) * 10.0 ** rng.integers(-3, 4), np.zeros(d)
    elif kind == "flat":
        middle, radius = rng.normal(size=d), np.where(rng.random(d) < 0.5, 0.0, 1.0)
    elif kind == "tiny":
        middle, radius = rng.normal(size=d), radius * 10.0 ** rng.uniform(-15, -5)
    elif kind == "ulps":
        middle = rng.normal(size=d)
        upper = middle
        for _ in range(rng.integers(1, 5)):
            upper = np.nextafter(upper, np.inf)
        return Box(middle, upper)
    elif kind == "far":
        middle = rng.normal(size=d) * 10.0 ** rng.uniform(4, 17)
    elif kind == "denormal":
        radius = radius * 10.0 ** rng.uniform(-323, -305)
    elif kind == "mixed":
        radius = 10.0 ** rng.uniform(-12, 12, d)
    return Box(middle - radius * rng.uniform(0.1, 1, d), middle + radius * rng.uniform(0.1, 1, d))


def _point(rng, box: Box):
    kind = rng.integers(4)
    if kind == 0:
        return np.where(rng.random(box.dim) < 0.5, box.lower, box.upper)
    return box.center if kind == 1 else box.sample(1, rng)[0]


# ---------------------------------------------------------------------- second networks


def _second(rng, net) -> ReluNetwork:
    """Return the same function, nearly the same, or another one."""
    kind = rng.choice(["copy", "ulp", "perturbed", "moved", "rescaled", "padded", "shifted", "other"])
    layers = [(W.toarray() if sp.issparse(W) else W.copy(), b.copy()) for W, b in net.layers]
    if kind == "ulp":
        W, b = layers[rng.integers(len(layers))]
        part = W if rng.random() < 0.5 else b
        at = tuple(rng.integers(0, n) for n in part.shape)
        part[at] = np.nextafter(part[at], rng.choice([-np.inf, np.inf]))
    elif kind == "perturbed":
        size = 10.0 ** rng.integers(-17, 0)
        layers = [
            (W * (1 + size * rng.normal(size=W.shape)), b * (1 + size * rng.normal(size=b.shape)))
            for W, b in layers
        ]
    elif kind in ("moved", "rescaled"):
        layers = _symmetric(rng, layers, powers=kind == "moved")
    elif kind == "padded" and len(layers) > 1:
        (W, b), (V, c), *rest = layers
        S = 10.0 ** rng.integers(-3, 17)
        extra = rng.normal(size=(1, W.shape[1]))
        at = rng.normal()
        out = np.vstack([V.T, np.full(len(c), S), np.full(len(c), -S)]).T
        layers = [(np.vstack([W, extra, extra]), np.concatenate([b, [at, at]])), (out, c), *rest]
    elif kind == "shifted":
        W, b = layers[-1]
        layers[-1] = W, b + 10.0 ** rng.integers(-12, 1)
    elif kind == "other":
        layers = _gaussian(rng, net.in_features, net.out_features)
    return ReluNetwork.from_layers([(_finite(W), _finite(b)) for W, b in layers])


def _symmetric(rng, layers, *, powers):
    moved, before, order = [], np.ones(layers[0][0].shape[1]), np.arange(layers[0][0].shape[1])
    for i, (W, b) in enumerate(layers):
        last = i == len(layers) - 1
        rows = np.arange(len(b)) if last else rng.permutation(len(b))
        scale = np.ones(len(b)) if last else np.exp(rng.normal(size=len(b)))
        if powers and not last:
            scale = 2.0 ** rng.integers(-3, 4, len(b))
        moved.append(((W[:, order] / before)[rows] * scale[:, None], b[rows] * scale))
        before, order = scale, rows
    return moved
