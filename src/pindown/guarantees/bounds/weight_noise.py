r"""Gaussian noise on the weights: how far outputs can move, how much noise is borne, errors counted.

For a network without biases whose layers have spectral norms :math:`s_l`, moved by matrices of norm
:math:`u_l`, and an input of norm at most B,

.. math:: \|f_{W + U}(x) - f_W(x)\|_2 \le B \Big(\prod_l (s_l + u_l) - \prod_l s_l\Big),

by induction over the layers and without a side condition. For :math:`u_l \le s_l / d` the right side is
at most :math:`e B \prod_l s_l \sum_l u_l / s_l`, the form of the source.

The plainest PAC-Bayes bound for a network counts the errors under noise: the posterior is
:math:`N(w, \sigma^2 I)`, the prior :math:`N(w_0, \sigma^2 I)` with :math:`w_0` zero or the weights that
training started from, and the scale one of a fixed list. The mean error of the noisy networks on the
sample is estimated from draws, which is paid for too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.guarantees.bounds._samples import margins_of, read_networks
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, exp_up, half_square, outward
from pindown.guarantees.bounds.pac_bayes import risk_from_level
from pindown.guarantees.bounds.priors import scale_below
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse
from pindown.guarantees.bounds.rescaled_weights import WeightList
from pindown.guarantees.tuning import DRAWS_DELTA_SHARE, RELATIVE_NOISE_SCALES, ROWS_PER_DRAW
from pindown.rounding import norm_up
from pindown.validation import integer, positive, probability

Variant: TypeAlias = Literal["sharp", "as_printed"]
_HALVINGS = 200  # of an interval of scales; ends at neighbouring numbers long before
_MIN_SCALE = 1e-300  # a scale below it is reported as none


def weight_noise_bound(
    net: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    start: Any = None,
    n_draws: int = 30,
    random_state: int | np.random.Generator | None = 0,
) -> Bound:
    r"""Bound the risk of the network with Gaussian noise on its weights.

    .. math::
        L \le \mathrm{kl}^{-1}\Big(\hat L^+, \frac1m \Big[\frac{\|w - w_0\|^2}{2 \sigma^2}
            + \log\frac{2 \sqrt m}{\delta\, w_\sigma}\Big]\Big), \qquad
        \hat L^+ = \mathrm{kl}^{-1}\Big(\text{mean over draws}, \frac{\log(1/\delta')}{\text{draws}}\Big)

    Args:
        net: The classifier, any model, or a :class:`WeightList`; biases count as weights of a constant
            input.
        X: The training sample, (m, d).
        y: Its classes.
        delta: Probability with which the bound may fail, draws included.
        start: The network that training started from, fixed before the sample was seen; None is zero.
        n_draws: Noisy networks for each scale that is tried.
        random_state: Seed or generator.

    Example:
        A threshold on the line, far from all points:

        >>> from pindown import ReluNetwork
        >>> net = ReluNetwork.from_layers([([[1.0]], [0.0])])
        >>> X = np.where(np.arange(5000) % 2, 1.0, -1.0)[:, None]
        >>> bound = weight_noise_bound(net, X, X[:, 0] > 0, n_draws=100)
        >>> bound.vacuous, bound.value < 0.1
        (False, True)

    Langford and Caruana 2001, "(Not) bounding the true error"; Dziugaite and Roy 2017.
    """
    delta, draws = probability("delta", delta), integer("n_draws", n_draws)
    nets = [net] if start is None else [net, start]
    (weights, *starts), rows = read_networks(nets, X, "weight_noise_bound")
    if any(first.shapes != weights.shapes for first in starts):
        raise ValueError(f"start must have layers of shapes {weights.shapes}; got {starts[0].shapes}.")
    origin = starts[0].vector if starts else np.zeros_like(weights.vector)
    distance = norm_up(weights.vector - origin)
    rng, m = np.random.default_rng(random_state), len(rows)
    typical = weights.frobenius / math.sqrt(weights.vector.size) or 1.0
    scales = sorted({scale_below(typical * r) for r in RELATIVE_NOISE_SCALES})
    for_draws = DRAWS_DELTA_SHARE * delta
    best: dict[str, float] = {}
    for scale, cost in scales:
        observed = _mean_error(weights, rows, y, scale, draws, rng)
        seen = min(1.0, outward(observed))
        risk = float(small_kl_inverse(seen, outward(math.log(len(scales) / for_draws) / draws)))
        kl = outward(half_square(distance, scale))
        log_terms = outward(math.log(2.0 * math.sqrt(m) / (delta - for_draws)) + cost)
        level = outward((kl + log_terms) / m)
        value = risk_from_level(risk, level)
        if not best or value < best["value"]:
            best = {"value": value, "empirical risk": risk, "error of the draws": observed, "kl": kl}
            best |= {"scale": scale, "log terms": log_terms, "level": level}
    value = best.pop("value")
    rests = [
        INDEPENDENT,
        Assumption(f"{draws} draws at each of {len(scales)} scales, paid for", "checked"),
    ]
    if start is not None:
        rests.append(Assumption("the start was fixed before the sample was seen"))
    name = "weight noise" if start is None else "weight noise around the start"
    about = "expected risk under weight noise"
    return Bound(name, value, delta, about, best, tuple(rests), "Langford and Caruana 2001")


def _mean_error(
    weights: WeightList, rows: Array, y: ArrayLike, scale: float, draws: int, rng: np.random.Generator
) -> float:
    """Return the mean over draws, each on rows of its own: still a mean of independent terms."""
    shares, labels = [], np.asarray(y)
    for _ in range(draws):
        some = rng.integers(len(rows), size=ROWS_PER_DRAW) if len(rows) > ROWS_PER_DRAW else slice(None)
        noisy = weights.shifted(weights.vector + scale * rng.standard_normal(weights.vector.size))
        shares.append(float(np.mean(margins_of(noisy(rows[some]), labels[some]) <= 0)))
    return float(np.mean(shares))


def perturbation_bound(
    norms: Sequence[float],
    moves: Sequence[float],
    input_norm: float = 1.0,
    *,
    variant: Variant = "sharp",
) -> float:
    r"""Bound the move of the output, in the Euclidean norm.

    Args:
        norms: :math:`s_l`, spectral norms of the layers.
        moves: :math:`u_l`, spectral norms of what is added to them.
        input_norm: B.
        variant: ``"sharp"`` as above, or ``"as_printed"``: :math:`e B \prod s_l \sum u_l/s_l`, and
            infinity where some :math:`u_l > s_l / d`.

    Example:
        Two layers of norm 1, each moved by 0.1: ``1.1**2 - 1``.

        >>> round(perturbation_bound([1, 1], [0.1, 0.1]), 12)
        0.21
        >>> round(perturbation_bound([1, 1], [0.1, 0.1], variant="as_printed"), 3)
        0.544

    Neyshabur, Bhojanapalli, Srebro 2018, Lemma 2; Mukherjee 2020, Theorem 6.D.2.
    """
    s = [positive("a norm", value, zero=True) for value in norms]
    u = [positive("a move", value, zero=True) for value in moves]
    if len(s) != len(u) or not s:
        raise ValueError(f"norms and moves need one number per layer; got {len(s)} and {len(u)}.")
    B = positive("input_norm", input_norm, zero=True)
    if variant == "sharp":
        return outward(B * outward(_growth(s, u)))
    if any(move > norm / len(s) for norm, move in zip(s, u, strict=True)):
        return math.inf
    if 0.0 in s:
        return 0.0  # then that layer does not move either, and the output stays zero
    total = sum(move / norm for norm, move in zip(s, u, strict=True))
    return outward(math.e * B * math.prod(s) * total)


def _growth(s: Sequence[float], u: Sequence[float]) -> float:
    """Return prod(s + u) - prod(s) as a sum of positive terms, so that nothing cancels."""
    product, growth = 1.0, 0.0
    for norm, move in zip(s, u, strict=True):
        product, growth = product * norm, growth * (norm + move) + product * move
    return growth


def norm_tail(rows: int, columns: int, level: float, *, variant: Variant = "sharp") -> float:
    r"""Bound the probability that a standard Gaussian matrix has spectral norm above a level t.

    .. math::
        P[\|G\|_2 > t] \le e^{-(t - \sqrt p - \sqrt q)_+^2 / 2}, \qquad
        P[\|G\|_2 > t] \le (p + q) e^{-t^2 / (2 \max(p, q))}.

    The second is the ``"as_printed"``.

    Example:
        >>> round(norm_tail(100, 100, 23.0), 4)
        0.0111
        >>> round(norm_tail(100, 100, 23.0, variant="as_printed"), 4)
        1.0

    Davidson and Szarek 2001, Theorem II.13; Tropp 2012, Theorem 4.1; Mukherjee 2020, proof of
    Lemma 6.6.1.
    """
    p, q, t = integer("rows", rows), integer("columns", columns), positive("level", level, zero=True)
    if variant == "sharp":
        # Subtracting roots may lose digits of the excess, so they are rounded up first.
        excess = max(0.0, t - outward(math.sqrt(p) + math.sqrt(q)))
        return min(1.0, exp_up(-half_square(excess, 1.0)))
    return min(1.0, outward((p + q) * exp_up(-half_square(t, math.sqrt(max(p, q))))))


def norm_level(rows: int, columns: int, failure: float, *, variant: Variant = "sharp") -> float:
    """Return the level that :func:`norm_tail` gives the probability ``failure``.

    >>> round(norm_tail(30, 20, norm_level(30, 20, 0.01)), 9)
    0.01
    """
    p, q = integer("rows", rows), integer("columns", columns)
    chance = probability("failure", failure)
    if variant == "sharp":
        return outward(math.sqrt(p) + math.sqrt(q) + math.sqrt(2 * math.log(1 / chance)))
    return outward(math.sqrt(2 * max(p, q) * math.log((p + q) / chance)))


def noise_scale(
    norms: Sequence[float],
    shapes: Sequence[tuple[int, int]],
    deviation: float,
    *,
    input_norm: float = 1.0,
    success: float = 0.5,
) -> float:
    r"""Return the largest proved weight noise that moves the output by at most so much.

    With independent :math:`N(0, \sigma^2)` noise on all weights, with probability at least ``success``
    all layers have :math:`\|U_l\|_2 \le \sigma T_l`, :math:`T_l = \sqrt{p_l} + \sqrt{q_l} + \sqrt{2
    \log(d / (1 - \text{success}))}`; the scale solves
    :math:`B (\prod (s_l + \sigma T_l) - \prod s_l) = \text{deviation}`.

    Args:
        norms: :math:`s_l`, spectral norms of the d layers.
        shapes: Their shapes :math:`(p_l, q_l)`.
        deviation: How far the output may move, in the Euclidean norm.
        input_norm: B.
        success: Probability with which it must not move further.

    Returns:
        The scale, rounded down.

    Example:
        One 1 x 1 layer: :math:`\sigma (2 + \sqrt{2 \log 2}) = 1`.

        >>> round(noise_scale([5.0], [(1, 1)], 1.0), 4), round(1 / (2 + (2 * math.log(2)) ** 0.5), 4)
        (0.3147, 0.3147)
    """
    s = [positive("a norm", value, zero=True) for value in norms]
    allowed, B = positive("deviation", deviation), positive("input_norm", input_norm, zero=True)
    failure = (1.0 - probability("success", success)) / len(s)
    levels = [norm_level(p, q, failure) for p, q in shapes]
    if B == 0.0:
        raise ValueError("input_norm is zero: the output does not move, whatever the noise.")
    low, high = 0.0, 2.0 * allowed / B / max(levels) + max(s, default=0.0) + 1.0
    while outward(B * outward(_growth(s, [high * t for t in levels]))) <= allowed:
        high *= 2.0
    for _ in range(_HALVINGS):
        near = low > 0 and high < 2 * low
        middle = 0.5 * (low + high) if near else math.sqrt(max(low, _MIN_SCALE)) * math.sqrt(high)
        if not low < middle < high:
            break
        fits = outward(B * outward(_growth(s, [outward(middle * t) for t in levels]))) <= allowed
        low, high = (middle, high) if fits else (low, middle)
    if low == 0.0:
        raise ValueError("no noise fits: the norms leave float64; rescale the network or its inputs.")
    return low
