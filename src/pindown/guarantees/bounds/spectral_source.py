r"""The source's forms of the spectrally normalised margin bound: corrected, and as printed.

With :math:`\beta = (\prod_l \|W_l\|_2)^{1/d}` rounded to a grid point :math:`\tilde\beta`,

.. math::
    \sigma = \frac{1}{d \sqrt{2 h \log(4 d h)}}
        \min\Big\{\frac{\gamma}{4 e^2 B \tilde\beta^{d-1}}, \frac{\tilde\beta}{e^{1/(d-1)}}\Big\}, \qquad
    L \le \hat L_{\gamma/2} + \sqrt{\frac{\|w\|^2 / 2 \sigma^2 + \log(3 m K / \delta)}{m - 1}}.

Mukherjee 2020, Theorem 6.1.3 and appendix 6.D.
"""

from __future__ import annotations

import math

import numpy as np

from pindown.affine import Array
from pindown.guarantees.bounds.bound import (
    INDEPENDENT,
    Assumption,
    Bound,
    half_square,
    outward,
    positive,
)
from pindown.guarantees.bounds.grids import beta_grid
from pindown.guarantees.bounds.representatives import Representative, WeightList, representative
from pindown.guarantees.bounds.sample import Sample

SOURCE = "Mukherjee 2020, Theorem 6.1.3"
MARGIN_GRID: Array = np.geomspace(1e-3, 1e-3 * 1.1**145, 146)  # up to 1e3
_EQUAL = 1e-6  # relative: norms that differ by less count as balanced


def source_scale(beta: float, margin: float, depth: int, side: int, input_norm: float) -> float:
    """Return the scale of the source at a grid point, for layers of equal norm.

    >>> round(source_scale(1.0, 4 * math.e**2, 2, 1, 1.0), 4)  # 1 / (2 e sqrt(2 log 8))
    0.0902
    """
    d = depth
    least = min(margin / (4 * math.e**2 * input_norm * beta ** (d - 1)), beta / math.exp(1.0 / (d - 1)))
    return least / (d * math.sqrt(2 * side * math.log(4 * d * side))) * (1.0 - _ROUNDING)


_ROUNDING = 2.0**-44  # a smaller scale gives a larger bound


def preference(value: float, risk: float) -> tuple[float, bool, float]:
    """Return a key that sorts choices: the smallest bound first.

    Among vacuous ones those that still see half of the sample right come first: at a huge margin, where
    all is wrong, the rest of the formula is small and says nothing.

    >>> preference(0.3, 0.2) < preference(4.0, 0.2) < preference(1.1, 1.0)
    True
    """
    return min(value, 1.0), risk > 0.5, value


def beta_interval(
    margin: float, n: int, depth: int, input_norm: float, *, printed: bool = False
) -> tuple[float, float]:
    """Return where beta must lie for the bound to say anything.

    Below, no output of the network reaches the margin; above, the square root exceeds one.
    """
    lower = margin / ((2.0 if printed else 2.0 * math.sqrt(2.0)) * input_norm)
    upper = math.sqrt(n - 1) * margin / (4 * math.exp(3 - 2 / (depth - 1)) * input_norm)
    return lower ** (1 / depth), upper ** (1 / depth)


def corrected_bound(
    weights: WeightList,
    sample: Sample,
    delta: float,
    which: list[Representative],
    margin: float | None,
    input_norm: float,
    norm_given: bool,
) -> Bound:
    """Return the best over copies and margins; both grids are paid for."""
    _require_depth(weights)
    grid = MARGIN_GRID if margin is None else np.array([positive("margin", margin)])
    best: tuple[tuple[float, bool, float], dict[str, float], str, bool] | None = None
    for name in which:
        copy = representative(representative(weights, name), "layers")
        for g in grid.tolist():
            terms, inside = _corrected(copy, sample, delta, g, input_norm, len(grid))
            value = terms["empirical risk"] + terms["complexity"]
            value = value if inside else max(1.0, value)
            rank = preference(value, terms["empirical risk"])
            if best is None or rank < best[0]:
                best = (rank, terms, name, inside)
    if best is None:
        raise ValueError("no copy of the network to compute the bound from.")
    (_, _, value), terms, copied, inside = best
    chosen = "from a grid, paid for" if margin is None else "before the sample was seen"
    return Bound(
        "spectral margin, source",
        outward(value),
        delta,
        "expected risk under small weight noise",
        terms,
        (
            INDEPENDENT,
            norm_assumption(sample, input_norm, norm_given),
            Assumption(f"the margin was chosen {chosen}", "checked" if margin is None else "assumed"),
            Assumption(f"computed from layers of equal spectral norm ({copied})", "checked"),
            Assumption(
                "the geometric mean of norms lies in its grid"
                if inside
                else "the geometric mean of norms lies outside its grid, where the bound is vacuous",
                "checked",
            ),
        ),
        f"{SOURCE}, corrected",
    )


