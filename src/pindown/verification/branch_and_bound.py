r"""Does a property of the outputs hold on a whole box? Proved, refuted by an input, or not decided.

A property is stated by what violates it: an x in the box with

.. math::
    r_i \cdot f(x) \le t_i \quad \text{for all } i .

On a box where linear bounds show :math:`r_i \cdot f > t_i` for some i, there is no such x. Other boxes
are cut in two where the bound depends most on the input, many at a time, and points of theirs are tried.

Katz et al. 2017, "Reluplex" (properties of this form); Wang et al. 2018, "Formal security analysis of
neural networks using symbolic intervals" (cutting the input box).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, nan

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.box import Box, as_box
from pindown.deadline import Deadline
from pindown.evidence import Kind
from pindown.io.accepting import on_network
from pindown.network import ReluNetwork
from pindown.parallel import few_threads
from pindown.relaxation.linear import LinearForms
from pindown.relaxation.linear_on_balls import balls_at_once, interval_margins
from pindown.relaxation.lp_balls import Balls
from pindown.relaxation.optimised_slopes import margin_forms
from pindown.rounding import add_up
from pindown.verification.classes import BoxLike
from pindown.verification.counterexamples import float32_outputs
from pindown.verification.tuning import CUT_WIDTH_SHARE, VERIFY_MAX_RATIONAL_PARAMETERS, VERIFY_SAMPLES


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What is known about a property on a box.

    Attributes:
        verdict: ``"holds"`` or ``"violated"``, both proved for the real-number network, or
            ``"undecided"``.
        witness: An input that violates it, (d,), or None.
        n_boxes: How many boxes were bounded.
        seconds: How long it took.
        kind: ``"exact"``.
        margin: How far the worst row is above its limit at the witness, in float64: not above 0 but for
            rounding.
        float32_margin: The same where weights, inputs and sums are rounded to float32: the witness is
            none there if this is above 0.
    """

    verdict: str
    witness: Array | None
    n_boxes: int
    seconds: float
    kind: Kind = "exact"
    margin: float = nan
    float32_margin: float = nan

    def __repr__(self) -> str:
        return f"Verification({self.verdict}, {self.n_boxes:,} boxes, {self.seconds:.1f} s)"


@on_network
def verify(
    net: ReluNetwork,
    box: BoxLike,
    rows: ArrayLike,
    limits: ArrayLike,
    *,
    budget: float = 60.0,
    seed: int = 0,
) -> Verification:
    """Decide whether some input in a box has ``rows @ f(x) <= limits`` in every row.

    Args:
        net: The network; up to about ten inputs cutting the box gets far.
        box: The inputs, a Box or a pair of corners.
        rows: Linear forms of the outputs, (q, k).
        limits: Their limits, (q,).
        budget: Seconds.
        seed: Of the points that are tried first.

    Returns:
        ``"holds"`` if there is no such input, ``"violated"`` with one if there is.

    Raises:
        ValueError: If shapes or the budget do not fit, or numbers are not finite.
        TypeError: If net is no network.

    Example:
        ``|x|`` is above -1 everywhere, and at most 1 somewhere:

        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])
        >>> verify(net, (-3, 3), [[1.0]], [-1.0]).verdict, verify(net, (-3, 3), [[1.0]], [1.0]).verdict
        ('holds', 'violated')

    Wang et al. 2018, section 4.
    """
    deadline = Deadline.of(budget)
    if not isinstance(net, ReluNetwork):
        raise TypeError(f"net must be a ReluNetwork; got {type(net).__name__}.")
    region = as_box(box, net.in_features)
    forms, tops = _read(net, rows, limits)
    with few_threads(net):
        verdict, witness, boxes = _search(net, region, forms, tops, deadline, seed)
    found = Verification(verdict, witness, boxes, deadline.spent)
    if witness is None:
        return found
    outputs = net(witness), float32_outputs(net, witness[None])[0]
    with np.errstate(over="ignore", invalid="ignore"):
        margin, rounded = (float(np.max(forms @ values - tops)) for values in outputs)
    return replace(found, margin=margin, float32_margin=rounded)


