r"""How far the output can move when the weights do, and how large Gaussian weight noise may be.

For a network without biases whose layers have spectral norms :math:`s_l`, moved by matrices of norm
:math:`u_l`, and an input of norm at most B,

.. math:: \|f_{W + U}(x) - f_W(x)\|_2 \le B \Big(\prod_l (s_l + u_l) - \prod_l s_l\Big),

by induction over the layers and without a side condition. For :math:`u_l \le s_l / d` the right side is
at most :math:`e B \prod_l s_l \sum_l u_l / s_l`, the form of the source.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from pindown.guarantees.bounds.bound import (
    count,
    exp_up,
    half_square,
    outward,
    positive,
    probability,
)

Form: TypeAlias = Literal["sharp", "source"]
_HALVINGS = 200  # of an interval of scales; ends at neighbouring numbers long before


def perturbation_bound(
    norms: Sequence[float], moves: Sequence[float], input_norm: float = 1.0, *, form: Form = "sharp"
) -> float:
    r"""Bound the move of the output, in the Euclidean norm.

    Args:
        norms: :math:`s_l`, spectral norms of the layers.
        moves: :math:`u_l`, spectral norms of what is added to them.
        input_norm: B.
        form: ``"sharp"`` as above, or ``"source"``: :math:`e B \prod s_l \sum u_l/s_l`, and infinity
            where some :math:`u_l > s_l / d`.

    Example:
        Two layers of norm 1, each moved by 0.1: ``1.1**2 - 1``.

        >>> round(perturbation_bound([1, 1], [0.1, 0.1]), 12)
        0.21
        >>> round(perturbation_bound([1, 1], [0.1, 0.1], form="source"), 3)
        0.544

    Neyshabur, Bhojanapalli, Srebro 2018, Lemma 2; Mukherjee 2020, Theorem 6.D.2.
    """
    s = [positive("a norm", value, zero=True) for value in norms]
    u = [positive("a move", value, zero=True) for value in moves]
    if len(s) != len(u) or not s:
        raise ValueError(f"norms and moves need one number per layer; got {len(s)} and {len(u)}.")
    B = positive("input_norm", input_norm, zero=True)
    if form == "sharp":
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


def norm_tail(rows: int, columns: int, level: float, *, form: Form = "sharp") -> float:
    r"""Bound the probability that a standard Gaussian matrix has spectral norm above a level t.

    .. math::
        P[\|G\|_2 > t] \le e^{-(t - \sqrt p - \sqrt q)_+^2 / 2}, \qquad
        P[\|G\|_2 > t] \le (p + q) e^{-t^2 / (2 \max(p, q))}.

    The second is the ``"source"``.

    Example:
        >>> round(norm_tail(100, 100, 23.0), 4), round(norm_tail(100, 100, 23.0, form="source"), 4)
        (0.0111, 1.0)

    Davidson and Szarek 2001, Theorem II.13; Tropp 2012, Theorem 4.1; Mukherjee 2020, proof of
    Lemma 6.6.1.
    """
    p, q, t = count("rows", rows), count("columns", columns), positive("level", level, zero=True)
    if form == "sharp":
        # Subtracting roots may lose digits of the excess, so they are rounded up first.
        excess = max(0.0, t - outward(math.sqrt(p) + math.sqrt(q)))
        return min(1.0, exp_up(-half_square(excess, 1.0)))
    return min(1.0, outward((p + q) * exp_up(-half_square(t, math.sqrt(max(p, q))))))


def norm_level(rows: int, columns: int, failure: float, *, form: Form = "sharp") -> float:
    """Return the level that :func:`norm_tail` gives the probability ``failure``.

    >>> round(norm_tail(30, 20, norm_level(30, 20, 0.01)), 9)
    0.01
    """
    p, q = count("rows", rows), count("columns", columns)
    chance = probability("failure", failure)
    if form == "sharp":
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
        middle = 0.5 * (low + high) if near else math.sqrt(max(low, _LEAST)) * math.sqrt(high)
        if not low < middle < high:
            break
        fits = outward(B * outward(_growth(s, [outward(middle * t) for t in levels]))) <= allowed
        low, high = (middle, high) if fits else (low, middle)
    if low == 0.0:
        raise ValueError("no noise fits: the norms leave float64; rescale the network or its inputs.")
    return low


_LEAST = 1e-300  # a scale below it is reported as none
