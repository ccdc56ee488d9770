r"""The margin bound with spectral norms, every constant tracked: sharp, corrected and as printed.

The prior is :math:`N(0, \sigma^2 I)` over all weights, the posterior :math:`N(w, \sigma^2 I)`
conditioned on noise that the margins absorb. Three variants differ in how :math:`\sigma` is found and
paid for.

``"sharp"``. With :math:`G = \prod_l (s_l + \sigma T_l) - \prod_l s_l` the noise moves outputs at x by at
most :math:`\|x\| G` (see :mod:`~pindown.guarantees.bounds.weight_noise`), so a noisy mistake on the
sample needs a margin of at most :math:`\sqrt2 \|x\| G`. G, that is the margin, the norms and the largest
input are free to be chosen on the sample; only the scale comes from a fixed list.

``"corrected"``. The source's formula for layers of equal norm, with h at least every side of a layer,
the geometric mean of norms from a grid on the corrected interval and the margin from a second grid. With
:math:`\beta = (\prod_l \|W_l\|_2)^{1/d}` rounded to a grid point :math:`\tilde\beta`,

.. math::
    \sigma = \frac{1}{d \sqrt{2 h \log(4 d h)}}
        \min\Big\{\frac{\gamma}{4 e^2 B \tilde\beta^{d-1}}, \frac{\tilde\beta}{e^{1/(d-1)}}\Big\}, \qquad
    L \le \hat L_{\gamma/2} + \sqrt{\frac{\|w\|^2 / 2 \sigma^2 + \log(3 m K / \delta)}{m - 1}}.

``"as_printed"``. The source's formula word by word; what is wrong with it is listed as violated
assumptions.

Mukherjee 2020, Theorem 6.1.3 and appendix 6.D; Neyshabur, Bhojanapalli and Srebro 2018, Theorem 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pindown.affine import Array
from pindown.evidence import Assumption
from pindown.guarantees.bounds._samples import Sample, reach_of_inputs, read_networks, read_sample
from pindown.guarantees.bounds.bound import INDEPENDENT, Bound, half_square, outward
from pindown.guarantees.bounds.pac_bayes import risks_from_levels
from pindown.guarantees.bounds.pac_bayes_margins import conditioned_kl
from pindown.guarantees.bounds.priors import beta_grid, scale_below
from pindown.guarantees.bounds.relative_entropy import mixture_exponent
from pindown.guarantees.bounds.rescaled_weights import (
    REPRESENTATIVES,
    Representative,
    WeightList,
    representative,
)
from pindown.guarantees.bounds.weight_noise import noise_scale
from pindown.guarantees.tuning import MARGIN_QUANTILES, SPECTRAL_SUCCESSES
from pindown.rounding import norm_up
from pindown.validation import positive, probability, refuse

Variant: TypeAlias = Literal["sharp", "corrected", "as_printed"]
_COPIES = {
    "given": "the weights as given",
    "layers": "the copy with layers of equal spectral norm",
    "scaled": "the copy with layers scaled for the least divergence",
    "units": "the copy with balanced units and layers scaled for the least divergence",
}
_BELOW = 1e-9  # relative: more than rounding in margins and norms
_TINY_NORM = 1e-300  # of an input: a zero input has margin zero and counts as a mistake
SOURCE = "Mukherjee 2020, Theorem 6.1.3"
MARGIN_GRID: Array = np.geomspace(1e-3, 1e-3 * 1.1**145, 146)  # up to 1e3
_EQUAL = 1e-6  # relative: norms that differ by less count as balanced
_ROUNDING = 2.0**-44  # a smaller scale gives a larger bound


def spectral_margin_bound(
    net: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    delta: float = 0.05,
    variant: Variant = "sharp",
    representative: Representative | Literal["best"] = "best",
    margin: float | None = None,
    input_norm: float | None = None,
    centres: Sequence[Any] | None = None,
    n_choices: int = 1,
) -> Bound:
    r"""Bound the risk of a classifier with small weight noise by its margins and spectral norms.

    .. math::
        L \le \mathrm{kl}^{-1}\Big(\tfrac1m \#\{i : \mathrm{margin}_i \le \sqrt2 \|x_i\| G\},\
        \tfrac1m \Big[\tfrac{1}{Z}\Big(\tfrac{\|w\|^2}{2 \sigma^2} + H(Z)\Big)
            + \log\tfrac{2 \sqrt m}{\delta\, w_\sigma}\Big]\Big)

    Args:
        net: The classifier, any model, or a :class:`WeightList`; biases count as weights of a constant
            input.
        X: The training sample, (m, d).
        y: Its classes.
        delta: Probability with which the bound may fail.
        variant: ``"sharp"`` as above; ``"corrected"`` and ``"as_printed"`` are the source's.
        representative: Which copy of the function to compute it from; ``"best"`` tries all.
        margin: :math:`\gamma` of the corrected and printed forms; None: the best of a grid, paid for.
        input_norm: Bound on the norm of inputs for those forms; None takes the largest of the sample.
        centres: For ``"sharp"``: networks of the same shape, fixed before the sample was seen, around
            which the prior is a mixture, instead of zero.
        n_choices: How many such lists of centres were fixed, of which this is one.

    Example:
        >>> from pindown import ReluNetwork
        >>> both = [[1.0, -1.0], [-1.0, 1.0]]
        >>> net = ReluNetwork.from_layers([([[1.0], [-1.0]], [0, 0]), (both, [0, 0])])
        >>> X = np.where(np.arange(10_000) % 2, 1.0, -1.0)[:, None]
        >>> bound = spectral_margin_bound(net, X, (X[:, 0] < 0).astype(int))
        >>> round(bound.value, 3), bound.vacuous
        (0.057, False)

    Neyshabur, Bhojanapalli, Srebro 2018, Theorem 1; Mukherjee 2020, Theorem 6.1.3.
    """
    delta = probability("delta", delta)
    (weights, *around), rows = read_networks([net, *(centres or ())], X, "spectral_margin_bound")
    sample = read_sample(weights, rows, y)
    if variant == "sharp":
        given = None if centres is None else around
        return _sharp(weights, sample, delta, _copies(representative, given), given, n_choices)
    if centres is not None:
        raise ValueError(
            f"centres belong to variant='sharp'; got variant={variant!r}. See mixture_bound."
        )
    # Any length bounds inputs that are all zero.
    longest = float(sample.norms.max())
    B = longest or 1.0
    if input_norm is not None:
        B = reach_of_inputs(positive("input_norm", input_norm), longest, X, rows.shape[1])
    if variant == "corrected":
        which = _copies(representative, None)
        return corrected_bound(weights, sample, delta, which, margin, B, input_norm is not None)
    if variant == "as_printed":
        return printed_bound(weights, sample, delta, margin, B)
    refuse("variant", "'sharp', 'corrected' or 'as_printed'", variant)


def _copies(which: str, centres: Sequence[WeightList] | None) -> list[Representative]:
    allowed = REPRESENTATIVES if centres is None else REPRESENTATIVES[:2]
    if which == "best":
        return list(allowed)
    if which not in allowed:
        raise ValueError(f"representative must be 'best' or one of {allowed} here; got {which!r}.")
    return [name for name in allowed if name == which]


def _sharp(
    weights: WeightList,
    sample: Sample,
    delta: float,
    which: list[Representative],
    centres: Sequence[WeightList] | None,
    n_choices: int,
) -> Bound:
    best: tuple[tuple[float, bool, float], dict[str, float], str] | None = None
    for name in which:
        copy = representative(weights, name)
        # Around zero one prior serves all copies; around other centres each copy has its own.
        extra = math.log(n_choices) + (math.log(len(which)) if centres is not None else 0.0)
        distances = _distances(copy, centres, name)
        choices = _choices(copy, distances, sample, delta, extra)
        values = risks_from_levels(
            np.array([terms["empirical risk"] for terms in choices]),
            np.array([terms["level"] for terms in choices]),
        )
        for terms, value in zip(choices, values.tolist(), strict=True):
            rank = preference(value, terms["empirical risk"])
            if best is None or rank < best[0]:
                best = rank, terms, name
    assert best is not None
    (_, _, value), terms, copied = best
    assumptions = [INDEPENDENT, Assumption(f"computed from {_COPIES[copied]}", "checked")]
    if centres is not None:
        assumptions.append(Assumption("the centres were fixed before the sample was seen"))
    return Bound(
        "spectral margin" if centres is None else "spectral margin around given centres",
        value,
        delta,
        "expected risk under small weight noise",
        terms,
        tuple(assumptions),
        "Neyshabur et al. 2018; Mukherjee 2020, Theorem 6.1.3; constants sharpened",
    )


def _distances(copy: WeightList, centres: Sequence[WeightList] | None, name: Representative) -> Array:
    if centres is None:
        return np.array([copy.frobenius])
    if not centres or any(centre.shapes != copy.shapes for centre in centres):
        raise ValueError(f"centres must be networks of shapes {copy.shapes}, at least one.")
    moved = [representative(centre, name).vector for centre in centres]
    return np.array([norm_up(copy.vector - centre) for centre in moved])


def _choices(
    copy: WeightList, distances: Array, sample: Sample, delta: float, extra: float
) -> list[dict[str, float]]:
    """Return the terms for several margins and probabilities of small noise."""
    found = []
    ratios = sample.margins / (sample.factor * np.maximum(sample.norms, _TINY_NORM))
    for G in sorted({float(q) for q in np.quantile(ratios, MARGIN_QUANTILES) if q > 0} or {1.0}):
        allowed = G * (1.0 - _BELOW)  # the row that set the quantile stays right
        risk = float(np.mean(ratios <= G * (1.0 - 0.5 * _BELOW)))
        for success in SPECTRAL_SUCCESSES:
            choice = scale_below(noise_scale(copy.norms, copy.shapes, allowed, success=success))
            kl = mixture_exponent(distances, choice.scale)
            cost = outward(math.log(2.0 * math.sqrt(sample.n) / delta) + choice.cost + extra)
            truncated = conditioned_kl(kl, success)
            found.append(
                {
                    "empirical risk": risk,
                    "normalised margin": allowed,
                    "scale": choice.scale,
                    "kl": kl,
                    "success": success,
                    "kl of truncated posterior": truncated,
                    "log terms": cost,
                    "level": outward((truncated + cost) / sample.n),
                    "norm product": math.prod(copy.norms),
                    "frobenius": copy.frobenius,
                }
            )
    return found


def source_scale(beta: float, margin: float, depth: int, side: int, input_norm: float) -> float:
    """Return the scale of the source at a grid point, for layers of equal norm.

    >>> round(source_scale(1.0, 4 * math.e**2, 2, 1, 1.0), 4)  # 1 / (2 e sqrt(2 log 8))
    0.0902
    """
    d = depth
    least = min(margin / (4 * math.e**2 * input_norm * beta ** (d - 1)), beta / math.exp(1.0 / (d - 1)))
    return least / (d * math.sqrt(2 * side * math.log(4 * d * side))) * (1.0 - _ROUNDING)


def preference(value: float, risk: float) -> tuple[float, bool, float]:
    """Return a key that sorts choices: the smallest bound first.

    Among vacuous ones those that still see half of the sample right come first: at a huge margin, where
    all is wrong, the rest of the formula is small and says nothing.

    >>> preference(0.3, 0.2) < preference(4.0, 0.2) < preference(1.1, 1.0)
    True
    """
    return min(value, 1.0), risk > 0.5, value


def beta_interval(
    margin: float,
    n: int,
    depth: int,
    input_norm: float,
    *,
    variant: Literal["corrected", "as_printed"] = "corrected",
) -> tuple[float, float]:
    """Return where beta must lie for the bound to say anything.

    Below, no output of the network reaches the margin; above, the square root exceeds one.
    """
    lower = margin / ((2.0 if variant == "as_printed" else 2.0 * math.sqrt(2.0)) * input_norm)
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
    low, high = beta_interval(g, sample.n, d, input_norm, variant="as_printed")
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
        (INDEPENDENT, *(Assumption.judged(text, held) for text, held in checks)),
        f"{SOURCE}, as printed",
    )


def norm_assumption(sample: Sample, input_norm: float, given: bool) -> Assumption:
    """Return what is known about the bound on inputs."""
    longest = float(sample.norms.max())
    if longest > input_norm:
        return Assumption(f"no input is longer than {input_norm:g} (one is {longest:.4g})", "violated")
    origin = "" if given else ", the longest of the sample, known beforehand"
    return Assumption(f"no input is longer than {input_norm:.4g}{origin}")


def _require_depth(weights: WeightList) -> None:
    if weights.depth < 2:
        raise ValueError(
            f"this variant needs at least 2 layers; got {weights.depth}. Use variant='sharp'."
        )
