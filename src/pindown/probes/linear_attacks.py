r"""Attacks on linear classifiers in closed form: they cannot be beaten.

A linear model has scores :math:`g = W x + b`; with one row it has two classes, by the sign of
:math:`w \cdot x + b`. For a change r, the score of class c over class j falls from
:math:`s_j = g_c(x) - g_j(x)` to :math:`s_j + w_j \cdot r` with :math:`w_j = W_c - W_j`. In the norm
p, with the dual norm q and the step :math:`v_j` of length 1 for which :math:`w_j \cdot v_j = \|w_j\|_q`:

- minimum norm, :math:`\min \|r\|` such that the class changes:
  :math:`r = -(s_j / \|w_j\|_q)\, v_j`;
- maximum allowable, :math:`\min_j s_j + w_j \cdot r` with :math:`\|r\| \le \eta`:
  :math:`r = -\eta\, v_j`;
- regularised, :math:`\min \tfrac12 \|r\|^2 + \lambda (s_j + w_j \cdot r)`:
  :math:`r = -\lambda \|w_j\|_q\, v_j`;

each with the class j for which it comes out best. A target class t asks for more, all
:math:`g_j \le g_t` at once. With the score :math:`s = \max_j (g_j - g_t)` and
:math:`d(s)` the length of the shortest change that leaves no larger one, a projection onto a polyhedron,
the three are :math:`d(0)`, the least s with :math:`d(s) \le \eta`, and the minimum of the convex
:math:`\tfrac12 d(s)^2 + \lambda s`.

In linf the maximum-allowable attack is FGSM, the step of the fast gradient sign method.

Lecture course, section on adversarial attacks; the sign of the offsets, the factor of the regularised
form and the direction of the step are corrected, see docs/errata.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array
from pindown.network import ReluNetwork
from pindown.probes.tuning import GOLDEN_SECTIONS, OVERSHOOT
from pindown.relaxation.lp_balls import DUALS, Norm, as_norm, lengths, steepest_step
from pindown.validation import positive
from pindown.verification.classes import as_classes, classifier, margin_rows
from pindown.verification.counterexamples import AttackResult
from pindown.verification.least_distance import nearest_point


class _Scores(NamedTuple):
    """For every input and other class: score (n, k-1), its gradient (n, k-1, d) and dual norm."""

    score: Array
    form: Array
    size: Array


def linear_minimum_norm_attack(
    W: ArrayLike,
    b: ArrayLike,
    X: ArrayLike,
    *,
    target: int | None = None,
    norm: str = "l2",
    overshoot: float = OVERSHOOT,
) -> AttackResult:
    """Return the shortest change of each input that changes its class, or makes it the target.

    Args:
        W: Weights (k, d), or (d,) for two classes by sign.
        b: Offsets (k,), or one number.
        X: Inputs (n, d), or one (d,).
        target: The class to reach; any other one if not given.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.
        overshoot: Share of the way by which to pass the boundary.

    Returns:
        The changed inputs. Where no change succeeds (equal rows of W), ``success`` is False and the
        distance infinite. An input of the target class already is left where it is.

    Raises:
        ValueError: If shapes, the norm or the target do not fit.

    >>> linear_minimum_norm_attack([3.0, 4.0], -5.0, [3.0, 4.0], overshoot=0.0).X
    array([[0.6, 0.8]])

    Lecture course, section on adversarial attacks (minimum-norm attack).
    """
    net, rows, kind = _linear(W, b, X, norm)
    if target is not None:
        return _targeted(net, rows, target, kind, overshoot)
    scores = _scores(net, rows, kind)
    radius = _radii(scores)
    best = np.argmin(radius, axis=1)
    at = np.arange(len(rows)), best
    reachable = np.isfinite(radius[at])
    step = np.where(reachable, radius[at], 0.0)[:, None] * steepest_step(scores.form[at], kind)
    return _result(rows, rows - (1.0 + overshoot) * step, scores, reachable, kind)


def linear_distance(W: ArrayLike, b: ArrayLike, X: ArrayLike, *, norm: str = "l2") -> Array:
    r"""Return the distance of each input to the nearest one of another class, (n,).

    .. math::
        \min_{j \ne c} \frac{g_c(x) - g_j(x)}{\|W_c - W_j\|_q}.

    >>> linear_distance([3.0, 4.0], -5.0, [3.0, 4.0], norm="linf")
    array([2.85714286])

    Lecture course, section on adversarial attacks, with the dual norm.
    """
    net, rows, kind = _linear(W, b, X, norm)
    return np.asarray(_radii(_scores(net, rows, kind)).min(axis=1))


def linear_maximum_allowable_attack(
    W: ArrayLike,
    b: ArrayLike,
    X: ArrayLike,
    radius: float,
    *,
    target: int | None = None,
    norm: str = "l2",
) -> AttackResult:
    r"""Return the change of length at most ``radius`` that leaves the class the smallest score.

    Args:
        W: Weights (k, d), or (d,) for two classes by sign.
        b: Offsets.
        X: Inputs.
        radius: :math:`\eta`.
        target: The class to reach: the score is then how far the best other class is ahead of it.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.

    >>> found = linear_maximum_allowable_attack([3.0, 4.0], -5.0, [3.0, 4.0], 5.0)
    >>> found.X.round(9) + 0.0, found.margin.round(9)
    (array([[0., 0.]]), array([-5.]))

    Lecture course, section on adversarial attacks (maximum-allowable attack).
    """
    radius = positive("radius", radius, zero=True)
    net, rows, kind = _linear(W, b, X, norm)
    if target is not None:
        return _towards(net, rows, target, kind, lambda length, s: s if length <= radius else inf)
    scores = _scores(net, rows, kind)
    at = np.arange(len(rows)), np.argmin(scores.score - radius * scores.size, axis=1)
    changed = rows - radius * steepest_step(scores.form[at], kind)
    return _result(rows, changed, scores, None, kind)


def linear_regularised_attack(
    W: ArrayLike,
    b: ArrayLike,
    X: ArrayLike,
    strength: float,
    *,
    target: int | None = None,
    norm: str = "l2",
) -> AttackResult:
    r"""Return the change that minimises :math:`\tfrac12 \|r\|^2 + \lambda\, \text{score}`.

    Args:
        W: Weights (k, d), or (d,) for two classes by sign.
        b: Offsets.
        X: Inputs.
        strength: :math:`\lambda \ge 0`. With :math:`\|r\|^2` in place of half of it, give half of
            :math:`\lambda`; with :math:`\|r\|` alone there is no change for
            :math:`\lambda \|w\|_q < 1` and no minimum beyond.
        target: The class to reach: the score is then how far the best other class is ahead of it.
        norm: ``"l1"``, ``"l2"`` or ``"linf"``.

    >>> linear_regularised_attack([3.0, 4.0], -5.0, [3.0, 4.0], 0.5).X
    array([[1.5, 2. ]])

    Lecture course, section on adversarial attacks (regularisation-based attack), with the half.
    """
    strength = positive("strength", strength, zero=True)
    net, rows, kind = _linear(W, b, X, norm)
    if target is not None:
        return _towards(net, rows, target, kind, lambda length, s: 0.5 * length**2 + strength * s)
    scores = _scores(net, rows, kind)
    values = strength * scores.score - 0.5 * (strength * scores.size) ** 2
    at = np.arange(len(rows)), np.argmin(values, axis=1)
    step = strength * scores.size[at][:, None] * steepest_step(scores.form[at], kind)
    return _result(rows, rows - step, scores, None, kind)


def _linear(W: ArrayLike, b: ArrayLike, X: ArrayLike, norm: str) -> tuple[ReluNetwork, Array, Norm]:
    weight = np.atleast_2d(np.asarray(W, dtype=np.float64))
    net = ReluNetwork.from_layers([(weight, np.atleast_1d(np.asarray(b, dtype=np.float64)))])
    rows, _ = net.as_rows(X)
    return classifier(net), rows, as_norm(norm)


def _scores(net: ReluNetwork, rows: Array, norm: Norm) -> _Scores:
    W, b = net.layers[0]
    labels = np.argmax(rows @ W.T + b, axis=1)
    differences = -margin_rows(labels, len(W))
    form = differences @ W
    score = np.einsum("njd,nd->nj", form, rows) + differences @ b
    return _Scores(np.maximum(score, 0.0), form, lengths(form, DUALS[norm]))


def _radii(scores: _Scores) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = scores.score / scores.size
    return np.where(scores.size > 0, radius, np.where(scores.score > 0, np.inf, 0.0))


def _result(
    rows: Array,
    changed: Array,
    scores: _Scores,
    reachable: NDArray[np.bool_] | None,
    norm: Norm,
) -> AttackResult:
    moved = scores.score + np.einsum("njd,nd->nj", scores.form, changed - rows)
    margin = moved.min(axis=1)
    success = margin <= 0.0
    distance = lengths(changed - rows, norm)
    if reachable is not None:
        distance, success = np.where(reachable, distance, np.inf), success & reachable
    return AttackResult(changed, success, distance, margin, norm, n_gradients=1, exact=True)


def _targeted(net: ReluNetwork, rows: Array, target: int, norm: Norm, overshoot: float) -> AttackResult:
    """Project each input onto where the target's score is the largest."""
    W, b = net.layers[0]
    as_classes([target], 1, len(W))
    differences = margin_rows(np.array([target]), len(W))[0]
    G, h = differences @ W, -(differences @ b)
    found = [_deeper(G, h, x, norm, overshoot) for x in rows]
    changed = np.array([x if p is None else p for x, p in zip(rows, found, strict=True)])
    margin = (changed @ G.T - h).max(axis=1)
    distance = np.where([p is None for p in found], np.inf, lengths(changed - rows, norm))
    return AttackResult(changed, margin <= 0.0, distance, margin, norm, n_gradients=1, exact=True)


