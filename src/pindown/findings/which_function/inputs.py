"""Which inputs the network looks at, and which it cannot see."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pindown.affine import Array, stored_entries
from pindown.evidence import Assumption
from pindown.findings.finding import Finding, Quantity, Table
from pindown.findings.question_budget import NotApplicable
from pindown.findings.questions import question
from pindown.findings.samples import paid_slices
from pindown.findings.subject import Subject
from pindown.findings.tuning import (
    INPUTS_LISTED,
    MAX_SLOPE_POINTS,
    MAX_SLOPE_PRODUCTS,
    MIN_SLOPE_POINTS,
    PASSES_PER_SLOPE,
    REACTION_SHARE,
    SECONDS_PER_LOOK,
    SLOPE_POINTS_PER_LOOK,
    SLOPE_SECONDS_PER_PRODUCT,
    SLOPE_SHARE,
)
from pindown.findings.wording import count, percent
from pindown.model.gradients import gradients
from pindown.network import ReluNetwork


@question(
    "INP-01",
    "Inputs it uses",
    group="which",
    about="Inputs that cannot change any output, by the weights alone, and how few inputs carry most of "
    "the reaction to small changes on the data or the box.",
    needs=("box", "graph"),
    cost=(0.5, 1),
    place=13,
)
def inputs_it_uses(subject: Subject) -> Finding:
    """Find unconnected inputs, and rank the others by slope times spread."""
    net = subject.values
    exact = not subject.asked.why_not_exact
    unused = np.flatnonzero(~connected_inputs(subject.net)) if exact else np.array([], dtype=np.intp)
    points, place, spread = _points(subject)
    if not spread.any():
        raise NotApplicable(f"no input varies over {place}")
    influence = _influence(subject, points) * spread
    total = float(influence.sum())
    if not np.isfinite(total):
        raise NotApplicable("its slopes overflow float64")
    d = net.in_features
    order = np.argsort(-influence, kind="stable")
    shares = influence[order] / total if total > 0 else np.zeros(d)
    enough = int(np.searchsorted(np.cumsum(shares), REACTION_SHARE - 1e-12) + 1) if total > 0 else 0
    told = f"{len(unused):,} of {count(d, 'input')} cannot change any output" if len(unused) else (
        f"every one of {count(d, 'input')} is connected to an output" if exact else
        f"{int(np.count_nonzero(influence)):,} of {count(d, 'input')} had an effect"
    )  # fmt: skip
    carry = "carries" if enough == 1 else "carry"
    strong = f"{enough:,} {carry} {percent(REACTION_SHARE)} of the reaction to small changes"
    return Finding(
        verdict=f"{told}; {strong}" if total > 0 else f"{told}; none has any effect at {place}",
        number=Quantity(
            enough, "estimate", "inputs", n=len(points),
            label=f"for {percent(REACTION_SHARE)} of the reaction to small changes",
        ),
        hypotheses=(
            *([Assumption("inputs that cannot change anything: no path of weights leads out", "checked")]
              if exact else []),
            Assumption(f"the slopes at {len(points):,} of {place} stand for the others"),
        ),
        reading="The reaction to an input is the size of the slope of the outputs in it, in the mean "
        "over points, times how much the input varies. An input without any path of nonzero weights to "
        "an output could be left out of the data.",
        scale=f"If all {count(d, 'input')} mattered alike, {round(REACTION_SHARE * d):,} would "
        f"carry {percent(REACTION_SHARE)}. Slopes are local: an input that matters only beyond a "
        "fold is missed.",
        table=Table(
            "Inputs by their part in the reaction to small changes (numbered from 1)",
            ("input", "share of the reaction", "mean slope", "spread"),
            tuple(
                (int(j) + 1, float(share), float(influence[j] / spread[j]) if spread[j] else 0.0,
                 float(spread[j]))
                for j, share in zip(order[:INPUTS_LISTED], shares, strict=False)
            ),
        ),
        sentence=_sentence(len(unused), d),
    )  # fmt: skip


def _sentence(unused: int, d: int) -> str:
    if not unused:
        return ""
    return f"{unused:,} of its {count(d, 'input')} cannot change any output."


def connected_inputs(net: ReluNetwork) -> NDArray[np.bool_]:
    """Return which inputs have a path of nonzero weights to some output.

    >>> net = ReluNetwork.from_layers([([[1.0, 0.0], [0.0, 2.0]], [0, 0]), ([[1.0, 0.0]], [0])])
    >>> connected_inputs(net)
    array([ True, False])
    """
    alive = np.ones(net.out_features, dtype=bool)
    for layer in reversed(net.layers):
        rows = layer.weight[np.flatnonzero(alive)]
        if sp.issparse(rows):
            entries = sp.coo_array(rows)
            alive = np.zeros(layer.in_features, dtype=bool)
            alive[entries.col[entries.data != 0]] = True
        else:
            alive = (rows != 0).any(axis=0)
    return alive


def _points(subject: Subject) -> tuple[Array, str, Array]:
    """Return where to take slopes, what these points are, and how much each input varies."""
    rng, n = subject.rng("INP-01"), _enough_points(subject)
    if subject.data is None or len(subject.data) < MIN_SLOPE_POINTS:
        return subject.box.sample(n, rng), f"random points of {subject.box_name}", _sides(subject)
    X = subject.data.X
    rows = rng.permutation(len(X))[:n]
    return X[rows], f"rows of the {subject.data.name}", subject.data.spread


def _sides(subject: Subject) -> Array:
    """Return the standard deviation of a uniform variable on every side of the box."""
    with np.errstate(over="ignore"):
        return (subject.box.upper - subject.box.lower) / np.sqrt(12.0)


def _enough_points(subject: Subject) -> int:
    """Return at how many points slopes are taken; what they cost is checked where it is known before."""
    net = subject.values
    if not isinstance(net, ReluNetwork):
        return subject.affordable(MAX_SLOPE_POINTS, PASSES_PER_SLOPE, SLOPE_SHARE)
    per_point = sum(stored_entries(layer.weight) for layer in net.layers) * (net.out_features + 1)
    subject.require(SLOPE_SECONDS_PER_PRODUCT * per_point * MIN_SLOPE_POINTS)
    return int(np.clip(MAX_SLOPE_PRODUCTS / per_point, MIN_SLOPE_POINTS, MAX_SLOPE_POINTS))


def _slopes_of_any(subject: Subject, points: Array) -> Array:
    r"""Return the mean length of the slope in every input, by random forms of the outputs.

    For a form a of independent signs, :math:`E (a \cdot J_j)^2 = \lVert J_j \rVert^2`, so the root
    of the mean square over points and forms is that of the slopes' lengths. As many points as time
    allows.
    """
    model, until = subject.graph, subject.turn.share(SLOPE_SHARE)
    rng, k = subject.rng("INP-01 forms"), model.out_features
    total, done = np.zeros(model.in_features), 0
    for place in paid_slices(len(points), SLOPE_POINTS_PER_LOOK, SECONDS_PER_LOOK, until):
        part = points[place]
        signs = np.where(rng.random((len(part), k)) < 0.5, -1.0, 1.0)
        _, slopes = gradients(model, part, lambda y, rows, a=signs: a[rows])  # type: ignore[misc]
        total += (slopes**2).sum(axis=0)
        done += len(part)
    return np.sqrt(total / done)


def _influence(subject: Subject, points: Array) -> Array:
    """Return the mean Euclidean length of the slope in every input."""
    if not isinstance(subject.values, ReluNetwork):
        return _slopes_of_any(subject, points)
    net, total = subject.net, np.zeros(subject.net.in_features)
    step = max(1, 2**22 // (max(net.widths) * net.out_features))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(points), step):
            try:
                A, _ = net.local_affine(points[start : start + step])
            except ValueError:
                raise NotApplicable("the network overflows float64 there") from None
            total += np.linalg.norm(A, axis=1).sum(axis=0)
    return total / len(points)
