r"""Margin bounds for separators of fixed features, among them those that max pooling learns."""

from __future__ import annotations

import math

from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, outward
from pindown.validation import integer, positive, probability

# The proof's separator has weights 80 d / (k eta T) on two sets of at most k / d units each, and
# features
# of at most that size: the product of norms is 160 sqrt(2 d).
_SEPARATOR_TIMES_FEATURES = 160.0
_SOURCE = "Shalev-Shwartz and Ben-David 2014, Theorem 26.13"


def linear_margin_bound(margin: float, largest_norm: float, n: int, delta: float = 0.05) -> Bound:
    r"""Bound the risk of a linear separator from the margin it has on its sample.

    With R above all norms, :math:`i = \max(1, \lceil \log_2 (R / \gamma) \rceil)`,

    .. math:: L \le \frac{2 \cdot 2^i}{\sqrt n} + \sqrt{\frac{2 \log(4 i^2 / \delta)}{n}}.

    Args:
        margin: Least margin :math:`\gamma` over the n points, of the separator of norm one; not
            positive: no statement.
        largest_norm: R, known before.
        n: Points that the margin was measured on.
        delta: Probability with which the bound may fail.

    Example:
        >>> round(linear_margin_bound(0.5, 1.0, 10_000).value, 3)
        0.07
        >>> linear_margin_bound(0.0, 1.0, 100).vacuous
        True

    Shalev-Shwartz and Ben-David 2014, Theorems 26.12 and 26.14.
    """
    R, n, delta = positive("largest_norm", largest_norm), integer("n", n), probability("delta", delta)
    gamma = float(margin)
    if math.isnan(gamma) or math.isinf(gamma):
        raise ValueError(f"margin must be a finite number; got {margin!r}.")
    features = Assumption("features do not depend on these points")
    known = Assumption(f"no point is longer than {R:g}")
    if gamma > R:
        known = Assumption(f"no point is longer than {R:g} (the margin {gamma:g} is)", "violated")
    if gamma <= 0:
        terms, value = {"margin": gamma}, math.inf
    else:
        i = max(1, math.ceil(math.log2(R / gamma)))
        rademacher = outward(2.0 * 2.0**i / math.sqrt(n))
        confidence = outward(math.sqrt(2 * math.log(4 * i * i / delta) / n))
        terms = {
            "margin": gamma,
            "norm class": float(i),
            "rademacher": rademacher,
            "confidence": confidence,
        }
        value = outward(rademacher + confidence)
    about = "risk of the separator"
    return Bound("linear margin", value, delta, about, terms, (INDEPENDENT, features, known), _SOURCE)


def max_pooling_bound(
    n_patterns: int, n_second: int, delta: float = 0.05, *, n_first: int | None = None
) -> Bound:
    r"""Bound the risk of a layer-wise trained max-pooling network, with the constant of its proof.

    .. math:: \frac{2 B}{\sqrt{m_2}} + (1 + B) \sqrt{\frac{2 \log(2/\delta)}{m_2}}, \qquad
              B = 160 \sqrt{2 d}

    fails with probability at most :math:`\delta + 4 e^{-d} + 4 e^{-m_1/18}`: the margin bound, the lemma
    on where units start, and the shares of the classes in the first half.

    Args:
        n_patterns: d.
        n_second: Points :math:`m_2` of the second phase.
        delta: Probability with which the margin bound may fail, beside the lemmas.
        n_first: Points :math:`m_1` of the first phase; None is :math:`m_2`.

    Example:
        >>> round(max_pooling_bound(6, 10**9).value, 3), max_pooling_bound(6, 200).vacuous
        (0.083, True)

    Brutzkus and Globerson 2021, Theorem 5.1; Shalev-Shwartz and Ben-David 2014, Theorem 26.13.
    """
    d, m = integer("n_patterns", n_patterns, least=3), integer("n_second", n_second)
    delta, first = probability("delta", delta), m if n_first is None else integer("n_first", n_first)
    start, classes = 4.0 * math.exp(-d), 4.0 * math.exp(-first / 18.0)
    fails = delta + start + classes
    B = outward(_SEPARATOR_TIMES_FEATURES * math.sqrt(2 * d))
    rademacher = outward(2 * B / math.sqrt(m))
    confidence = outward((1 + B) * math.sqrt(2 * math.log(2 / delta) / m))
    terms = {"B": B, "rademacher": rademacher, "confidence": confidence}
    terms |= {"failure of the start": start, "failure of the class shares": classes}
    return Bound(
        "max pooling",
        outward(rademacher + confidence) if fails < 1.0 else math.inf,
        fails if fails < 1.0 else delta,
        "risk of the max-pooling network",
        terms,
        (
            INDEPENDENT,
            Assumption("patterns are orthonormal and each class shows its own"),
            Assumption("step sizes, radius and width are those of the theorem"),
        ),
        "Brutzkus and Globerson 2021, Theorem 5.1",
    )