def _corrected(
    copy: WeightList, sample: Sample, delta: float, margin: float, input_norm: float, n_margins: int
) -> tuple[dict[str, float], bool]:
    d, h, beta = copy.depth, copy.largest_side, max(copy.norms)
    low, high = beta_interval(margin, sample.n, d, input_norm)
    inside = low <= beta <= high
    points = beta_grid(low, max(low, high), d)
    point = float(points[np.argmin(np.abs(points - beta))]) if inside else beta
    n_priors = len(points) * n_margins
    risk = float(np.mean(sample.margins <= margin / 2))
    if beta == 0.0:
        return _terms(risk, math.inf, 0.0, n_priors, sample.n, delta, margin, point), False
    scale = source_scale(point, margin, d, h, input_norm)
    kl = outward(half_square(copy.frobenius, scale))
    return _terms(risk, kl, scale, n_priors, sample.n, delta, margin, point), inside


def _terms(
    risk: float,
    kl: float,
    scale: float,
    n_priors: int,
    n: int,
    delta: float,
    margin: float,
    point: float,
) -> dict[str, float]:
    log_term = outward(math.log(3.0 * n * n_priors / delta))
    return {
        "empirical risk": risk,
        "margin": margin,
        "kl": kl,
        "scale": scale,
        "priors": float(n_priors),
        "log terms": log_term,
        "beta": point,
        "complexity": outward(math.sqrt((kl + log_term) / (n - 1))),
    }


def printed_bound(
    weights: WeightList, sample: Sample, delta: float, margin: float | None, input_norm: float
) -> Bound:
    """Return what the printed formula gives, with the conditions it misses marked as violated."""
    _require_depth(weights)
    if margin is None:
        raise ValueError("the printed form takes a margin; give margin=...")
    g, d, beta = positive("margin", margin), weights.depth, weights.geometric_norm
    hidden = max(rows for rows, _ in weights.shapes[:-1])
    low, high = beta_interval(g, sample.n, d, input_norm, printed=True)
    points = beta_grid(low, max(low, high), d, "uniform")
    point = float(points[np.argmin(np.abs(points - beta))])  # the nearest, also from far outside
    scale = source_scale(point, g, d, hidden, input_norm)
    kl = half_square(weights.frobenius, scale)
    risk = float(np.mean(sample.margins <= g / 2))
    terms = _terms(risk, kl, scale, len(points), sample.n, delta, g, point)
    at_beta = half_square(weights.frobenius, source_scale(beta, g, d, hidden, input_norm))
    off_grid = _terms(risk, at_beta, scale, len(points), sample.n, delta, g, beta)
    terms["value at beta"] = risk + off_grid["complexity"]  # without rounding beta to the grid
    spread = max(weights.norms) > (1 + _EQUAL) * min(weights.norms)
    side = weights.largest_side
    checks = (
        ("layers have equal spectral norms", not spread),
        (f"no side of a layer exceeds h = {hidden} (the largest is {side})", side <= hidden),
        (f"beta = {beta:.4g} lies in its grid from {low:.4g} to {high:.4g}", low <= beta <= high),
        ("the margin was fixed before the sample was seen", None),
    )
    return Bound(
        "spectral margin, printed",
        outward(terms["empirical risk"] + terms["complexity"]),
        delta,
        "expected risk under small weight noise",
        terms,
        (INDEPENDENT, *(as_assumption(text, held) for text, held in checks)),
        f"{SOURCE}, as printed",
    )


def as_assumption(text: str, held: bool | None) -> Assumption:
    """Return a condition that was checked, or assumed if it cannot be (None)."""
    return Assumption(text, "assumed" if held is None else "checked" if held else "violated")


def norm_assumption(sample: Sample, input_norm: float, given: bool) -> Assumption:
    """Return what is known about the bound on inputs."""
    longest = float(sample.norms.max())
    if longest > input_norm:
        return Assumption(f"no input is longer than {input_norm:g} (one is {longest:.4g})", "violated")
    origin = "" if given else ", the longest of the sample, known beforehand"
    return Assumption(f"no input is longer than {input_norm:.4g}{origin}")


def _require_depth(weights: WeightList) -> None:
    if weights.depth < 2:
        raise ValueError(f"this form needs at least 2 layers; got {weights.depth}. Use form='sharp'.")
