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

import time
from functools import partial
from math import inf
from typing import Any

import numpy as np

from pindown.affine import Array
from pindown.box import Box
from pindown.equivalence.gap.branching import branch
from pindown.equivalence.gap.label_witness import (
    LabelWitness,
    disagreement,
    proved_label_gap,
    require_classes,
    search_labels,
)
from pindown.equivalence.gap.relaxation import sum_of_forms
from pindown.equivalence.gap.rounds import branch_in_rounds
from pindown.equivalence.gap.state import GapState
from pindown.equivalence.gap.tied import tied
from pindown.network import ReluNetwork
from pindown.parallel import n_workers
from pindown.relaxation.linear import LinearForms, largest, relax

__all__ = [
    "LabelWitness",
    "label_bounds",
    "narrow_labels",
    "proved_label_gap",
    "require_classes",
    "search_labels",
]

_PRECISION = 1e-3  # bounds that differ by less of their size are not worth more time


def label_bounds(
    a: ReluNetwork, b: ReluNetwork, lower: Array, upper: Array, *, deadline: float = inf
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
    deadline: float = inf,
    seed: int = 0,
    n_jobs: int | None = None,
) -> GapState:
    """Bound the largest disagreement of two classifiers on a box from both sides.

    Args:
        a: A network with two outputs or more.
        b: One with as many inputs and outputs.
        box: The inputs.
        margin: Stop once it is decided whether the disagreement exceeds this.
        deadline: When to stop, as ``time.monotonic()`` counts.
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
    began = time.monotonic()
    require_classes(a)
    budget = min(1.0, max(0.0, 0.2 * (deadline - began)))
    found = search_labels(a, b, box, margin=inf if margin is None else margin, budget=budget, seed=seed)
    state = GapState().narrowed(time.monotonic() - began, "search", lower=found.gap, witness=found.point)
    if state.settled(margin, 0.0):
        return state

    def bounder(lower: Array, upper: Array) -> tuple[Array, LinearForms]:
        return label_bounds(a, b, lower, upper, deadline=deadline)

    value = partial(_values, a, b)

    def proved(point: Array) -> float:
        return proved_label_gap(a, b, point).gap

    goal: dict[str, Any] = {"tol": margin, "precision": _PRECISION, "deadline": deadline}
    if n_workers(n_jobs) == 1:
        steps = branch(bounder, value, proved, box, start=state, **goal)
    else:
        size = (a.n_parameters + b.n_parameters) * a.out_features  # more rows are carried than for gaps
        goal |= {"size": size, "n_jobs": n_jobs}
        steps = branch_in_rounds(partial(label_bounds, a, b), value, proved, box, start=state, **goal)
    return [state, *steps][-1]


def _values(a: ReluNetwork, b: ReluNetwork, points: Array) -> Array:
    return disagreement(a, b, points, False).value