def _towards(
    net: ReluNetwork, rows: Array, target: int, norm: Norm, cost: Callable[[float, float], float]
) -> AttackResult:
    """Minimise a cost of the length d(s) and of the target's score s, which has one valley."""
    W, b = net.layers[0]
    as_classes([target], 1, len(W))
    differences = margin_rows(np.array([target]), len(W))[0]
    G, h = differences @ W, -(differences @ b)
    changed = np.array([_in_the_valley(G, h, x, norm, cost) for x in rows]).reshape(rows.shape)
    margin = (changed @ G.T - h).max(axis=1)
    distance = lengths(changed - rows, norm)
    return AttackResult(changed, margin <= 0.0, distance, margin, norm, n_gradients=1, exact=True)


def _in_the_valley(
    G: Array, h: Array, x: Array, norm: Norm, cost: Callable[[float, float], float]
) -> Array:
    """Return the nearest point of the score of least cost, by golden sections."""

    def at(s: float) -> float:
        near = nearest_point(G, h + s, x, norm)
        return inf if near is None else cost(near.distance, s)

    high = float((G @ x - h).max())
    step = 1.0 + abs(high)
    while at(high - step) < at(high - 0.5 * step):
        step *= 2.0
    low, share = high - step, 0.5 * (sqrt(5.0) - 1.0)
    left, right = high - share * (high - low), low + share * (high - low)
    costs = at(left), at(right)
    for _ in range(GOLDEN_SECTIONS):
        if costs[0] < costs[1]:
            high, right = right, left
            left = high - share * (high - low)
            costs = at(left), costs[0]
        else:
            low, left = left, right
            right = low + share * (high - low)
            costs = costs[1], at(right)
    best = min((high, right, left), key=at)
    near = nearest_point(G, h + best, x, norm)
    return x if near is None else near.point


def _deeper(G: Array, h: Array, x: Array, norm: Norm, overshoot: float) -> Array | None:
    """Return the nearest point behind all boundaries; to go on along the way could cross one again."""
    near = nearest_point(G, h, x, norm)
    if near is None or near.distance == 0.0 or overshoot == 0.0:
        return None if near is None else near.point
    behind = h - overshoot * near.distance * lengths(G, DUALS[norm])
    inside = nearest_point(G, behind, x, norm)
    return near.point if inside is None else inside.point
