r"""Do two classifiers ever disagree, and by how much?

Let i be the class network a chooses at x and j the class b chooses. If they differ, the size of the
disagreement is how sure both are of it,

.. math::
    h(x) = \min\bigl(a_i(x) - a_j(x),\; b_j(x) - b_i(x)\bigr),
    \qquad i = \arg\max a(x), \; j = \arg\max b(x),

and it is 0 where they agree. "They never disagree by more than a margin" means that the largest h is at
most the margin. A minimum of two functions is at most any average of them, and the plain average
is half of :math:`(a - b)_i - (a - b)_j`: so bounds on the difference bound disagreements too. Without a
box h is taken relative to :math:`1 + \|x\|_2`.

Narodytska et al. 2018, "Verifying properties of binarized deep neural networks" (equal predictions as a
property to be verified).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pindown.affine import Array
from pindown.box import Box
from pindown.deadline import NEVER, Deadline
from pindown.equivalence.comparison._branching import branch
from pindown.equivalence.comparison._parallel_branching import branch_in_rounds
from pindown.equivalence.comparison._run import Run
from pindown.equivalence.comparison._witness_search import first_points, gradients, values_at
from pindown.equivalence.comparison.bracket import GapState
from pindown.equivalence.comparison.result import LabelDiff, verdict_of
from pindown.equivalence.tuning import (
    LABEL_PART,
    LABEL_PRECISION,
    LABEL_ROUNDS,
    LABEL_STARTS,
    LABEL_STEPS,
    SEARCH_SECONDS,
)
from pindown.evidence import Bracket
from pindown.network import ReluNetwork
from pindown.parallel import n_workers
from pindown.relaxation.differential import sum_of_forms, tied
from pindown.relaxation.intervals import interval_bounds
from pindown.relaxation.linear import LinearForms, largest, relax
from pindown.rounding import add_down, gamma, norm_up


def label_bounds(
    a: ReluNetwork, b: ReluNetwork, lower: Array, upper: Array, *, deadline: Deadline = NEVER
) -> tuple[Array, LinearForms]:
    """Bound the largest disagreement on each of n boxes; returns bounds (n,) and linear forms."""
    k = a.out_features
    i, j = (
        np.array(part)
        for part in zip(*[(p, q) for p in range(k) for q in range(k) if p != q], strict=True)
    )
    rows = np.eye(k)[i] - np.eye(k)[j]
    first, second = (relax(net, lower, upper, deadline=deadline) for net in (a, b))
    of_a, of_b = first.upper_forms(rows), second.upper_forms(-rows)
    tops = [largest(form, lower, upper) for form in (of_a, of_b)]
    half = LinearForms(of_a.weight / 2, of_a.offset / 2), LinearForms(of_b.weight / 2, of_b.offset / 2)
    average = sum_of_forms(*half, first.reach[0])
    bounds = np.minimum(np.minimum(*tops), largest(average, lower, upper))
    if a.widths == b.widths:
        close = tied(first, second, deadline=deadline).upper_forms(rows / 2)
        bounds = np.minimum(bounds, largest(close, lower, upper))
    # Class i is out of the question where a proves another one larger; j likewise for b.
    for top, chosen in ((tops[0], i), (tops[1], j)):
        out = np.stack([(top[:, chosen == c] < 0).any(axis=1) for c in range(k)], axis=1)
        bounds = np.where(out[:, chosen], 0.0, bounds)
    return np.maximum(bounds.max(axis=1), 0.0), average


def narrow_labels(
    a: ReluNetwork,
    b: ReluNetwork,
    box: Box,
    *,
    margin: float | None = None,
    deadline: Deadline = NEVER,
    seed: int = 0,
    n_jobs: int | None = None,
) -> GapState:
    """Bound the largest disagreement of two classifiers on a box from both sides.

    Args:
        a: A network with two outputs or more.
        b: One with as many inputs and outputs.
        box: The inputs.
        margin: Stop once it is decided whether the disagreement exceeds this.
        deadline: When to stop.
        seed: Chooses the samples of the search.
        n_jobs: Workers for branch and bound, -1 for all cores; None: as an enclosing
            :func:`pindown.parallel.workers` says, else one.

    Raises:
        ValueError: If there is only one output.

    Example:
        >>> a = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0])])
        >>> b = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 1])])
        >>> state = narrow_labels(a, b, Box([-1], [1]))
        >>> round(state.lower, 3), round(state.upper, 3)
        (0.5, 0.5)
    """
    require_classes(a)
    budget = deadline.share(0.2).within(SEARCH_SECONDS).left
    found = search_labels(a, b, box, margin=inf if margin is None else margin, budget=budget, seed=seed)
    state = GapState() & Bracket(found.gap, inf, found.point)
    if state.settled(margin, 0.0):
        return state

    def bounder(lower: Array, upper: Array) -> tuple[Array, LinearForms]:
        return label_bounds(a, b, lower, upper, deadline=deadline)

    value = partial(_values, a, b)

    def proved(point: Array) -> float:
        return proved_label_gap(a, b, point).gap

    goal: dict[str, Any] = {"tol": margin, "precision": LABEL_PRECISION, "deadline": deadline}
    if n_workers(n_jobs) == 1:
        steps = branch(bounder, value, proved, box, start=state, **goal)
    else:
        size = (a.n_parameters + b.n_parameters) * a.out_features  # more rows are carried than for gaps
        goal |= {"size": size, "n_jobs": n_jobs}
        steps = branch_in_rounds(partial(label_bounds, a, b), value, proved, box, start=state, **goal)
    return [state, *steps][-1]


def _values(a: ReluNetwork, b: ReluNetwork, points: Array) -> Array:
    return disagreement(a, b, points, False).value


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
    deadline = Deadline.after(budget)
    rng = np.random.default_rng(seed)
    best = LabelWitness(np.zeros(a.in_features) if box is None else box.center, 0, 0, 0.0)
    seen, X = 0.0, np.zeros((0, a.in_features))

    def over() -> bool:
        return best.gap > margin or deadline.passed

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
        for points in np.split(batch, range(LABEL_PART, len(batch), LABEL_PART)):
            value = consider(points)
            X = np.concatenate([X, points[np.argsort(-value, kind="stable")[:LABEL_STARTS]]])
            if over():
                return best
    X = X[np.argsort(-disagreement(a, b, X, box is None).value, kind="stable")[:LABEL_STARTS]]
    for turn in range(LABEL_ROUNDS):
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
            moves = [size * step * half * np.sign(g) for step in LABEL_STEPS]
            trials += [np.clip(X + 2.0 * move, box.lower, box.upper) for move in moves]
        else:
            length = np.linalg.norm(g, axis=1, keepdims=True)
            radius = size * (1.0 + np.linalg.norm(X, axis=1, keepdims=True))
            unit = np.divide(g, length, out=np.zeros_like(g), where=length > 0)
            trials += [X + step * radius * unit for step in LABEL_STEPS]
    assert callable(consider)
    values = np.stack([here.value, *(consider(trial) for trial in trials)])
    return np.stack([X, *trials])[np.argmax(values, axis=0), rows]


def unsearched(margin: float, gap: GapState) -> LabelDiff:
    """Return what the gap of the values alone says about labels."""
    return LabelDiff(verdict_of(0.0, gap.upper, margin), margin, 0.0, gap.upper, None, None)


def compare_labels(run: Run, margin: float, networks: tuple[ReluNetwork, ReluNetwork]) -> LabelDiff:
    r"""Bound the largest disagreement of two classifiers, in the time that a comparison has left.

    With :math:`g = \max_k |a_k - b_k|` a disagreement is at most g, because
    :math:`\min(a_i - a_j, b_j - b_i) \le \tfrac12 (a_i - b_i + b_j - a_j) \le g`, so what is proved
    about the gap of the values is used first.

    Args:
        run: The comparison of the values, done; networks with two or more outputs.
        margin: The disagreement asked about.
        networks: The two.
    """
    (a, b), box, upper = networks, run.box, run.state.upper
    if upper <= margin:
        lower, witness = 0.0, None
    elif box is None:
        budget = run.deadline.within(SEARCH_SECONDS).left
        found = search_labels(a, b, None, margin=margin, budget=budget, seed=run.seed)
        lower, witness = found.gap, found.point
    else:
        how: dict[str, Any] = {"deadline": run.deadline, "seed": run.seed, "n_jobs": run.n_jobs}
        state = narrow_labels(a, b, box, margin=margin, **how)
        lower, witness, upper = state.lower, state.witness, min(upper, state.upper)
    labels = None
    if witness is not None and lower > 0:
        there = proved_label_gap(a, b, witness, relative=box is None)
        labels = (there.first, there.second)
    return LabelDiff(verdict_of(lower, upper, margin), margin, lower, upper, witness, labels)