def _read(net: ReluNetwork, rows: ArrayLike, limits: ArrayLike) -> tuple[Array, Array]:
    forms = np.asarray(rows, dtype=np.float64)
    tops = np.atleast_1d(np.asarray(limits, dtype=np.float64))
    if forms.ndim != 2 or forms.shape[1] != net.out_features or tops.shape != (len(forms),):
        raise ValueError(
            f"rows must have shape (q, {net.out_features}) and limits (q,); got {forms.shape} and "
            f"{tops.shape}."
        )
    if not len(forms) or not (np.isfinite(forms).all() and np.isfinite(tops).all()):
        raise ValueError("rows and limits must hold at least one row of finite numbers.")
    return forms, tops


def _search(
    net: ReluNetwork, box: Box, rows: Array, limits: Array, deadline: Deadline, seed: int
) -> tuple[str, Array | None, int]:
    points = box.sample(VERIFY_SAMPLES, np.random.default_rng(seed))
    witness = _violating(net, points, rows, limits)
    lower, upper = box.lower[None], box.upper[None]
    step, boxes = balls_at_once(net), 0
    while witness is None and len(lower):
        if deadline.passed:
            return "undecided", None, boxes
        # The last boxes first: what waits stays short.
        low, high, lower, upper = lower[-step:], upper[-step:], lower[:-step], upper[:-step]
        balls = Balls(low, np.zeros(len(low)), "linf", low, high)
        bound, forms = margin_forms(net, balls, np.broadcast_to(-rows, (len(low), *rows.shape)))
        boxes += len(low)
        excess = add_up(bound, limits)  # negative: the row is above its limit on the whole box
        left = excess.min(axis=1) >= 0.0
        low, high, forms = low[left], high[left], LinearForms(forms.weight[left], forms.offset[left])
        if not len(low):
            continue
        best = np.argmin(excess[left], axis=1)
        slope = forms.weight[np.arange(len(low)), best]
        corner = np.where(slope > 0, high, low)
        witness = _violating(net, np.concatenate([corner, low / 2 + high / 2]), rows, limits)
        low, high, stuck = _cut(low, high, slope)
        if stuck and witness is None:
            return "undecided", None, boxes
        lower, upper = np.concatenate([lower, low]), np.concatenate([upper, high])
    return ("holds", None, boxes) if witness is None else ("violated", witness, boxes)


def _violating(net: ReluNetwork, points: Array, rows: Array, limits: Array) -> Array | None:
    """Return a point at which all rows are at most their limits, proved, if one is found."""
    worst = np.max(net(points) @ rows.T - limits, axis=1)
    best = int(np.argmin(worst))
    if worst[best] > 0.0 or not _violates(net, points[best], rows, limits):
        return None
    witness = points[best].copy()
    witness.flags.writeable = False
    return witness


def _violates(net: ReluNetwork, point: Array, rows: Array, limits: Array) -> bool:
    """Return whether all rows are at most their limits, in rationals if intervals do not tell."""
    upper = interval_margins(net, Balls.around(point[None], np.zeros(1), "linf"), rows[None])[0]
    if np.all(add_up(upper, -limits) <= 0.0):
        return True
    if net.n_parameters > VERIFY_MAX_RATIONAL_PARAMETERS:
        return False
    values = np.array(net.as_fractions()(point.tolist()), dtype=object)
    exact = [np.array([Fraction(r) for r in row], dtype=object).dot(values) for row in rows.tolist()]
    return all(value <= Fraction(limit) for value, limit in zip(exact, limits.tolist(), strict=True))


def _cut(lower: Array, upper: Array, slope: Array) -> tuple[Array, Array, bool]:
    """Halve each box along the coordinate that moves its bound most; say if one is too thin to be."""
    width = upper - lower
    scale = np.max(np.abs(slope), axis=1, keepdims=True)
    share = np.abs(slope) / np.where((scale > 0) & (scale < inf), scale, 1.0)
    cut = np.argmax(width * (np.minimum(share, 1.0) + CUT_WIDTH_SHARE), axis=1)
    at = np.arange(len(lower)), cut
    middle = lower[at] / 2 + upper[at] / 2
    left, right = upper.copy(), lower.copy()
    left[at], right[at] = middle, middle
    stuck = bool(np.any((middle <= lower[at]) | (middle >= upper[at])))
    return np.concatenate([lower, right]), np.concatenate([left, upper]), stuck
