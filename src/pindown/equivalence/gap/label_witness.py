"""Inputs that two classifiers put into different classes: how surely they do, and a search for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, nextafter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.gap.starts import first_points
from pindown.equivalence.gap.values import gradients, values_at
from pindown.network import ReluNetwork
from pindown.relaxation.intervals import interval_bounds
from pindown.rounding import add_down, gamma, norm_up

_STARTS = 32
_ROUNDS = 30
_PART = 256  # points between two looks at the clock
_STEPS = (1.0, 0.3, 0.1, 0.03)


@dataclass(frozen=True, eq=False, repr=False)
class LabelWitness:
    """An input that two classifiers put into different classes.

    Attributes:
        point: The input, (d,).
        first: The class the first network chooses there.
        second: The class the second network chooses.
        gap: How sure both are of it: see the module; rounded down, 0 if nothing was found.
    """

    point: Array
    first: int
    second: int
    gap: float

    def __repr__(self) -> str:
        if self.gap <= 0.0:
            return "LabelWitness(none found)"
        return (
            f"LabelWitness(class {self.first} against class {self.second}, by at least {self.gap:.6g})"
        )


class Chosen(NamedTuple):
    """How far rows are into a disagreement, and of which classes."""

    value: Array  # h, or a negative number that grows towards disagreement
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    sizes: tuple[Array, Array]  # a_i - a_j and b_j - b_i


def proved_label_gap(a: ReluNetwork, b: ReluNetwork, x: Array, relative: bool = False) -> LabelWitness:
    """Return the classes at x and a lower bound on how sure both networks are of them.

    >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
    >>> b = ReluNetwork.from_layers([([[-1.0], [1.0]], [0, 0])])
    >>> proved_label_gap(a, b, np.array([2.0]))
    LabelWitness(class 0 against class 1, by at least 4)
    """
    point = np.array(x, dtype=np.float64)
    point.flags.writeable = False
    here, there = (interval_bounds(net, Box(point, point))[-1] for net in (a, b))
    i, j = int(np.argmax(here.lower)), int(np.argmax(there.lower))
    sure = all(z.lower[c] >= np.max(np.delete(z.upper, c)) for z, c in ((here, i), (there, j)))
    gap = 0.0
    if sure and i != j:
        leads = add_down([here.lower[i], there.lower[j]], [-here.upper[j], -there.upper[i]])
        gap = max(0.0, float(np.min(leads)))
    if relative and gap > 0.0:
        gap = nextafter(gap / (1.0 + norm_up(point)) * (1.0 - gamma(8)), 0.0)
    return LabelWitness(point, i, j, gap if np.isfinite(gap) else 0.0)


def search_labels(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box | None,
    *,
    margin: float = inf,
    budget: float = 1.0,
    seed: int = 0,
) -> LabelWitness:
    """Search for an input that the networks put into different classes, as surely as possible.

    Args:
        a: A network with two outputs or more.
        b: One with as many inputs and outputs.
        box: The inputs, or None for all of them, in the relative sense.
        margin: Stop as soon as the disagreement exceeds this.
        budget: Seconds.
        seed: Chooses the samples.

    Raises:
        ValueError: If there is only one output.

    Example:
        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
        >>> b = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 1])])  # undecided at 1/2 instead of 0
        >>> search_labels(a, b, Box([-1], [1])).gap.__round__(3)
        0.5
    """
    require_classes(a)
    until = time.monotonic() + budget
    rng = np.random.default_rng(seed)
    best = LabelWitness(np.zeros(a.in_features) if box is None else box.center, 0, 0, 0.0)
    seen, X = 0.0, np.zeros((0, a.in_features))

    def over() -> bool:
        return best.gap > margin or time.monotonic() > until

    def consider(points: Array) -> Array:
        nonlocal best, seen
        value = disagreement(a, b, points, box is None).value
        top = int(np.argmax(value))
        if value[top] > seen:
            seen = float(value[top])
            found = proved_label_gap(a, b, points[top], box is None)
            best = found if found.gap > best.gap else best
        return value

    for batch in first_points(a, box, rng):
        for points in np.split(batch, range(_PART, len(batch), _PART)):
            value = consider(points)
            X = np.concatenate([X, points[np.argsort(-value, kind="stable")[:_STARTS]]])
            if over():
                return best
    X = X[np.argsort(-disagreement(a, b, X, box is None).value, kind="stable")[:_STARTS]]
    for turn in range(_ROUNDS):
        X = _step(a, b, box, X, 0.7**turn, consider)
        if over():
            break
    return best


def require_classes(net: ReluNetwork) -> None:
    """Refuse networks that choose no class.

    Raises:
        ValueError: If there is only one output.
    """
    if net.out_features < 2:
        raise ValueError("labels need two outputs or more; got 1. Compare the values instead.")


def disagreement(a: ReluNetwork, b: ReluNetwork, X: Array, relative: bool) -> Chosen:
    """Return for each row how far it is from, or into, a disagreement, and of which classes."""
    rows = np.arange(len(X))
    with np.errstate(over="ignore", invalid="ignore"):
        f, g = values_at(a, X), values_at(b, X)
        i, j = np.argmax(f, axis=1), np.argmax(g, axis=1)
        lead, other = f[rows, i][:, None] - f, g - g[rows, i][:, None]
        both = np.minimum(lead, other)
        both[rows, i] = -np.inf
        j = np.where(i != j, j, np.argmax(both, axis=1))
        sizes = lead[rows, j], other[rows, j]
        value = np.minimum(*sizes)
        if relative:
            value = value / (1.0 + np.linalg.norm(X, axis=1))
    return Chosen(np.where(np.isfinite(value), value, -np.inf), i, j, sizes)


@np.errstate(over="ignore", invalid="ignore")  # a point that leaves float64 is not chosen
def _step(
    a: ReluNetwork, b: ReluNetwork, box: Box | None, X: Array, size: float, consider: object
) -> Array:
    """Move each point uphill in the smaller lead, or in both."""
    here = disagreement(a, b, X, box is None)
    k, rows = a.out_features, np.arange(len(X))
    pair = np.zeros((len(X), k))
    pair[rows, here.first] += 1.0
    pair[rows, here.second] -= 1.0
    of_a, of_b = gradients(a, X, pair), gradients(b, X, -pair)
    smaller = np.where((here.sizes[0] <= here.sizes[1])[:, None], of_a, of_b)
    trials = []
    for g in (smaller, of_a + of_b):
        if box is not None:
            half = box.upper / 2 - box.lower / 2
            moves = [size * step * half * np.sign(g) for step in _STEPS]
            trials += [np.clip(X + 2.0 * move, box.lower, box.upper) for move in moves]
        else:
            length = np.linalg.norm(g, axis=1, keepdims=True)
            radius = size * (1.0 + np.linalg.norm(X, axis=1, keepdims=True))
            unit = np.divide(g, length, out=np.zeros_like(g), where=length > 0)
            trials += [X + step * radius * unit for step in _STEPS]
    assert callable(consider)
    values = np.stack([here.value, *(consider(trial) for trial in trials)])
    return np.stack([X, *trials])[np.argmax(values, axis=0), rows]
