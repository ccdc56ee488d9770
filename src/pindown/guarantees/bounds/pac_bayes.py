r"""PAC-Bayes base forms: from the risk of a random predictor on the sample to its risk on new examples.

A prior P over predictors is fixed before the n examples are seen. With probability at least
:math:`1 - \delta` each of them holds for *every* posterior Q at once, also one chosen after looking.
Losses lie between 0 and 1; :math:`\hat L` is the mean loss of Q on the sample, L its expectation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pindown.affine import Array
from pindown.confidence import clopper_pearson
from pindown.evidence import Assumption
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, outward
from pindown.guarantees.bounds.relative_entropy import small_kl_inverse
from pindown.guarantees.tuning import TEMPERATURES, WORTH_SAYING
from pindown.validation import integer, positive, probability, share

_PRIOR = Assumption("the prior was fixed before the examples were seen")
_ROOT_ROUNDING = 2.0**-44
_RANDOMISED = "expected risk of the posterior"


def mcallester_bound(risk: float, kl: float, n: int, delta: float = 0.05) -> Bound:
    r"""Bound the risk by adding a square root.

    .. math:: L \le \hat L + \sqrt{\frac{\mathrm{KL}(Q \| P) + \log(n / \delta)}{2 (n - 1)}}

    Args:
        risk: :math:`\hat L`.
        kl: :math:`\mathrm{KL}(Q \| P)` in nats.
        n: Number of examples, at least 2.
        delta: Probability with which the bound may fail.

    Example:
        >>> round(mcallester_bound(0.1, 0.0, 1001, delta=0.05).value, 4)
        0.1704

    McAllester 2003, "PAC-Bayesian stochastic model selection"; Mukherjee 2020, Theorem 6.1.1.
    """
    risk, kl, n, delta = _checked(risk, kl, n, delta, least=2)
    confidence = outward(math.log(n / delta))
    complexity = outward(math.sqrt(outward(kl + confidence) / (2 * (n - 1))))
    return Bound(
        "McAllester",
        outward(risk + complexity),
        delta,
        _RANDOMISED,
        {"empirical risk": risk, "kl": kl, "log(n/delta)": confidence, "complexity": complexity},
        (INDEPENDENT, _PRIOR),
        "McAllester 2003",
    )


def maurer_bound(risk: float, kl: float, n: int, delta: float = 0.05) -> Bound:
    r"""Bound the risk by inverting the relative entropy of two coins; the tightest form here.

    .. math::
        \mathrm{kl}(\hat L \| L) \le \frac{\mathrm{KL}(Q \| P) + \log(2 \sqrt n / \delta)}{n}

    Args:
        risk: :math:`\hat L`.
        kl: :math:`\mathrm{KL}(Q \| P)` in nats.
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        No errors and no divergence leave :math:`1 - (\delta / 2 \sqrt n)^{1/n}`:

        >>> round(maurer_bound(0.0, 0.0, 1000).value, 4), round(1 - (0.05 / 2 / 1000**0.5)**1e-3, 4)
        (0.0071, 0.0071)

    Maurer 2004, "A note on the PAC Bayesian theorem", Theorem 5; Seeger 2002.
    """
    risk, kl, n, delta = _checked(risk, kl, n, delta)
    confidence = outward(math.log(2.0 * math.sqrt(n) / delta))
    level = outward((kl + confidence) / n)
    value = float(small_kl_inverse(risk, level))
    terms = {"empirical risk": risk, "kl": kl, "log(2 sqrt(n)/delta)": confidence, "level": level}
    return Bound("Maurer", value, delta, _RANDOMISED, terms, (INDEPENDENT, _PRIOR), "Maurer 2004")


def risk_from_level(risk: float, level: float) -> float:
    r"""Return :math:`\mathrm{kl}^{-1}(\hat L, c)`, or where it is nearly 1 :math:`\hat L + \sqrt{c/2}`.

    Both bound the risk; the first never leaves 1, and the second shows by how much a bound misses.

    >>> round(risk_from_level(0.0, 0.01), 5), round(risk_from_level(0.0, 50.0), 5)
    (0.00995, 5.0)
    """
    return float(risks_from_levels(np.asarray(risk), np.asarray(level)))


def risks_from_levels(risks: Array, levels: Array) -> Array:
    """Return :func:`risk_from_level` entry by entry."""
    inverse = small_kl_inverse(risks, levels)
    root = (risks + np.sqrt(levels / 2.0)) * (1.0 + _ROOT_ROUNDING)
    return np.where(inverse <= WORTH_SAYING, inverse, np.maximum(inverse, root))


def catoni_bound(
    risk: float,
    kl: float,
    n: int,
    delta: float = 0.05,
    *,
    temperature: float | Sequence[float] | None = None,
) -> Bound:
    r"""Bound the risk with a temperature C, which must not be chosen on the examples for free.

    .. math::
        L \le \frac{1 - \exp\big(-C \hat L - (\mathrm{KL}(Q \| P) + \log(1/\delta)) / n\big)}
                   {1 - e^{-C}}

    Args:
        risk: :math:`\hat L`.
        kl: :math:`\mathrm{KL}(Q \| P)` in nats.
        n: Number of examples.
        delta: Probability with which the bound may fail.
        temperature: C, or several among which the best is taken with :math:`\delta` shared equally;
            None is a fixed grid of 90.

    Example:
        >>> round(catoni_bound(0.0, 0.0, 1000, temperature=10.0).value, 4)
        0.003

    Catoni 2007, "PAC-Bayesian supervised classification", Theorem 1.2.6.
    """
    risk, kl, n, delta = _checked(risk, kl, n, delta)
    given = TEMPERATURES if temperature is None else temperature
    grid = [positive("temperature", float(c)) for c in np.atleast_1d(np.asarray(given, dtype=float))]
    if not grid:
        raise ValueError("temperature is an empty list; give at least one number, or None.")
    confidence = outward(math.log(len(grid) / delta))
    level = outward((kl + confidence) / n)
    values = [_catoni(risk, level, c) for c in grid]
    best = min(range(len(grid)), key=values.__getitem__)
    terms = {
        "empirical risk": risk,
        "kl": kl,
        "temperature": grid[best],
        "temperatures": float(len(grid)),
        "log(K/delta)": confidence,
    }
    fixed = Assumption("the temperatures were fixed before the examples were seen")
    found = (
        INDEPENDENT,
        _PRIOR,
        fixed if temperature is not None else Assumption(fixed.text, "checked"),
    )
    return Bound("Catoni", values[best], delta, _RANDOMISED, terms, found, "Catoni 2007")


def _catoni(risk: float, level: float, c: float) -> float:
    return outward(outward(-math.expm1(-(c * risk + level))) / -math.expm1(-c))


def occam_bound(risk: float, bits: float, n: int, delta: float = 0.05) -> Bound:
    r"""Bound the risk of one predictor that a code fixed in advance describes in so many bits.

    .. math:: \mathrm{kl}(\hat L \| L) \le \frac{b \log 2 + \log(1/\delta)}{n}

    A stored network is such a predictor: 32 bits for each float32 parameter.

    Args:
        risk: Share of errors on the sample.
        bits: Length b of the description, of a code without prefixes.
        n: Number of examples.
        delta: Probability with which the bound may fail.

    Example:
        A network of ten bits that is right on 1,000 examples:

        >>> round(occam_bound(0.0, 10, 1000).value, 4)
        0.0099

    Blumer et al. 1987, "Occam's razor"; Langford 2005, "Tutorial on practical prediction theory".
    """
    risk, length, n, delta = _checked(risk, positive("bits", bits, zero=True), n, delta)
    level = outward((length * math.log(2.0) + math.log(1.0 / delta)) / n)
    value = risk_from_level(risk, level)
    code = Assumption("the code was fixed before the examples were seen")
    terms = {"empirical risk": risk, "bits": length, "level": level}
    return Bound("description length", value, delta, "risk", terms, (INDEPENDENT, code), "Langford 2005")


def held_out_bound(errors: int, n: int, delta: float = 0.05) -> Bound:
    r"""Bound the risk from examples that training never saw: the largest p that fits the errors.

    .. math:: \max \{ p : P[\mathrm{Binomial}(n, p) \le \text{errors}] \ge \delta \}

    Args:
        errors: Mistakes on the held-out examples.
        n: Number of held-out examples.
        delta: Probability with which the bound may fail.

    Example:
        No error in n examples leaves :math:`1 - \delta^{1/n}`:

        >>> round(held_out_bound(0, 100).value, 5), round(1 - 0.05 ** (1 / 100), 5)
        (0.02951, 0.02951)

    Clopper and Pearson 1934; Langford 2005, Theorem 3.3.
    """
    n, delta = integer("n", n), probability("delta", delta)
    wrong = integer("errors", errors, least=0)
    if wrong > n:
        raise ValueError(f"errors must be at most the {n} examples; got {wrong}.")
    value = clopper_pearson(wrong, n, delta)
    unseen = Assumption("the held-out examples were not used to train or choose the network")
    terms = {"observed error": wrong / n, "errors": float(wrong), "n": float(n)}
    about = "risk of the network"
    return Bound("held-out examples", value, delta, about, terms, (INDEPENDENT, unseen), "Langford 2005")


def _checked(
    risk: float, kl: float, n: int, delta: float, least: int = 1
) -> tuple[float, float, int, float]:
    return (
        share("risk", risk),
        positive("kl", kl, zero=True, infinite=True),
        integer("n", n, least=least),
        probability("delta", delta),
    )
