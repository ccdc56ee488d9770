r"""How often new points are, almost, local maxima of one network and members for another.

A value network v and a membership network c make a mistake at x, at tolerances (t, s), if

.. math:: v(x) < \max_{\|u - x\| \le \epsilon} v(u) - t \quad\text{or}\quad c(x) \le s.

Weight noise that moves v by less than :math:`\gamma_1 / 4` and c by less than :math:`\gamma_2 / 2`
everywhere turns a mistake at :math:`(2 \gamma_1, 0)` into one of the noisy networks at
:math:`(\tfrac32 \gamma_1, \tfrac12 \gamma_2)`, and such a one into a mistake of v and c at
:math:`(\gamma_1, \gamma_2)`. A PAC-Bayes bound for the noisy networks therefore bounds the probability
of mistakes at :math:`(2 \gamma_1, 0)` by their share at :math:`(\gamma_1, \gamma_2)` on the sample. (The
printed lemma has tolerances 0 and :math:`\gamma_1`: the sample counts fewer mistakes than it should.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pindown.affine import Array, dense
from pindown.evidence import Assumption
from pindown.guarantees.bounds._samples import reach_of_inputs
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, half_square, outward
from pindown.guarantees.bounds.pac_bayes import risk_from_level
from pindown.guarantees.bounds.pac_bayes_margins import conditioned_kl
from pindown.guarantees.bounds.priors import scale_below
from pindown.guarantees.bounds.rescaled_weights import (
    WeightList,
    has_biases,
    homogeneous,
    homogeneous_rows,
    representatives,
)
from pindown.guarantees.bounds.weight_noise import noise_scale
from pindown.guarantees.tuning import BALLS_AT_ONCE, LOCAL_MAXIMA_SUCCESSES
from pindown.io.accepting import on_networks
from pindown.network import ReluNetwork
from pindown.relaxation.linear import relax
from pindown.rounding import gamma, norm_up
from pindown.validation import positive, probability


def mistakes(
    v: ReluNetwork, c: ReluNetwork, X: ArrayLike, radius: float, tolerance: float, margin: float
) -> tuple[NDArray[np.bool_], str]:
    """Say which rows are mistakes at (tolerance, margin), and how ball maxima were bounded.

    A row is counted if it cannot be proved right: the share is an upper bound.
    """
    rows, _ = v.as_rows(X)
    maxima = ball_maxima(v, rows, radius)
    wrong = ~(_least(v, rows) >= maxima.upper - tolerance) | ~(_least(c, rows) > margin)
    return wrong, maxima.method


def _least(net: ReluNetwork, rows: Array) -> Array:
    """Return the output at each row, rounded down."""
    weights, inputs = homogeneous(net), homogeneous_rows(net, rows)
    return np.asarray(weights(inputs)[:, 0] - weights.rounding(inputs))


@on_networks
def local_maxima_bound(
    v: ReluNetwork,
    c: ReluNetwork,
    X: ArrayLike,
    *,
    radius: float,
    margins: tuple[float, float],
    delta: float = 0.05,
    input_norm: float | None = None,
) -> Bound:
    r"""Bound the probability that a new point is no local maximum of v, or no member for c.

    With probability at least :math:`1 - \delta` over the m points,

    .. math::
        P\big[v(x) < \max_{\|u - x\| \le \epsilon} v(u) - 2 \gamma_1 \text{ or } c(x) \le 0\big] \le
        \mathrm{kl}^{-1}\Big(\hat L, \tfrac1m \Big[\frac{\mathrm{KL}_v + \mathrm{KL}_c + H(Z)}{Z}
            + \log\frac{2 \sqrt m}{\delta\, w_v w_c}\Big]\Big),

    where :math:`\hat L` is the share of points with :math:`v(x) < \max v(u) - \gamma_1` or :math:`c(x)
    \le \gamma_2`, :math:`\mathrm{KL} = \|W\|_F^2 / 2 \sigma^2` for each network, Z a probability with
    which the noise is small, and w the weights of the two prior scales among those fixed in advance.

    Args:
        v: Value network, one output.
        c: Membership network, one output (a logit).
        X: The sample, (m, d).
        radius: :math:`\epsilon`, in the Euclidean norm.
        margins: :math:`(\gamma_1, \gamma_2)`, both positive.
        delta: Probability with which the bound may fail.
        input_norm: Bound on the norm of all inputs to come; None takes the largest of the sample. If
            the sample exceeds it by rounding only, it is widened by as much.

    Returns:
        The bound with every term; biases count as weights of a constant input.

    Example:
        >>> peak = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[-1.0, -1.0]], [0])])  # -|x|
        >>> member = ReluNetwork.from_layers([([[0.0]], [1.0])])
        >>> bound = local_maxima_bound(peak, member, np.zeros((50, 1)), radius=0.1, margins=(0.1, 0.5))
        >>> bound.terms["empirical risk"], bound.vacuous
        (0.0, True)

    Wolf et al. 2019, Lemmas 2 and 5, with the direction of the tolerance corrected.
    """
    rows, _ = v.as_rows(X)
    _require_pair(v, c, rows)
    g1, g2 = (positive("a margin", float(g)) for g in margins)
    eps, delta = positive("radius", radius, zero=True), probability("delta", delta)
    wrong, method = mistakes(v, c, rows, eps, g1, g2)
    largest = max(norm_up(row) for row in rows)
    reach = largest
    if input_norm is not None:
        given = positive("input_norm", input_norm)
        reach = reach_of_inputs(given, largest, X, v.in_features)
    m, risk = len(rows), float(np.mean(wrong))
    best: dict[str, float] = {}
    for success in LOCAL_MAXIMA_SUCCESSES:
        each = math.sqrt(success)
        value = _noise(v, outward(reach + eps), 0.25 * g1, each)
        member = _noise(c, reach, 0.5 * g2, each)
        kl = conditioned_kl(outward(value["kl"] + member["kl"]), success)
        cost = math.log(2.0 * math.sqrt(m) / delta) + value["cost"] + member["cost"]
        level = outward((kl + cost) / m)
        if not best or level < best["level"]:
            best = {"level": level, "kl of truncated posterior": kl, "success": success}
            best |= {f"{k} (v)": x for k, x in value.items()} | {
                f"{k} (c)": x for k, x in member.items()
            }
            best["log terms"] = cost
    terms = {"empirical risk": risk, "m": float(m), "input norm": reach, **best}
    return Bound(
        "local maxima",
        risk_from_level(risk, best["level"]),
        delta,
        f"probability that v is below its maximum within {eps:g} by over {2 * g1:g}, or c <= 0,",
        terms,
        (
            INDEPENDENT,
            Assumption("radius and margins were fixed before the sample was seen"),
            _norm_assumption(largest, None if input_norm is None else reach),
            Assumption(f"largest values in balls bounded from above by {method}", "checked"),
        ),
        "Wolf et al. 2019, Lemma 5, corrected",
    )


def _noise(net: ReluNetwork, reach: float, deviation: float, success: float) -> dict[str, float]:
    """Return scale, divergence, its cost and the spectral complexity, for the best copy of a network."""
    B = outward(math.hypot(reach, 1.0)) if has_biases(net) else reach
    found: dict[str, float] = {}
    for copy in representatives(homogeneous(net)):
        choice = scale_below(
            noise_scale(copy.norms, copy.shapes, deviation, input_norm=B, success=success)
        )
        kl = outward(half_square(copy.frobenius, choice.scale))
        if not found or kl + choice.cost < found["kl"] + found["cost"]:
            found = {"kl": kl, "cost": choice.cost, "scale": choice.scale}
            found["spectral complexity"] = spectral_complexity(copy)
    return found


def spectral_complexity(weights: WeightList | ReluNetwork) -> float:
    r"""Return :math:`\prod_l \|V_l\|_2^2 \sum_l \|V_l\|_F^2 / \|V_l\|_2^2`.

    >>> spectral_complexity(WeightList("given", (2.0 * np.eye(2), np.eye(2)))).__round__(6)
    16.0

    Wolf et al. 2019, Lemma 2; Neyshabur, Bhojanapalli, Srebro 2018.
    """
    if isinstance(weights, ReluNetwork):
        weights = WeightList("given", tuple(np.array(dense(layer.weight)) for layer in weights.layers))
    if min(weights.norms) == 0.0:
        return 0.0
    ratios = sum((norm_up(W) / s) ** 2 for W, s in zip(weights.matrices, weights.norms, strict=True))
    return outward(math.prod(s**2 for s in weights.norms) * ratios)


def _norm_assumption(largest: float, given: float | None) -> Assumption:
    if given is None:
        return Assumption(f"no input is longer than {largest:.4g}, the longest of the sample")
    if largest > given:
        return Assumption(
            f"no input is longer than {given:g} (one of the sample is {largest:.4g})", "violated"
        )
    return Assumption(f"no input is longer than {given:g}")


def _require_pair(v: ReluNetwork, c: ReluNetwork, rows: Array) -> None:
    require_one_output("v", v)
    require_one_output("c", c)
    if v.in_features != c.in_features:
        raise ValueError(f"v and c must read the same inputs; got {v.in_features} and {c.in_features}.")
    if not len(rows):
        raise ValueError("X is empty; give at least one point.")


@dataclass(frozen=True, eq=False)
class BallMaxima:
    """Upper bounds on the largest value of a network in balls around points.

    Attributes:
        upper: One upper bound per point, (n,).
        method: ``"cells"`` (linear bounds on every piece of an interval) or ``"linear bounds"`` (on the
            whole box around the ball, which can be wide). Both round outwards.
    """

    upper: Array
    method: str


def ball_maxima(
    net: ReluNetwork, X: ArrayLike, radius: float, *, exact: bool | None = None
) -> BallMaxima:
    r"""Bound :math:`\max_{\|u - x\|_2 \le \epsilon} v(u)` from above at every row of X.

    Args:
        net: A network with one output.
        X: Points, (n, d).
        radius: :math:`\epsilon`.
        exact: Cut the interval around x at its breakpoints (one input), so that the bounds are tight;
            None does so there. Other dimensions always use linear bounds on the box around the ball,
            maximised over the ball.

    Example:
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), ([[1.0, 1.0]], [0])])  # |x|
        >>> ball_maxima(net, [[0.0], [2.0]], 0.5).upper.round(9)
        array([0.5, 2.5])
    """
    rows, _ = net.as_rows(X)
    eps = positive("radius", radius, zero=True)
    require_one_output("v", net)
    if exact is None:
        exact = net.in_features == 1
    if exact and net.in_features != 1:
        raise ValueError(f"exact maxima need a network with one input; got {net.in_features} inputs.")
    if exact:
        return BallMaxima(_largest_on_intervals(net, rows[:, 0], eps), "cells")
    upper = np.empty(len(rows))
    for start in range(0, len(rows), BALLS_AT_ONCE):
        part = rows[start : start + BALLS_AT_ONCE]
        upper[start : start + len(part)] = _linear_upper(net, part, eps)
    return BallMaxima(upper, "linear bounds")


def _linear_upper(net: ReluNetwork, rows: Array, eps: float) -> Array:
    low, high = np.nextafter(rows - eps, -np.inf), np.nextafter(rows + eps, np.inf)
    known = relax(net, low, high)
    weight, offset = known.upper_forms([[1.0]])
    A, c = weight[:, 0, :], offset[:, 0]
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(A) * np.maximum(np.abs(low), np.abs(high))
        slack = 4.0 * gamma(A.shape[1] + 8) * (sizes.sum(axis=1) + np.abs(c))
        ball = np.einsum("ij,ij->i", A, rows) + c + eps * np.linalg.norm(A, axis=1) + slack
    ball = np.where(np.isfinite(ball), ball, np.inf)
    return np.minimum(ball, known.upper_bounds([[1.0]])[:, 0])


def _largest_on_intervals(net: ReluNetwork, x: Array, eps: float) -> Array:
    """Return bounds on intervals, each cut at its breakpoints: misplaced, they cost tightness only."""
    from pindown.geometry.slices.segment import along_segments

    low, high = np.nextafter(x - eps, -np.inf), np.nextafter(x + eps, np.inf)
    found = along_segments(net, low[:, None], high[:, None])
    which = np.repeat(np.arange(len(x)), np.diff(found.knot_offsets))
    cuts = np.clip(low[which] + found.knots * (high - low)[which], low[which], high[which])
    cuts[found.knot_offsets[:-1]], cuts[found.knot_offsets[1:] - 1] = low, high
    left = np.flatnonzero(which[:-1] == which[1:])
    bounds = np.empty(len(left))
    for start in range(0, len(left), BALLS_AT_ONCE):
        part = left[start : start + BALLS_AT_ONCE]
        ends = np.minimum(cuts[part], cuts[part + 1]), np.maximum(cuts[part], cuts[part + 1])
        known = relax(net, ends[0][:, None], ends[1][:, None])
        bounds[start : start + len(part)] = known.upper_bounds([[1.0]])[:, 0]
    upper = np.full(len(x), -np.inf)
    np.maximum.at(upper, which[left], bounds)
    return upper


def require_one_output(name: str, net: ReluNetwork) -> None:
    """Refuse a network with several outputs."""
    if net.out_features != 1:
        raise ValueError(f"{name} must have one output; got {net.out_features}.")
