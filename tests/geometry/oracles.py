"""Networks with known or awkward cells, and slow independent ways to find the cells of any network."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog

from pindown.box import Box
from pindown.network import ReluNetwork

KINDS = (
    "zero_bias",
    "duplicate",
    "opposite",
    "dead",
    "integer",
    "parallel",
    "handmade",
    "zero_row_deep",
    "through_corner",
    "scaled",
)

# Cells thinner than this are left out by the linear programs: HiGHS itself is right to 1e-7.
_THIN = 1e-6


def reference_network(widths, seed) -> ReluNetwork:
    """The random networks of the published comparison: float32 weights, so every tool sees the same."""
    rng = np.random.default_rng(seed)
    layers = []
    for i, o in pairwise(widths):
        W = rng.normal(0, np.sqrt(2 / i), (o, i))
        b = rng.uniform(-1 / np.sqrt(i), 1 / np.sqrt(i), o)
        layers.append((W.astype(np.float32).astype(float), b.astype(np.float32).astype(float)))
    return ReluNetwork.from_layers(layers)


def random_network(rng, d, widths) -> ReluNetwork:
    """Gaussian weights, biases small enough that most folds cross the cube [-1, 1]^d."""
    return ReluNetwork.from_layers(_gaussian(rng, d, widths))


def degenerate_network(kind, d, rng, widths=(8, 8)) -> ReluNetwork:
    """A network on d inputs that is not in general position, in the way that ``kind`` says.

    All hidden layers but those of "handmade" have the given widths (two layers or more, width 2 or
    more). They are meant for the cube [-1, 1]^d.
    """
    if kind == "handmade":
        return _handmade(d)
    layers = _gaussian(rng, d, widths)
    (W1, b1), (W2, b2) = layers[:2]
    if kind == "zero_bias":
        layers = [(W, 0 * b) for W, b in layers]
    elif kind == "duplicate":
        for W, b in ((W1, b1), (W2, b2)):
            W[1], b[1] = W[0], b[0]
    elif kind == "opposite":
        for W, b in ((W1, b1), (W2, b2)):
            W[1], b[1] = -2 * W[0], -2 * b[0]
    elif kind == "dead":
        W1[0], b1[0] = 0, 0
        W1[-1], b1[-1] = 0, -1
    elif kind == "integer":
        layers = [(rng.integers(-2, 3, W.shape), rng.integers(-1, 2, b.shape)) for W, b in layers]
    elif kind == "parallel":
        W1[:] = W1[0] * rng.choice([-1, 1, 2], (len(W1), 1))
        W1[-1] = np.eye(d)[0]  # parallel to a side of the cube, and here on it
        b1[-1] = 1
    elif kind == "zero_row_deep":
        W2[0], b2[0] = 0, 0
        W2[1], b2[1] = np.eye(len(W1))[0], 0  # vanishes wherever unit 0 is off
        W2[-1], b2[-1] = -np.eye(len(W1))[0], 0
    elif kind == "through_corner":
        layers = [
            (rng.integers(-8, 9, W.shape) / 8, rng.integers(-8, 9, b.shape) / 8) for W, b in layers
        ]
        W, b = layers[0]
        b[:] = -np.einsum("ij,ij->i", W, rng.choice([-1.0, 1.0], W.shape))
    elif kind == "scaled":
        layers = scaled_layers(layers, rng)
    else:
        raise ValueError(f"kind must be one of {KINDS}; got {kind!r}.")
    return ReluNetwork.from_layers(layers)


def _gaussian(rng, d, widths):
    sizes = (d, *widths, 1)
    return [(rng.normal(size=(o, i)) / np.sqrt(i), rng.normal(size=o) / 3) for i, o in pairwise(sizes)]


def scaled_layers(layers, rng):
    """The same function: each hidden unit times a power of two that the next layer divides by."""
    scaled, before = [], np.ones(layers[0][0].shape[1])
    for i, (W, b) in enumerate(layers):
        powers = rng.integers(-30, 31, len(b)) if i + 1 < len(layers) else np.zeros(len(b))
        scale = 2.0**powers
        scaled.append((W * scale[:, None] / before, b * scale))
        before = scale
    return scaled


def _handmade(d) -> ReluNetwork:
    """|x_i| from opposite units, the difference of two inputs, then max, min and a diamond of them."""
    eye = np.eye(d)
    W1 = np.vstack([eye, -eye, eye[0] - eye[-1], eye[-1] - eye[0]]) if d > 1 else np.array([[1.0], [-1]])
    one_norm = np.concatenate([np.ones(2 * d), np.zeros(len(W1) - 2 * d)])
    last = np.concatenate([eye[-1], -eye[-1], np.zeros(len(W1) - 2 * d)])
    larger, smaller = last.copy(), last.copy()
    larger[-2:] += [1, 0] if d > 1 else [0, 0]
    smaller[-2:] -= [0, 1] if d > 1 else [0, 0]
    W2, b2 = np.vstack([one_norm, larger, smaller]), [-1, 0, 0]
    return ReluNetwork.from_layers([(W1, np.zeros(len(W1))), (W2, b2), (np.ones((1, 3)), [0])])


def exact_pattern(net, x) -> tuple[bool, ...]:
    """Which units are >= 0 at one point, by rational arithmetic."""
    return tuple(bool(on) for on in net.as_fractions().pattern([Fraction(float(v)) for v in x]))


def sampled_patterns(net, box, n, rng) -> set[tuple[bool, ...]]:
    """Patterns at n random points; of each float pattern one point is looked at exactly."""
    points = box.sample(n, rng)
    _, first = np.unique(net.pattern(points), axis=0, return_index=True)
    rational = net.as_fractions()
    return {tuple(bool(on) for on in rational.pattern([Fraction(v) for v in points[i]])) for i in first}


def brute_force_cells(net, box, rng, n_samples=2000) -> set[tuple[bool, ...]]:
    """All patterns of full-dimensional cells thicker than 1e-6: sample, then flip until nothing is new.

    Every pattern returned is the exact one of a random point, so it belongs to a cell. For every cell
    and unit a linear program looks for a point across the unit's fold, where units that share the fold
    flip alone or together.
    """
    found = sampled_patterns(net, box, n_samples, rng)
    tried, queue = set(found), sorted(found)
    while queue:
        pattern = queue.pop()
        for candidate in _flips(net, pattern):
            if candidate in tried:
                continue
            tried.add(candidate)
            point, radius = chebyshev_center(*_halfspaces(net, box, candidate))
            if radius > _THIN:
                inside = point + radius / 100 * rng.uniform(-1, 1, box.dim)
                true = exact_pattern(net, inside)
                if true not in found:
                    found.add(true)
                    tried.add(true)
                    queue.append(true)
    return found


def chebyshev_center(A, b):
    """Centre and radius (at most 1) of the largest ball in {A x <= b}; radius -1 if there is none."""
    norms = np.linalg.norm(A, axis=1)
    d = A.shape[1]
    answer = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([A, norms]),
        b_ub=b,
        bounds=[(None, None)] * d + [(0, 1)],
        method="highs-ds",
        options={"presolve": False},
    )
    return (answer.x[:d], answer.x[d]) if answer.status == 0 else (np.zeros(d), -1.0)


def _local_forms(net, pattern):
    """Unit rows (a, b) of the affine forms a.x + b of all units, when units below follow the pattern.

    A form that is 0 but for rounding is 0 here, and one that is constant has a = 0.
    """
    d = net.in_features
    forms, sizes, rows, start = np.eye(d, d + 1), np.eye(d, d + 1), [], 0
    for W, b in net.layers[:-1]:
        bias = np.outer(b, np.eye(d + 1)[-1])
        forms, sizes = W @ forms + bias, np.abs(W) @ sizes + np.abs(bias)
        forms[np.abs(forms) < 1e-13 * sizes.max(axis=1, keepdims=True)] = 0
        norms = np.linalg.norm(forms[:, :-1], axis=1)
        rows.append(forms / np.where(norms > 0, norms, 1)[:, None])
        on = np.array(pattern[start : start + len(b)])[:, None]
        forms, sizes, start = forms * on, sizes * on, start + len(b)
    return np.vstack(rows)


def _halfspaces(net, box, pattern):
    forms = _local_forms(net, pattern) * np.where(pattern, -1, 1)[:, None]
    forms = forms[np.any(forms != 0, axis=1)]
    eye = np.eye(box.dim)
    A = np.vstack([forms[:, :-1], eye, -eye])
    return A, np.concatenate([-forms[:, -1], box.upper, -box.lower])


def _flips(net, pattern):
    """The pattern with each unit flipped, alone and with all units that have the same zero set there."""
    forms = _local_forms(net, pattern)
    norms = np.linalg.norm(forms, axis=1)
    unit = forms / np.where(norms > 0, norms, 1)[:, None]
    same = np.abs(unit @ unit.T) > 1 - 1e-12
    for j in range(len(pattern)):
        alone = tuple(on ^ (i == j) for i, on in enumerate(pattern))
        yield alone
        together = tuple(bool(on ^ (i == j or same[j, i])) for i, on in enumerate(pattern))
        if together != alone:
            yield together


def cube(d) -> Box:
    return Box.cube(d, -1, 1)
